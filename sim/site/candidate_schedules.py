"""Schedules by candidate schedulers, replayed from where a log begins."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sim.policies.backfill.conservative import Conservative
from sim.policies.order import Order
from sim.results.durable import PARTIAL, replaced
from sim.results.outcome import Outcome
from sim.results.provenance import checked_inputs, code_checksum, input_files
from sim.simulation.scene import play, set_scene
from sim.site import site_logs
from sim.site.site_logs import Beginning, Outage, Recorded
from workloads.base import FloatArray, IntArray, Trace

MOST_WORK = 100_000.0
"""Reservations that conservative backfilling may look at for a job: its time grows with them."""


@dataclass(frozen=True)
class Candidate:
    """A scheduler that the machine may have had.

    Attributes
    ----------
    name : str
    config : mapping
        The whole configuration of its run.
    first : Beginning
        What it replays.
    """

    name: str
    config: Mapping[str, Any]
    first: Beginning

    @property
    def is_conservative(self) -> bool:
        """Whether every waiting job holds a reservation, so that long queues cost much."""
        return str(self.config["policy"]["backfill"]["_target_"]).endswith(Conservative.__name__)


def _played(config: Mapping[str, Any], processors: int, trace: Trace) -> Outcome:
    """Return what becomes of jobs on a machine of this size."""
    run = {**config, "cluster": {**config["cluster"], "processors": processors}}
    return play(run, run, set_scene(run, 0, trace)).outcome


class PlacedOrder:
    """An order in which some jobs, known by their submits, have places of their own.

    Parameters
    ----------
    order : Order
        Of all others.
    submits : sequence of float, seconds
        Ascending.
    places : sequence of float, optional
        Without them they go ahead of all others.

    Examples
    --------
    >>> from sim.policies.order import FirstComeFirstServed
    >>> one = np.array([1, 1])
    >>> asked = 6.0, np.array([4.0, 5.0]), one, one.astype(float)
    >>> PlacedOrder(FirstComeFirstServed(), [5.0]).keys(*asked).tolist()
    [4.0, -inf]
    >>> PlacedOrder(FirstComeFirstServed(), [4.0, 5.0], [1, 0]).keys(*asked).tolist()
    [1.0, 0.0]
    """

    def __init__(
        self, order: Order, submits: Sequence[float], places: Sequence[float] | None = None
    ) -> None:
        self._order, self._submits = order, np.array(submits, float)
        self._places = np.full(len(submits), -np.inf) if places is None else np.array(places)
        self.recomputed = order.recomputed

    def keys(
        self, now: float, submit: FloatArray, processors: IntArray, runtime: FloatArray
    ) -> FloatArray:
        """Return the own places, and the order's keys of all others."""
        keys = self._order.keys(now, submit, processors, runtime)
        keys = submit if keys is None else keys
        found = np.searchsorted(self._submits, submit).clip(max=len(self._submits) - 1)
        return np.where(self._submits[found] == submit, self._places[found], keys)


def with_places(config: Mapping[str, Any], order: Any, **own: object) -> dict[str, Any]:
    """Return a configuration whose queue is in an order with places of its own; `PlacedOrder`."""
    node = {"_target_": f"{__name__}.{PlacedOrder.__name__}", "order": order, **own}
    return {**config, "policy": {**config["policy"], "order": node}}


def starts(found: Recorded, candidate: Candidate, outages: list[Outage]) -> FloatArray:
    """Return when a candidate starts each job.

    Returns
    -------
    numpy.ndarray of float, shape (jobs of the log,), seconds
        NaN for jobs that were over before the begin; recorded starts for those that ran then.
    """
    config = candidate.config
    first, begins = site_logs.with_outages(candidate.first, outages)
    if begins:
        config = with_places(config, config["policy"]["order"], submits=begins)
    records = _played(config, found.processors, first.trace).records
    started = np.full(len(found.submit), np.nan)
    jobs = first.index >= 0
    started[first.index[jobs]] = records.start_time[jobs]
    return np.where(found.running_first, found.start, started)


KEPT = f"{PARTIAL}-starts"
"""Folder of the starts by candidates that an interrupted backtest has played."""


def kept_starts(
    folder: Path | None, found: Recorded, candidate: Candidate, outages: list[Outage]
) -> FloatArray:
    """Return what `starts` does, read where it was kept in a folder, else kept there.

    It is read again for the same candidate, log, begin, machine, outages, input files and code.
    """
    if folder is None:
        return starts(found, candidate, outages)
    inputs = checked_inputs(input_files(candidate.config))
    own = (candidate.name, candidate.config, found.begin, found.processors, outages)
    key = repr((code_checksum(), inputs, own))
    path = folder / KEPT / f"{hashlib.sha256(key.encode()).hexdigest()}.npy"
    if path.is_file():
        return np.asarray(np.load(path))
    started = starts(found, candidate, outages)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced(path) as made:
        np.save(made, started)
    return started


def work_of_conservative(found: Recorded, start: FloatArray) -> float:
    """Return how many reservations conservative backfilling would look at, for each job.

    The starts are by EASY, whose queue stands for the conservative one's.

    Notes
    -----
    At each end every waiting job is taken out of the plan and put back; where it fits
    is looked for among the ends of all that run and wait.
    """
    there = np.isfinite(start)
    submit, began = found.submit[there], np.maximum(start, found.submit)[there]
    end = began + found.runtime[there]
    one = np.ones(there.sum(), np.int64)
    waiting = site_logs.levels(submit, began, one)
    running = site_logs.levels(began, end, one)
    ends = np.sort(end)
    queue = waiting.at(ends)
    return float((queue * (queue + running.at(ends))).sum() / max(len(ends), 1))


MOST_PROBES, FEWEST_PROBES = 20, 3
PROBED = 2000
"""Jobs at the end of the log among which probes are put."""
DISTURBED = 0.05
"""Share of the machine's time that probes may take."""


def expected_wait(
    config: Mapping[str, Any], trace: Trace, processors: int, count: int, asked: float
) -> float:
    """Return how long a job of so many processors and seconds would wait, in the mean, seconds.

    Such jobs are put among the last ones of a log, evenly in time and so few that they
    hardly change what they measure, and all is replayed.

    Parameters
    ----------
    config : mapping
        The whole configuration of a run of rigid jobs.
    trace : Trace
    processors : int
        Of the machine.
    count : int
    asked : float
        Seconds that the job asks for and, at worst, takes.
    """
    jobs = trace.jobs.iloc[-PROBED:]
    first, last = float(jobs["submit_time"].iloc[0]), float(jobs["submit_time"].iloc[-1])
    room = DISTURBED * processors * (last - first) / (count * asked)
    number = int(np.clip(room, FEWEST_PROBES, MOST_PROBES))
    submit = first + (last - first) * (np.arange(number) + 0.5) / number
    every = pd.concat([jobs, site_logs.stand_ins(jobs, submit, asked, count)]).sort_values(
        "submit_time", kind="stable", ignore_index=True
    )
    every = every.assign(preceding_job=-1, think_time=-1.0)
    records = _played(config, processors, replace(trace, jobs=every, feedback=False)).records
    wait = (records.start_time - records.submit_time)[every["job_id"].to_numpy() < 0]
    return float(wait.mean())
