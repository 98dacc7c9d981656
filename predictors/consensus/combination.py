"""One prediction from several methods, with a range that has been calibrated."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from predictors.base import FloatArray, Grade, Remark, run_table
from predictors.consensus.members import ErrorMemory, Members, fit_members, weighted_median
from predictors.curves.measured import Evidence
from predictors.errors import NotFittedError, PredictorError
from predictors.regression.inputs import InputEstimator, target_rows
from predictors.regression.training_runs import OPTIONAL_INPUT, counts_of, runs_from_frame
from predictors.regression.validation import constant_remarks
from predictors.remarks import (
    data_remarks,
    far_remarks,
    few_remark,
    measure_between,
    single_remarks,
)

ENOUGH = 3
"""With fewer counts ranges are wider, as the square root of how many are missing."""
BASE, REACH, APART, ABOVE = 0.15, 0.14, 0.2, 2.2
"""80 % of runs take at most exp(ABOVE·s) times and at least exp(-s) of what is said.

s is BASE + REACH·ln(target / nearest measured end) + APART·(mean distance of the methods
from their median, in ln T, at most 1). Pinball loss on measured curves found them.
"""
TAILS = 2.0
"""Degrees of freedom of the t distribution that carries ranges to other levels."""
DIFFER: tuple[tuple[float, Grade], ...] = ((0.4, "unusable"), (0.2, "warning"), (0.08, "note"))
"""Mean distance of the methods from their median, a doubling beyond the runs, and its grade.

Beyond one doubling a difference said less of the error on measured curves: a warning at most.
"""
ONE_DOUBLING = 1.1


class Consensus(InputEstimator):
    """The median of a law, a straight and a curved log-log line.

    Each is wrong in a way of its own: Amdahl's law levels off or never does, the line
    keeps its slope, the quadratic bends with every scatter; the middle one is none of
    these, and it has no constants. Universal scalability takes the place of Amdahl's
    law where the runtime rises at the end. Past errors may weigh the methods.

    Ranges are as wide as errors on measured curves have been at that distance and with
    that disagreement, wider upwards, where most errors lie.

    Where no input varies, an answer at a measured count keeps to its runs; a declining
    end is left out of the fits and believed at its own counts alone.

    Parameters
    ----------
    inputs : sequence of str
        Names of the input columns; ``size`` is used where the observations have it.
        Where inputs vary, focused regression joins, and methods that know counts
        alone see times brought to one size.
    memory : ErrorMemory, optional
        Past errors, kept by the caller.
    application : hashable
        Whose errors in the memory count as this application's.

    Attributes
    ----------
    members_ : Members
        The fitted methods.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"nprocs": [4, 8, 16, 32], "runtime": [105.0, 55.0, 30.0, 17.5]})
    >>> model = Consensus().fit(runs)
    >>> low, high = model.predict_range([64], level=0.8)
    >>> bool(low[0] < model.predict([64])[0] < high[0])
    True
    """

    members_: Members

    def __init__(
        self,
        inputs: Sequence[str] = OPTIONAL_INPUT,
        memory: ErrorMemory | None = None,
        application: Hashable = None,
    ) -> None:
        self.inputs = inputs
        self.memory, self.application = memory, application

    def fit(self, observations: pd.DataFrame | ArrayLike, runtime: ArrayLike | None = None) -> Self:
        """Fit every method to a table with columns ``nprocs``, ``runtime`` and inputs.

        With `runtime`, observations are counts, or rows of counts and inputs.

        Raises
        ------
        PredictorError
            If a needed column is missing, or a value is not finite and positive.
        """
        self.check_parameters()
        table = run_table(self, observations, runtime)
        runs = runs_from_frame(table, tuple(self.inputs))
        names = tuple(n for n in self.inputs if n in runs.inputs or n in runs.constants)
        columns = [table[name].to_numpy(dtype=np.float64) for name in names]
        counts = table["nprocs"].to_numpy(dtype=np.float64)
        if runs.dropped:  # outliers, which the table still has
            counts = counts_of(runs.log_q)
            columns = [
                np.exp2(runs.log_inputs[:, runs.inputs.index(name)])
                if name in runs.inputs
                else np.full(runs.rows, runs.constants[name])
                for name in names
            ]
        self.members_ = fit_members(names, counts, runs.runtime, columns)
        return self

    def fit_arrays(
        self, nprocs: ArrayLike, runtime: ArrayLike, inputs: Sequence[ArrayLike] = ()
    ) -> Self:
        """Fit to arrays: the fast entry, without a table."""
        self.members_ = fit_members(self.inputs, nprocs, runtime, inputs)
        return self

    def _model_seconds(self, log_q: FloatArray, log_inputs: FloatArray) -> FloatArray:
        return _seconds(self._consensus(log_q, log_inputs)[0])

    def _model_range(
        self, log_q: FloatArray, log_inputs: FloatArray, level: float
    ) -> tuple[FloatArray, FloatArray]:
        middle, scale, _ = self._consensus(log_q, log_inputs)
        scale = scale * stdtrit(TAILS, 0.5 + 0.5 * level) / stdtrit(TAILS, 0.9)
        return _seconds(middle - scale), _seconds(middle + ABOVE * scale)

    def member_predictions(self, nprocs: ArrayLike, **inputs: ArrayLike) -> dict[str, FloatArray]:
        """Return each method's own prediction, by name."""
        log_q, log_inputs, shape = self._rows(nprocs, inputs)
        values = _seconds(self.members_.log_seconds(log_q, log_inputs))
        return {
            name: row.reshape(shape)
            for name, row in zip(self.members_.methods, values, strict=True)
        }

    def member_errors(self, nprocs: float, runtime: float, **inputs: ArrayLike) -> dict[str, float]:
        """Return each method's ln(predicted / measured) for a run it has not seen.

        What `ErrorMemory.record` takes: ask before the run joins the observations.
        """
        if not 0.0 < runtime < np.inf:
            raise PredictorError(f"a measured runtime must be positive, got {runtime}")
        predicted = self.member_predictions([nprocs], **inputs)
        return {name: float(np.log(row[0] / runtime)) for name, row in predicted.items()}

    def _rows(
        self, nprocs: ArrayLike | pd.DataFrame, inputs: Mapping[str, ArrayLike]
    ) -> tuple[FloatArray, FloatArray, tuple[int, ...]]:
        runs = self._fitted().runs
        return target_rows(runs.inputs, runs.constants, nprocs, inputs)

    def _fitted(self) -> Members:
        if not hasattr(self, "members_"):
            raise NotFittedError("Consensus was asked before fit")
        return self.members_

    def _evidence(self) -> Evidence | None:
        return self._fitted().evidence

    def _weights(self) -> FloatArray:
        """Return each method's weight by its past errors, shape (methods, 1); 1 without any."""
        factors = {} if self.memory is None else self.memory.multipliers(self.application)
        return np.array([[factors.get(name, 1.0)] for name in self.members_.methods])

    def _consensus(
        self, log_q: FloatArray, log_inputs: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return ln seconds, how far below them 80 % ranges end, and how far methods differ."""
        members = self.members_
        voices = members.log_seconds(log_q, log_inputs)
        weights = np.repeat(self._weights(), log_q.size, axis=1)
        middle = weighted_median(voices, weights)
        apart = (weights * np.abs(voices - middle)).sum(axis=0) / weights.sum(axis=0)
        scale = BASE + REACH * np.log(2.0) * self._doublings(log_q) + APART * np.minimum(apart, 1.0)
        scale = scale * max(ENOUGH / len(members.curve.nprocs), 1.0) ** 0.5
        return middle, np.hypot(scale, members.scaling.scatter), apart

    def _doublings(self, log_q: FloatArray) -> FloatArray:
        """Return how many doublings each target lies outside the measured counts."""
        counts = np.log2(self.members_.curve.nprocs)
        return np.abs(log_q - np.clip(log_q, counts[0], counts[-1]))

    def reliability(self, nprocs: ArrayLike | pd.DataFrame, **inputs: ArrayLike) -> list[Remark]:
        """Say how far to trust predictions at these counts and inputs."""
        log_q, log_inputs, _ = self._rows(nprocs, inputs)
        members, targets = self.members_, counts_of(log_q)
        remarks = data_remarks(members.curve)
        name, end = "a consensus of all its methods", self.declines_after_
        remarks += few_remark(members.curve, 3, name, end)
        measured = members.curve if members.evidence is None else members.evidence.curve
        remarks += single_remarks(measured.nprocs, targets) + far_remarks(measured, targets)
        remarks += constant_remarks(members.runs.constants, inputs)
        if not members.scaling.learned:
            text = (
                f"the runs do not tell {', '.join(members.runs.inputs)} from the processor count: "
                "time is taken as proportional to size"
            )
            remarks.append(Remark("warning", "inputs_not_told_apart", text))
        if members.evidence is not None:
            ordinary = ~members.evidence.declining(targets)
            remarks += members.evidence.remarks(np.unique(targets))
            log_q, log_inputs = log_q[ordinary], log_inputs[ordinary]
        return remarks + self._remarks_on_differences(log_q, log_inputs)

    def _remarks_on_differences(self, log_q: FloatArray, log_inputs: FloatArray) -> list[Remark]:
        """Say where the methods differ, by how much a doubling, and where to measure."""
        _, scale, apart = self._consensus(log_q, log_inputs)
        each = apart / np.maximum(self._doublings(log_q), 1.0)
        last = float(self.members_.curve.nprocs[-1])
        found = []
        rows = zip(counts_of(log_q).tolist(), each.tolist(), apart, scale, strict=True)
        for target, differ, whole, below in dict.fromkeys(rows):
            grade = next((grade for least, grade in DIFFER if differ > least), None)
            if grade == "unusable" and target > last * 2.0**ONE_DOUBLING:
                grade = "warning"
            if grade is not None:
                ends = np.exp(np.minimum([-below, ABOVE * below], 300.0))
                text = (
                    f"the methods differ by {np.expm1(min(whole, 50.0)):.0%} at {target:g} "
                    f"processors; 80 % of such runs take {ends[0]:.2f} to {ends[1]:.2f} times that"
                )
                measure = measure_between(last, target) if target > last else round(target)
                found.append(Remark(grade, "methods_differ", text, measure, float(target)))
        return found


def _seconds(log_seconds: FloatArray) -> FloatArray:
    """Return seconds, finite and positive whatever the logarithm."""
    seconds: FloatArray = np.exp(np.clip(log_seconds, -600.0, 600.0))
    return seconds
