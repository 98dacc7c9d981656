"""Malleable jobs in the middle of their runs, for tests of reallocation rules."""

from collections.abc import Callable, Sequence

import numpy as np
from toys import ToyOracle, ToyTruth, trace_of

from predictors.base import VisibleJobs
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.easy import Easy
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from sim.policies.reallocation.beliefs import BelievedCurves, Members
from sim.policies.reallocation.rule import Reallocation
from sim.state.decisions import Preferences
from sim.state.machine_state import MachineState, Run
from sim.state.records import Records
from sim.state.view import ArrivedJobs, View


def power_truth(work: Sequence[float], powers: Sequence[float], largest: int) -> ToyTruth:
    """T(n) = w / n^p, job by job, up to the same largest count."""
    number = len(work)
    return ToyTruth(
        lambda job, n: work[job] / float(n) ** powers[job],
        np.ones(number, np.int64),
        np.full(number, largest),
    )


def beliefs_of(truth: ToyTruth, processors: int) -> BelievedCurves:
    """Return what an oracle believes of the jobs of a truth, at time 0."""
    number = len(truth.reference)
    labels, sizes = np.zeros(number, np.int64), np.full(number, np.nan)
    requested = np.array([truth.runtime(j, int(truth.reference[j])) for j in range(number)])
    jobs = VisibleJobs(labels, labels - 1, sizes, labels, truth.reference, requested)
    more = {
        "submit_time": np.zeros(number),
        "adopter_draws": np.zeros(number),
        "malleable": np.ones(number, np.bool_),
        "least": truth.min_processors,
        "largest": truth.largest,
    }
    shown = ArrivedJobs(jobs, more, truth.feasible, processors)
    shown.arrive(range(number))
    state = MachineState(processors, number)
    return BelievedCurves(View(state, shown, ToyOracle(truth), Preferences()))


def members_of(beliefs: BelievedCurves, held: Sequence[int], least: int = 1) -> Members:
    """Return jobs that run since 0 on so many processors each; 0 starts now."""
    view = beliefs.view
    runs: list[Run | None] = []
    for job, count in enumerate(held):
        end = beliefs.serial_time(job) * beliefs.relative_time(job, count) if count else 0.0
        runs.append(Run(job, 0, (), count, 0.0, end) if count else None)
        if count:
            view._state.running[job] = runs[-1]
            view._state.tables.processors[job] = count
    largest = np.array([view.extremes(job)[1] for job in range(len(held))], np.int64)
    lows = np.full(len(held), least)
    return Members(list(range(len(held))), runs, np.array(held, np.int64), lows, largest)


def play(
    rule: Reallocation,
    rows: Sequence[tuple[float, ...]],
    truth: ToyTruth,
    processors: int,
    backfill: object | None = None,
    predictor: Callable[[ToyTruth], object] = ToyOracle,
    **options: object,
) -> Records:
    """Replay jobs under FCFS, EASY and a reallocation rule."""
    policy = Policy(FirstComeFirstServed(), backfill or Easy(), Request(), rule)
    return simulate(
        Setup(trace_of(rows), truth, policy, predictor(truth), Dedicated(processors), **options)
    )


def stretches_of(records: Records, job: int) -> list[tuple[float, int]]:
    """Return (begin, processors) of each stretch of a job."""
    held = records.allocations
    return [
        (float(held.start_time[k]), int(held.processors[k]))
        for k in np.flatnonzero(held.job == job)
    ]
