"""What one or two observations allow: ideal scaling, and Amdahl's law through both."""

import numpy as np

from predictors.adept.curve import DowneyCurve
from predictors.adept.search import Scale
from predictors.amdahl import Amdahl
from predictors.base import FloatArray
from predictors.observations import ObservedCurve

_FAR = 4.0


def is_sparse(curve: ObservedCurve, scale: Scale) -> bool:
    """Say whether the observations are fewer than a search can work with."""
    return len(curve.nprocs) <= {"free": 2, "serial": 1, "unit": 0}[scale]


def amdahl_curve(curve: ObservedCurve) -> DowneyCurve:
    """Return Amdahl's law as far as a Downey instance can follow it.

    A, of which nothing is known beyond the observations, is put at four times
    the last count or where the law's serial share bounds it.
    """
    law = Amdahl().fit_arrays(curve.nprocs, curve.runtime)
    serial_time = law.serial_ + law.parallel_
    share = law.serial_ / serial_time
    far = _FAR * float(curve.nprocs[-1])
    if 2.0 * share * far <= 1.0:
        return DowneyCurve(far, 2.0 * share * far, serial_time)
    sigma = min(share * far / max(1.0 - share, 1e-12), 3000.0)
    if sigma < 1.0:
        return DowneyCurve(0.5 / share, 1.0, serial_time)
    return DowneyCurve((far + sigma) / (1.0 + sigma), sigma, serial_time)


def amdahl_times(curve: ObservedCurve, targets: FloatArray) -> FloatArray:
    """Return Amdahl's law through both observations, or ideal scaling from one."""
    return Amdahl().fit_arrays(curve.nprocs, curve.runtime).predict(targets)


def single_bounds(curve: ObservedCurve, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the bounds from one observation: no scaling at all, and ideal scaling."""
    same = np.full(len(targets), float(curve.runtime[0]))
    ideal = same * curve.nprocs[0] / targets
    return np.minimum(same, ideal), np.maximum(same, ideal)
