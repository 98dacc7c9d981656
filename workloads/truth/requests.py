"""Requests that know the curve: a parallel job asks for processors at some efficiency E(n).

Efficiencies are logit-normal and above 1/n, for users ask for what speeds their
job up. Curves still come from their family, drawn as ever: of several candidates
an application takes the one that fits what its jobs ask for. A job of one
processor is a serial program.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from workloads.base import BoolArray, FloatArray, IntArray
from workloads.shapes.family import Curve, ResizableCurve, ShapeFamily, Shapes
from workloads.streams import Streams
from workloads.truth.assignment import class_quotas, median_by, zipf_shares

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
    counts : numpy.ndarray of int, shape (applications,)
    efficiency : numpy.ndarray of float, shape (applications,)
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
class Asked:
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
    def by(cls, processors: IntArray, efficiency: FloatArray, applications: int) -> "Asked":
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
        shapes : Shapes
        quotas : numpy.ndarray of int, shape (classes,)
            How many jobs each class takes, those of the first application first.
        streams : Streams
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
