"""The ground truth itself: runtimes, feasible counts, shares of communication."""

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.compiling import compiled
from workloads.base import BoolArray, FloatArray, IntArray, Tabled
from workloads.shapes.family import Shapes
from workloads.truth.options import TruthOptions
from workloads.truth.scales import Calibration, RecordedJobs, Scales, grow_shapes


@compiled
def mixed(value: np.uint64) -> np.uint64:
    """Return the SplitMix64 finaliser (Steele, Lea & Flood, OOPSLA 2014).

    Sums and products wrap around: those of `numpy` do so without a warning in plain Python, too.
    """
    value = np.multiply(value ^ (value >> np.uint64(30)), np.uint64(0xBF58476D1CE4E5B9))
    value = np.multiply(value ^ (value >> np.uint64(27)), np.uint64(0x94D049BB133111EB))
    return value ^ (value >> np.uint64(31))


@compiled
def uniform(state: np.uint64) -> float:
    """Return what a state of SplitMix64 gives, between 0 and 1, both left out."""
    return (float(mixed(state) >> np.uint64(11)) + 0.5) * 2.0**-53


@compiled
def disturbed(share: float, job: int, count: int, key: np.uint64, spread: float) -> float:
    """Return what `disturb` makes of one share."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    state = mixed(np.add(key, np.multiply(golden, np.uint64(job + 1))))
    state = mixed(np.add(state, np.multiply(golden, np.uint64(count))))
    first, second = uniform(np.add(state, golden)), uniform(np.add(np.add(state, golden), golden))
    radius, angle = np.sqrt(-2.0 * np.log(first)), 2.0 * np.pi * second
    communication = share * np.exp(spread * radius * np.cos(angle))
    computation = (1.0 - share) * np.exp(spread * radius * np.sin(angle))
    return float(communication / (computation + communication))


@compiled
def disturb(share, jobs, counts, key, spread):  # type: ignore[no-untyped-def]
    """Give both parts of each time a log-normal factor; change `share` to what comes out.

    The factors are addressed by job and count, so that the order of asking does not matter; the
    logarithm of each has `spread` as its standard deviation. Arrays are of shape (n,).
    """
    for i in range(len(share)):
        share[i] = disturbed(share[i], jobs[i], counts[i], key, spread)


_LARGEST_TABLE = 1 << 23
"""Entries of a table of g by application and count, beyond which none is kept."""

_BLOCK = 1 << 16
"""Entries of that table that are computed at once."""


class Truth:
    """How long each job really runs: T(n) = R g(n)/g(reference count).

    Made by `workloads.truth.build.build_truth`, whose example shows it; satisfies
    `workloads.base.GroundTruth`. R is the recorded runtime, so that it comes
    out to the bit at the reference count.

    Parameters
    ----------
    shapes : Shapes
        By application.
    scales : Scales
    recorded : RecordedJobs
    moldable, malleable : numpy.ndarray of bool, shape (jobs,)
    options : TruthOptions
    split_key : int
        Key of the stream that draws the noise of split times.

    Attributes
    ----------
    application, size_class, size, moldable, malleable, min_processors, max_processors,
    serial_time, serial_time_assumed
        As in `workloads.base.GroundTruth`.
    noise : numpy.ndarray of float, shape (jobs,)
        Each run's own factor epsilon.
    nominal_scale : numpy.ndarray of float, shape (jobs,), seconds
        w/epsilon, the serial time that would repeat.
    shared_shape : bool
        Whether jobs of one application have curves that are multiples of each other.
    restricts_counts : bool
        Whether any application runs on certain counts alone.
    known : bool
        Whether any other count than the reference has a runtime.
    calibration : Calibration
        Runs before the start.
    """

    def __init__(
        self,
        shapes: Shapes,
        scales: Scales,
        recorded: RecordedJobs,
        moldable: BoolArray,
        malleable: BoolArray,
        options: TruthOptions,
        split_key: int,
    ) -> None:
        jobs = len(scales.application)
        self._shapes, self._scales, self._recorded = shapes, scales, recorded
        self._options, self._split_key = options, np.uint64(split_key)
        self.known, self.moldable, self.malleable = shapes.known, moldable, malleable
        self.shared_shape = options.size_exponent == 0.0
        self.restricts_counts = any(shapes.allowed(k) is not None for k in range(len(shapes)))
        self.application, self.size_class = scales.application, scales.size_class
        unknown = np.broadcast_to(np.nan, jobs)
        self.size = scales.size if options.size == "known" else unknown
        self.serial_time, self.noise = scales.scale, scales.noise
        self.nominal_scale = scales.nominal if self.known else unknown
        self.serial_time_assumed = shapes.assumed(scales.application)
        # Rows of the curves that runtimes come from: applications, or jobs
        # where the parallelism of each depends on its size.
        self._curves, self._row = grow_shapes(
            shapes, scales.application, scales.scale, scales.median, options.size_exponent
        )
        self._like = np.arange(jobs)  # by whose number the noise of split times is drawn
        # Of g at every count of every application; none where that would be too large, and none
        # where every job has a curve of its own, which is asked too rarely to keep.
        size = len(self._curves), self._curves.processors + 1
        keeps = self._curves is shapes and self.known and size[0] * size[1] <= _LARGEST_TABLE
        self._table: FloatArray | None = np.empty(size) if keeps else None
        self._filled = np.zeros(0 if self._table is None else len(self._table), bool)
        self._split: dict[int, FloatArray] = {}
        self._reference_g = self._g(self._row, recorded.processors) if self.known else unknown
        self._feasible: dict[tuple[int, ...], IntArray] = {}
        self.min_processors, self.max_processors = self._limits()
        self.calibration = Calibration(shapes, scales, recorded, options)

    def behind(self, like: IntArray, ahead: RecordedJobs, **facts: NDArray[Any]) -> "Truth":
        """Return the truth of these jobs behind rigid ones.

        Parameters
        ----------
        like : numpy.ndarray of int
            For each job ahead one of these that communicates as it does.
        ahead : RecordedJobs
            Runtime and count of each job ahead.
        **facts
            What the attributes say of the jobs ahead.
        """
        made = copy(self)
        made._like, made._row = np.append(like, self._like), np.append(self._row[like], self._row)
        made._reference_g = np.append(self._g(self._row[like], ahead.processors), self._reference_g)
        made._recorded = RecordedJobs(
            np.append(ahead.runtime, self._recorded.runtime),
            np.append(ahead.processors, self._recorded.processors),
        )
        for name, values in facts.items():
            setattr(made, name, np.append(values, getattr(self, name)))
        return made

    # Runtimes

    def runtimes(self, job: int, counts: IntArray) -> FloatArray:
        """Return T(n) of job index `job` at each count, seconds; NaN where unknown."""
        if self._table is None:
            return self.runtimes_at(np.full(len(counts), job), counts)
        row = self._row.item(job)
        if not self._filled[row]:
            self._fill(np.array([row]))
        ratios: FloatArray = self._table[row].take(counts) / self._reference_g.item(job)
        return ratios * self._recorded.runtime.item(job)

    def runtime_on(self, job: int, count: int) -> float:
        """Return T(count) of job index `job`, seconds, to the bit of `runtimes`."""
        row = self._row.item(job)
        if self._table is None or not self._filled.item(row):
            return self.runtimes(job, np.array([count])).item(0)
        ratio = self._table.item(row, count) / self._reference_g.item(job)
        return self._recorded.runtime.item(job) * ratio

    def runtimes_at(self, jobs: IntArray, counts: IntArray) -> FloatArray:
        """Return T(counts[i]) of job index jobs[i], elementwise, seconds; NaN where unknown."""
        jobs, counts = np.asarray(jobs), np.asarray(counts)
        runtime = self._recorded.runtime[jobs]
        if not self.known:
            return np.where(counts == self._recorded.processors[jobs], runtime, np.nan)
        ratio = self._g(self._row[jobs], counts) / self._reference_g[jobs]
        return np.asarray(runtime * ratio, float)

    def tabled(self) -> Tabled | None:
        """Return all runtimes in one table, to the bit of `runtimes`; None where there is none."""
        if self._table is None:
            return None
        runtimes = self._recorded.runtime.copy()
        return Tabled(self._table, self._row, self._reference_g, runtimes)

    def _fill(self, rows: IntArray) -> None:
        assert self._table is not None
        counts = np.arange(1, self._curves.processors + 1)
        at_once = max(1, _BLOCK // len(counts))
        self._table[rows, 0] = np.nan
        for start in range(0, len(rows), at_once):
            block = rows[start : start + at_once]
            g = self._curves.g(np.repeat(block, len(counts)), np.tile(counts, len(block)))
            self._table[block, 1:] = g.reshape(len(block), -1)
        self._filled[rows] = True

    def _g(self, row: IntArray, counts: IntArray) -> FloatArray:
        if self._table is None:
            return self._curves.g(row, counts)
        missing = row[~self._filled[row]]
        if missing.size:
            self._fill(np.unique(missing))
        g: FloatArray = self._table[row, counts]
        return g

    # Counts

    def _limits(self) -> tuple[IntArray, IntArray]:
        """Return the smallest and the largest count of every job."""
        reference = self._recorded.processors
        if not self.known:
            return reference, reference
        smallest = self._curves.smallest(self._row, self._options.min_processors)
        least = np.minimum(smallest, reference)
        most = np.maximum(self._curves.limits(self._row), reference)
        return np.where(self.moldable, least, reference), np.where(self.moldable, most, reference)

    def feasible(self, job: int) -> IntArray | None:
        """Return the sorted counts the job can run on; None if all in its range are.

        The reference count is always among them.
        """
        row = self._row.item(job)
        allowed = self._curves.allowed(row)
        if allowed is None or not self.moldable[job]:
            return None
        reference = self._recorded.processors.item(job)
        least, most = self.min_processors.item(job), self.max_processors.item(job)
        key = (int(self._curves.rule[row]), least, most, reference)
        if key not in self._feasible:
            inside = allowed[(allowed >= least) & (allowed <= most)]
            self._feasible[key] = np.union1d(inside, [reference])
        return self._feasible[key]

    # Communication

    def communication_shares(self, jobs: IntArray, counts: IntArray) -> FloatArray:
        """Return the share of T(counts[i]) that job jobs[i] communicates; NaN where unknown.

        Computation and communication have noise of their own (``moldability.split_noise``),
        drawn once for a job and count; together they are the run's time.
        """
        jobs, counts = np.asarray(jobs), np.asarray(counts)
        if not self.known:
            return np.full(len(jobs), np.nan)
        if len(jobs) == 1 and self._table is not None:
            share = self._split_of(self._row.item(jobs.item(0)))[counts]
        else:
            share = np.array(self._curves.communication(self._row[jobs], counts), float)
        disturb(share, self._like[jobs], counts, self._split_key, self._options.split_noise)
        return share

    def _split_of(self, row: int) -> FloatArray:
        """Return an application's share of communication at every count, from 0 processors on."""
        split = self._split.get(row)
        if split is None:
            counts = np.arange(self._curves.processors + 1)
            split = np.full(len(counts), np.nan)
            split[1:] = self._curves.communication(np.full(len(counts) - 1, row), counts[1:])
            self._split[row] = split
        return split

    def repetition(self) -> Mapping[str, float]:
        """Return how much repeats, and how noisily.

        Returns
        -------
        mapping of str to float
            ``sizes_per_application`` (0 where sizes do not repeat),
            ``noise_spread`` (standard deviation of ln epsilon over jobs) and
            ``median_noise`` (median of |ln epsilon|), both NaN where scales
            are unknown.
        """
        logarithms = np.log(self.noise) if self.known else np.full(1, np.nan)
        sizes = 0 if self._scales.class_scale is None else self._scales.class_scale.shape[1]
        return {
            "sizes_per_application": sizes,
            "noise_spread": float(np.std(logarithms)),
            "median_noise": float(np.median(np.abs(logarithms))),
        }
