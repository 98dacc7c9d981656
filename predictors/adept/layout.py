"""What each observation is used for, and the processor counts that an application is made for."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from math import frexp

import numpy as np
from numpy.typing import ArrayLike

from predictors.adept.anomalies import SENSITIVITY, AnomalousPoint, Metric, jumping
from predictors.adept.fit import NOTHING, Reading, read_curve
from predictors.base import BoolArray, FloatArray
from predictors.compiling import compiled
from predictors.curves.laws import Amdahl
from predictors.errors import PredictorError
from predictors.observations import ObservedCurve

_SPECIAL_LEAST = 9
_SPECIAL_MEMBERS = 3
_SPECIAL_SHARE = 2.0 / 3.0


NAMES = ("powers of 2", "perfect squares", "cubes", *(f"multiples of {n}" for n in (16, 12, 8, 4)))
"""Regular sets of processor counts that applications are tuned for."""
_BASES = np.array([0, 0, 0, 16, 12, 8, 4])


@compiled
def members(place: int, counts: FloatArray) -> BoolArray:
    """Say which counts belong to the family at a place of `NAMES`, shape (n,)."""
    found = np.zeros(counts.size, np.bool_)
    for i in range(counts.size):
        if place == 0:
            found[i] = frexp(counts[i])[0] == 0.5
        elif place <= 2:
            power = place + 1
            found[i] = np.rint(counts[i] ** (1.0 / power)) ** power == counts[i]
        else:
            found[i] = counts[i] % _BASES[place] == 0.0
    return found


class Feasible:
    """The processor counts that an application runs on.

    Parameters
    ----------
    allowed : str or iterable of int or None
        A name in `NAMES`, the counts themselves, or None for any count.

    Examples
    --------
    >>> Feasible("powers of 2").holds([4, 6]).tolist(), Feasible([4, 6]).holds(6).item()
    ([True, False], True)
    >>> Feasible("perfect squares").at_least(50)
    64
    """

    def __init__(self, allowed: str | Iterable[float] | None) -> None:
        self._counts: FloatArray | None = None
        self._rule: Callable[[FloatArray], BoolArray] | None = None
        if isinstance(allowed, str):
            if allowed not in NAMES:
                raise PredictorError(
                    f"allowed must be counts or one of {', '.join(NAMES)}; got {allowed!r}"
                )
            self.name, self._rule = allowed, partial(members, NAMES.index(allowed))
        elif allowed is not None:
            counts = np.unique(np.asarray(list(allowed), float))
            if not len(counts) or not (np.isfinite(counts) & (counts >= 1.0)).all():
                raise PredictorError(f"allowed must hold counts of at least 1, got {allowed!r}")
            self._counts = counts
            self.name = "the counts " + ", ".join(f"{count:g}" for count in counts)
        else:
            self.name = "any count"

    @property
    def restricts(self) -> bool:
        """Whether any count is excluded."""
        return self._rule is not None or self._counts is not None

    def holds(self, nprocs: ArrayLike) -> BoolArray:
        """Say which counts are feasible."""
        counts = np.asarray(nprocs, float)
        if self._rule is not None:
            return self._rule(counts.ravel()).reshape(counts.shape)
        if self._counts is not None:
            return np.isin(counts, self._counts)
        return np.ones(counts.shape, bool)

    def at_least(self, nprocs: float) -> int | None:
        """Return the smallest feasible integer from `nprocs` on, None if there is none."""
        first = int(np.ceil(nprocs - 1e-9))
        if self._counts is not None:
            above = self._counts[self._counts >= first]
            return int(above[0]) if len(above) else None
        if self._rule is None:
            return first
        root = int(np.ceil(round(first ** (1.0 / 3.0), 9)))
        options = [2 ** max(first - 1, 0).bit_length(), int(np.ceil(np.sqrt(first))) ** 2, root**3]
        options += [base * -(-first // base) for base in (4, 8, 12, 16)]
        fitting = [count for count in options if self._rule(np.array([float(count)]))[0]]
        return int(min(count for count in fitting if count >= first))


def special_family(nprocs: FloatArray, runtime: FloatArray) -> str | None:
    """Return the name of the family of counts that the application is optimised for.

    Notes
    -----
    Needs nine observations (section VIII.C). A family holds if three or more of
    its members are observed, at least two thirds of them are faster by more
    than 10 % than Amdahl's law through the other observations says, and every
    observation that stands out as too fast is a member.
    """
    best, best_share = None, _SPECIAL_SHARE
    fast = jumping(nprocs, runtime) if nprocs.size >= _SPECIAL_LEAST else ()
    for place, name in enumerate(NAMES if len(fast) > 1 else ()):
        member = members(place, nprocs)
        inside, outside = np.bincount(member, minlength=2)[::-1].tolist()
        if inside < _SPECIAL_MEMBERS or outside < 2 or not member[fast].all():
            continue
        others = Amdahl().fit_arrays(nprocs[~member], runtime[~member])
        among = member & (nprocs >= nprocs[~member][0]) & (nprocs <= nprocs[~member][-1])
        faster = runtime < others.predict_model(nprocs) * (1.0 - SENSITIVITY)
        share = float(faster[among].mean()) if among.sum() >= 2 else 0.0
        if share > best_share or (best is None and share >= _SPECIAL_SHARE):
            best, best_share = name, share
    return best


@dataclass(eq=False)
class Layout:
    """How a set of observations is read.

    Attributes
    ----------
    curve : ObservedCurve
    reading : Reading
    feasible : Feasible
        Counts that the application runs on.
    special : str or None
        Name of the family of counts that was found by itself.
    """

    curve: ObservedCurve
    reading: Reading
    feasible: Feasible
    special: str | None

    @cached_property
    def points(self) -> tuple[AnomalousPoint, ...]:
        """Observations off the trend of the others."""
        places, deviations = self.reading.points.tolist(), self.reading.deviations.tolist()
        return tuple(
            AnomalousPoint(place, self.curve.nprocs.item(place), deviation)
            for place, deviation in zip(places, deviations, strict=True)
        )

    @property
    def declines(self) -> bool:
        """Whether the counts beyond the fastest decline."""
        return self.reading.start >= 0


def read_layout(curve: ObservedCurve, feasible: Feasible, metric: Metric) -> Layout:
    """Look for special counts; among others for a declining end, anomalous points and steps."""
    special = None if feasible.restricts else special_family(curve.nprocs, curve.runtime)
    if special is not None:
        chosen = Feasible(special)
        return Layout(curve, _special_reading(curve, chosen), chosen, special)
    reading = read_curve(curve.nprocs, curve.runtime, curve.reach, metric == "paper")
    return Layout(curve, reading, feasible, None)


def _special_reading(curve: ObservedCurve, chosen: Feasible) -> Reading:
    """Leave out the counts that the application is not optimised for, and a declining end."""
    start, used = curve.decline, chosen.holds(curve.nprocs)
    if start >= 0 and used[: start + 1].any():
        used[start + 1 :] = False
    nothing = np.zeros(0, np.int64)
    weight, starts = np.ones(len(used)), np.zeros(1, np.int64)
    return Reading(used, weight, starts, nothing, np.zeros(0), start, NOTHING)
