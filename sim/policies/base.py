"""How a policy is made: order x backfilling x allocation (x reallocation)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from predictors.base import FloatArray, IntArray, RuntimePredictor
from sim.engine.protocols import Scheduler
from sim.errors import PolicyError
from sim.policies.order import Order
from sim.policies.reallocation.costs import FREE, CostModel
from sim.state.decisions import PastErrors, Preferences
from sim.state.view import View

Outlook = Callable[[IntArray, FloatArray], FloatArray]
"""Counts and runtimes to the predicted start of a job that asked for them now."""


class Allocation(Protocol):
    """How many processors a job gets."""

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the count for a job that has just arrived.

        Parameters
        ----------
        job : int
            Job index.
        view : View
            `View.curve` gives the predicted runtimes, or None.
        outlook : callable
            Takes counts and their runtimes in seconds, two arrays of one length, and returns
            when a job of each would start, given everything that runs and waits now.
        """


@runtime_checkable
class OpenAllocation(Protocol):
    """How many processors a job gets, left open until it could start."""

    def open(self, view: View) -> Any:
        """Begin a run: return `sim.policies.molding.base.Candidates`."""


class Backfill(Protocol):
    """Who may pass whom."""

    def begin(self, view: View, order: Order, allocation: Allocation | OpenAllocation) -> Scheduler:
        """Begin a run."""


class Reallocation(Protocol):
    """How many processors malleable jobs hold while they run.

    Attributes
    ----------
    cost : CostModel
        What changes cost.
    """

    @property
    def cost(self) -> CostModel: ...  # noqa: D102

    def begin(
        self, view: View, order: Order, backfill: Backfill, allocation: Allocation
    ) -> Scheduler:
        """Begin a run."""


class Grants(Protocol):
    """What running jobs are told that ask for processors or a longer walltime.

    Attributes
    ----------
    cost : CostModel
        What changes cost.
    """

    @property
    def cost(self) -> CostModel: ...  # noqa: D102

    def begin(self, view: View, scheduler: Scheduler) -> Scheduler:
        """Begin a run: return a scheduler that answers requests."""


class Placement(Protocol):
    """Which processors a job gets.

    Attributes
    ----------
    picks_processors : bool, optional
        Whether it names the processors on which a job is predicted to end first.
    """

    def begin(self, view: View, scheduler: Scheduler) -> Scheduler:
        """Begin a run: return a scheduler whose starts name processors."""


@dataclass(frozen=True)
class Policy:
    """A policy composed of its parts.

    Parameters
    ----------
    order : Order
    backfill : Backfill
    allocation : Allocation or OpenAllocation
    reallocation : Reallocation or None
        None leaves malleable jobs on the processors they start on.
    placement : Placement or None
        Which processors jobs get; None takes the lowest-numbered free ones.
    grants : Grants or None
        What running jobs are told that ask for more; None refuses.
    predictor : RuntimePredictor or None
        Whose beliefs are a part of the policy, as those of EASY++ are; None takes the run's.
    error_quantile : float or None
        Reservations are planned with beliefs stretched by this quantile of runtime
        over belief in the application's past runs, within (0, 1]; None plans with
        beliefs as they are. See `sim.state.decisions.PastErrors`.
    name : str or None
        What it is called in tables and folders; None takes its class.

    Raises
    ------
    ConfigError
        If `error_quantile` is out of range.
    PolicyError
        If a reallocation meets an allocation that keeps counts open until the
        start: both would choose the count of a waiting job; or grants: both would
        change that of a running one.

    Examples
    --------
    >>> import sim
    >>> policy = sim.Policy(sim.FirstComeFirstServed(), sim.Easy(), sim.Request())
    >>> result = sim.run("workload.jobs=20", policy=policy, predictor="oracle")
    >>> set(result.jobs["status"])
    {'completed'}
    """

    order: Order
    backfill: Backfill
    allocation: Allocation | OpenAllocation
    reallocation: Reallocation | None = None
    placement: Placement | None = None
    error_quantile: float | None = None
    grants: Grants | None = None
    name: str | None = None
    predictor: RuntimePredictor | None = None

    def __post_init__(self) -> None:
        if self.error_quantile is not None:
            PastErrors(self.error_quantile)
        if self.reallocation is not None and isinstance(self.allocation, OpenAllocation):
            raise PolicyError(
                f"policy.reallocation={type(self.reallocation).__name__} does not go with "
                f"policy.allocation={type(self.allocation).__name__}, which keeps counts open "
                "until the start; choose an allocation that decides at submit, such as request"
            )
        if self.reallocation is not None and self.grants is not None:
            raise PolicyError(
                f"policy.grants={type(self.grants).__name__} does not go with "
                f"policy.reallocation={type(self.reallocation).__name__}: both would change the "
                "processors of running jobs; choose policy/grants=none"
            )

    def preferences(self) -> Preferences:
        """Return what the policy wants of a new run besides what it decides."""
        changing = self.grants if self.reallocation is None else self.reallocation
        return Preferences(
            (FREE if changing is None else changing.cost).change,
            self.reallocation is not None,
            self.grants is not None,
            None if self.error_quantile is None else PastErrors(self.error_quantile),
            getattr(self.placement, "picks_processors", False),
        )

    def begin(self, view: View) -> Scheduler:
        """Begin a run."""
        if self.reallocation is not None and not isinstance(self.allocation, OpenAllocation):
            told = view, self.order, self.backfill, self.allocation
            scheduler = self.reallocation.begin(*told)
        else:
            scheduler = self.backfill.begin(view, self.order, self.allocation)
        if self.grants is not None:
            scheduler = self.grants.begin(view, scheduler)
        return scheduler if self.placement is None else self.placement.begin(view, scheduler)
