"""What a simulation leaves behind: plain arrays by job index, before any metric."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray

Ranges = tuple[tuple[int, int], ...]
"""Processor numbers as closed intervals, ascending and apart: ((0, 3), (7, 7))."""
Rows = slice | IntArray
"""Which rows of a table: a slice, or their numbers."""
LEAST_OBSERVED_SHARE = 0.05
"""Least share of a run's time on a count after which the run shows its runtime there."""


def are_among(words: Sequence[str], names: Collection[str]) -> NDArray[np.bool_]:
    """Return which words are among some names.

    Examples
    --------
    >>> are_among(["killed", "completed"], {"completed"}).tolist()
    [False, True]
    """
    return pd.Series(words, dtype=object).isin(names).to_numpy()


@dataclass(frozen=True)
class Allocations:
    """Stretches of constant allocation, in the order in which they began.

    Attributes
    ----------
    job : numpy.ndarray of int, shape (m,)
        Job index.
    run : numpy.ndarray of int, shape (m,)
        0 for a job's first run, one more after each restart.
    start_time, end_time : numpy.ndarray of float, shape (m,), seconds
    processors : numpy.ndarray of int, shape (m,)
    nodes : sequence of Ranges, length m
    """

    job: IntArray
    run: IntArray
    start_time: FloatArray
    end_time: FloatArray
    processors: IntArray
    nodes: Sequence[Ranges]


@dataclass(frozen=True)
class Predictions:
    """For each started run that a predictor was asked about: its belief at the start.

    Attributes
    ----------
    job : numpy.ndarray of int, shape (m,)
    time : numpy.ndarray of float, shape (m,), seconds
    nprocs : numpy.ndarray of int, shape (m,)
    predicted : numpy.ndarray of float, shape (m,), seconds
    method, reliability : sequence of str, length m
    observations : numpy.ndarray of int, shape (m,)
    runs_at_count : numpy.ndarray of int, shape (m,)
        Runs that the predictor kept at that very count.
    mean_at_count : numpy.ndarray of float, shape (m,), seconds
        Their geometric mean, brought to this job; NaN without runs.
    chosen_by_curve : numpy.ndarray of bool, shape (m,)
        Whether nothing but the curve, where there was one, kept the request standing.
    final : numpy.ndarray of bool, shape (m,)
        Whether this is the job's last run.
    """

    job: IntArray
    time: FloatArray
    nprocs: IntArray
    predicted: FloatArray
    method: Sequence[str]
    reliability: Sequence[str]
    observations: IntArray
    runs_at_count: IntArray
    mean_at_count: FloatArray
    chosen_by_curve: NDArray[np.bool_]
    final: NDArray[np.bool_]


@dataclass(frozen=True)
class Outages:
    """When processors were out of service, one row an outage of a node.

    Attributes
    ----------
    start_time, end_time : numpy.ndarray of float, shape (m,), seconds
        The last job's end where a node was not repaired before.
    processors : numpy.ndarray of int, shape (m,)
    """

    start_time: FloatArray
    end_time: FloatArray
    processors: IntArray


@dataclass
class RequestRecord:
    """What a running job asked for, and what became of it.

    Attributes
    ----------
    job, run : int
        Job index, and the number of its run.
    time : float
        When it asked, seconds.
    kind : str
        ``more`` or ``fewer`` processors, or ``walltime``.
    held, wanted : int
        Processors; the same where it asked for walltime.
    wanted_seconds : float
        How many seconds longer than its limit it asked to run; 0 where it asked for processors.
    outcome : str
        ``granted``, ``refused`` or ``withdrawn``: its run ended, or it needed it no more.
    answered : float
        When that was, seconds.
    denied_time : float
        Seconds that its run would have been spared, by the truth, had it held what
        it wanted as long as it wanted that; 0 for walltime.
    """

    job: int
    run: int
    time: float
    kind: str
    held: int
    wanted: int
    wanted_seconds: float
    outcome: str = ""
    answered: float = 0.0
    denied_time: float = 0.0


@dataclass(frozen=True)
class Requests:
    """All that the jobs of a run asked for.

    Attributes
    ----------
    asked : tuple of RequestRecord
        In the order of asking.
    denied_wait : float
        Seconds between the ends of runs that were stopped or killed at their limit
        for want of a longer one, and the starts of the next.
    """

    asked: tuple[RequestRecord, ...]
    denied_wait: float


@dataclass(frozen=True)
class FailureCosts:
    """What failures, limits and checkpoints cost each job, in processor-seconds.

    Attributes
    ----------
    evolving : numpy.ndarray of bool, shape (n,)
        Whether the job evolves; the others restart from zero.
    lost_work : numpy.ndarray of float, shape (n,)
        Held for computation that was thrown away.
    checkpoint_overhead : numpy.ndarray of float, shape (n,)
        Held for writing checkpoints, complete or cut short.
    restart_overhead : numpy.ndarray of float, shape (n,)
        Held for reading them.
    failure_reason : list of str, length n
        Why a job did not complete; empty if it did.
    outages : Outages
    """

    evolving: NDArray[np.bool_]
    lost_work: FloatArray
    checkpoint_overhead: FloatArray
    restart_overhead: FloatArray
    failure_reason: list[str]
    outages: Outages


@dataclass(frozen=True)
class Records:
    """Everything that happened, by job index (the row in the job table).

    Attributes
    ----------
    submit_time : numpy.ndarray of float, shape (n,), seconds
        When the job arrived (differs from the trace's under feedback alone).
    start_time, end_time : numpy.ndarray of float, shape (n,), seconds
        First start and last end.
    run_start : numpy.ndarray of float, shape (n,), seconds
        Start of the last run.
    allocated : numpy.ndarray of int, shape (n,)
        Processors at the start of the last run.
    believed_runtime : numpy.ndarray of float, shape (n,), seconds
        The belief at the start of the last run.
    status : sequence of str, length n
        ``completed``, ``killed``, ``failed``.
    restarts : numpy.ndarray of int, shape (n,)
    allocations : Allocations
    predictions : Predictions
    counters : mapping of str to float
        ``looks``, ``starts``, ``predictor_queries``, ``events`` and what else
        the engine counted; all of them reproducible.
    processors : int
        Size of the machine.
    failure_costs : FailureCosts or None
        Where nodes may fail or jobs evolve.
    requests : Requests or None
        Where jobs may ask for processors or walltime.
    """

    submit_time: FloatArray
    start_time: FloatArray
    end_time: FloatArray
    run_start: FloatArray
    allocated: IntArray
    believed_runtime: FloatArray
    status: Sequence[str]
    restarts: IntArray
    allocations: Allocations
    predictions: Predictions
    counters: Mapping[str, float]
    processors: int
    failure_costs: FailureCosts | None = None
    requests: Requests | None = None
