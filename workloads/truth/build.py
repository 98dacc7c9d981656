"""Build the ground truth: give the jobs of a trace applications, scales and true runtimes."""

from dataclasses import replace
from typing import Any

import numpy as np

from workloads.base import IntArray, Trace
from workloads.errors import WorkloadError
from workloads.logs.identity import labels_by
from workloads.shapes.family import ParametricFamily, ResizableCurve, ShapeFamily, Shapes
from workloads.streams import Streams
from workloads.truth.assignment import class_quotas, pick_applications, zipf_shares
from workloads.truth.ground_truth import Truth
from workloads.truth.options import TruthOptions
from workloads.truth.requests import Asked, choose_curves, draw_efficiencies, typical_counts
from workloads.truth.scales import Recorded, Scales, draw_repeated_scales, draw_single_scales


def build_truth(
    trace: Trace,
    shape_family: ShapeFamily,
    streams: Streams,
    processors: int,
    **options: Any,
) -> Truth:
    """Give every job of a trace an application, a scale and its true runtimes.

    Parameters
    ----------
    trace : Trace
        Its jobs must fit on the machine. Where ``trace.models`` has per-job
        ``application``, ``A`` and ``sigma``, these are taken.
    shape_family : ShapeFamily
        From which applications are drawn, such as `workloads.shapes.analytic.Downey`.
    streams : Streams
        One is opened for each purpose.
    processors : int
        Size of the machine.
    **options
        See `TruthOptions`: applications=50, popularity=1.0, sizes=None,
        size="known", size_noise=0.1, noise=0.02, share=1.0, malleable=1.0,
        size_exponent=0.0, min_processors=1, split_noise=0.05.

    Raises
    ------
    WorkloadError
        If an option is out of range (the message names its key), if options
        do not go together, or if a job is wider than the machine.

    Examples
    --------
    >>> import pandas as pd
    >>> from workloads.shapes.analytic import Downey
    >>> jobs = pd.DataFrame({
    ...     "job_id": [1, 2], "requested_processors": [4, 16],
    ...     "reference_runtime": [600.0, 90.0], "executable": [-1, -1]})
    >>> truth = build_truth(Trace(jobs, 64, "two jobs"), Downey(), Streams(seed=1), 64)
    >>> truth.runtimes_at(np.array([0, 1]), np.array([4, 16])).tolist()
    [600.0, 90.0]
    >>> bool((truth.runtimes(0, np.array([1, 2])) > 600).all())
    True

    Notes
    -----
    A job of zero seconds is rigid and takes part in the drawing of scales as one of a second.
    """
    checked = TruthOptions(**options)
    jobs = trace.jobs
    recorded = Recorded(
        runtime=jobs["reference_runtime"].to_numpy(np.float64),
        processors=jobs["requested_processors"].to_numpy(np.int64),
    )
    _check_jobs_fit(trace, processors)
    shapes, application = _draw_shapes(trace, shape_family, streams, processors, checked)
    _check_family(shapes, shape_family, checked)
    asked = None
    knows = checked.requests == "efficiency" and shapes.known and "A" not in trace.models
    if knows:
        asked, shapes = _fit_requests(
            shape_family, application, recorded.processors, streams, processors, checked
        )
    timed = recorded.runtime > 0
    drawn = replace(recorded, runtime=np.where(timed, recorded.runtime, 1.0))
    scales = _draw_scales(shapes, application, drawn, streams, checked, asked)
    # Jobs of a log whose sizes hide are classed by what they request.
    if checked.size != "known" and checked.sizes is None and "request_class" in jobs:
        scales = replace(scales, size_class=jobs["request_class"].to_numpy(np.int64))
    moldable = timed & shapes.known & (streams("truth.share").random(len(jobs)) < checked.share)
    if knows:
        moldable &= recorded.processors > 1
    malleable = moldable & (streams("truth.malleable").random(len(jobs)) < checked.malleable)
    split_key = streams.key("truth.split")
    return Truth(shapes, scales, recorded, moldable, malleable, checked, split_key)


def _check_jobs_fit(trace: Trace, processors: int) -> None:
    wide = trace.jobs["requested_processors"] > processors
    if not len(trace.jobs):
        raise WorkloadError(f"{trace.source}: there are no jobs")
    if wide.any():
        job = trace.jobs.loc[wide].iloc[0]
        raise WorkloadError(
            f"{trace.source}: job {int(job['job_id'])} needs {int(job['requested_processors'])} "
            f"processors, the machine has cluster.processors={processors}"
        )


def _draw_shapes(
    trace: Trace,
    family: ShapeFamily,
    streams: Streams,
    processors: int,
    options: TruthOptions,
) -> tuple[Shapes, IntArray | None]:
    """Return the shapes, and the application of each job where the jobs bring it."""
    rng = streams("truth.shapes")
    if "A" in trace.models:
        return _model_shapes(trace, family, rng, processors)
    if options.applications == "log":
        application = _logged_applications(trace)
        return family.draw(rng, int(application.max()) + 1, processors), application
    return family.draw(rng, int(options.applications), processors), None


def _fit_requests(
    family: ShapeFamily,
    application: IntArray | None,
    processors: IntArray,
    streams: Streams,
    machine: int,
    options: TruthOptions,
) -> tuple[Asked | None, Shapes]:
    """Return what the jobs of a model ask for, and curves that fit requests.

    Where the jobs bring their applications, each has a curve that fits what it typically
    asks for, drawn by the same law.
    """
    rng = streams("truth.efficiency")
    law = (options.efficiency, options.efficiency_spread)
    if application is not None:
        typical = typical_counts(processors, application)
        efficiency = draw_efficiencies(typical, *law, rng)
        return None, choose_curves(family, streams, machine, typical, efficiency)
    efficiency = draw_efficiencies(processors, *law, rng)
    asked = Asked.by(processors, efficiency, int(options.applications))
    return asked, asked.curves(family, streams, machine)


def _logged_applications(trace: Trace) -> IntArray:
    """Return the log's applications, by executable where it names none; numbered from 0."""
    jobs = trace.jobs
    if "application" in jobs:
        return np.unique(jobs["application"], return_inverse=True)[1].astype(np.int64)
    if not (jobs["executable"] >= 0).any():
        raise WorkloadError(
            f"workload.applications=log: {trace.source} records no applications; give their "
            "number, such as workload.applications=50"
        )
    return labels_by(jobs, "executable")


def _model_shapes(
    trace: Trace, family: ShapeFamily, rng: np.random.Generator, processors: int
) -> tuple[Shapes, IntArray]:
    if not isinstance(family, ParametricFamily):
        raise WorkloadError(
            f"{trace.source} draws the speedup of its jobs itself; it needs "
            f"moldability=downey, not {type(family).__name__}"
        )
    application = np.asarray(trace.models["application"], np.int64)
    present, first = np.unique(application, return_index=True)
    parameters = {}
    for name in ("A", "sigma"):
        parameters[name] = np.ones(int(present[-1]) + 1)
        parameters[name][present] = np.asarray(trace.models[name], float)[first]
    shapes = family.given(parameters["A"], parameters["sigma"], rng, processors)
    return shapes, application


def _check_family(shapes: Shapes, family: ShapeFamily, options: TruthOptions) -> None:
    name = type(family).__name__
    if options.size_exponent > 0.0 and not isinstance(shapes.curve, ResizableCurve):
        raise WorkloadError(
            f"moldability.size_exponent must be 0 for shapes of {name}, which have no average "
            f"parallelism; got {options.size_exponent:g}"
        )
    if options.sizes is not None and not shapes.known:
        raise WorkloadError(
            f"workload.sizes must be null with {name}, where serial times are unknown; "
            f"got {options.sizes}"
        )


def _draw_scales(
    shapes: Shapes,
    application: IntArray | None,
    recorded: Recorded,
    streams: Streams,
    options: TruthOptions,
    asked: Asked | None,
) -> Scales:
    shares = zipf_shares(len(shapes), options.popularity)
    if options.sizes is None:
        if asked is not None:
            application = asked.assign(shapes, asked.quotas(options.popularity, 1), streams)
        elif application is None:
            uniforms = streams("truth.application").random(len(recorded.runtime))
            application = pick_applications(uniforms, shares)
        return draw_single_scales(shapes, application, recorded, streams, options)
    if application is not None:
        raise WorkloadError(
            f"workload.sizes must be null where the jobs bring their applications "
            f"(workload.applications=log, workload=downey): repeated sizes assign application "
            f"and size together; got {options.sizes}; workload.applications=50 invents some"
        )
    if asked is None:
        quotas = class_quotas(len(recorded.runtime), shares, options.sizes)
    else:
        quotas = asked.quotas(options.popularity, options.sizes)
    return draw_repeated_scales(shapes, quotas, recorded, streams, options, asked)
