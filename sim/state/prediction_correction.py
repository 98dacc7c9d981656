"""How wrong beliefs were so far, application by application, and what planning adds for it."""

from collections import deque

import numpy as np

from sim.errors import ConfigError


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
        If a value is out of range.

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
        if not 0.0 < quantile <= 1.0:
            raise ConfigError(
                f"policy.error_quantile must be above 0 and at most 1, or null, got {quantile}"
            )
        if not 1 <= least <= memory:
            raise ConfigError(f"least must be 1 to {memory}, got {least}")
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
