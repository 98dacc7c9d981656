"""What repeats: applications, inputs, and each run's scale, its serial time w."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workloads.base import FloatArray, IntArray
from workloads.shapes.family import Shapes
from workloads.streams import Streams
from workloads.truth.assignment import assign_classes, median_by
from workloads.truth.options import TruthOptions
from workloads.truth.requests import Asked

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
    quotas: IntArray,
    recorded: Recorded,
    streams: Streams,
    options: TruthOptions,
    asked: Asked | None = None,
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
    model = Recorded(recorded.runtime[drawn], recorded.processors[drawn])
    plain = (model.runtime / shapes.g(owner, model.processors)).reshape(-1, sizes)
    median = np.median(plain, axis=1)
    class_scale = solve_scale(shapes, owner, model, median[owner], exponent)
    grown, row = grow_shapes(shapes, owner, class_scale, median, exponent)
    predicted, count_index = _predicted_runtimes(grown, row, class_scale, recorded)
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


def _predicted_runtimes(
    shapes: Shapes, row: IntArray, class_scale: FloatArray, recorded: Recorded
) -> tuple[FloatArray, IntArray]:
    """Return ln T of each class at each count that is asked for, and each job's row in it.

    `row` is the place of each class in `shapes`.
    """
    counts, count_index = np.unique(recorded.processors, return_inverse=True)
    g = shapes.g(np.tile(row, len(counts)), np.repeat(counts, len(row)))
    return np.log(class_scale) + np.log(g).reshape(len(counts), len(row)), count_index
