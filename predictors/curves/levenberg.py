"""Levenberg-Marquardt on Downey's curve, the reference that needs a good start."""

from typing import Literal

import numpy as np
from scipy.optimize import least_squares

from predictors.base import FloatArray
from predictors.curves.estimator import CurveEstimator
from predictors.downey import check_parameters, normalised_time
from predictors.errors import PredictorError
from predictors.least_squares import pooled_error, spread_range
from predictors.observations import ObservedCurve


class LevenbergMarquardt(CurveEstimator):
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
    _needs = 3, "Downey's curve"

    def __init__(
        self, start: tuple[float, float] = (50.0, 0.5), scale: Literal["free", "unit"] = "free"
    ) -> None:
        check_parameters(*start)
        if scale not in ("free", "unit"):
            raise PredictorError(f"scale must be 'free' or 'unit', got {scale!r}")
        self.start = start
        self.scale = scale

    def _learn(self, curve: ObservedCurve) -> None:
        A, sigma = self.start
        nearest = curve.runtime[0] / normalised_time(curve.nprocs[0], A, sigma)
        start = np.array([A, sigma, np.log(nearest)][: 3 if self.scale == "free" else 2])

        def residuals(parameters: FloatArray) -> FloatArray:
            times = normalised_time(curve.nprocs, *_instance(parameters)[:2])
            return np.asarray(times * _instance(parameters)[2] / curve.runtime - 1.0, float)

        enough = len(curve.nprocs) >= len(start)
        if enough:
            start = least_squares(residuals, start, method="lm", max_nfev=1000).x
        self.curve_ = self._fitted = curve
        self.A_, self.sigma_, self.scale_ = _instance(start)
        self._residuals = residuals(start)

    def _model_seconds(self, targets: FloatArray) -> FloatArray:
        return np.asarray(self.scale_ * normalised_time(targets, self.A_, self.sigma_), float)

    def _model_range(self, targets: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return a range from the scatter of the residuals alone."""
        error, degrees = pooled_error(self._residuals, 3 if self.scale == "free" else 2)
        return spread_range(self._model_seconds(targets), error, degrees, level)


def _instance(parameters: FloatArray) -> tuple[float, float, float]:
    """Return A, sigma and scale, held inside the model's domain."""
    log_scale = float(parameters[2]) if len(parameters) == 3 else 0.0
    A, sigma = max(float(parameters[0]), 1.0), abs(float(parameters[1]))
    return A, sigma, float(np.exp(np.clip(log_scale, -200.0, 200.0)))
