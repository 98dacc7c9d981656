"""Runs before the start: at which processor counts, and what they take."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import pandas as pd

from workloads.base import FloatArray, IntArray
from workloads.errors import WorkloadError
from workloads.shapes.family import Shapes
from workloads.truth.assignment import median_by
from workloads.truth.options import TruthOptions
from workloads.truth.scales import Recorded, Scales, grow_shapes

LEAST_TOP = 8
"""The largest calibration count is at least this, if the machine has as many."""


def spread_powers(k: int, top: int) -> IntArray:
    """Return k powers of two spread evenly in log from 1 to at most `top`.

    Of one alone it is the middle. Where fewer than `k` powers exist, some come twice.

    Examples
    --------
    >>> spread_powers(3, 64).tolist(), spread_powers(4, 100).tolist(), spread_powers(1, 64).tolist()
    ([1, 8, 64], [1, 4, 16, 64], [8])
    """
    largest = int(top).bit_length() - 1
    exponents = np.linspace(0, largest, k) if k > 1 else np.array([largest / 2])
    return 2 ** np.floor(exponents + 0.5).astype(np.int64)


def nearest_unused(wanted: IntArray, feasible: IntArray) -> IntArray:
    """Return, sorted, for each wanted count the nearest feasible one in log not taken before.

    Where fewer counts are feasible than wanted, all of them.
    """
    free = np.ones(len(feasible), bool)
    taken = []
    for count in wanted[: len(feasible)]:
        distance = np.where(free, np.abs(np.log(feasible / count)), np.inf)
        chosen = int(distance.argmin())
        free[chosen] = False
        taken.append(int(feasible[chosen]))
    return np.sort(np.array(taken, np.int64))


def choose_counts(k: int, largest_reference: int, processors: int, feasible: IntArray) -> IntArray:
    """Return the processor counts of `k` calibration runs of one application.

    Parameters
    ----------
    k : int
        ``predictor.calibration``, at least 0.
    largest_reference : int
        Largest reference count of the application's jobs.
    processors : int
        Size of the machine.
    feasible : numpy.ndarray of int
        Sorted counts that the application can run on.

    Returns
    -------
    numpy.ndarray of int, shape (at most k,)
        Powers of two spread evenly in log between 1 and the largest reference
        count, that being at least 8 and at most the machine; or the nearest
        feasible counts. Each comes once.

    Raises
    ------
    WorkloadError
        If `k` is negative.
    """
    if k < 0:
        raise WorkloadError(f"predictor.calibration must be at least 0, got {k}")
    if k == 0:
        return np.empty(0, np.int64)
    top = min(max(largest_reference, LEAST_TOP), processors)
    return nearest_unused(spread_powers(k, top), feasible)


class Calibration:
    """Runs of a trace's applications before the start.

    Parameters
    ----------
    shapes : Shapes
        By application.
    scales : Scales
    recorded : Recorded
    options : TruthOptions
    """

    def __init__(
        self, shapes: Shapes, scales: Scales, recorded: Recorded, options: TruthOptions
    ) -> None:
        self._shapes, self._scales = shapes, scales
        self._recorded, self._options = recorded, options

    def counts(self, application: int, k: int, processors: int) -> IntArray:
        """Return the counts of `k` calibration runs of an application, rising.

        Powers of two spread evenly in log between 1 and the largest reference
        count of its jobs, that being at least 8 and at most the machine, or
        the nearest feasible counts; fewer than `k` where no more are feasible.

        Raises
        ------
        WorkloadError
            If `k` is negative or the application has no job.
        """
        references = self._reference_counts.get(application)
        if references is None:
            raise WorkloadError(f"application {application} has no job to calibrate for")
        largest = int(references.max())
        most = min(max(largest, self._shapes.largest_useful(application)), processors)
        allowed = self._shapes.allowed(application)
        inside = np.arange(1, most + 1) if allowed is None else allowed[allowed <= most]
        inside = inside[inside >= self._options.min_processors]
        feasible = np.union1d(inside, references[references <= processors])
        return choose_counts(k, largest, processors, feasible)

    @cached_property
    def _reference_counts(self) -> dict[int, IntArray]:
        """Return the reference counts of each application's jobs, sorted."""
        order = np.argsort(self._scales.application, kind="stable")
        present, first = np.unique(self._scales.application[order], return_index=True)
        groups = np.split(self._recorded.processors[order], first[1:])
        return {int(a): np.unique(group) for a, group in zip(present, groups, strict=True)}

    def run(
        self, application: int, size_class: int, nprocs: int, rng: np.random.Generator
    ) -> tuple[float, float]:
        """Run an application before the start, with a noise of its own.

        Parameters
        ----------
        application : int
        size_class : int
            Which repeated input, or -1 for the application's median nominal scale.
        nprocs : int
        rng : numpy.random.Generator
            Two numbers are drawn.

        Returns
        -------
        runtime : float
            Seconds.
        size : float
            As predictors see it; NaN where hidden.

        Raises
        ------
        WorkloadError
            If runtimes at other counts are unknown, or there is no such class.
        """
        if not self._shapes.known:
            raise WorkloadError("moldability=none has no runtimes to calibrate on")
        nominal, size = self._scale(application, size_class)
        epsilon, error = np.exp(
            rng.standard_normal(2) * [self._options.noise, self._options.size_noise]
        )
        scale, of = nominal * float(epsilon), np.array([application])
        median, exponent = self._scales.median, self._options.size_exponent
        shapes, row = grow_shapes(self._shapes, of, np.array([scale]), median, exponent)
        runtime = scale * shapes.g(row, np.array([nprocs])).item()
        if self._options.size == "hidden":
            return runtime, np.nan
        return runtime, nominal * float(error) if size is None else size

    def _scale(self, application: int, size_class: int) -> tuple[float, float | None]:
        """Return the nominal scale and, if it repeats, the size that predictors see."""
        scales = self._scales
        if size_class < 0:
            return self._medians.item(application), None
        if scales.class_scale is None or scales.class_size is None:
            if (application, size_class) not in self._class_medians:
                raise WorkloadError(f"there is no size class {size_class} with workload.sizes=null")
            return self._class_medians[application, size_class], None
        if size_class >= scales.class_scale.shape[1]:
            raise WorkloadError(
                f"size class must be below workload.sizes={scales.class_scale.shape[1]}, "
                f"got {size_class}"
            )
        where = (application, size_class)
        return scales.class_scale[where].item(), scales.class_size[where].item()

    @cached_property
    def _medians(self) -> FloatArray:
        """Return the median nominal scale of each application."""
        scales = self._scales
        return median_by(scales.nominal, scales.application, len(self._shapes))

    @cached_property
    def _class_medians(self) -> Mapping[tuple[int, int], float]:
        """Return the median nominal scale of the jobs of each application and class."""
        labels = pd.MultiIndex.from_arrays([self._scales.application, self._scales.size_class])
        medians = pd.Series(self._scales.nominal, index=labels).groupby(level=[0, 1]).median()
        return dict(zip(medians.index.tolist(), medians.tolist(), strict=True))
