"""What every model of runtimes answers alike, and what answers owe to the measurements.

They keep to them, and stop at a decline, by one layer for every model of one curve. At a measured
count an answer lies between min/s and max s of the runs there, with s = exp(2 d) and d the
standard deviation of ln runtime over repeats; between measured counts the correction that this
takes is interpolated linearly in ln n; outside them there is none. Where the measured counts
end in a decline, they are believed there and nothing is claimed beside them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike

from predictors.base import BoolArray, Estimator, FloatArray, Grade, Remark, asked_of, run_table
from predictors.errors import BETWEEN_0_AND_1
from predictors.observations import SAME, ObservedCurve, checked_targets
from predictors.remarks import DECLINING, refuse_unusable

_LARGEST = 700.0

SecondsOf = Callable[[FloatArray], FloatArray]


class Evidence:
    """The measured counts of a curve, as answers keep to them.

    Parameters
    ----------
    exempt : sequence of int
        Places in the curve of points that answers need not keep to: anomalous ones.
    alone : sequence of int
        Places of points that answers keep to at their own counts and not beside them:
        counts that an application made for other ones is slow on.

    Attributes
    ----------
    declines_after : float or None
        The fastest count, where the counts beyond it decline.

    Examples
    --------
    >>> from predictors.observations import observed_curve
    >>> evidence = Evidence(observed_curve([1, 2, 4], [10.0, 8.0, 7.0]))
    >>> counts = np.array([1.0, 2.0, 4.0, 8.0])
    >>> evidence.answers(counts, lambda n: 10.0 / n)[0].round(2).tolist()
    [10.0, 6.55, 5.73, 1.25]
    """

    def __init__(
        self, curve: ObservedCurve, exempt: Sequence[int] = (), alone: Sequence[int] = ()
    ) -> None:
        self.curve = curve
        self._exempt, self._alone = exempt, alone
        self.start = curve.decline
        self.declines_after = None if self.start < 0 else curve.nprocs.item(self.start)

    @cached_property
    def ordinary(self) -> ObservedCurve:
        """The measured counts without those that decline."""
        return self.curve.take(~self.declining(self.curve.nprocs))

    def declining(self, nprocs: FloatArray) -> BoolArray:
        """Say which counts lie beyond the fastest one of a declining end."""
        if self.declines_after is None:
            return np.zeros(nprocs.shape, bool)
        return np.asarray(nprocs > self.declines_after * (1.0 + SAME), bool)

    def measured(self, nprocs: FloatArray) -> BoolArray:
        """Say which counts were measured."""
        known = self.curve.nprocs
        place = np.searchsorted(known, nprocs * (1.0 + SAME), "right") - 1
        near = known[np.maximum(place, 0)]
        return np.asarray(np.abs(near - nprocs) <= SAME * nprocs, bool)

    def answers(self, targets: FloatArray, seconds_of: SecondsOf) -> tuple[FloatArray, FloatArray]:
        """Return answers that keep to the measurements, and the model's own.

        Parameters
        ----------
        targets : numpy.ndarray of float, shape (t,)
        seconds_of : callable
            From counts to what the model says, seconds. It is asked once, for the
            targets and the measured counts next to them.
        """
        known, logs, low, high = self._knots
        place = np.searchsorted(known, targets * (1.0 + SAME), "right") - 1
        inside = (place >= 0) & (targets <= known[-1] * (1.0 + SAME))
        if not inside.any():
            model = seconds_of(targets)
            return self._not_below(self._at_lone(model, targets), targets), model
        left = place[inside]
        at = np.log(targets[inside]) - logs[left]
        right = left + (at > SAME)
        first, end = left.min(), right.max() + 1
        predicted = seconds_of(np.concatenate([targets, known[first:end]]))
        model, there = predicted[: len(targets)], np.log(predicted[len(targets) :])
        residual = np.minimum(np.maximum(there, low[first:end]), high[first:end]) - there
        share = at / np.where(right > left, logs[right] - logs[left], 1.0)
        before, after = residual[left - first], residual[right - first]
        kept = model.copy()
        kept[inside] = _moved(model[inside], before + share * (after - before))
        return self._not_below(self._at_lone(kept, targets), targets), model

    def range(
        self,
        targets: FloatArray,
        answers: tuple[FloatArray, FloatArray],
        ends: tuple[FloatArray, FloatArray],
        level: float,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends of a model's range, moved as its answers were; seconds.

        Where a declining end is followed, they are those of a new run beside the others.

        Parameters
        ----------
        targets : numpy.ndarray of float, shape (t,)
        answers : tuple of numpy.ndarray
            What `answers` returned.
        ends : tuple of numpy.ndarray of float, shape (t,), seconds
            Low and high around the model's own answers.
        level : float
        """
        kept, model = answers
        change = np.where(kept == model, 0.0, np.log(kept) - np.log(model))
        low, high = (_moved(end, change) for end in ends)
        if self.start >= 0:
            followed = self.declining(targets) & self.measured(targets)
            wide = float(np.exp(scipy.special.ndtri(0.5 + 0.5 * level) * 0.5 * self.curve.reach))
            low = np.where(followed, kept / wide, low)
            high = np.where(followed, kept * wide, high)
        return np.minimum(low, kept), np.maximum(high, kept)

    def remarks(self, targets: FloatArray) -> list[Remark]:
        """Say which distinct targets lie in or beyond a declining end."""
        out = targets[self.declining(targets)]
        if self.declines_after is None or not len(out):
            return []
        curve = self.curve
        text = (
            f"the runtime rises beyond {self.declines_after:g} processors, from "
            f"{curve.runtime[self.start]:.4g} s there to {curve.runtime[-1]:.4g} s on "
            f"{curve.nprocs[-1]:g}: "
        )
        found = []
        for target, known in zip(out.tolist(), self.measured(out).tolist(), strict=True):
            grade: Grade = "warning" if known else "unusable"
            own = "beyond it the measured runtimes are repeated"
            if not known:
                own = "beyond it nothing is predicted except at measured counts"
            found.append(Remark(grade, DECLINING, text + own, None, target))
        return found

    @cached_property
    def _knots(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Counts that answers keep to, ln of them, and the ends of ln runtime there."""
        low, high = self._bounds
        known = self.curve.nprocs
        apart = [*self._exempt, *self._lone]
        if apart:
            held = np.ones(len(low), bool)
            held[apart] = False
            known, low, high = known[held], low[held], high[held]
        return known, np.log(known), low, high

    @cached_property
    def _lone(self) -> list[int]:
        """Places of points that say nothing of the counts beside them, spikes among them.

        A spike is slower by more than s than a smaller count and than a larger one.
        """
        runtime = self.curve.runtime
        end = len(runtime) - 1 if self.start < 0 else self.start
        inner = runtime[1:end]
        before = np.minimum.accumulate(runtime)[: len(inner)]
        after = np.minimum.accumulate(runtime[end:0:-1])[::-1][1:]
        spikes = np.log(inner / np.maximum(before, after)) > self.curve.reach
        found = set(self._alone) | set((np.flatnonzero(spikes) + 1).tolist())
        return sorted(found - set(self._exempt))

    @cached_property
    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        """Least and greatest ln runtime of an answer at each measured count."""
        curve = self.curve
        reach = curve.reach * (1.0 - SAME)
        low, high = np.log(curve.shortest) - reach, np.log(curve.longest) + reach
        if self.start >= 0:
            low[self.start + 1 :] = high[self.start + 1 :] = np.log(curve.runtime[self.start + 1 :])
        return low, high

    def _at_lone(self, seconds: FloatArray, targets: FloatArray) -> FloatArray:
        """Keep answers at the lone points to these."""
        if not self._lone:
            return seconds
        low, high = self._bounds
        seconds = seconds.copy()
        for place in self._lone:
            count = self.curve.nprocs[place]
            here = np.abs(targets - count) <= SAME * count
            seconds[here] = np.clip(seconds[here], np.exp(low[place]), np.exp(high[place]))
        return seconds

    def _not_below(self, seconds: FloatArray, targets: FloatArray) -> FloatArray:
        """Hold answers in a declining end above the shortest runtime, past it at the last."""
        declining = self.declining(targets)
        if not declining.any():
            return seconds
        runtime = self.curve.runtime
        held = np.maximum(seconds, runtime[self.start])
        past = targets > self.curve.nprocs[-1] * (1.0 + SAME)
        return np.where(past, runtime[-1], np.where(declining, held, seconds))


def _moved(seconds: FloatArray, change: FloatArray) -> FloatArray:
    """Return seconds with their logarithms moved, finite and positive; unchanged by zero."""
    moved = np.exp(np.minimum(np.maximum(np.log(seconds) + change, -_LARGEST), _LARGEST))
    return np.asarray(np.where(change == 0.0, seconds, moved), float)


class RuntimeEstimator(Estimator, ABC):
    """Answer for targets; subclasses fit and bring the model.

    Where there is evidence, answers keep to what was measured (`predictors.curves.estimator`):
    at a measured count they lie within the scatter of its runs, in and beyond a declining
    end never below the fastest measured time. `predict_model` is the plain model.

    Targets come to the model as `_rows` returns them, an array with a column a target.
    """

    _learned: ClassVar[str]
    """The attribute that `fit` sets."""

    def fit(self, observations: pd.DataFrame | ArrayLike, runtime: ArrayLike | None = None) -> Self:
        """Fit to runs.

        Parameters
        ----------
        observations : pandas.DataFrame or array_like
            A row a run: columns ``nprocs``, ``runtime``, and, where the model reads them, its
            inputs, split times and what its condition is on. With `runtime`, counts, or rows
            of counts and inputs.
        runtime : array_like, optional
            Seconds.

        Raises
        ------
        PredictorError
            If columns are missing, a count is below 1 or a value not positive and finite, no
            run meets the condition, inputs are collinear, or there are too few counts or rows.
        """
        self.check_parameters()
        return self._fit_table(run_table(self, observations, runtime))

    def predict(
        self, nprocs: ArrayLike | pd.DataFrame, *, strict: bool = False, **inputs: ArrayLike
    ) -> FloatArray:
        """Return runtimes in seconds, in the shape of `nprocs` (and inputs, broadcast).

        A table answers by its columns, a row a value.

        Raises
        ------
        NotFittedError
            Before `fit`.
        PredictorError
            For a count below 1, or an input missing, unknown or not positive.
        UndeterminedError
            With ``strict=True``, for a target graded ``unusable``.
        """
        rows, shape = self._rows(nprocs, inputs)
        if strict:
            refuse_unusable(self.reliability(nprocs, **inputs))
        return self._answers(rows)[0].reshape(shape)

    def predict_model(self, nprocs: ArrayLike, **inputs: ArrayLike) -> FloatArray:
        """Return the plain model's runtimes, which need not keep to what was measured.

        It is for those who correct the model by a layer of their own; beyond
        `declines_after_` it says what the model makes of the counts before.
        """
        rows, shape = self._rows(nprocs, inputs)
        return self._model_seconds(rows).reshape(shape)

    def predict_range(
        self, nprocs: ArrayLike | pd.DataFrame, level: float = 0.8, **inputs: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends of a prediction range that holds `level` of new runs, seconds."""
        BETWEEN_0_AND_1.check(level=level)
        rows, shape = self._rows(nprocs, inputs)
        ends, evidence = self._model_range(rows, level), self._evidence
        if evidence is not None:
            ends = evidence.range(self._counts(rows), self._answers(rows), ends, level)
        return ends[0].reshape(shape), ends[1].reshape(shape)

    @property
    def declines_after_(self) -> float | None:
        """The fastest measured count, where those beyond it decline; else None.

        Remarks on counts beyond it have the code ``declining``. None where inputs vary.
        """
        self.check_fitted(self._learned)
        return None if self._evidence is None else self._evidence.declines_after

    def declining(self, nprocs: ArrayLike) -> BoolArray:
        """Say which counts lie beyond `declines_after_`: their grade has the code ``declining``."""
        self.check_fitted(self._learned)
        targets, evidence = checked_targets(asked_of(nprocs, {})[0]), self._evidence
        return np.zeros(targets.shape, bool) if evidence is None else evidence.declining(targets)

    @property
    def _evidence(self) -> Evidence | None:
        """What answers keep to; None where they need not."""
        return None

    @abstractmethod
    def reliability(self, nprocs: ArrayLike | pd.DataFrame, **inputs: ArrayLike) -> list[Remark]:
        """Say how far to trust the predictions, and where to measure next."""

    @abstractmethod
    def _fit_table(self, table: pd.DataFrame) -> Self:
        """Fit to a table of runs."""

    @abstractmethod
    def _rows(
        self, nprocs: ArrayLike | pd.DataFrame, inputs: Mapping[str, ArrayLike]
    ) -> tuple[FloatArray, tuple[int, ...]]:
        """Return targets as the model takes them, a column each, and the shape to answer in."""

    @abstractmethod
    def _model_seconds(self, rows: FloatArray) -> FloatArray:
        """Return what the model says, seconds, shape (t,)."""

    @abstractmethod
    def _model_range(self, rows: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the range around what the model says, each of shape (t,)."""

    def _counts(self, rows: FloatArray) -> FloatArray:
        """Return the processor counts of targets, shape (t,)."""
        return rows

    def _at(self, counts: FloatArray) -> FloatArray:
        """Return processor counts as targets, where no input varies."""
        return counts

    def _answers(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what is predicted and what the model says, seconds, each of shape (t,)."""
        if self._evidence is None:
            model = self._model_seconds(rows)
            return model, model
        told = self._counts(rows), lambda counts: self._model_seconds(self._at(counts))
        return self._evidence.answers(*told)
