"""The schedule that a log recorded, as a run beside simulated ones."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sim.engine.protocols import is_exactly
from sim.engine.run_log import explained
from sim.errors import ConfigError
from sim.machine.base import Dedicated, Machine
from sim.state.records import Allocations, Predictions, Ranges, Records
from workloads.base import Trace, most_held

UNKNOWN: Ranges = ()
"""Stands for processors of which nobody says which they were."""


class RecordedSchedule:
    """Each job starts and ends when its log says that it did; nothing is decided.

    Which processors a job held is unknown, and more may be held at an instant
    than the machine has: the log's own machine was another, or jobs that are
    left out made room. No predictor is asked, and nobody is killed.

    Examples
    --------
    >>> import pandas as pd
    >>> jobs = pd.DataFrame({"submit_time": [0.0, 5.0], "requested_processors": [4, 3],
    ...     "reference_runtime": [60.0, 30.0], "recorded_wait_time": [2.0, 0.0]})
    >>> run = RecordedSchedule().records(Trace(jobs, 6, "log"), Dedicated(6))
    >>> run.start_time.tolist(), run.end_time.tolist(), run.counters["excess_processors"]
    ([2.0, 5.0], [62.0, 35.0], 1.0)
    """

    def records(self, trace: Trace, machine: Machine, *, evolving: bool = False) -> Records:
        """Return the log's schedule.

        Raises
        ------
        ConfigError
            If these are not the jobs, times and machine that the log recorded, or
            it records no wait of some job; with the reason.
        """
        _check(trace, machine, evolving)
        jobs = trace.jobs
        submit = jobs["submit_time"].to_numpy(float)
        runtime = jobs["reference_runtime"].to_numpy(float)
        held = jobs["requested_processors"].to_numpy(np.int64)
        start = submit + jobs["recorded_wait_time"].to_numpy(float)
        number = len(jobs)
        order = np.argsort(start, kind="stable")
        zeros = np.zeros(number, np.int64)
        allocations = Allocations(
            order, zeros, start[order], (start + runtime)[order], held[order], [UNKNOWN] * number
        )
        ints, floats, bools = np.empty(0, np.int64), np.empty(0), np.empty(0, np.bool_)
        said = explained([], 0)
        asked = Predictions(ints, floats, ints, floats, chosen_by_curve=bools, final=bools, **said)
        excess = max(0, most_held(start, start + runtime, held) - machine.processors)
        return Records(
            submit_time=submit,
            start_time=start,
            end_time=start + runtime,
            run_start=start,
            allocated=held,
            believed_runtime=np.full(number, np.nan),
            status=["completed"] * number,
            restarts=zeros,
            allocations=allocations,
            predictions=asked,
            counters={"starts": float(number), "excess_processors": float(excess)},
            processors=machine.processors,
        )


def is_recorded(policy: Mapping[str, Any]) -> bool:
    """Say whether the ``policy`` part of a configuration is the log's own schedule."""
    return str(policy.get("_target_")).rpartition(".")[2] == RecordedSchedule.__name__


def _check(trace: Trace, machine: Machine, evolving: bool) -> None:
    """Refuse what the log did not record."""
    if trace.altered is not None:
        raise ConfigError(f"policy=recorded: its times are not the log's: {trace.altered}")
    if not is_exactly(machine, Dedicated):
        raise ConfigError(
            "policy=recorded: needs cluster=dedicated: recorded runtimes include what slowed jobs "
            "down already"
        )
    if evolving:
        raise ConfigError("policy=recorded: needs evolving=none: the log's jobs have no cycles")
    if "recorded_wait_time" not in trace.jobs:
        raise ConfigError(f"policy=recorded: {trace.source} records no schedule; it needs a log")
    missing = int((trace.jobs["recorded_wait_time"] < 0).sum())
    if missing == len(trace.jobs):
        raise ConfigError(f"policy=recorded: {trace.source} records no wait of any job")
    if missing:
        raise ConfigError(
            f"policy=recorded: {trace.source} records no wait of {missing:,} of {len(trace.jobs):,}"
            " jobs; workload.cleaning.missing_wait=skip leaves such jobs out"
        )
