"""The ADEPT predictor."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isinf
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from predictors.adept.anomalies import AnomalousPoint, Metric
from predictors.adept.fit import CODES, EXACT, LEAST, NOTE, NOTHING, SEVERITY, phases_of
from predictors.adept.grid import Envelope
from predictors.adept.layout import Feasible, Layout, read_layout
from predictors.adept.phase import Answers, FitOptions, Phase, PhaseCurve, SearchName, fit_phases
from predictors.adept.reliability import curve_remarks, open_remarks, phase_remarks, point_remarks
from predictors.adept.search import SERIAL_TIMES, Scale
from predictors.base import BoolArray, FloatArray, IntArray, Remark
from predictors.curves.estimator import Evidence
from predictors.curves.laws import CurveEstimator
from predictors.errors import PredictorError, check_choice
from predictors.observations import SAME, ObservedCurve, merged_curve
from predictors.remarks import UNUSABLE, graded, gravest

_NOTHING = np.empty((9, 0))


@dataclass(eq=False, repr=False)
class Adept(CurveEstimator):
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

    q: float = 2.0
    search: SearchName = "exact"
    scale: Scale = "free"
    floor: float | Literal["auto"] = "auto"
    allowed: Iterable[int] | str | None = None
    metric: Metric = "doubling"

    def check_parameters(self) -> None:
        """Refuse constructor arguments out of range; see `Estimator`."""
        if not self.q > 1.0:
            raise PredictorError(f"q must be above 1, got {self.q!r}")
        check_choice(("exact", "grid"), search=self.search)
        check_choice(SERIAL_TIMES, scale=self.scale)
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
        if self._grades_at_once:
            return graded(CODES, *self._said(np.ravel(nprocs))[SEVERITY:].astype(np.int64))
        targets, found = self._targets(nprocs).ravel(), {}
        for _, places in self._by_phase(targets):
            about: dict[float | None, list[Remark]] = {None: []}
            for one in self.reliability(targets[places]):
                about.setdefault(one.target, []).append(one)
            for target in targets[places].tolist():
                grade, code = gravest(about[None] + about.get(target, []))
                found[target] = grade, code if grade == UNUSABLE else ""
        return [found[target] for target in targets.tolist()]

    def curve(self, nprocs: float | None = None) -> PhaseCurve:
        """Return one curve for all targets, for plots, knees and parameters.

        With steps it is the curve of the phase at `nprocs`; by default of the last.
        """
        last = float(self._targets(self.curve_.nprocs[-1] if nprocs is None else nprocs))
        place = int(self._phases_of(np.array([last]))[0])
        fitted, end = self._phases[place].fitted, self.declines_after_
        return fitted if end is None else replace(fitted, declines_after=end)

    def speedup(self, nprocs: ArrayLike) -> FloatArray:
        """Return T(1)/T(n), T(1) measured or else by the target's own instance."""
        targets = self._targets(nprocs)
        seconds = self.predict(targets)
        if self.serial_measured_:
            return np.asarray(self.curve_.runtime[0] / seconds, float)
        serial = Answers(*self._said(targets.ravel())[:9]).serial_time.reshape(targets.shape)
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
        return bool(self._layout.curve.nprocs[0] == 1.0)

    @property
    def floor_(self) -> float:
        """Relative noise of the last phase."""
        return self._phases[-1].fit.floor

    @property
    def envelope_(self) -> Envelope:
        """Bounds on A and sigma, of the last phase."""
        return self._phases[-1].envelope

    @property
    def anomalies_(self) -> tuple[AnomalousPoint, ...]:
        """Observations off the trend of the others."""
        return self._layout.points

    @property
    def phases_(self) -> tuple[tuple[float, float], ...]:
        """First and last observed count of each phase."""
        return tuple((float(p.curve.nprocs[0]), float(p.curve.nprocs[-1])) for p in self._phases)

    @property
    def feasible_(self) -> Feasible:
        """Counts the application runs on."""
        return self._layout.feasible

    def _learn(self, curve: ObservedCurve) -> None:
        if self.scale == "serial" and curve.nprocs[0] != 1.0:
            raise PredictorError("scale='serial' needs a run on 1 processor, and there is none")
        self._forget()
        self.curve_ = curve

    def _forget(self) -> None:
        """Forget what was learned."""
        for made in ("curve_", "_layout", "_phases", "_evidence", "_grades_at_once", "_of_curve"):
            self.__dict__.pop(made, None)
        self._asked, self._told = _NOTHING[0], _NOTHING

    @cached_property
    def _grades_at_once(self) -> bool:
        """Whether answers have a compiled form with grades, which is the same for all targets."""
        plain = isinf(self.q) and (self.search, self.scale, self.allowed) == ("exact", "free", None)
        enough = plain and np.count_nonzero(self._layout.reading.used) >= LEAST
        return bool(enough and self._layout.special is None)

    @cached_property
    def _of_curve(self) -> tuple[FloatArray, IntArray, float, int]:
        """What grades take of the whole curve; see `predictors.adept.fit.graded`."""
        curve, reading = self.curve_, self._layout.reading
        end = curve.nprocs.item(reading.start) * (1.0 + SAME) if self._layout.declines else inf
        least = NOTE if curve.dropped or curve.ignored else NOTHING
        return curve.nprocs, reading.points, end, max(least, reading.severity)

    @cached_property
    def _evidence(self) -> Evidence:
        """What answers keep to: all but anomalous points.

        Counts outside a family that was found say nothing of the counts beside them.
        """
        layout, alone = self._layout, ~self.feasible(self.curve_.nprocs)
        own = [] if layout.special is None else np.flatnonzero(alone).tolist()
        return Evidence(self.curve_, layout.reading.points.tolist(), own)

    @cached_property
    def _layout(self) -> Layout:
        """How the observations are read."""
        self.check_fitted(self._learned)
        return read_layout(self.curve_, Feasible(self.allowed), self.metric)

    @cached_property
    def _phases(self) -> tuple[Phase, ...]:
        """A fit for each phase."""
        floor = None if isinstance(self.floor, str) else self.floor
        options = FitOptions(self.q, self.search, self.scale, floor)
        return tuple(fit_phases(self._layout, options))

    def _model_seconds(self, targets: FloatArray) -> FloatArray:
        return np.asarray(self._said(targets)[0].copy(), float)

    def _model_range(self, targets: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of what indistinguishable instances say, widened by the noise.

        Off the observations the noise grows with the distance to the nearest, twice
        as fast beyond them as between them. Where no noise was found, the range is
        that of the instances alone, and the least difference at which they are told apart,
        so that the one that fits exactly is within it.
        """
        answers = Answers(*self._said(targets)[:9])
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
        found = curve_remarks(self._layout)
        asked = targets[~self._evidence.declining(targets)]
        answers = self._said(targets)[:9, : len(asked)]
        for phase, places in self._by_phase(asked):
            found += phase_remarks(phase, end)
            found += open_remarks(phase, answers[:, places], asked[places], self._layout)
        return found + point_remarks(self._layout, self._evidence, asked)

    def _phases_of(self, targets: FloatArray) -> IntArray:
        return phases_of(self.curve_.nprocs, self._layout.reading, targets)

    def _by_phase(self, targets: FloatArray) -> list[tuple[Phase, Any]]:
        """Return each phase that has targets, with the places of these."""
        if len(self._phases) == 1:
            return [(self._phases[0], slice(None))]
        belongs = self._phases_of(targets)
        return [
            (phase, np.flatnonzero(belongs == place))
            for place, phase in enumerate(self._phases)
            if (belongs == place).any()
        ]

    def _said(self, targets: FloatArray | IntArray) -> FloatArray:
        """Return what phases say of targets, a row a figure; of those asked last what they said.

        Rows are those of `Answers`, and of grades where these are found at once.
        """
        if self._asked.size == targets.size and (self._asked == targets).all():
            return self._told
        known = dict(zip(self._asked.tolist(), range(self._asked.size), strict=True))
        if known.keys() >= {*targets.tolist()}:
            return self._told[:, [known[target] for target in targets.tolist()]]
        self._asked = asked = targets.astype(float)
        parts = [(at, self._said_by(phase, asked[at])) for phase, at in self._by_phase(asked)]
        self._told = np.empty((len(parts[0][1]), targets.size))
        for places, said in parts:
            self._told[:, places] = said
        return self._told

    def _said_by(self, phase: Phase, targets: FloatArray) -> FloatArray:
        if self._grades_at_once:
            return phase.graded(self._of_curve, targets)
        return phase.answers(targets)
