"""What a policy sees of a run: live, read-only, and never a true runtime.

Of jobs what has arrived, of the machine its state, and of runtimes what is believed, which is
kept here.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from predictors.base import (
    BoolArray,
    Explanation,
    FloatArray,
    Inquisitive,
    IntArray,
    RuntimePredictor,
    Selective,
    VisibleJobs,
    provider,
    setting,
)
from predictors.under_load.load_aware import NeedsLoad, Parts
from sim.errors import PolicyError
from sim.state.availability import BelievedEnds
from sim.state.decisions import Preferences
from sim.state.machine_state import MachineState, Run, RunRequest
from sim.state.records import Ranges
from sim.state.run_state import RunState

if TYPE_CHECKING:
    from sim.background.load_forecast import LoadForecast

GradeOf = Callable[[int, int], tuple[str, str]]
Value = TypeVar("Value")
MANY = 8
"""Jobs that are shown column by column."""
LEAST_BELIEF = 1e-3
"""No runtime is believed shorter, in seconds: the clock must tell its end from its start."""
ONE_BY_ONE = "requested_processors", "requested_time", "malleable", "submit_time"
"""What is shown of each job as Python's own numbers."""
_LISTED = 1 << 20
"""Largest count up to which feasible counts are views of one listed range."""


def sealed(values: NDArray[Any]) -> NDArray[Any]:
    """Return the same numbers as they change, which cannot be written by what is returned.

    Nor by what it is a view of: no attribute leads there.

    Examples
    --------
    >>> own = np.zeros(2)
    >>> shown = sealed(own)
    >>> own[1] = 3.0
    >>> shown.tolist(), shown.flags.writeable
    ([0.0, 3.0], False)
    """
    shown = values.view()
    shown.flags.writeable = False
    return np.from_dlpack(shown)


def as_scalars(values: NDArray[Any]) -> Sequence[Any]:
    """Return the same numbers as they change, one by one as Python's own."""
    column: Any = memoryview(cast("Any", values))
    shown: Sequence[Any] = column
    return shown


@lru_cache(1 << 16)
def _powers_between(least: int, largest: int, request: int) -> IntArray:
    """Return the powers of two between two counts, and the request, if it is there, ascending."""
    powers = 2 ** np.arange(63)
    wanted = np.union1d(powers, [request])
    return sealed(wanted[(least <= wanted) & (wanted <= largest)])


def place_up_to(counts: IntArray, wanted: int) -> int:
    """Return the place of the largest count up to `wanted`, else of the first."""
    return max(int(counts.searchsorted(wanted, side="right")) - 1, 0)


class Support(NamedTuple):
    """What a belief rests on: least and largest count that was seen, and in how many runs.

    Endless runs say that nothing rests on what was seen: the belief has no doubt.
    """

    least: float
    most: float
    runs: float


NOTHING_SEEN, NO_DOUBT = Support(0, 0, 0), Support(0.0, np.inf, np.inf)


class FeasibleCounts:
    """Which counts each job can run on; known to policies, unlike how long it takes there.

    Parameters
    ----------
    least, largest : numpy.ndarray of int, shape (n,)
    sparse : mapping of int to numpy.ndarray
        The feasible counts, ascending, of each job that cannot run on every count in between.
    processors : int
        Size of the machine.
    """

    def __init__(
        self, least: IntArray, largest: IntArray, sparse: Mapping[int, IntArray], processors: int
    ) -> None:
        self._least: Sequence[int] = as_scalars(least)
        self._largest: Sequence[int] = as_scalars(largest)
        self._sparse = sparse
        self._all = sealed(np.arange(1, min(processors, _LISTED) + 1))

    def counts(self, job: int) -> IntArray:
        """Return every feasible count of the job, ascending."""
        if (sparse := self._sparse.get(job)) is not None:
            return sparse
        least, largest = self._least[job], self._largest[job]
        if largest > self._all.size:
            return sealed(np.arange(least, largest + 1))
        return self._all[least - 1 : largest]

    def powers_of_two(self, job: int, request: int) -> IntArray:
        """Return the feasible counts that are powers of two, or the request; all if at most two."""
        least, largest, sparse = self._least[job], self._largest[job], self.sparse(job)
        if sparse is None and largest - least > 1:
            return _powers_between(least, largest, request)
        counts = self.counts(job)
        is_power = (counts & (counts - 1)) == 0
        return counts if counts.size <= 2 else sealed(counts[is_power | (counts == request)])

    def sparse(self, job: int) -> IntArray | None:
        """Return the job's feasible counts, None where every count between its extremes is."""
        return self._sparse.get(job)

    def up_to(self, job: int, wanted: int) -> int:
        """Return a job's largest feasible count up to `wanted`, else its least.

        `wanted` is to lie between its extremes where every count between them is feasible.
        """
        counts = self.sparse(job)
        return wanted if counts is None else int(counts[place_up_to(counts, wanted)])

    def extremes(self, job: int) -> tuple[int, int]:
        """Return the least and the largest feasible count of the job."""
        counts = self.sparse(job)
        if counts is None:
            return self._least[job], self._largest[job]
        return counts.item(0), counts.item(-1)


class ReadOnly:
    """What is handed out: its public names cannot be written."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise AttributeError(f"{name} of a view cannot be written")
        object.__setattr__(self, name, value)


class FromState(Generic[Value]):
    """What a view shows of the state under the same name.

    Parameters
    ----------
    sealed : callable, optional
        Makes of it what cannot be written.
    """

    def __init__(self, sealed: Callable[[Any], Value] | None = None) -> None:
        self._sealed = sealed

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, view: Any, owner: type) -> Value:
        found: Any = getattr(view._state, self._name)
        return found if self._sealed is None else self._sealed(found)


class FromSynced(FromState[Value]):
    """The same of runs, and of what is new, which the state may have to catch up with."""

    def __get__(self, view: Any, owner: type) -> Value:
        view._state.sync_runs()
        return super().__get__(view, owner)


class ArrivedJobs:
    """The jobs that have arrived; of all others everything is 0.

    Parameters
    ----------
    jobs : VisibleJobs
        All jobs.
    more : mapping of str to numpy.ndarray
        What policies may know besides, ``least`` and ``largest`` count among it.
    feasible : callable or None
        Job index to the counts that it can run on, None where every count in between is; None
        where that goes for all jobs.
    processors : int
        Size of the machine.

    Attributes
    ----------
    jobs : VisibleJobs
    more : dict of str to numpy.ndarray
        What is shown; nothing leads from there to who has not arrived.
    counts : FeasibleCounts
        Of jobs that have arrived.
    """

    def __init__(
        self,
        jobs: VisibleJobs,
        more: Mapping[str, NDArray[Any]],
        feasible: Callable[[int], IntArray | None] | None,
        processors: int,
    ) -> None:
        self._known = {**vars(jobs), **more}
        self._written = {k: np.zeros(one.shape, one.dtype) for k, one in self._known.items()}
        self._feasible, self._sparse = feasible, dict[int, IntArray]()
        self._least, self._largest = as_scalars(more["least"]), as_scalars(more["largest"])
        pairs = zip(self._written.values(), self._known.values(), strict=True)
        self._columns: Any = [tuple(map(as_scalars, pair)) for pair in pairs]
        shown = {name: sealed(column) for name, column in self._written.items()}
        self.jobs = VisibleJobs(**{name: shown[name] for name in vars(jobs)})
        self.more = {name: shown[name] for name in more}
        self.counts = FeasibleCounts(shown["least"], shown["largest"], self._sparse, processors)

    def arrive(self, jobs: Sequence[int]) -> None:
        """Show jobs that have arrived."""
        columns = self._columns
        if len(jobs) > MANY:
            places, columns = np.array(jobs), []
            for name, column in self._written.items():
                column[places] = self._known[name][places]
            spread = self._known["least"][places] < self._known["largest"][places]
            jobs = places[spread].tolist() if self._feasible is not None else ()
        for job in jobs:
            for written, known in columns:
                written[job] = known[job]
            if (sparse := self.sparse(job)) is not None:
                self._sparse[job] = sparse

    def sparse(self, job: int) -> IntArray | None:
        """Return any job's feasible counts, None where every count between its extremes is."""
        least, largest = self._least[job], self._largest[job]
        if self._feasible is None or least == largest or (counts := self._feasible(job)) is None:
            return None
        return sealed(counts[(counts >= least) & (counts <= largest)])

    def leave(self, job: int) -> None:
        """Keep no counts of a job that has ended."""
        self._sparse.pop(job, None)


class Changes(ReadOnly):
    """What happened since the last pass, besides arrivals and ends."""

    def __init__(self, state: MachineState) -> None:
        self._state = state

    moved_ends = FromSynced[Mapping[Run, float]](MappingProxyType)
    """Runs whose believed end changed, with the former one."""
    revised = FromState[Set[int]](frozenset)
    """Applications about which the predictor changed its mind."""
    granted = FromState[Set[Run]](frozenset)
    """Runs whose processors a policy has changed behind a scheduler's back."""
    outages_changed = FromState[bool]()
    """Whether nodes failed or came back, or are believed back otherwise."""
    disturbed = FromSynced[bool]()
    """Whether anything else happened (a wake-up, a failure)."""
    ahead = FromState[Set[int]](frozenset)
    """Jobs that go to the head of the queue when they arrive again."""


class SeenMachine(ReadOnly):
    """Processors, nodes, and what is measured of them."""

    def __init__(self, state: MachineState) -> None:
        self._state = state

    processors_per_node = FromState[int]()
    """Processors of a node."""
    outages = FromState[Mapping[int, tuple[float, int]]](MappingProxyType)
    """Failed nodes: when each is believed to be repaired, and its processors."""

    def idle(self) -> Ranges:
        """Return the free processors."""
        return self._state.idle()

    def cycle_time_ratios(self, job: int, after: float) -> FloatArray:
        """Return measured over benchmarked times of a running job's cycles since an instant.

        Empty where nothing is measured of it.
        """
        told = (self._state.cycle_time_ratios or {}).get(job, [])
        return np.concatenate([np.empty(0), *(ratios for time, ratios in told if time > after)])


@dataclass
class QueryLog:
    """How often the predictor was asked, and what it last said of the job that is explained.

    Attributes
    ----------
    queries : int
        How often.
    explained : int
        Index of the job, -1 for none.
    weighed : numpy.ndarray of float, shape (3, c)
        The last answer about several of its counts: these, believed runtimes in seconds, and NaN,
        as nobody said when it would start.
    """

    queries: int = 0
    explained: int = -1
    weighed: FloatArray = field(default_factory=partial(np.zeros, (3, 0)))

    def note(self, counts: IntArray, runtimes: FloatArray | None) -> None:
        """Write down what is believed of the job, in seconds, if it is of several counts."""
        if runtimes is not None and counts.size > 1:
            self.weighed = np.array([counts, runtimes, np.full(counts.size, np.nan)])


class SeenPredictor(ReadOnly):
    """What the predictor says besides curves, and what its beliefs rest on.

    Parameters
    ----------
    predictor : RuntimePredictor
    columns : mapping of str to sequence
        ``application``, ``requested_processors``, ``requested_time`` and ``malleable`` of each
        job that has arrived.
    feasible : FeasibleCounts
    left : mapping of int to float
        Share of its work that a job that was interrupted still has to do.
    preferences : Preferences of the policy
    """

    def __init__(
        self,
        predictor: RuntimePredictor,
        columns: Mapping[str, Sequence[Any]],
        feasible: FeasibleCounts,
        left: Mapping[int, float],
        preferences: Preferences,
    ) -> None:
        self._predictor, self._feasible, self._left = predictor, feasible, left
        self._preferences, self._columns = preferences, columns
        self._application: Sequence[int] = columns["application"]
        self._grade: GradeOf | None = getattr(predictor, "grade_of", None)
        asking = provider(predictor, NeedsLoad)
        self._parts = None if asking is None else asking.parts
        self._selective = provider(predictor, Selective)
        self._known_counts = setting(predictor, "known_counts", None)
        self._single: dict[int, IntArray] = {}
        self._seen: dict[int, Support] = {}
        self._asked = QueryLog()

    @property
    def learns(self) -> bool:
        """Whether beliefs change as runs end."""
        return self._predictor.learns

    def _ask(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return what the predictor says, which may not write into the counts."""
        self._asked.queries += 1
        shown = sealed(counts) if counts.flags.writeable else counts
        found = self._predictor.curve(job, shown)
        if job == self._asked.explained:
            self._asked.note(counts, found)
        return found

    def runtime(self, job: int, processors: int) -> float:
        """Return the believed runtime of what is left of a job at any count, in seconds.

        It is not stretched by past errors.
        """
        count = self._single.get(processors)
        if count is None:
            count = self._single[processors] = sealed(np.array([processors]))
        curve = self._ask(job, count)
        seconds = self._requested(job, processors) if curve is None else float(curve[0])
        return max(seconds * self._left.get(job, 1.0), LEAST_BELIEF)

    def _requested(self, job: int, processors: int) -> float:
        columns, seconds = self._columns, float(self._columns["requested_time"][job])
        if self._preferences.scales_requests and columns["malleable"][job]:
            return float(seconds * columns["requested_processors"][job] / processors)
        return seconds

    def caution(self, job: int) -> float:
        """Return by what beliefs about a job are stretched to plan with: 1 unless wanted."""
        errors = self._preferences.past_errors
        return 1.0 if errors is None else errors.factor(self._application[job])

    def has_curve(self, job: int) -> bool:
        """Return whether it says anything of the job's largest count."""
        largest = self._feasible.extremes(job)[1]
        curve = self._predictor.curve(job, sealed(np.array([largest])))
        return curve is not None and not np.isnan(curve[0])

    def known_counts(self, job: int, counts: IntArray) -> BoolArray | None:
        """Return at which counts it knows anything; None if at all."""
        return None if self._known_counts is None else self._known_counts(job, counts)

    def offered(self, job: int, counts: IntArray) -> BoolArray | None:
        """Return which counts the job's application is made for, as learned; None if all are."""
        return None if self._selective is None else self._selective.offered(job, counts)

    def wanted(self, job: int, processors: int) -> int | None:
        """Return the count that it would have measured next, if it says so."""
        asked = provider(self._predictor, Inquisitive)
        return None if asked is None else asked.wanted(job, processors)

    def parts(self, job: int, counts: IntArray) -> Parts | None:
        """Return what of a job load slows down, as predicted; None if nobody says."""
        if self._parts is None:
            return None
        self._asked.queries += 1
        return self._parts(job, counts)

    def support(self, job: int) -> Support:
        """Return which counts of the job's application its belief rests on, and how many runs.

        `NO_DOUBT` where the predictor does not go by runs.
        """
        return self._seen.get(self._application[job], NOTHING_SEEN) if self.learns else NO_DOUBT

    def explain(self, job: int, processors: int) -> Explanation:
        """Return what its belief rests on, for what is left of the job."""
        found = self._predictor.explain(job, processors)
        left = self._left.get(job)
        return found if left is None else found._replace(mean_at_count=found.mean_at_count * left)

    def reliability(self, job: int, processors: int) -> tuple[str, str]:
        """Return how it grades its belief, and the code of why."""
        if self._grade is not None:
            return self._grade(job, processors)
        found = self._predictor.explain(job, processors)
        return found.reliability, found.code


class Beliefs:
    """What is planned with in a run, kept until the predictor changes its mind or the job ends.

    Parameters
    ----------
    predictor : SeenPredictor
    """

    def __init__(self, predictor: SeenPredictor) -> None:
        self.predictor = predictor
        self._kept: dict[int, tuple[int, float]] = {}
        self._curve_is_belief = setting(predictor._predictor, "curve_is_belief", True)

    def belief(self, job: int, processors: int) -> float:
        """Return the runtime to plan with, in seconds; see `sim.state.view.View.belief`."""
        known = self._kept.get(job)
        if known is not None and known[0] == processors:
            return known[1]
        predictor = self.predictor
        seconds = predictor.runtime(job, processors) * predictor.caution(job)
        self._kept[job] = (processors, seconds)
        return seconds

    def keep(self, job: int, processors: int, seconds: float) -> None:
        """Keep a belief that was just read off the job's curve."""
        if self._curve_is_belief:
            self._kept[job] = (processors, seconds)

    def forget(self, job: int) -> None:
        """Ask the predictor again about a job when next needed."""
        self._kept.pop(job, None)

    def note(self, application: int, processors: int) -> None:
        """Note that the predictor was told of a run of an application at a count."""
        seen = self.predictor._seen
        least, most, runs = seen.get(application, (processors, processors, 0))
        seen[application] = Support(min(least, processors), max(most, processors), runs + 1)

    def mark(self, job: int, chosen_by_curve: bool) -> None:
        """Say whether a curve decided a job's count, or its request stood for another reason."""
        kept_requests = self.predictor._preferences.kept_requests
        (kept_requests.discard if chosen_by_curve else kept_requests.add)(job)


@dataclass(frozen=True)
class SeenJobs(VisibleJobs):
    """What a policy may know of the jobs that have arrived, by job index.

    Attributes
    ----------
    adopter_draws : numpy.ndarray of float, shape (n,)
        One uniform draw a job, for shares such as that of adopters.
    """

    adopter_draws: FloatArray


class View(ReadOnly):
    """The system at a scheduling pass.

    Nothing of it can be written to. A job that has not arrived is not there: all of its
    numbers are 0.

    Parameters
    ----------
    state : MachineState
    shown : ArrivedJobs
        With ``submit_time``, ``malleable`` and ``adopter_draws`` besides.
    predictor : RuntimePredictor
    preferences : Preferences of the policy
    """

    def __init__(
        self,
        state: MachineState,
        shown: ArrivedJobs,
        predictor: RuntimePredictor,
        preferences: Preferences,
    ) -> None:
        self._state, self._feasible = state, shown.counts
        columns = {**vars(shown.jobs), **shown.more}
        singly = {name: as_scalars(columns[name]) for name in ONE_BY_ONE}
        known = {**singly, "application": as_scalars(columns["application"])}
        about = known, shown.counts, state.left, preferences
        self._beliefs = Beliefs(SeenPredictor(predictor, *about))
        vars(self).update(
            singly,
            machine=SeenMachine(state),
            changes=Changes(state),
            jobs=SeenJobs(**vars(shown.jobs), adopter_draws=columns["adopter_draws"]),
            predictor=self._beliefs.predictor,
        )

    # The state of the machine

    now = FromState[float]()
    """Seconds."""
    processors = FromState[int]()
    """Size of the machine."""
    running = FromSynced[Mapping[int, Run]](MappingProxyType)
    """Who runs, by job index."""
    arrived = FromSynced[Sequence[int]](tuple)
    """Jobs that arrived since the last pass, in order of arrival."""
    ended = FromSynced[Sequence[Run]](tuple)
    """Runs that ended since the last pass."""
    others_wait = FromState[bool]()
    """Whether any other job waits while one chooses its count."""
    requests = FromState[Mapping[tuple[int, str], RunRequest]](MappingProxyType)
    """What running jobs ask for, by job and kind, in the order of asking."""
    free = FromState[int]()
    """How many processors are idle."""
    load: "FromState[LoadForecast | None]" = FromState()
    """What is believed of the load, on a shared machine."""
    machine: SeenMachine
    """Its processors and nodes."""
    changes: Changes
    """What happened since the last pass, besides arrivals and ends."""

    @property
    def believed_ends(self) -> BelievedEnds:
        """Who holds processors, failed nodes among them, and until when by belief.

        Arrays of one length, by end: ``end`` (seconds), ``job`` (index; below 0 a failed node)
        and ``processors``.
        """
        return BelievedEnds(*map(sealed, self._ends))

    @property
    def _ends(self) -> BelievedEnds:
        """The same for rules of this program, whose compiled code takes arrays of one type."""
        return self._state.believed_ends

    @property
    def _tables(self) -> RunState:
        """The state for rules of this program, where they ask who holds processors."""
        return self._state.tables

    def measured_efficiency(self, job: int) -> float:
        """Return the efficiency of a running job on what it holds, as measured now.

        Raises
        ------
        PolicyError
            If the job does not run.
        """
        if job not in self.running:
            raise PolicyError(
                f"the efficiency of job index {job} was asked for, which does not run: "
                "only running jobs can be measured"
            )
        self._state.read_efficiencies.add(job)
        return self._state.efficiency[job]

    def seconds_left(self, run: Run) -> float:
        """Return the believed seconds of progress that a run still needs where it is."""
        left = run.believed_end - max(self.now, run.resumes)
        return left if left > 0.0 else 0.0

    # Jobs, and what is believed of them

    jobs: SeenJobs
    """What may be known of the jobs that have arrived."""
    predictor: SeenPredictor
    """What the predictor says besides curves, and what its beliefs rest on."""
    requested_processors: Sequence[int]
    """Of each job."""
    malleable: Sequence[bool]
    """Whether the processors of each job may change while it runs."""
    requested_time: Sequence[float]
    """Of each job, seconds."""
    submit_time: Sequence[float]
    """Of each job, seconds."""

    def counts(self, job: int) -> IntArray:
        """Return every count the job could run on, ascending, within the machine."""
        return self._feasible.counts(job)

    def extremes(self, job: int) -> tuple[int, int]:
        """Return the least and the largest count the job could run on."""
        return self._feasible.extremes(job)

    def curve(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return the predicted runtimes at each count, in seconds; None if there are none.

        Of a job that was interrupted: those of what is left of it.
        """
        if (curve := self.predictor._ask(job, counts)) is None:
            return None
        left = self._state.left
        return np.maximum(curve * left[job] if job in left else curve, LEAST_BELIEF)

    def belief(self, job: int, processors: int) -> float:
        """Return the runtime to plan with, in seconds: predicted, else as requested.

        Stretched by past errors, where the policy wants that.
        """
        return self._beliefs.belief(job, processors)

    def runtime_ratios(self, job: int, processors: int, counts: IntArray) -> FloatArray:
        """Return the believed runtime at each count over that at `processors`.

        Without a curve a job's work counts in processor-seconds, as if it sped
        up perfectly: nothing else is known of it.
        """
        asked = np.empty(counts.size + 1, np.int64)
        asked[0], asked[1:] = processors, counts
        curve = self.predictor._ask(job, asked)
        return processors / counts if curve is None else np.asarray(curve[1:] / curve[0])
