"""Requested times: as recorded, exact, or modelled."""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from workloads.base import FloatArray
from workloads.errors import WorkloadError
from workloads.limits import ABOVE_0, check_number
from workloads.models.tsafrir import HEAD_SHARE, tsafrir_estimates

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Estimates:
    """How users estimate their jobs' runtimes.

    Parameters
    ----------
    method : str
        ``recorded`` keeps what the log says; ``exact`` is the runtime;
        ``tsafrir`` the model of Tsafrir, Etsion & Feitelson (2005), with a few
        popular round values; ``f_model`` runtime x U(1, 1 + 2 (factor - 1));
        ``badness`` runtime / U(0, 1); ``loose`` runtime x (1 + exponential of
        mean 2) for 85 % of the jobs, exact for the others, rounded up to
        whole minutes.
    factor : float
        Mean of estimate / runtime under ``f_model``, at least 1.
    limit : float or None
        Longest estimate that the site allows, seconds; None sets none.
    time_limit : float or None
        ``tsafrir``: the site's limit, seconds, which longer jobs estimate too; None is
        the round number of hours that covers the longest runtime.
    at_limit : float or None
        ``tsafrir``: share of the jobs that estimate that limit, below 0.89; None is 0.217.

    Raises
    ------
    WorkloadError
        If a parameter is out of range.

    Examples
    --------
    >>> estimates = Estimates("exact")
    >>> estimates.draw(np.array([10.0, 20.0]), np.random.default_rng(1)).tolist()
    [10.0, 20.0]
    """

    method: str = "tsafrir"
    factor: float = 5.0
    limit: float | None = None
    time_limit: float | None = 64800.0
    at_limit: float | None = 0.1

    def __post_init__(self) -> None:
        known = ["recorded", *METHODS]
        if self.method not in known:
            raise WorkloadError(f"workload.estimates={self.method}: allowed are {', '.join(known)}")
        check_number("workload.estimate_factor", self.factor, "at least 1", 1.0)
        for key, limit in (("estimate_limit", self.limit), ("time_limit", self.time_limit)):
            check_number(f"workload.{key}", limit, "positive seconds, or null", ABOVE_0)
        wanted, most = f"above 0 and below {HEAD_SHARE}, or null", math.nextafter(HEAD_SHARE, 0.0)
        check_number("workload.at_limit", self.at_limit, wanted, ABOVE_0, most)

    def draw(self, runtimes: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return an estimate for each runtime, both in seconds, shape (n,).

        Estimates are no shorter than the runtime unless `limit` is.

        Raises
        ------
        WorkloadError
            If `method` is ``recorded``: there is nothing to draw.
        """
        estimates = METHODS[self.method](self, np.asarray(runtimes, float), rng)
        if self.limit is None:
            return estimates
        capped = int((runtimes > self.limit).sum())
        if capped:
            _log.warning(
                "%s of %s jobs run longer than workload.estimate_limit=%g s; their requested "
                "time is that limit",
                f"{capped:,}",
                f"{len(runtimes):,}",
                self.limit,
            )
        return np.minimum(estimates, self.limit)


def _exact(model: Estimates, runtimes: FloatArray, rng: np.random.Generator) -> FloatArray:
    return runtimes.copy()


def _tsafrir(model: Estimates, runtimes: FloatArray, rng: np.random.Generator) -> FloatArray:
    limits = [limit for limit in (model.limit, model.time_limit) if limit is not None]
    return tsafrir_estimates(runtimes, rng, min(limits, default=None), model.at_limit)


def _f_model(model: Estimates, runtimes: FloatArray, rng: np.random.Generator) -> FloatArray:
    return runtimes * rng.uniform(1.0, 1.0 + 2.0 * (model.factor - 1.0), len(runtimes))


def _badness(model: Estimates, runtimes: FloatArray, rng: np.random.Generator) -> FloatArray:
    return runtimes / (1.0 - rng.random(len(runtimes)))


def _loose(model: Estimates, runtimes: FloatArray, rng: np.random.Generator) -> FloatArray:
    factors = 1.0 + rng.exponential(2.0, len(runtimes))
    exact = rng.random(len(runtimes)) < 0.15
    return np.where(exact, runtimes, np.ceil(runtimes * factors / 60.0) * 60.0)


METHODS: Mapping[str, Callable[[Estimates, FloatArray, np.random.Generator], FloatArray]] = {
    "exact": _exact,
    "tsafrir": _tsafrir,
    "f_model": _f_model,
    "badness": _badness,
    "loose": _loose,
}
"""What ``workload.estimates`` may say."""


def estimates_of(workload: Any) -> Estimates:
    """Return how users estimate by the keys of a workload."""
    keys = ("estimates", "estimate_factor", "estimate_limit", "time_limit", "at_limit")
    return Estimates(*(getattr(workload, key) for key in keys))
