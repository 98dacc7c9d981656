"""Learning in the loop with the problem size as an input: regressions per application."""

from copy import copy
from math import isfinite, isnan, log2
from typing import NamedTuple

import numpy as np

from predictors.base import BoolArray, Explanation, FloatArray, IntArray, Observation
from predictors.errors import PredictorError
from predictors.in_loop.per_application import PerApplication
from predictors.in_loop.residuals import SizedRatios
from predictors.regression.barnes import LogLogRegression
from predictors.regression.focal_kernels import ROUNDING, focal_fit, prepared
from predictors.regression.garren import FocusedRegression
from predictors.regression.loglog import LogLogModel
from predictors.regression.qr import DETERMINED, predicted
from predictors.regression.training_runs import OPTIONAL_INPUT, SPLITS, TrainingRuns, checked
from predictors.regression.validation import is_far
from predictors.remarks import UNUSABLE, gravest, worse

_KEPT_RUNS = 400
_FOCI = 4.0
"""Focal times are told apart by this many steps in a doubling."""

_SPREAD = 4.0
"""Sizes must differ by this factor before an exponent is fitted to them."""

WAYS = tuple(SPLITS)[:1]
"""The simulator splits times by the slowest process alone."""

Regression = LogLogRegression | FocusedRegression


class LatestRuns:
    """The latest runs, a column each: count, runtime, size, computation, communication.

    Examples
    --------
    >>> runs = LatestRuns(2)
    >>> for nprocs in (1, 2, 4):
    ...     runs.add((nprocs, 8.0 / nprocs, 1.0, 8.0 / nprocs, 0.0))
    >>> runs.columns[:2].tolist()
    [[2.0, 4.0], [4.0, 2.0]]
    """

    def __init__(self, kept: int = _KEPT_RUNS) -> None:
        self._kept = kept
        self._table = np.empty((5, 2 * kept))
        self._end = 0

    def add(self, run: tuple[float, float, float, float, float]) -> None:
        """Add a run; the oldest one goes if too many are kept."""
        if self._end == 2 * self._kept:
            self._table[:, : self._kept] = self._table[:, self._kept :]
            self._end = self._kept
        self._table[:, self._end] = run
        self._end += 1

    @property
    def columns(self) -> FloatArray:
        """The runs kept, a copy of shape (5, n), in the order of their ends."""
        return self._table[:, max(0, self._end - self._kept) : self._end].copy()


class Focus(NamedTuple):
    """A fit at one focal time.

    Attributes
    ----------
    coefficients : numpy.ndarray or None
        None where the runs in focus allow no fit.
    half_width : float
        Of the region, log2 units; infinite where every run is in focus.
    number : int
        How many runs had been seen.
    low, high : numpy.ndarray
        log2 of the least and the largest count and size in focus: beyond them all runs
        answer.
    """

    coefficients: FloatArray | None
    half_width: float
    number: int
    low: FloatArray
    high: FloatArray

    def covers(self, targets: FloatArray) -> BoolArray:
        """Return which targets, a column each, lie among the counts and sizes in focus."""
        inside = (self.low <= targets.T) & (self.high >= targets.T)
        return np.asarray(inside.all(axis=1), bool)


def over(model: LogLogModel, inputs: tuple[str, ...]) -> FloatArray:
    """Return a model's coefficients over all of `inputs`, 0 for those it does without."""
    if model.inputs == inputs:
        return model.coefficients
    wider = np.zeros((len(model.parts), 2 + len(inputs)))
    wider[:, :2] = model.coefficients[:, :2]
    for k, name in enumerate(model.inputs):
        wider[:, 2 + inputs.index(name)] = model.coefficients[:, 2 + k]
    return wider


class SizedHistory:
    """The runs of one application with their sizes, and the regressions fitted to them.

    Parameters
    ----------
    model : LogLogRegression or FocusedRegression
        Where a fit begins; it is copied, never fitted itself.
    growth : float
        By which share the runs must have grown before a new fit.
    """

    def __init__(self, model: Regression, growth: float) -> None:
        self._prototype = model
        self._growth = growth
        self._latest = LatestRuns()
        self._counts: set[int] = set()
        self._fitted_at = 0
        self._runs: TrainingRuns | None = None
        self._log_time = np.empty(0)
        self._sizes = (1.0, 1.0)
        self._by_proportion = False
        self._complete: Regression | None = None
        self._kind: tuple[object, ...] = ()
        self._foci: dict[int, Focus] = {}
        self._general: str | None = None
        self._ratios: SizedRatios | None = None
        self.number = 0

    def add(self, run: Observation) -> bool:
        """Add a run; True if what was last predicted no longer stands."""
        more = run.more
        self._ratios = None
        parts = more.get("computation", np.nan), more.get("communication", np.nan)
        self._latest.add((run.nprocs, run.runtime, run.size, *parts))
        self.number += 1
        is_new = run.nprocs not in self._counts
        self._counts.add(run.nprocs)
        if not is_new and self.number < self._fitted_at * (1.0 + self._growth):
            return False
        was_asked = self._runs is not None
        self._runs = None
        return is_new or was_asked

    def predict(self, counts: IntArray, size: float) -> FloatArray | None:
        """Return the runtimes of a job of that size at each count, None if nothing can be fitted.

        A focused regression puts its focal time at the complete prediction of each
        count; where the runs there allow no fit, all answer.
        """
        try:
            complete = self._model().model_
        except PredictorError:
            return None
        inside, factor = self._inside(size)
        targets = self._targets(counts, inside)
        seconds: FloatArray = predicted(complete.coefficients, targets)
        if isinstance(self._prototype, FocusedRegression):
            foci = np.rint(np.log2(seconds) * _FOCI)
            for centre in set(foci.tolist()):
                focus = self._focus(int(centre))
                if focus.coefficients is not None:
                    near = (foci == centre) & focus.covers(targets)
                    seconds[near] = predicted(focus.coefficients, targets[:, near])
        return seconds * factor

    def believe(self, counts: IntArray, size: float) -> FloatArray | None:
        """Return what is predicted as the runs correct it, each brought to that size.

        They are brought there by the fit to all runs; see `predictors.in_loop.residuals`.
        """
        if not self.can_predict:
            return None
        ratios, other = self._compared(), None
        known = ratios.counts
        both = self.predict(np.concatenate([counts, known]), size)
        assert both is not None
        if isinstance(self._prototype, FocusedRegression):
            other = self._complete_seconds(known, np.array([size]))
        own, measured = both[: counts.size], both[counts.size :]
        return ratios.corrected(own, counts, measured, size, other)

    def _compared(self) -> SizedRatios:
        """Return the ratios of the runs to the fit to all runs."""
        if self._ratios is None:
            columns = self._latest.columns[:3]
            nprocs, runtime, size = columns[:, columns[1] > 0.0]
            seconds = self._complete_seconds(nprocs, size)
            self._ratios = SizedRatios(nprocs, runtime, size, seconds)
        return self._ratios

    def _complete_seconds(self, counts: IntArray | FloatArray, sizes: FloatArray) -> FloatArray:
        """Return what the fit to all runs says of jobs of these sizes at these counts."""
        assert self._runs is not None
        factor = np.where(np.isnan(sizes), 1.0, sizes)
        targets = np.zeros((1 + len(self._runs.inputs), len(counts)))
        targets[0] = np.log2(counts)
        if not self._by_proportion and not np.isnan(self._sizes[0]):
            inside = np.clip(sizes, *self._sizes)
            targets[1:], factor = np.log2(inside), sizes / inside
        seconds: FloatArray = predicted(self._model().model_.coefficients, targets)
        return seconds * factor

    @property
    def can_predict(self) -> bool:
        """Whether anything could be fitted."""
        try:
            return self._model() is not None
        except PredictorError:
            return False

    def grade(self, nprocs: int, size: float) -> str:
        """Return the worst grade of the remarks about a count at that size.

        What is said of the fit is found once; only the distance to the runs is
        a count's own.
        """
        model = self._model()
        inside, _ = self._inside(size)
        log_inputs = [log2(inside)] if model.model_.inputs else []
        far = is_far(model.model_, log2(nprocs), log_inputs)
        judged = worse(self._judged(), model.grade_on_extrapolation(log2(nprocs)))
        return worse(judged, "warning" if far else "")

    def explain(self, method: str, nprocs: int, size: float) -> Explanation | None:
        """Say what a belief about a job of that size at a count rests on, and how it is graded."""
        if not self.can_predict:
            return None
        grade = self.grade(nprocs, size)
        code, model = "", self._model()
        if grade == UNUSABLE:
            beyond = model.remarks_on_extrapolation(np.array([log2(nprocs)]))
            code = gravest(model.remarks_on_fit() + beyond)[1]
        ratios = self._compared()
        usual = self._complete_seconds(np.array([nprocs]), np.array([size])).item()
        runs, mean = ratios.number(nprocs), ratios.mean(nprocs) * usual
        return Explanation(method, self.number, grade, code, runs, mean)

    def _inside(self, size: float) -> tuple[float, float]:
        """Return the size to ask for, and the factor that is left to proportion."""
        if isnan(size):
            return 1.0, 1.0
        low, high = self._sizes
        if self._by_proportion:
            return 1.0, size
        inside = min(max(size, low), high)
        return inside, size / inside

    def _targets(self, counts: IntArray, inside: float) -> FloatArray:
        """Return counts and the size (where the model has one) in log2, a column a count."""
        assert self._runs is not None
        targets = np.empty((1 + len(self._runs.inputs), counts.size))
        np.log2(counts, out=targets[0])
        targets[1:] = log2(inside)
        return targets

    def _model(self) -> Regression:
        """Return the fit to all runs, made anew if they have grown enough.

        Raises
        ------
        PredictorError
            If it cannot be made.
        """
        if self._runs is None:
            self._renew(self._training_runs())
        if self._complete is None:
            self._complete = self._complete_fit()
        return self._complete

    def _complete_fit(self) -> Regression:
        assert self._runs is not None
        model = self._prototype
        complete = model if isinstance(model, LogLogRegression) else LogLogRegression(model.inputs)
        return copy(complete).fit_runs(self._runs)

    def _judged(self) -> str:
        """Return the worst grade of what is said of the fit to all runs, found once."""
        if self._general is None:
            self._general = self._model().grade_on_fit()
        return self._general

    def _renew(self, runs: TrainingRuns) -> None:
        """Take other runs; keep focal fits if runs were only added to those they know."""
        kind = runs.inputs, tuple(runs.splits), self._by_proportion
        if kind != self._kind or self.number > _KEPT_RUNS:
            self._foci.clear()
        self._runs, self._kind, self._fitted_at = runs, kind, self.number
        self._complete = self._general = self._ratios = None

    def _focus(self, focus: int) -> Focus:
        """Return the fit at a focal time.

        A fit stands until a run ends that is within its region.
        """
        known = self._foci.get(focus)
        if known is None or not self._stands(known, focus / _FOCI):
            known = self._fitted_focus(focus / _FOCI)
        self._foci[focus] = known = known._replace(number=self._fitted_at)
        return known

    def _stands(self, known: Focus, centre: float) -> bool:
        """Say whether all runs since a fit ended outside its region."""
        if known.number == self._fitted_at:
            return True
        distance = np.abs(self._log_time[known.number :] - centre) - ROUNDING
        return bool(distance.min() > known.half_width)

    def _fitted_focus(self, centre: float) -> Focus:
        """Fit at a focal time, log2 seconds."""
        model, runs = self._prototype, self._runs
        assert isinstance(model, FocusedRegression)
        assert runs is not None
        if model.focus == "region" and model.influence == "flag":
            known, runtime, splits = runs.arrays
            failed, coefficients, width, all_kept, low, high = focal_fit(
                known, runtime, self._log_time, splits, centre, float(model.tolerance)
            )
            found = coefficients if failed == DETERMINED else None
            return Focus(found, np.inf if all_kept else width, self._fitted_at, low, high)
        model = copy(model)
        model.focal_time = 2.0**centre
        try:
            model.fit_runs(runs)
        except PredictorError:
            nowhere = np.full(1 + len(runs.inputs), np.inf)
            return Focus(None, np.inf, self._fitted_at, nowhere, nowhere)
        within = {name: (log2(value),) * 2 for name, value in model.runs_.constants.items()}
        within |= dict(zip(model.model_.inputs, model.model_.ends[1:], strict=True))
        ends = [model.model_.ends[0], *(within[name] for name in runs.inputs)]
        found, (low, high) = over(model.model_, runs.inputs), np.array(ends).T
        return Focus(found, np.inf, self._fitted_at, low, high)

    def _training_runs(self) -> TrainingRuns:
        """Return the latest runs, as time for one unit of size where sizes hardly differ."""
        known, runtime, self._log_time, splits, low, high = prepared(self._latest.columns, _SPREAD)
        if not isfinite(self._log_time.sum()):
            checked("runtime", runtime)
        self._sizes, self._by_proportion = (low, high), high < _SPREAD * low
        names, ways = OPTIONAL_INPUT[: len(known) - 1], WAYS[: len(splits)]
        return TrainingRuns.of_arrays(known, runtime, splits, names, ways)


class RegressionPerApplication(PerApplication[SizedHistory]):
    """Learn one log-log regression per application, with the size where it is known.

    Where sizes are hidden there is one per size class, or, without classes, one
    for all runs of the application, on the processor count alone. With a
    focused regression, T0 is the complete fit's prediction at the job's size and
    at each count. A new fit is made when a new count appears or the runs have
    grown by a tenth, and not before somebody asks. The last 400 runs are kept.
    Where the sizes seen differ by less than a factor of 4, and beyond those seen,
    time is taken to be in proportion to the size.
    Where a regression cannot be fitted yet, the request stands. What is believed is
    what it predicts as the runs correct it at and between their counts.

    Parameters
    ----------
    model : LogLogRegression or FocusedRegression
    method, calibration, charge
        As `PerApplication` has them.
    growth : float
        By which share the runs must have grown before a new fit.

    Examples
    --------
    >>> from predictors.base import VisibleJobs
    >>> predictor = RegressionPerApplication(LogLogRegression(), "regression")
    >>> zero, unknown = np.array([0]), np.array([np.nan])
    >>> predictor.attach(VisibleJobs(zero, zero - 1, unknown, zero, zero + 4, unknown))
    >>> for n in (1, 2, 4, 8):
    ...     changed = predictor.observe(Observation(0, -1, np.nan, n, 80.0 / n, 0.0))
    >>> predictor.curve(0, np.array([1, 16])).round(6).tolist()
    [80.0, 5.0]
    """

    wants_split = True

    def __init__(
        self,
        model: Regression,
        method: str,
        calibration: int | None = None,
        charge: bool = True,
        growth: float = 0.1,
    ) -> None:
        super().__init__(method, calibration, charge)
        if not growth >= 0:
            raise PredictorError(f"growth must be at least 0, got {growth}")
        model.check_parameters()
        self.model = model
        self.growth = growth

    def _begin(self, run: Observation) -> SizedHistory:
        return SizedHistory(self.model, self.growth)
