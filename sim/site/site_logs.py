"""A site's log: how a command is given it, what it recorded, and what a replay begins with.

What it recorded is a schedule, and how much of the machine was missing, as far as it shows.
"""

import argparse
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictors.cli.terminal import warnings_last
from sim.composition import configuration, quoted
from sim.errors import ConfigError, SimError
from sim.results.durable import answering
from sim.results.outcome import NOBODY, Levels, least_over
from sim.simulation.build import build
from sim.simulation.scene import source_of
from workloads.base import DIGITS, BoolArray, FloatArray, IntArray, Trace
from workloads.logs.formats import guess_format
from workloads.logs.log import LogWorkload
from workloads.streams import Streams

RIGID = ("moldability=none", "predictor=user_estimate")
"""What replays of rigid jobs need."""


def answered(
    prog: str, about: str, keys: str, logs: str, given: Sequence[str] | None,
    answer: Callable[[Sequence[str]], int],
) -> int:  # fmt: skip
    """Answer a command line of a log and overrides, warnings last; return the exit status.

    `keys` are overrides of its own, `logs` what it takes for a log; `answer` takes the words.
    """
    told = f"Overrides are those of moldsim run (workload.*, cluster.processors, seed), and {keys}."
    parser = argparse.ArgumentParser(prog=prog, description=about, epilog=told)
    words = f"{logs}; overrides"
    parser.add_argument("words", nargs="*", metavar="LOG KEY=VALUE", help=words)
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    return warnings_last()(answering(answer))(parser.parse_args(given).words)


def composed(overrides: Sequence[str]) -> dict[str, Any]:
    """Return the configuration of a replay of rigid jobs; what Hydra refuses in a line."""
    return configuration([*RIGID, *overrides])


def of_log(given: Sequence[str]) -> list[str]:
    """Return the overrides of a command line whose first word may be a log.

    Its format is known by content unless ``workload=`` says it.

    Raises
    ------
    ConfigError
        If one of them has no effect on what is done with a log.
    """
    is_log = bool(given) and ("=" not in given[0] or Path(given[0]).exists())
    rest = list(given[1:] if is_log else given)
    for one in rest:
        if one.partition("=")[0].lstrip("+~").partition(".")[0] in ("policy", "baseline"):
            raise ConfigError(
                f"{one}: has no effect here; workload.*, cluster.processors, seed have"
            )
    if not is_log:
        return rest
    named = any(one.startswith("workload=") for one in rest)
    kind = [] if named else [f"workload={guess_format(given[0])}"]
    return [*kind, f"workload.path={quoted(str(given[0]))}", *rest]


def read_source(
    config: Mapping[str, Any], quiet: bool = False, waits: bool = False
) -> tuple[Trace, int | None]:
    """Return all jobs of a log, and the machine's size that is asked for.

    Parameters
    ----------
    config : mapping
        The whole configuration.
    quiet : bool
        Whether what is left out was told before.
    waits : bool
        Whether a log without recorded waits is refused.

    Raises
    ------
    SimError, WorkloadError
        If it cannot be read, or is no log, or lacks waits that are wanted.
    """
    source = build(source_of(config["workload"]), "workload")
    if not isinstance(source, LogWorkload):
        raise SimError("a model has no recorded machine: give a log, or workload=archive")
    log = source.read_part()
    if waits and not (log.jobs["wait_time"] >= 0).any():
        raise SimError(f"{log.source}: {NO_WAITS}")
    asked = config["cluster"]["processors"]
    teller = logging.getLogger(LogWorkload.__module__)
    teller.disabled = quiet
    try:
        return source.trace_of(log, Streams(config["seed"], 0), asked), asked
    finally:
        teller.disabled = False


WEEK, DAY = 7 * 86400.0, 86400.0
QUEUED = 0.05
"""Share of a week with waiting jobs from which on its fullest instant says something."""
SKIPPED = 0.1
"""Share of the jobs that may be submitted before an automatic begin."""
NO_WAITS = "it records no wait of any job, so that no schedule can be compared"
AHEAD = 1.0
"""Seconds before the begin at which running jobs are put on the machine."""


def levels(begin: FloatArray, end: FloatArray, weight: FloatArray | IntArray) -> Levels:
    """Return how much is held over time: each weight from its begin to its end.

    Examples
    --------
    >>> held = levels(np.array([0.0, 5.0]), np.array([10.0, 10.0]), np.array([2, 3]))
    >>> held.times.tolist(), held.values.tolist(), held.area(np.array([10.0])).tolist()
    ([0.0, 5.0, 10.0], [2.0, 5.0, 0.0], [35.0])
    """
    instants = np.round(np.concatenate([begin, end]), DIGITS)
    times, place = np.unique(instants, return_inverse=True)
    change = np.bincount(place, np.concatenate([weight, -np.asarray(weight)]), len(times))
    return Levels(times, np.cumsum(change))


@dataclass(frozen=True)
class Recorded:
    """Jobs of a log with the schedule that it recorded.

    Attributes
    ----------
    trace : Trace
    processors : int
        Of the machine.
    source_of_size : str
        Who says so: ``cluster.processors``, ``log``, or ``recorded`` where the most
        processors that were held at once stand in.
    begin : float
        Seconds on the log's clock from which on schedules are compared.
    """

    trace: Trace
    processors: int
    source_of_size: str
    begin: float

    def _column(self, name: str) -> NDArray[np.float64]:
        return self.trace.jobs[name].to_numpy(np.float64)

    @cached_property
    def submit(self) -> FloatArray:
        """Submit times, shape (jobs,), seconds."""
        return self._column("submit_time")

    @cached_property
    def known(self) -> BoolArray:
        """Jobs whose wait is recorded."""
        return self._column("recorded_wait_time") >= 0

    @cached_property
    def wait(self) -> FloatArray:
        """Recorded waits, 0 where unknown, seconds."""
        return np.maximum(self._column("recorded_wait_time"), 0.0)

    @cached_property
    def start(self) -> FloatArray:
        """Recorded starts; the submit where the wait is unknown, seconds."""
        return self.submit + self.wait

    @cached_property
    def runtime(self) -> FloatArray:
        """Recorded runtimes, seconds."""
        return self._column("reference_runtime")

    @cached_property
    def end(self) -> FloatArray:
        """Recorded ends, seconds."""
        return self.start + self.runtime

    @cached_property
    def count(self) -> IntArray:
        """Processors of each job."""
        return self.trace.jobs["requested_processors"].to_numpy(np.int64)

    @cached_property
    def held(self) -> Levels:
        """Processors that were held over time."""
        return levels(self.start, self.end, self.count)

    @cached_property
    def queued(self) -> Levels:
        """Jobs that waited over time."""
        return levels(self.submit, self.start, np.ones(len(self.submit), np.int64))

    @cached_property
    def widest_waiting(self) -> Levels:
        """Processors of the widest job that waited, over time."""
        waits = np.flatnonzero(self.start > self.submit)
        instants = np.round(np.concatenate([self.submit[waits], self.start[waits]]), DIGITS)
        times, place = np.unique(instants, return_inverse=True)
        begin, end = np.split(place, 2)
        some = end > begin
        least = least_over(begin[some], end[some], -self.count[waits][some], len(times))
        return Levels(times, np.where(least == NOBODY, 0.0, -least))

    @cached_property
    def running_first(self) -> BoolArray:
        """Jobs that ran at the begin."""
        return (self.start < self.begin) & (self.end > self.begin)

    @cached_property
    def waiting_first(self) -> BoolArray:
        """Jobs that waited at the begin."""
        return (self.submit < self.begin) & (self.start >= self.begin)

    @cached_property
    def judged(self) -> BoolArray:
        """Jobs whose waits are compared: those that started from the begin on."""
        return self.known & (self.start >= self.begin)

    @cached_property
    def weeks(self) -> FloatArray:
        """Borders of weeks from the begin to the last submit, at least one week, seconds."""
        last = max(float(self.submit[-1]), self.begin + 1.0)
        number = max(1, int(np.ceil((last - self.begin) / WEEK)))
        return np.asarray(self.begin + WEEK * np.arange(number + 1), float)

    @cached_property
    def most_by_week(self) -> IntArray:
        """Most processors that were held at once in each week."""
        return self.held.extremes(self.weeks, np.maximum).astype(np.int64)

    @cached_property
    def telling_weeks(self) -> BoolArray:
        """Weeks in which jobs waited long enough for the most to show what there was."""
        waiting = replace(self.queued, values=(self.queued.values > 0).astype(float))
        return np.diff(waiting.area(self.weeks)) / WEEK >= QUEUED

    @cached_property
    def free(self) -> Levels:
        """Processors that were free over time, of those that each week shows to be there."""
        edges = np.append(self.weeks[:-1], self.weeks[-2] + WEEK)
        most = np.minimum(self.most_by_week, self.processors)
        there = np.where(self.telling_weeks, most, self.processors)
        capacity = Levels(edges, np.append(there, self.processors).astype(float))
        times = np.unique(np.concatenate([edges, self.held.times]))
        return Levels(times, np.maximum(capacity.at(times) - self.held.at(times), 0.0))

    @cached_property
    def met_nobody(self) -> BoolArray:
        """Jobs that found no other job waiting, and enough processors free, at their submit."""
        nobody = self.queued.at(self.submit, before=True) == 0
        enough = self.free.at(self.submit, before=True) >= self.count
        return np.asarray(self.judged & nobody & enough & (self.submit >= self.begin), np.bool_)

    @cached_property
    def seconds_beside(self) -> FloatArray:
        """How long each job waited while each of those that waited would have fitted, seconds.

        No scheduler that starts what fits leaves anybody waiting then, not even for a wider one.
        """
        times = np.unique(np.concatenate([self.free.times, self.widest_waiting.times]))
        room = self.free.at(times) >= self.widest_waiting.at(times)
        enough = Levels(times, room.astype(float))
        begin = np.maximum(self.submit, self.begin)
        return np.where(self.judged, enough.area(self.start) - enough.area(begin), 0.0)


def recorded_schedule(trace: Trace, asked: int | None) -> Recorded:
    """Return what a log recorded, from its first submit on; a size that is asked for counts.

    Raises
    ------
    SimError
        If submits are not the log's own, or it records no wait.
    """
    if trace.altered is not None:
        raise SimError(f"{trace.source}: its times are not the log's: {trace.altered}")
    jobs = trace.jobs
    if "recorded_wait_time" not in jobs or not (jobs["recorded_wait_time"] >= 0).any():
        raise SimError(f"{trace.source}: {NO_WAITS}")
    source = "cluster.processors" if asked else "recorded" if trace.size_by_use else "log"
    size = asked or trace.processors or 1
    return Recorded(trace, size, source, float(jobs["submit_time"].iloc[0]))


def steady_begin(found: Recorded) -> float:
    """Return the first instant at which the machine is as full as it is half of the time.

    Before it a log that was cut from a longer one, by the ends of its jobs or by their
    submits, lacks most of those that ran. It is the first submit where that would pass
    over more than a tenth of the jobs.
    """
    first, last = float(found.submit[0]), float(found.submit[-1])
    held = found.held
    inside = (held.times >= first) & (held.times < last)
    lengths = np.diff(np.append(held.times[inside], last))
    if not inside.any() or lengths.sum() <= 0:
        return first
    values = held.values[inside]
    order = np.argsort(values, kind="stable")
    passed = np.cumsum(lengths[order])
    median = values[order][np.searchsorted(passed, passed[-1] / 2)]
    begin = float(held.times[inside][np.argmax(values >= median)])
    return begin if (found.submit < begin).mean() <= SKIPPED else first


@dataclass(frozen=True)
class Beginning:
    """The jobs that a replay begins with and what they are in the log.

    Attributes
    ----------
    trace : Trace
        Jobs that ran at the begin, with what was left of them; those that waited, in
        the order of their submits; those that came later.
    index : numpy.ndarray of int, shape (jobs of the replay,)
        Which job of the log each is.
    """

    trace: Trace
    index: IntArray


def beginning(found: Recorded) -> Beginning:
    """Return the jobs of a replay: the machine in use first, then the queue, then the rest."""
    parts = (found.running_first, found.waiting_first, found.submit >= found.begin)
    index = np.concatenate([np.flatnonzero(part) for part in parts])
    jobs = found.trace.jobs.iloc[index].reset_index(drop=True)
    ran, asked, put = found.running_first[index], jobs["requested_time"], found.begin - AHEAD
    runtime = np.where(ran, found.end[index] - put, found.runtime[index])
    left = np.maximum(asked - (put - found.start[index]), runtime.clip(1))
    jobs = jobs.assign(
        submit_time=np.where(ran, put, np.maximum(found.submit[index], found.begin)),
        reference_runtime=runtime,
        requested_time=np.where(ran, left, asked),
        preceding_job=-1,
        think_time=-1.0,
    )
    return Beginning(replace(found.trace, jobs=jobs, feedback=False), index)


def stand_ins(
    jobs: pd.DataFrame, submit: FloatArray, runtime: float | FloatArray, count: int | IntArray
) -> pd.DataFrame:
    """Return jobs without numbers of a log that are submitted then, as its columns have them.

    They ask for no more time than they take, seconds.
    """
    return jobs.iloc[[0] * len(submit)].assign(
        job_id=-1 - np.arange(len(submit)),
        submit_time=submit,
        reference_runtime=runtime,
        requested_time=runtime,
        requested_processors=count,
    )


def dates(found: Recorded) -> pd.Series:
    """Return the month in which each job was submitted, or 30 days where there are no dates."""
    if found.trace.epoch is not None:
        seconds = found.trace.epoch + found.submit
        when = pd.to_datetime(pd.Series(seconds), unit="s", errors="coerce")
        if when.notna().all():
            return when.dt.strftime("%Y-%m")
    months = ((found.submit - found.submit[0]) // (30 * DAY)).astype(int)
    return pd.Series([f"days {30 * m} to {30 * (m + 1)}" for m in months])


FULL = 0.98
"""Share of the machine that counts as all of it."""
GAP = 3600.0
"""Shortest time without a start that may be an outage, seconds."""
FITTING = 3
"""So many jobs that would have fitted wait through a gap that is an outage."""
PIECES = 32
"""Parts into which missing processors are cut, so that they go as soon as some are free."""
MARK = 1.0 / 128
"""Seconds before an outage's begin at which it takes its processors; no log resolves them."""


@dataclass(frozen=True)
class Outage:
    """Processors that were missing for a while.

    Attributes
    ----------
    begin, end : float, seconds
    processors : int
        How many were missing.
    """

    begin: float
    end: float
    processors: int


def low_weeks(found: Recorded) -> list[Outage]:
    """Return the weeks whose most is below the machine although jobs waited."""
    most = found.most_by_week
    low = found.telling_weeks & (most < FULL * found.processors)
    return [
        Outage(float(begin), float(begin + WEEK), int(found.processors - held))
        for begin, held in zip(found.weeks[:-1][low], most[low], strict=True)
    ]


def gaps(found: Recorded) -> list[Outage]:
    """Return the times without any start in which each of the waiting jobs would have fitted.

    So none of them can have been kept waiting for the room of a wider one. At least
    `FITTING` were submitted on the day before or during the gap, so that a few that are
    held alone are no outage. It begins once the widest fits: while nothing starts the
    free processors only grow.
    """
    starts = np.unique(found.start[found.start >= found.begin])
    outages = []
    for k in np.flatnonzero(np.diff(starts) >= GAP):
        begin, end = float(starts[k]), float(starts[k + 1])
        first, last = np.searchsorted(found.submit, [begin - DAY, end - GAP / 6])
        waits = found.start[:last] >= end
        if waits[first:].sum() < FITTING:
            continue
        room = found.processors - found.count[:last][waits].max()
        low, high = np.searchsorted(found.held.times, [begin, end])
        fits = np.flatnonzero(found.held.values[low:high] <= room)
        if not fits.size:
            continue
        since = float(found.held.times[low + fits[0]])
        free = found.processors - found.held.values[low + fits[0]]
        if end - since >= GAP:
            outages.append(Outage(since, end, int(free)))
    return outages


def outages_of(found: Recorded) -> list[Outage]:
    """Return all outages that the log shows; a gap counts with what its week lacks not."""
    low = low_weeks(found)
    lacking = {outage.begin: outage.processors for outage in low}
    more = []
    for gap in gaps(found):
        week = found.begin + WEEK * np.floor((gap.begin - found.begin) / WEEK)
        left = gap.processors - lacking.get(float(week), 0)
        if left > 0:
            more.append(replace(gap, processors=left))
    return sorted([*low, *more], key=lambda outage: outage.begin)


def with_outages(first: Beginning, outages: Sequence[Outage]) -> tuple[Beginning, list[float]]:
    """Return a replay's jobs with such that stand for missing processors, and when these begin.

    They are rigid jobs without number, -1 in the index, that run as long as the outage; a
    scheduler knows their ends.
    """
    rows, jobs = [], first.trace.jobs
    for outage in outages:
        size = -(-outage.processors // PIECES)
        widths = [min(size, outage.processors - k) for k in range(0, outage.processors, size)]
        rows += [(outage.begin - MARK, outage.end - outage.begin, width) for width in widths]
    if not rows:
        return first, []
    submit, runtime, width = map(np.array, zip(*rows, strict=True))
    taken = stand_ins(jobs, submit, runtime, width.astype(np.int64))
    every = pd.concat([taken, jobs], ignore_index=True)
    order = np.argsort(every["submit_time"].to_numpy(), kind="stable")
    index = np.concatenate([np.full(len(rows), -1), first.index])[order]
    trace = replace(first.trace, jobs=every.iloc[order].reset_index(drop=True))
    return Beginning(trace, index), np.unique(submit).tolist()
