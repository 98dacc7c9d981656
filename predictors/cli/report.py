"""What a user with a few runs wants to know, such as which count to use, of any fitted model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from operator import attrgetter
from typing import Any

import numpy as np

from predictors.advice import SURE, NextRun, feasible, measure_next
from predictors.base import FloatArray, Predictor, Remark
from predictors.observations import observed_curve
from predictors.remarks import CONTRADICTED, FAR_APART, SEVERITY, UNUSABLE, measure_between, worse

LEAST_EFFICIENCY = 0.5
"""Of what is advised where processors count, too."""
SAME = 0.03
"""Share by which runtimes or costs differ that are told apart."""
FASTEST = "fastest"
EFFICIENT = f"fastest at an efficiency of at least {LEAST_EFFICIENCY:g}"
CHEAPEST = "cheapest in processor-seconds"


def number(value: float) -> str:
    """Return a time or cost as a person writes it.

    Examples
    --------
    >>> number(9.2701), number(24822.4)
    ('9.27', '24,822')
    """
    return f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"


@dataclass(frozen=True)
class Predicted:
    """A prediction.

    Attributes
    ----------
    nprocs : float
    runtime, low, high : float
        Seconds; the ends of the range.
    speedup, efficiency : float
    grade : str
        ``good``, ``note``, ``warning`` or ``unusable``.
    measured : bool
        Whether there are runs on this count.
    measured_runtime : float or None
        Their mean without outliers, seconds.
    """

    nprocs: float
    runtime: float
    low: float
    high: float
    speedup: float
    efficiency: float
    grade: str
    measured: bool = False
    measured_runtime: float | None = None

    @property
    def seconds(self) -> float:
        """Return the measured runtime where there is one, else the predicted one."""
        return self.runtime if self.measured_runtime is None else self.measured_runtime

    @property
    def cost(self) -> float:
        """Processor-seconds."""
        return self.nprocs * self.seconds


@dataclass(frozen=True)
class Use:
    """A count to use, and what for.

    Attributes
    ----------
    criterion : str
        By which it is the best of the counts to choose from.
    nprocs, runtime : float
        The runtime, seconds, is measured where that was done.
    measured : bool
    low, high, grade
        Of the prediction.
    """

    criterion: str
    nprocs: float
    runtime: float
    measured: bool
    low: float
    high: float
    grade: str

    @property
    def sentence(self) -> str:
        """What to use; a predicted time with its range and grade."""
        told = "measured"
        if not self.measured:
            grade = "" if self.grade == "good" else f", {self.grade}"
            told = f"predicted, {number(self.low)} to {number(self.high)} s{grade}"
        time = number(self.runtime)
        return f"{self.criterion.capitalize()}: use {self.nprocs:g} ({time} s, {told})."


def orderable(observed: FloatArray, most: float) -> FloatArray:
    """Return counts that somebody would ask a machine for.

    They are the measured ones, these doubled, multiples of the largest, and powers of two, none
    below the smallest that was measured.

    Examples
    --------
    >>> orderable(np.array([12.0, 36.0]), 80.0).tolist()
    [12.0, 16.0, 24.0, 32.0, 36.0, 48.0, 64.0, 72.0]
    """
    doubled = np.outer(np.append(observed, 1.0), 2.0 ** np.arange(np.log2(max(most, 1.0)) + 1.0))
    multiples = np.arange(1.0, most / observed.max() + 1.0) * observed.max()
    counts = np.unique(np.append(doubled, multiples))
    return np.asarray(counts[(counts >= observed.min()) & (counts <= most)], float)


def best_uses(rows: Sequence[Predicted], one: float) -> tuple[Use, ...]:
    """Return the best count by each criterion, those alike in one.

    A count that was measured is never left for one that was measured slower or dearer; one that
    is only believed in must be better than the best measured by more than `SAME`.
    """
    efficient = [row for row in rows if one >= LEAST_EFFICIENCY * row.cost]
    best = {
        FASTEST: _least(rows, attrgetter("seconds")),
        EFFICIENT: _least(efficient, attrgetter("seconds")),
        CHEAPEST: _least(rows, attrgetter("cost")),
    }
    criteria: dict[Predicted, list[str]] = {}
    for criterion, row in best.items():
        if row is not None:
            criteria.setdefault(row, []).append(criterion)
    return tuple(
        Use(
            " and ".join(words), row.nprocs, row.seconds, row.measured, row.low, row.high, row.grade
        )
        for row, words in criteria.items()
    )


def _least(rows: Sequence[Predicted], figure: Callable[[Predicted], float]) -> Predicted | None:
    """Return the row of the least figure, the least count of those believed in that are alike."""
    measured = [row for row in rows if row.measured]
    believed = [row for row in rows if not row.measured]
    best = min(measured, key=lambda row: (figure(row), row.nprocs), default=None)
    least = min((figure(row) for row in believed), default=np.inf)
    if best is not None and least * (1.0 + SAME) >= figure(best):
        return best
    alike = (row for row in believed if figure(row) <= least * (1.0 + SAME))
    return min(alike, key=lambda row: row.nprocs, default=best)


def rival_of(uses: Sequence[Use], rows: Sequence[Predicted]) -> Predicted | None:
    """Return which count between measured ones may be faster than the fastest of these.

    None if what is advised as fastest was not measured.
    """
    fastest = next((use for use in uses if FASTEST in use.criterion.split(" and ")), None)
    if fastest is None or not fastest.measured:
        return None
    most = max(row.nprocs for row in rows if row.measured)
    between = (row for row in rows if not row.measured and row.nprocs < most)
    may = (row for row in between if row.low * (1.0 + SAME) < fastest.runtime)
    return min(may, key=attrgetter("seconds"), default=None)


def advised(uses: Sequence[Use], means: Mapping[float, float]) -> list[str]:
    """Say what to use, a sentence for each criterion, or why nothing is advised."""
    if uses:
        return [use.sentence for use in uses]
    if len(means) > 1:
        return ["No count to choose from was measured or can be predicted; --counts names others."]
    return [
        f"Runs on {count:g} alone ({number(seconds)} s, {number(count * seconds)} "
        "processor-seconds) say nothing about other counts."
        for count, seconds in means.items()
    ]


EFFICIENCIES = (0.8, LEAST_EFFICIENCY)
WIDE = ((2.0, "warning"), (1.5, "note"))
"""Half-widths of ranges, as factors either way, beyond which a prediction is trusted less.

A method that grades its ranges itself says so by `grades_ranges`.
"""
NO_RUN = "No run is proposed: no count is known to be worth measuring; --counts offers others."
_PARAMETERS = ("A", "sigma", "floor", "serial", "parallel", "scale", "contention", "coherency")
"""Fitted attributes, without the closing underscore, that are reported where there."""


@dataclass(frozen=True)
class Question:
    """What is asked of a curve.

    Attributes
    ----------
    counts : numpy.ndarray of float or None
        Counts to choose from and to measure; None for those that `orderable` names to choose
        from, powers of two and targets to measure.
    targets : numpy.ndarray of float or None
        Counts to predict; None for the measured ones and `counts`, else powers of two around
        them.
    most : float or None
        The largest count to be had.
    level : float
        Of the ranges.
    free : bool
        Whether runs to measure next cost nothing.
    known : bool
        Whether the runs are of the problem asked about.
    """

    counts: FloatArray | None = None
    targets: FloatArray | None = None
    most: float | None = None
    level: float = 0.8
    free: bool = False
    known: bool = True


@dataclass(frozen=True)
class CurveReport:
    """The answer to the measurements of a curve.

    Attributes
    ----------
    answer : str
        In sentences: whether runtimes rise, what to expect at the targets, what to use by
        which criterion, what to measure next.
    method : str
    observations : int
    rows : tuple of Predicted
        Of the targets.
    measured : tuple of Predicted
    advised : tuple of Predicted
        Of counts to use or to measure next that are neither targets nor measured.
    serial_time : float
        Seconds on one processor, to which all speedups refer.
    serial_measured : bool
        Whether it was measured.
    parameters : dict
        What the method fitted, by name.
    uses : tuple of Use
        The count to use by each criterion; empty where nothing but one count can be judged.
    use : float or None
        The fastest of an efficiency of at least `LEAST_EFFICIENCY`, else the first of them.
    use_runtime : float or None
        Seconds there, measured or predicted.
    knee : float or None
        Count with the best balance of speedup and efficiency, S(n)^2/n; None, as for every
        efficiency, where the whole curve is unusable.
    fastest : float
        Count with the shortest runtime of those considered.
    at_efficiency : dict
        Largest count for each efficiency in `EFFICIENCIES`.
    declines_after : float or None
        The fastest measured count, where those beyond it decline: knee and counts for
        an efficiency end there.
    remarks : tuple of Remark
    measure_next : int or None
    advice : NextRun or None
        What that is expected to gain.
    """

    answer: str
    method: str
    observations: int
    rows: tuple[Predicted, ...]
    measured: tuple[Predicted, ...]
    advised: tuple[Predicted, ...]
    serial_time: float
    serial_measured: bool
    parameters: dict[str, float]
    uses: tuple[Use, ...]
    use: float | None
    use_runtime: float | None
    knee: float | None
    fastest: float
    at_efficiency: dict[str, float | None]
    declines_after: float | None
    remarks: tuple[Remark, ...]
    measure_next: int | None
    advice: NextRun | None

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        plain = asdict(replace(self, measured=(), advised=()))
        del plain["measured"], plain["advised"]
        advice = None if self.advice is None else self.advice._asdict()
        return plain | {"remarks": [one._asdict() for one in self.remarks], "advice": advice}


def default_targets(observed: FloatArray, most: float | None = None) -> FloatArray:
    """Return the observed counts and powers of two up to four times the last, or to `most`."""
    top = 4.0 * float(observed.max()) if most is None else most
    powers = 2.0 ** np.arange(np.floor(np.log2(max(top, 1.0))) + 1)
    return np.unique(np.concatenate([powers, observed, [] if most is None else [np.floor(most)]]))


def build_report(
    method: str, model: Predictor, observed: FloatArray, runtime: FloatArray, question: Question
) -> CurveReport:
    """Ask a model fitted to measured counts and seconds for everything that is reported."""
    asked, given = question.targets, question.counts
    named = given if asked is None else asked
    targets = default_targets(observed, question.most) if named is None else named
    targets = np.union1d(targets, observed) if asked is None else targets
    remarks = tuple(dict.fromkeys(model.reliability(targets)))
    runs = observed_curve(observed, runtime)
    measured = question.known and runs.nprocs.item(0) == 1.0
    one = float((runs.runtime if measured else model.predict([1.0]))[0])
    end = getattr(model, "declines_after_", None)
    most = question.most or max(4.0 * float(observed.max()), float(targets.max()))
    counts = _considered(model, min(end, most) if end else most)
    speedup = one / model.predict(counts)
    why = next((r.text for r in remarks if r.grade == UNUSABLE and r.target is None), "")
    knee = None if why else _knee(counts, speedup, bool(end or question.most))
    efficient = {e: None if why else _at_efficiency(counts, speedup, e, end) for e in EFFICIENCIES}
    fastest = float(counts[int(np.argmax(speedup >= speedup.max() * (1.0 - 1e-6)))])
    means = dict(zip(runs.nprocs.tolist(), runs.runtime.tolist(), strict=True))
    means = means if question.known else {}
    top = question.most or 4.0 * float(observed.max())
    chosen_from = orderable(observed, top) if given is None else given
    held = chosen_from[feasible(model, chosen_from) | np.isin(chosen_from, list(means))]
    believed = _rows(model, held, one, question.level, means) if held.size else ()
    choices = [row for row in believed if row.measured or row.grade != UNUSABLE]
    is_alone = len(means) == 1 and len(choices) < 2
    uses = () if is_alone else best_uses(choices, 0.0 if why and not measured else one)
    rival = rival_of(uses, choices)
    wanted = [*efficient.values(), fastest] if named is None else named.tolist()
    reach = question.most or (None if asked is None else max(asked.max(), observed.max()))
    power = 2.0 ** np.floor(np.log2(reach)) if reach and named is None else reach
    also = [use.nprocs for use in uses if not use.measured]
    if asked is not None and not question.most:
        reach = max(asked.max(), observed.max(), *also)
    elif named is None and reach:
        also.append(np.floor(reach))
    matters: list[float] = []
    advice: NextRun | None = None
    for more, bound in (([], power), (also, reach)):
        matters += [count for count in (*wanted, *more) if count and (not end or count <= end)]
        within = end if bound is None else min(bound, end or bound)
        if not why and advice is None:
            asks = model, observed, matters, within, question.free, question.counts
            advice = measure_next(*asks)
    listed = _rows(model, np.union1d(targets, list(means)), one, question.level, means)
    row_of = {row.nprocs: row for row in listed}
    rows = tuple(row_of[count] for count in targets.tolist())
    chosen = next((use for use in uses if EFFICIENT in use.criterion), uses[0] if uses else None)
    told = _expected(() if asked is None or is_alone else rows)
    doubts = [*_rise(means, observed), *_scatter(observed, runtime)] if question.known else []
    if why:
        said = f"{why[0].upper()}{why[1:]}: nothing predicted is advised; try another --method."
        doubts.insert(0, (said, None))
    against = next((remark.measure_at for remark in remarks if remark.code == CONTRADICTED), None)
    if against:
        said = f"First of all run {against} again: its runtime contradicts the others."
        doubts.insert(0, (said, against))
    again = next((int(count) for _, count in doubts if count), None)
    last = "" if again else _next(advice, rival, means if is_alone else {})
    beside = None if again or last or not end else _beside(model, runs.nprocs, end, given, most)
    if beside:
        where = f"on fewer processors than {end:g}"
        if beside > (end or 0.0):
            where = f"right beyond {end:g}, where nothing is predicted,"
        last = f"Measure {beside} next: {where} it may be faster."
    elif not (again or last or why):
        usable = matters and all(row.grade != UNUSABLE for row in rows)
        last = _enough(model, matters, question.most) if usable else NO_RUN
    step = again or (int(rival.nprocs) if rival else advice.nprocs if advice else beside)
    spoken = [use.nprocs for use in uses] + ([float(step)] if step else [])
    others = np.array(sorted({*spoken} - {*row_of}) if given is None else [], float)
    return CurveReport(
        " ".join([*(said for said, _ in doubts), *told, *advised(uses, means), last]).rstrip(),
        method,
        len(observed),
        rows,
        tuple(row for row in listed if row.measured),
        _rows(model, others, one, question.level, means) if others.size else (),
        one,
        measured,
        _parameters(model),
        uses,
        None if chosen is None else chosen.nprocs,
        None if chosen is None else chosen.runtime,
        knee,
        fastest,
        {f"{least:g}": count for least, count in efficient.items()},
        end,
        remarks,
        step,
        None if again or rival else advice,
    )


def _rows(
    model: Predictor, targets: FloatArray, one: float, level: float, means: Mapping[float, float]
) -> tuple[Predicted, ...]:
    predicted = model.predict(targets)
    low, high = model.predict_range(targets, level)
    widths = np.ones(len(low)) if getattr(model, "grades_ranges", False) else np.sqrt(high / low)
    columns = (each.tolist() for each in (targets, predicted, low, high, widths))
    return tuple(
        Predicted(n, t, a, b, one / t, one / t / n, _grade(model, n, w), n in means, means.get(n))
        for n, t, a, b, w in zip(*columns, strict=True)
    )


def _grade(model: Predictor, target: float, factor: float) -> str:
    """Return the worst grade that concerns a target, by its own remarks and its range.

    A note on the curve as a whole is none on a target.
    """
    grade = next((grade for least, grade in WIDE if factor > least), "")
    for remark in model.reliability([target]):
        if remark.code == CONTRADICTED and target > (remark.measure_at or np.inf):
            grade = worse(grade, "warning")
        if remark.target is not None or SEVERITY[remark.grade] > 1:
            grade = worse(grade, remark.grade)
    return grade or "good"


def _parameters(model: Predictor) -> dict[str, float]:
    """Return the public fitted numbers of a model, without the closing underscore."""
    values = {name: getattr(model, f"{name}_", None) for name in _PARAMETERS}
    return {name: float(v) for name, v in values.items() if isinstance(v, float) and isfinite(v)}


def _considered(model: Predictor, top: float) -> FloatArray:
    """Return counts from 1 to `top` that the application runs on, a few hundred at most."""
    counts = np.unique(np.rint(np.append(np.geomspace(1.0, max(top, 1.0), 400), np.floor(top))))
    held = counts[feasible(model, counts)]
    return held if held.size else counts


def _knee(counts: FloatArray, speedup: FloatArray, bounded: bool) -> float | None:
    """Return the count with the largest S²/n; None where it rises to an end that is no bound."""
    best = int(np.argmax(np.round(speedup**2 / counts, 9)))
    return None if best == len(counts) - 1 and not bounded else float(counts[best])


def _at_efficiency(
    counts: FloatArray, speedup: FloatArray, least: float, end: float | None
) -> float | None:
    """Return the largest count with an efficiency, None if it is beyond all counts tried."""
    enough = np.flatnonzero(speedup / counts >= least)
    if not len(enough):
        return None
    return end if enough[-1] == len(counts) - 1 else float(counts[enough[-1]])


Doubt = tuple[str, float | None]
"""A sentence on measured runtimes, and the count that it asks to run again, if it does."""


def _scatter(observed: FloatArray, runtime: FloatArray) -> list[Doubt]:
    """Say where runs on one count took times that are far apart."""
    found: list[Doubt] = []
    for count in np.unique(observed).tolist():
        least, most = runtime[observed == count].min(), runtime[observed == count].max()
        if most > FAR_APART * least:
            took = f"{number(least)} and {number(most)} s"
            found.append((f"First of all run {count:g} again: runs there took {took}.", count))
    return found


def _rise(means: Mapping[float, float], observed: FloatArray) -> list[Doubt]:
    """Say where measured runtimes rise, and by how much."""
    best = min(means, key=lambda count: (means[count], count))
    onwards = [count for count in means if count >= best]
    worst = max(onwards, key=means.__getitem__)
    if means[worst] <= means[best] * (1.0 + SAME):
        return []
    is_once = len(onwards) == 2 and (observed == worst).sum() == 1
    again = f" First of all run {worst:g} again: one slow run may be scatter." if is_once else ""
    said = (
        f"Runtimes rise beyond {best:g}: {number(means[best])} s were measured on {best:g} and "
        f"{number(means[worst])} s on {worst:g}.{again}"
    )
    return [(said, worst if is_once else None)]


def _expected(rows: Sequence[Predicted]) -> list[str]:
    """Say what was measured at the first targets, or what to expect."""
    said = []
    for row in rows[:3]:
        verb = "took" if row.measured else "take about" if row.nprocs != 1 else "takes about"
        grade = f", {row.grade}" if row.grade != "good" else ""
        told = "measured" if row.measured else f"{number(row.low)} to {number(row.high)} s{grade}"
        on = f"{row.nprocs:g} processor{'s' * (row.nprocs != 1)}"
        said.append(f"{on} {verb} {number(row.seconds)} s ({told}).")
    return said


def _next(advice: NextRun | None, rival: Predicted | None, alone: Mapping[float, float]) -> str:
    """Say what to measure, as it may be faster, or for narrower ranges."""
    if rival is not None:
        return (
            f"Measure {rival.nprocs:g} next, for about {number(rival.cost)} processor-seconds: "
            f"it may be faster, at {number(rival.low)} to {number(rival.high)} s."
        )
    if advice is None:
        return ""
    for count, seconds in alone.items():
        return (
            f"Measure {advice.nprocs} next, for {number(count * seconds)} processor-seconds if "
            f"the runtime falls in proportion, {number(advice.nprocs * seconds)} if it stays."
        )
    return (
        f"Measure {advice.nprocs} next, for about {number(advice.processor_seconds)} "
        f"processor-seconds: the range at {advice.target:g} should narrow from "
        f"a factor of {advice.now:.2f} either way to {advice.then:.2f}."
    )


def _enough(model: Predictor, matters: Sequence[float], most: float | None) -> str:
    """Say why no run is advised: ranges at what matters are narrow, or none narrows them much."""
    low, high = model.predict_range(matters)
    widest, factor = int(np.argmax(high / low)), f"a factor of {SURE:g} either way"
    why = f"no run would narrow any of the ranges wider than {factor} by a fifth"
    if high[widest] <= low[widest] * SURE**2:
        why = f"the widest range that matters, at {matters[widest]:g}, is within {factor}"
    more = "; --most N allows larger counts" if most is None else ""
    return f"More runs would tell little: {why}{more}."


def _beside(
    model: Predictor, known: FloatArray, end: float, counts: FloatArray | None, most: float
) -> int | None:
    """Return a count beside the fastest, where runtimes begin to rise, that may be faster still.

    It is between that and the next one measured, below where the fastest is the first.
    """
    is_first, after = end == known[0], float(known[known > end][0])
    low, high, near = (0.0, end, end) if is_first else (end, after, measure_between(end, after))
    tried = np.array([end // 2.0 if is_first else near], float) if counts is None else counts
    tried = tried[(tried > low) & (tried < high) & (tried <= most)]
    options = map(int, tried[feasible(model, tried)])
    return min(options, key=lambda count: max(count / near, near / count), default=None)
