"""How a running job changes its processors, what that costs, and what can be learned from it."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sim.errors import PolicyError
from sim.state.decisions import Resize
from sim.state.machine_state import MachineState, Run, rewrite
from sim.state.processors import as_numbers, as_ranges, count_processors
from sim.state.records import LEAST_OBSERVED_SHARE, Ranges
from sim.state.run_state import snapped
from sim.state.view import View


class Resizer:
    """Changes the processors of running jobs and keeps the books of it.

    Parameters
    ----------
    engine : Engine
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._pause_time = 0.0
        self._pause_area = 0.0

    def counters(self) -> dict[str, float]:
        """Return seconds, and processor-seconds, that runs held without progress."""
        return {"reallocation_time": self._pause_time, "reallocation_area": self._pause_area}

    # Changes

    def resize(self, decision: Resize, now: float, cycle_left: float | None = None) -> None:
        """Let a running job go on with other processors, and believe accordingly.

        Parameters
        ----------
        decision : Resize
        now : float
        cycle_left : float, optional
            Seconds until the present cycle ends, from when on the change is made; if not given, it
            is made now, or after a pause that is still to come.

        Raises
        ------
        PolicyError
            If the job does not run, or the processors are not to be had.
        """
        job, processors, nodes, cost = decision
        view = self._engine.view
        run = view.running.get(job)
        if run is None:
            raise PolicyError(f"Resize of job index {job}, which is not running")
        if processors == run.processors and nodes is None and not cost and cycle_left is None:
            return
        if processors < 1 or processors - run.processors > view.free:
            raise PolicyError(
                f"Resize of job index {job} from {run.processors} to {processors} processors; "
                f"{view.free} are free"
            )
        if not cost >= 0:
            raise PolicyError(f"Resize of job index {job}: cost must be at least 0 s, got {cost}")
        state: MachineState = self._engine.state
        if nodes is None:
            nodes = state.reallocate(job, processors)
        else:
            state.release(run.nodes)
            state.allocate(job, processors, nodes)
        self._go_on(run, nodes, cost, now, cycle_left)

    def extend(self, run: Run, until: float) -> None:
        """Let a run that keeps its processors go on until then before it is killed."""
        more = (until - self.kill_time(run)) / self.whole_limit(run.job, run.processors)
        rewrite(run, spent=run.spent - more)

    def shrink_off(self, run: Run, lost: Ranges, seconds: float, now: float) -> bool:
        """Let a run go on without processors that are lost to it and to everybody else.

        This is what a malleable job does instead of dying when a node fails. The
        lost processors do not become free: whoever repairs them gives them back.

        Parameters
        ----------
        run : Run
        lost : Ranges
            Of the run's own processors.
        seconds : float
            Without progress, beyond those of the change, on the processors that it keeps.
        now : float

        Returns
        -------
        bool
            False if the job cannot run on what would be left; nothing has changed then.
        """
        view, state = self._engine.view, self._engine.state
        left = np.setdiff1d(as_numbers(run.nodes), as_numbers(lost), assume_unique=True)
        if not view.malleable[run.job] or left.size < view.extremes(run.job)[0]:
            return False
        wanted = view._feasible.up_to(run.job, left.size)
        kept = as_ranges(left[:wanted])
        state.release(as_ranges(left[wanted:]))
        state.hold(run.job, kept)
        cost = self._engine.preferences.forced_change_cost(run.processors, wanted)
        self._go_on(run, kept, seconds + cost, now)
        state.disturbed = True
        return True

    def _go_on(
        self, run: Run, nodes: Ranges, cost: float, now: float, delay: float | None = None
    ) -> None:
        """Continue a run on other processors after a pause, `delay` where that was settled."""
        engine, before, processors = self._engine, run.processors, count_processors(nodes)
        seconds = engine.view.seconds_left(run)
        if delay is None:
            delay = engine.work.add_progress(run, now)
        elif run.resumes <= now:
            seconds = max(seconds - delay, 0.0)
        pause = cost + delay
        if processors != before:
            seconds *= engine.view.runtime_ratios(run.job, before, np.array([processors])).item()
        if engine.kills:
            spent = (now - run.changed) / self.whole_limit(run.job, before)
            rewrite(run, spent=run.spent + spent)
        self._pause_time += cost
        self._pause_area += pause * processors - delay * before
        rewrite(run, nodes=nodes, processors=processors, changed=now, resumes=now + pause)
        engine.sensor.measure(run.job, processors)
        engine.log.resize(run, now)
        end = engine.plan_completion(run, now + pause)
        engine.move_believed_end(run, snapped(now + pause + seconds, end, now))

    def delay_start(self, run: Run, now: float, cost: float) -> None:
        """Let a run that has just started make no progress for a while."""
        rewrite(run, resumes=now + cost)
        self._pause_time += cost
        self._pause_area += cost * run.processors

    def refund_pause(self, run: Run, now: float) -> None:
        """Take what is left of a pause out of the books: its run is over."""
        left = run.resumes - now
        self._pause_time -= left
        self._pause_area -= left * run.processors

    # What runs tell

    def observed(self, run: Run, now: float) -> Iterable[tuple[int, float, Mapping[str, Any]]]:
        """Return what a finished run shows: processors, runtime there, and more.

        A run that kept its processors shows its runtime, without the pause at its
        start. One whose count changed shows, for each count on which it spent a
        twentieth of its time or more, the seconds of progress there over the share
        of the job that they did, which a job that counts its iterations knows; the
        share comes along as ``share``.
        """
        work, job = self._engine.work, run.job
        if not work.segments(job):
            return ((run.processors, now - run.resumes, {}),)
        work.add_progress(run, now)
        segments = work.segments(job)
        whole = sum(seconds for seconds, _ in segments.values())
        return tuple(
            (processors, seconds / share, {"share": share})
            for processors, (seconds, share) in segments.items()
            if seconds >= LEAST_OBSERVED_SHARE * whole and share > 0
        )

    # Requested times as limits

    def kill_time(self, run: Run) -> float:
        """Return when a run is killed that keeps the processors it holds now.

        Each stretch uses up the requested time at its own count.
        """
        left = max(1.0 - run.spent, 0.0)
        return run.changed + left * self.whole_limit(run.job, run.processors)

    def whole_limit(self, job: int, processors: int) -> float:
        """Return the requested time, scaled by the believed curve when molded.

        Without a curve a job is given the time that its requested processor-seconds
        need on fewer processors, and its requested time on more.
        """
        view: View = self._engine.view
        limit = view.requested_time[job]
        reference = view.requested_processors[job]
        if processors == reference:
            return limit
        curve = view.curve(job, np.array([processors, reference]))
        if curve is None:
            is_scaled = self._engine.preferences.scales_requests and view.malleable[job]
            return limit * max(reference / processors, 1.0) if is_scaled else limit
        return limit * float(curve[0] / curve[1])
