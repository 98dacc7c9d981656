"""The engine's diary: starts and ends as they happen, made into records at the end."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from predictors.base import Explanation, FloatArray, IntArray, RuntimePredictor
from sim.state.machine_state import Run
from sim.state.processors import NodeSets
from sim.state.records import Consultations, Ranges, Records, Stretches


class Logbook:
    """Collects what happens in plain lists.

    Parameters
    ----------
    jobs : int
        Number of jobs.
    """

    def __init__(self, jobs: int) -> None:
        self.ended = 0
        self._first_start: list[float | None] = [None] * jobs
        self._last_run = [-1] * jobs
        self._end = [0.0] * jobs
        self._status = ["waiting"] * jobs
        self._runs: list[tuple[int, int, float, int, float]] = []
        self._explanations: list[Explanation] = []
        self._decided: list[bool] = []
        self._stretches: list[tuple[int, float, int, Ranges]] = []
        self._stretch_end: list[float] = []
        self._held: dict[int, int] = {}

    def is_started(self, job: int) -> bool:
        """Say whether a job runs or has run."""
        return self._status[job] != "waiting"

    def is_over(self, job: int) -> bool:
        """Say whether a job has ended, or was given up."""
        return self._status[job] not in ("waiting", "running")

    def held(self, job: int) -> int:
        """Return how many processors a job holds, 0 while it does not run."""
        return self._held.get(job, 0)

    def start(
        self, run: Run, belief: float, explanation: Explanation | None, decided: bool = True
    ) -> None:
        """Note that a run begins; None leaves the explanation to the end.

        `decided` is false where a rule left the request standing whatever the curve says.
        """
        job, now, processors = run.job, run.start, run.processors
        if self._first_start[job] is None:
            self._first_start[job] = now
        self._status[job] = "running"
        self._held[job] = processors
        place = self._last_run[job] = len(self._runs)
        self._runs.append((job, run.number, now, processors, belief))
        self._decided.append(decided)
        if explanation is not None:
            self._explanations.append(explanation)
        run.stretch = len(self._stretches)
        self._stretches.append((place, now, processors, run.nodes))
        self._stretch_end.append(now)

    def believed_at_start(self, run: Run) -> float:
        """Return the belief at the start of a job's last run, in seconds."""
        return self._runs[self._last_run[run.job]][4]

    def resize(self, run: Run, now: float) -> None:
        """Note that a run goes on with other processors."""
        self._stretch_end[run.stretch] = now
        run.stretch = len(self._stretches)
        self._held[run.job] = run.processors
        self._stretches.append((self._last_run[run.job], now, run.processors, run.nodes))
        self._stretch_end.append(now)

    def held_area(self) -> float:
        """Return the processor-seconds of all stretches so far."""
        held = (
            (end - start) * processors
            for end, (_, start, processors, _) in zip(
                self._stretch_end, self._stretches, strict=True
            )
        )
        return float(sum(held))

    def end(self, run: Run, now: float, status: str) -> None:
        """Note that a run is over and its job with it."""
        self._stretch_end[run.stretch] = now
        self._end[run.job] = now
        self._status[run.job] = status
        del self._held[run.job]
        self.ended += 1

    def interrupt(self, run: Run, now: float) -> None:
        """Note that a run is over, but its job waits for another."""
        self._stretch_end[run.stretch] = now
        self._status[run.job] = "waiting"
        del self._held[run.job]

    def records(
        self,
        submit_time: FloatArray,
        processors: int,
        counters: Mapping[str, float],
        predictor: RuntimePredictor,
    ) -> Records:
        """Return the records of a run in which every job has ended, and keep nothing."""
        last = np.array(self._last_run, np.int64)
        run_job, run_number = _column(self._runs, 0, np.int64), _column(self._runs, 1, np.int64)
        run_start, run_belief = (_column(self._runs, k, np.float64) for k in (2, 4))
        run_processors = _column(self._runs, 3, np.int64)
        explanations = self._explanations or [
            predictor.explain(run_job.item(0), run_processors.item(0))
        ]
        records = Records(
            submit_time=submit_time,
            start_time=np.array(self._first_start, np.float64),
            end_time=np.array(self._end),
            run_start=run_start[last],
            allocated=run_processors[last],
            believed_runtime=run_belief[last],
            status=self._status,
            restarts=run_number[last],
            stretches=self._laid_out(run_job, run_number),
            consultations=Consultations(
                job=run_job,
                time=run_start,
                nprocs=run_processors,
                predicted=run_belief,
                **explained(explanations, run_job.size),
                decided=np.array(self._decided, np.bool_),
                final=last[run_job] == np.arange(run_job.size),
            ),
            counters={"starts": float(run_job.size), **counters},
            processors=processors,
        )
        for diary in (self._runs, self._stretches, self._stretch_end, self._first_start):
            diary.clear()
        return records

    def _laid_out(self, run_job: IntArray, run_number: IntArray) -> Stretches:
        run = _column(self._stretches, 0, np.int64)
        return Stretches(
            job=run_job[run],
            run=run_number[run],
            start_time=_column(self._stretches, 1, np.float64),
            end_time=np.array(self._stretch_end),
            processors=_column(self._stretches, 2, np.int64),
            nodes=NodeSets.of([nodes for _, _, _, nodes in self._stretches]),
        )


def explained(explanations: Sequence[Explanation], runs: int) -> dict[str, Any]:
    """Return what beliefs rest on as columns of consultations, an entry a run.

    Parameters
    ----------
    explanations : sequence of Explanation
        One a run, or one of all runs.
    runs : int
    """
    times = runs if len(explanations) == 1 else 1
    return {
        "method": [e.method for e in explanations] * times,
        "reliability": [e.reliability for e in explanations] * times,
        "observations": np.tile([e.observations for e in explanations], times),
        "runs_at_count": np.tile([e.runs_at_count for e in explanations], times),
        "mean_at_count": np.tile([float(e.mean_at_count) for e in explanations], times),
    }


def _column(rows: Sequence[tuple[Any, ...]], place: int, kind: DTypeLike) -> NDArray[Any]:
    """Return one column of a list of tuples, without a copy of the others."""
    return np.fromiter(map(itemgetter(place), rows), kind, len(rows))
