"""One prediction from several methods, with a range that has been calibrated."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from predictors.base import FloatArray, Remark, run_table
from predictors.consensus.members import LINE, Members, fit_members
from predictors.consensus.weighting import (
    ConsensusRule,
    ErrorMemory,
    RangeModel,
    damped_growth,
    weighted_median,
)
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

RULE = ConsensusRule(
    weights={
        "adept": 1.907,
        "linear": 3.073,
        "quadratic": 3.533,
        "amdahl": 1.787,
        "usl": 1.535,
        "focused": 3.073,
        "between": 2,
    },
    grades={"warning": 0.572, "unusable": 0.262},
    line_rate=0.102,
    mean_share=0.302,
    steepest=-1.227,
    flattest=0.265,
    typical_exponent=-0.664,
    typical_information=0.01229,
)

RANGES = RangeModel(
    base=(0.2402, 0.2068, 0.1811, 0.1639),
    reach=(0.03042, 0.2599, 0.1219, 0.08066),
    disagreement=0.9216,
    levels=(
        0.005,
        0.025,
        0.05,
        0.1,
        0.15,
        0.2,
        0.25,
        0.3,
        0.4,
        0.5,
        0.6,
        0.7,
        0.75,
        0.8,
        0.85,
        0.9,
        0.95,
        0.975,
        0.995,
    ),
    quantiles=(
        -2.045,
        -1.363,
        -1.103,
        -0.7739,
        -0.5751,
        -0.4376,
        -0.3273,
        -0.247,
        -0.1134,
        0.008924,
        0.1415,
        0.3489,
        0.4724,
        0.6513,
        0.9068,
        1.189,
        1.742,
        2.693,
        4.348,
    ),
)


BETWEEN = "between"
WIDE = 2.0  # a range whose ends differ by more than this factor, squared, is wide


class Consensus(InputEstimator):
    """One prediction from ADEPT, two log-log regressions, Amdahl and universal scalability.

    Every method that the runs allow is fitted, and the answer is their weighted median,
    beyond the measured counts in part their mean, so that one going astray moves it
    little; a method weighs less where it grades itself unusable and where it has been off
    before, on this application or on others. Beyond the measured counts each method's
    exponent is kept within what is seen in practice, the straight log-log line decides
    more of the growth the farther the target is, and where the counts say little the
    answer leans to the growth that is typical. The range is as
    wide as errors on measured curves have been with as many counts, at that distance
    and with that disagreement among the methods.

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
    rule, ranges : ConsensusRule, RangeModel, optional
        Other constants than `RULE` and `RANGES`, which are calibrated on measured curves.

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
        rule: ConsensusRule | None = None,
        ranges: RangeModel | None = None,
    ) -> None:
        self.inputs = inputs
        self.memory, self.application = memory, application
        self.rule, self.ranges = rule, ranges

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
        middle, scale = self._consensus(log_q, log_inputs)
        low, high = (self.ranges or RANGES).ends(level)
        return _seconds(middle + low * scale), _seconds(middle + high * scale)

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

    def _factors(self) -> dict[str, float]:
        """Return what past errors say of each method's weight; empty without a memory."""
        return {} if self.memory is None else self.memory.multipliers(self.application)

    def _weights(self, log_q: FloatArray) -> FloatArray:
        """Return each method's weight at each target, shape (methods, m).

        The rule's, times what its past errors say, times what ADEPT's grades say.
        """
        factors = self._factors()
        names = list(self.members_.methods)
        own = np.array(
            [(self.rule or RULE).weights[name] * factors.get(name, 1.0) for name in names]
        )
        weights = np.repeat(own[:, None], log_q.size, axis=1)
        grades = self.members_.adept_grades(log_q)
        weights[names.index("adept")] *= [
            (self.rule or RULE).grades.get(grade, 1.0) for grade in grades
        ]
        return weights

    def _consensus(
        self, log_q: FloatArray, log_inputs: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return ln seconds and the scale of their error at each target."""
        members = self.members_
        counts = np.log2(members.curve.nprocs)
        end = np.clip(log_q, counts[0], counts[-1])
        both = members.log_seconds(
            np.concatenate([log_q, end]), np.concatenate([log_inputs, log_inputs])
        )
        voices, at_end = both[:, : log_q.size], both[:, log_q.size :]
        weights = self._weights(log_q)
        between = np.full((1, log_q.size), (self.rule or RULE).weights[BETWEEN])
        middle = weighted_median(
            np.vstack([at_end, members.between(end, log_inputs)]), np.vstack([weights, between])
        )
        distance = (log_q - end) * np.log(2.0)
        out = distance != 0.0
        if out.any():
            names = list(members.methods)
            middle[out] += damped_growth(
                self.rule or RULE,
                voices[:, out] - middle[out],
                distance[out],
                weights[:, out],
                names.index(LINE) if LINE in names else None,
                float(np.log(2.0) ** 2 * np.sum((counts - counts.mean()) ** 2)),
                min(self._factors().get(LINE, 1.0), 1.0),
            )
        apart = (weights * np.abs(voices - middle)).sum(axis=0) / weights.sum(axis=0)
        scale = (self.ranges or RANGES).scale(counts.size, np.abs(distance), apart)
        return middle, np.hypot(scale, members.scaling.scatter)

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
        return remarks + self._range_remarks(log_q, log_inputs)

    def _range_remarks(self, log_q: FloatArray, log_inputs: FloatArray) -> list[Remark]:
        """Warn of targets whose 80 % range is wide, with where to measure."""
        _, scale = self._consensus(log_q, log_inputs)
        low, high = (self.ranges or RANGES).ends(0.8)
        factors = np.exp(np.minimum(0.5 * (high - low) * scale, 300.0))
        last = float(self.members_.curve.nprocs[-1])
        found = []
        for target, factor in dict(zip(counts_of(log_q).tolist(), factors, strict=True)).items():
            if factor > WIDE:
                text = (
                    f"the methods and past errors leave a factor of {factor:.2g} either way "
                    f"at {target:g} processors (80 % range)"
                )
                measure = measure_between(last, target) if target > last else round(target)
                found.append(Remark("warning", "wide_range", text, measure, float(target)))
        return found


def _seconds(log_seconds: FloatArray) -> FloatArray:
    """Return seconds, finite and positive whatever the logarithm."""
    seconds: FloatArray = np.exp(np.clip(log_seconds, -600.0, 600.0))
    return seconds
