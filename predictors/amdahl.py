"""Amdahl's law as a reference: a serial part and a part that divides by n."""

import numpy as np

from predictors.base import FloatArray, Remark
from predictors.curve_estimator import CurveEstimator
from predictors.measured import Evidence
from predictors.observations import ObservedCurve
from predictors.relative_fit import RelativeFit, fit_nonnegative, fit_range
from predictors.remarks import data_remarks, far_remarks, few_remark, misfit_remark


class Amdahl(CurveEstimator):
    """T(n) = serial + parallel / n, least squares on relative errors, both parts >= 0.

    With a single processor count the serial part is taken as nought. A declining end,
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

    def _learn(self, curve: ObservedCurve) -> None:
        self.curve_, self._evidence = curve, Evidence(curve)
        used = self._evidence.ordinary
        self._fit = fit_nonnegative(self._design(used.nprocs), used.runtime)
        self.serial_ = float(self._fit.coefficients[1]) if len(used.nprocs) > 1 else 0.0
        self.parallel_ = float(self._fit.coefficients[0])

    def _model_seconds(self, targets: FloatArray) -> FloatArray:
        least = np.finfo(float).tiny
        return np.asarray(np.maximum(self.serial_ + self.parallel_ / targets, least), float)

    def _model_range(self, targets: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        return fit_range(self._fit, self._design(targets), self._model_seconds(targets), level)

    def _remarks(self, targets: FloatArray) -> list[Remark]:
        return [
            *data_remarks(self.curve_),
            *few_remark(
                self._evidence.ordinary, 3, "Amdahl's law with a check", self.declines_after_
            ),
            *misfit_remark(self._evidence.ordinary, self._fit.residuals),
            *far_remarks(self.curve_, targets),
        ]

    def _design(self, nprocs: FloatArray) -> FloatArray:
        columns = [1.0 / nprocs]
        if len(self._evidence.ordinary.nprocs) > 1:
            columns.append(np.ones_like(nprocs))
        return np.stack(columns, axis=1)
