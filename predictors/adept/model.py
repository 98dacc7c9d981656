"""The ADEPT predictor."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from math import isinf, nan
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from predictors.adept.anomalies import AnomalousPoint, Metric
from predictors.adept.at_once import FitAtOnce, fit_at_once
from predictors.adept.curve import DowneyCurve
from predictors.adept.curve_kernels import Reading
from predictors.adept.envelope import Envelope
from predictors.adept.layout import Layout, layout_of, read_layout
from predictors.adept.patterns import Feasible
from predictors.adept.phase import (
    Answers,
    FitOptions,
    Phase,
    SearchName,
    answers_of,
    merged_answers,
    phases_of,
)
from predictors.adept.reliability import curve_remarks, open_remarks, phase_remarks, point_remarks
from predictors.adept.search import Scale
from predictors.adept.selection import EXACT
from predictors.base import BoolArray, FloatArray, IntArray, Remark
from predictors.curves.estimator import AnchoredEstimator
from predictors.curves.measured import Evidence
from predictors.errors import PredictorError, check_choice
from predictors.observations import ObservedCurve, merged_curve
from predictors.remarks import UNUSABLE, gravest


class Adept(AnchoredEstimator):
    """Downey's curve through a handful of runs, fitted anew for each target.

    Parameters
    ----------
    q : float
        Above 1; how evenly near and far observations count. 2 as in the paper,
        1.01 trusts the nearest most. With infinity all count the same and one
        search serves all targets, which then differ in the choice among ties.
    search : {"exact", "grid"}
        The exact search with ties settled, or the paper's two passes.
    scale : {"free", "unit", "serial"}
        The unit of time is fitted; or runtimes are those of the normalised
        model; or the runtime on one processor is met exactly.
    floor : float or "auto"
        Relative noise below which instances are not told apart; "auto"
        estimates it from residuals and repeats, 0 takes runtimes as exact.
    allowed : iterable of int or str, optional
        Counts the application runs on, or the name of a family of them such as
        "powers of 2". None looks for a family by itself.
    metric : {"doubling", "paper"}
        Statistic that finds anomalies: efficiency gained a doubling, or the
        paper's R, which uneven spacing misleads.

    Attributes
    ----------
    A_, sigma_ : float
        Average parallelism and its variance, of the curve as a whole.
    serial_time_ : float
        Runtime on one processor by that curve, seconds.
    serial_measured_ : bool
        Whether speedups refer to a measured runtime on one processor.
    floor_ : float
        Relative noise as estimated or given.
    envelope_ : Envelope
        Bounds on A and sigma.
    anomalies_ : tuple of AnomalousPoint
    phases_ : tuple of (float, float)
        First and last observed count of each phase.
    declines_after_ : float or None
        The fastest measured count, where those beyond it decline.
    feasible_ : Feasible
        Counts the application runs on, given or found.

    Notes
    -----
    Deshmeh, Machina & Sodan. The paper leaves open how runtimes are brought to
    the model's unit; here the scale is a third parameter. Where instances fit
    equally well, the one whose prediction is the median predicts.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from predictors.downey import normalised_time
    >>> n = np.array([4, 8, 24, 30])
    >>> runs = pd.DataFrame({"nprocs": n, "runtime": 90 * normalised_time(n, 16, 0.5)})
    >>> model = Adept().fit(runs)
    >>> round(model.A_, 3), round(model.sigma_, 3), model.predict([2, 64]).round(2).tolist()
    (16.0, 0.5, [731.25, 90.0])
    """

    _reading: Reading | None
    _fits: FitAtOnce | None
    _last: tuple[dict[float, int], Answers] | None

    def __init__(
        self,
        q: float = 2.0,
        search: SearchName = "exact",
        scale: Scale = "free",
        floor: float | Literal["auto"] = "auto",
        allowed: Iterable[int] | str | None = None,
        metric: Metric = "doubling",
    ) -> None:
        self.q, self.search, self.scale, self.metric = q, search, scale, metric
        self.floor, self.allowed = floor, allowed

    def check_parameters(self) -> None:
        """Refuse constructor arguments out of range; see `Estimator`."""
        if not self.q > 1.0:
            raise PredictorError(f"q must be above 1, got {self.q!r}")
        check_choice(("exact", "grid"), search=self.search)
        check_choice(("free", "unit", "serial"), scale=self.scale)
        check_choice(("doubling", "paper"), metric=self.metric)
        if isinstance(self.floor, str):
            check_choice(("auto",), floor=self.floor)
        elif not 0.0 <= self.floor < 1.0:
            raise PredictorError(f"floor must be 'auto' or in [0, 1), got {self.floor!r}")
        Feasible(self.allowed)

    def fit_kept(
        self, counts: IntArray, runs: FloatArray, numbers: FloatArray, targets: IntArray
    ) -> FloatArray:
        """Fit to good runs, and return what the plain model says of targets, all at once.

        Parameters
        ----------
        counts, runs, numbers
            As `predictors.observations.merged_curve` takes them.
        targets : numpy.ndarray of int, shape (t,)

        Returns
        -------
        numpy.ndarray of float, shape (t,), seconds
        """
        self._learn(merged_curve(counts, runs, numbers))
        return self.predict_model(targets)

    def judgements(self, nprocs: ArrayLike) -> list[tuple[str, str]]:
        """Return the worst grade of the remarks about each count, and why it is unusable.

        The grade is empty without remarks, the code where it is usable. It costs little
        where the counts are those predicted last.
        """
        if self._fits is not None:
            return self._fits.judgements(np.ravel(nprocs))
        targets, found = self._targets(nprocs).ravel(), {}
        for _, places in self._by_phase(targets):
            about: dict[float | None, list[Remark]] = {None: []}
            for one in self.reliability(targets[places]):
                about.setdefault(one.target, []).append(one)
            for target in targets[places].tolist():
                grade, code = gravest(about[None] + about.get(target, []))
                found[target] = grade, code if grade == UNUSABLE else ""
        return [found[target] for target in targets.tolist()]

    def curve(self, nprocs: float | None = None) -> DowneyCurve:
        """Return one curve for all targets, for plots, knees and parameters.

        With steps it is the curve of the phase at `nprocs`; by default of the last.
        """
        last = float(self._targets(self.curve_.nprocs[-1] if nprocs is None else nprocs))
        place = int(self._layout.phase_of(self.curve_.nprocs, np.array([last]))[0])
        fitted, end = self._phases[place].fitted, self.declines_after_
        return fitted if end is None else replace(fitted, declines_after=end)

    def speedup(self, nprocs: ArrayLike) -> FloatArray:
        """Return T(1)/T(n), T(1) measured or else by the target's own instance."""
        targets = self._targets(nprocs)
        seconds = self.predict(targets)
        if self.serial_measured_:
            return np.asarray(self.curve_.runtime[0] / seconds, float)
        serial = self._instances(targets.ravel()).serial_time.reshape(targets.shape)
        return np.asarray(serial / seconds, float)

    def efficiency(self, nprocs: ArrayLike) -> FloatArray:
        """Return the speedup over the processor count."""
        return self.speedup(nprocs) / self._targets(nprocs)

    def feasible(self, nprocs: ArrayLike) -> BoolArray:
        """Say which counts the application runs on."""
        return self._layout.feasible.holds(self._targets(nprocs))

    @property
    def A_(self) -> float:
        """Average parallelism."""
        return self.curve().A

    @property
    def sigma_(self) -> float:
        """Variance of parallelism."""
        return self.curve().sigma

    @property
    def serial_time_(self) -> float:
        """Runtime on one processor by the curve as a whole, seconds."""
        return self.curve().serial_time

    @property
    def serial_measured_(self) -> bool:
        """Whether a runtime on one processor was observed."""
        return bool(self._targets(1.0) == self.curve_.nprocs[0])

    @property
    def floor_(self) -> float:
        """Relative noise of the last phase."""
        self._targets(1.0)
        return self._phases[-1].floor

    @property
    def envelope_(self) -> Envelope:
        """Bounds on A and sigma, of the last phase."""
        self._targets(1.0)
        return self._phases[-1].envelope

    @property
    def anomalies_(self) -> tuple[AnomalousPoint, ...]:
        """Observations off the trend of the others."""
        self._targets(1.0)
        return self._layout.points

    @property
    def phases_(self) -> tuple[tuple[float, float], ...]:
        """First and last observed count of each phase."""
        self._targets(1.0)
        return tuple((float(p.curve.nprocs[0]), float(p.curve.nprocs[-1])) for p in self._phases)

    @property
    def feasible_(self) -> Feasible:
        """Counts the application runs on."""
        if getattr(self, "_reading", None) is not None:
            return Feasible(self.allowed)
        self._targets(1.0)
        return self._layout.feasible

    def _learn(self, curve: ObservedCurve) -> None:
        if self.scale == "serial" and curve.nprocs[0] != 1.0:
            raise PredictorError("scale='serial' needs a run on 1 processor, and there is none")
        self._forget()
        self.curve_ = curve
        self._reading, self._fits = None, None
        if self._can_be_at_once:
            floor = nan if isinstance(self.floor, str) else self.floor
            self._reading, self._fits = fit_at_once(curve, self.metric, floor)

    def _forget(self) -> None:
        """Forget what was learned."""
        for made in ("curve_", "_layout", "_phases", "_evidence"):
            self.__dict__.pop(made, None)
        self._last = None

    @property
    def _is_fitted(self) -> bool:
        return hasattr(self, "_fits")

    @property
    def _can_be_at_once(self) -> bool:
        """Whether reading and fitting have a compiled form, which is the same for all targets."""
        options = self.search, self.scale, self.allowed
        return isinf(self.q) and options == ("exact", "free", None)

    @cached_property
    def _evidence(self) -> Evidence:  # type: ignore[override]
        """What answers keep to."""
        if self._reading is None:
            return self._layout.evidence(self.curve_)
        return Evidence(self.curve_, self._reading.points.tolist())

    @cached_property
    def _layout(self) -> Layout:
        """How the observations are read, in words."""
        curve, feasible = self.curve_, Feasible(self.allowed)
        if self._reading is None:
            return read_layout(curve, feasible, self.metric)
        return layout_of(curve, self._reading, feasible)

    @cached_property
    def _phases(self) -> tuple[Phase, ...]:
        """A fit for each phase, which has words for it."""
        floor = None if isinstance(self.floor, str) else self.floor
        options = FitOptions(self.q, self.search, self.scale, floor)
        return tuple(phases_of(self.curve_, self._layout, options))

    def _model_seconds(self, targets: FloatArray) -> FloatArray:
        if self._fits is not None:
            return np.asarray(self._fits.answer(targets)[0].copy(), float)
        return self._instances(targets).predicted

    def _model_range(self, targets: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of what indistinguishable instances say, widened by the noise.

        Off the observations the noise grows with the distance to the nearest, twice
        as fast beyond them as between them. Where no noise was found, the range is
        that of the instances alone, and the least difference at which they are told apart,
        so that the one that fits exactly is within it.
        """
        answers = self._instances(targets)
        errors = np.zeros(len(targets))
        for phase, places in self._by_phase(targets):
            errors[places] = phase.errors(targets[places])
        wider = np.exp(np.minimum(scipy.special.ndtri(0.5 + 0.5 * level) * errors, 50.0))
        wider = np.maximum(wider, 1.0 + EXACT)
        return answers.low / wider, answers.high * wider

    def _model_remarks(
        self, targets: FloatArray, ordinary: ObservedCurve, end: float | None
    ) -> list[Remark]:
        """Say it of distinct targets; in a declining end the model is not what answers."""
        found = curve_remarks(self.curve_, self._layout)
        asked = targets[~self._evidence.declining(targets)]
        answers = self._instances(targets).rows(np.arange(len(asked)))
        for phase, places in self._by_phase(asked):
            found += phase_remarks(phase, end)
            found += open_remarks(phase, answers.rows(places), asked[places], self._layout)
        return found + point_remarks(self.curve_, self._layout, self._evidence, asked)

    def _by_phase(self, targets: FloatArray) -> list[tuple[Phase, np.ndarray]]:
        """Return each phase that has targets, with the places of these."""
        if len(self._phases) == 1:
            return [(self._phases[0], np.arange(len(targets)))]
        belongs = self._layout.phase_of(self.curve_.nprocs, targets)
        return [
            (phase, np.flatnonzero(belongs == place))
            for place, phase in enumerate(self._phases)
            if (belongs == place).any()
        ]

    def _instances(self, targets: FloatArray) -> Answers:
        """Return the answers at the targets; those asked last are kept."""
        if self._fits is not None:
            return answers_of(self._fits.answer(targets))
        asked = targets.tolist()
        if len(set(asked)) < len(asked):
            self._instances(np.array(list(dict.fromkeys(asked))))
        if self._last is not None:
            places_of, answers = self._last
            if asked == list(places_of):
                return answers
            if all(target in places_of for target in asked):
                return answers.rows(np.array([places_of[target] for target in asked], np.int64))
        parts = [
            (places, phase.answers(targets[places])) for phase, places in self._by_phase(targets)
        ]
        answers = merged_answers(parts, len(targets))
        self._last = {target: place for place, target in enumerate(asked)}, answers
        return answers
