"""What the rational polynomial is compared with: a polynomial in the size alone, and two ratios."""

from collections.abc import Sequence
from typing import Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.optimize import least_squares

from predictors.base import BoolArray, FloatArray, Remark
from predictors.errors import BETWEEN_0_AND_1, NotFittedError, PredictorError
from predictors.least_squares import LinearFit, Method, Weights, check_method, fit_linear
from predictors.remarks import refuse_unusable
from predictors.under_load.complexity import Term, complexity_terms
from predictors.under_load.load_aware import LoadedRuns, Targets, loaded_runs, targets
from predictors.under_load.rational import range_from_folds

NEAR_ZERO = 0.05


def _columns(terms: tuple[Term, ...], size: FloatArray, largest: float) -> FloatArray:
    """Return the terms at each size, each 1 at the largest size seen."""
    reference = np.array([largest])
    return np.column_stack(
        [term.values(size) / (term.values(reference)[0] or 1.0) for term in terms]
    )


class SizePolynomial:
    """A polynomial in the size alone, blind to load, as Prophesy fits it.

    Parameters
    ----------
    complexity : int, str or list of str
        As `complexity_terms` reads it.
    method : {"nnls", "ols"}
        With or without the constraint that no coefficient is negative.
    weights : {"absolute", "relative"}

    References
    ----------
    Yagnik, Sanjay & Vadhiyar, section 4.1, after Taylor et al. (Prophesy).

    Examples
    --------
    >>> runs = pd.DataFrame({"nprocs": 4, "size": [1.0, 2, 3, 4], "runtime": [2.0, 3, 4, 5]})
    >>> float(SizePolynomial(1).fit(runs).predict(4, size=9.0).round(6))
    10.0
    """

    def __init__(
        self, complexity: object, method: Method = "nnls", weights: Weights = "absolute"
    ) -> None:
        check_method(method, weights)
        self.complexity = complexity
        self.method = method
        self.weights = weights
        self._terms = complexity_terms(complexity)

    def fit(self, observations: pd.DataFrame) -> Self:
        """Learn from the columns ``nprocs``, ``size`` and ``runtime``."""
        self.runs_: LoadedRuns = loaded_runs(observations, "min_avg_avail", load=False)
        self.largest_ = float(self.runs_.size.max())
        columns = _columns(self._terms, self.runs_.size, self.largest_)
        self.fit_: LinearFit = fit_linear(columns, self.runs_.runtime, self.method, self.weights)
        return self

    def _asked(self, nprocs: ArrayLike, inputs: dict[str, ArrayLike]) -> tuple[Targets, FloatArray]:
        if not hasattr(self, "fit_"):
            raise NotFittedError("SizePolynomial was asked before fit")
        wanted = targets(nprocs, inputs)
        return wanted, _columns(self._terms, wanted.size, self.largest_)

    def predict(
        self, nprocs: ArrayLike, *, strict: bool = False, **inputs: ArrayLike
    ) -> FloatArray:
        """Return runtimes in seconds; inputs other than ``size`` change nothing."""
        wanted, columns = self._asked(nprocs, inputs)
        if strict:
            refuse_unusable(self.reliability(nprocs, **inputs))
        return floored(columns @ self.fit_.coefficients, self.runs_).reshape(wanted.shape)

    def _solve(
        self, columns: FloatArray, seconds: FloatArray, folds: Sequence[BoolArray]
    ) -> list[FloatArray]:
        kept = ((columns[~held], seconds[~held]) for held in folds)
        return [fit_linear(*rest, self.method, self.weights).coefficients for rest in kept]

    def predict_range(
        self, nprocs: ArrayLike, level: float = 0.8, **inputs: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return a range that holds about `level` of such runs (jackknife+ over sizes)."""
        BETWEEN_0_AND_1.check(level=level)
        wanted, columns = self._asked(nprocs, inputs)
        low, high = range_from_folds(
            _columns(self._terms, self.runs_.size, self.largest_), self.runs_.runtime,
            self.runs_.size, self._solve,
            columns, floored(columns @ self.fit_.coefficients, self.runs_), level,
        )  # fmt: skip
        return low.reshape(wanted.shape), high.reshape(wanted.shape)

    def reliability(self, nprocs: ArrayLike, **inputs: ArrayLike) -> list[Remark]:
        """Say what the data do not determine."""
        wanted, columns = self._asked(nprocs, inputs)
        known = self.fit_.answers(columns)
        return _remarks(self.runs_, wanted, columns @ self.fit_.coefficients, bool(known.all()))


class RatioPolynomial:
    """A polynomial in the size over a function of load: the paper's types 1 and 2.

    Type 1 divides by 1 + e·cpu + f·bandwidth, type 2 by 1 + e·cpu·bandwidth.
    Fitted by nonlinear least squares from the linearised form; a fit whose
    denominator comes near zero for loads between the least seen and 1 is rejected.

    Parameters
    ----------
    complexity : int, str or list of str
        Of the polynomial, as `complexity_terms` reads it.
    kind : {1, 2}
    method : {"nnls", "ols"}
        With or without the constraint that no coefficient is negative, of
        polynomial and denominator alike.
    weights : {"relative", "absolute"}

    Attributes
    ----------
    coefficients_ : numpy.ndarray
        Of the terms, each 1 at the largest size seen, in seconds.
    load_coefficients_ : numpy.ndarray
        e and f, or e alone.

    References
    ----------
    Yagnik, Sanjay & Vadhiyar, equations 6 to 8.

    Examples
    --------
    >>> size, cpu = np.tile([1.0, 2, 3, 4], 5), np.repeat([0.2, 0.4, 0.6, 0.8, 1.0], 4)
    >>> runs = pd.DataFrame({"nprocs": 4, "size": size, "available_cpu": cpu,
    ...     "available_bandwidth": 1.0, "runtime": (3 + 2 * size) / (1 + 4 * cpu)})
    >>> model = RatioPolynomial(1, kind=2).fit(runs)
    >>> float(model.predict(4, size=8.0, available_cpu=0.5, available_bandwidth=1.0).round(4))
    6.3333
    """

    def __init__(
        self,
        complexity: object,
        kind: Literal[1, 2] = 1,
        method: Method = "nnls",
        weights: Weights = "relative",
    ) -> None:
        check_method(method, weights)
        if kind not in (1, 2):
            raise PredictorError(f"kind must be 1 or 2, got {kind!r}")
        self.complexity = complexity
        self.kind = kind
        self.method = method
        self.weights = weights
        self._terms = complexity_terms(complexity)

    def _load(self, runs: LoadedRuns | Targets) -> FloatArray:
        """Return what e and f multiply, shape (rows, 1 or 2)."""
        if self.kind == 2:
            return (runs.cpu * runs.bandwidth)[:, None]
        return np.column_stack((runs.cpu, runs.bandwidth))

    def fit(self, observations: pd.DataFrame) -> Self:
        """Learn from ``nprocs``, ``runtime``, ``size`` and the two columns of load."""
        runs = loaded_runs(observations, "min_avg_avail")
        self.runs_: LoadedRuns = runs
        self.largest_ = float(runs.size.max())
        columns, load = _columns(self._terms, runs.size, self.largest_), self._load(runs)
        self.fit_: LinearFit = fit_linear(columns, runs.runtime, self.method, self.weights)
        found = [self._descend(start, columns, load) for start in self._starts(columns, load)]
        kept = [fit for fit in found if self._safe(fit[1])]
        if not kept:
            kept = [(np.inf, np.append(self.fit_.coefficients, np.zeros(load.shape[1])))]
        best = min(kept, key=lambda fit: fit[0])[1]
        split = len(self._terms)
        self.coefficients_: FloatArray = best[:split]
        self.load_coefficients_: FloatArray = best[split:]
        return self

    def _starts(self, columns: FloatArray, load: FloatArray) -> list[FloatArray]:
        """Return the linearised solution (t = poly − e·load·t) and the load-blind one."""
        seconds = self.runs_.runtime
        wide = np.column_stack((columns, -load * seconds[:, None]))
        linear = fit_linear(wide, seconds, "ols", self.weights).coefficients
        blind = np.append(self.fit_.coefficients, np.full(load.shape[1], 1.0))
        blind[: columns.shape[1]] *= 1.0 + load.sum(axis=1).mean()
        return [linear, blind]

    def _descend(
        self, start: FloatArray, columns: FloatArray, load: FloatArray
    ) -> tuple[float, FloatArray]:
        seconds, split = self.runs_.runtime, columns.shape[1]
        rows = 1.0 / seconds if self.weights == "relative" else np.full(len(seconds), 1.0)
        rows = rows / np.linalg.norm(seconds * rows)
        scale = np.append(np.full(split, seconds.max()), np.ones(load.shape[1]))
        lower = np.append(np.full(split, -np.inf), np.full(load.shape[1], NEAR_ZERO - 1))
        lower = np.zeros(len(start)) if self.method == "nnls" else lower

        def residuals(unknown: FloatArray) -> FloatArray:
            values = unknown * scale
            below = np.maximum(1 + load @ values[split:], 1e-3)
            return np.asarray(rows * (columns @ values[:split] / below - seconds))

        inside = np.maximum(start / scale, lower + 1e-6)
        done = least_squares(residuals, inside, bounds=(lower, np.inf), max_nfev=200)
        return float(done.cost), done.x * scale

    def _safe(self, unknown: FloatArray) -> bool:
        """Return whether the denominator stays away from zero in the range of use."""
        corners = np.array([(a, b) for a in (self.runs_.cpu.min(), 1) for b in (0.0, 1.0)])
        load = corners if self.kind == 1 else corners.prod(axis=1)[:, None]
        return bool((1 + load @ unknown[len(self._terms) :] >= NEAR_ZERO).all())

    def _values(
        self, nprocs: ArrayLike, inputs: dict[str, ArrayLike]
    ) -> tuple[Targets, FloatArray]:
        if not hasattr(self, "fit_"):
            raise NotFittedError("RatioPolynomial was asked before fit")
        wanted = targets(nprocs, inputs)
        columns = _columns(self._terms, wanted.size, self.largest_)
        below = 1 + self._load(wanted) @ self.load_coefficients_
        return wanted, np.asarray(columns @ self.coefficients_ / below)

    def predict(
        self, nprocs: ArrayLike, *, strict: bool = False, **inputs: ArrayLike
    ) -> FloatArray:
        """Return runtimes in seconds for ``size`` under the load given."""
        wanted, raw = self._values(nprocs, inputs)
        if strict:
            refuse_unusable(self.reliability(nprocs, **inputs))
        return floored(raw, self.runs_).reshape(wanted.shape)

    def predict_range(
        self, nprocs: ArrayLike, level: float = 0.8, **inputs: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return a range from the ratios of runtimes to fitted values of the runs seen."""
        BETWEEN_0_AND_1.check(level=level)
        wanted, raw = self._values(nprocs, inputs)
        seen = {
            "size": self.runs_.size,
            "available_cpu": self.runs_.cpu,
            "available_bandwidth": self.runs_.bandwidth,
        }
        ratios = self.runs_.runtime / self.predict(self.runs_.nprocs, strict=False, **seen)
        answer = floored(raw, self.runs_).reshape(wanted.shape)
        low, high = np.quantile(ratios, ((1 - level) / 2, (1 + level) / 2))
        return answer * min(low, 1.0), answer * max(high, 1.0)

    def reliability(self, nprocs: ArrayLike, **inputs: ArrayLike) -> list[Remark]:
        """Say what the data do not determine."""
        wanted, raw = self._values(nprocs, inputs)
        columns = _columns(self._terms, wanted.size, self.largest_)
        known = bool(self.fit_.answers(columns).all())
        return _remarks(self.runs_, wanted, raw, known)


def floored(raw: FloatArray, runs: LoadedRuns) -> FloatArray:
    """Keep answers positive: no less than a thousandth of the shortest run seen."""
    return np.asarray(np.maximum(raw, 1e-3 * runs.runtime.min()), float)


def _remarks(runs: LoadedRuns, wanted: Targets, raw: FloatArray, known: bool) -> list[Remark]:
    """Return the remarks that both comparators make."""
    remarks = []
    if not known:
        text = f"{len(np.unique(runs.size))} distinct sizes do not determine the polynomial"
        remarks.append(Remark("unusable", "undetermined", text))
    other = np.setdiff1d(wanted.nprocs, runs.nprocs)
    if other.size:
        text = f"no run on {other[0]:g} processors; the count is not an input of this model"
        remarks.append(Remark("unusable", "other_count", text, int(other[0]), float(other[0])))
    if not (raw > 0).all():
        remarks.append(Remark("unusable", "negative", f"the model gives {raw.min():.4g} s"))
    if np.ptp(runs.nprocs) > 0:
        text = "the runs are on different processor counts, which this model cannot tell apart"
        remarks.append(Remark("warning", "mixed_counts", text))
    return remarks
