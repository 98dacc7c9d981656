"""The engine's diary: starts, changes and ends as they happen, and what beliefs rested on.

It is made into records at the end.
"""

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.base import Explanation, FloatArray, RuntimePredictor
from sim.state.machine_state import MachineState, Run, rewrite
from sim.state.processors import held_ranges
from sim.state.records import Allocations, Predictions, Records


def columns(rows: list[tuple[float, ...]], kinds: str) -> list[NDArray[Any]]:
    """Return the columns of a table of numbers, of types as `array.array` names them."""
    table = np.array(rows, float).reshape(-1, len(kinds))
    return [table[:, k].astype(kind) for k, kind in enumerate(kinds)]


EXPLANATION = np.dtype([*zip(Explanation._fields, ("O", "i8", "O", "O", "i8", "f8"), strict=True)])
"""Of a table of explanations."""


def explained(found: list[Explanation], runs: int) -> dict[str, Any]:
    """Return what beliefs rest on, one a run or one for all, as columns of predictions."""
    rows = np.array(found, EXPLANATION)
    kept = (name for name in Explanation._fields if name != "code")
    return {name: np.broadcast_to(rows[name], runs) for name in kept}


class RunLog:
    """Collects what happens, in columns of numbers.

    Parameters
    ----------
    state : MachineState
        What it notes the processors of.

    Attributes
    ----------
    ended, not_failed : int
        How many jobs are over, and how many of them were not given up.
    over : numpy.ndarray of bool, shape (n,)
        Which they are.
    restarts : array of int, length n
        How often each was started again, or will be.
    interruptions : int
        How many runs were interrupted, those of jobs that were given up then among them.
    """

    def __init__(self, state: MachineState) -> None:
        self._state, self.ended, self.not_failed, self.interruptions = state, 0, 0, 0
        jobs = state.jobs
        self.over, self.restarts = np.zeros(jobs, np.bool_), array("q", [0]) * jobs
        self._last_run = array("q", [-1]) * jobs
        self._status = [""] * jobs
        # Job, number, start, processors, belief, by_curve.
        self._runs: list[tuple[float, ...]] = []
        self._rests_on: list[Explanation] = []
        # Run, start, processors, where its ranges begin.
        self._allocations: list[tuple[float, ...]] = []
        self._allocation_ends = array("d")

    def start(
        self, run: Run, belief: float, explanation: Explanation | None, by_curve: bool = True
    ) -> None:
        """Note that a run begins; None leaves the explanation to the end.

        `by_curve` is false where a rule left the request standing whatever the curve says.
        """
        job, now = run.job, run.start
        self._last_run[job] = len(self._runs)
        self._runs.append((job, run.number, now, run.processors, belief, by_curve))
        if explanation is not None:
            self._rests_on.append(explanation)
        self._begin_allocation(run, now)

    def _begin_allocation(self, run: Run, now: float) -> None:
        """Note what a run holds from now on."""
        first = self._state.tables.first_range.item(run.job)
        rewrite(run, allocation=len(self._allocations))
        self._allocations.append((self._last_run[run.job], now, run.processors, first))
        self._allocation_ends.append(now)

    def believed_at_start(self, run: Run) -> float:
        """Return the belief at the start of a job's last run, in seconds."""
        return self._runs[self._last_run[run.job]][4]

    def resize(self, run: Run, now: float) -> None:
        """Note that a run goes on with other processors."""
        self._allocation_ends[run.allocation] = now
        self._begin_allocation(run, now)

    def end(self, run: Run, now: float, status: str) -> None:
        """Note that a run is over and its job with it."""
        self._allocation_ends[run.allocation] = now
        self._status[run.job] = status
        self.over[run.job] = True
        self.ended += 1
        self.not_failed += status != "failed"

    def interrupt(self, run: Run, now: float) -> None:
        """Note that a run is over, but its job waits for another."""
        self._allocation_ends[run.allocation] = now
        self.restarts[run.job] += 1

    def records(self, predictor: RuntimePredictor, submit: FloatArray) -> Records:
        """Return the records of a run in which every job has ended; nothing is noted any more."""
        last = np.frombuffer(self._last_run, np.int64)
        runs = columns(self._runs, "qqdqdb")
        run_job, run_number, run_start, run_processors, run_belief, by_curve = runs
        said = self._rests_on or [predictor.explain(run_job.item(0), run_processors.item(0))]
        run, start, processors, first = columns(self._allocations, "qdqq")
        allocations = Allocations(
            job=run_job[run],
            run=run_number[run],
            start_time=start,
            end_time=np.frombuffer(self._allocation_ends),
            processors=processors,
            nodes=held_ranges(self._state.tables, first),
        )
        first_start, end = np.empty((2, last.size))
        first_start[run_job[::-1]] = run_start[::-1]  # of equal indices the last stands
        end[allocations.job] = allocations.end_time
        return Records(
            submit_time=submit,
            start_time=first_start,
            end_time=end,
            run_start=run_start[last],
            allocated=run_processors[last],
            believed_runtime=run_belief[last],
            status=self._status,
            restarts=np.frombuffer(self.restarts, np.int64),
            allocations=allocations,
            predictions=Predictions(
                job=run_job,
                time=run_start,
                nprocs=run_processors,
                predicted=run_belief,
                **explained(said, run_job.size),
                chosen_by_curve=by_curve.astype(np.bool_),
                final=last[run_job] == np.arange(run_job.size),
            ),
            counters={"starts": float(run_job.size)},
            processors=self._state.processors,
        )
