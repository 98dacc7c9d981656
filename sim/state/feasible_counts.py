"""Which counts each job can run on, and which its application was seen on."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from predictors.base import IntArray

_LISTED = 1 << 20
"""Largest count up to which feasible counts are views of one listed range."""

_POWERS = 2 ** np.arange(63)


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


def one_by_one(values: NDArray[Any]) -> Sequence[Any]:
    """Return the same numbers as they change, one by one as Python's own."""
    column: Any = memoryview(cast("Any", values))
    shown: Sequence[Any] = column
    return shown


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
    special : callable
        Job index to its allowed counts, None where every count in between is.
    processors : int
        Size of the machine.
    """

    def __init__(
        self,
        least: IntArray,
        largest: IntArray,
        special: Callable[[int], IntArray | None],
        processors: int,
    ) -> None:
        self._least: Sequence[int] = one_by_one(least)
        self._largest: Sequence[int] = one_by_one(largest)
        self._special = special
        self._known_special: dict[int, IntArray] = {}
        self._known_powers: dict[tuple[int, int, int], IntArray] = {}
        self._all = sealed(np.arange(1, min(processors, _LISTED) + 1))

    def counts(self, job: int) -> IntArray:
        """Return every feasible count of the job, ascending."""
        special, least, largest = self.special(job), self._least[job], self._largest[job]
        if special is not None:
            return special
        if largest > self._all.size:
            return sealed(np.arange(least, largest + 1))
        return self._all[least - 1 : largest]

    def powers_of_two(self, job: int, request: int) -> IntArray:
        """Return the feasible counts that are powers of two, or the request; all if at most two."""
        least, largest = self._least[job], self._largest[job]
        if largest - least < 2 or self._special(job) is not None:
            counts = self.counts(job)
            if counts.size <= 2:
                return counts
            if counts.size <= largest - least:
                return sealed(counts[((counts & (counts - 1)) == 0) | (counts == request)])
        known = self._known_powers.get((least, largest, request))
        if known is None:
            known = _POWERS[(least <= _POWERS) & (largest >= _POWERS)]
            if least <= request <= largest:
                known = np.union1d(known, [request])
            known = self._known_powers[least, largest, request] = sealed(known)
        return known

    def special(self, job: int) -> IntArray | None:
        """Return the job's feasible counts, None where every count between its extremes is."""
        known, least, largest = self._known_special.get(job), self._least[job], self._largest[job]
        if known is None and least != largest and (special := self._special(job)) is not None:
            inside = (special >= least) & (special <= largest)
            known = self._known_special[job] = sealed(special[inside])
        return known

    def up_to(self, job: int, wanted: int) -> int:
        """Return the largest special count of a job up to `wanted`, else its least special one.

        Of a job without any, what is wanted, which is to lie between its extremes.
        """
        counts = self.special(job)
        return wanted if counts is None else int(counts[place_up_to(counts, wanted)])

    def extremes(self, job: int) -> tuple[int, int]:
        """Return the least and the largest feasible count of the job."""
        counts = self.special(job)
        if counts is None:
            return self._least[job], self._largest[job]
        return counts.item(0), counts.item(-1)

    def leave(self, job: int) -> None:
        """Keep nothing of a job that has ended."""
        self._known_special.pop(job, None)
