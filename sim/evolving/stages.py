"""Where each evolving job stands: what it has saved, and what its attempts cost.

With `sim.engine.work`, and the calendar that is filled from it, all that knows true runtimes.
Areas are processor-seconds of the clock; where a machine is slowed, a run's area is shared out in
proportion to its seconds at full speed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray
from predictors.cycles import checkpointing
from predictors.cycles.checkpointing import CyclePlan, Outcome
from predictors.cycles.online import OnlineCyclePredictor
from sim.engine.setup import Setup
from sim.engine.work import TrueWork
from sim.evolving.settings import Evolving, EvolvingScene
from sim.machine.failing import FailingMachine
from sim.state.machine_state import Run
from sim.state.processors import nodes_of
from workloads.evolving.phases import EvolvingRun

CycleClock = Callable[[FloatArray], FloatArray]
"""Seconds at full speed since an attempt began to seconds of the clock since then."""

CLOCK_ROUNDS = 4
"""Times that checkpoints are placed anew by the clock, which they set forward themselves."""


class Account(NamedTuple):
    """What an attempt has done by some time; seconds, and cycles of the whole run.

    Attributes
    ----------
    finished, saved : int
        Cycles done, and cycles that survive a failure now.
    computed, lost, overhead, restarting : float
        Computation done, the part of it that a failure now throws away,
        checkpoints, and the restart.
    """

    finished: int
    saved: int
    computed: float
    lost: float
    overhead: float
    restarting: float


@dataclass(frozen=True)
class Attempt:
    """An attempt on some processors, laid out cycle by cycle once somebody asks.

    The job predicts its cycles from those that it has measured, in this
    attempt and before.

    Parameters
    ----------
    saving : Evolving
    run : EvolvingRun
    nprocs : int
    total : float, seconds
        True runtime of the whole run on so many processors, no checkpoint and
        all cells in memory.
    nodes : int
        Nodes that the job holds; their failures add up.
    first : int
        Cycles of the run that were saved before.
    limit : float, seconds
        Wall time of the attempt.
    restart : float, seconds
        In which a checkpoint is read first.
    clock : callable, optional
        Where the job is slowed: its seconds at full speed to seconds of the
        clock, by which it measures its cycles, checkpoints and stops.
    told : float, seconds
        When, after it began, it is told to save and stop.

    Examples
    --------
    >>> from workloads.evolving.cycle_costs import CYCLE_MACHINES
    >>> from workloads.evolving.phases import DECKS
    >>> run = EvolvingRun(DECKS["timing_a"], CYCLE_MACHINES["itanium2"], 16, key=1)
    >>> attempt = Attempt(Evolving(node_mtbf=86400.0), run, 16, total=7200.0, nodes=8)
    >>> attempt.outcome, attempt.wall > 7200.0, attempt.account(attempt.wall).saved
    ('completed', True, 200)
    """

    saving: Evolving
    run: EvolvingRun
    nprocs: int
    total: float
    nodes: int
    first: int = 0
    limit: float = inf
    restart: float = 0.0
    clock: CycleClock | None = None
    told: float = inf

    @cached_property
    def cells(self) -> FloatArray:
        """Cells per processor in each cycle of the run, shape (cycles,)."""
        return self.run.cells_per_processor(self.nprocs)

    @cached_property
    def computation(self) -> float | None:
        """Seconds where it runs through without a checkpoint or a stop; None where it may not."""
        saving = self.saving
        if self.first or min(self.limit, self.told) < inf or saving.cost_per_cell != 0.0:
            return None
        if not np.isinf(saving.between(saving.cost, self.nodes)):
            return None
        return self.total if saving.memory is None else self._ends().item(-1)

    @cached_property
    def plan(self) -> CyclePlan:
        """Its cycles, checkpoints and end, after the restart."""
        ends = self._ends()
        if self.computation is not None:
            return CyclePlan(ends, np.empty(0, np.int64), np.empty(0), ends.size)
        costs = self.saving.costs(self.cells[self.first :])
        told = max(self.told - self.restart, 0.0)
        return self._laid_out(ends, costs).told_to_stop(told, costs)

    @property
    def wall(self) -> float:
        """Seconds until the attempt ends by itself."""
        return self.restart + (self.plan.wall if self.computation is None else self.computation)

    @property
    def outcome(self) -> Outcome:
        """``completed``, ``stopped`` to be resubmitted, or ``killed`` by the limit."""
        return "completed" if self.computation is not None else self.plan.outcome

    @property
    def is_stuck(self) -> bool:
        """Whether it ends without a cycle more than it began with, and without a failure."""
        return self.outcome != "completed" and self.plan.saved(self.plan.wall) == 0

    def account(self, elapsed: float) -> Account:
        """Return what is done so many seconds after the attempt began."""
        inside = max(elapsed - self.restart, 0.0)
        if elapsed >= self.wall:
            if self.computation is not None:
                last = self.run.cycles
                return Account(last, last, self.computation, 0.0, 0.0, self.restart)
            inside = self.plan.wall  # to the bit, whatever the addition rounded
        ended = self.outcome == "completed" and inside >= self.plan.wall
        plan = self.plan
        return Account(
            finished=self.first + plan.finished(inside),
            saved=self.first + (plan.ends.size if ended else plan.saved(inside)),
            computed=plan.computed(inside),
            lost=0.0 if ended else plan.lost(inside),
            overhead=plan.overhead(inside),
            restarting=min(elapsed, self.restart),
        )

    def cycles(self, after: float, until: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return cells, begins and ends of the cycles that end in (after, until].

        Returns
        -------
        cells, begins, ends : numpy.ndarray of float, shape (m,)
            Seconds since the attempt began; no checkpoint lies within a cycle.
        """
        walls = self.plan.wall_ends[: self.plan.stopped_after]
        window = np.array([after, until]) - self.restart
        low, high = walls.searchsorted(window, side="right").tolist()
        lengths, done = self.plan.ends[low:high].copy(), self.plan.ends
        lengths[int(low == 0) :] -= done[max(low - 1, 0) : max(high - 1, 0)]
        ends = self.restart + walls[low:high]
        return self.cells[self.first + low : self.first + high], ends - lengths, ends

    def _ends(self) -> FloatArray:
        """Return the end of each cycle, longer where its cells do not fit the memory."""
        ends, saving = self.run.cumulative(self.nprocs, self.total), self.saving
        pages = self.cells > (inf if saving.memory is None else saving.memory)
        if not pages.any():
            return ends
        return np.cumsum(np.diff(ends, prepend=0.0) * np.where(pages, saving.paging, 1.0))

    def _laid_out(self, ends: FloatArray, costs: FloatArray) -> CyclePlan:
        """Return its cycles, of which each ends then, with the checkpoints that its rule places."""
        saving, clock, first, again = self.saving, self.clock, self.first, self.restart
        between = saving.between(costs[:1] if saving.cost_per_cell == 0.0 else costs, self.nodes)
        # Free checkpoints would come at no distance at all: then one each cycle.
        between = np.maximum(between, np.finfo(float).tiny)
        done = ends[first:] - (ends[first - 1] if first else 0.0)
        cycles, online = np.diff(ends, prepend=0.0), OnlineCyclePredictor(saving.window)
        ahead = online.follow(self.cells, cycles)[first:]
        within, stops = self.limit - again, saving.stop_in_time
        if clock is None:
            return checkpointing.plan_cycles(
                done, between, costs, ahead, within, stops, saving.margin
            )
        plan = checkpointing.plan_cycles(done, between, costs, ahead)
        for _ in range(CLOCK_ROUNDS):
            walls = clock(again + plan.wall_ends)
            slowed = walls - clock(again + plan.wall_ends - cycles[first:])
            ahead = online.follow(self.cells, np.concatenate((cycles[:first], slowed)))[first:]
            places = checkpointing.place_checkpoints(np.cumsum(slowed), between, ahead)
            if np.array_equal(places, plan.places):
                break
            plan = CyclePlan(done, places, costs[places], done.size)
        plan = replace(plan, limit=within)
        if not stops or self.limit == inf:
            return plan
        walls = clock(again + plan.wall_ends)
        return checkpointing.stopped_in_time(plan, costs, saving.margin * ahead, walls, self.limit)


_INSTANT = 1e-12
"""Relative distance below which two times are the same."""

_CLOCK_STEPS = 64
"""Equal parts of a limit in which a job's pace under background load is taken as even."""


@dataclass(slots=True)
class Stage:
    """How far a job has come.

    Attributes
    ----------
    run : EvolvingRun
    saved : int
        Cycles in its last checkpoint.
    begun : float
        Share that its present run did not do, or did on other counts.
    first : int
        Cycles done when its present attempt began: more than `saved` after a resize.
    unsaved : float
        Processor-seconds of computation in the cycles between.
    reading : bool
        Whether the present attempt began with a restart.
    attempt : Attempt or None
        None where the restart alone exceeds the limit.
    """

    run: EvolvingRun
    saved: int = 0
    begun: float = 0.0
    first: int = 0
    unsaved: float = 0.0
    reading: bool = False
    attempt: Attempt | None = None


class Stages(TrueWork):
    """The work of jobs of which some evolve.

    Parameters
    ----------
    setup : Setup
    scene : EvolvingScene or None
        None where no job evolves.

    Attributes
    ----------
    lost, overhead, restarting : numpy.ndarray of float, shape (n,)
        Processor-seconds that each evolving job paid for failures and limits, for checkpoints
        and for reading them.
    """

    def __init__(self, setup: Setup, scene: EvolvingScene | None) -> None:
        super().__init__(setup.trace, setup.truth, setup.machine)
        self.lost, self.overhead, self.restarting = np.zeros((3, len(setup.trace.jobs)))
        self._scene = scene
        self._stages: dict[int, Stage] = {}
        self._slowed = None
        if isinstance(setup.machine, FailingMachine) and setup.machine.interference:
            self._slowed = setup.machine

    def evolves(self, job: int) -> bool:
        """Say whether a job evolves."""
        return self._scene is not None and self._scene.evolves(job)

    def done(self, job: int) -> float:
        """Return the share of a job that its present run, or the next, does not have to do."""
        stage = self._stages.get(job)
        return super().done(job) if stage is None else stage.begun

    def attempt(self, job: int) -> Attempt | None:
        """Return what a running job is about to do, None where it does not evolve."""
        stage = self._stages.get(job)
        return None if stage is None else stage.attempt

    def begin(self, run: Run, now: float, limit: float) -> tuple[float, str]:
        """Lay out what a run does from now on.

        Returns
        -------
        end : float
            When it ends if nothing fails, seconds.
        outcome : str
            ``completed``, ``stopped``, ``killed``, or ``unfit`` if the restart
            alone exceeds the limit.
        """
        assert self._scene is not None
        job = run.job
        stage = self._stages.get(job)
        if stage is None:
            stage = self._stages[job] = Stage(self._scene.runs.run(job - self._scene.before))
        self._since[job] = now
        saving = self._scene.saving
        if stage.reading and saving.restart >= limit:
            stage.attempt = None
            return now + limit, "unfit"
        return self._laid_out(run, limit)

    def extend(self, run: Run, until: float) -> tuple[float, str]:
        """Lay out anew what a run does that may go on until then; return as `begin`.

        What it has done stays as it is: a limit only says where an attempt stops.
        """
        return self._laid_out(run, until - self._since[run.job])

    def _laid_out(self, run: Run, limit: float) -> tuple[float, str]:
        """Lay out a run's attempt within so many seconds since it began; return as `begin`."""
        assert self._scene is not None
        job, count, stage = run.job, run.processors, self._stages[run.job]
        since, width = self._since[job], self._machine.processors_per_node
        nodes = count if width == 1 else len(nodes_of(run.nodes, width))
        saving, clock = self._scene.saving, self._clock(run, since, limit)
        asked = saving, stage.run, count, self.runtime(job, count), nodes, stage.first, limit
        restart = saving.restart if stage.reading else 0.0
        stage.attempt = attempt = Attempt(*asked, restart, clock)
        end = self._machine.completion(since, attempt.wall, run.nodes)
        return (since + limit, "killed") if end > since + limit else (end, attempt.outcome)

    def _clock(self, run: Run, since: float, limit: float) -> CycleClock | None:
        """Return what tells a run the time that passes while it works, if it may be slowed.

        Background load slows it too, but matters only to a job that is in time for a limit.
        """
        disturbed, nodes = self._slowed, run.nodes
        if disturbed is not None:
            return lambda seconds: disturbed.walls(since, seconds, nodes) - since
        if not self._machine.splits_work or limit == inf:
            return None
        times = np.linspace(0.0, limit, _CLOCK_STEPS + 1)
        spans = zip(times[:-1].tolist(), times[1:].tolist(), strict=True)
        done = [self._machine.progress(since + a, since + b, nodes) for a, b in spans]
        work = np.concatenate(([0.0], np.cumsum(done)))
        slowed = limit / work.item(-1) if work[-1] > 0.0 else inf

        def clock(seconds: FloatArray) -> FloatArray:
            beyond = np.maximum(seconds - work[-1], 0.0)
            # What the load allows after the limit does not matter: it is too late then.
            return np.asarray(np.interp(seconds, work, times) + beyond * slowed)

        return clock

    def stop(self, run: Run, now: float) -> float | None:
        """Let a run checkpoint after the cycle under way and stop; return when that is.

        None where it has nothing to save: it is still reading its checkpoint, or does not evolve.
        """
        stage = self._stages.get(run.job)
        if stage is None or stage.attempt is None:
            return None
        elapsed = self.elapsed(run, now)
        if elapsed < stage.attempt.restart:
            return None
        stage.attempt = replace(stage.attempt, told=min(elapsed, stage.attempt.told))
        return self._machine.completion(self._since[run.job], stage.attempt.wall, run.nodes)

    def elapsed(self, run: Run, now: float) -> float:
        """Return the seconds at full speed since a run's attempt began."""
        since = self._since[run.job]
        return self._machine.progress(since, now, run.nodes) if now > since else 0.0

    def _pay(self, run: Run, now: float, account: Account, lost: float) -> float:
        """Charge an attempt; return the processor-seconds of a second at full speed."""
        spent = account.computed + account.overhead + account.restarting
        area = max(now - self._since[run.job], 0.0) * run.processors
        rate = area / spent if spent > 0.0 else float(run.processors)
        self.lost[run.job] += lost * rate
        self.overhead[run.job] += account.overhead * rate
        self.restarting[run.job] += account.restarting * rate
        return rate

    def over(self, run: Run, now: float, whole: bool = False) -> int:
        """Settle a run that is over; return how many cycles it saved beyond what was.

        A job that does not evolve begins again from zero.

        Parameters
        ----------
        run : Run
        now : float, seconds
        whole : bool
            Whether it came to the end of its attempt by itself.
        """
        stage = self._stages.get(run.job)
        if stage is None:
            self._done.pop(run.job, None)
            return 0
        before, attempt, outcome = stage.saved, stage.attempt, ""
        if attempt is None:
            reading = now - self._since[run.job]
            account = Account(stage.first, stage.first, 0.0, 0.0, 0.0, reading)
        elif whole:
            account, outcome = attempt.account(attempt.wall), attempt.outcome
        else:
            account = attempt.account(self.elapsed(run, now))
        self._pay(run, now, account, account.lost)
        if account.saved > stage.first or outcome == "stopped":
            stage.saved = account.saved
        elif outcome != "completed":
            self.lost[run.job] += stage.unsaved
        if outcome != "completed":
            stage.begun = stage.saved / stage.run.cycles
        stage.first, stage.unsaved, stage.reading = stage.saved, 0.0, True
        stage.attempt = None
        return stage.saved - before

    def drop(self, job: int) -> None:
        """Forget a job that will not run again."""
        super().drop(job)
        self._stages.pop(job, None)

    def add_progress(self, run: Run, now: float) -> float:
        """Go on after a resize from the cycles that are finished.

        Returns
        -------
        float
            Seconds of a pause that is still to come.
        """
        if run.job not in self._stages:
            return super().add_progress(run, now)
        pause = self._since[run.job] - now
        if pause < 0.0:
            self.go_on_from(run, now, self.elapsed(run, now))
        return max(pause, 0.0)

    def go_on_from(self, run: Run, now: float, elapsed: float) -> None:
        """Settle what a run has done by `now`, and go on from its last finished cycle."""
        job, stage = run.job, self._stages[run.job]
        assert stage.attempt is not None
        account, plan = stage.attempt.account(elapsed), stage.attempt.plan
        finished = min(account.finished, stage.run.cycles - 1) - stage.first
        reached = float(plan.ends[finished - 1]) if finished else 0.0
        rate = self._pay(run, now, account, max(account.computed - reached, 0.0))
        if account.saved > stage.first:
            kept = float(plan.ends[account.saved - stage.first - 1])
            stage.saved, stage.unsaved = account.saved, 0.0
            reached = max(reached - kept, 0.0)
        stage.unsaved += reached * rate
        stage.reading = account.restarting < stage.attempt.restart
        stage.first += finished
        stage.begun = max(stage.first / stage.run.cycles, np.finfo(float).tiny)
        self._since[job] = now

    # What a job knows of itself when it asks

    def cycles(self, job: int) -> int:
        """Return the cycles of a job's whole run."""
        return self._stages[job].run.cycles

    def next_cycle_end(
        self, run: Run, time: float, after: float = 0.0
    ) -> tuple[float, float] | None:
        """Return when a run ends its first cycle at or after `time`, or the last before it stops.

        Parameters
        ----------
        run : Run
        time : float
            Seconds of the clock.
        after : float
            Seconds at full speed since its attempt began; earlier cycles do not count.

        Returns
        -------
        tuple of float, or None
            Seconds of the clock, and at full speed since its attempt began (late by a
            hair, so that the cycle has ended whatever is rounded); None where no cycle
            ends before the last of the whole run does.
        """
        attempt = self._stages[run.job].attempt
        if attempt is None:
            return None
        plan, restart = attempt.plan, attempt.restart
        ends = restart + plan.wall_ends[: plan.finished(plan.wall)]
        if attempt.outcome == "completed":
            ends = ends[:-1]
        place = int(np.searchsorted(ends, self.elapsed(run, time)))
        if attempt.outcome != "completed":
            place = min(place, ends.size - 1)
        if not 0 <= place < ends.size or not ends[place] > after:
            return None
        seconds = ends.item(place)
        time = self._machine.completion(self._since[run.job], seconds, run.nodes)
        return time, seconds * (1.0 + _INSTANT)

    def ahead_of(self, run: Run, elapsed: float, now: float | None = None) -> tuple[int, float]:
        """Return the cycles that a run has left, and how much longer than measured they take.

        Checkpoints will take the share of time that they have taken so far; where the time of
        the clock is given, background load too.
        """
        attempt = self._stages[run.job].attempt
        assert attempt is not None
        account = attempt.account(elapsed)
        slower = 1.0 + account.overhead / account.computed if account.computed > 0.0 else 1.0
        if now is not None and self._machine.splits_work and elapsed > 0.0:
            slower *= (now - self._since[run.job]) / elapsed
        return attempt.run.cycles - account.finished, slower

    def cycle_end(self, run: Run, now: float) -> tuple[float, float] | None:
        """Return when a run's processors can change without a cycle done twice.

        When its cycle under way ends, as `next_cycle_end` has it, or a pause that is still to
        come (0 seconds at full speed); None where its attempt ends by then.
        """
        since, slack = self._since[run.job], _INSTANT * abs(now)
        if now <= since:
            return since, 0.0
        found = self.next_cycle_end(run, now - slack)
        if found is None or found[0] < now - 2.0 * slack:
            return None
        return max(found[0], now), found[1]

    def measured(self, run: Run, after: float, until: float) -> tuple[FloatArray, FloatArray]:
        """Return the cycles of a run that ended in (after, until], as the job measures them.

        Parameters
        ----------
        run : Run
        after, until : float
            Seconds at full speed since its attempt began; see `elapsed`.

        Returns
        -------
        cells, seconds : numpy.ndarray of float, shape (m,)
            Cells per processor, and wall times without checkpoints.
        """
        attempt = self._stages[run.job].attempt
        if attempt is None:
            return np.empty(0), np.empty(0)
        cells, begins, ends = attempt.cycles(after, until)
        if self._slowed is None or not ends.size:
            return cells, ends - begins
        since = self._since[run.job]
        both = self._slowed.walls(since, np.concatenate([begins, ends]), run.nodes)
        return cells, both[ends.size :] - both[: ends.size]
