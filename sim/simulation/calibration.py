"""Runs made before the start, so that a predictor has something to learn from; under load too."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from predictors.base import Observation
from sim.machine.base import Machine
from workloads.base import GroundTruth, Trace
from workloads.streams import Streams
from workloads.truth.ground_truth import Truth
from workloads.truth.scales import Recorded

if TYPE_CHECKING:
    from sim.machine.shared import Shared

KNOWN = ("application", "size_class", "size", "nprocs", "runtime")
"""What is known of a run before the start."""
USUAL_RUNS = 3
"""Calibration runs of each application of a model."""


def runs_before(asked: int | None, trace: Trace) -> int:
    """Return how many runs of each application come before the start.

    Parameters
    ----------
    asked : int or None
        ``predictor.calibration``; None takes `USUAL_RUNS` on jobs of a model and
        none on jobs of a file: nobody measured its applications beforehand.
    trace : Trace
    """
    if asked is not None:
        return asked
    return 0 if trace.is_recorded else USUAL_RUNS


def plan_calibration(
    truth: Truth, runs: int, processors: int, streams: Streams, time: float = 0.0
) -> list[Observation]:
    """Plan so many runs of every application, and of every class where sizes are hidden.

    Parameters
    ----------
    truth : Truth
    runs : int
        ``predictor.calibration``.
    processors : int
        Size of the machine.
    streams : Streams
        The stream ``calibration`` is used.
    time : float, seconds
        When they are known.
    """
    rng = streams("calibration")
    size_class = np.where(np.isnan(truth.size), truth.size_class, -1)
    kinds = np.unique(np.stack([truth.application, size_class]), axis=1).T.tolist()
    plan = []
    for application, label in kinds if runs else []:
        for count in truth.calibration.counts(application, runs, processors).tolist():
            runtime, size = truth.calibration.run(application, label, count, rng)
            plan.append(Observation(application, label, size, count, runtime, time))
    return plan


def charge(trace: Trace, truth: Truth, plan: Sequence[Observation]) -> tuple[Trace, Truth]:
    """Submit calibration runs as rigid jobs at the first submit time, ahead of all others.

    Returns
    -------
    trace : Trace
        With a row a run in front, ``job_id`` -1, -2, …
    truth : Truth
        That knows these jobs too; each communicates as a job of its application would.
    """
    number = len(plan)
    application, size_class, size, count, runtime = (
        np.array([getattr(run, name) for run in plan]) for name in KNOWN
    )
    rows = pd.DataFrame(
        {
            "job_id": -np.arange(1, number + 1),
            "submit_time": trace.jobs["submit_time"].iloc[0],
            "requested_processors": count,
            "reference_runtime": runtime,
            "requested_time": runtime,
        }
    )
    rows = rows.reindex(columns=trace.jobs.columns, fill_value=-1)  # of all else nothing is known
    rows = rows.astype(trace.jobs.dtypes.to_dict())
    jobs = pd.concat([rows, trace.jobs], ignore_index=True)
    models = {
        name: np.concatenate([np.full(number, -1, values.dtype), values])
        for name, values in trace.models.items()
    }
    present, first = np.unique(truth.application, return_index=True)
    never = np.zeros(number, np.bool_)
    known = truth.behind(
        first[np.searchsorted(present, application)],
        Recorded(runtime, count),
        application=application,
        size_class=size_class,
        size=size,
        moldable=never,
        malleable=never,
        min_processors=count,
        max_processors=count,
        serial_time=np.full(number, np.nan),
        serial_time_assumed=never,
    )
    return replace(trace, jobs=jobs, models=models), known


DAY = 86400.0


def under_load(
    known: Sequence[Observation], machine: Machine, truth: GroundTruth, streams: Streams
) -> list[Observation]:
    """Return calibration runs as the machine would have played them before the start.

    On a machine without background load they stay as they are. Elsewhere each
    starts at a moment of its own on processors drawn for it, under load of the
    machine's kind at another time.

    Parameters
    ----------
    known : sequence of Observation
        Runs at full speed.
    machine : Machine
    truth : GroundTruth
        For the shares of communication.
    streams : Streams
        The stream ``load.calibration`` is used.
    """
    if not machine.splits_work or not known:
        return list(known)
    from sim.machine.shared import Shared  # late: a dedicated machine has no load

    if not isinstance(machine, Shared):
        return list(known)
    past, rng = machine.elsewhen(), streams("load.calibration")
    _, first = np.unique(truth.application, return_index=True)
    job_of = dict(zip(truth.application[first].tolist(), first.tolist(), strict=True))
    jobs = np.array([job_of[run.application] for run in known])
    counts = np.array([run.nprocs for run in known])
    shares = np.nan_to_num(truth.communication_shares(jobs, counts)).tolist()
    return [_played(run, share, past, rng) for run, share in zip(known, shares, strict=True)]


def _played(
    run: Observation, share: float, machine: "Shared", rng: np.random.Generator
) -> Observation:
    """Return one run as it goes under load."""
    own = np.sort(rng.choice(machine.processors, run.nprocs, replace=False)).tolist()
    nodes, start = tuple((p, p) for p in own), float(rng.uniform(0.0, DAY))
    end = machine.completion(start, run.runtime, nodes, share)
    more = {**run.more, **machine.measured(nodes, start, end)}
    return replace(run, runtime=end - start, more=more)
