"""The universal scalability law as a reference: contention and coherency."""

from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from predictors.base import FloatArray, Remark
from predictors.errors import NotFittedError
from predictors.observations import (
    ObservedCurve,
    checked_targets,
    observed_curve,
    observed_frame,
    refuse_inputs,
)
from predictors.relative_fit import RelativeFit, fit_nonnegative, fit_range
from predictors.remarks import (
    check_level,
    data_remarks,
    far_remarks,
    few_remark,
    misfit_remark,
    refuse_unusable,
)


class UniversalScalability:
    """T(n) = T(1) (1 + contention (n-1) + coherency n (n-1)) / n, after Gunther.

    In seconds it is p/n + q + c n, which least squares on relative errors finds
    outright with p, q, c >= 0, that is 1 >= contention >= coherency >= 0, so
    that no runtime can come out as nought. With two processor counts the
    coherency is taken as nought, with one the contention too.

    Attributes
    ----------
    serial_time_ : float
        T(1), seconds.
    contention_, coherency_ : float
    curve_ : ObservedCurve
        The observations as used.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> n = np.array([1, 4, 16, 64])
    >>> time = 100 * (1 + 0.05 * (n - 1) + 0.001 * n * (n - 1)) / n
    >>> model = UniversalScalability().fit(pd.DataFrame({"nprocs": n, "runtime": time}))
    >>> round(model.contention_, 6), round(model.coherency_, 6)
    (0.05, 0.001)
    """

    curve_: ObservedCurve
    serial_time_: float
    contention_: float
    coherency_: float
    _fit: RelativeFit

    def fit(self, observations: pd.DataFrame) -> Self:
        """Fit to columns ``nprocs`` and ``runtime``; see `observed_frame` for errors."""
        return self._learn(observed_frame(observations))

    def fit_arrays(self, nprocs: ArrayLike, runtime: ArrayLike) -> Self:
        """Fit to arrays; see `observed_curve` for errors."""
        return self._learn(observed_curve(nprocs, runtime))

    def predict(
        self, nprocs: ArrayLike, *, strict: bool = False, **inputs: ArrayLike
    ) -> FloatArray:
        """Return runtimes in seconds, shape of `nprocs`.

        Raises
        ------
        NotFittedError
            Before `fit`.
        PredictorError
            For a count below 1, or inputs other than `nprocs`.
        UndeterminedError
            With ``strict=True`` for a target graded ``unusable``.
        """
        refuse_inputs("UniversalScalability", inputs)
        targets = self._targets(nprocs)
        if strict:
            refuse_unusable(self.reliability(targets))
        predicted = self._design(targets.ravel()) @ self._fit.coefficients
        return np.asarray(np.maximum(predicted, np.finfo(float).tiny), float).reshape(targets.shape)

    def predict_range(
        self, nprocs: ArrayLike, level: float = 0.8, **inputs: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends of a prediction range that holds `level` of new runs."""
        check_level(level)
        refuse_inputs("UniversalScalability", inputs)
        predicted = self.predict(nprocs)
        flat = self._targets(nprocs).ravel()
        low, high = fit_range(self._fit, self._design(flat), predicted.ravel(), level)
        return low.reshape(predicted.shape), high.reshape(predicted.shape)

    def reliability(self, nprocs: ArrayLike, **inputs: ArrayLike) -> list[Remark]:
        """Say how far to trust the predictions."""
        refuse_inputs("UniversalScalability", inputs)
        targets = self._targets(nprocs)
        return [
            *data_remarks(self.curve_),
            *few_remark(self.curve_, 4, "the universal scalability law with a check"),
            *misfit_remark(self.curve_, self._fit.residuals),
            *far_remarks(self.curve_, targets),
        ]

    def _learn(self, curve: ObservedCurve) -> Self:
        self.curve_ = curve
        self._fit = fit_nonnegative(self._design(curve.nprocs), curve.runtime)
        coefficients = self._fit.coefficients
        coherency = float(coefficients[2]) if len(coefficients) > 2 else 0.0
        self.serial_time_ = float(coefficients.sum())
        self.contention_ = (float(coefficients[1:2].sum()) + coherency) / self.serial_time_
        self.coherency_ = coherency / self.serial_time_
        return self

    def _design(self, nprocs: FloatArray) -> FloatArray:
        columns = [1.0 / nprocs, np.ones_like(nprocs), nprocs]
        return np.stack(columns[: len(self.curve_.nprocs)], axis=1)

    def _targets(self, nprocs: ArrayLike) -> FloatArray:
        if not hasattr(self, "curve_"):
            raise NotFittedError("UniversalScalability was asked before fit")
        return checked_targets(nprocs)
