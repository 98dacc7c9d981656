"""Learning in the loop with the problem size as an input: regressions per application."""

from copy import copy
from math import log2, nan

import numpy as np

from predictors.base import FloatArray, IntArray, Observation
from predictors.compiling import direct
from predictors.errors import AT_LEAST_0, PredictorError
from predictors.in_loop import sized_kernels as kernels
from predictors.in_loop.per_application import PerApplication
from predictors.in_loop.residuals import with_room
from predictors.regression.barnes import LogLogRegression
from predictors.regression.garren import FocusedRegression
from predictors.regression.loglog_kernels import DETERMINED, FORMS, SPLITTING
from predictors.regression.training_runs import OPTIONAL_INPUT, SPLITS, TrainingRuns
from predictors.regression.validation import range_remarks
from predictors.remarks import GRADES, UNUSABLE, gravest, worse

WAYS = tuple(SPLITS)[:1]
"""The simulator splits times by the slowest process alone."""

Regression = LogLogRegression | FocusedRegression

_believe, _account = direct(kernels.believe), direct(kernels.account)
_believe_in_focus = direct(kernels.believe_in_focus)


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
        self._focal = model if isinstance(model, FocusedRegression) else None
        self._complete = model if self._focal is None else LogLogRegression(model.inputs)
        complete = self._complete
        assert isinstance(complete, LogLogRegression)
        self._choice = FORMS[complete.form], SPLITTING[complete.split]
        self._is_plain = self._focal is None or (
            self._focal.focus == "region" and self._focal.influence == "flag"
        )
        self._growth = growth
        self._latest = kernels.latest_runs()
        self._counts: set[int] = set()
        self._fitted_at = 0
        self._fit: kernels.Fit | None = None
        self._failed = True
        self._grade = ""
        self._estimator: Regression | None = None
        self._beyond: dict[int, tuple[str, str]] = {}
        self._kind: tuple[object, ...] = ()
        self._foci = kernels.foci()
        self.number = 0

    def add(self, run: Observation) -> bool:
        """Add a run; True if what was last predicted no longer stands."""
        more, nprocs = run.more, run.nprocs
        computation, communication = more.get("computation", nan), more.get("communication", nan)
        row = nprocs, run.runtime, run.size, computation, communication
        self._latest = kernels.with_run(self._latest, row)
        self.number += 1
        is_new = nprocs not in self._counts
        if is_new:
            self._counts.add(nprocs)
        elif self.number < self._fitted_at * (1.0 + self._growth):
            return False
        was_asked = self._fit is not None
        self._fit = None
        return is_new or was_asked

    @property
    def can_predict(self) -> bool:
        """Whether anything could be fitted; a fit is made anew if the runs have grown enough."""
        if self._fit is None:
            self._renew()
        return not self._failed

    def believe(self, counts: IntArray, size: float) -> FloatArray | None:
        """Return what is predicted as the runs correct it, each brought to that size.

        They are brought there by the fit to all runs; see `predictors.in_loop.residuals`.
        A focused regression puts its focal time at that fit's prediction for each count;
        where the runs there allow no fit, all answer.
        """
        if not self.can_predict:
            return None
        assert self._fit is not None
        counts, size = np.ascontiguousarray(counts, np.int64), float(size)
        found: FloatArray
        if self._focal is None:
            found = _believe(self._latest, self._fit, counts, size)
            return found
        self._make_room(counts.size)
        if not self._is_plain:
            asked = kernels.asked_of(self._latest, self._fit, counts, size)
            self._fit_foci(set(kernels.foci_of(asked[1]).tolist()))
        half_width = float(self._focal.tolerance)
        found = _believe_in_focus(
            self._latest, self._fit, self._foci, counts, size, self._fitted_at, half_width
        )
        return found

    def kept_at(self, nprocs: int, size: float) -> tuple[int, float]:
        """Return how many runs are kept at a count, and their mean, brought to that size."""
        runs, mean = _account(self._latest, self._fit, nprocs, float(size))
        return runs, mean

    def grade(self, nprocs: int, size: float) -> tuple[str, str] | None:
        """Return how a belief about a count is graded, and the code of why; None without one."""
        if not self.can_predict:
            return None
        assert self._fit is not None
        limits = self._fit.limits
        if not limits.item(kernels.LEAST) <= nprocs <= limits.item(kernels.MOST):
            return self._judged(nprocs)
        return self._grade, ""

    def _judged(self, nprocs: int) -> tuple[str, str]:
        """Return grade and code of a count beyond the runs, found once a fit."""
        found = self._beyond.get(nprocs)
        if found is None:
            model = self._model()
            target = np.append(log2(nprocs), model.model_.high[1:])[:, None]
            beyond = model.remarks_on_extrapolation(target[0])
            grade, code = gravest(beyond + range_remarks(model.model_, target))
            found = worse(self._grade, grade), code if grade == UNUSABLE else ""
            self._beyond[nprocs] = found
        return found

    def _renew(self) -> None:
        """Fit to the latest runs; keep focal fits if runs were only added to those they know."""
        failed, fit, grade = kernels.renewed(self._latest, *self._choice)
        self._fit, self._failed, self._grade = fit, failed != DETERMINED, GRADES[grade]
        kind = len(fit.known), len(fit.splits), fit.limits.item(kernels.BY_PROPORTION)
        if kind != self._kind or self.number > kernels.KEPT_RUNS:
            self._latest.span[kernels.FOCI] = 0
        self._kind, self._fitted_at = kind, self.number
        self._estimator = None
        self._beyond.clear()

    def _training_runs(self) -> TrainingRuns:
        """Return the runs of the fit, as time for one unit of size where sizes hardly differ."""
        assert self._fit is not None
        known, runtime, _, splits, *_ = self._fit
        names, ways = OPTIONAL_INPUT[: len(known) - 1], WAYS[: len(splits)]
        return TrainingRuns(known, runtime, splits, names, ways)

    def _model(self) -> Regression:
        """Return the fit to all runs as an estimator, which has words for it."""
        if self._estimator is None:
            self._estimator = copy(self._complete).fit_runs(self._training_runs())
        return self._estimator

    def _make_room(self, asked: int) -> None:
        """Make room for as many foci as may be asked for."""
        needed = self._latest.span.item(kernels.FOCI) + asked + len(self._counts)
        if needed > self._foci.centres.size:
            self._foci = kernels.Foci(*(with_room(one, 2 * needed) for one in self._foci))

    def _fit_foci(self, wanted: set[int]) -> None:
        """Fit at focal times as the estimator does, where they have no fit yet that stands."""
        span, seen = self._latest.span, self._fitted_at
        for centre in wanted:
            row = kernels.focus_row(self._foci, span.item(kernels.FOCI), centre)
            is_new = row == span[kernels.FOCI]
            if is_new:
                self._foci.centres[row] = centre
                span[kernels.FOCI] += 1
            if is_new or self._foci.parts[row, 1] != seen:
                found = self._fitted_focus(centre / kernels.FOCUS_STEPS)
                kernels.put_focus(self._foci, row, *found)
            self._foci.parts[row, 1] = seen

    def _fitted_focus(self, centre: float) -> tuple[FloatArray, float, FloatArray, FloatArray]:
        """Fit at a focal time, log2 seconds; return coefficients, none of them if there is no fit.

        Then the half-width of the region, and log2 of the least and largest count and size.
        """
        assert self._focal is not None
        runs, model = self._training_runs(), copy(self._focal)
        model.focal_time = 2.0**centre
        width = 2 + len(runs.inputs)
        try:
            model.fit_runs(runs)
        except PredictorError:
            nowhere = np.full(width - 1, np.inf)
            return np.empty((0, width)), np.inf, nowhere, nowhere
        within = {name: (log2(value),) * 2 for name, value in model.runs_.constants.items()}
        within |= dict(zip(model.model_.inputs, model.model_.ends[1:], strict=True))
        ends = [model.model_.ends[0], *(within[name] for name in runs.inputs)]
        low, high = np.array(ends).T.copy()
        return with_room(model.model_.coefficients, width, axis=1), np.inf, low, high


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
    method, calibration, charge, most_error
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
        most_error: float | None = 0.7,
    ) -> None:
        super().__init__(method, calibration, charge, most_error)
        AT_LEAST_0.check(growth=growth)
        model.check_parameters()
        self.model = model
        self.growth = growth

    def _begin(self, run: Observation) -> SizedHistory:
        return SizedHistory(self.model, self.growth)
