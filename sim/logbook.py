"""The engine's diary: starts and ends as they happen, made into records at the end."""

from collections.abc import Mapping

import numpy as np

from predictors.base import Explanation, FloatArray, RuntimePredictor
from sim.records import Consultations, Ranges, Records, Stretches
from sim.view import Run


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
        self._run_job: list[int] = []
        self._run_number: list[int] = []
        self._run_start: list[float] = []
        self._run_processors: list[int] = []
        self._run_belief: list[float] = []
        self._explanations: list[Explanation] = []
        self._stretch_run: list[int] = []
        self._stretch_start: list[float] = []
        self._stretch_end: list[float] = []
        self._stretch_processors: list[int] = []
        self._stretch_nodes: list[Ranges] = []

    def is_started(self, job: int) -> bool:
        """Say whether a job runs or has run."""
        return self._status[job] != "waiting"

    def start(self, run: Run, belief: float, explanation: Explanation | None) -> None:
        """Note that a run begins; None leaves the explanation to the end."""
        job = run.job
        if self._first_start[job] is None:
            self._first_start[job] = run.start
        self._status[job] = "running"
        self._last_run[job] = len(self._run_job)
        self._run_job.append(job)
        self._run_number.append(run.number)
        self._run_start.append(run.start)
        self._run_processors.append(run.processors)
        self._run_belief.append(belief)
        if explanation is not None:
            self._explanations.append(explanation)
        self._begin_stretch(run, run.start)

    def _begin_stretch(self, run: Run, now: float) -> None:
        run.stretch = len(self._stretch_run)
        self._stretch_run.append(self._last_run[run.job])
        self._stretch_start.append(now)
        self._stretch_end.append(now)
        self._stretch_processors.append(run.processors)
        self._stretch_nodes.append(run.nodes)

    def resize(self, run: Run, now: float) -> None:
        """Note that a run goes on with other processors."""
        self._stretch_end[run.stretch] = now
        self._begin_stretch(run, now)

    def held_area(self) -> float:
        """Return the processor-seconds of all stretches so far."""
        held = np.array(self._stretch_end) - np.array(self._stretch_start)
        return float((held * np.array(self._stretch_processors)).sum())

    def end(self, run: Run, now: float, status: str) -> None:
        """Note that a run is over and its job with it."""
        self._stretch_end[run.stretch] = now
        self._end[run.job] = now
        self._status[run.job] = status
        self.ended += 1

    def records(
        self,
        submit_time: FloatArray,
        processors: int,
        counters: Mapping[str, float],
        predictor: RuntimePredictor,
    ) -> Records:
        """Return the records of a run in which every job has ended."""
        last = np.array(self._last_run, np.int64)
        run_job = np.array(self._run_job, np.int64)
        run_start = np.array(self._run_start)
        run_processors = np.array(self._run_processors, np.int64)
        run_belief = np.array(self._run_belief)
        run_number = np.array(self._run_number, np.int64)
        explanations = self._explanations
        if not explanations and self._run_job:
            only = predictor.explain(self._run_job[0], self._run_processors[0])
            explanations = [only] * run_job.size
        return Records(
            submit_time=submit_time,
            start_time=np.array(self._first_start, np.float64),
            end_time=np.array(self._end),
            run_start=run_start[last],
            allocated=run_processors[last],
            believed_runtime=run_belief[last],
            status=self._status,
            restarts=run_number[last],
            stretches=self._stretches(run_job, run_number),
            consultations=Consultations(
                job=run_job,
                time=run_start,
                nprocs=run_processors,
                predicted=run_belief,
                method=[e.method for e in explanations],
                reliability=[e.reliability for e in explanations],
                observations=np.array([e.observations for e in explanations], np.int64),
                final=last[run_job] == np.arange(run_job.size),
            ),
            counters={"starts": float(run_job.size), **counters},
            processors=processors,
        )

    def _stretches(self, run_job: np.ndarray, run_number: np.ndarray) -> Stretches:
        run = np.array(self._stretch_run, np.int64)
        return Stretches(
            job=run_job[run],
            run=run_number[run],
            start_time=np.array(self._stretch_start),
            end_time=np.array(self._stretch_end),
            processors=np.array(self._stretch_processors, np.int64),
            nodes=self._stretch_nodes,
        )
