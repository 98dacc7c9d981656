"""Calibration runs on a shared machine: they too meet load, and their load is measured."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from predictors.base import Observation
from sim.machine import Machine
from sim.shared import Shared
from workloads.base import GroundTruth
from workloads.streams import Streams

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
    if not isinstance(machine, Shared) or not known:
        return list(known)
    past, rng = machine.elsewhen(), streams("load.calibration")
    _, first = np.unique(truth.application, return_index=True)
    job_of = dict(zip(truth.application[first].tolist(), first.tolist(), strict=True))
    jobs = np.array([job_of[run.application] for run in known])
    counts = np.array([run.nprocs for run in known])
    shares = np.nan_to_num(truth.communication_shares(jobs, counts)).tolist()
    return [_played(run, share, past, rng) for run, share in zip(known, shares, strict=True)]


def _played(
    run: Observation, share: float, machine: Shared, rng: np.random.Generator
) -> Observation:
    """Return one run as it goes under load."""
    own = np.sort(rng.choice(machine.processors, run.nprocs, replace=False)).tolist()
    nodes, start = tuple((p, p) for p in own), float(rng.uniform(0.0, DAY))
    end = machine.completion(start, run.runtime, nodes, share)
    more = {**run.more, **machine.measured(nodes, start, end)}
    return replace(run, runtime=end - start, more=more)
