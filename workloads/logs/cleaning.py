"""From the records of a log to jobs that can run: named rules, each counted and configurable."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np
import pandas as pd

from workloads.base import COLUMNS, BoolArray, FloatArray, IntArray, most_held
from workloads.errors import WorkloadError, check_mapping
from workloads.logs.swf import SwfLog


@dataclass(frozen=True)
class Rule:
    """One defect that a record may have.

    Attributes
    ----------
    meaning : str
        What is wrong, in words that follow "job 17".
    actions : tuple of str
        What may be done about it, the default first: ``skip`` leaves the job
        out, ``keep`` does nothing, ``error`` refuses the log; the others, such
        as ``repair``, fill or change a value.
    """

    meaning: str
    actions: tuple[str, ...]


REPAIRED = ("repair", "skip", "error")
RULES: Mapping[str, Rule] = {
    "partial_execution": Rule("is a part of a preempted job (status 2 to 4)", ("skip", "error")),
    "duplicate": Rule("repeats an earlier line in all 18 fields", ("skip", "error")),
    "unknown_submit": Rule("has no submit time (-1)", ("skip", "error")),
    "cancelled_before_start": Rule("was cancelled (status 5) and never ran", ("skip", "error")),
    "unknown_runtime": Rule("has not ended, or has no valid runtime", ("skip", "error")),
    "beyond_limit": Rule("would have run more than 5 % past its limit", ("skip", "error")),
    # repaired to 1 second
    "zero_runtime": Rule("ran for 0 seconds", ("skip", "keep", "repair", "error")),
    "cancelled_while_running": Rule(
        "was cancelled (status 5) while it ran", ("keep", "skip", "error")
    ),
    "no_processors": Rule("has neither allocated nor requested processors", ("skip", "error")),
    "wider_than_machine": Rule("needs more processors than the machine has", ("skip", "error")),
    # to a fresh number
    "repeated_number": Rule("has the number of an earlier job, or none", REPAIRED),
    # to the requested processors
    "missing_allocation": Rule("has no allocated processors", REPAIRED),
    # rounded up
    "fractional_processors": Rule("has a fractional number of processors", REPAIRED),
    # by a model of estimates
    "missing_requested_time": Rule(
        "has no positive requested time", ("model", "exact", "skip", "error")
    ),
    # to an unknown wait
    "negative_wait": Rule("started before it was submitted", REPAIRED),
    "missing_wait": Rule("has no recorded wait", ("keep", "skip", "error")),
    # sorted by submit time
    "out_of_order": Rule("was submitted before a job above it", ("repair", "error")),
    # to following none
    "absent_predecessor": Rule(
        "follows a job that is not among the jobs before it", ("repair", "error")
    ),
}
"""The rules in the order in which they are applied; a job that is left out counts once."""

SPELLINGS: Mapping[tuple[str, str], str] = {("missing_requested_time", "repair"): "exact"}
"""Actions of former versions and what they are called now."""

_LEAVES_OUT = ("skip", "error")


@dataclass(frozen=True)
class Cleaned:
    """What cleaning leaves.

    Attributes
    ----------
    jobs : pandas.DataFrame
        Columns of `workloads.base.COLUMNS` and ``recorded_wait_time`` (s, -1
        where unknown), in submit order. ``requested_time`` is NaN where it is
        missing and to be modelled.
    processors : int or None
        As `Screened.machine`.
    dropped, repaired : mapping of str to int
        Counts by rule, of the lines up to the last job taken; only rules that
        found something.
    """

    jobs: pd.DataFrame
    processors: int | None
    dropped: Mapping[str, int] = field(default_factory=dict)
    repaired: Mapping[str, int] = field(default_factory=dict)


def check_actions(
    actions: Mapping[str, str] | None, usual: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """Return the action for every rule: as given, else usual in a format, else the default."""
    check_mapping("cleaning", actions, RULES, "rule")
    chosen = {name: rule.actions[0] for name, rule in RULES.items()}
    for name, action in {**usual, **(actions or {})}.items():
        action = SPELLINGS.get((name, action), action)
        if action not in RULES[name].actions:
            raise WorkloadError(
                f"workload.cleaning.{name}={action}: allowed are {', '.join(RULES[name].actions)}"
            )
        chosen[name] = action
    return chosen


@dataclass(frozen=True)
class Screened:
    """The records of a log in submit order, each with what is wrong with it.

    Attributes
    ----------
    log : SwfLog
    records : pandas.DataFrame
        The 18 fields, ``job_id`` and ``name`` (-1 where unknown).
    reason : numpy.ndarray of str, shape (records,)
        Why a record is left out; empty for those that can run.
    defects : mapping of str to numpy.ndarray of bool, shape (records,)
        Which records break each rule.
    chosen : mapping of str to str
        The action of every rule.
    """

    log: SwfLog
    records: pd.DataFrame
    reason: np.ndarray
    defects: Mapping[str, BoolArray]
    chosen: Mapping[str, str]

    @cached_property
    def usable(self) -> IntArray:
        """Rows of the records that can run."""
        return np.flatnonzero(self.reason == "")

    def recorded(self) -> pd.DataFrame:
        """Return what `workloads.logs.identity` looks at, of all records that can run."""
        records = self.records.iloc[self.usable]
        kinds: dict[str, type] = dict.fromkeys(("user", "executable", "name"), np.int64)
        kinds |= {"run_time": np.float64, "requested_time": np.float64}
        columns = {name: records[name].to_numpy(kind) for name, kind in kinds.items()}
        asked = columns["requested_time"]
        columns["requested_time"] = np.where(asked > 0, asked, np.nan)
        columns["requested_processors"] = np.ceil(_width(records)).astype(np.int64)
        return pd.DataFrame(columns)

    def take(self, first: int, jobs: int | None) -> Cleaned:
        """Return so many jobs that can run, from the first-th (from 0) on; None takes the rest.

        Only lines after the last job before them, and up to the last of them,
        are looked at.

        Raises
        ------
        WorkloadError
            If a record among them breaks a rule whose action is ``error``.
        """
        taken = self.usable[first:][:jobs]
        begin = int(self.usable[first - 1]) + 1 if first else 0
        end = int(taken[-1]) + 1 if jobs is not None and len(taken) == jobs else len(self.records)
        records = self.records.iloc[begin:end].reset_index(drop=True)
        reason = self.reason[begin:end].copy()
        kept = reason == ""
        defects = {name: found[begin:end] for name, found in self.defects.items()}
        defects["absent_predecessor"] = kept & _follows_none(records, kept)
        if self.chosen["absent_predecessor"] == "error":
            reason[defects["absent_predecessor"]] = "absent_predecessor"
        for name in RULES:
            if self.chosen[name] == "error":
                _refuse(self.log, records, name, reason == name)
        repaired = {
            name: int((defects[name] & kept).sum())
            for name in RULES
            if self.chosen[name] not in (*_LEAVES_OUT, "keep") and (defects[name] & kept).any()
        }
        dropped = {name: int((reason == name).sum()) for name in RULES if (reason == name).any()}
        own = {name: found[kept] for name, found in defects.items()}
        return Cleaned(self._job_table(records[kept], own), self.machine, dropped, repaired)

    def _job_table(self, records: pd.DataFrame, defects: Mapping[str, BoolArray]) -> pd.DataFrame:
        """Return the columns of a job table with every repair applied."""
        field_of = {"reference_runtime": "run_time"}
        columns: dict[str, np.ndarray] = {
            name: records[field_of.get(name, name)].to_numpy(kind) for name, kind in COLUMNS.items()
        }
        runtime, asked = columns["reference_runtime"], columns["requested_time"]
        if self.chosen["zero_runtime"] == "repair":
            runtime = np.where(defects["zero_runtime"], 1.0, runtime)
        exact = np.where(runtime > 0, runtime, 1.0)
        instead = exact if self.chosen["missing_requested_time"] == "exact" else np.nan
        predecessor = columns["preceding_job"]
        followed = (predecessor > 0) & ~defects["absent_predecessor"]
        wait = records["wait_time"].to_numpy(float)
        columns |= {
            "requested_processors": np.ceil(_width(records)).astype(np.int64),
            "reference_runtime": runtime,
            "requested_time": np.where(asked > 0, asked, instead),
            "preceding_job": np.where(followed, predecessor, -1),
            "recorded_wait_time": np.where(wait >= 0, wait, -1.0),
            "recorded_status": records["status"].to_numpy(np.int64),
            "partition": records[self.log.parts].to_numpy(np.int64),
        }
        return pd.DataFrame(columns)

    @cached_property
    def machine(self) -> int | None:
        """The header's machine, else the most that the log holds at once, None without jobs."""
        return self.log.machine_size() or size_by_use(self.records.iloc[self.usable]) or None


def size_by_use(records: pd.DataFrame) -> int:
    """Return the most processors that a log's jobs held at once, at least those of the widest.

    Jobs without a recorded wait, of which nobody knows when they ran, count by their width alone.
    `records` are those that can run, with the fields of the Standard Workload Format.
    """
    submit, wait, runtime = (
        records[name].to_numpy(float) for name in ("submit_time", "wait_time", "run_time")
    )
    count, ran = np.ceil(_width(records)), wait >= 0
    start = (submit + wait)[ran]
    return max(most_held(start, start + runtime[ran], count[ran]), int(count.max(initial=0.0)))


def screen(
    log: SwfLog, processors: int | None = None, actions: Mapping[str, str] | None = None
) -> Screened:
    """Find what is wrong with each record of a log.

    Parameters
    ----------
    log : SwfLog
    processors : int or None
        Size of the machine; None takes `Screened.machine`.
    actions : mapping of str to str, optional
        Rule to action, where it differs from the rule's default.

    Examples
    --------
    >>> from workloads.logs.swf import FIELDS
    >>> row = dict.fromkeys(FIELDS, -1) | {"job_number": 1, "submit_time": 0, "run_time": 60}
    >>> log = SwfLog(pd.DataFrame([row | {"requested_processors": 4}]))
    >>> screen(log).take(0, None).repaired
    {'missing_allocation': 1, 'missing_requested_time': 1}
    """
    chosen = check_actions(actions)
    submit = log.jobs["submit_time"].to_numpy(float)
    late, order = submit < np.maximum.accumulate(submit), np.argsort(submit, kind="stable")
    records = log.jobs.iloc[order].reset_index(drop=True)
    machine = log.machine_size() if processors is None else processors
    marked = {name: which[order] for name, which in log.found.items()}
    defects = _defects(records, machine) | marked | {"out_of_order": late[order]}
    given, repeated = records["job_number"].to_numpy(np.int64), defects["repeated_number"]
    fresh = given.max(initial=0) + np.cumsum(repeated)
    records["job_id"] = np.where(repeated, fresh, given)
    records["name"] = -1 if log.names is None else log.names[order]
    reason = np.full(len(records), "", dtype=object)
    for name in RULES:
        if chosen[name] in _LEAVES_OUT and name in defects:
            reason[defects[name] & (reason == "")] = name
    return Screened(log, records, reason, defects, chosen)


def _width(records: pd.DataFrame) -> FloatArray:
    allocated = records["allocated_processors"].to_numpy(float)
    requested = records["requested_processors"].to_numpy(float)
    return np.where(allocated > 0, allocated, requested)


def _defects(records: pd.DataFrame, machine: int | None) -> dict[str, BoolArray]:
    """Return for each rule which records break it."""
    runtime = records["run_time"].to_numpy(float)
    status, wait = (records[name].to_numpy(float) for name in ("status", "wait_time"))
    width = _width(records)
    allocated = records["allocated_processors"].to_numpy(float)
    numbers = records["job_number"]
    duplicate = np.zeros(len(records), bool)
    if not numbers.is_unique:
        duplicate = records.duplicated(keep="first").to_numpy()
    partial = (status >= 2) & (status <= 4)
    repeated = np.zeros(len(records), bool)
    first = ~(duplicate | partial)
    repeated[first] = numbers[first].duplicated(keep="first").to_numpy() | (numbers[first] < 0)
    return {
        "partial_execution": partial,
        "duplicate": duplicate,
        "unknown_submit": records["submit_time"].to_numpy(float) == -1,
        "cancelled_before_start": (status == 5) & (runtime <= 0),
        "unknown_runtime": runtime < 0,
        "zero_runtime": runtime == 0,
        "cancelled_while_running": (status == 5) & (runtime > 0),
        "no_processors": width <= 0,
        "wider_than_machine": np.ceil(width) > (np.inf if machine is None else machine),
        "repeated_number": repeated,
        "missing_allocation": (allocated <= 0) & (width > 0),
        "fractional_processors": (width > 0) & (width % 1 != 0),
        "missing_requested_time": records["requested_time"].to_numpy(float) <= 0,
        "negative_wait": (wait < 0) & (wait != -1),
        "missing_wait": wait < 0,
    }


def _follows_none(records: pd.DataFrame, kept: BoolArray) -> BoolArray:
    """Return which records name a predecessor that no kept record above them is."""
    predecessor = records["preceding_job"].to_numpy(np.int64)
    dependent = predecessor > 0
    if not dependent.any():
        return np.zeros(len(records), bool)
    place = pd.Series(np.flatnonzero(kept), index=records["job_id"].to_numpy(np.int64)[kept])
    found = place.reindex(predecessor).to_numpy(float)
    return np.asarray(dependent & ~(found < np.arange(len(records))), bool)


def _refuse(log: SwfLog, records: pd.DataFrame, name: str, found: BoolArray) -> None:
    if not found.any():
        return
    job = records["job_number"].to_numpy()[int(np.argmax(found))]
    others = f", like {found.sum() - 1} more" if found.sum() > 1 else ""
    instead = next(action for action in RULES[name].actions if action != "error")
    raise WorkloadError(
        f"{log.source}: job {job:g} {RULES[name].meaning}{others}; "
        f"workload.cleaning.{name}={instead} accepts such logs"
    )
