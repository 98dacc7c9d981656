"""How accurate predictors are on measured scaling curves, of which each sees a few counts.

    python -m scripts.accuracy FOLDER [--counts 3 4] [--methods ADEPT consensus ...]

FOLDER holds a CSV for each source, with columns problem, nprocs, runtime_s. Windows of so many
consecutive counts are the input; targets lie between them (inside), 1.5 to 2.1 times (near)
and 3 to 4.2 times (far) beyond. Every source weighs the same. Constants of ADEPT and the
consensus come from such curves, so their errors on these are not those on others.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

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

DISTANCES = ("inside", "near", "far")


class GaussianProcess:
    """Log runtime over log count, with a linear trend, as a reference."""

    def fit_arrays(self, nprocs: FloatArray, runtime: FloatArray) -> "GaussianProcess":
        """Find length, amplitude and noise by marginal likelihood with weak log-normal priors."""
        self._x, self._y = np.log2(nprocs), np.log(runtime)
        start = np.log([2.0, 0.3, 0.03])

        def negative(parameters: FloatArray) -> float:
            factor = np.linalg.cholesky(self._covariance(parameters))
            scaled = np.linalg.solve(factor, self._y - self._y.mean())
            prior = 0.5 * float(np.sum((parameters - start) ** 2))
            return float(0.5 * scaled @ scaled + np.log(np.diag(factor)).sum() + prior)

        options = {"maxiter": 200}
        self._best = minimize(negative, start, method="Nelder-Mead", options=options).x
        return self

    def predict(self, nprocs: FloatArray) -> FloatArray:
        """Return the seconds at these counts."""
        across = self._kernel(np.log2(nprocs), self._best)
        apart = np.linalg.solve(self._covariance(self._best), self._y - self._y.mean())
        return np.exp(np.clip(self._y.mean() + across @ apart, -500.0, 500.0))

    def _covariance(self, parameters: FloatArray) -> FloatArray:
        noise = np.exp(2 * parameters[2]) + 1e-9
        return self._kernel(self._x, parameters) + noise * np.eye(len(self._x))

    def _kernel(self, at: FloatArray, parameters: FloatArray) -> FloatArray:
        distance = (at[:, None] - self._x) / np.exp(parameters[0])
        bend = np.exp(2 * parameters[1] - 0.5 * distance**2)
        return np.asarray(4.0 + at[:, None] * self._x + bend, float)


METHODS: dict[str, Callable[[], object]] = {
    "ADEPT": Adept,
    "consensus": Consensus,
    "Amdahl": Amdahl,
    "universal scalability": UniversalScalability,
    "log-log linear": lambda: LogLogRegression((), "linear", "total"),
    "log-log quadratic": lambda: LogLogRegression((), "quadratic", "total"),
    "Gaussian process": GaussianProcess,
}


def answered(name: str, asked: list[Case]) -> tuple[FloatArray, FloatArray]:
    """Return relative errors, and whether 80 % ranges hold the truth; NaN without ranges."""
    errors, held = np.empty(len(asked)), np.full(len(asked), np.nan)
    for place, case in enumerate(asked):
        model = METHODS[name]().fit_arrays(case.nprocs, case.runtime)  # type: ignore[attr-defined]
        target = np.array([case.target], float)
        errors[place] = abs(model.predict(target)[0] / case.actual - 1.0)
        if hasattr(model, "predict_range"):
            low, high = model.predict_range(target)
            held[place] = low[0] <= case.actual <= high[0]
    return errors, held


def table(asked: list[Case], names: list[str]) -> str:
    """Return a row a method and distance: median, 90th percentile, and coverage."""
    lines = [
        "| method | targets | cases | median error (95 %) | 90th percentile | in 80 % range |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for name in names:
        errors, held = answered(name, asked)
        for distance in DISTANCES:
            rows = np.flatnonzero([case.distance == distance for case in asked])
            if rows.size:
                lines.append(f"| {name} | {distance} | {_cells(asked, errors, held, rows)} |")
    return "\n".join(lines)


def _cells(asked: list[Case], errors: FloatArray, held: FloatArray, rows: np.ndarray) -> str:
    sources = np.array([case.source for case in asked])

    def level(drawn: np.ndarray, share: float = 0.5) -> float:
        weights = source_weights(sources[drawn].tolist())
        return 100.0 * weighted_quantile(errors[drawn], weights, share)

    groups = [f"{asked[row].source}: {asked[row].problem}" for row in rows]
    low, high = bootstrap_interval(lambda drawn: level(rows[drawn]), groups)
    covered = 100.0 * float(source_weights(sources[rows].tolist()) @ held[rows])
    shown = "" if np.isnan(covered) else f"{covered:.0f} %"
    median = f"{level(rows):.1f} % [{low:.1f}, {high:.1f}]"
    return f"{rows.size} | {median} | {level(rows, 0.9):.0f} % | {shown}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--counts", type=int, nargs="+", default=[3, 4])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    given = parser.parse_args()
    curves = read_curves(given.folder)
    print(table([case for k in given.counts for case in cases(curves, k)], given.methods))


if __name__ == "__main__":
    main()
