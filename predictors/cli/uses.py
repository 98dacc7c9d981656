"""Which count to use by which criterion, of those that somebody would order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from predictors.base import FloatArray

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
class Row:
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


def best_uses(rows: Sequence[Row], one: float) -> tuple[Use, ...]:
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
    criteria: dict[Row, list[str]] = {}
    for criterion, row in best.items():
        if row is not None:
            criteria.setdefault(row, []).append(criterion)
    return tuple(
        Use(
            " and ".join(words), row.nprocs, row.seconds, row.measured, row.low, row.high, row.grade
        )
        for row, words in criteria.items()
    )


def _least(rows: Sequence[Row], figure: Callable[[Row], float]) -> Row | None:
    """Return the row of the least figure, the least count of those believed in that are alike."""
    measured = [row for row in rows if row.measured]
    believed = [row for row in rows if not row.measured]
    best = min(measured, key=lambda row: (figure(row), row.nprocs), default=None)
    least = min((figure(row) for row in believed), default=np.inf)
    if best is not None and least * (1.0 + SAME) >= figure(best):
        return best
    alike = (row for row in believed if figure(row) <= least * (1.0 + SAME))
    return min(alike, key=lambda row: row.nprocs, default=best)


def rival_of(uses: Sequence[Use], rows: Sequence[Row]) -> Row | None:
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
