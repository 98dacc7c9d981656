"""Who is considered first: the order of the waiting queue.

An order gives every waiting job a key; the smallest is first, ties go by
arrival. Scores that papers maximise are negated here. Figures: policies.md 2.4;
WFP3: Tang et al. 2009; F1 to F4: Carastan-Santos & de Camargo, SC'17.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.errors import check_choice


class Order(Protocol):
    """Ranks waiting jobs.

    Attributes
    ----------
    recomputed : bool
        Whether keys change while jobs wait (they are then computed in every scheduling pass).
    """

    recomputed: bool

    def keys(
        self, now: float, submit: FloatArray, processors: IntArray, runtime: FloatArray
    ) -> FloatArray | None:
        """Return a key a job, the smallest first; None keeps the order of arrival.

        Parameters
        ----------
        now : float, seconds
        submit : numpy.ndarray of float, shape (n,), seconds
        processors : numpy.ndarray of int, shape (n,)
        runtime : numpy.ndarray of float, shape (n,)
            Believed runtimes, seconds.
        """


class _FixedOrder:
    """An order whose keys do not change while a job waits."""

    recomputed = False


class FirstComeFirstServed(_FixedOrder):
    """In order of arrival.

    Examples
    --------
    >>> now, submit, runtime = 9.0, np.array([0.0, 1.0]), np.array([60.0, 30.0])
    >>> FirstComeFirstServed().keys(now, submit, np.array([4, 8]), runtime) is None
    True
    """

    keys = staticmethod(lambda now, submit, processors, runtime: None)


class ShortestFirst(_FixedOrder):
    """SJF: least believed runtime first.

    Examples
    --------
    >>> now, submit, runtime = 9.0, np.array([0.0, 1.0]), np.array([60.0, 30.0])
    >>> ShortestFirst().keys(now, submit, np.array([4, 8]), runtime).tolist()
    [60.0, 30.0]
    """

    keys = staticmethod(lambda now, submit, processors, runtime: runtime)


class LongestFirst(_FixedOrder):
    """LJF: largest believed runtime first.

    Examples
    --------
    >>> now, submit, runtime = 9.0, np.array([0.0, 1.0]), np.array([60.0, 30.0])
    >>> LongestFirst().keys(now, submit, np.array([4, 8]), runtime).tolist()
    [-60.0, -30.0]
    """

    keys = staticmethod(lambda now, submit, processors, runtime: -runtime)


class SmallestAreaFirst(_FixedOrder):
    """SAF: least processors times believed runtime first."""

    keys = staticmethod(lambda now, submit, processors, runtime: runtime * processors)


class LargestAreaFirst(_FixedOrder):
    """LAF: largest processors times believed runtime first."""

    keys = staticmethod(lambda now, submit, processors, runtime: -runtime * processors)


class SmallestFirst(_FixedOrder):
    """Fewest processors first.

    Examples
    --------
    >>> now, submit, runtime = 9.0, np.array([0.0, 1.0]), np.array([60.0, 30.0])
    >>> SmallestFirst().keys(now, submit, np.array([4, 8]), runtime).tolist()
    [4.0, 8.0]
    """

    keys = staticmethod(lambda now, submit, processors, runtime: processors.astype(np.float64))


class LargestFirst(_FixedOrder):
    """Most processors first.

    Examples
    --------
    >>> now, submit, runtime = 9.0, np.array([0.0, 1.0]), np.array([60.0, 30.0])
    >>> LargestFirst().keys(now, submit, np.array([4, 8]), runtime).tolist()
    [-4.0, -8.0]
    """

    keys = staticmethod(lambda now, submit, processors, runtime: -processors.astype(np.float64))


class LargestExpansionFactor:
    """LXF: largest (w + r) / r first, w the wait so far."""

    recomputed = True
    keys = staticmethod(
        lambda now, submit, processors, runtime: -(now - submit + runtime) / runtime
    )


class Wfp3:
    """WFP3: largest (w / r)^3 · n first (Tang et al. 2009)."""

    recomputed = True
    keys = staticmethod(
        lambda now, submit, processors, runtime: -(((now - submit) / runtime) ** 3) * processors
    )


class Unicep:
    """UNICEP: largest w / (log2(n) · r) first.

    Parameters
    ----------
    serial : {"first", "as_two"}
        log2(1) is 0: ``first`` adds 1e-15, so that serial jobs win outright;
        ``as_two`` treats them as jobs on two processors.
    """

    recomputed = True

    def __init__(self, serial: str = "first") -> None:
        check_choice(("first", "as_two"), serial=serial)
        self.serial = serial

    def keys(
        self, now: float, submit: FloatArray, processors: IntArray, runtime: FloatArray
    ) -> FloatArray:
        """Return -w / (log2(n) · r)."""
        if self.serial == "first":
            width = np.log2(processors) + 1e-15
        else:
            width = np.log2(np.maximum(processors, 2))
        return -(now - submit) / (width * runtime)


class Learned(_FixedOrder):
    """F1 to F4: nonlinear functions that were regressed on simulated Lublin queues.

    The score is f(r, n) + c · log10(s), s the absolute submit time in seconds:
    it depends on the origin of the trace's clock.

    Parameters
    ----------
    function : {"F1", "F2", "F3", "F4"}
    """

    def __init__(self, function: str = "F1") -> None:
        check_choice(_SCORES, function=function)
        self.function = function

    def keys(
        self, now: float, submit: FloatArray, processors: IntArray, runtime: FloatArray
    ) -> FloatArray:
        """Return the score; smaller is better."""
        score, weight = _SCORES[self.function]
        return np.asarray(score(runtime, processors) + weight * _log10(submit))


def _log10(values: FloatArray) -> FloatArray:
    """Return log10, with 0.1 in place of 0 as the authors' code has it."""
    return np.asarray(np.log10(np.where(values == 0, 0.1, values)))


_SCORES: dict[str, tuple[Callable[[FloatArray, IntArray], FloatArray], float]] = {
    "F1": (lambda runtime, processors: _log10(runtime) * processors, 870.0),
    "F2": (lambda runtime, processors: np.sqrt(runtime) * processors, 25_600.0),
    "F3": (lambda runtime, processors: runtime * processors, 6_860_000.0),
    "F4": (lambda runtime, processors: runtime * np.sqrt(processors), 530_000.0),
}
"""What of a score depends on runtime and processors, and the weight of log10(s)."""
