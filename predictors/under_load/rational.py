"""Rational polynomials: runtimes on a shared machine from size, available CPU and bandwidth.

Cross-validation chooses a form and gives ranges; folds are blocks of neighbouring sizes, which
tests extrapolation too.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from predictors.base import BoolArray, Estimator, FloatArray, Remark, asked_of, run_table
from predictors.errors import BETWEEN_0_AND_1, PredictorError, UndeterminedError, check_choice
from predictors.least_squares import (
    LinearFit,
    Method,
    Weights,
    check_method,
    fit_linear,
    lengths_of,
    solve_scaled,
    weighted,
)
from predictors.remarks import SEVERITY, ignored_remarks, refuse_unusable
from predictors.under_load.complexity import GROWTHS, RationalForm, Term, complexity_choices
from predictors.under_load.load_aware import (
    LOAD_FORMS,
    LoadedRuns,
    LoadForm,
    Targets,
    loaded_runs,
    targets,
)

Solve = Callable[[FloatArray, FloatArray, Sequence[BoolArray]], Sequence[FloatArray]]
BLOCKS = 5
SAMPLE_EVERY = 120.0
FAR = 2.0
POOR_FIT = 0.2


def folds_by_size(values: FloatArray, blocks: int = BLOCKS) -> list[BoolArray]:
    """Return the rows to hold out in each fold: blocks of neighbouring values.

    Equal values stay together, so that a held-out size was never seen; the
    outer blocks are extrapolations.

    Examples
    --------
    >>> [fold.nonzero()[0].tolist() for fold in folds_by_size(np.array([1.0, 3.0, 1.0, 2.0]))]
    [[0, 2], [3], [1]]
    >>> folds_by_size(np.ones(4))
    []
    """
    distinct, which = np.unique(values, return_inverse=True)
    blocks = min(blocks, len(distinct))
    if blocks < 2:
        return []
    sizes = [len(block) for block in np.array_split(distinct, blocks)]
    own = np.repeat(np.arange(blocks), sizes)[which]
    return [own == block for block in range(blocks)]


def score_table(candidates: list[RationalForm], errors: FloatArray, picked: int) -> pd.DataFrame:
    """Return the alternatives that were compared, a row each."""
    rows = [
        {
            "init": str(form.init[0]),
            "computation": str(form.computation[0]),
            "communication": str(form.communication[0]),
            "messages": str(form.messages[0]) if form.messages else "",
            "growth": form.growth,
            "coefficients": len(form),
            "error": float(np.expm1(error.mean())),
            "chosen": at == picked,
        }
        for at, (form, error) in enumerate(zip(candidates, errors, strict=True))
    ]
    return pd.DataFrame(rows)


def simplest_good(errors: FloatArray, sizes: Sequence[int]) -> int:
    """Return the candidate with the fewest coefficients not clearly worse than the best.

    Not clearly worse: its mean excess over the best is within one standard
    error of the row by row differences, or 5 % of the best's own mean error;
    among equals the smaller error wins.

    Parameters
    ----------
    errors : numpy.ndarray, shape (candidates, rows)
    sizes : sequence of int
        Coefficients of each candidate.
    """
    means = errors.mean(axis=1)
    excess = errors - errors[means.argmin()]
    margin = np.maximum(excess.std(axis=1) / np.sqrt(errors.shape[1]), 0.05 * means.min())
    allowed = excess.mean(axis=1) <= margin
    order = sorted(np.flatnonzero(allowed).tolist(), key=lambda at: (sizes[at], means[at], at))
    return int(order[0])


def range_from_folds(
    columns: FloatArray,
    seconds: FloatArray,
    sizes: FloatArray,
    solve: Solve,
    wanted: FloatArray,
    answer: FloatArray,
    level: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the jackknife+ range of ratios around `answer`, from blocks of sizes.

    Parameters
    ----------
    columns, seconds, sizes : numpy.ndarray
        Design matrix, runtimes and problem sizes of the runs.
    solve : callable
        Columns, seconds and the rows that each fold leaves out to the coefficients of each.
    wanted : numpy.ndarray, shape (targets, coefficients)
    answer : numpy.ndarray, shape (targets,)
        The predictions, which the range always contains.
    level : float
        Share of runs to hold.
    """
    folds = folds_by_size(sizes, 2 * BLOCKS)
    if not folds:
        return answer / 2, answer * 2
    floor = 1e-3 * seconds.min()
    spread = []
    for held, coefficients in zip(folds, solve(columns, seconds, folds), strict=True):
        there = np.maximum(wanted @ coefficients, floor)
        ratios = seconds[held] / np.maximum(columns[held] @ coefficients, floor)
        spread.append(there[None, :] * ratios[:, None])
    outcomes = np.concatenate(spread)
    tail = (1 - level) / 2
    low = np.quantile(outcomes, tail, axis=0, method="lower")
    high = np.quantile(outcomes, 1 - tail, axis=0, method="higher")
    return np.minimum(low, answer), np.maximum(high, answer)


def conditions_of(runs: LoadedRuns, wanted: Targets) -> list[tuple[str, FloatArray, FloatArray]]:
    """Return the count and each load by name, as the runs met it and as it is asked for."""
    return [
        ("the processor count", runs.nprocs, wanted.nprocs),
        ("available CPU", runs.cpu, wanted.cpu),
        ("available bandwidth", runs.bandwidth, wanted.bandwidth),
        ("latency", runs.latency, wanted.latency),
    ]


def _undetermined(
    runs: LoadedRuns, wanted: Targets, known: BoolArray, coefficients: int, rank: int
) -> Iterator[Remark]:
    """Yield what the data do not determine, count by count."""
    for count in np.unique(wanted.nprocs[~known]):
        asked = ~known & (wanted.nprocs == count)
        reasons = [
            f"{name} was {seen[0]:g} in every run"
            for name, seen, target in conditions_of(runs, wanted)
            if np.ptp(seen) == 0 and not np.allclose(target[asked], seen[0])
        ]
        why = " and ".join(reasons) or "the sizes and loads seen are too much alike"
        text = (
            f"undetermined on {count:g} processors: {why} "
            f"({rank} of {coefficients} coefficients are fixed by {len(runs)} runs)"
        )
        yield Remark("unusable", "undetermined", text, int(count), float(count))
    if rank < coefficients and known.all():
        text = (
            f"the runs fix {rank} of {coefficients} coefficients; "
            "answers hold only at loads and counts like those seen"
        )
        yield Remark("note", "rank", text)


def _poor(
    runs: LoadedRuns, fitted: FloatArray, raw: FloatArray, known: BoolArray, few: bool
) -> Iterator[Remark]:
    """Yield where the model is poor: below zero, of few runs, off its own, or of single samples."""
    wrong = known & ~(raw > 0)
    if wrong.any():
        text = (
            f"the polynomial gives {raw[wrong].min():.4g} s at {int(wrong.sum())} of {len(raw)} "
            "targets; use method='nnls', which cannot fall below zero"
        )
        yield Remark("unusable", "negative", text)
    if few:
        text = f"{len(runs)} runs are too few for all terms: the leading ones alone are fitted"
        yield Remark("warning", "few_observations", text)
    error = float(np.mean(np.abs(fitted - runs.runtime) / runs.runtime))
    if error > POOR_FIT:
        text = f"the model misses its own training runs by {100 * error:.0f} % on average"
        yield Remark("warning", "fitting_error", text)
    single = np.where(runs.samples > 0, runs.samples <= 1, runs.runtime <= SAMPLE_EVERY)
    if single.mean() > 0.5 and (raw > 2 * SAMPLE_EVERY).any():
        text = (
            f"{100 * single.mean():.0f} % of the training runs were too short for more than one "
            "sample of load; longer runs will meet changes that these did not show"
        )
        yield Remark("warning", "short_runs", text)


def _outside(runs: LoadedRuns, wanted: Targets) -> Iterator[Remark]:
    """Yield which targets lie outside what the runs met."""
    largest = runs.size.max()
    factor = float(wanted.size.max() / largest)
    if factor > 1:
        text = f"size {wanted.size.max():g} is {factor:.2f} times the largest seen, {largest:g}"
        yield Remark("warning" if factor > FAR else "note", "larger_size", text)
    for name, seen, asked in conditions_of(runs, wanted)[1:]:
        if asked.min() < 0.8 * seen.min() or asked.max() > 1.25 * seen.max():
            text = (
                f"{name} of {asked.min():.2f} to {asked.max():.2f} lies outside "
                f"what the runs met, {seen.min():.2f} to {seen.max():.2f}"
            )
            yield Remark("warning", "load_outside", text)
    if not (runs.nprocs.min() <= wanted.nprocs.min() and wanted.nprocs.max() <= runs.nprocs.max()):
        count = int(wanted.nprocs.max())
        text = (
            f"processor counts up to {count} lie outside those measured, "
            f"{runs.nprocs.min():g} to {runs.nprocs.max():g}"
        )
        yield Remark("warning", "other_count", text, count)
    if not wanted.load_given:
        text = "no load was given: the machine is taken as idle"
        yield Remark("warning", "idle_assumed", text)


ROWS_PER_COEFFICIENT = 2
MOST_SIZES = 1000
"""Single sizes at which terms are remembered."""


@dataclass(eq=False, repr=False)
class RationalPolynomial(Estimator):
    """t = init(z) + computation(z) / cpu + communication(z) / bandwidth, for size z under load.

    With `messages`, plus messages(z) · latency, for the largest latency of the links.

    Linear in its coefficients, fitted by non-negative least squares on
    normalised columns. Each part is known by its complexity alone; where the
    data hold more than one processor count n, computation is shared by n and
    communication grows as one of 1/n, 1, log2 n, n, chosen by cross-validation.

    Parameters
    ----------
    init, computation, communication : int, str or list of str
        Complexities in the size, as `complexity_terms` reads them: a degree, an
        order such as ``"n log n"``, a list of exactly the terms wanted.
        ``"n | n log n | n^2"`` and ``"auto"`` leave the choice to
        cross-validation. ``init=None`` takes the complexity of `computation`,
        as the paper's equation 5 does.
    method : {"nnls", "ols"}
        Non-negative, or the paper's plain least squares.
    weights : {"absolute", "relative"}
        Whether errors count in seconds or relative to the runtime.
    load : {"effective", "min_avg_avail", "min_avail"}
        How arrays of samples in the load columns are reduced: the average over
        the run of the smallest at each sample, the smallest average over the run
        (the paper's), or the smallest value at its start.
    growth : {"auto", "1/n", "1", "log2 n", "n"}
        How communication grows with the processor count.
    messages : int, str or list of str, optional
        Complexity of the number of messages, each of which waits for the largest
        latency of the links: runs then have a column ``latency``. None leaves it
        out, as the paper does in its experiments.

    Attributes
    ----------
    coefficients_ : pandas.DataFrame
        Columns ``part``, ``term``, ``value`` (seconds at the largest size seen,
        on an idle machine; NaN where the data do not determine it).
    rank_ : int
        Of the normalised columns.
    form_ : RationalForm
        The columns in use.
    scores_ : pandas.DataFrame or None
        The alternatives that cross-validation compared.

    Raises
    ------
    PredictorError
        From the constructor for an unknown value, from `fit` for missing or
        impossible observations, from `predict` for impossible inputs.
    UndeterminedError
        From ``predict(strict=True)`` for what the observations do not determine.

    References
    ----------
    Yagnik, Sanjay & Vadhiyar, "Performance modeling based on multidimensional
    surface learning for performance predictions of parallel applications in
    non-dedicated environments", equations 1 to 5, and section 2.1 on latency.

    Examples
    --------
    >>> size = np.tile([1000.0, 2000.0, 3000.0, 4000.0], 12)
    >>> cpu, bandwidth = np.repeat([1.0, 0.5, 0.25], 16), np.resize([1.0, 0.8, 0.1], 48)
    >>> runs = pd.DataFrame({"nprocs": 4, "size": size, "available_cpu": cpu,
    ...     "available_bandwidth": bandwidth,
    ...     "runtime": 5 + (size / 1000) ** 3 / cpu + (size / 1000) ** 2 / bandwidth})
    >>> model = RationalPolynomial(3, 3, 2).fit(runs)
    >>> float(model.predict(4, size=8000, available_cpu=0.5, available_bandwidth=1).round(3))
    1093.0
    """

    init: object
    computation: object
    communication: object
    method: Method = "nnls"
    weights: Weights = "absolute"
    load: LoadForm = "effective"
    growth: str = "auto"
    messages: object = None

    def check_parameters(self) -> None:
        """Refuse complexities and choices that are none; see `Estimator`."""
        check_method(self.method, self.weights)
        check_choice(LOAD_FORMS, load=self.load)
        check_choice(("auto", *GROWTHS), growth=self.growth)
        for part in ("computation", "communication", "init", "messages"):
            if getattr(self, part) is not None:
                _choices(part, getattr(self, part))

    def fit(self, observations: pd.DataFrame, runtime: ArrayLike | None = None) -> Self:
        """Learn from finished runs, a row a run.

        Parameters
        ----------
        observations : pandas.DataFrame
            Columns ``nprocs``, ``runtime`` (seconds), ``size``, ``available_cpu``
            and ``available_bandwidth`` (fractions in (0, 1], or arrays of
            samples, shape (samples, places)). With `runtime` beside it, without that column.
        """
        self.check_parameters()
        table = run_table(self, observations, runtime)
        return self.fit_runs(loaded_runs(table, self.load, latency=self.messages is not None))

    def fit_runs(self, runs: LoadedRuns) -> Self:
        """Learn from finished runs that were read and checked before."""
        self.runs_: LoadedRuns = runs
        self._compared: tuple[list[RationalForm], FloatArray, int] | None = None
        self._at_sizes: dict[float, FloatArray] = {}
        self.form_: RationalForm = self._choose(runs)
        self.few_: bool = len(runs) < ROWS_PER_COEFFICIENT * len(self.form_)
        if self.few_:
            self.form_ = self.form_.leading()
        columns = self.form_.columns(runs)
        self.fit_: LinearFit = fit_linear(columns, runs.runtime, self.method, self.weights)
        return self

    def parts_at(self, nprocs: FloatArray, size: float | FloatArray) -> FloatArray:
        """Return what no load slows down, computation and communication, in seconds, shape (3, n).

        They are those of an idle machine: a runtime is the first, plus the
        second over the available CPU, plus the third over the bandwidth.

        Parameters
        ----------
        nprocs : numpy.ndarray of float, shape (n,)
        size : float, or numpy.ndarray of float, shape (n,)
        """
        form = self.form_
        share, exchange = form.spread(nprocs)
        factors, found = (1.0, share, exchange, exchange), np.zeros((4, nprocs.size))
        coefficients, terms = self._fitted().coefficients.tolist(), self._scaled(size)
        for place, term, value in zip(form.part.tolist(), terms, coefficients, strict=True):
            found[place] += term * factors[place] * value
        found[0] += found[3]
        return found[:3]

    def _scaled(self, size: float | FloatArray) -> FloatArray:
        """Return every term at some sizes, those at single sizes from what was asked before."""
        if not isinstance(size, float):
            return self.form_.rows(np.atleast_1d(np.asarray(size, float)))
        if size not in self._at_sizes:
            if len(self._at_sizes) == MOST_SIZES:
                self._at_sizes.clear()
            self._at_sizes[size] = self.form_.rows(np.array([size]))
        return self._at_sizes[size]

    def _candidates(self, runs: LoadedRuns) -> list[RationalForm]:
        """Return every form that the complexities and the processor counts allow.

        Of several, only those that stay determined when one size is held out.
        """
        growths: list[str | None] = [self.growth]
        if self.growth == "auto":
            growths = list(GROWTHS) if np.ptp(runs.nprocs) > 0 else [None]
        largest = float(runs.size.max())
        forms = [
            RationalForm(comp if init is None else init, comp, comm, growth, largest, messages)
            for init, comp, comm, growth, messages in product(
                (None,) if self.init is None else _choices("init", self.init),
                _choices("computation", self.computation),
                _choices("communication", self.communication),
                growths,
                ((),) if self.messages is None else _choices("messages", self.messages),
            )
        ]
        testable = len(np.unique(runs.size)) - 1
        return [form for form in forms if form.longest() <= testable] or forms

    def _choose(self, runs: LoadedRuns) -> RationalForm:
        """Pick a form by cross-validation over blocks of sizes and of counts."""
        candidates = self._candidates(runs)
        if len(candidates) == 1:
            return candidates[0]
        folds = folds_by_size(runs.size) + folds_by_size(runs.nprocs)
        if not folds:
            return min(candidates, key=len)
        errors = self._errors(candidates, folds)
        picked = simplest_good(errors, [len(form) for form in candidates])
        self._compared = candidates, errors, picked
        return candidates[picked]

    def _errors(self, forms: list[RationalForm], folds: list[BoolArray]) -> FloatArray:
        """Return |ln(predicted / seconds)| of every held-out row, fold after fold, for each."""
        runs, held = self.runs_, [fold.nonzero()[0] for fold in folds]
        taken, floor = runs.runtime[np.concatenate(held)], 1e-3 * runs.runtime.min()
        errors, rows = [], {}
        for form in forms:  # those of the same terms differ in what they are multiplied by
            parts = form.parts()
            if parts not in rows:
                rows[parts] = form.rows(runs.size)
            columns = form.columns(runs, rows[parts])
            found = zip(held, self._solve_folds(columns, runs.runtime, folds), strict=True)
            predicted = np.concatenate([columns.take(own, axis=0) @ each for own, each in found])
            errors.append(np.abs(np.log(np.maximum(predicted, floor) / taken)))
        return np.array(errors)

    def _solve_folds(
        self, columns: FloatArray, seconds: FloatArray, folds: Sequence[BoolArray]
    ) -> list[FloatArray]:
        """Return the coefficients without the rows that each fold holds out, shape (p,) each."""
        rows, target = weighted(columns, seconds, self.weights)
        kept = ~np.array(folds)
        lengths = lengths_of((rows * rows) * kept[:, :, None])
        return [
            solve_scaled(rows[own] / length, length, target[own], self.method)
            for own, length in zip(kept, lengths, strict=True)
        ]

    @property
    def scores_(self) -> pd.DataFrame | None:
        """The alternatives that cross-validation compared, a row each; None if it did not."""
        self._fitted()
        return None if self._compared is None else score_table(*self._compared)

    @property
    def rank_(self) -> int:
        """Rank of the normalised columns."""
        return self._fitted().rank

    @property
    def coefficients_(self) -> pd.DataFrame:
        """One row a coefficient; NaN where the data do not determine it."""
        fit = self._fitted()
        frame = pd.DataFrame(self.form_.names(), columns=["part", "term"])
        frame["value"] = np.where(fit.determined, fit.coefficients, np.nan)
        return frame

    def _fitted(self) -> LinearFit:
        self.check_fitted("fit_")
        return self.fit_

    def _targets(self, nprocs: ArrayLike | pd.DataFrame, inputs: dict[str, ArrayLike]) -> Targets:
        self.check_fitted("fit_")
        load = ("available_cpu", "available_bandwidth", *(["latency"] if self.messages else []))
        nprocs, inputs = asked_of(nprocs, inputs, ("size", *load))
        return targets(nprocs, inputs, latency=self.messages is not None)

    def _raw(self, wanted: Targets) -> tuple[FloatArray, BoolArray]:
        """Return the values of the polynomial, and which of them the data determine."""
        columns = self.form_.columns(wanted)
        known = self.fit_.answers(columns)
        for _, seen, asked in conditions_of(self.runs_, wanted):
            if np.ptp(seen) == 0:
                known &= np.isclose(asked, seen[0], rtol=1e-9)
        return columns @ self.fit_.coefficients, known

    def predict(
        self, nprocs: ArrayLike | pd.DataFrame, *, strict: bool = False, **inputs: ArrayLike
    ) -> FloatArray:
        """Return runtimes in seconds.

        Parameters
        ----------
        nprocs : array_like
        strict : bool
            Refuse what `reliability` grades ``unusable``.
        **inputs : array_like
            ``size``; ``available_cpu``, ``available_bandwidth`` and, with `messages`,
            ``latency`` as forecast for the run (an idle machine where not given).

        Raises
        ------
        UndeterminedError
            With `strict`, if the observations do not determine an answer.
        """
        wanted = self._targets(nprocs, inputs)
        raw, known = self._raw(wanted)
        if strict and not (known & (raw > 0)).all():
            refuse_unusable(self._judge(wanted, raw, known))
        return self._floored(raw).reshape(wanted.shape)

    def _floored(self, raw: FloatArray) -> FloatArray:
        """Keep answers positive: no less than a thousandth of the shortest run seen."""
        return np.asarray(np.maximum(raw, 1e-3 * self.runs_.runtime.min()), float)

    def predict_range(
        self, nprocs: ArrayLike, level: float = 0.8, **inputs: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends of a range that holds about `level` of such runs.

        The model is refitted without each block of sizes; the range is that of
        these models' answers times the errors they made on the runs left out
        (the jackknife+ on ratios), so it widens where the answer hangs on a few
        runs. Errors of the load forecast are not in it.

        References
        ----------
        Barber, Candès, Ramdas & Tibshirani, "Predictive inference with the
        jackknife+", Annals of Statistics 49, 2021.
        """
        BETWEEN_0_AND_1.check(level=level)
        wanted = self._targets(nprocs, inputs)
        columns = self.form_.columns(wanted)
        answer = self._floored(columns @ self.fit_.coefficients)
        low, high = range_from_folds(
            self.form_.columns(self.runs_), self.runs_.runtime, self.runs_.size,
            self._solve_folds, columns, answer, level,
        )  # fmt: skip
        return low.reshape(wanted.shape), high.reshape(wanted.shape)

    def reliability(self, nprocs: ArrayLike, **inputs: ArrayLike) -> list[Remark]:
        """Say how far to trust the predictions; records of grade, code, text, measure_at."""
        wanted = self._targets(nprocs, inputs)
        return self._judge(wanted, *self._raw(wanted))

    def _judge(self, wanted: Targets, raw: FloatArray, known: BoolArray) -> list[Remark]:
        """Return the remarks on what is asked, the gravest first.

        Parameters
        ----------
        wanted : Targets
        raw : numpy.ndarray
            What the polynomial says of the targets, perhaps negative.
        known : numpy.ndarray of bool
            Which targets the data determine.
        """
        runs = self.runs_
        fitted = self._floored(self.form_.columns(runs) @ self.fit_.coefficients)
        remarks = [
            *_undetermined(runs, wanted, known, len(self.form_), self.rank_),
            *_poor(runs, fitted, raw, known, self.few_),
            *_outside(runs, wanted),
            *ignored_remarks(runs.ignored),
        ]
        return sorted(remarks, key=lambda remark: -SEVERITY[remark.grade])

    def solve_size(self, seconds: ArrayLike, nprocs: ArrayLike, **load: ArrayLike) -> FloatArray:
        """Return the size that takes so many seconds, by bisection.

        Raises
        ------
        PredictorError
            If no size up to 1,000 times the largest seen takes that long, or the smallest
            already takes longer; `UndeterminedError` where all runs are on one other count.
        """
        fit = self._fitted()
        wanted, counts = np.broadcast_arrays(np.asarray(seconds, float), np.asarray(nprocs, float))
        seen = self.runs_.nprocs
        if np.ptp(seen) == 0 and not np.allclose(counts, seen[0]):
            raise UndeterminedError(f"every run was on {seen[0]:g} processors; others are unknown")
        low = np.full(wanted.shape, max(1.0, 1e-3 * self.runs_.size.min()))
        high = np.full(wanted.shape, 1e3 * self.form_.largest)

        def longer(size: FloatArray) -> BoolArray:
            asked = self._targets(counts, {"size": size, **load})
            columns = self.form_.columns(asked)
            return (columns @ fit.coefficients).reshape(wanted.shape) > wanted

        if longer(low).any() or not longer(high).all():
            raise PredictorError(
                f"no size from {low.flat[0]:g} to {high.flat[0]:g} takes "
                f"{wanted.tolist()} s under this load"
            )
        for _ in range(60):
            middle = np.sqrt(low * high)
            above = longer(middle)
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return np.asarray(np.sqrt(low * high), float)


def _choices(part: str, written: object) -> tuple[tuple[Term, ...], ...]:
    """Return the alternatives of a part's complexity; refusals name the part."""
    try:
        return complexity_choices(written)
    except PredictorError as error:
        raise PredictorError(f"{part}={written}: {error}") from error
