"""What each observation is used for: phases, anomalies, declining and special ones."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from predictors.adept.anomalies import AnomalousPoint, Metric
from predictors.adept.fit import NOTHING, Reading, read_curve
from predictors.adept.patterns import Feasible, special_family
from predictors.observations import ObservedCurve


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
    """Look for special counts, a declining end, anomalous points and steps, in this order."""
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
