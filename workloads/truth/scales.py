"""What repeats: applications, inputs, each run's scale, its serial time w, and runs of before."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from workloads.base import FloatArray, IntArray
from workloads.errors import WorkloadError
from workloads.shapes.family import Shapes
from workloads.streams import Streams
from workloads.truth.assignment import ModelRequests, assign_classes, median_by
from workloads.truth.options import TruthOptions

_BISECTIONS = 60


@dataclass(frozen=True)
class RecordedJobs:
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


def solve_scale(
    shapes: Shapes,
    application: IntArray,
    recorded: RecordedJobs,
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
    recorded: RecordedJobs,
    streams: Streams,
    options: TruthOptions,
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
    scale = solve_scale(shapes, application, recorded, median[application], options.size_exponent)
    epsilon = np.exp(options.noise * streams("truth.noise").standard_normal(jobs))
    error = np.exp(options.size_noise * streams("truth.size").standard_normal(jobs))
    return Scales(application, no_class, scale, epsilon, scale / epsilon * error, median)


def draw_repeated_scales(
    shapes: Shapes,
    quotas: IntArray,
    recorded: RecordedJobs,
    streams: Streams,
    options: TruthOptions,
    asked: ModelRequests | None = None,
) -> Scales:
    """Return scales that repeat: application and class of a job are chosen together.

    Each class takes the w of a randomly drawn job under its shape; then the
    jobs, in random order, each go to the class with free quota whose predicted
    runtime at the job's count is nearest in log. What is left over is the
    run's noise. Where jobs know the curve that they ask for, the distance in ln E at
    the request is added to that in ln runtime.

    Notes
    -----
    The application's median w, which the size exponent refers to, is that of
    its class scales: jobs have none before they are assigned.
    """
    jobs, classes, exponent = len(recorded.runtime), len(quotas), options.size_exponent
    sizes = classes // len(shapes)
    owner = np.repeat(np.arange(len(shapes), dtype=np.int64), sizes)
    uniforms = streams("truth.class scale").random(classes)
    drawn = (uniforms * jobs).astype(np.int64) if asked is None else asked.models(owner, uniforms)
    model = RecordedJobs(recorded.runtime[drawn], recorded.processors[drawn])
    plain = (model.runtime / shapes.g(owner, model.processors)).reshape(-1, sizes)
    median = np.median(plain, axis=1)
    class_scale = solve_scale(shapes, owner, model, median[owner], exponent)
    grown, row = grow_shapes(shapes, owner, class_scale, median, exponent)
    counts, count_index = np.unique(recorded.processors, return_inverse=True)
    g = grown.g(np.tile(row, len(counts)), np.repeat(counts, classes)).reshape(-1, classes)
    predicted = np.log(class_scale) + np.log(g)  # ln T of each class at each count asked for
    if asked is None:
        order = streams("truth.class order").permutation(jobs)
        chosen = np.empty(jobs, np.int64)
        chosen[order] = assign_classes(
            np.log(recorded.runtime[order]), count_index[order], predicted, quotas
        )
    else:
        runtimes = (np.log(recorded.runtime), predicted)
        chosen = asked.assign(shapes, quotas, streams, runtimes)
    application = owner[chosen]
    scale = solve_scale(shapes, application, recorded, median[application], exponent)
    class_size = class_scale * np.exp(
        options.size_noise * streams("truth.class size").standard_normal(classes)
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
) -> tuple[Shapes, IntArray]:
    """Return shapes with A multiplied by (scale/median)^exponent, and each element's row in them.

    With an exponent of 0 they are those of the applications, else one an element.
    """
    if exponent == 0.0:
        return shapes, application
    factor = (scale / median[application]) ** exponent
    return shapes.resized(application, factor), np.arange(len(application))


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
    """Return the processor counts of `k` calibration runs of one application, each once, rising.

    They are powers of two spread evenly in log between 1 and the largest reference count of its
    jobs, that being at least 8 and at most the machine, or the nearest feasible counts.
    """
    if k < 0:
        raise WorkloadError(f"predictor.calibration must be at least 0, got {k}")
    if k == 0:
        return np.empty(0, np.int64)
    top = min(max(largest_reference, LEAST_TOP), processors)
    return nearest_unused(spread_powers(k, top), feasible)


@dataclass(frozen=True)
class Calibration:
    """Runs of a trace's applications before the start.

    Parameters
    ----------
    shapes : Shapes
        By application.
    scales : Scales
    recorded : RecordedJobs
    options : TruthOptions
    """

    shapes: Shapes
    scales: Scales
    recorded: RecordedJobs
    options: TruthOptions

    def counts(self, application: int, k: int, processors: int) -> IntArray:
        """Return the counts of `k` calibration runs of an application, see `choose_counts`.

        They are fewer where no more are feasible.

        Raises
        ------
        WorkloadError
            If `k` is negative or the application has no job.
        """
        references = self._reference_counts.get(application)
        if references is None:
            raise WorkloadError(f"application {application} has no job to calibrate for")
        largest = int(references.max())
        most = min(max(largest, self.shapes.largest_useful(application)), processors)
        allowed = self.shapes.allowed(application)
        inside = np.arange(1, most + 1) if allowed is None else allowed[allowed <= most]
        inside = inside[inside >= self.options.min_processors]
        feasible = np.union1d(inside, references[references <= processors])
        return choose_counts(k, largest, processors, feasible)

    @cached_property
    def _reference_counts(self) -> dict[int, IntArray]:
        """Return the reference counts of each application's jobs, sorted."""
        order = np.argsort(self.scales.application, kind="stable")
        present, first = np.unique(self.scales.application[order], return_index=True)
        groups = np.split(self.recorded.processors[order], first[1:])
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
        if not self.shapes.known:
            raise WorkloadError("moldability=none has no runtimes to calibrate on")
        nominal, size = self._scale(application, size_class)
        epsilon, error = np.exp(
            rng.standard_normal(2) * [self.options.noise, self.options.size_noise]
        )
        scale, of = nominal * float(epsilon), np.array([application])
        median, exponent = self.scales.median, self.options.size_exponent
        shapes, row = grow_shapes(self.shapes, of, np.array([scale]), median, exponent)
        runtime = scale * shapes.g(row, np.array([nprocs])).item()
        if self.options.size == "hidden":
            return runtime, np.nan
        return runtime, nominal * float(error) if size is None else size

    def _scale(self, application: int, size_class: int) -> tuple[float, float | None]:
        """Return the nominal scale and, if it repeats, the size that predictors see."""
        scales = self.scales
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
        return median_by(self.scales.nominal, self.scales.application, len(self.shapes))

    @cached_property
    def _class_medians(self) -> Mapping[tuple[int, int], float]:
        """Return the median nominal scale of the jobs of each application and class."""
        labels = pd.MultiIndex.from_arrays([self.scales.application, self.scales.size_class])
        medians = pd.Series(self.scales.nominal, index=labels).groupby(level=[0, 1]).median()
        return dict(zip(medians.index.tolist(), medians.tolist(), strict=True))
