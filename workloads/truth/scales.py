"""What repeats: applications by Zipf's law, inputs, and each run's scale, its serial time w."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from workloads.base import FloatArray, IntArray
from workloads.shapes.family import Shapes
from workloads.streams import Streams


def zipf_shares(applications: int, popularity: float) -> FloatArray:
    """Return the share of jobs of each application, proportional to rank^-popularity.

    Examples
    --------
    >>> zipf_shares(3, 1.0).round(3).tolist()
    [0.545, 0.273, 0.182]
    """
    weights = np.arange(1, applications + 1, dtype=float) ** -popularity
    return np.asarray(weights / weights.sum(), float)


def pick_applications(uniforms: FloatArray, shares: FloatArray) -> IntArray:
    """Return an application for each uniform number, with chances `shares`."""
    ends = np.cumsum(shares)
    picked = np.searchsorted(ends / ends[-1], uniforms, side="right")
    return np.minimum(picked, len(shares) - 1).astype(np.int64)


def class_quotas(jobs: int, shares: FloatArray, sizes: int) -> IntArray:
    """Return how many jobs each class takes: share of its application / sizes, rounded.

    Rounding is by largest remainders, so that the quotas add up to `jobs`.

    Returns
    -------
    numpy.ndarray of int, shape (applications * sizes,)
        Classes of the first application first.
    """
    exact = np.repeat(jobs * shares / sizes, sizes)
    quotas = np.floor(exact).astype(np.int64)
    left = jobs - int(quotas.sum())
    remainders = np.round(exact - quotas, 9)
    quotas[np.argsort(-remainders, kind="stable")[:left]] += 1
    return quotas


@dataclass
class _Ranking:
    """Classes sorted by predicted runtime at one count, full ones skipped from both sides."""

    runtime: list[float]
    order: list[int]
    down: list[int]
    up: list[int]

    @classmethod
    def of(cls, log_runtimes: FloatArray) -> "_Ranking":
        order = np.argsort(log_runtimes, kind="stable")
        size = len(order)
        return cls(
            log_runtimes[order].tolist(),
            order.tolist(),
            list(range(size + 1)),
            list(range(size + 2)),
        )

    def nearest(self, log_runtime: float, free: list[int]) -> int:
        """Return the class with free quota nearest to `log_runtime`; the shorter of a tie."""
        start = bisect_left(self.runtime, log_runtime)
        below = self._skip(self.down, start, -1, free) - 1
        above = self._skip(self.up, start + 1, 1, free) - 1
        if below < 0:
            return self.order[above]
        if above >= len(self.order):
            return self.order[below]
        nearer_below = log_runtime - self.runtime[below] <= self.runtime[above] - log_runtime
        return self.order[below if nearer_below else above]

    def _skip(self, jump: list[int], place: int, step: int, free: list[int]) -> int:
        """Return the next place with free quota from `place` on; places count from 1."""
        path = []
        last = len(self.order)
        while 1 <= place <= last and not free[self.order[place - 1]]:
            path.append(place)
            place = jump[place] if jump[place] != place else place + step
        for passed in path:
            jump[passed] = place
        return place


def assign_classes(
    log_runtime: FloatArray, count_index: IntArray, predicted: FloatArray, quotas: IntArray
) -> IntArray:
    """Give each job, in the order given, to the class with free quota that predicts it best.

    Parameters
    ----------
    log_runtime : numpy.ndarray of float, shape (jobs,)
        Logarithms of the recorded runtimes.
    count_index : numpy.ndarray of int, shape (jobs,)
        Which row of `predicted` belongs to the job's processor count.
    predicted : numpy.ndarray of float, shape (counts, classes)
        Logarithms of the runtimes that each class predicts at each count.
    quotas : numpy.ndarray of int, shape (classes,)
        How many jobs each class takes; at least as many as there are jobs.

    Returns
    -------
    numpy.ndarray of int, shape (jobs,)
        Class of each job.

    Notes
    -----
    Classes are ranked once for each count; those without free quota are
    skipped by path compression, so a job costs the logarithm of the number of
    classes.

    Examples
    --------
    >>> log_runtime, one_count = np.log([10.0, 11.0, 90.0]), np.zeros(3, int)
    >>> assign_classes(log_runtime, one_count, np.log([[10.0, 100.0]]), np.array([1, 2])).tolist()
    [0, 1, 1]
    """
    rankings = [_Ranking.of(row) for row in predicted]
    free = quotas.tolist()
    assigned = []
    for logarithm, index in zip(log_runtime.tolist(), count_index.tolist(), strict=True):
        chosen = rankings[index].nearest(logarithm, free)
        free[chosen] -= 1
        assigned.append(chosen)
    return np.array(assigned, np.int64)


_BISECTIONS = 60


@dataclass(frozen=True)
class Recorded:
    """What is recorded of the jobs: R seconds on n processors.

    Attributes
    ----------
    runtime : numpy.ndarray of float, shape (jobs,), seconds
    processors : numpy.ndarray of int, shape (jobs,)
    """

    runtime: FloatArray
    processors: IntArray


@dataclass(frozen=True)
class Scales:
    """Application, class and scale of every job.

    Attributes
    ----------
    application, size_class : numpy.ndarray of int, shape (jobs,)
        The class counts within its application: which scale repeats, or which
        popular time the job requests; -1 without either.
    scale : numpy.ndarray of float, shape (jobs,), seconds
        w, the serial time of this very run.
    noise : numpy.ndarray of float, shape (jobs,)
        The run's own factor epsilon; w/epsilon is the nominal scale.
    size : numpy.ndarray of float, shape (jobs,), seconds
        The nominal scale as users state it.
    median : numpy.ndarray of float, shape (applications,), seconds
        Median w of the application with ``moldability.size_exponent=0``; NaN
        where it has no job.
    class_scale, class_size : numpy.ndarray of float, shape (applications, sizes), or None
        Nominal scales that repeat, and what users state for each.
    """

    application: IntArray
    size_class: IntArray
    scale: FloatArray
    noise: FloatArray
    size: FloatArray
    median: FloatArray
    class_scale: FloatArray | None = None
    class_size: FloatArray | None = None

    @cached_property
    def nominal(self) -> FloatArray:
        """w/epsilon of each job, the serial time that would repeat, seconds."""
        return self.scale / self.noise


def median_by(values: FloatArray, application: IntArray, applications: int) -> FloatArray:
    """Return the median of `values` for each application, NaN where it has none."""
    medians = pd.Series(values).groupby(application).median()
    return np.asarray(medians.reindex(range(applications)), np.float64)


def solve_scale(
    shapes: Shapes,
    application: IntArray,
    recorded: Recorded,
    median: FloatArray,
    exponent: float,
) -> FloatArray:
    """Return w with w · g(n; A (w/median)^exponent) = recorded runtime, elementwise.

    Notes
    -----
    As 1 <= S(n) <= n, w lies between R and n R; since S grows at most in
    proportion to A, the left side rises with w for exponents below 1 and the
    root is the only one. Bisection on ln w.
    """
    plain = recorded.runtime / shapes.g(application, recorded.processors)
    if exponent == 0.0:
        return plain
    target = np.log(recorded.runtime)
    low, high = target.copy(), target + np.log(recorded.processors)
    centre = np.log(median)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        grown = shapes.resized(application, np.exp(exponent * (middle - centre)))
        g = grown.g(np.arange(len(application)), recorded.processors)
        below = middle + np.log(g) < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(np.exp(0.5 * (low + high)), float)


def draw_single_scales(
    shapes: Shapes,
    application: IntArray,
    recorded: Recorded,
    streams: Streams,
    *,
    noise: float,
    size_noise: float,
    size_exponent: float,
) -> Scales:
    """Return scales that do not repeat: each run's own noise is log-normal."""
    jobs = len(application)
    no_class = np.broadcast_to(np.int64(-1), jobs)
    if not shapes.known:
        unknown = np.broadcast_to(np.nan, jobs)
        median = np.full(len(shapes), np.nan)
        return Scales(application, no_class, unknown, unknown, unknown, median)
    plain = recorded.runtime / shapes.g(application, recorded.processors)
    median = median_by(plain, application, len(shapes))
    scale = solve_scale(shapes, application, recorded, median[application], size_exponent)
    epsilon = np.exp(noise * streams("truth.noise").standard_normal(jobs))
    error = np.exp(size_noise * streams("truth.size").standard_normal(jobs))
    return Scales(
        application=application,
        size_class=no_class,
        scale=scale,
        noise=epsilon,
        size=scale / epsilon * error,
        median=median,
    )


def draw_repeated_scales(
    shapes: Shapes,
    shares: FloatArray,
    recorded: Recorded,
    streams: Streams,
    *,
    sizes: int,
    size_noise: float,
    size_exponent: float,
) -> Scales:
    """Return scales that repeat: application and class of a job are chosen together.

    Each class takes the w of a randomly drawn job under its shape; then the
    jobs, in random order, each go to the class with free quota whose predicted
    runtime at the job's count is nearest in log. What is left over is the
    run's noise.

    Notes
    -----
    The application's median w, which the size exponent refers to, is that of
    its class scales: jobs have none before they are assigned.
    """
    jobs, classes = len(recorded.runtime), len(shapes) * sizes
    owner = np.repeat(np.arange(len(shapes), dtype=np.int64), sizes)
    drawn = (streams("truth.class scale").random(classes) * jobs).astype(np.int64)
    model = Recorded(recorded.runtime[drawn], recorded.processors[drawn])
    plain = (model.runtime / shapes.g(owner, model.processors)).reshape(-1, sizes)
    median = np.median(plain, axis=1)
    class_scale = solve_scale(shapes, owner, model, median[owner], size_exponent)
    grown, row = shapes, owner
    if size_exponent > 0.0:
        grown = grow_shapes(shapes, owner, class_scale, median, size_exponent)
        row = np.arange(classes)
    chosen = _nearest_classes(
        grown,
        row,
        class_scale,
        recorded,
        class_quotas(jobs, shares, sizes),
        streams("truth.class order").permutation(jobs),
    )
    application = owner[chosen]
    scale = solve_scale(shapes, application, recorded, median[application], size_exponent)
    class_size = class_scale * np.exp(
        size_noise * streams("truth.class size").standard_normal(classes)
    )
    return Scales(
        application=application,
        size_class=chosen % sizes,
        scale=scale,
        noise=scale / class_scale[chosen],
        size=class_size[chosen],
        median=median,
        class_scale=class_scale.reshape(-1, sizes),
        class_size=class_size.reshape(-1, sizes),
    )


def grow_shapes(
    shapes: Shapes, application: IntArray, scale: FloatArray, median: FloatArray, exponent: float
) -> Shapes:
    """Return shapes, one an element, with A multiplied by (scale/median)^exponent."""
    return shapes.resized(application, (scale / median[application]) ** exponent)


def _nearest_classes(
    shapes: Shapes,
    row: IntArray,
    class_scale: FloatArray,
    recorded: Recorded,
    quotas: IntArray,
    order: IntArray,
) -> IntArray:
    """Return the class of each job; `row` is the place of each class in `shapes`."""
    counts, count_index = np.unique(recorded.processors, return_inverse=True)
    g = shapes.g(np.tile(row, len(counts)), np.repeat(counts, len(row)))
    predicted = np.log(class_scale) + np.log(g).reshape(len(counts), len(row))
    assigned = assign_classes(
        np.log(recorded.runtime[order]), count_index[order], predicted, quotas
    )
    chosen = np.empty(len(order), np.int64)
    chosen[order] = assigned
    return chosen
