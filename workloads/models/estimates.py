"""Requested times: as recorded, exact, or modelled.

References
----------
Tsafrir, Etsion & Feitelson, "Modeling user runtime estimates" (JSSPP 2005). A histogram of
estimates is generated first: 20 popular values (the head) that 89 % of the jobs use, the
longest allowed one most of all, and many rare ones (the tail). Then the estimates are dealt
to the jobs so that none is shorter than its job's runtime. Constants and tables are those of
the authors' program.
"""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from workloads.base import LONGEST_TIME, FloatArray, IntArray
from workloads.errors import ABOVE_0, WorkloadError, check_choice, check_number

_log = logging.getLogger(__name__)

MINUTE, HOUR = 60, 3600
HEAD = 20
HEAD_SHARE = 0.89
RARE = 0.01
"""Share of jobs longer than expected up to which nobody is warned of it."""
FEWEST_JOBS = 200
"""Below this the histogram has fewer bins than the head; see `tsafrir_estimates`."""

_COMMON = [5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 20 * MINUTE, 30 * MINUTE]
_COMMON += [hours * HOUR for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18)]
_ROUND = [hours * HOUR for hours in (200, 100, 50, 10, 5, 2, 1)]
_ROUND += [minutes * MINUTE for minutes in (20, 10, 5)]

_BINS_AT = ((0, 20, 200, 1_000, 10_000, 70_000, 250_000), (0, 10, 20, 35, 90, 340, 565))

_POPULARITY = (
    (3, 1, 4, 17, 13, 7, 8, 18, 2, 6, 16, 10, 5, 15, 14, 19, 11, 12, 9, 20),
    (1, 3, 4, 2, 12, 9, 8, 18, 6, 7, 11, 20, 16, 5, 14, 13, 10, 15, 17, 19),
    (1, 4, 10, 14, 20, 2, 3, 7, 12, 6, 19, 5, 18, 16, 9, 17, 15, 13, 8, 11),
    (1, 6, 5, 3, 7, 2, 18, 19, 4, 11, 20, 9, 10, 14, 13, 16, 15, 17, 8, 12),
)
"""In four logs (SDSC-SP2, CTC, KTH, SDSC Blue) the popularity rank of each of the head's times:
the longest allowed first, the others ascending."""

_SITE_LIMITS = [1, 2, 3, 4, 6, 8, 10, 12, 18, 24, 36, 48, 60, 72, 96, 120, 168, 240, 336, 504, 720]


class Histogram(NamedTuple):
    """Estimates and how many jobs use each.

    Attributes
    ----------
    times : numpy.ndarray of int, shape (k,), seconds, ascending
    counts : numpy.ndarray of int, shape (k,), each at least 1
    head : numpy.ndarray of bool, shape (k,)
        Which are among the popular ones.
    """

    times: IntArray
    counts: IntArray
    head: np.ndarray


def site_limit(longest: float) -> int:
    """Return the usual round limit, in seconds, that covers a runtime of `longest` seconds."""
    beyond = int(np.ceil(longest / (100 * HOUR))) * 100
    return HOUR * next((hours for hours in _SITE_LIMITS if hours * HOUR >= longest), beyond)


def head_times(limit: int) -> IntArray:
    """Return the popular estimates, seconds: the limit first, the others ascending.

    They are 20, or all multiples of five minutes where a limit below two hours
    has fewer.
    """
    chosen = [time for time in _COMMON if time < limit]
    for step in _ROUND:
        for time in range(limit // step * step, 0, -step):
            if len(chosen) == HEAD - 1:
                break
            if time != limit and time not in chosen:
                chosen.append(time)
    return np.array([limit, *sorted(chosen)], np.int64)


def head_ranks(rng: np.random.Generator, size: int = HEAD) -> IntArray:
    """Draw the popularity rank of each of the head's `size` times, as `head_times` orders them.

    The limit is the most popular. Each further time draws two ranks from a pool
    that its ranks in the four logs join, and keeps the more popular; a rank that
    no further time has is taken at once.
    """
    table = list(zip(*_POPULARITY, strict=True))
    last = {rank: row for row, ranks in enumerate(table) for rank in ranks}
    free = set(range(1, HEAD + 1))
    pool: list[int] = []
    ranks = []
    for row, joining in enumerate(table):
        pool = [rank for rank in [*pool, *joining] if rank in free]
        due = [rank for rank in free if last[rank] <= row]
        if row == 0:
            rank = 1
        elif due:
            rank = min(due)
        else:
            rank = min(pool[index] for index in rng.integers(len(pool), size=2))
        ranks.append(rank)
        free.discard(rank)
    order = np.argsort(np.argsort(ranks[:size]))
    return np.asarray(order + 1, np.int64)


def bins_for(jobs: int) -> int:
    """Return how many different estimates so many jobs use."""
    return round(float(np.interp(jobs, *_BINS_AT)))


def generate_histogram(
    jobs: int, limit: int, rng: np.random.Generator, at_limit: float | None = None
) -> Histogram:
    """Generate the histogram of estimates.

    Parameters
    ----------
    jobs : int
        At least 200.
    limit : int
        The longest allowed estimate, seconds, at least an hour.
    rng : numpy.random.Generator
    at_limit : float, optional
        Share of the jobs that estimate the limit, below 0.89; by default 0.217, that of
        the authors' program. The other popular times share what is left of the head's 0.89.

    Examples
    --------
    >>> histogram = generate_histogram(10_000, 18 * 3600, np.random.default_rng(1))
    >>> int(histogram.counts.sum()), int(histogram.times.max())
    (10000, 64800)
    """
    if jobs < FEWEST_JOBS:
        raise WorkloadError(f"the estimate model needs at least {FEWEST_JOBS} jobs, got {jobs}")
    if not HOUR <= limit <= LONGEST_TIME:
        raise WorkloadError(
            f"a limit of {limit:g} s (workload.time_limit, workload.estimate_limit): tsafrir "
            f"needs at least {HOUR} s, and at most {LONGEST_TIME:g}"
        )
    popular = head_times(limit)
    shares = _head_shares(len(popular), at_limit)[head_ranks(rng, len(popular)) - 1]
    bins = bins_for(jobs)
    rare = _tail_times(limit, bins, bins - len(popular), set(popular.tolist()))
    weights = 795.6 * (HEAD + 1.0 + np.arange(len(rare))) ** -2.267
    rest = rng.permutation(weights) * (1 - HEAD_SHARE) / max(weights.sum(), 1e-300)
    times = np.concatenate([popular, rare])
    counts = _apportion(np.concatenate([shares, rest]), jobs)
    order = np.argsort(times)
    head = np.arange(len(times)) < len(popular)
    return Histogram(times[order], counts[order], head[order])


def _head_shares(size: int, at_limit: float | None) -> FloatArray:
    """Return the head's shares of all jobs by popularity rank, the limit first."""
    ranks = np.arange(2, size + 1)
    shares = (14.0491 * np.exp(-0.177531 * ranks) + 0.462513) / 100.0
    if at_limit is None:
        at_limit = HEAD_SHARE - shares.sum()
    else:
        shares *= (HEAD_SHARE - at_limit) / shares.sum()
    return np.concatenate([[at_limit], shares])


def _tail_times(limit: int, bins: int, wanted: int, taken: set[int]) -> IntArray:
    a = 1.0 + 12.1039 * bins**-0.6026
    taken = set(taken)
    times = []
    for x in (np.arange(wanted) + 1.0) / max(wanted, 1):
        minutes = int(np.floor((a - 1.0) * x / (a - x) * limit / MINUTE + 0.5))
        for shift in (0, 30, -30, 20, -20, 10, -10):
            time = minutes * MINUTE + shift
            if 0 < time < limit and time not in taken:
                times.append(time)
                taken.add(time)
                break
    return np.array(times, np.int64)


def _apportion(shares: FloatArray, total: int) -> IntArray:
    """Split `total` in proportion, at least 1 each, by largest remainders."""
    exact = shares / shares.sum() * total
    counts = np.maximum(np.floor(exact).astype(np.int64), 1)
    missing = total - int(counts.sum())
    if missing > 0:
        counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    while missing < 0:
        counts[np.argmax(counts)] -= 1
        missing += 1
    return np.asarray(counts, np.int64)


def tsafrir_estimates(
    runtimes: FloatArray,
    rng: np.random.Generator,
    limit: float | None = None,
    at_limit: float | None = None,
) -> FloatArray:
    """Draw an estimate for every job.

    Parameters
    ----------
    runtimes : numpy.ndarray of float, shape (n,), seconds
    rng : numpy.random.Generator
    limit : float, optional
        The longest allowed estimate, seconds; by default the usual round limit
        that covers the longest runtime. Longer jobs estimate the limit.
    at_limit : float, optional
        As in `generate_histogram`.

    Returns
    -------
    numpy.ndarray of float, shape (n,), seconds
        No less than the runtime, where the limit is not.

    Notes
    -----
    Where more jobs are long than the histogram has long estimates, the authors'
    program gives up; here the estimates that fall short become the limit, and a
    warning says how many. Fewer than 200 jobs, for which the histogram is not
    defined, draw theirs independently from the histogram of 10,000 jobs.

    Examples
    --------
    >>> tsafrir_estimates(np.full(5, 50_000.0), np.random.default_rng(1)) >= 50_000.0
    array([ True,  True,  True,  True,  True])
    """
    if not len(runtimes):
        return np.zeros(0)
    longest = int(limit) if limit is not None else site_limit(float(runtimes.max()))
    clipped = np.minimum(runtimes, longest)
    if len(runtimes) < FEWEST_JOBS:
        return _independent(clipped, generate_histogram(10_000, longest, rng, at_limit), rng)
    histogram = generate_histogram(len(runtimes), longest, rng, at_limit)
    order = np.argsort(-clipped, kind="stable")
    offered = np.repeat(histogram.times.astype(float), histogram.counts)[::-1]
    needed = clipped[order]
    short = int((offered < needed).sum())
    if short:
        told = logging.WARNING if short > RARE * len(runtimes) else logging.INFO
        _log.log(
            told,
            "%s of the %s requested times that the model has drawn are too short for the runtimes "
            "of the jobs; they are raised to the limit of %s s",
            f"{short:,}",
            f"{len(runtimes):,}",
            f"{longest:,}",
        )
        offered = np.sort(np.where(offered < needed, float(longest), offered))[::-1]
    estimates = np.empty(len(runtimes))
    estimates[order] = _deal(needed, offered, rng)
    return estimates


def _independent(
    runtimes: FloatArray, histogram: Histogram, rng: np.random.Generator
) -> FloatArray:
    """Draw from the histogram's part that is no shorter than each runtime."""
    cumulated = np.concatenate([[0], np.cumsum(histogram.counts)])
    below = cumulated[np.searchsorted(histogram.times, runtimes, side="left")]
    drawn = below + rng.random(len(runtimes)) * (cumulated[-1] - below)
    index = np.searchsorted(cumulated, drawn, side="right") - 1
    index = np.minimum(index, len(histogram.times) - 1)
    return np.asarray(histogram.times[index], float)


COMPILED_JOBS = 20_000
"""From this many jobs on, dealing is worth compiling."""


def _deal(needed: FloatArray, offered: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Deal the offered estimates: each job takes a random one of those left that suffice.

    Both are sorted descending, and offered[k] >= needed[k].
    """
    upto = np.searchsorted(-offered, -needed, side="right")
    draws = rng.random(len(needed))
    if len(needed) < COMPILED_JOBS:
        left = offered.tolist()
        _swap(left, upto.tolist(), draws.tolist())
        return np.array(left)
    from predictors.compiling import compiled  # late: the compiler takes long to import

    dealt = offered.copy()
    compiled()(_swap)(dealt, upto, draws)
    return dealt


def _swap(left: Any, upto: Any, draws: Any) -> None:
    """Let each job in turn take its draw of the estimates from its place on that suffice."""
    for job in range(len(left)):
        pick = job + int(draws[job] * (upto[job] - job))
        left[job], left[pick] = left[pick], left[job]


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
        check_choice("workload.estimates", self.method, "recorded", *METHODS)
        check_number("workload.estimate_factor", self.factor, "at least 1", 1.0)
        for key, limit in (("estimate_limit", self.limit), ("time_limit", self.time_limit)):
            check_number(f"workload.{key}", limit, "positive seconds, or null", ABOVE_0)
        wanted, most = f"above 0 and below {HEAD_SHARE}, or null", math.nextafter(HEAD_SHARE, 0.0)
        check_number("workload.at_limit", self.at_limit, wanted, ABOVE_0, most)

    def draw(self, runtimes: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return an estimate for each runtime, both in seconds, shape (n,).

        Estimates are no shorter than the runtime unless `limit` is.
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


def _tsafrir(model: Estimates, runtimes: FloatArray, rng: np.random.Generator) -> FloatArray:
    limits = [limit for limit in (model.limit, model.time_limit) if limit is not None]
    return tsafrir_estimates(runtimes, rng, min(limits, default=None), model.at_limit)


def _loose(model: Estimates, runtimes: FloatArray, rng: np.random.Generator) -> FloatArray:
    factors = 1.0 + rng.exponential(2.0, len(runtimes))
    exact = rng.random(len(runtimes)) < 0.15
    return np.where(exact, runtimes, np.ceil(runtimes * factors / 60.0) * 60.0)


METHODS: Mapping[str, Callable[[Estimates, FloatArray, np.random.Generator], FloatArray]] = {
    "exact": lambda model, runtimes, rng: runtimes.copy(),
    "tsafrir": _tsafrir,
    "f_model": lambda model, runtimes, rng: (
        runtimes * rng.uniform(1.0, 1.0 + 2.0 * (model.factor - 1.0), len(runtimes))
    ),
    "badness": lambda model, runtimes, rng: runtimes / (1.0 - rng.random(len(runtimes))),
    "loose": _loose,
}
"""What ``workload.estimates`` may say."""


def estimates_of(workload: Any) -> Estimates:
    """Return how users estimate by the keys of a workload."""
    keys = ("estimates", "estimate_factor", "estimate_limit", "time_limit", "at_limit")
    return Estimates(*(getattr(workload, key) for key in keys))
