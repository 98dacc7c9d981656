"""Command-line answers about sizes: the size for a wanted time, and the focal procedure."""

import argparse
import sys
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from predictors.base import FloatArray, Predictor, Remark
from predictors.cli.columns import as_number
from predictors.cli.output import write_json, write_table
from predictors.errors import PredictorError
from predictors.regression import focal_training as focal
from predictors.regression.barnes import LogLogPredictor


class AtInputs:
    """A fitted model asked at fixed inputs, so that it answers for counts alone.

    Parameters
    ----------
    model : Predictor
    inputs : dict of str to float
        Values of every input that the model has.
    note : str
        What to say of how the values were chosen; empty for nothing.
    """

    def __init__(self, model: Predictor, inputs: dict[str, Any], note: str = "") -> None:
        self.model, self.inputs, self.note = model, inputs, note

    def __getattr__(self, name: str) -> Any:
        """Return the model's own attribute, so that its parameters are reported."""
        return getattr(self.model, name)

    def fit(self, observations: pd.DataFrame) -> Self:
        """Fit the model."""
        self.model.fit(observations)
        return self

    def predict(self, nprocs: ArrayLike, **inputs: Any) -> FloatArray:
        """Return seconds at the fixed inputs."""
        return self.model.predict(nprocs, **self.inputs, **inputs)

    def predict_range(
        self, nprocs: ArrayLike, level: float = 0.8, **inputs: Any
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends of ranges at the fixed inputs."""
        return self.model.predict_range(nprocs, level, **self.inputs, **inputs)

    def reliability(self, nprocs: ArrayLike, **inputs: Any) -> list[Remark]:
        """Return the model's remarks, with the note on the inputs first."""
        first = [Remark("note", "at_inputs", self.note)] if self.note else []
        return first + self.model.reliability(nprocs, **self.inputs, **inputs)


def input_names(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the names that ``--inputs`` gives; size by default."""
    if not options.inputs:
        return ("size",)
    return tuple(name.strip().lower() for name in options.inputs.split(",") if name.strip())


def fixed_inputs(options: argparse.Namespace, frame: pd.DataFrame) -> tuple[dict[str, float], str]:
    """Return the inputs to predict at: those of ``--at``, else each one's largest value.

    Raises
    ------
    PredictorError
        If ``--at`` is not NAME=VALUE of an input in the file.
    """
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
    listed = ", ".join(f"{name} = {value:g}" for name, value in largest.items())
    note = f"predicted at the largest {listed}; --at chooses another" if largest else ""
    return {**largest, **chosen}, note


def alike(frame: pd.DataFrame, inputs: dict[str, float]) -> pd.DataFrame:
    """Return the runs with the values of inputs, of each of which there are any."""
    for name, value in inputs.items():
        frame = frame[frame[name] == value] if (frame[name] == value).any() else frame
    return frame


def conditions(options: argparse.Namespace) -> tuple[dict[str, float], dict[str, float]]:
    """Return the values that ``--condition`` names, and the bands around them, by column.

    Raises
    ------
    PredictorError
        If one is not NAME=VALUE or NAME=VALUE~BAND.
    """
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

    Raises
    ------
    PredictorError
        If the method has no size to solve for.
    UndeterminedError
        If the runs do not support one.
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
        listed = ", ".join(f"{name} = {value:g}" for name, value in others.items())
        remarks.insert(0, Remark("note", "at_inputs", f"solved at {listed}; --at chooses another"))
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

    Raises
    ------
    PredictorError
        If the file has no sizes, or counts do not fit together.
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
