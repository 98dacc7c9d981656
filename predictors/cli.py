"""``python -m predictors``: from a file of measurements to predictions."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import predictors
from predictors.base import FloatArray, Predictor
from predictors.errors import PredictorError
from predictors.measurements import read_measurements
from predictors.report import build_report, default_targets

METHODS: dict[str, Callable[[argparse.Namespace], Predictor]] = {
    "adept": lambda arguments: predictors.Adept(allowed=_allowed(arguments.allowed)),
    "amdahl": lambda arguments: predictors.Amdahl(),
    "usl": lambda arguments: predictors.UniversalScalability(),
    "levenberg": lambda arguments: predictors.LevenbergMarquardt(),
}
"""Name on the command line and how its model is made from the arguments."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer a command line; return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        _answer(options)
    except (ValueError, OSError) as error:
        sys.stderr.write(f"python -m predictors: error: {error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m predictors",
        description="Predict runtime and speedup at other processor counts from a few measured "
        "runs, and say how far to trust it.",
    )
    parser.add_argument(
        "measurements",
        type=Path,
        metavar="MEASUREMENTS.csv",
        help="a row a run: a column of processor counts (nprocs, procs, cores, nodes, threads) "
        "and one of seconds (runtime, time, seconds, runtime_s)",
    )
    parser.add_argument(
        "--target",
        nargs="+",
        metavar="N",
        help="processor counts to predict, apart or as ranges such as 4-8",
    )
    parser.add_argument("--method", choices=sorted(METHODS), default="adept")
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="COLUMN=VALUE",
        help="use only the rows with this value; may be given several times",
    )
    parser.add_argument(
        "--allowed",
        metavar="COUNTS",
        help="counts the application runs on: 4,8,16 or a family such as 'powers of 2'",
    )
    parser.add_argument(
        "--level", type=float, default=0.8, help="share of runs a range should hold (0.8)"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw the curve here")
    parser.add_argument("--json", action="store_true", help="write the answer as JSON")
    return parser


def _answer(options: argparse.Namespace) -> None:
    frame = read_measurements(options.measurements, options.where)
    observed, runtime = (frame[name].to_numpy(float) for name in ("nprocs", "runtime"))
    model = METHODS[options.method](options)
    model.fit(_fitting_columns(frame))
    targets = _targets(options.target) if options.target else default_targets(observed)
    report = build_report(options.method, model, observed, runtime, targets, options.level)
    if options.plot:
        from predictors.render import save_plot

        save_plot(options.plot, model, observed, runtime, report)
    if options.json:
        json.dump(report.as_dict(), sys.stdout, indent=2, allow_nan=False)
        sys.stdout.write("\n")
        return
    from rich.console import Console

    from predictors.render import print_report

    print_report(report, Console(highlight=False, width=None if sys.stdout.isatty() else 100))


def _fitting_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that the methods of one curve use."""
    return frame[["nprocs", "runtime"]]


def _targets(words: Sequence[str]) -> FloatArray:
    """Return the counts that words such as ``64``, ``4-8`` or ``16,32`` name."""
    counts: list[float] = []
    for word in (part for text in words for part in text.split(",") if part):
        first, dash, last = word.partition("-")
        try:
            ends = [float(first), float(last) if dash else float(first)]
        except ValueError:
            raise PredictorError(
                f"--target {word}: a processor count or a range such as 4-8 is needed"
            ) from None
        if not all(np.isfinite(ends)) or ends[0] > ends[1] or ends[1] - ends[0] > 1e5:
            raise PredictorError(
                f"--target {word}: the range must run upwards, at most 100,000 long"
            )
        counts += np.arange(ends[0], ends[1] + 0.5).tolist() if dash else ends[:1]
    if not counts:
        raise PredictorError("--target needs at least one processor count")
    return np.array(counts)


def _allowed(text: str | None) -> list[int] | str | None:
    """Return the counts or the family that ``--allowed`` names."""
    if text is None or not text.replace(",", "").replace(" ", "").isdigit():
        return text
    return [int(part) for part in text.replace(",", " ").split()]
