"""Scales of jobs: the serial time w of a run, its nominal part, and the size that users state."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from workloads.repetition import assign_classes, class_quotas
from workloads.shapes.base import Shapes
from workloads.streams import Streams

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

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
    plain = recorded.runtime / shapes.g(application, recorded.processors)
    median = median_by(plain, application, len(shapes))
    scale = solve_scale(shapes, application, recorded, median[application], size_exponent)
    epsilon = np.exp(noise * streams("truth.noise").standard_normal(jobs))
    stated = np.exp(size_noise * streams("truth.size").standard_normal(jobs))
    return Scales(
        application=application,
        size_class=np.full(jobs, -1, np.int64),
        scale=scale,
        noise=epsilon,
        size=scale / epsilon * stated,
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
