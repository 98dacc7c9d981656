"""Cost of an ADEPT fit, and the paper's Table 2 against general optimisers.

    python -m benchmarks.bench_adept [--quick] [--output FILE.json]

Times are processor time, the best of several rounds, in milliseconds, so that
other work on the machine counts little. Run with OMP_NUM_THREADS=1.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from scipy.optimize import brute, differential_evolution

from predictors import Adept, LevenbergMarquardt
from predictors.base import FloatArray
from predictors.downey import normalised_time

LIMITS = {
    "fit and one prediction": 1.5,
    "fit and 64 targets": 15.0,
    "the paper's grid, one prediction": 100.0,
}
"""Milliseconds that the operation may take on one core."""
BOUNDS = ((1.0, 3000.0), (0.0, 3000.0))
"""Ranges of A and sigma of the paper's comparison."""
TABLE_2 = {"low variance": ((400.0, 1000.0), (0.0, 1.0)), "high": ((400.0, 2000.0), (1.1, 12.0))}
"""Ranges from which the paper's two sets of experiments draw A and sigma."""


def best_of(operation: Callable[[], object], rounds: int, repeats: int) -> float:
    """Return the best mean time over the rounds, milliseconds."""
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        for _ in range(repeats):
            operation()
        times.append((time.process_time() - begin) / repeats)
    return 1e3 * min(times)


def operations(quick: bool) -> dict[str, float]:
    """Time what a user and a simulation do."""
    runs = pd.DataFrame({"nprocs": [4.0, 16, 32, 64], "runtime": [30.0, 9.0, 5.2, 3.9]})
    n, t = runs["nprocs"].to_numpy(), runs["runtime"].to_numpy()
    many = np.arange(1.0, 65) * 4
    rounds = 3 if quick else 15
    return {
        "fit": best_of(lambda: Adept().fit(runs), rounds, 20),
        "fit and one prediction": best_of(lambda: Adept().fit(runs).predict(128), rounds, 20),
        "fit from arrays and one prediction": best_of(
            lambda: Adept().fit_arrays(n, t).predict(128), rounds, 20
        ),
        "fit and 64 targets": best_of(lambda: Adept().fit(runs).predict(many), rounds, 5),
        "the paper's grid, one prediction": best_of(
            lambda: Adept(search="grid").fit(runs).predict(128), rounds, 1
        ),
    }


def wssre(parameters: FloatArray, n: FloatArray, t: FloatArray) -> float:
    """Return the mean squared relative error of a normalised instance."""
    return float(np.mean((normalised_time(n, parameters[0], parameters[1]) / t - 1) ** 2))


def fitters(steps: int) -> dict[str, Callable[[FloatArray, FloatArray], tuple[float, float]]]:
    """Return ways from observations to A and sigma, all for normalised times."""

    def exhaustive(n: FloatArray, t: FloatArray) -> tuple[float, float]:
        A, sigma = brute(wssre, BOUNDS, args=(n, t), Ns=steps, finish=None)
        return float(A), float(sigma)

    def genetic(n: FloatArray, t: FloatArray) -> tuple[float, float]:
        found = differential_evolution(wssre, BOUNDS, args=(n, t), seed=1).x
        return float(found[0]), float(found[1])

    def adept(n: FloatArray, t: FloatArray) -> tuple[float, float]:
        model = Adept(scale="unit").fit_arrays(n, t)
        return model.A_, model.sigma_

    def grid(n: FloatArray, t: FloatArray) -> tuple[float, float]:
        model = Adept(scale="unit", search="grid").fit_arrays(n, t)
        return model.A_, model.sigma_

    def descent(n: FloatArray, t: FloatArray) -> tuple[float, float]:
        model = LevenbergMarquardt(start=(50.0, 0.5), scale="unit").fit_arrays(n, t)
        return model.A_, model.sigma_

    return {
        "Levenberg-Marquardt": descent,
        f"exhaustive ({steps} x {steps})": exhaustive,
        "differential evolution": genetic,
        "ADEPT, the paper's grid": grid,
        "ADEPT, exact search": adept,
    }


def table_2(quick: bool, seed: int = 1) -> list[dict[str, object]]:
    """Repeat the paper's comparison: ten exact observations, four of them given."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    for label, (A_range, sigma_range) in TABLE_2.items():
        experiments = [(rng.uniform(*A_range), rng.uniform(*sigma_range)) for _ in range(4)]
        for name, fit in fitters(60 if quick else 300).items():
            errors, seconds = [], []
            for A, sigma in experiments[: 1 if quick else 4]:
                n = np.geomspace(8, 2.2 * A * max(sigma, 1.0), 10)
                t = normalised_time(n, A, sigma)
                begin = time.process_time()
                found = fit(n[::3], t[::3])
                seconds.append(time.process_time() - begin)
                errors.append(float(np.abs(normalised_time(n, *found) / t - 1).max()))
            rows.append(
                {
                    "set": label,
                    "method": name,
                    "milliseconds": 1e3 * float(np.mean(seconds)),
                    "largest_error": max(errors),
                }
            )
    return rows


def show(timed: dict[str, float], compared: list[dict[str, object]], console: Console) -> None:
    """Print both tables."""
    first = Table("operation", "ms", "at most", title="cost on one core")
    for name, milliseconds in timed.items():
        first.add_row(name, f"{milliseconds:.2f}", f"{LIMITS[name]:g}" if name in LIMITS else "")
    second = Table("set", "method", "ms", "largest error of 10 points", title="the paper's Table 2")
    for row in compared:
        second.add_row(
            str(row["set"]),
            str(row["method"]),
            f"{row['milliseconds']:.1f}",
            f"{row['largest_error']:.2%}",
        )
    console.print(first, second)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and coarser rivals")
    parser.add_argument("--output", type=Path, default=None, help="write figures here as JSON")
    options = parser.parse_args()
    timed, compared = operations(options.quick), table_2(options.quick)
    show(timed, compared, Console(width=100))
    if options.output:
        figures = {"milliseconds": timed, "limits": LIMITS, "table_2": compared}
        options.output.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
