"""How accurate predictors are on measured scaling curves, of which each sees a few counts.

    python -m benchmarks.accuracy FOLDER [--counts 3 4] [--methods ADEPT consensus ...]
    python -m benchmarks.accuracy FOLDER --counts 3 4 5 --extrap PYTHON

FOLDER holds a CSV for each source, with columns problem, nprocs, runtime_s. Windows of so many
consecutive counts are the input; targets lie between them (inside), 1.5 to 2.1 times (near)
and 3 to 4.2 times (far) beyond. Every source weighs the same. Constants of ADEPT and the
consensus come from such curves, so their errors on these are not those on others. PYTHON is the
interpreter of an environment that has Extra-P. ``python -m benchmarks.results accuracy`` writes
the page of it.
"""

import argparse
import json
import subprocess
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from benchmarks import extrap_answers
from benchmarks.measured_curves import (
    Case,
    bootstrap_interval,
    cases,
    read_curves,
    source_weights,
    weighted_quantile,
)
from predictors import Adept, Amdahl, Consensus, LogLogRegression, UniversalScalability
from predictors.base import FloatArray
from sim.results.rows import BEYOND, MOST_ERROR

DISTANCES = ("inside", "near", "far")
EXTRAP = {"Extra-P 4.2.5, negative exponents allowed": True, "Extra-P 4.2.5, as it comes": False}


class GaussianProcess:
    """Log runtime over log count by scikit-learn: a line, a smooth bend and noise."""

    def fit_arrays(self, nprocs: FloatArray, runtime: FloatArray) -> "GaussianProcess":
        """Find the kernel by marginal likelihood."""
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

        bend = ConstantKernel(0.1, (1e-3, 1.0)) * RBF(2.0, (0.5, 8.0))
        noise = WhiteKernel(1e-3, (1e-6, 1e-1))
        self._middle = float(np.log(runtime).mean())
        model = GaussianProcessRegressor(DotProduct(1.0, (1e-2, 1e2)) + bend + noise)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few counts end at a bound of the kernel
            self._model = model.fit(np.log2(nprocs)[:, None], np.log(runtime) - self._middle)
        return self

    def _ends(self, nprocs: FloatArray, deviations: float) -> FloatArray:
        at = np.log2(np.atleast_1d(nprocs))[:, None]
        mean, spread = self._model.predict(at, return_std=True)
        return np.exp(np.clip(self._middle + mean + deviations * spread, -500.0, 500.0))

    def predict(self, nprocs: FloatArray) -> FloatArray:
        """Return the seconds at these counts."""
        return self._ends(nprocs, 0.0)

    def predict_range(
        self, nprocs: FloatArray, level: float = 0.8
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends of a range around each."""
        wide = float(ndtri(0.5 + 0.5 * level))
        return self._ends(nprocs, -wide), self._ends(nprocs, wide)


METHODS: dict[str, Callable[[], object]] = {
    "consensus": Consensus,
    "ADEPT": Adept,
    "Amdahl": Amdahl,
    "universal scalability": UniversalScalability,
    "log-log linear": lambda: LogLogRegression((), "linear", "total"),
    "log-log quadratic": lambda: LogLogRegression((), "quadratic", "total"),
    "Gaussian process": GaussianProcess,
}


class Row(NamedTuple):
    """What a method does at a distance: errors and shares in percent, time a question."""

    method: str
    counts: str
    distance: str
    cases: int
    median: float
    interval: tuple[float, float]
    tail: float
    held: float | None
    milliseconds: float


def answered(name: str, asked: list[Case]) -> tuple[FloatArray, FloatArray, float]:
    """Return relative errors, whether 80 % ranges hold the truth (NaN without), and seconds."""
    errors, held, spent = np.empty(len(asked)), np.full(len(asked), np.nan), []
    for place, case in enumerate(asked):
        begin, target = time.perf_counter(), np.array([case.target], float)
        model = METHODS[name]().fit_arrays(case.nprocs, case.runtime)  # type: ignore[attr-defined]
        errors[place] = abs(model.predict(target)[0] / case.actual - 1.0)
        spent.append(time.perf_counter() - begin)
        if hasattr(model, "predict_range"):
            low, high = model.predict_range(target)
            held[place] = low[0] <= case.actual <= high[0]
    return errors, held, float(np.median(spent))


def answered_by_extrap(
    python: str, negative: bool, asked: list[Case]
) -> tuple[FloatArray, FloatArray, float]:
    """Ask Extra-P in its own environment; it gives no ranges."""
    questions = [[case.nprocs.tolist(), case.runtime.tolist(), case.target] for case in asked]
    told = subprocess.run(
        [python, extrap_answers.__file__, str(int(negative))],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = json.loads(told.stdout)
    actual = np.array([case.actual for case in asked])
    errors = np.abs(np.array(answers["seconds"]) / actual - 1.0)
    return errors, np.full(len(asked), np.nan), answers["spent"]


def measured(
    name: str, counts: str, asked: list[Case], found: tuple[FloatArray, FloatArray, float]
) -> list[Row]:
    """Return a row a distance."""
    sources = np.array([case.source for case in asked])
    errors, held, spent = found

    def level(drawn: np.ndarray, share: float = 0.5) -> float:
        weights = source_weights(sources[drawn].tolist())
        return 100.0 * weighted_quantile(errors[drawn], weights, share)

    rows = []
    for distance in DISTANCES:
        here = np.flatnonzero([case.distance == distance for case in asked])
        if not here.size:
            continue
        groups = [f"{asked[place].source}: {asked[place].problem}" for place in here]
        interval = bootstrap_interval(lambda drawn, here=here: level(here[drawn]), groups)  # type: ignore[misc]
        covered = 100.0 * float(source_weights(sources[here].tolist()) @ held[here])
        figures = (round(level(here), 1), tuple(round(end, 1) for end in interval))
        tail, share = round(level(here, 0.9)), None if np.isnan(covered) else round(covered)
        rows.append(
            Row(name, counts, distance, here.size, *figures, tail, share, round(1e3 * spent, 2))  # type: ignore[arg-type]
        )
    return rows


def table(rows: list[Row]) -> str:
    """Return a line a row."""
    lines = [
        "| method | counts | targets | cases | median error (95 %) | 90th percentile | "
        "in 80 % range | ms |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        low, high = row.interval
        lines.append(
            f"| {row.method} | {row.counts} | {row.distance} | {row.cases} "
            f"| {row.median:.1f} % [{low:.1f}, {high:.1f}] "
            f"| {BEYOND if row.tail > 100 * MOST_ERROR else f'{row.tail} %'} "
            f"| {'' if row.held is None else f'{row.held} %'} | {row.milliseconds:.2g} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--counts", type=int, nargs="+", default=[3, 4])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--extrap", metavar="PYTHON", help="ask this environment's Extra-P too")
    given = parser.parse_args()
    curves, rows = read_curves(given.folder), []
    for group in [given.counts[:2], *([k] for k in given.counts[2:])]:
        asked = [case for k in group for case in cases(curves, k)]
        named = " and ".join(map(str, group))
        for name in given.methods:
            rows += measured(name, named, asked, answered(name, asked))
        for name, negative in EXTRAP.items() if given.extrap else ():
            rows += measured(name, named, asked, answered_by_extrap(given.extrap, negative, asked))
    print(table(rows))


if __name__ == "__main__":
    main()
