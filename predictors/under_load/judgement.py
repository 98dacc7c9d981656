"""How good a rational polynomial is: cross-validation over sizes, ranges, and remarks.

Folds are blocks of neighbouring sizes, which tests extrapolation too.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd

from predictors.base import BoolArray, FloatArray, Remark
from predictors.least_squares import Method, Weights, lengths_of, solve_scaled, weighted
from predictors.remarks import SEVERITY, ignored_remarks
from predictors.under_load.complexity import RationalForm
from predictors.under_load.load_aware import LoadedRuns, Targets

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


def solve_folds(
    columns: FloatArray,
    seconds: FloatArray,
    folds: Sequence[BoolArray],
    method: Method,
    weights: Weights,
) -> list[FloatArray]:
    """Return the coefficients without the rows that each fold holds out, shape (p,) each."""
    rows, target = weighted(columns, seconds, weights)
    kept = ~np.array(folds)
    lengths = lengths_of((rows * rows) * kept[:, :, None])
    return [
        solve_scaled(rows[own] / length, length, target[own], method)
        for own, length in zip(kept, lengths, strict=True)
    ]


def score_forms(
    forms: Sequence[RationalForm],
    runs: LoadedRuns,
    folds: Sequence[BoolArray],
    method: Method,
    weights: Weights,
) -> FloatArray:
    """Return |ln(predicted / seconds)| of every held-out row, fold after fold, for each form."""
    seconds, held = runs.runtime, [fold.nonzero()[0] for fold in folds]
    taken, floor = seconds[np.concatenate(held)], 1e-3 * seconds.min()
    errors, rows = [], {}
    for form in forms:  # those of the same terms differ in what they are multiplied by
        parts = form.parts()
        if parts not in rows:
            rows[parts] = form.rows(runs.size)
        columns = form.columns(runs, rows[parts])
        found = zip(held, solve_folds(columns, seconds, folds, method, weights), strict=True)
        predicted = np.concatenate([columns.take(own, axis=0) @ each for own, each in found])
        errors.append(np.abs(np.log(np.maximum(predicted, floor) / taken)))
    return np.array(errors)


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
    best = int(errors.mean(axis=1).argmin())
    excess = errors - errors[best]
    means = errors.mean(axis=1)
    margin = np.maximum(excess.std(axis=1) / np.sqrt(errors.shape[1]), 0.05 * means[best])
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


def judge(
    runs: LoadedRuns,
    fitted: FloatArray,
    wanted: Targets,
    raw: FloatArray,
    known: BoolArray,
    few: bool,
    coefficients: int,
    rank: int,
) -> list[Remark]:
    """Return the remarks on the targets `wanted`, the gravest first.

    Parameters
    ----------
    runs : LoadedRuns
        The training runs.
    fitted : numpy.ndarray
        What the model says of them.
    wanted : Targets
    raw : numpy.ndarray
        What the polynomial says of the targets, perhaps negative.
    known : numpy.ndarray of bool
        Which targets the data determine.
    few : bool
        Whether there were too few runs for all terms.
    coefficients, rank : int
        How many the model has, and how many directions the data fix.
    """
    remarks = [
        *_undetermined(runs, wanted, known, coefficients, rank),
        *_poor(runs, fitted, raw, known, few),
        *_outside(runs, wanted),
        *ignored_remarks(runs.ignored),
    ]
    return sorted(remarks, key=lambda remark: -SEVERITY[remark.grade])


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
