"""Which jobs belong to which application: popularity by Zipf's law, quotas, the nearest class.

And requests that know the curve: a parallel job asks for processors at some efficiency E(n).
Efficiencies are logit-normal and above 1/n, for users ask for what speeds their
job up. Curves still come from their family, drawn as ever: of several candidates
an application takes the one that fits what its jobs ask for. A job of one
processor is a serial program.
"""

from bisect import bisect_left
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from workloads.base import BoolArray, FloatArray, IntArray
from workloads.shapes.family import Curve, ResizableCurve, ShapeFamily, Shapes
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


def median_by(values: FloatArray, application: IntArray, applications: int) -> FloatArray:
    """Return the median of `values` for each application, NaN where it has none."""
    medians = pd.Series(values).groupby(application).median()
    return np.asarray(medians.reindex(range(applications)), np.float64)


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


class _Ranking:
    """Classes sorted by predicted runtime at one count, full ones skipped from both sides."""

    def __init__(self, log_runtimes: FloatArray) -> None:
        order = np.argsort(log_runtimes, kind="stable")
        self.order: list[int] = order.tolist()
        self.runtime: list[float] = log_runtimes[order].tolist()
        self.down, self.up = list(range(len(order) + 1)), list(range(len(order) + 2))

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
    """Return each job's class: in the order given, the one with free quota that predicts it best.

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
    rankings = [_Ranking(row) for row in predicted]
    free = quotas.tolist()
    assigned = []
    for logarithm, index in zip(log_runtime.tolist(), count_index.tolist(), strict=True):
        chosen = rankings[index].nearest(logarithm, free)
        free[chosen] -= 1
        assigned.append(chosen)
    return np.array(assigned, np.int64)


CANDIDATES = 64
"""Curves drawn for each application, of which it takes the one that fits best."""

MOST_CANDIDATES = 1 << 17
"""Curves drawn altogether, beyond which each of many applications has fewer."""

_SERIAL = -1
_SMALLEST_SPREAD = 1e-9
_LARGEST_SHARE = 1.0 - 1e-12


def draw_efficiencies(
    processors: IntArray, median: float, spread: float, rng: np.random.Generator
) -> FloatArray:
    """Return the efficiency at which each job asks for its processors; 1 for one processor.

    Parameters
    ----------
    processors : numpy.ndarray of int, shape (n,)
    median, spread : float
        Of the law before it is cut at 1/n; the spread is the standard deviation
        of ln(E / (1 - E)).
    rng : numpy.random.Generator
        One number a job is drawn.

    Examples
    --------
    >>> counts = np.array([1, 2, 64])
    >>> draw_efficiencies(counts, 0.7, 0.75, np.random.default_rng(1)).round(2).tolist()
    [1.0, 0.89, 0.51]
    """
    normal, spread = NormalDist(), max(spread, _SMALLEST_SPREAD)
    centre = np.log(median / (1.0 - median))
    counts, index = np.unique(processors, return_inverse=True)
    least = -np.log(np.maximum(counts - 1.0, 1.0))  # ln(E / (1 - E)) at E = 1/n
    below = np.array([normal.cdf(one) for one in ((least - centre) / spread).tolist()])[index]
    shares = np.clip(below + (1.0 - below) * rng.random(len(processors)), 1e-12, _LARGEST_SHARE)
    normals = np.array([normal.inv_cdf(one) for one in shares.tolist()])
    efficiency = 1.0 / (1.0 + np.exp(-(centre + spread * normals)))
    return np.where(processors == 1, 1.0, np.maximum(efficiency, 1.0 / processors))


@dataclass(frozen=True)
class ChosenCurve:
    """The curves that applications took of their candidates; serial programs have S(n) = 1.

    Attributes
    ----------
    candidates : Curve
    place : numpy.ndarray of int, shape (applications,)
        Which candidate; -1 for a serial program.
    """

    candidates: Curve
    place: IntArray

    @property
    def fixed_end(self) -> bool:
        """As of the candidates."""
        return self.candidates.fixed_end

    def _split(self, application: IntArray) -> tuple[IntArray, FloatArray]:
        """Return each element's candidate (any for a serial program), and who is serial."""
        place = self.place[application]
        return np.maximum(place, 0), place == _SERIAL

    def relative_time(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return T(n)/T(1), elementwise."""
        place, serial = self._split(application)
        return np.where(serial, 1.0, self.candidates.relative_time(place, n))

    def largest_useful(self, application: IntArray, processors: int) -> IntArray:
        """Return the candidate's, 1 for a serial program."""
        place, serial = self._split(application)
        return np.where(serial, 1, self.candidates.largest_useful(place, processors))

    def communication(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return the candidate's share of communication, none for a serial program."""
        place, serial = self._split(application)
        return np.where(serial, 0.0, self.candidates.communication(place, n))

    def resized(self, application: IntArray, factor: FloatArray) -> "ChosenCurve":
        """Return curves, one an element, with the parallelism multiplied by `factor`."""
        assert isinstance(self.candidates, ResizableCurve)
        place, serial = self._split(application)
        grown = self.candidates.resized(place, factor)
        return ChosenCurve(grown, np.where(serial, _SERIAL, np.arange(len(place))))


def choose_curves(
    family: ShapeFamily,
    streams: Streams,
    processors: int,
    counts: IntArray,
    efficiency: FloatArray,
) -> Shapes:
    """Return the shapes of applications that ask for `counts` at that efficiency.

    Each takes, of the curves drawn for it, the one whose efficiency at its count
    is nearest in logarithm; one that asks for one processor is a serial program.

    Parameters
    ----------
    family : ShapeFamily
    streams : Streams
        Curves come from the stream ``truth.shapes``.
    processors : int
        Size of the machine.
    counts, efficiency : numpy.ndarray, shape (applications,)
    """
    each = max(min(CANDIDATES, MOST_CANDIDATES // len(counts)), 1)
    rows = np.arange(len(counts) * each)
    pool = family.draw(streams("truth.shapes"), len(rows), processors)
    reached = _log_efficiency(pool, rows, np.repeat(counts, each)).reshape(-1, each)
    distance = np.abs(reached - np.log(efficiency)[:, None])
    place = rows[::each] + distance.argmin(axis=1)
    assumed = pool.assumed(place) & (counts > 1)
    return Shapes(
        ChosenCurve(pool.curve, np.where(counts > 1, place, _SERIAL)),
        processors,
        rules=(*pool.rules, "any"),
        rule=np.where(counts > 1, pool.rule[place], len(pool.rules)),
        serial_assumed=assumed,
    )


def _log_efficiency(shapes: Shapes, application: IntArray, counts: IntArray) -> FloatArray:
    return np.asarray(-np.log(counts * shapes.g(application, counts)), float)


def typical_counts(processors: IntArray, application: IntArray) -> IntArray:
    """Return the median count of each application's parallel jobs; 1 where it has none.

    Examples
    --------
    >>> typical_counts(np.array([1, 4, 8, 16, 1]), np.array([0, 0, 0, 0, 1])).tolist()
    [8, 1]
    """
    asked = np.where(processors > 1, processors, np.nan)
    medians = median_by(asked, application, int(application.max()) + 1)
    return np.nan_to_num(np.floor(medians), nan=1.0).astype(np.int64)


@dataclass(frozen=True)
class ModelRequests:
    """What the jobs of a model ask for, and how many of its applications are serial programs.

    Their share of the applications is that of their jobs among the jobs. Parallel
    applications come first; popularity is by Zipf's law in each of the two groups.

    Attributes
    ----------
    processors : numpy.ndarray of int, shape (jobs,)
    efficiency : numpy.ndarray of float, shape (jobs,)
    applications, serial : int
        How many there are, and how many of them are serial programs.
    """

    processors: IntArray
    efficiency: FloatArray
    applications: int
    serial: int

    @classmethod
    def by(cls, processors: IntArray, efficiency: FloatArray, applications: int) -> "ModelRequests":
        """Return what jobs ask for, with one application of each kind there is at least."""
        share = float(np.mean(processors == 1))
        serial = round(applications * share)
        if 0.0 < share < 1.0:
            serial = min(max(serial, 1), applications - 1)
        return cls(processors, efficiency, applications, serial)

    @property
    def is_serial(self) -> BoolArray:
        """Which jobs are runs of a serial program; none where a single application has all."""
        return np.asarray((self.processors == 1) & (self.serial > 0))

    def curves(self, family: ShapeFamily, streams: Streams, machine: int) -> Shapes:
        """Return the applications' shapes: each parallel one's fits the request of some job.

        These jobs are drawn one from each of so many equal parts of the jobs sorted by request.
        """
        parallel = self.applications - self.serial
        jobs = np.flatnonzero(self.processors > 1)
        jobs = jobs[np.argsort(self.processors[jobs], kind="stable")]
        rng = streams("truth.typical job")
        place = (rng.permutation(parallel) + rng.random(parallel)) / max(parallel, 1)
        typical = jobs[(place * len(jobs)).astype(np.int64)]
        counts = np.append(self.processors[typical], np.ones(self.serial, np.int64))
        efficiency = np.append(self.efficiency[typical], np.ones(self.serial))
        return choose_curves(family, streams, machine, counts, efficiency)

    def quotas(self, popularity: float, sizes: int) -> IntArray:
        """Return how many jobs each class takes, those of the first application first."""
        groups = (self.applications - self.serial, self.serial)
        jobs = np.bincount(self.is_serial, minlength=2)
        return np.concatenate(
            [
                class_quotas(number, zipf_shares(group, popularity), sizes)
                for number, group in zip(jobs.tolist(), groups, strict=True)
                if group
            ]
        )

    def models(self, owner: IntArray, uniforms: FloatArray) -> IntArray:
        """Return a job of its own kind, serial or parallel, for each class's application."""
        drawn = np.empty(len(owner), np.int64)
        for kind in (False, True):
            jobs = np.flatnonzero(self.is_serial == kind)
            mine = (owner >= self.applications - self.serial) == kind
            drawn[mine] = jobs[(uniforms[mine] * len(jobs)).astype(np.int64)]
        return drawn

    def assign(
        self,
        shapes: Shapes,
        quotas: IntArray,
        streams: Streams,
        runtimes: tuple[FloatArray, FloatArray] | None = None,
    ) -> IntArray:
        """Return each job's class: one with free quota whose E at the request fits best.

        The widest come first, whose efficiencies differ most between applications, those of
        a width in random order; the last ones take what is left. Serial programs are for
        jobs of one processor alone, and these for them.

        Parameters
        ----------
        quotas : numpy.ndarray of int, shape (classes,)
            How many jobs each class takes, those of the first application first.
        runtimes : tuple of numpy.ndarray, optional
            Logarithms of the recorded runtimes, shape (jobs,), and of those of each class
            at each count that is asked for, shape (counts, classes): their distance is
            added to that in ln E.
        """
        counts, row = np.unique(self.processors, return_inverse=True)
        every = np.arange(self.applications)
        grid = np.repeat(counts, self.applications)
        table = _log_efficiency(shapes, np.tile(every, len(counts)), grid)
        table = table.reshape(len(counts), self.applications)
        if self.serial:
            table[(counts == 1)[:, None] != (every >= self.applications - self.serial)] = np.inf
        table = np.repeat(table, len(quotas) // self.applications, axis=1)
        wanted = np.log(self.efficiency)
        chosen = np.empty(len(row), np.int64)
        left = quotas.copy()
        full = np.where(left > 0, 0.0, np.inf)
        order = streams("truth.request order").permutation(len(row))
        order = order[np.argsort(-row[order], kind="stable")]
        for job in order.tolist():
            misfit = np.abs(table[row[job]] - wanted[job])
            if runtimes is not None:
                misfit += np.abs(runtimes[1][row[job]] - runtimes[0][job])
            chosen[job] = best = int((misfit + full).argmin())
            left[best] -= 1
            full[best] = 0.0 if left[best] else np.inf
        return chosen
