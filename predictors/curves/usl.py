"""The universal scalability law as a reference: contention and coherency."""

import numpy as np

from predictors.base import FloatArray
from predictors.curves.estimator import AnchoredEstimator
from predictors.curves.measured import Evidence
from predictors.least_squares import RelativeFit, fit_nonnegative, fit_range
from predictors.observations import ObservedCurve


class UniversalScalability(AnchoredEstimator):
    """T(n) = T(1) (1 + contention (n-1) + coherency n (n-1)) / n, after Gunther.

    In seconds it is p/n + q + c n, which least squares on relative errors finds
    outright with p, q, c >= 0, that is 1 >= contention >= coherency >= 0, so
    that no runtime can come out as zero. With two processor counts the
    coherency is zero, with one the contention too.

    Attributes
    ----------
    serial_time_ : float
        T(1), seconds.
    contention_, coherency_ : float
    curve_ : ObservedCurve
        The observations as used.
    declines_after_ : float or None
        The fastest measured count, where those beyond it decline.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> n = np.array([1, 4, 16, 64])
    >>> time = 100 * (1 + 0.05 * (n - 1) + 0.001 * n * (n - 1)) / n
    >>> model = UniversalScalability().fit(pd.DataFrame({"nprocs": n, "runtime": time}))
    >>> round(model.contention_, 6), round(model.coherency_, 6)
    (0.05, 0.001)
    """

    serial_time_: float
    contention_: float
    coherency_: float
    _fit: RelativeFit
    _needs = 4, "the universal scalability law with a check"

    def _learn(self, curve: ObservedCurve) -> None:
        self.curve_ = self._fitted = curve
        self._evidence = Evidence(curve)
        self._fit = fit_nonnegative(self._design(curve.nprocs), curve.runtime)
        self._residuals, coefficients = self._fit.residuals, self._fit.coefficients
        coherency = float(coefficients[2]) if len(coefficients) > 2 else 0.0
        self.serial_time_ = float(coefficients.sum())
        self.contention_ = (float(coefficients[1:2].sum()) + coherency) / self.serial_time_
        self.coherency_ = coherency / self.serial_time_

    def _model_seconds(self, targets: FloatArray) -> FloatArray:
        predicted = self._design(targets) @ self._fit.coefficients
        return np.asarray(np.maximum(predicted, np.finfo(float).tiny), float)

    def _model_range(self, targets: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        return fit_range(self._fit, self._design(targets), self._model_seconds(targets), level)

    def _design(self, nprocs: FloatArray) -> FloatArray:
        columns = [1.0 / nprocs, np.ones_like(nprocs), nprocs]
        return np.stack(columns[: len(self.curve_.nprocs)], axis=1)
