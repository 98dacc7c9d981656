"""How far each running job has come, by true runtimes, and what is measured of it.

Besides, what a trace tells of who follows whom, and of what may be seen.
"""

from functools import cached_property
from math import exp, isnan
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray, RuntimePredictor, VisibleJobs
from predictors.compiling import direct
from predictors.in_loop.oracle import Oracle, normal_draw, normal_draws
from sim.errors import SimError
from sim.machine.base import Machine
from sim.state.machine_state import MachineState, Run
from sim.state.run_steps import by_job, seconds_left
from workloads.base import GroundTruth, Tabled, TellsOneRuntime, Trace

_seconds_left = direct(seconds_left)


class TrueWork:
    """The work of the jobs, in shares of the whole: 0 at the start, 1 at the end.

    A share is done at the rate 1 / T(n) that the ground truth gives for the
    processors held, at the speed that the machine allows. A job whose rate never
    changes runs exactly T(n) seconds.

    Parameters
    ----------
    trace : Trace
    truth : GroundTruth
    machine : Machine
    """

    def __init__(self, trace: Trace, truth: GroundTruth, machine: Machine) -> None:
        self._truth, self.serial_time = truth, truth.serial_time
        self._one_by_one = truth if isinstance(truth, TellsOneRuntime) else None
        self._machine = machine
        self._asked = trace.jobs["requested_processors"].to_numpy()
        self._took = trace.jobs["reference_runtime"].to_numpy()
        self._since: dict[int, float] = {}
        self._done: dict[int, float] = {}
        self._segments: dict[int, dict[int, tuple[float, float]]] = {}

    def runtimes_at(self, jobs: IntArray, processors: IntArray) -> FloatArray:
        """Return `runtime` of each of these jobs at its count, to the bit."""
        asked = self._asked[jobs] == processors
        runtimes = self._took[jobs]
        if not asked.all():
            other = ~asked
            runtimes[other] = self._truth.runtimes_at(jobs[other], processors[other])
        return runtimes

    def is_known_to(self, predictor: RuntimePredictor) -> bool:
        """Say whether a predictor believes just what is true, and says no more than that."""
        return type(predictor) is Oracle and predictor._runtimes == self._truth.runtimes

    def tabled(self) -> Tabled | None:
        """Return `runtime` of all jobs at all counts in one table; None where there is none."""
        told = vars(type(self._truth)).get("tabled")
        return None if told is None else told(self._truth)

    def by_count(self, jobs: IntArray, least: IntArray, largest: IntArray) -> Tabled:
        """Return `runtime` of some jobs, in which all have a row, at counts of each.

        Parameters
        ----------
        jobs : numpy.ndarray of int, shape (m,)
        least, largest : numpy.ndarray of int, shape (n,)
            Of all jobs.
        """
        if (tabled := self.tabled()) is not None:
            row = np.full(self._asked.size, -1)
            row[jobs] = tabled.row[jobs]
            return tabled._replace(row=row)
        rows = {}
        for job in jobs.tolist():
            counts = np.arange(least.item(job), largest.item(job) + 1)
            runtimes = self.runtimes_at(np.full(counts.size, job), counts)
            rows[job] = np.append(np.full(counts[0], np.inf), runtimes)
        return by_job(rows, self._asked.size)

    def runtime(self, job: int, processors: int) -> float:
        """Return the true runtime of a job at a count, at full speed, in seconds."""
        if processors == self._asked.item(job):
            return float(self._took.item(job))
        if self._one_by_one is not None:
            return self._one_by_one.runtime_on(job, processors)
        return float(self._truth.runtimes(job, np.array([processors]))[0])

    def split(self, job: int, processors: int) -> dict[str, float]:
        """Return a run's seconds of computation and communication, where the truth knows them."""
        share = self._communication(job, processors)
        if isnan(share):
            return {}
        runtime = self.runtime(job, processors)
        return {"computation": runtime * (1.0 - share), "communication": runtime * share}

    def _communication(self, job: int, processors: int) -> float:
        asked = np.array([job]), np.array([processors])
        return self._truth.communication_shares(*asked).item(0)

    def communication(self, job: int, processors: int) -> float:
        """Return the share of a job's time that is communication at a count.

        Where that is unknown, or does not matter on this machine, all is computation.
        """
        share = self._communication(job, processors) if self._machine.splits_work else 0.0
        return 0.0 if isnan(share) else share

    def done(self, job: int) -> float:
        """Return the share of a job that was done so far."""
        return self._done.get(job, 0.0)

    def add_progress(self, run: Run, now: float) -> float:
        """Add up what a run has done with its present processors.

        Returns
        -------
        float
            Seconds of a pause that is still to come.
        """
        job = run.job
        since = self._since[job]
        if now <= since:
            return since - now
        worked = self._machine.progress(
            since, now, run.nodes, self.communication(job, run.processors)
        )
        share = worked / self.runtime(job, run.processors)
        self._done[job] = self.done(job) + share
        self._since[job] = now
        segments = self._segments.setdefault(job, {})
        seconds, before = segments.get(run.processors, (0.0, 0.0))
        segments[run.processors] = (seconds + now - since, before + share)
        return 0.0

    def segments(self, job: int) -> dict[int, tuple[float, float]]:
        """Return seconds and share of the job that were done, by processor count."""
        return self._segments.get(job, {})

    def completion(self, run: Run, now: float) -> float:
        """Return when a run ends that goes on at `now` with the processors it holds."""
        job = run.job
        self._since[job] = now
        left = _seconds_left(self.runtime(job, run.processors), self.done(job))
        share = self.communication(job, run.processors)
        return self._machine.completion(now, left, run.nodes, share)

    def drop(self, job: int) -> None:
        """Forget a job that will not run again."""
        for known in (self._since, self._done, self._segments):
            known.pop(job, None)


def followers(trace: Trace) -> dict[int, list[tuple[int, float]]]:
    """Return who follows whom, after what think time in seconds."""
    jobs = trace.jobs
    if not trace.feedback:
        return {}
    index = {job_id: place for place, job_id in enumerate(jobs["job_id"].tolist())}
    followers: dict[int, list[tuple[int, float]]] = {}
    pairs = zip(jobs["preceding_job"].tolist(), jobs["think_time"].tolist(), strict=True)
    for job, (before, think) in enumerate(pairs):
        leader = index.get(before, job)
        if leader < job:
            followers.setdefault(leader, []).append((job, max(think, 0.0)))
    return followers


def visible(trace: Trace, truth: GroundTruth) -> VisibleJobs:
    """Return what predictors and policies may know of the jobs."""
    jobs = trace.jobs
    return VisibleJobs(
        application=truth.application,
        size_class=truth.size_class,
        size=truth.size,
        user=jobs["user"].to_numpy(),
        requested_processors=jobs["requested_processors"].to_numpy(),
        requested_time=jobs["requested_time"].to_numpy(),
    )


def refuse_misfits(trace: Trace, processors: int) -> None:
    """Refuse a trace with a job that is wider than the machine.

    Raises
    ------
    SimError
        If there is one.
    """
    wide = np.flatnonzero(trace.jobs["requested_processors"] > processors)
    if wide.size:
        job = trace.jobs.iloc[int(wide[0])]
        raise SimError(
            f"job {int(job['job_id'])} asks for {int(job['requested_processors']):,} processors; "
            f"the machine has {processors:,}"
        )


class SensorNoise(NamedTuple):
    """Errors of measurements: no policy has a say in them.

    Attributes
    ----------
    key : int
        64-bit key of the draws.
    spread : float
        Standard deviation of the logarithm of an error, at least 0.
    """

    key: int = 0
    spread: float = 0.05


USUAL_NOISE = SensorNoise()


class EfficiencySensor:
    """Measures how efficiently the running jobs use the processors that they hold.

    It stands for a run-time system that times the iterations of the running
    application on few and on the present processors (Corbalan, Martorell &
    Labarta, TPDS 2005). A measurement is the true efficiency times a log-normal
    error, drawn by job and number of the measurement, whatever the schedule.
    The engine writes down a measurement of each running job on the count that it
    holds; once a policy has read it, there is another one at the next instant.

    Parameters
    ----------
    work : TrueWork
    state : MachineState
        Where measurements are written down.
    noise : SensorNoise
    """

    def __init__(self, work: TrueWork, state: MachineState, noise: SensorNoise) -> None:
        self._work, self._state = work, state
        self._key, self._spread = noise
        self._number: dict[int, int] = {}

    def measure(
        self, job: int, processors: int, runtime: float | None = None, anew: bool = False
    ) -> None:
        """Write down how efficient a run is measured to be on what it holds.

        Parameters
        ----------
        job, processors : int
        runtime : float, optional
            The true runtime there, in seconds, where that is at hand.
        anew : bool
            Whether this is another measurement than the last one of the job.
        """
        number = self._number[job] = self._number.get(job, 0) + anew
        area = processors * (self._work.runtime(job, processors) if runtime is None else runtime)
        measured = self._work.serial_time.item(job) / area if area > 0.0 else 1.0
        if self._spread > 0.0:
            draw = normal_draw(self._key, job, number) if number else self._first_draws.item(job)
            measured *= exp(self._spread * draw)
        self._state.efficiency[job] = measured

    @cached_property
    def _first_draws(self) -> FloatArray:
        """Of each job, the draw of its first measurement."""
        jobs = np.arange(self._work.serial_time.size, dtype=np.uint64)
        return normal_draws(self._key, jobs, np.zeros(jobs.size, np.int64))

    def begin(self, run: Run) -> None:
        """Measure a run that begins; anew, if a former one of the job was read."""
        self.measure(run.job, run.processors, anew=run.job in self._state.read_efficiencies)
        self._state.read_efficiencies.discard(run.job)

    def renew(self) -> None:
        """Measure again what a policy has read at an earlier instant."""
        self._state.sync_runs()
        read, running = self._state.read_efficiencies, self._state.running
        for job in read & running.keys():
            self.measure(job, running[job].processors, anew=True)
        read.difference_update(running)
