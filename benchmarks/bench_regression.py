"""How long fits take: ``python benchmarks/bench_regression.py``.

The 21 points of the thesis's Table 4.8 and 4.9 in shape: seven counts, three sizes each.
"""

from collections.abc import Callable
from time import perf_counter

import numpy as np
import pandas as pd

from benchmarks.floor import best_of, show
from predictors.base import FloatArray
from predictors.consensus.combination import Consensus
from predictors.regression.barnes import LogLogRegression
from predictors.regression.garren import FocusedRegression

ROUNDS = 40
LEAST_SQUARES = 35.0
"""How many least squares of its size a consensus may take."""


def microseconds(call: Callable[[], object], number: int) -> float:
    """Return the best mean time of a call over many short rounds."""
    best = np.inf
    for _ in range(ROUNDS):
        start = perf_counter()
        for _ in range(number):
            call()
        best = min(best, (perf_counter() - start) / number)
    return 1e6 * best


def over_least_squares(model: Consensus, curve: tuple[FloatArray, FloatArray]) -> dict[str, object]:
    """Return how many least squares of a quadratic a fit and one prediction take."""
    x = np.log2(curve[0])
    design, response = np.column_stack([np.ones(len(x)), x, x**2]), np.log2(curve[1])
    times = best_of(
        20,
        lambda: [np.linalg.lstsq(design, response, rcond=None) for _ in range(100)],
        lambda: [model.fit_arrays(*curve).predict(16.0) for _ in range(100)],
    )
    ratio = round(times[1] / times[0], 1)
    return {"rule": "consensus, fit and prediction", "ratio": ratio, "limit": LEAST_SQUARES}


def main() -> None:
    rng = np.random.default_rng(1)
    nprocs = np.repeat([16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0], 3)
    size = rng.uniform(300.0, 1200.0, 21)
    runtime = 1e-4 * size**2.9 / nprocs**0.95 * np.exp(rng.normal(0.0, 0.05, 21))
    table = pd.DataFrame({"nprocs": nprocs, "size": size, "runtime": runtime})
    linear, auto, focused = LogLogRegression(form="linear"), LogLogRegression(), FocusedRegression()
    focal = FocusedRegression(focal_time=float(np.median(runtime)), tolerance=1.0)
    curve = np.array([1.0, 2.0, 4.0, 8.0]), np.array([100.0, 54.0, 30.0, 19.0])
    consensus, counts = Consensus(), np.unique(np.geomspace(1, 256, 64).round())
    fitted = Consensus().fit_arrays(*curve)
    calls: list[tuple[str, Callable[[], object], int]] = [
        ("linear fit, arrays", lambda: linear.fit_arrays(nprocs, runtime, [size]), 50),
        ("automatic fit, arrays", lambda: auto.fit_arrays(nprocs, runtime, [size]), 50),
        ("automatic fit, table", lambda: auto.fit(table), 20),
        ("complete focused fit, arrays", lambda: focused.fit_arrays(nprocs, runtime, [size]), 50),
        ("focal fit, arrays", lambda: focal.fit_arrays(nprocs, runtime, [size]), 50),
        ("prediction at 64 counts", lambda: auto.predict(counts, size=500.0), 50),
        ("consensus fit, 4 counts", lambda: consensus.fit_arrays(*curve), 10),
        (
            "consensus fit and prediction at 64 counts",
            lambda: consensus.fit_arrays(*curve).predict(counts),
            3,
        ),
        ("consensus prediction at 64 counts, again", lambda: fitted.predict(counts), 5),
    ]
    auto.fit_arrays(nprocs, runtime, [size])
    for name, call, number in calls:
        call()
        print(f"{name:45s} {microseconds(call, number):9.1f} µs")
    show("the consensus over a least squares of its size", [over_least_squares(consensus, curve)])


if __name__ == "__main__":
    main()
