"""Learning in the loop with the problem size as an input: regressions per application.

One compiled call takes in the runs since the last one, fits, chooses the form and grades the fit
(`renewed`); one answers for all counts asked (`believe`); one says what a belief rests on
(`account`). The fits are those of `predictors.regression`.
"""

from copy import copy
from math import log2, nan
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray, Observation
from predictors.compiling import compiled, direct
from predictors.errors import AT_LEAST_0, PredictorError
from predictors.in_loop.per_application import PerApplication
from predictors.in_loop.residuals import corrected, place_of, with_room
from predictors.regression.barnes import LogLogRegression
from predictors.regression.garren import FocusedRegression
from predictors.regression.inputs import OPTIONAL_INPUT, SPLITS, TrainingRuns
from predictors.regression.loglog_kernels import (
    DETERMINED,
    FORMS,
    LARGEST_LOG,
    ROUNDING,
    SPLITTING,
    choose,
    coefficients_of,
    focal_fit,
    grade_of_fit,
    prepared,
)
from predictors.regression.validation import range_remarks
from predictors.remarks import GRADES, UNUSABLE, gravest, worse

COUNT, RUNTIME, SIZE, RATIO, LOG_SIZE = 0, 1, 2, 5, 6
"""Rows of `LatestRuns.table`; before `RATIO` (computation and communication come last) as they
were seen, from there on logarithms."""
BEGIN, END, COMPARED, LEVELS, FOCI = range(5)
"""Places of `LatestRuns.span`."""
LOW, HIGH, BY_PROPORTION, LEAST, MOST = range(5)
"""Places of `SizedFit.limits`."""
NO_LOGARITHM = -4
"""A failure to fit: a runtime has no logarithm."""
FOCUS_STEPS = 4.0
"""Focal times are told apart by this many steps in a doubling."""
SPREAD = 4.0
"""Sizes must differ by this factor before an exponent is fitted to them."""
LIKE = np.log(2.0)
"""A run of a size that is off by this much, as a logarithm, counts half."""
KEPT_RUNS = 400
_ROOM = 16
"""For so many runs and foci there is room at first."""


class LatestRuns(NamedTuple):
    """The latest runs of an application, a column each, and how they compare with a fit.

    Attributes
    ----------
    table : numpy.ndarray of float, shape (7, room)
        ln(run / fit to all runs) and ln size are there for the runs that were compared.
    places : numpy.ndarray of int, shape (room,)
        Of each compared run's count among those measured; -1 for one that took no time.
    levels : numpy.ndarray of int, shape (room,)
        The measured counts, ascending.
    span : numpy.ndarray of int, shape (5,)
        Where the runs begin and end; where those that were compared end; how many counts
        were measured; how many foci are known.
    """

    table: FloatArray
    places: IntArray
    levels: IntArray
    span: IntArray


class SizedFit(NamedTuple):
    """A fit to all runs, and what it was made of.

    Attributes
    ----------
    known, runtime, log_time, splits : numpy.ndarray
        As `predictors.regression.loglog_kernels.prepared` returns them.
    coefficients : numpy.ndarray, shape (parts, columns)
    limits : numpy.ndarray of float, shape (5,)
        Least and largest size, 1 where times are in proportion to it, least and largest
        count.
    """

    known: FloatArray
    runtime: FloatArray
    log_time: FloatArray
    splits: FloatArray
    coefficients: FloatArray
    limits: FloatArray


class Foci(NamedTuple):
    """Fits at focal times, a row each.

    Attributes
    ----------
    centres : numpy.ndarray of int, shape (room,)
        log2 of the focal times, in steps.
    parts : numpy.ndarray of int, shape (room, 2)
        How many parts a fit has, 0 where the runs in focus allow none, and how many runs
        had been seen.
    table : numpy.ndarray of float, shape (room, 11)
        Half-width of the region, log2 units; infinite where every run is in focus. log2 of
        the least and of the largest count and size in focus. Coefficients.
    """

    centres: IntArray
    parts: IntArray
    table: FloatArray


def latest_runs(room: int = _ROOM) -> LatestRuns:
    """Return an empty table of runs.

    Examples
    --------
    >>> runs = latest_runs()
    >>> for nprocs in (1, 2, 4):
    ...     runs = with_run(runs, (nprocs, 8.0 / nprocs, 1.0, 8.0 / nprocs, 0.0), kept=2)
    >>> runs.table[COUNT, runs.span[BEGIN] : runs.span[END]].tolist()
    [2.0, 4.0]
    """
    places, levels, span = (np.zeros(size, np.int64) for size in (room, room, 5))
    return LatestRuns(np.zeros((7, room)), places, levels, span)


def with_run(
    runs: LatestRuns, run: tuple[float, float, float, float, float], kept: int = KEPT_RUNS
) -> LatestRuns:
    """Return the runs with one more; the oldest one goes if too many are kept.

    Parameters
    ----------
    runs : LatestRuns
    run : tuple of float
        Count, runtime, size, computation and communication.
    kept : int
    """
    end = runs.span.item(END)
    if end == runs.places.size:
        runs, end = _with_room(runs, kept), runs.span.item(END)
    runs.table[:RATIO, end] = run
    runs.span[END] = end + 1
    runs.span[BEGIN] = max(0, end + 1 - kept)
    return runs


def _with_room(runs: LatestRuns, kept: int) -> LatestRuns:
    """Return the runs in a table with room for more: a longer one, or one without old runs."""
    begin, end = runs.span[BEGIN], runs.span[END]
    if end < 2 * kept:
        room = min(2 * end, 2 * kept)
        places, levels = (with_room(one, room) for one in (runs.places, runs.levels))
        return LatestRuns(with_room(runs.table, room, axis=1), places, levels, runs.span)
    runs.table[:, : end - begin] = runs.table[:, begin:end].copy()
    runs.span[[BEGIN, END, COMPARED]] = 0, end - begin, 0
    return runs


def foci(room: int = _ROOM) -> Foci:
    """Return an empty table of fits at focal times."""
    return Foci(np.zeros(room, np.int64), np.zeros((room, 2), np.int64), np.zeros((room, 11)))


@compiled
def renewed(latest, form, split):  # type: ignore[no-untyped-def]
    """Fit to the latest runs and grade the fit.

    Returns
    -------
    failed : int
    fit : SizedFit
    grade : int
        Severity of what is said of the fit (`predictors.remarks.GRADES`).
    """
    begin, end = latest.span[BEGIN], latest.span[END]
    runs = latest.table[:RATIO, begin:end]
    known, runtime, log_time, splits, low, high = prepared(runs, SPREAD)
    proportional = 1.0 if high < SPREAD * low else 0.0
    limits = np.array([low, high, proportional, runs[COUNT].min(), runs[COUNT].max()])
    latest.span[COMPARED] = begin
    failed, way, why, _, done, _, uppers, columns = choose(known, runtime, splits, form, split)
    failed = failed if np.isfinite(log_time.sum()) else NO_LOGARITHM
    if failed != DETERMINED:
        return failed, SizedFit(known, runtime, log_time, splits, np.empty((1, 0)), limits), 0
    coefficients = coefficients_of(uppers, columns, 1 if way < 0 else 2)
    grade = grade_of_fit(known, runtime, uppers, columns, coefficients)
    if why != 0 or done != 0:
        grade = max(grade, 1)
    return failed, SizedFit(known, runtime, log_time, splits, coefficients, limits), grade


@compiled
def seconds_by(coefficients, log_count, log_size, has_size):  # type: ignore[no-untyped-def]
    """Return what a model says of one count and size; see `loglog_kernels.predicted`."""
    seconds, inputs = 0.0, 2 if has_size else 1
    for p in range(coefficients.shape[0]):
        value = coefficients[p, 0] + coefficients[p, 1] * log_count
        if has_size:
            value += coefficients[p, 2] * log_size
        if coefficients.shape[1] > 1 + inputs:
            value += coefficients[p, 1 + inputs] * log_count * log_count
        seconds += 2.0 ** min(max(value, -LARGEST_LOG), LARGEST_LOG)
    return seconds


@compiled
def inside_of(fit, size) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """Return log2 of the size to ask for, and the factor that is left to proportion."""
    limits = fit.limits
    if np.isnan(size):
        return 0.0, 1.0
    if limits[BY_PROPORTION] > 0.0:
        return 0.0, size
    inside = min(max(size, limits[LOW]), limits[HIGH])
    return np.log2(inside), size / inside


@compiled
def complete_seconds(fit, count, size):  # type: ignore[no-untyped-def]
    """Return what the fit to all runs says of a job of a size at a count."""
    log_size, factor = inside_of(fit, size)
    has_size = fit.known.shape[0] == 2
    return seconds_by(fit.coefficients, np.log2(count), log_size, has_size) * factor


@compiled
def compare(latest, fit):  # type: ignore[no-untyped-def]
    """Compare the runs with the fit to all runs, those that were not before."""
    table, places, levels, span = latest
    begin, end = span[BEGIN], span[END]
    if span[COMPARED] == end:
        return
    anew = begin > 0 or span[COMPARED] == begin
    for i in range(span[COMPARED], end):
        places[i] = -1
        if table[RUNTIME, i] > 0.0:
            usual = complete_seconds(fit, table[COUNT, i], table[SIZE, i])
            table[RATIO, i] = np.log(table[RUNTIME, i] / usual)
            table[LOG_SIZE, i] = np.log(table[SIZE, i])
            places[i] = place_of(levels[: span[LEVELS]], int(table[COUNT, i]))
            anew |= places[i] < 0
    if anew:
        counts = table[COUNT, begin:end].astype(np.int64)
        took = table[RUNTIME, begin:end] > 0.0
        known = np.unique(counts[took])
        span[LEVELS] = known.size
        levels[: known.size] = known
        places[begin:end] = np.where(took, np.searchsorted(known, counts), -1)
    span[COMPARED] = end


@compiled
def averages(latest, size):  # type: ignore[no-untyped-def]
    """Return the mean ratio at each measured count, runs of like size first, and their number.

    Besides, the sum of their squared distances to these means, weighed as the runs are.
    However far their sizes are, runs at a count are as many runs there.

    Parameters
    ----------
    latest : LatestRuns
        Compared with a fit.
    size : float
        Logarithm of the size that is asked about; where sizes are NaN, all runs count alike.
    """
    table, places, _, span = latest
    number = span[LEVELS]
    means, weights, squares = np.zeros(number), np.zeros(number), np.zeros(number)
    runs = np.zeros(number)
    for i in range(span[BEGIN], span[END]):
        place, ratio = places[i], table[RATIO, i]
        if place < 0:
            continue
        off = (table[LOG_SIZE, i] - size) / LIKE
        weight = 1.0 if np.isnan(off) else 1.0 / (1.0 + off * off)
        means[place] += weight * ratio
        weights[place] += weight
        squares[place] += weight * ratio * ratio
        runs[place] += 1.0
    total = 0.0
    for k in range(number):
        means[k] /= weights[k]
        total += runs[k] * max(squares[k] / weights[k] - means[k] * means[k], 0.0)
    return means, runs, total


@compiled
def focus_row(foci, number, centre) -> int:  # type: ignore[no-untyped-def]
    """Return the row of a focal time; `number` where it has none."""
    for row in range(number):
        if foci.centres[row] == centre:
            return row
    return int(number)


@compiled
def stands(foci, row, fit, seen) -> bool:  # type: ignore[no-untyped-def]
    """Say whether all runs since a focal fit ended outside its region."""
    known, width = foci.parts[row, 1], foci.table[row, 0]
    if known != seen:
        centre = foci.centres[row] / FOCUS_STEPS
        for i in range(known, fit.log_time.size):
            if not np.abs(fit.log_time[i] - centre) - ROUNDING > width:
                return False
    return True


@compiled
def put_focus(foci, row, coefficients, width, low, high):  # type: ignore[no-untyped-def]
    """Write down a fit at a focal time; without coefficients there is none."""
    own, inputs = foci.table[row], low.size
    foci.parts[row, 0] = coefficients.shape[0]
    own[0] = width
    own[1 : 1 + inputs] = low
    own[3 : 3 + inputs] = high
    for p in range(coefficients.shape[0]):
        own[5 + 3 * p : 6 + 3 * p + inputs] = coefficients[p]


@compiled
def fit_foci(latest, fit, foci, wanted, seen, half_width):  # type: ignore[no-untyped-def]
    """See to it that the fits at focal times are those to the runs of the fit."""
    span = latest.span
    for centre in wanted:
        row = focus_row(foci, span[FOCI], centre)
        is_new = row == span[FOCI]
        if is_new:
            foci.centres[row] = centre
            span[FOCI] += 1
        if is_new or not stands(foci, row, fit, seen):
            failed, coefficients, width, all_kept, low, high = focal_fit(
                fit.known, fit.runtime, fit.log_time, fit.splits, centre / FOCUS_STEPS, half_width
            )
            found = coefficients if failed == DETERMINED else coefficients[:0]
            put_focus(foci, row, found, np.inf if all_kept else width, low, high)
        foci.parts[row, 1] = seen


@compiled
def asked_of(latest, fit, counts, size):  # type: ignore[no-untyped-def]
    """Return counts and then the measured ones in log2, and what the fit to all runs says there.

    It says it of the size inside those seen, of which log2 and the rest's factor come last.
    """
    compare(latest, fit)
    number = latest.span[LEVELS]
    log_counts, seconds = np.empty(counts.size + number), np.empty(counts.size + number)
    log_size, factor = inside_of(fit, size)
    has_size = fit.known.shape[0] == 2
    for i in range(log_counts.size):
        count = counts[i] if i < counts.size else latest.levels[i - counts.size]
        log_counts[i] = np.log2(count)
        seconds[i] = seconds_by(fit.coefficients, log_counts[i], log_size, has_size)
    return log_counts, seconds, log_size, factor


@compiled
def foci_of(seconds):  # type: ignore[no-untyped-def]
    """Return the focal times, log2 in steps, at which runs of these times are looked at."""
    return np.rint(np.log2(seconds) * FOCUS_STEPS).astype(np.int64)


@compiled
def focused(latest, fit, foci, asked):  # type: ignore[no-untyped-def]
    """Return what fits in focus say where they can; `asked` is what `asked_of` returned."""
    log_counts, seconds, log_size, _ = asked
    centres, has_size, found = foci_of(seconds), fit.known.shape[0] == 2, seconds.copy()
    for i in range(found.size):
        row = focus_row(foci, latest.span[FOCI], centres[i])
        own, parts = foci.table[row], foci.parts[row, 0]
        inside = parts > 0 and own[1] <= log_counts[i] <= own[3]
        if inside and (not has_size or own[2] <= log_size <= own[4]):
            width = 3 if has_size else 2
            coefficients = own[5:].reshape(2, 3)[:parts, :width]
            found[i] = seconds_by(coefficients, log_counts[i], log_size, has_size)
    return found


@compiled
def as_runs_correct(latest, counts, size, asked, seconds):  # type: ignore[no-untyped-def]
    """Return the runtimes `seconds` at counts, as the runs correct them.

    Each run is brought to the size by the fit to all runs, of which `asked` tells.
    """
    number, factor = counts.size, asked[3]
    means, runs, squares = averages(latest, np.log(size))
    for k in range(means.size):
        if seconds[number + k] != asked[1][number + k]:
            means[k] += np.log(asked[1][number + k] * factor / (seconds[number + k] * factor))
    known = latest.levels[: means.size]
    own, measured = seconds[:number] * factor, seconds[number:] * factor
    return corrected(own, counts, measured, known, means, runs, squares)


@compiled
def believe(latest, fit, counts, size):  # type: ignore[no-untyped-def]
    """Return what the fit to all runs says of a job of a size, as the runs correct it."""
    asked = asked_of(latest, fit, counts, size)
    return as_runs_correct(latest, counts, size, asked, asked[1])


@compiled
def believe_in_focus(latest, fit, foci, counts, size, seen, half_width):  # type: ignore[no-untyped-def]
    """Return what fits at the job's own times say, as the runs correct it."""
    asked = asked_of(latest, fit, counts, size)
    fit_foci(latest, fit, foci, foci_of(asked[1]), seen, half_width)
    seconds = focused(latest, fit, foci, asked)
    return as_runs_correct(latest, counts, size, asked, seconds)


@compiled
def account(latest, fit, nprocs, size) -> tuple[int, float]:  # type: ignore[no-untyped-def]
    """Return how many runs are kept at a count, and their mean brought to a size; NaN without."""
    compare(latest, fit)
    table, places, _, span = latest
    place, number, total = place_of(latest.levels[: span[LEVELS]], nprocs), 0, 0.0
    if place >= 0:
        for i in range(span[BEGIN], span[END]):
            if places[i] == place:
                number += 1
                total += table[RATIO, i]
    if number == 0:
        return 0, np.nan
    return number, np.exp(total / number) * complete_seconds(fit, nprocs, size)


WAYS = tuple(SPLITS)[:1]
"""The simulator splits times by the slowest process alone."""

Regression = LogLogRegression | FocusedRegression

_believe, _account = direct(believe), direct(account)
_believe_in_focus = direct(believe_in_focus)


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
        self._latest = latest_runs()
        self._counts: set[int] = set()
        self._fitted_at = 0
        self._fit: SizedFit | None = None
        self._failed = True
        self._grade = ""
        self._estimator: Regression | None = None
        self._beyond: dict[int, tuple[str, str]] = {}
        self._kind: tuple[object, ...] = ()
        self._foci = foci()
        self.number = 0

    def add(self, run: Observation) -> bool:
        """Add a run; True if what was last predicted no longer stands."""
        more, nprocs = run.more, run.nprocs
        computation, communication = more.get("computation", nan), more.get("communication", nan)
        row = nprocs, run.runtime, run.size, computation, communication
        self._latest = with_run(self._latest, row)
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
            asked = asked_of(self._latest, self._fit, counts, size)
            self._fit_foci(set(foci_of(asked[1]).tolist()))
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
        if not limits.item(LEAST) <= nprocs <= limits.item(MOST):
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
        failed, fit, grade = renewed(self._latest, *self._choice)
        self._fit, self._failed, self._grade = fit, failed != DETERMINED, GRADES[grade]
        kind = len(fit.known), len(fit.splits), fit.limits.item(BY_PROPORTION)
        if kind != self._kind or self.number > KEPT_RUNS:
            self._latest.span[FOCI] = 0
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
        needed = self._latest.span.item(FOCI) + asked + len(self._counts)
        if needed > self._foci.centres.size:
            self._foci = Foci(*(with_room(one, 2 * needed) for one in self._foci))

    def _fit_foci(self, wanted: set[int]) -> None:
        """Fit at focal times as the estimator does, where they have no fit yet that stands."""
        span, seen = self._latest.span, self._fitted_at
        for centre in wanted:
            row = focus_row(self._foci, span.item(FOCI), centre)
            is_new = row == span[FOCI]
            if is_new:
                self._foci.centres[row] = centre
                span[FOCI] += 1
            if is_new or self._foci.parts[row, 1] != seen:
                found = self._fitted_focus(centre / FOCUS_STEPS)
                put_focus(self._foci, row, *found)
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
