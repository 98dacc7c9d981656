"""Amdahl's law as a reference: a serial part and a part that divides by n."""

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


class Amdahl:
    """T(n) = serial + parallel / n, least squares on relative errors, both parts >= 0.

    With a single processor count the serial part is taken as nought.

    Attributes
    ----------
    serial_, parallel_ : float
        Seconds.
    curve_ : ObservedCurve
        The observations as used.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"nprocs": [1, 4, 16], "runtime": [110.0, 35.0, 16.25]})
    >>> model = Amdahl().fit(runs)
    >>> round(model.serial_, 6), round(model.parallel_, 6), model.predict(100).round(6).item()
    (10.0, 100.0, 11.0)
    """

    curve_: ObservedCurve
    serial_: float
    parallel_: float
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
        refuse_inputs("Amdahl", inputs)
        targets = self._targets(nprocs)
        if strict:
            refuse_unusable(self.reliability(targets))
        least = np.finfo(float).tiny
        return np.asarray(np.maximum(self.serial_ + self.parallel_ / targets, least), float)

    def predict_range(
        self, nprocs: ArrayLike, level: float = 0.8, **inputs: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends of a prediction range that holds `level` of new runs."""
        check_level(level)
        refuse_inputs("Amdahl", inputs)
        predicted = self.predict(nprocs)
        flat = self._targets(nprocs).ravel()
        low, high = fit_range(self._fit, self._design(flat), predicted.ravel(), level)
        return low.reshape(predicted.shape), high.reshape(predicted.shape)

    def reliability(self, nprocs: ArrayLike, **inputs: ArrayLike) -> list[Remark]:
        """Say how far to trust the predictions."""
        refuse_inputs("Amdahl", inputs)
        targets = self._targets(nprocs)
        return [
            *data_remarks(self.curve_),
            *few_remark(self.curve_, 3, "Amdahl's law with a check"),
            *misfit_remark(self.curve_, self._fit.residuals),
            *far_remarks(self.curve_, targets),
        ]

    def _learn(self, curve: ObservedCurve) -> Self:
        self.curve_ = curve
        self._fit = fit_nonnegative(self._design(curve.nprocs), curve.runtime)
        self.serial_ = float(self._fit.coefficients[1]) if len(curve.nprocs) > 1 else 0.0
        self.parallel_ = float(self._fit.coefficients[0])
        return self

    def _design(self, nprocs: FloatArray) -> FloatArray:
        columns = [1.0 / nprocs]
        if len(self.curve_.nprocs) > 1:
            columns.append(np.ones_like(nprocs))
        return np.stack(columns, axis=1)

    def _targets(self, nprocs: ArrayLike) -> FloatArray:
        if not hasattr(self, "curve_"):
            raise NotFittedError("Amdahl was asked before fit")
        return checked_targets(nprocs)
