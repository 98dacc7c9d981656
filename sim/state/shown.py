"""What is shown of a run to those who decide and predict: jobs that have arrived, and the state."""

from collections.abc import Callable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray, VisibleJobs
from sim.state.feasible_counts import FeasibleCounts, one_by_one, sealed
from sim.state.machine_state import MachineState, Run
from sim.state.records import Ranges

Value = TypeVar("Value")
MANY = 8
"""Jobs that are shown column by column."""


class ShownJobs:
    """The jobs that have arrived; of all others everything is 0.

    Parameters
    ----------
    jobs : VisibleJobs
        All jobs.
    more : mapping of str to numpy.ndarray
        What policies may know besides, ``least`` and ``largest`` count among it.
    special : callable
        As of `FeasibleCounts`.
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
        special: Callable[[int], IntArray | None],
        processors: int,
    ) -> None:
        self._known = {**vars(jobs), **more}
        self._written = {name: np.zeros_like(column) for name, column in self._known.items()}
        self._ask, self._special = special, dict[int, IntArray]()
        self._columns: Any = [
            (one_by_one(self._written[name]), one_by_one(known))
            for name, known in self._known.items()
        ]
        self._least, self._largest = one_by_one(more["least"]), one_by_one(more["largest"])
        shown = {name: sealed(column) for name, column in self._written.items()}
        self.jobs = VisibleJobs(**{name: shown[name] for name in vars(jobs)})
        self.more = {name: shown[name] for name in more}
        self.counts = FeasibleCounts(
            shown["least"], shown["largest"], self._special.get, processors
        )

    def arrive(self, jobs: Sequence[int]) -> None:
        """Show jobs that have arrived."""
        if len(jobs) > MANY:
            places = np.array(jobs)
            for name, column in self._written.items():
                column[places] = self._known[name][places]
        for job in jobs:
            for written, known in self._columns if len(jobs) <= MANY else ():
                written[job] = known[job]
            if self._least[job] != self._largest[job]:
                special = self._ask(job)
                if special is not None:
                    self._special[job] = sealed(special)

    def leave(self, job: int) -> None:
        """Keep no counts of a job that has ended."""
        self._special.pop(job, None)
        self.counts.leave(job)


class OfState(Generic[Value]):
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


class OfRuns(OfState[Value]):
    """The same of runs, and of what is new, which the state may have to catch up with."""

    def __get__(self, view: Any, owner: type) -> Value:
        view._state.name_runs()
        return super().__get__(view, owner)


class ReadAlone:
    """What is handed out: its public names cannot be written."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise AttributeError(f"{name} of a view cannot be written")
        object.__setattr__(self, name, value)


class Changes(ReadAlone):
    """What happened since the last pass, besides arrivals and ends."""

    def __init__(self, state: MachineState) -> None:
        self._state = state

    moved_ends = OfRuns[Mapping[Run, float]](MappingProxyType)
    """Runs whose believed end changed, with the former one."""
    revised = OfState[Set[int]](frozenset)
    """Applications about which the predictor changed its mind."""
    resized = OfState[Set[Run]](frozenset)
    """Runs whose processors a policy has changed behind a scheduler's back."""
    outages_changed = OfState[bool]()
    """Whether nodes failed or came back, or are believed back otherwise."""
    disturbed = OfRuns[bool]()
    """Whether anything else happened (a wake-up, a failure)."""
    ahead = OfState[Set[int]](frozenset)
    """Jobs that go to the head of the queue when they arrive again."""


class SeenMachine(ReadAlone):
    """Processors, nodes, and what is measured of them."""

    def __init__(self, state: MachineState) -> None:
        self._state = state

    processors_per_node = OfState[int]()
    """Processors of a node."""
    outages = OfState[Mapping[int, tuple[float, int]]](MappingProxyType)
    """Failed nodes: when each is believed to be repaired, and its processors."""

    def idle(self) -> Ranges:
        """Return the free processors."""
        return self._state.idle()

    def health(self, job: int, after: float) -> FloatArray:
        """Return measured over benchmarked times of a running job's cycles since an instant.

        Empty where nothing is measured of it.
        """
        told = (self._state.health or {}).get(job, [])
        return np.concatenate([np.empty(0), *(ratios for time, ratios in told if time > after)])
