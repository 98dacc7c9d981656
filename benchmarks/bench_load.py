"""Processor time of background load, forecasts and rational polynomials, on one core.

python benchmarks/bench_load.py
"""

from collections.abc import Callable
from time import process_time

import numpy as np
import pandas as pd

from predictors.under_load.forecast import NwsMixture
from predictors.under_load.rational import RationalPolynomial
from sim.background.background import BackgroundLoad
from sim.background.load_beliefs import LoadBeliefs, LoadSensors
from workloads.streams import Streams


def microseconds(call: Callable[[], object], repeats: int) -> float:
    """Return the median over five rounds of the processor time of one call."""
    call()
    rounds = []
    for _ in range(5):
        start = process_time()
        for _ in range(repeats):
            call()
        rounds.append((process_time() - start) / repeats)
    return 1e6 * float(np.median(rounds))


def completion(processors: int, width: int, seconds: float) -> float:
    """Return the cost of the end of one job at random moments of ten days."""
    rng = np.random.default_rng(1)
    load = BackgroundLoad(processors, Streams(1))
    own = np.sort(rng.choice(processors, width, replace=False))
    starts = iter(rng.uniform(0, 10 * 86400, 10_000).tolist())
    work = np.inf, 1.0, seconds, seconds / 5
    return microseconds(lambda: load.advance(own, next(starts), *work), 200)


def completions() -> None:
    for case in ((128, 1, 600), (128, 4, 1800), (128, 8, 1800), (1000, 256, 3600)):
        processors, width, seconds = case
        cost = completion(*case)
        print(f"completion, {width} of {processors} processors, {seconds} s: {cost:.0f} us")


def forecasts() -> None:
    values = np.random.default_rng(1).uniform(0.05, 1, (150, 1000))
    mixture = NwsMixture(1000).update(values)
    cost = microseconds(lambda: mixture.update(values[0]), 20)
    print(f"a new value of 1,000 series: {cost / 1000:.2f} ms")
    print(f"forecasts of 1,000 series: {microseconds(mixture.forecast, 200):.0f} us")
    beliefs = LoadBeliefs(LoadSensors(BackgroundLoad(1000, Streams(1)), Streams(1)))
    beliefs.standing(50_000.0)
    look = microseconds(lambda: beliefs.standing(50_000.0), 200)
    print(f"a look at 1,000 nodes between samples: {look:.0f} us")


def fits() -> None:
    rng = np.random.default_rng(1)
    size, cpu, bandwidth = rng.uniform((3000, 0.07, 0.1), (7000, 1, 1), (80, 3)).T
    runs = pd.DataFrame({"nprocs": 8, "size": size, "available_cpu": cpu})
    runs["available_bandwidth"] = bandwidth
    runs["runtime"] = 10 + 600 * (size / 7000) ** 3 / cpu + 100 * (size / 7000) ** 2 / bandwidth
    model = RationalPolynomial(3, 3, 2).fit(runs)
    load = {"size": 9000.0, "available_cpu": 0.5, "available_bandwidth": 0.5}
    print(f"fit, 80 runs: {microseconds(lambda: model.fit(runs), 20) / 1000:.2f} ms")
    print(f"predict: {microseconds(lambda: model.predict(8, **load), 100):.0f} us")
    auto = RationalPolynomial(None, "auto", "auto")
    cost = microseconds(lambda: auto.fit(runs), 2)
    print(f"fit with complexities chosen: {cost / 1000:.0f} ms")


if __name__ == "__main__":
    completions()
    forecasts()
    fits()
