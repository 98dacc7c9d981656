"""What the engine asks of a policy, of its scheduler, and of who else takes part in a run."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from predictors.base import Explanation, FloatArray, IntArray
from sim.state.decisions import Decision
from sim.state.machine_state import Run
from sim.state.records import Allocations, Records
from sim.state.run_state import RunState
from sim.state.view import View

Promise = Literal["head", "starts", "ends", "fit", "inner"]
"""What no pass moves later but for a belief that has grown, or a change of what runs or failed
nodes hold: the start that is reserved for the
head of the queue, those of all who wait, or the ends that go with them, where counts are open.
Or that reservations and all that runs fit together; or, under reallocation, what the inner
scheduler promises on what malleable jobs keep."""


def is_exactly(one: object, kind: type) -> bool:
    """Say whether an object is of a kind and overrides nothing of it but parameters.

    What is compiled for the kind is then what it does.

    Examples
    --------
    >>> class Counter:
    ...     def count(self):
    ...         return 1
    >>> class Named(Counter):
    ...     name = "mine"
    >>> class Doubled(Counter):
    ...     def count(self):
    ...         return 2
    >>> is_exactly(Named(), Counter), is_exactly(Doubled(), Counter), is_exactly(3, Counter)
    (True, False, False)
    """
    if not isinstance(one, kind):
        return False
    kinds = type(one).__mro__
    own = {name for each in kinds[: kinds.index(kind)] for name in vars(each)}
    parameters = getattr(kind, "__dataclass_fields__", {})
    overridden = own.intersection(dir(kind)).difference(parameters)
    return all(name.startswith("__") for name in overridden)


class Scheduler(Protocol):
    """What a policy remembers of one run; the engine keeps it and hands it to each pass.

    There is no memory elsewhere: a copy that sees the same state decides the same. One whose
    passes may be compiled has a method ``compiled_rule`` beside: of an `Engine` that is about to
    begin to a `CompiledRule`, or to None where something in it needs Python. One that promises
    something has a `Promise`, by which `sim.engine.invariants.Checker` holds it.
    """

    def decide(self) -> Sequence[Decision]:
        """Decide what happens now."""


class AroundScheduler:
    """A scheduler that adds to what another one decides.

    Parameters
    ----------
    view : View
    inner : Scheduler
        Decides who starts on how many processors.

    Attributes
    ----------
    may_move_reservations : bool
        Whether what it adds may move the reservations of the other.
    """

    may_move_reservations = False

    def __init__(self, view: View, inner: Scheduler) -> None:
        self.view = view
        self.inner = inner


class SchedulingPolicy(Protocol):
    """What begins a scheduler for each run.

    It may have a method ``preferences``, which returns `sim.state.decisions.Preferences`.
    """

    def begin(self, view: View) -> Scheduler:
        """Begin a run."""


class CompiledRule(Protocol):
    """A rule whose functions are compiled, and what it asks of Python.

    Attributes
    ----------
    asks_at_arrivals : bool
        Whether jobs that arrive choose in Python, which sees the state by the view.
    menu : tuple of numpy.ndarray of int, shape (c,), or None
        Jobs and counts that each may choose from in compiled code; there from `begin` on.
    changes_counts : bool
        Whether malleable jobs may go on with other counts.
    functions : mapping of str to callable
        Those of `sim.engine.loop.BoundRule`.
    memory : object
        What they keep from pass to pass, of a type that Numba knows; there from `begin` on.
    explanations : list of Explanation
        What beliefs rested on as jobs started, as far as anybody was asked.
    """

    asks_at_arrivals: bool = False
    menu: tuple[IntArray, IntArray] | None = None
    changes_counts: bool = False
    functions: Mapping[str, Any]
    memory: Any
    explanations: list[Explanation]

    def begin(self, state: RunState) -> None:
        """Begin a run in this state; `processors` are requests there, unless Python is asked."""

    def answer(self) -> None:
        """Answer what the pass of this instant waits for; nothing by default."""
        return

    def finish(self) -> None:
        """Take in what happened since, when nothing is left to happen; nothing by default."""
        return

    def allocations(self, end_time: FloatArray) -> Allocations | None:
        """Return the allocations of all runs, which end then, if they are not whole."""
        return None


class Collaborator:
    """What takes part in a run beside the policy: load, failing nodes, jobs that evolve.

    It is told of starts, ends and passes, and says what it has to say; as it is, nothing.
    """

    def started(self, run: Run, planned: float, predicted: float) -> float:
        """Be told of a run that starts; return what is predicted of it.

        Parameters
        ----------
        run : Run
        planned, predicted : float
            Seconds: the belief that the policy plans with, and the one that is noted.
        """
        return predicted

    def plan_completion(self, run: Run, now: float) -> float | None:
        """Plan the end of a run that begins or goes on; None leaves it to the engine."""
        return None

    def renews_belief(self, run: Run, now: float) -> bool:
        """Be told that a run has outlived its belief; say whether there is a new one."""
        return False

    def ended(self, run: Run, status: str) -> None:
        """Be told that a job is over."""

    def before_pass(self, now: float) -> None:
        """Be told that the policy is about to decide."""

    def carry_out(self, decision: Decision, now: float) -> bool:
        """Carry out a decision that the engine does not know; say whether it was done."""
        return False

    def after_pass(self) -> None:
        """Be told that what the policy decided is done."""

    def complete(self, records: Records) -> Records:
        """Add to the records of a run that is over."""
        return records
