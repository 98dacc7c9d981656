"""Build the ground truth: give the jobs of a trace applications, scales and true runtimes.

And users, where a model has none: they belong to groups, and applications to a group.

References
----------
Zilber, Amit & Talby, "What is worth learning from parallel workloads? A user and
session based analysis" (ICS 2005): a few users submit most jobs, and those of one user are
alike. Tsafrir, Etsion & Feitelson (TPDS 2007) predict by a user's last two runtimes for that
reason. The numbers are those of logs of the Parallel Workloads Archive (Feitelson, Tsafrir &
Krakov, JPDC 2014), counted anew: on SDSC-SP2, LLNL-Atlas and NASA-iPSC a tenth of the users
submit 59, 53 and 45 % of the jobs, and predictions by the last two runtimes have a median
error of 27, 50 and 56 %. That users submit in sessions is left out.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from workloads.base import IntArray, Trace
from workloads.errors import WorkloadError
from workloads.logs.identity import labels_by
from workloads.shapes.analytic import Downey
from workloads.shapes.family import ParametricFamily, ResizableCurve, ShapeFamily, Shapes
from workloads.streams import Streams
from workloads.truth.assignment import (
    ModelRequests,
    choose_curves,
    class_quotas,
    draw_efficiencies,
    pick_applications,
    typical_counts,
    zipf_shares,
)
from workloads.truth.ground_truth import Truth
from workloads.truth.options import TruthOptions
from workloads.truth.scales import RecordedJobs, Scales, draw_repeated_scales, draw_single_scales


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
        Of `TruthOptions`.

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
    recorded = RecordedJobs(
        runtime=jobs["reference_runtime"].to_numpy(np.float64),
        processors=jobs["requested_processors"].to_numpy(np.int64),
    )
    _check_jobs_fit(trace, processors)
    application = _brought_applications(trace, checked)
    if "A" in trace.models:
        shapes = _model_shapes(trace, shape_family, streams("truth.shapes"), processors)
    else:
        number = checked.applications if application is None else application.max() + 1
        shapes = shape_family.draw(streams("truth.shapes"), int(number), processors)
    _check_family(shapes, shape_family, checked)
    asked = None
    knows = checked.requests == "efficiency" and shapes.known and "A" not in trace.models
    if knows:
        rng, law = streams("truth.efficiency"), (checked.efficiency, checked.efficiency_spread)
        if application is None:
            efficiency = draw_efficiencies(recorded.processors, *law, rng)
            asked = ModelRequests.by(recorded.processors, efficiency, int(checked.applications))
            shapes = asked.curves(shape_family, streams, processors)
        else:  # each has a curve that fits what it typically asks for, drawn by the same law
            typical = typical_counts(recorded.processors, application)
            efficiency = draw_efficiencies(typical, *law, rng)
            shapes = choose_curves(shape_family, streams, processors, typical, efficiency)
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


def _brought_applications(trace: Trace, options: TruthOptions) -> IntArray | None:
    """Return the applications that a model draws itself, or the log's where these are asked for.

    Those of a log are by executable where it names none, and numbered from 0.
    """
    jobs = trace.jobs
    if "A" in trace.models:
        return np.asarray(trace.models["application"], np.int64)
    if options.applications != "log":
        return None
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
) -> Shapes:
    if not isinstance(family, ParametricFamily):
        raise WorkloadError(
            f"{trace.source} draws the speedup of its jobs itself; it needs "
            f"moldability=downey, not {type(family).__name__}"
        )
    present, first = np.unique(trace.models["application"], return_index=True)
    parameters = {}
    for name in ("A", "sigma"):
        parameters[name] = np.ones(int(present[-1]) + 1)
        parameters[name][present] = np.asarray(trace.models[name], float)[first]
    return family.given(parameters["A"], parameters["sigma"], rng, processors)


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
    recorded: RecordedJobs,
    streams: Streams,
    options: TruthOptions,
    asked: ModelRequests | None,
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


GROUPS = 10
"""How many groups share the applications; with fewer applications each has its own."""

MEMBERS, ACTIVITY = 10, 1.3
"""Users of a group, whose shares of its jobs follow Zipf's law with that exponent."""

STRAY = 1.0
"""Standard deviation of ln runtime by which jobs stray from what their user usually runs."""


def with_users(trace: Trace, application: IntArray, streams: Streams) -> Trace:
    """Return a model's jobs with a user and a group each; a trace of other jobs as it is.

    Nothing else of the jobs changes: those of a group are shared out among its users, who
    each take the ones whose runtimes, but for a random factor, lie next to each other.

    Parameters
    ----------
    trace : Trace
    application : numpy.ndarray of int, shape (jobs,)
        From 0; that of `Truth`.
    streams : Streams
        Users come from the stream ``users``.

    Examples
    --------
    >>> from workloads.models.lublin import Lublin
    >>> trace = with_users(Lublin(jobs=50).trace(Streams(1)), np.arange(50) % 5, Streams(1))
    >>> trace.jobs["user"].nunique(), len(np.unique(trace.models["group"]))
    (30, 5)
    """
    if not trace.lacks_users:
        return trace
    rng = streams("users")
    applications = int(application.max()) + 1
    groups = min(GROUPS, applications)
    group = rng.permutation(np.arange(applications) % groups)[application]
    runtime = np.maximum(trace.jobs["reference_runtime"].to_numpy(float), 1.0)
    usual = np.log(runtime) + STRAY * rng.standard_normal(len(runtime))
    user = np.empty(len(group), np.int64)
    for number in range(groups):
        own = np.flatnonzero(group == number)
        taken = rng.permutation(class_quotas(len(own), zipf_shares(MEMBERS, ACTIVITY), 1))
        members = np.repeat(number * MEMBERS + 1 + np.arange(MEMBERS), taken)
        user[own[np.argsort(usual[own])]] = members
    jobs = trace.jobs.assign(user=user, executable=application + 1)
    models = {**trace.models, "group": group + 1}
    return replace(trace, jobs=jobs, models=models, lacks_users=False)


def with_applications(trace: Trace, streams: Streams) -> Trace:
    """Return a model's jobs with the applications and users that a run with its defaults has."""
    machine = trace.processors
    assert machine is not None
    return with_users(trace, build_truth(trace, Downey(), streams, machine).application, streams)
