"""The state of the machine at an instant, as far as anybody may know it who decides."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from predictors.base import FloatArray
from predictors.compiling import direct
from sim.errors import PolicyError
from sim.state import run_steps, run_tables
from sim.state.availability import BelievedEnds
from sim.state.processors import count_processors
from sim.state.records import Ranges
from sim.state.run_tables import (
    BELIEVED_END,
    BELIEVED_JOB,
    FIRST_RANGE,
    FREE,
    FREE_RANGES,
    HELD,
    HIGH,
    HOLDERS,
    LAST_RANGE,
    LOW,
    PROCESSORS,
    RANGES,
    WAKES,
    Tables,
    idle_tables,
)


class Request(NamedTuple):
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
    time : float
        When it first asked, seconds.
    """

    job: int
    kind: str
    processors: int
    until: float
    time: float


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
    """

    job: int
    number: int
    nodes: Ranges
    processors: int
    start: float
    believed_end: float
    changed: float = field(init=False)
    resumes: float = field(init=False)
    stretch: int = field(init=False, default=-1)

    def __post_init__(self) -> None:
        rewrite(self, changed=self.start, resumes=self.start)


def rewrite(run: Run, **what: Any) -> None:
    """Write into a run, which those who decide see and may not write to."""
    for name, value in what.items():
        object.__setattr__(run, name, value)


_hand_out, _exchange = direct(run_steps.hand_out), direct(run_tables.exchange)
_give, _take_named = direct(run_tables.give), direct(run_tables.take_named)
_hold, _let_go = direct(run_tables.hold), direct(run_tables.let_go)
_ask_to_wake = direct(run_steps.ask_to_wake)


class MachineState:
    """Who runs and waits, what is believed of it, and what is new since the last pass.

    Policies see it by a `View`, which does not let them write to it. When runs really end,
    and who is to come, `sim.engine.books.Books` alone knows.

    Parameters
    ----------
    processors : int
    jobs : int
        How many there are.

    Attributes
    ----------
    now : float
        Seconds.
    processors : int
        Size of the machine.
    running : dict of int to Run
    arrived : list of int
        Jobs that arrived since the last pass, in queue order.
    ended : list of Run
        Since the last pass.
    moved_ends : dict of Run to float
        Runs whose believed end changed since the last pass, with the former one.
    disturbed : bool
        Whether anything else happened since the last pass (a wake-up, a failure).
    resized : set of Run
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
    health : dict of int to list of (float, numpy.ndarray), or None
        What running evolving jobs measure of themselves, where the policy wants that: the
        ratios of measured to benchmarked time of cycles that were done by an instant.
    revised : set of int
        Applications about which the predictor changed its mind since the last pass.
    requests : dict of (int, str) to Request
        What running jobs ask for, by job and kind, in the order of asking; a request
        that is neither granted nor refused stands.
    efficiency : dict of int to float
        Of running jobs on the processors they hold, as measured now; see
        `sim.state.sensors.EfficiencySensor`.
    measured : set of int
        Running jobs of which a policy has read that.
    load : LoadOutlook or None
        What is believed of the load, on a shared machine.
    """

    def __init__(self, processors: int, jobs: int) -> None:
        self.now = 0.0
        self.processors, self.jobs = processors, jobs
        self._ends: BelievedEnds | None = None
        self.running: dict[int, Run] = {}
        self.arrived: list[int] = []
        self.ended: list[Run] = []
        self.moved_ends: dict[Run, float] = {}
        self.disturbed = False
        self.resized: set[Run] = set()
        self.outages: dict[int, tuple[float, int]] = {}
        self.outages_changed = False
        self.ahead: set[int] = set()
        self.left: dict[int, float] = {}
        self.processors_per_node = 1
        self.health: dict[int, list[tuple[float, FloatArray]]] | None = None
        self.revised: set[int] = set()
        self.requests: dict[tuple[int, str], Request] = {}
        self.efficiency: dict[int, float] = {}
        self.measured: set[int] = set()
        self.load: Any = None

    def settle(self) -> None:
        """Forget what was new: the policy has seen it."""
        for news in (self.arrived, self.ended, self.moved_ends, self.revised):
            news.clear()
        self.disturbed = self.outages_changed = False

    # Processors

    @cached_property
    def tables(self) -> Tables:
        """The books: who runs where, until when, and what is free."""
        jobs, processors = self.jobs, self.processors
        return idle_tables(processors, jobs, min(jobs, processors) + processors)

    @property
    def free(self) -> int:
        """How many processors are idle."""
        return self.tables.counters.item(FREE)

    def idle(self) -> Ranges:
        """Return the free processors."""
        low, high = self.tables.free[:, : self.tables.counters[FREE_RANGES]].tolist()
        return tuple(zip(low, high, strict=True))

    def hand_out(self, job: int, processors: int) -> Ranges:
        """Give a job the lowest-numbered free processors, of which there are enough."""
        if not _hand_out(self.tables, job, processors):
            self._make_room(0)
            _hand_out(self.tables, job, processors)
        return self._held(job)

    def exchange(self, job: int, processors: int) -> Ranges:
        """Let a running job have so many: of its own, and the lowest-numbered free ones."""
        numbers = self.tables.numbers
        self._make_room(numbers.item(LAST_RANGE, job) - numbers.item(FIRST_RANGE, job))
        _exchange(self.tables, job, processors)
        return self._held(job)

    def hold(self, job: int, nodes: Ranges) -> None:
        """Note that a job holds these processors, which are not free."""
        self._make_room(len(nodes))
        tables = self.tables
        first = tables.counters.item(RANGES)
        last = tables.counters[RANGES] = first + len(nodes)
        tables.ranges[:, first:last] = np.array(nodes).T
        tables.numbers[PROCESSORS, job] = count_processors(nodes)
        tables.numbers[FIRST_RANGE, job], tables.numbers[LAST_RANGE, job] = first, last

    def take_named(self, nodes: Ranges) -> None:
        """Take just these processors.

        Raises
        ------
        PolicyError
            If one of them is not free.
        """
        for low, high in nodes:
            if not _take_named(self.tables, low, high):
                raise PolicyError(f"processors {low}-{high} are not all free")
        self.tables.counters[FREE] -= count_processors(nodes)

    def give(self, nodes: Ranges) -> None:
        """Take back processors that were handed out."""
        for low, high in nodes:
            _give(self.tables, low, high)
        self.tables.counters[FREE] += count_processors(nodes)

    def _held(self, job: int) -> Ranges:
        ranges, numbers = self.tables.ranges, self.tables.numbers
        first, last = numbers.item(FIRST_RANGE, job), numbers.item(LAST_RANGE, job)
        if last - first == 1:
            return ((ranges.item(LOW, first), ranges.item(HIGH, first)),)
        low, high = ranges[:, first:last].tolist()
        return tuple(zip(low, high, strict=True))

    def _make_room(self, ranges: int) -> None:
        """Make room for so many ranges and all that are free."""
        tables = self.tables
        wanted = tables.counters.item(RANGES) + 2 * ranges + tables.counters.item(FREE_RANGES)
        if wanted > tables.ranges.shape[1]:
            more = np.zeros((2, wanted), np.int64)
            self.tables = tables._replace(ranges=np.concatenate([tables.ranges, more], axis=1))

    # Runs

    @property
    def believed_ends(self) -> BelievedEnds:
        """Who holds processors until when; it changes as the engine goes on."""
        tables, ends = self.tables, self._ends
        number = tables.counters.item(HOLDERS)
        if ends is None or ends.end.size != number:
            running = tables.running
            ends = self._ends = BelievedEnds(
                tables.believed[:number],
                running[BELIEVED_JOB, :number],
                running[HELD, :number],
            )
        return ends

    def see_moved(self, run: Run) -> None:
        """Let policies see when a run is believed to end now."""
        self.moved_ends.setdefault(run, run.believed_end)
        rewrite(run, believed_end=self.tables.seconds.item(BELIEVED_END, run.job))

    def wake_at(self, time: float) -> None:
        """See to it that something happens then."""
        tables = self.tables
        if tables.counters[WAKES] == tables.wakes.size:
            tables = self.tables = tables._replace(wakes=np.tile(tables.wakes, 2))
        _ask_to_wake(tables, time)

    def withdraw_wake(self, time: float) -> None:
        """Forget one request of `wake_at` for this very time."""
        wakes, number = self.tables.wakes, self.tables.counters.item(WAKES)
        place = int(wakes[:number].searchsorted(time))
        wakes[place : number - 1] = wakes[place + 1 : number]
        self.tables.counters[WAKES] = number - 1

    def fail(self, node: int, end: float, processors: int) -> None:
        """Note that a node is believed to be repaired then."""
        self.outages[node] = (end, processors)
        _hold(self.tables, end, -1 - node, processors)

    def repair(self, node: int) -> None:
        """Note that a node is back, or believed to be back at another time."""
        end, _ = self.outages.pop(node)
        _let_go(self.tables, end, -1 - node)
