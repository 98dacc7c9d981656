"""``moldsim predict``: from a file of measurements to predictions.

What an option says wrong is a `PredictorError` that names it.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from rich.console import Console

import predictors
from predictors.base import FloatArray, Predictor, Remark
from predictors.cli.measurements import as_number, read_curves
from predictors.cli.output import print_curves, print_report, save_plot, write_json, write_table
from predictors.cli.report import CurveReport, Question, build_report, default_targets
from predictors.cli.terminal import Display, PlainConsole
from predictors.compiling import kernel_folder
from predictors.errors import PredictorError
from predictors.regression import focal_training as focal
from predictors.regression.barnes import LogLogPredictor


class AtInputs:
    """A fitted model at fixed inputs, with a note on these if there is one: it answers for counts.

    Attributes that are not its own are the model's, so that its parameters are reported.
    """

    def __init__(self, model: Predictor, inputs: dict[str, Any], note: str) -> None:
        self._model, self._inputs = model, inputs
        self._first = [Remark("note", "at_inputs", note)] if note else []
        self.predict = partial(model.predict, **inputs)
        self.predict_range = partial(model.predict_range, **inputs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def reliability(self, nprocs: ArrayLike) -> list[Remark]:
        """Return the model's remarks, with the note on the inputs first."""
        return self._first + self._model.reliability(nprocs, **self._inputs)


def _listed(inputs: dict[str, float]) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in inputs.items())


def input_names(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the names that ``--inputs`` gives; size by default."""
    if not options.inputs:
        return ("size",)
    return tuple(name.strip().lower() for name in options.inputs.split(",") if name.strip())


def fixed_inputs(options: argparse.Namespace, frame: pd.DataFrame) -> tuple[dict[str, float], str]:
    """Return the inputs to predict at: those of ``--at``, else each one's largest value."""
    names = [name for name in input_names(options) if name in frame]
    values = {name: float(frame[name].max()) for name in names if frame[name].nunique() > 1}
    chosen = {}
    for text in options.at:
        name, equals, value = text.partition("=")
        name = name.strip().lower()
        number = as_number(value)
        if not equals or name not in names or not np.isfinite(number):
            raise PredictorError(
                f"--at {text}: expected NAME=NUMBER with an input of {', '.join(names) or 'none'}"
            )
        chosen[name] = number
    largest = {name: value for name, value in values.items() if name not in chosen}
    note = f"predicted at the largest {_listed(largest)}; --at chooses another" if largest else ""
    return {**largest, **chosen}, note


def alike(frame: pd.DataFrame, inputs: dict[str, float]) -> pd.DataFrame:
    """Return the runs with the values of inputs, of each of which there are any."""
    for name, value in inputs.items():
        frame = frame[frame[name] == value] if (frame[name] == value).any() else frame
    return frame


def conditions(options: argparse.Namespace) -> tuple[dict[str, float], dict[str, float]]:
    """Return the values that ``--condition`` names, and the bands around them, by column."""
    values, bands = {}, {}
    for text in options.condition:
        name, _, rest = text.partition("=")
        value, _, band = rest.partition("~")
        numbers = as_number(value), as_number(band or "0")
        if np.isnan(numbers).any():
            raise PredictorError(
                f"--condition {text}: expected NAME=VALUE or NAME=VALUE~BAND, numbers both"
            )
        values[name.strip().lower()], bands[name.strip().lower()] = numbers
    return values, bands


def answer_size(
    options: argparse.Namespace, model: Predictor, frame: pd.DataFrame, targets: FloatArray
) -> None:
    """Write the size for a wanted time at each target count, with its 80 % interval.

    Beside it stands the size of weak scaling, in proportion to the count, from the run on
    the largest count whose time is nearest to the wanted one.
    """
    if not isinstance(model, LogLogPredictor):
        raise PredictorError("--size-for-time needs --method regression or focused")
    seconds, of = float(options.size_for_time), options.solve
    fixed, _ = fixed_inputs(options, frame)
    others: dict[str, Any] = {name: value for name, value in fixed.items() if name != of}
    solved = model.solve_size(seconds, targets, of=of, **others)
    low, high = model.size_range(seconds, targets, options.level, of=of, **others)
    remarks = list(dict.fromkeys(model.size_reliability(seconds, targets, of=of, **others)))
    if others:
        text = f"solved at {_listed(others)}; --at chooses another"
        remarks.insert(0, Remark("note", "at_inputs", text))
    rows = pd.DataFrame({"nprocs": targets, of: solved, "low": low, "high": high})
    like = alike(frame, others)
    top = like[like["nprocs"] == like["nprocs"].max()]
    nearest = top.loc[(np.log(top["runtime"] / seconds)).abs().idxmin()]
    rows["weak scaling"] = nearest[of] * targets / nearest["nprocs"]
    title = f"{of} for {seconds:g} s ({options.level:.0%} interval)"
    write_table(options.json, title, rows, remarks)


def answer_focal(
    options: argparse.Namespace, frame: pd.DataFrame, target: int | None = None
) -> None:
    """Write the runs that the focal procedure needs next, or its forecast.

    The first row on each of the two largest counts is the client's run. The forecast is
    for `target` processors, twice the largest count if None.
    """
    if "size" not in frame:
        raise PredictorError("--focal-levels needs a column size in the measurements")
    words = options.focal_levels.replace(",", " ").split()
    if not all(word.isdigit() for word in words):
        raise PredictorError(
            f"--focal-levels {options.focal_levels}: processor counts such as 16,32,64 are needed"
        )
    levels = [int(word) for word in words]
    first, second = focal.client_runs(frame)
    try:
        training = focal.train_focal(
            focal.recorded(frame), first, second, levels or None, options.focal_time
        )
    except focal.RunsNeededError as needed:
        _write_plan(options, needed.runs)
        return
    nprocs = 2 * first.nprocs if target is None else target
    rows = focal.forecast_sizes(training, nprocs)
    remarks = list(training.model.size_reliability(training.focal_time, nprocs))
    if training.recentred:
        text = f"levels run again around the focal time: {', '.join(map(str, training.recentred))}"
        remarks.insert(0, Remark("note", "recentred", text))
    b0, b1, b2 = training.model.coefficients_
    title = (
        f"sizes on {nprocs} processors from {len(training.runs)} runs near "
        f"{training.focal_time:g} s: log2 T = {b0:.4f} {b1:+.4f} log2 P {b2:+.4f} log2 size, "
        f"RMSE {training.model.rmse_:.3f} (80 % interval)"
    )
    write_table(options.json, title, rows, remarks)


def _write_plan(options: argparse.Namespace, runs: tuple[focal.PlannedRun, ...]) -> None:
    """Write the runs to make as CSV rows to fill in and add to the file."""
    if options.json:
        write_json({"runs_needed": [run._asdict() for run in runs]})
        return
    sys.stdout.write(
        f"# runs needed next: {len(runs)}; fill in the seconds, add the rows to "
        f"{options.measurements} and ask again\nnprocs,size,runtime,purpose\n"
    )
    for run in runs:
        sys.stdout.write(f"{run.nprocs},{run.size:.12g},,{run.purpose}\n")


METHODS: dict[str, Callable[[argparse.Namespace], Predictor]] = {
    "adept": lambda arguments: predictors.Adept(allowed=_allowed(arguments.allowed)),
    "amdahl": lambda arguments: predictors.Amdahl(),
    "usl": lambda arguments: predictors.UniversalScalability(),
    "levenberg": lambda arguments: predictors.LevenbergMarquardt(),
    "regression": lambda arguments: predictors.LogLogRegression(input_names(arguments)),
    "focused": lambda arguments: predictors.FocusedRegression(
        input_names(arguments),
        arguments.focal_time,
        arguments.tolerance,
        condition=conditions(arguments)[0],
        band=conditions(arguments)[1],
    ),
    "consensus": lambda arguments: predictors.Consensus(input_names(arguments)),
}
"""Name on the command line and how its model is made from the arguments."""

WITH_INPUTS = ("regression", "focused", "consensus")
"""Methods that also learn from inputs such as a size, so several curves can be one question."""

READ_BY = {
    ("adept",): ("allowed",),
    WITH_INPUTS: ("inputs", "at"),
    ("focused",): ("focal_time", "tolerance", "condition"),
}
"""Methods, and the options that they alone read."""

OPTIONS = {
    "--target": "processor counts to predict, apart or as ranges such as 4-8",
    "--most": "the largest count available, to use or to measure",
    "--counts": "counts to choose from, as --target has them; by default powers of two, and "
    "doubles and multiples of what was measured",
    "--columns": "which column is nprocs, runtime, ...: nprocs='Anzahl Kerne'",
    "--free": "choose what to measure next as if runs cost nothing, not by processor-seconds",
    "--curve": "of several curves in the file, the one with this number",
    "--method": "adept by default; focused for --size-for-time",
    "--where": "use only the rows with this value; may be given several times",
    "--allowed": "counts the application runs on: 4,8,16 or a family such as 'powers of 2'",
    "--inputs": "take runs that differ in these (size) as one curve",
    "--at": "input to predict at",
    "--focal-time": "look at runs near this time",
    "--tolerance": "how near, in log2 units (0.3: 23 %%)",
    "--size-for-time": "which size takes this long on the --target counts",
    "--solve": "the input to solve for (size)",
    "--condition": "fit to runs with this value of a column, or within a band of it in log2 units",
    "--focal-levels": "smaller counts for a self-generated training set: names the runs to make, "
    "then forecasts sizes for --target",
    "--level": "share of runs a range should hold (0.8)",
    "--plot": "draw measurements, curve and range to this file; for an SVG, a .dark.svg too",
    "--json": "write the answer as JSON",
}
POOLED = (
    *("--inputs", "--at", "--focal-time", "--tolerance", "--size-for-time", "--solve"),
    *("--condition", "--focal-levels"),
)
FORMS: dict[str, dict[str, Any]] = {
    "--target": {"nargs": "+", "metavar": "N"},
    "--most": {"type": float, "metavar": "N"},
    "--counts": {"nargs": "+", "metavar": "N"},
    "--columns": {"nargs": "+", "default": [], "metavar": "NAME=HEADING"},
    "--free": {"action": "store_true"},
    "--curve": {"metavar": "K"},
    "--method": {"choices": sorted(METHODS)},
    "--where": {"action": "append", "default": [], "metavar": "COLUMN=VALUE"},
    "--allowed": {"metavar": "COUNTS"},
    "--level": {"type": float, "default": 0.8},
    "--plot": {"type": Path, "metavar": "FILE.svg"},
    "--json": {"action": "store_true"},
    "--inputs": {"metavar": "NAME,..."},
    "--at": {"action": "append", "default": [], "metavar": "NAME=VALUE"},
    "--focal-time": {"type": float, "metavar": "SECONDS"},
    "--tolerance": {"type": float, "default": 0.3},
    "--size-for-time": {"type": float, "metavar": "SECONDS"},
    "--solve": {"metavar": "NAME", "default": "size"},
    "--condition": {"action": "append", "default": [], "metavar": "NAME=VALUE[~BAND]"},
    "--focal-levels": {"metavar": "COUNTS"},
}
"""What the parser is told of an option besides its help."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer a command line; return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        _answer(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (``| head``) has gone; the interpreter must not flush to it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError) as error:
        PlainConsole(stderr=True).print(
            f"moldsim predict: error: {error}", markup=False, highlight=False, soft_wrap=True
        )
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="moldsim predict",
        description="Predict runtime and speedup at other processor counts from a few measured "
        "runs, and say how far to trust it.",
    )
    parser.add_argument(
        "measurements",
        type=Path,
        metavar="MEASUREMENTS.csv",
        help="one row per run: a column of processor counts (cores, nodes, ...) and one of times, "
        "in seconds or with a unit; or one row per count with runs side by side",
    )
    group = parser.add_argument_group("regressions and consensus")
    for name, text in OPTIONS.items():
        (group if name in POOLED else parser).add_argument(name, help=text, **FORMS[name])
    return parser


def _answer(options: argparse.Namespace) -> None:
    if options.method is None:
        about_size = options.size_for_time is not None or options.focal_levels is not None
        options.method = "focused" if about_size else "adept"
    _check_belonging(options)
    pooling = (options.inputs, options.at, options.size_for_time, options.focal_levels)
    asked = options.method in WITH_INPUTS and any(pooling)
    inputs = input_names(options) if asked else ()
    found = read_curves(options.measurements, options.where, inputs, options.columns)
    curves = _chosen(found, options.curve)
    console = PlainConsole(stderr=True)
    if console.is_terminal and not [*kernel_folder().glob("predictors.*")]:
        console.print("compiling, which is done once and takes some seconds", highlight=False)
    if len(curves) > 1:
        _answer_all(options, curves)
        return
    frame = next(iter(curves.values()))
    targets = _counts("--target", options.target)
    if options.focal_levels is not None:
        answer_focal(options, frame, None if targets is None else int(targets[0]))
        return
    if options.size_for_time is not None:
        options.focal_time = options.focal_time or options.size_for_time
        model = METHODS[options.method](options).fit(_fitting_columns(frame, options))
        usual = default_targets(frame["nprocs"].to_numpy(float))
        answer_size(options, model, frame, usual if targets is None else targets)
        return
    report = _reported(options, frame, targets)
    if options.json:
        write_json(report.as_dict())
    else:
        print_report(report, _console())


def _reported(
    options: argparse.Namespace, frame: pd.DataFrame, targets: FloatArray | None
) -> CurveReport:
    """Fit the method to a curve, ask it everything, and draw it where that is wanted."""
    model: Any = METHODS[options.method](options).fit(_fitting_columns(frame, options))
    at, note = fixed_inputs(options, frame) if options.method in WITH_INPUTS else ({}, "")
    if at:
        model = AtInputs(model, at, note)
    own = alike(frame, at)
    observed, runtime = (own[name].to_numpy(float) for name in ("nprocs", "runtime"))
    counts = _counts("--counts", options.counts)
    known = all((own[name] == value).all() for name, value in at.items())
    most = options.most or (None if counts is None else float(counts.max()))
    question = Question(counts, targets, most, options.level, options.free, known)
    report = build_report(options.method, model, observed, runtime, question)
    if at:
        said = f"All {len(frame)} runs are one curve, asked at {_listed(at)}. {report.answer}"
        report = replace(report, answer=said, observations=len(frame))
    if options.plot:
        drawn = save_plot(options.plot, model, observed, runtime, report)
        PlainConsole(stderr=True).print(f"drawn: {drawn}", markup=False, soft_wrap=True)
    return report


def _chosen(curves: dict[str, pd.DataFrame], wanted: str | None) -> dict[str, pd.DataFrame]:
    """Return the curve of a number, all without one."""
    if wanted is None:
        return curves
    if not wanted.isdigit() or not 1 <= int(wanted) <= len(curves):
        named = (f"{k} is {name or 'all runs'}" for k, name in enumerate(list(curves)[:20], 1))
        raise PredictorError(
            f"--curve {wanted}: a number from 1 to {len(curves)} is needed; {', '.join(named)}"
        )
    return dict([list(curves.items())[int(wanted) - 1]])


def _answer_all(options: argparse.Namespace, curves: dict[str, pd.DataFrame]) -> None:
    """Answer for every curve of a file in a table."""
    if options.plot or options.size_for_time is not None or options.focal_levels is not None:
        raise PredictorError(
            f"{options.measurements}: {len(curves)} curves; choose one with --curve 1 to "
            f"{len(curves)} for --plot, --size-for-time or --focal-levels"
        )
    targets = _counts("--target", options.target)
    reports = {}
    with Display(PlainConsole(stderr=True), "predict") as shown:
        for name, frame in shown.each([*curves.items()], "curve"):
            reports[name] = _reported(options, frame, targets)
    if options.json:
        write_json({"curves": {name: report.as_dict() for name, report in reports.items()}})
    else:
        print_curves(reports, _console(), targets is not None)


def _console() -> Console:
    return PlainConsole(highlight=False, width=None if sys.stdout.isatty() else 100)


def _check_belonging(options: argparse.Namespace) -> None:
    """Refuse options that the method does not read, and a wanted time that is none."""
    usual = vars(_parser().parse_args([str(options.measurements)]))
    owned = ((name, methods) for methods, names in READ_BY.items() for name in names)
    for name, methods in owned:
        if getattr(options, name) != usual[name] and options.method not in methods:
            raise PredictorError(
                f"--{name.replace('_', '-')} is read by --method {', '.join(methods)}; "
                f"the method is {options.method}"
            )
    if options.most is not None and not 1.0 <= options.most < float("inf"):
        raise PredictorError(f"--most {options.most:g}: a processor count of at least 1 is needed")
    seconds = options.size_for_time
    if seconds is not None and not 0.0 < seconds < float("inf"):
        raise PredictorError(f"--size-for-time {seconds:g}: positive seconds are needed")


def _fitting_columns(frame: pd.DataFrame, options: argparse.Namespace) -> pd.DataFrame:
    """Return the columns that the method uses."""
    names = ["nprocs", "runtime"]
    if options.method in WITH_INPUTS:
        named = input_names(options)
        wanted = (*named, "computation", "communication", "computation_cp", "communication_cp")
        absent = [name for name in named if name not in frame and name != "size"]
        if absent:
            raise PredictorError(
                f"{options.measurements}: no column {', '.join(absent)} for --inputs; "
                f"the columns are {', '.join(frame.columns)}"
            )
        wanted += tuple(conditions(options)[0] if options.method == "focused" else ())
        names += [name for name in dict.fromkeys(wanted) if name in frame]
    return frame[names]


def _counts(option: str, words: Sequence[str] | None) -> FloatArray | None:
    """Return the counts that words such as ``64``, ``4-8`` or ``16,32`` name; None without any."""
    if words is None:
        return None
    counts: list[float] = []
    for word in (part for text in words for part in text.split(",") if part):
        first, dash, last = word.partition("-")
        ends = [as_number(first), as_number(last if dash else first)]
        if np.isnan(ends).any():
            raise PredictorError(
                f"{option} {word}: a processor count or a range such as 4-8 is needed"
            )
        if not all(np.isfinite(ends)) or ends[0] > ends[1] or ends[1] - ends[0] > 1e5:
            raise PredictorError(
                f"{option} {word}: the range must run upwards and have at most 100,000 counts"
            )
        counts += np.arange(ends[0], ends[1] + 0.5).tolist() if dash else ends[:1]
    if not counts:
        raise PredictorError(f"{option} needs at least one processor count")
    return np.array(counts)


def _allowed(text: str | None) -> list[int] | str | None:
    """Return the counts or the family that ``--allowed`` names."""
    if text is None or not text.replace(",", "").replace(" ", "").isdigit():
        return text
    return [int(part) for part in text.replace(",", " ").split()]


if __name__ == "__main__":
    sys.exit(main())
