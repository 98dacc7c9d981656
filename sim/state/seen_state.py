"""What may be read of the state of the machine, and not written."""

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from predictors.base import FloatArray
from sim.errors import PolicyError
from sim.state.availability import BelievedEnds
from sim.state.feasible_counts import sealed
from sim.state.machine_state import MachineState, Request, Run
from sim.state.records import Ranges

if TYPE_CHECKING:
    from sim.background.load_outlook import LoadOutlook


class SeenState:
    """The state of the machine, live.

    Attributes
    ----------
    _state : MachineState
    """

    _state: MachineState

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise AttributeError(f"view.{name} cannot be written")
        object.__setattr__(self, name, value)

    @property
    def now(self) -> float:
        """Seconds."""
        return self._state.now

    @property
    def processors(self) -> int:
        """Size of the machine."""
        return self._state.processors

    @property
    def free(self) -> int:
        """How many processors are idle."""
        return self._state.free

    @property
    def running(self) -> Mapping[int, Run]:
        """Who runs, by job index."""
        return MappingProxyType(self._state.running)

    @property
    def believed_ends(self) -> BelievedEnds:
        """Who holds processors, failed nodes among them, and until when by belief."""
        return BelievedEnds(*map(sealed, self._ends))

    @property
    def _ends(self) -> BelievedEnds:
        """The same for rules of this program, whose compiled code takes arrays of one type."""
        return self._state.believed_ends

    @property
    def arrived(self) -> Sequence[int]:
        """Jobs that arrived since the last pass, in queue order."""
        return tuple(self._state.arrived)

    @property
    def ended(self) -> Sequence[Run]:
        """Runs that ended since the last pass."""
        return tuple(self._state.ended)

    @property
    def moved_ends(self) -> Mapping[Run, float]:
        """Runs whose believed end changed since the last pass, with the former one."""
        return MappingProxyType(self._state.moved_ends)

    @property
    def disturbed(self) -> bool:
        """Whether anything else happened since the last pass (a wake-up, a failure)."""
        return self._state.disturbed

    @property
    def resized(self) -> Set[Run]:
        """Runs whose processors a policy has changed behind a scheduler's back."""
        return frozenset(self._state.resized)

    @property
    def outages(self) -> Mapping[int, tuple[float, int]]:
        """Failed nodes: when each is believed to be repaired, and its processors."""
        return MappingProxyType(self._state.outages)

    @property
    def outages_changed(self) -> bool:
        """Whether nodes failed or came back since the last pass, or are believed back otherwise."""
        return self._state.outages_changed

    @property
    def ahead(self) -> Set[int]:
        """Jobs that go to the head of the queue when they arrive again."""
        return frozenset(self._state.ahead)

    @property
    def left(self) -> Mapping[int, float]:
        """Share of its work that a job that was interrupted still has to do."""
        return MappingProxyType(self._state.left)

    @property
    def processors_per_node(self) -> int:
        """Processors of a node."""
        return self._state.processors_per_node

    def idle(self) -> Ranges:
        """Return the free processors."""
        return self._state.idle()

    def health(self, job: int, after: float) -> FloatArray:
        """Return measured over benchmarked times of a running job's cycles since an instant.

        Empty where nothing is measured of it.
        """
        told = (self._state.health or {}).get(job, [])
        return np.concatenate([np.empty(0), *(ratios for time, ratios in told if time > after)])

    def measured_efficiency(self, job: int) -> float:
        """Return the efficiency of a running job on what it holds, as measured now.

        Raises
        ------
        PolicyError
            If the job does not run.
        """
        if job not in self._state.running:
            raise PolicyError(
                f"the efficiency of job index {job} was asked for, which does not run: "
                "only running jobs can be measured"
            )
        self._state.measured.add(job)
        return self._state.efficiency[job]

    @property
    def revised(self) -> Set[int]:
        """Applications about which the predictor changed its mind since the last pass."""
        return frozenset(self._state.revised)

    @property
    def requests(self) -> Mapping[tuple[int, str], Request]:
        """What running jobs ask for, by job and kind, in the order of asking."""
        return MappingProxyType(self._state.requests)

    @property
    def load(self) -> "LoadOutlook | None":
        """What is believed of the load, on a shared machine."""
        load: LoadOutlook | None = self._state.load
        return load
