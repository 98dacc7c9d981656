"""How long fits take: ``python benchmarks/bench_regression.py``.

The 21 points of the thesis's Table 4.8 and 4.9 in shape: seven counts, three sizes each.
"""

from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from time import perf_counter, process_time
from unittest.mock import patch

import numpy as np
import pandas as pd

from benchmarks.floor import best_of, show
from predictors.base import FloatArray
from predictors.consensus.combination import Consensus
from predictors.in_loop.learned_sized import RegressionPerApplication, SizedHistory
from predictors.regression.barnes import LogLogRegression
from predictors.regression.garren import FocusedRegression
from sim.engine.engine import Setup, simulate
from sim.machine.base import Dedicated
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.backfill.conservative import Conservative
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from sim.simulation.calibration import observations, plan_calibration
from workloads.models.lublin import Lublin
from workloads.shapes.analytic import Downey
from workloads.streams import Streams
from workloads.truth.build import build_truth

ROUNDS = 40
PROCESSORS = 256
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


PARTS = {
    "runs": [(SizedHistory, "_training_runs")],
    "fits": [(SizedHistory, "_complete_fit"), (SizedHistory, "_fitted_focus")],
    "grades": [(LogLogRegression, "grade_on_fit"), (FocusedRegression, "grade_on_fit")],
}
"""What is timed: getting an application's runs, fitting to them, and grading the fits."""


def timed(call: Callable[..., object], spent: dict[str, float], part: str) -> Callable[..., object]:
    """Return the call with its processor time added up in `spent`, and its number."""

    def with_clock(*arguments: object) -> object:
        begin = process_time()
        try:
            return call(*arguments)
        finally:
            spent[part] += process_time() - begin
            spent[f"number of {part}"] += 1

    return with_clock


def share_of_fits(model: LogLogRegression | FocusedRegression, jobs: int = 5000) -> str:
    """Say what part of a simulation's processor time is spent on fits."""
    streams = Streams(1)
    trace = Lublin(types="all", jobs=jobs, load=0.8).trace(streams, PROCESSORS)
    truth = build_truth(trace, Downey(), streams, PROCESSORS)
    known = observations(plan_calibration(truth, 3, PROCESSORS, streams), 0.0)
    policy = Policy(FirstComeFirstServed(), Conservative(), SmallestTurnaround())
    predictor = RegressionPerApplication(model, "timed")

    def run() -> float:
        begin = process_time()
        simulate(Setup(trace, truth, policy, predictor, Dedicated(PROCESSORS), known=known))
        return process_time() - begin

    run()  # compiles
    total = min(run() for _ in range(3))
    spent: dict[str, float] = defaultdict(float)
    with ExitStack() as stack:
        for part, methods in PARTS.items():
            for owner, name in methods:
                call = timed(getattr(owner, name), spent, part)
                stack.enter_context(patch.object(owner, name, call))
        run()
    shares = ", ".join(f"{part} {spent[part]:.3f} s ({spent[part] / total:.1%})" for part in PARTS)
    return f"{spent['number of fits']:.0f} fits in {total:.2f} s: {shares}"


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
    for name, model in (("regression", LogLogRegression()), ("focused", FocusedRegression())):
        print(f"5,000 jobs, predictor={name}: {share_of_fits(model)}")


if __name__ == "__main__":
    main()
