"""The model of moldable jobs by Downey.

References
----------
Downey, "A parallel workload model and its implications for processor
allocation", HPDC 1997: lifetimes and average parallelism are log-uniform,
arrivals Poisson with a day of two halves. The paper's numbers were not at hand:
the ranges and the rates' ratio are our choice, as the defaults of `Downey`
state them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from predictors.downey import relative_time
from workloads.arrivals import arrivals_in_cycle
from workloads.base import FloatArray, IntArray
from workloads.errors import ABOVE_0, WorkloadError, check_count, check_number, is_number
from workloads.models.model import ModelWorkload, job_table
from workloads.streams import Streams


@dataclass(kw_only=True)
class Downey(ModelWorkload):
    """Jobs drawn from Downey's moldable model, scaled to an offered load.

    An application has an average parallelism A, log-uniform on [1, `widest`],
    and a variance sigma, uniform on [0, 2]. A job has an application, by Zipf's
    law, and a lifetime L: its runtime on one processor. It asks for A rounded.
    Other parameters are those of `ModelWorkload`.

    Parameters
    ----------
    lifetime : sequence of two floats
        Shortest and longest L, seconds; log-uniform between them.
    sigma : float
        Largest sigma.
    interarrival : float
        Mean seconds between submits where `load` is None.
    day_ratio : float
        Arrival rate in the first twelve hours of the day over that in the
        others; 1 for a rate that never changes.
    applications : int
        How many applications.
    popularity : float
        Exponent of Zipf's law, at least 0.

    Raises
    ------
    WorkloadError
        If a value is out of range.

    Examples
    --------
    >>> trace = Downey(jobs=100, load=0.8).trace(Streams(seed=1), processors=64)
    >>> sorted(trace.models)
    ['A', 'application', 'sigma']
    """

    lifetime: Sequence[float] = (10.0, 1e6)
    sigma: float = 2.0
    interarrival: float = 600.0
    day_ratio: float = 2.0
    applications: int = 50
    popularity: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("workload.applications", self.applications)
        pair = list(self.lifetime) if isinstance(self.lifetime, list | tuple) else []
        if not (len(pair) == 2 and all(map(is_number, pair)) and 0 < pair[0] <= pair[1]):
            raise WorkloadError(
                f"workload.lifetime={self.lifetime}: must be two positive numbers of seconds, "
                "the shorter first"
            )
        for key in ("interarrival", "day_ratio"):
            check_number(f"workload.{key}", getattr(self, key), "finite and positive", ABOVE_0)
        for key in ("sigma", "popularity"):
            check_number(f"workload.{key}", getattr(self, key), "finite and at least 0", 0.0)

    def draw(self, streams: Streams, processors: int) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
        """Return the jobs, and their `A`, `sigma` and `application`."""
        application, A, sigma = self._applications(processors, streams)
        sizes = np.clip(np.floor(A + 0.5), 1, self.widest_on(processors)).astype(np.int64)
        low, high = np.log(self.lifetime)
        lifetime = np.exp(streams("downey.lifetimes").uniform(low, high, self.jobs))
        runtimes = lifetime * relative_time(sizes, A, sigma)
        submit = self._submits(sizes, runtimes, processors, streams)
        return job_table(submit, sizes, runtimes), {
            "A": A,
            "sigma": sigma,
            "application": application,
        }

    def _applications(
        self, machine: int, streams: Streams
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Draw the applications; return each job's application, A and sigma."""
        rng = streams("downey.applications")
        top = math.log(self.widest_on(machine))
        A = np.exp(rng.uniform(0.0, top, self.applications))
        sigma = rng.uniform(0.0, abs(self.sigma), self.applications)  # of −0.0, too
        shares = np.arange(1.0, self.applications + 1.0) ** -self.popularity
        chosen = streams("downey.popularity").choice(
            self.applications, self.jobs, p=shares / shares.sum()
        )
        return chosen.astype(np.int64), A[chosen], sigma[chosen]

    def _submits(
        self, sizes: IntArray, runtimes: FloatArray, machine: int, streams: Streams
    ) -> FloatArray:
        """Draw submit times at the rate that the load asks for, so that days keep their length."""
        mean = self.interarrival
        if self.load is not None:
            mean = float(np.mean(sizes * runtimes)) / (machine * self.load)
        rng = streams("downey.arrivals")
        points = np.cumsum(rng.exponential(mean, self.jobs)) / (12 * 3600.0)
        by_day = 2.0 * self.day_ratio / (1.0 + self.day_ratio)
        return arrivals_in_cycle(points, np.array([by_day, 2.0 - by_day]))
