"""How long fits take: ``python benchmarks/bench_regression.py``.

The 21 points of the thesis's Table 4.8 and 4.9 in shape: seven counts, three sizes each.
"""

from collections.abc import Callable
from time import perf_counter, process_time

import numpy as np
import pandas as pd

from predictors.consensus import Consensus
from predictors.focused import FocusedRegression
from predictors.learned_sized import RegressionPerApplication
from predictors.regression import LogLogRegression
from sim.calibration import observations, plan_calibration
from sim.engine import simulate
from sim.machine import Dedicated
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.backfill.conservative import Conservative
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from workloads.lublin import Lublin
from workloads.shapes.downey import Downey
from workloads.streams import Streams
from workloads.truth import build_truth

ROUNDS = 40
PROCESSORS = 256


def microseconds(call: Callable[[], object], number: int) -> float:
    """Return the best mean time of a call over many short rounds."""
    best = np.inf
    for _ in range(ROUNDS):
        start = perf_counter()
        for _ in range(number):
            call()
        best = min(best, (perf_counter() - start) / number)
    return 1e6 * best


class Timed:
    """Fits of the class beside this one, timed."""

    seconds = 0.0
    fits = 0

    def fit_runs(self, runs):
        """Fit, and add to the time spent."""
        begin = process_time()
        try:
            return super().fit_runs(runs)
        finally:
            Timed.seconds += process_time() - begin
            Timed.fits += 1


class TimedRegression(Timed, LogLogRegression):
    """Log-log regression whose fits are timed."""


class TimedFocus(Timed, FocusedRegression):
    """Focused regression whose fits are timed."""


def share_of_fits(model: LogLogRegression | FocusedRegression, jobs: int = 5000) -> str:
    """Say what part of a simulation's processor time is spent on fits."""
    streams = Streams(1)
    trace = Lublin(jobs=jobs, load=0.8).trace(streams, PROCESSORS)
    truth = build_truth(trace, Downey(), streams, PROCESSORS)
    known = observations(plan_calibration(truth, 3, PROCESSORS, streams), 0.0)
    policy = Policy(FirstComeFirstServed(), Conservative(), SmallestTurnaround())
    predictor = RegressionPerApplication(model, "timed")
    for _ in range(2):  # the first run compiles
        Timed.seconds, Timed.fits = 0.0, 0
        begin = process_time()
        simulate(trace, truth, policy, predictor, Dedicated(PROCESSORS), known=known)
        total = process_time() - begin
    share = Timed.seconds / total
    return f"{Timed.fits} fits, {Timed.seconds:.2f} of {total:.2f} s ({share:.0%})"


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
    for name, model in (("regression", TimedRegression()), ("focused", TimedFocus())):
        print(f"5,000 jobs, predictor={name}: {share_of_fits(model)}")


if __name__ == "__main__":
    main()
