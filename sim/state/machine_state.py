"""The state of the machine at an instant, as far as anybody may know it who decides."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from predictors.base import FloatArray
from predictors.compiling import direct
from sim.errors import PolicyError
from sim.state import run_state, run_steps
from sim.state.availability import BelievedEnds
from sim.state.processors import count_processors
from sim.state.records import Ranges
from sim.state.run_state import idle_machine, ranges_of


class RunRequest(NamedTuple):
    """What a running job asks for, by its own predictions.

    Attributes
    ----------
    job : int
        Job index.
    kind : str
        ``processors`` or ``walltime``.
    processors : int
        The count that it wants; for walltime the one that it holds.
    until : float
        For walltime: when it wants to be killed, instead of at its limit, seconds.
    """

    job: int
    kind: str
    processors: int
    until: float


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A running job, as far as a policy may know it.

    Attributes
    ----------
    job : int
        Job index.
    number : int
        0 for the first run, one more after each restart.
    processors : int
    nodes : Ranges
    start, believed_end : float
        Seconds.
    changed : float
        When it got the processors that it holds now, seconds.
    resumes : float
        When it makes progress again after its last change, seconds; past if it does.
    spent : float
        Share of its requested time that it has used up on former counts, where jobs are killed.
    allocation : int
        The row of the log that says what it holds now.
    """

    job: int
    number: int
    nodes: Ranges
    processors: int
    start: float
    believed_end: float
    changed: float = field(init=False)
    resumes: float = field(init=False)
    spent: float = field(init=False, default=0.0)
    allocation: int = field(init=False, default=-1)

    def __post_init__(self) -> None:
        rewrite(self, changed=self.start, resumes=self.start)


def rewrite(run: Run, **what: Any) -> None:
    """Write into a run, which those who decide see and may not write to."""
    for name, value in what.items():
        object.__setattr__(run, name, value)


_allocate, _reallocate = direct(run_state.allocate), direct(run_state.reallocate)
_release, _allocate_named = direct(run_state.release), direct(run_state.allocate_named)
_push_holder, _pop_holder = direct(run_state.push_holder), direct(run_state.pop_holder)
_ask_to_wake = direct(run_steps.ask_to_wake)
_grow_ranges = direct(run_state.grow_ranges)


class MachineState:
    """Who runs and has just arrived, what is believed of it, and what is new since the last pass.

    Policies see it by a `View`, which does not let them write to it. When runs really end,
    and who is to come, `sim.engine.event_manager.EventManager` alone knows.

    Parameters
    ----------
    processors : int
    jobs : int
        How many there are.
    fails : bool
        Whether nodes may fail, which takes room.

    Attributes
    ----------
    now : float
        Seconds.
    processors : int
        Size of the machine.
    running : dict of int to Run
    arrived : list of int
        Jobs that arrived since the last pass, in order of arrival.
    ended : list of Run
        Since the last pass.
    moved_ends : dict of Run to float
        Runs whose believed end changed since the last pass, with the former one.
    disturbed : bool
        Whether anything else happened since the last pass (a wake-up, a failure).
    granted : set of Run
        Runs whose processors a policy has changed behind a scheduler's back.
    outages : dict of int to (float, int)
        Failed nodes: when each is believed to be repaired, and its processors.
    outages_changed : bool
        Whether a node failed or came back, or is believed to come back at
        another time, since the last pass.
    ahead : set of int
        Jobs that go to the head of the queue when they arrive again.
    left : dict of int to float
        Share of its work that a job that was interrupted still has to do.
    processors_per_node : int
    cycle_time_ratios : dict of int to list of (float, numpy.ndarray), or None
        What running evolving jobs measure of themselves, where the policy wants that: the
        ratios of measured to benchmarked time of cycles that were done by an instant.
    revised : set of int
        Applications about which the predictor changed its mind since the last pass.
    others_wait : bool
        Whether any other job waits while one chooses its count.
    requests : dict of (int, str) to RunRequest
        What running jobs ask for, by job and kind, in the order of asking; a request
        that is neither granted nor refused stands.
    efficiency : dict of int to float
        Of jobs that run, or have settled their count, as measured now; see
        `sim.engine.work.EfficiencySensor`.
    read_efficiencies : set of int
        Running jobs of which a policy has read that.
    load : LoadForecast or None
        What is believed of the load, on a shared machine.
    tables : RunState
        What compiled code knows of it.
    is_stale : bool
        Whether compiled passes have changed the tables, so that runs and what is new of them
        are only there after `sync_runs`.
    """

    def __init__(self, processors: int, jobs: int, fails: bool = True) -> None:
        self.now = 0.0
        self.processors, self.jobs = processors, jobs
        self.tables = idle_machine(processors, jobs, min(jobs, processors) + fails * processors)
        self.running: dict[int, Run] = {}
        self.arrived: list[int] = []
        self.ended: list[Run] = []
        self.moved_ends: dict[Run, float] = {}
        self.disturbed = self.others_wait = False
        self.granted: set[Run] = set()
        self.outages: dict[int, tuple[float, int]] = {}
        self.outages_changed = False
        self.ahead: set[int] = set()
        self.left: dict[int, float] = {}
        self.processors_per_node = 1
        self.cycle_time_ratios: dict[int, list[tuple[float, FloatArray]]] | None = None
        self.revised: set[int] = set()
        self.requests: dict[tuple[int, str], RunRequest] = {}
        self.efficiency: dict[int, float] = {}
        self.read_efficiencies: set[int] = set()
        self.load: Any = None
        self.is_stale, self._named = False, 0

    def clear_changes(self) -> None:
        """Forget what was new: the policy has seen it."""
        for news in (self.arrived, self.ended, self.moved_ends, self.revised, self.granted):
            news.clear()
        self.disturbed = self.outages_changed = False

    def sync_runs(self) -> None:
        """Name runs, and what is new at this instant, where compiled passes have changed them."""
        if not self.is_stale:
            return
        self.is_stale, tables, run = False, self.tables, self.tables.scalars[0]
        known = self.running | {one.job: one for one in self.ended}
        started = run["started"].item()
        for job in tables.start_order[self._named : started].tolist():
            begun, processors = tables.start_time.item(job), tables.processors.item(job)
            known[job] = Run(job, 0, self._held(job), processors, begun, believed_end=begun)
        self._named = started
        self.ended = [known[job] for job in tables.ended_jobs[: run["ended_now"]].tolist()]
        holding = set(tables.holder_job[: run["holders"]].tolist())
        for job, one in known.items():
            rewrite(one, believed_end=tables.believed_end.item(job))
        self.running = {job: one for job, one in known.items() if job in holding}
        expired = tables.expired_jobs[: run["expired_now"]].tolist()
        self.moved_ends = {self.running[job]: run["now"].item() for job in expired}
        self.arrived = list(range(run["first_arrived"], run["arrived"]))
        self.disturbed = run["woken_now"] > 0

    # Processors

    @property
    def free(self) -> int:
        """How many processors are idle."""
        return int(self.tables.scalars["free"].item())

    def idle(self) -> Ranges:
        """Return the free processors."""
        return tuple(self.tables.free_ranges[: self.tables.scalars["free_ranges"].item()].tolist())

    def allocate(self, job: int, processors: int, nodes: Ranges | None = None) -> Ranges:
        """Give a job these, or the lowest-numbered free processors, of which there are enough.

        Raises
        ------
        PolicyError
            If these are not so many, or not all free.
        """
        if nodes is None:
            self.tables.processors[job] = processors
            _allocate(self.tables, job)
            return self._held(job)
        if count_processors(nodes) != processors:
            raise PolicyError(f"nodes of job index {job} do not hold {processors} processors")
        self.allocate_named(nodes)
        self.hold(job, nodes)
        return nodes

    def reallocate(self, job: int, processors: int) -> Ranges:
        """Let a running job have so many: of its own, and the lowest-numbered free ones."""
        _grow_ranges(self.tables, processors)
        _reallocate(self.tables, job, processors)
        return self._held(job)

    def hold(self, job: int, nodes: Ranges) -> None:
        """Note that a job holds these processors, which are not free."""
        tables = self.tables
        _grow_ranges(tables, len(nodes))
        first = tables.scalars["ranges"].item()
        last = first + len(nodes)
        ranges_of(tables)[first:last] = list(nodes)
        tables.scalars["ranges"] = last
        tables.processors[job] = count_processors(nodes)
        tables.first_range[job], tables.last_range[job] = first, last

    def allocate_named(self, nodes: Ranges) -> None:
        """Take just these processors.

        Raises
        ------
        PolicyError
            If one of them is not free.
        """
        for low, high in nodes:
            if not _allocate_named(self.tables, low, high):
                raise PolicyError(f"processors {low}-{high} are not all free")
        self.tables.scalars["free"] -= count_processors(nodes)

    def release(self, nodes: Ranges) -> None:
        """Take back processors that were allocated."""
        for low, high in nodes:
            _release(self.tables, low, high)
        self.tables.scalars["free"] += count_processors(nodes)

    def _held(self, job: int) -> Ranges:
        tables = self.tables
        first, last = tables.first_range.item(job), tables.last_range.item(job)
        return tuple(ranges_of(tables)[first:last].tolist())

    # Runs

    @property
    def believed_ends(self) -> BelievedEnds:
        """Who holds processors until when; it changes as the engine goes on."""
        tables, number = self.tables, self.tables.scalars["holders"].item()
        jobs, held = tables.holder_job[:number], tables.holder_processors[:number]
        return BelievedEnds(tables.holder_end[:number], jobs, held)

    def show_moved_end(self, run: Run) -> None:
        """Let policies see when a run is believed to end now."""
        self.moved_ends.setdefault(run, run.believed_end)
        rewrite(run, believed_end=self.tables.believed_end.item(run.job))

    def wake_at(self, time: float) -> None:
        """See to it that something happens then.

        Raises
        ------
        PolicyError
            If that is not after now.
        """
        if time <= self.now:
            raise PolicyError(f"WakeAt({time:g}) is not after now, {self.now:g}")
        _ask_to_wake(self.tables, time)

    def fail(self, node: int, end: float, processors: int) -> None:
        """Note that a node is believed to be repaired then."""
        self.outages[node] = (end, processors)
        _push_holder(self.tables, end, -1 - node, processors)

    def repair(self, node: int) -> None:
        """Note that a node is back, or believed to be back at another time."""
        end, _ = self.outages.pop(node)
        _pop_holder(self.tables, end, -1 - node)
