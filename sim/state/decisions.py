"""What a policy may decide in a scheduling pass, and what it prefers in a run.

Among that is what planning adds to beliefs by how wrong they were, application by application.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sim.errors import POSITIVE_SHARE, up_to
from sim.state.records import Ranges


class Start(NamedTuple):
    """Start a waiting job now.

    Attributes
    ----------
    job : int
        Job index.
    processors : int
    nodes : Ranges or None
        Which processors; None takes the lowest-numbered free ones.
    cost : float
        Seconds before the job makes progress, on the processors it holds.
    """

    job: int
    processors: int
    nodes: Ranges | None = None
    cost: float = 0.0


class Resize(NamedTuple):
    """Change the processors of a running job now.

    Attributes
    ----------
    job : int
        Job index.
    processors : int
        The new count.
    nodes : Ranges or None
        Which processors; None keeps the lowest-numbered of its own and adds the
        lowest-numbered free ones.
    cost : float
        Seconds without progress, on all processors held from now on.
    """

    job: int
    processors: int
    nodes: Ranges | None = None
    cost: float = 0.0


class Requeue(NamedTuple):
    """Interrupt a running job and queue it again.

    A job that evolves finishes its cycle, writes a checkpoint and goes on from
    it later; any other ends at once and begins again from zero.

    Attributes
    ----------
    job : int
        Job index.
    """

    job: int


class Grant(NamedTuple):
    """Give a running job what it asks for: other processors, or a longer walltime.

    The change begins at the end of the job's cycle under way, so that none is done
    twice; processors that it gains are its own from now on.

    Attributes
    ----------
    job : int
        Job index.
    kind : str
        Of the request: ``processors`` or ``walltime``.
    cost : float
        Seconds without progress, on all processors held from then on.
    """

    job: int
    kind: str
    cost: float = 0.0


class Refuse(NamedTuple):
    """Refuse what a running job asks for; it may ask again.

    Attributes
    ----------
    job : int
        Job index.
    kind : str
        Of the request.
    """

    job: int
    kind: str


class WakeAt(NamedTuple):
    """Look again at this time, whatever happens until then (seconds).

    Attributes
    ----------
    time : float
        Infinite for never.
    """

    time: float


Decision = Start | Resize | Requeue | Grant | Refuse | WakeAt


class PastErrors:
    """A quantile of runtime over belief in an application's finished runs.

    Schedulers that plan with beliefs stretched by it are late less often: of past
    runs, a share of `quantile` kept within their stretched belief.

    Parameters
    ----------
    quantile : float
        Within (0, 1].
    least : int
        Runs of an application before it is stretched, at least 1.
    memory : int
        Most recent runs that count.

    Raises
    ------
    ConfigError
        If the quantile is out of range.

    Examples
    --------
    >>> errors = PastErrors(1.0, least=2)
    >>> errors.note(7, 100.0, 130.0)
    >>> errors.factor(7)
    1.0
    >>> errors.note(7, 100.0, 90.0)
    >>> errors.factor(7)
    1.3

    Notes
    -----
    Never below 1: a belief that was too long so far stays as it is. The note on
    policies, 3.16, advises this for reservations at fitted runtimes.
    """

    def __init__(self, quantile: float, least: int = 3, memory: int = 64) -> None:
        POSITIVE_SHARE.check_or_null(**{"policy.error_quantile": quantile})
        up_to(memory).check(least=least)
        self.quantile = quantile
        self._least = least
        self._memory = memory
        self._ratios: dict[int, deque[float]] = {}
        self._factors: dict[int, float] = {}

    def note(self, application: int, believed: float, runtime: float) -> None:
        """Take in a finished run: what was believed of it, and what it took, in seconds."""
        ratios = self._ratios.setdefault(application, deque(maxlen=self._memory))
        ratios.append(runtime / believed if believed > 0.0 else 1.0)
        if len(ratios) >= self._least:
            self._factors[application] = max(1.0, float(np.quantile(ratios, self.quantile)))

    def factor(self, application: int) -> float:
        """Return by what a belief about this application is stretched, at least 1."""
        return self._factors.get(application, 1.0)


@dataclass(frozen=True)
class Preferences:
    """What a policy wants of one run, besides what it decides.

    Attributes
    ----------
    forced_change_cost : callable
        What a change of processors costs that the policy did not decide: two counts to
        seconds.
    scales_requests : bool
        Whether a malleable job without a curve is believed to need its requested
        processor-seconds on any count, instead of its requested time.
    may_grant : bool
        Whether the policy answers requests of running jobs; if not, they are refused.
    past_errors : PastErrors or None
        What beliefs are stretched by, where the policy wants that.
    picks_processors : bool
        Whether it names the processors on which a job ends first, on a shared machine.
    reads_cycle_times : bool
        Whether the policy reads what evolving jobs measure of themselves.
    kept_requests : set of int
        Jobs whose request stands whatever a curve says: a rule would not go by it.
    """

    forced_change_cost: Callable[[int, int], float] = field(default=lambda before, after: 0.0)
    scales_requests: bool = False
    may_grant: bool = False
    past_errors: PastErrors | None = None
    picks_processors: bool = False
    reads_cycle_times: bool = False
    kept_requests: set[int] = field(default_factory=set)
