"""A finished simulation: its tables, and the state of machine and queue over time."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from sim.results.steady_state import STEADY, Figures
from sim.state.processors import NodeSets
from sim.state.records import Records, RequestRecord, Requests, Rows, are_among
from workloads.base import COLUMNS, GroundTruth, Trace

Column = Any
"""An array, or what returns the values of a column on the rows that it is handed."""


class Columns:
    """A table by column, each worked out when it is looked at, and not kept.

    It is looked at as a data frame is: by a column's name, or by which rows are to
    stay. Rows are from which to which, or their numbers in the order of the table.

    Examples
    --------
    >>> numbers = np.arange(4)
    >>> table = Columns(slice(0, 4), {"number": numbers, "double": lambda rows: 2 * numbers[rows]})
    >>> table[np.array([True, False, False, True])]["double"].tolist()
    [0, 6]
    >>> table[2:3]["number"].tolist()
    [2]
    """

    def __init__(self, rows: Rows, columns: Mapping[str, Column]) -> None:
        self._rows, self._columns = rows, columns

    def __len__(self) -> int:
        rows = self._rows
        return int(rows.stop - rows.start) if isinstance(rows, slice) else len(rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    @overload
    def __getitem__(self, key: str) -> "pd.Series[Any]": ...
    @overload
    def __getitem__(self, key: "slice | NDArray[np.bool_] | pd.Series[bool]") -> "Columns": ...
    def __getitem__(
        self, key: "str | slice | NDArray[np.bool_] | pd.Series[bool]"
    ) -> "pd.Series[Any] | Columns":
        if isinstance(key, str):
            column = self._columns[key]
            values = column(self._rows) if callable(column) else column[self._rows]
            return pd.Series(values, copy=False)
        if not isinstance(key, slice) and key.all():
            return self
        kept = key if isinstance(key, slice) else np.flatnonzero(key)
        return Columns(kept if isinstance(self._rows, slice) else self._rows[kept], self._columns)


BOUND_SECONDS = 10.0
"""Runtimes below this count as this in bounded slowdowns (policies: tau)."""


RECOVERY_PARTS = ("lost_work", "checkpoint_overhead", "restart_overhead")
"""Areas, processor-seconds, that failures, limits and checkpoints cost."""


STRETCH = ("run", "start_time", "end_time", "processors")
"""Columns of allocations that records have under the same names."""
ASKED = {
    "job": "job_id", "held": "held_processors", "wanted": "wanted_processors",
    "answered": "answered_time",
}  # fmt: skip
"""Columns of requests that records have under other names."""
TABLES = ("jobs", "allocations", "timeline", "predictions")
"""The tables of a run."""


class Frames:
    """What has the four tables of a run as data frames."""

    _frame: Callable[[str], pd.DataFrame]

    @property
    def jobs(self) -> pd.DataFrame:
        """A row a job, as ``jobs.parquet``."""
        return self._frame("jobs")

    @property
    def allocations(self) -> pd.DataFrame:
        """A row for each stretch of constant allocation, as ``allocations.parquet``."""
        return self._frame("allocations")

    @property
    def timeline(self) -> pd.DataFrame:
        """A row a change of machine or queue, as ``timeline.parquet``."""
        return self._frame("timeline")

    @property
    def predictions(self) -> pd.DataFrame:
        """A row for each started run that a predictor was asked about."""
        return self._frame("predictions")


Table = pd.DataFrame | Columns


class Tables(Frames):
    """The four tables of a run; times in seconds, areas in processor-seconds.

    Parameters
    ----------
    *tables : pandas.DataFrame or Columns
        As `TABLES` names them: jobs in submit order, allocations in order of their start.

    Notes
    -----
    A data frame is made when it is first asked for by its attribute, and kept.
    """

    def __init__(self, *tables: Table) -> None:
        self._tables = dict(zip(TABLES, tables, strict=True))

    def __reduce__(self) -> tuple[Any, ...]:
        """Go to another process as data frames."""
        return Tables, tuple(map(self._frame, TABLES))

    def columns(self, name: str) -> Table:
        """Return one of `TABLES` without making a data frame of it."""
        return self._tables[name]

    def _frame(self, name: str) -> pd.DataFrame:
        table = self._tables[name]
        if isinstance(table, Columns):
            table = self._tables[name] = pd.DataFrame({key: table[key] for key in table})
        return table


def completed(records: Records) -> NDArray[np.bool_]:
    """Return which jobs ended by themselves, shape (n,)."""
    return are_among(records.status, {"completed"})


def held_area(records: Records) -> FloatArray:
    """Return the processor-seconds that each job held over all its runs, shape (n,)."""
    runs = records.allocations
    area = runs.processors * (runs.end_time - runs.start_time)
    return np.bincount(runs.job, area, len(records.submit_time)).astype(np.float64)


def bounded(response: FloatArray, runtime: FloatArray) -> FloatArray:
    """Return bounded slowdowns."""
    return np.maximum(1.0, response / np.maximum(runtime, BOUND_SECONDS))


def recovery_columns(records: Records) -> dict[str, Column]:
    """Return what failures and limits cost each job by index; no column where nothing could."""
    paid = records.failure_costs
    if paid is None:
        return {}
    found = {name: getattr(paid, name) for name in ("evolving", *RECOVERY_PARTS)}
    return found | {"reason": _words(paid.failure_reason)}


def recorded_columns(trace: Trace) -> dict[str, Column]:
    """Return the log's names of users, and when it says that each job started, where it does.

    Where submit times are scaled, a job's recorded wait follows its scaled submit.
    """
    jobs = trace.jobs
    named = {f"{part}_name": _words(names) for part, names in trace.names().items()}
    if "recorded_wait_time" not in jobs or (jobs["recorded_wait_time"] < 0).all():
        return named
    submit, wait = (jobs[name].to_numpy() for name in ("submit_time", "recorded_wait_time"))
    return named | {"recorded_start_time": np.where(wait >= 0, submit + wait, np.nan)}


def _words(values: Any) -> Column:
    """Return the column of a sequence of words, of which many are alike."""
    words = pd.Categorical(values)
    texts = words.categories.astype("str").array
    return lambda rows: pd.Series(texts.take(words.codes[rows], allow_fill=True))


def numbered(trace: Trace, application: IntArray) -> IntArray:
    """Return applications by the log's numbers, which hold for all its windows, where it has any.

    The truth's own have no gaps among the jobs of the trace.
    """
    if "application" not in trace.words:
        return application
    own = trace.jobs["job_id"] >= 0
    return np.asarray(np.unique(trace.jobs.loc[own, "application"])[application], np.int64)


def jobs_table(trace: Trace, truth: GroundTruth, records: Records) -> Columns:
    """Return the table of ``jobs.parquet``: a row a job, in submit order."""
    jobs = {name: trace.jobs[name].to_numpy() for name in COLUMNS}
    reference: FloatArray = jobs["reference_runtime"]
    submit, start, end = records.submit_time, records.start_time, records.end_time
    area, done, serial = held_area(records), completed(records), truth.serial_time

    def efficiency(rows: Rows) -> FloatArray:
        held = area[rows]
        share: FloatArray = np.full(len(held), np.nan)
        np.divide(serial[rows], held, out=share, where=done[rows] & (held > 0))
        return share

    columns: dict[str, Column] = {
        "job_id": jobs["job_id"],
        "user": jobs["user"],
        "application": numbered(trace, truth.application),
        "size": truth.size,
        "submit_time": submit,
        "start_time": start,
        "end_time": end,
        "wait_time": lambda rows: start[rows] - submit[rows],
        "response_time": lambda rows: end[rows] - submit[rows],
        "bounded_slowdown": lambda rows: bounded(end[rows] - submit[rows], reference[rows]),
        "requested_processors": jobs["requested_processors"],
        "requested_time": jobs["requested_time"],
        "reference_runtime": reference,
        "allocated_processors": records.allocated,
        "runtime": lambda rows: end[rows] - records.run_start[rows],
        "held_area": area,
        "efficiency": efficiency,
        "believed_runtime": records.believed_runtime,
        "status": _words(records.status),
        "restarts": records.restarts,
        **recovery_columns(records),
        **recorded_columns(trace),
    }
    # Feedback can change the order.
    in_order = (np.diff(submit) >= 0).all()
    rows = slice(0, len(submit)) if in_order else np.argsort(submit, kind="stable")
    return Columns(rows, columns)


def allocations_table(trace: Trace, records: Records) -> Columns:
    """Return the table of ``allocations.parquet``: a row a stretch of constant allocation.

    ``nodes`` is null where nobody says which processors a job held.
    """
    held, names = records.allocations, trace.jobs["job_id"].to_numpy()
    nodes = NodeSets.of(held.nodes)
    columns: dict[str, Column] = {
        "job_id": lambda rows: names[held.job[rows]],
        **{name: getattr(held, name) for name in STRETCH},
        "nodes": lambda rows: pd.Series(pd.array(nodes.part(rows).texts(), dtype="str")),
    }
    return Columns(slice(0, len(held.job)), columns)


def _actual(truth: GroundTruth, records: Records) -> Column:
    """Return what each consulted run took at the count it started on, NaN if that is nothing.

    Runs that did not end and those of zero seconds say nothing of a prediction.
    A run that kept its processors took what the clock says; one that was
    resized would have taken the ground truth's time. Where the clock agrees
    with the ground truth up to its own rounding, the latter is exact.
    """
    asked, held = records.predictions, records.allocations
    pieces = np.bincount(held.job, minlength=len(records.submit_time))
    resized = pieces > records.restarts + 1
    done = completed(records)

    def part(rows: Rows) -> FloatArray:
        job = asked.job[rows]
        exact = truth.runtimes_at(job, asked.nprocs[rows])
        end = records.end_time[job]
        clock = end - records.run_start[job]
        agrees = np.abs(clock - exact) <= 4 * np.spacing(np.abs(end) + clock)
        actual = np.where(agrees | resized[job], exact, clock)
        ended = asked.final[rows] & done[job]
        return np.where(ended & (actual > 0), actual, np.nan)

    return part


def predictions_table(trace: Trace, truth: GroundTruth, records: Records) -> Columns:
    """Return the table of ``predictions.parquet``: a row for each started run asked about."""
    asked, names = records.predictions, trace.jobs["job_id"].to_numpy()
    runs, application = asked.runs_at_count, numbered(trace, truth.application)
    columns: dict[str, Column] = {
        "job_id": lambda rows: names[asked.job[rows]],
        "time": asked.time,
        "application": lambda rows: application[asked.job[rows]],
        "nprocs": asked.nprocs,
        "size": lambda rows: truth.size[asked.job[rows]],
        "predicted": asked.predicted,
        "actual": _actual(truth, records),
        "method": _words(asked.method),
        "observations": asked.observations,
        "reliability": _words(asked.reliability),
        "runs_at_count": lambda rows: pd.Series(runs[rows], dtype="Int64").where(runs[rows] > 0),
        "mean_at_count": lambda rows: np.where(runs[rows] > 0, asked.mean_at_count[rows], np.nan),
    }
    return Columns(slice(0, len(asked.job)), columns)


def requests_frame(trace: Trace, requests: Requests) -> pd.DataFrame:
    """Return the table of ``requests.parquet``: a row a request, in the order of asking."""
    kinds = RequestRecord.__annotations__
    found = pd.DataFrame(requests.asked, columns=[*kinds]).astype(kinds)
    found["job"] = trace.jobs["job_id"].to_numpy()[found["job"]]
    return found.rename(columns=ASKED)


NOBODY = np.iinfo(np.int32).max
"""Stands for "no job waits" where the least count of the waiting jobs is asked."""


@dataclass(frozen=True)
class Levels:
    """A step function of time: `values[i]` holds from `times[i]` on, 0 before.

    Attributes
    ----------
    times, values : numpy.ndarray of float, shape (k,)
        Seconds, ascending, each once, and what holds from then on.

    Examples
    --------
    >>> levels, edges = Levels(np.array([0.0, 5.0]), np.array([2.0, 7.0])), np.array([0.0, 5.0])
    >>> levels.means(edges).item(), levels.extremes(edges, np.maximum).item()
    (2.0, 2.0)
    """

    times: FloatArray
    values: FloatArray

    def at(self, instants: FloatArray, *, before: bool = False) -> FloatArray:
        """Return the values at these instants, or just before them."""
        place = np.searchsorted(self.times, instants, "left" if before else "right")
        return np.append(0.0, self.values)[place]

    def area(self, instants: FloatArray) -> FloatArray:
        """Return the integral from the first step to each instant."""
        whole = np.append(0.0, np.cumsum(self.values[:-1] * np.diff(self.times)))
        place = np.searchsorted(self.times, instants, side="right") - 1
        inside = np.maximum(place, 0)
        return np.where(
            place < 0, 0.0, whole[inside] + self.values[inside] * (instants - self.times[inside])
        )

    def means(self, edges: FloatArray) -> FloatArray:
        """Return the mean between consecutive edges, shape (k - 1,)."""
        return np.asarray(np.diff(self.area(edges)) / np.diff(edges), np.float64)

    def extremes(self, edges: FloatArray, of: np.ufunc, *, closed: bool = False) -> FloatArray:
        """Return `numpy.minimum` or `numpy.maximum` between consecutive edges, shape (k - 1,).

        The k edges ascend; a step at the later one counts where the span is closed.
        """
        first = np.searchsorted(self.times, edges[:-1], side="right")
        last = np.searchsorted(self.times, edges[1:], side="right" if closed else "left")
        values = np.concatenate([[0.0], self.values, [0.0]])
        spans = np.stack([first, np.maximum(last, first) + 1], axis=1).ravel()
        return np.asarray(of.reduceat(values, spans)[::2], np.float64)


@dataclass(frozen=True)
class Steps:
    """Machine and queue at each instant: value i holds from times[i] to times[i + 1].

    Attributes
    ----------
    times : numpy.ndarray of float, shape (m,), seconds
        Ascending, distinct; after the last nothing runs or waits.
    busy : numpy.ndarray of int, shape (m,)
        Held processors.
    queued_jobs, queued_processors : numpy.ndarray of int, shape (m,)
        Waiting jobs and the sum of their reference counts.
    queued_work : numpy.ndarray of float, shape (m,), processor-seconds
    least, least_requested : numpy.ndarray of int, shape (m,)
        Least count, and least reference count, of the waiting jobs; `NOBODY`
        where none waits.
    down : numpy.ndarray of int, shape (m,)
        Processors out of service.
    """

    times: FloatArray
    busy: IntArray
    queued_jobs: IntArray
    queued_processors: IntArray
    queued_work: FloatArray
    least: IntArray
    least_requested: IntArray
    down: IntArray


def least_over(begin: IntArray, end: IntArray, value: IntArray, length: int) -> Any:
    """Return, for each of `length` steps, the least value among the ranges that cover it.

    Range i covers steps begin[i] <= step < end[i]; none is empty. Where no range covers a step
    it is `NOBODY`.

    Notes
    -----
    A sparse table run backwards: each range is two blocks of a power of two,
    and blocks are halved from the largest size to single steps.
    """
    level = np.frexp((end - begin).astype(np.float64))[1] - 1
    least: NDArray[Any] = np.full(length, NOBODY, np.int32)
    value = value.astype(least.dtype)
    for power in range(int(level.max(initial=0)), -1, -1):
        here = level == power
        np.minimum.at(least, begin[here], value[here])
        np.minimum.at(least, end[here] - (1 << power), value[here])
        half = (1 << power) >> 1
        if half:
            halves = least.copy()
            np.minimum(halves[half:], least[:-half], out=halves[half:])
            least = halves
    return least


def _level(begin: IntArray, end: IntArray, weight: Any, length: int) -> Any:
    """Return how much is there from each step on: each weight, or 1, over its range of steps."""
    level = np.bincount(begin, weight, minlength=length + 1)
    level -= np.bincount(end, weight, minlength=length + 1)
    return np.cumsum(level, out=level)[:length]


def _whole(begin: IntArray, end: IntArray, weight: IntArray | None, length: int) -> Any:
    """Return such a level of whole numbers, in as few bytes as all but immense ones need."""
    level = _level(begin, end, weight, length)
    return level.astype(np.int32 if level.max(initial=0) < NOBODY else np.int64)


def steps_of(
    trace: Trace, truth: GroundTruth, records: Records, counted: NDArray[np.bool_]
) -> Steps:
    """Return the state of machine and queue over a run; only the waits of some jobs count."""
    held = records.allocations
    busy = _Spans(held.start_time, held.end_time, held.processors)
    job, wait = _waiting(records, counted)
    down = _outages(records)
    instants = [one for span in (busy, wait, down) for one in (span.begin, span.end)]
    times = np.unique(np.concatenate([*instants, records.submit_time[:1]]))
    join, leave = wait.places(times)
    requested, runtime = (
        trace.jobs[name].to_numpy()[job] for name in ("requested_processors", "reference_runtime")
    )
    size = len(times)
    return Steps(
        times,
        _whole(*busy.places(times), busy.value, size),
        _whole(join, leave, None, size),
        _whole(join, leave, requested, size),
        np.maximum(_level(join, leave, requested * runtime, size), 0.0),
        least_over(join, leave, np.minimum(truth.min_processors[job], requested), size),
        least_over(join, leave, requested, size),
        _whole(*down.places(times), down.value, size),
    )


def _waiting(records: Records, counted: NDArray[np.bool_]) -> "tuple[IntArray, _Spans]":
    """Return who waits, and when.

    A job waits from its submit time to its first start, and after a run that
    did not end it to the start of its next run. Waits of no length are left out.
    """
    begin, end = records.submit_time, records.start_time
    job = np.flatnonzero((end > begin) & counted)
    begin, end = begin[job], end[job]
    if records.restarts.any():
        held = records.allocations
        order = np.lexsort((held.start_time, held.job))
        who, run, back = held.job[order], held.run[order], held.start_time[order][1:]
        left = held.end_time[order][:-1]
        again = (who[1:] == who[:-1]) & (run[1:] != run[:-1]) & counted[who[1:]] & (back > left)
        job = np.concatenate([job, who[1:][again]])
        begin, end = np.append(begin, left[again]), np.append(end, back[again])
    return job, _Spans(begin, end, job)


class _Spans(NamedTuple):
    """Spans of time and what holds over each, shape (k,)."""

    begin: FloatArray
    end: FloatArray
    value: IntArray

    def places(self, times: FloatArray) -> tuple[IntArray, IntArray]:
        """Return from which step on each of them is there, and from which on no more."""
        return np.searchsorted(times, self.begin), np.searchsorted(times, self.end)


def _outages(records: Records) -> _Spans:
    """Return outages between the first submit and the last end, and how wide they are."""
    if records.failure_costs is None:
        return _Spans(np.empty(0), np.empty(0), np.empty(0, np.int64))
    out = records.failure_costs.outages
    first, last = records.submit_time.min(), records.end_time.max()
    start, end = np.clip(out.start_time, first, last), np.clip(out.end_time, first, last)
    real = end > start
    return _Spans(start[real], end[real], out.processors[real])


def _durations(steps: Steps, begin: float, end: float) -> FloatArray:
    durations = np.clip(steps.times, begin, end)
    durations[:-1] = np.diff(durations)
    durations[-1] = 0.0
    return durations


def machine_figures(steps: Steps, processors: int, begin: float, end: float) -> Figures:
    """Return figures of machine and queue between two instants, in seconds.

    Loss of capacity is the share of the machine's time that is idle while some
    waiting job could start on as few processors: on its minimum, and (the
    twin ``_requested``) on its request. Failed nodes are not idle.
    """
    durations = _durations(steps, begin, end)
    seen, length = durations > 0, end - begin
    most: Figures = {
        "max_queued_jobs": int(steps.queued_jobs[seen].max(initial=0)),
        "max_queued_processors": int(steps.queued_processors[seen].max(initial=0)),
    }
    keys = ("utilization", "loss_of_capacity", "loss_of_capacity_requested", "mean_queued_jobs")
    if length <= 0:
        return most | dict.fromkeys(keys)
    idle, total = processors - steps.busy - steps.down, processors * length
    unused = idle * durations
    shares = (
        float((steps.busy * durations).sum()) / total,
        float(unused[steps.least <= idle].sum()) / total,
        float(unused[steps.least_requested <= idle].sum()) / total,
        float((steps.queued_jobs * durations).sum()) / length,
    )
    return most | dict(zip(keys, shares, strict=True))


LATE = 0.5
"""A queue that was last empty before this share of the arrivals' time does not settle."""
LAST = 0.05
"""Share of the arrivals' time over which the work that is left waiting is taken."""
LEFT = 0.7
"""So much work left waiting does not settle, in deviations of the work that arrives."""
LEAST_JOBS = 100
"""Of fewer jobs nothing is said."""


def settling_figures(steps: Steps, begin: float, end: float, work: FloatArray) -> Figures:
    """Return whether the queue settles, so that means do not depend on the length of the run.

    It does not if it was last empty in the first half of the arrivals, or if the work that
    waits over their last twentieth is more than 0.7 deviations of the work that arrives: of
    n jobs, as they come at random, mean work x sqrt(n (1 + variation²)).

    Parameters
    ----------
    steps : Steps
    begin, end : float, seconds
        First and last submit.
    work : numpy.ndarray of float, shape (n,), processor-seconds
        Of the jobs that arrive.
    """
    length = end - begin
    if length <= 0 or len(work) < LEAST_JOBS:
        return {STEADY: None}
    waits = steps.queued_work * _durations(steps, end - LAST * length, end)
    left = float(waits.sum()) / (LAST * length)
    empty = np.flatnonzero((steps.queued_jobs == 0) & (steps.times <= end))
    last_empty = begin
    if empty.size:
        last_empty = min(float(np.append(steps.times, np.inf)[empty[-1] + 1]), end)
    deviation = float(np.sqrt((work**2).sum()))  # n (mean² + variance) under the root
    early = last_empty < begin + LATE * length
    return {STEADY: not (early or left > LEFT * deviation)}


def timeline_table(steps: Steps) -> Columns:
    """Return the table of ``timeline.parquet``: a row a change of machine or queue."""
    counts = {
        "busy_processors": steps.busy,
        "queued_jobs": steps.queued_jobs,
        "queued_processors": steps.queued_processors,
    }
    changed = np.zeros(len(steps.times), np.bool_)
    changed[:1] = True
    for values in counts.values():
        changed[1:] |= values[1:] != values[:-1]
    rows = np.flatnonzero(changed).astype(np.min_scalar_type(-changed.size))
    wide = {name: lambda at, own=own: own[at].astype(np.int64) for name, own in counts.items()}
    return Columns(rows, {"time": steps.times, **wide})


@dataclass(frozen=True)
class Outcome:
    """A finished simulation.

    Attributes
    ----------
    trace, truth, records
        By one job index.
    tables : Tables
        Over all jobs.
    steps : Steps
        Machine and queue over time; only jobs that count are in the queue.
    counted : numpy.ndarray of bool, shape (n,)
        Jobs that count in metrics: all but calibration runs that were submitted
        as jobs, which have a negative ``job_id``.
    """

    trace: Trace
    truth: GroundTruth
    records: Records
    tables: Tables
    steps: Steps
    counted: NDArray[np.bool_]

    @property
    def own(self) -> "slice | NDArray[np.bool_]":
        """What picks the jobs that count: a slice, which makes no copy, where all do."""
        return slice(None) if self.counted.all() else self.counted


def outcome(trace: Trace, truth: GroundTruth, records: Records) -> Outcome:
    """Return a finished simulation with its tables; all three arguments have one job index.

    Examples
    --------
    >>> import sim, workloads
    >>> from predictors.in_loop.user_estimate import UserEstimate
    >>> from workloads.shapes.family import NoMoldability
    >>> streams = workloads.Streams(seed=1, replication=0)
    >>> trace = workloads.Lublin(jobs=20).trace(streams, 64)
    >>> truth = workloads.build_truth(trace, NoMoldability(), streams, 64)
    >>> policy = sim.Policy(sim.FirstComeFirstServed(), sim.Easy(), sim.Request())
    >>> setup = sim.Setup(trace, truth, policy, UserEstimate(), sim.Dedicated(64))
    >>> ended = sim.outcome(trace, truth, sim.simulate(setup))
    >>> len(ended.tables.jobs)
    20
    """
    counted = trace.jobs["job_id"].to_numpy() >= 0
    steps = steps_of(trace, truth, records, np.ones(len(counted), np.bool_))
    made = Tables(
        jobs_table(trace, truth, records),
        allocations_table(trace, records),
        timeline_table(steps),
        predictions_table(trace, truth, records),
    )
    if not counted.all():
        steps = steps_of(trace, truth, records, counted)
    return Outcome(trace, truth, records, made, steps, counted)
