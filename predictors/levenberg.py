"""Levenberg-Marquardt on Downey's curve, the reference that needs a good start."""

from typing import Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.optimize import least_squares

from predictors.base import FloatArray, Remark
from predictors.downey import check_parameters, normalised_time
from predictors.errors import NotFittedError, PredictorError
from predictors.observations import (
    ObservedCurve,
    checked_targets,
    observed_curve,
    observed_frame,
    refuse_inputs,
)
from predictors.relative_fit import pooled_error, spread_range
from predictors.remarks import (
    check_level,
    data_remarks,
    far_remarks,
    few_remark,
    misfit_remark,
    refuse_unusable,
)


class LevenbergMarquardt:
    """Downey's curve by local descent from a given start.

    The objective is flat where all observations lie in one piece and has kinks
    at the breakpoints; from an arbitrary start the descent often ends far from
    the best instance. It is here to be compared with.

    Parameters
    ----------
    start : tuple of float
        First A and sigma.
    scale : {"free", "unit"}
        Whether the unit of time is fitted too, or times are the normalised ones.

    Attributes
    ----------
    A_, sigma_, scale_ : float
        The instance: T(n) = scale_ x normalised_time(n, A_, sigma_).

    Examples
    --------
    >>> import pandas as pd
    >>> from predictors.downey import normalised_time
    >>> n = [2, 8, 30, 50]
    >>> runs = pd.DataFrame({"nprocs": n, "runtime": normalised_time(n, 20, 0.5)})
    >>> LevenbergMarquardt(start=(25, 0.4)).fit(runs).predict([16]).round(3).tolist()
    [1.484]
    """

    A_: float
    sigma_: float
    scale_: float
    curve_: ObservedCurve
    _residuals: FloatArray

    def __init__(
        self, start: tuple[float, float] = (50.0, 0.5), scale: Literal["free", "unit"] = "free"
    ) -> None:
        check_parameters(*start)
        if scale not in ("free", "unit"):
            raise PredictorError(f"scale must be 'free' or 'unit', got {scale!r}")
        self.start = start
        self.scale = scale

    def fit(self, observations: pd.DataFrame) -> Self:
        """Fit to columns ``nprocs`` and ``runtime``; see `observed_frame` for errors."""
        return self._learn(observed_frame(observations))

    def fit_arrays(self, nprocs: ArrayLike, runtime: ArrayLike) -> Self:
        """Fit to arrays; see `observed_curve` for errors."""
        return self._learn(observed_curve(nprocs, runtime))

    def predict(
        self, nprocs: ArrayLike, *, strict: bool = False, **inputs: ArrayLike
    ) -> FloatArray:
        """Return runtimes in seconds, shape of `nprocs`; errors as in `Amdahl.predict`."""
        refuse_inputs("LevenbergMarquardt", inputs)
        targets = self._targets(nprocs)
        if strict:
            refuse_unusable(self.reliability(targets))
        return np.asarray(self.scale_ * normalised_time(targets, self.A_, self.sigma_), float)

    def predict_range(
        self, nprocs: ArrayLike, level: float = 0.8, **inputs: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return a range from the scatter of the residuals alone."""
        check_level(level)
        refuse_inputs("LevenbergMarquardt", inputs)
        error, freedom = pooled_error(self._residuals, 3 if self.scale == "free" else 2)
        return spread_range(self.predict(nprocs), error, freedom, level)

    def reliability(self, nprocs: ArrayLike, **inputs: ArrayLike) -> list[Remark]:
        """Say how far to trust the predictions."""
        refuse_inputs("LevenbergMarquardt", inputs)
        targets = self._targets(nprocs)
        return [
            *data_remarks(self.curve_),
            *few_remark(self.curve_, 3, "Downey's curve"),
            *misfit_remark(self.curve_, self._residuals),
            *far_remarks(self.curve_, targets),
        ]

    def _learn(self, curve: ObservedCurve) -> Self:
        A, sigma = self.start
        nearest = curve.runtime[0] / normalised_time(curve.nprocs[0], A, sigma)
        start = np.array([A, sigma, np.log(nearest)][: 3 if self.scale == "free" else 2])

        def residuals(parameters: FloatArray) -> FloatArray:
            times = normalised_time(curve.nprocs, *_instance(parameters)[:2])
            return np.asarray(times * _instance(parameters)[2] / curve.runtime - 1.0, float)

        enough = len(curve.nprocs) >= len(start)
        if enough:
            start = least_squares(residuals, start, method="lm", max_nfev=1000).x
        self.curve_ = curve
        self.A_, self.sigma_, self.scale_ = _instance(start)
        self._residuals = residuals(start)
        return self

    def _targets(self, nprocs: ArrayLike) -> FloatArray:
        if not hasattr(self, "curve_"):
            raise NotFittedError("LevenbergMarquardt was asked before fit")
        return checked_targets(nprocs)


def _instance(parameters: FloatArray) -> tuple[float, float, float]:
    """Return A, sigma and scale, held inside the model's domain."""
    log_scale = float(parameters[2]) if len(parameters) == 3 else 0.0
    A, sigma = max(float(parameters[0]), 1.0), abs(float(parameters[1]))
    return A, sigma, float(np.exp(np.clip(log_scale, -200.0, 200.0)))
