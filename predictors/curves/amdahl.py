"""Amdahl's law as a reference: a serial part and a part that divides by n."""

import numpy as np

from predictors.base import FloatArray
from predictors.curves.estimator import AnchoredEstimator
from predictors.curves.measured import Evidence
from predictors.least_squares import RelativeFit, fit_nonnegative, fit_range
from predictors.observations import ObservedCurve


class Amdahl(AnchoredEstimator):
    """T(n) = serial + parallel / n, least squares on relative errors, both parts >= 0.

    With a single processor count the serial part is zero. A declining end,
    which the law cannot follow, is left out of the fit.

    Attributes
    ----------
    serial_, parallel_ : float
        Seconds.
    curve_ : ObservedCurve
        The observations as used.
    declines_after_ : float or None
        The fastest measured count, where those beyond it decline.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"nprocs": [1, 4, 16], "runtime": [110.0, 35.0, 16.25]})
    >>> model = Amdahl().fit(runs)
    >>> round(model.serial_, 6), round(model.parallel_, 6), model.predict(100).round(6).item()
    (10.0, 100.0, 11.0)
    """

    serial_: float
    parallel_: float
    _fit: RelativeFit
    _needs = 3, "Amdahl's law with a check"

    def _learn(self, curve: ObservedCurve) -> None:
        self.curve_, self._evidence = curve, Evidence(curve)
        self._fitted = self._evidence.ordinary
        self._fit = fit_nonnegative(self._design(self._fitted.nprocs), self._fitted.runtime)
        self._residuals = self._fit.residuals
        self.serial_ = float(self._fit.coefficients[1:].sum())
        self.parallel_ = float(self._fit.coefficients[0])

    def _model_seconds(self, targets: FloatArray) -> FloatArray:
        least = np.finfo(float).tiny
        return np.asarray(np.maximum(self.serial_ + self.parallel_ / targets, least), float)

    def _model_range(self, targets: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        return fit_range(self._fit, self._design(targets), self._model_seconds(targets), level)

    def _design(self, nprocs: FloatArray) -> FloatArray:
        columns = [1.0 / nprocs]
        if len(self._fitted.nprocs) > 1:
            columns.append(np.ones_like(nprocs))
        return np.stack(columns, axis=1)
