"""How figures are shown: their names, units and digits, and the change of pairs."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from predictors.base import FloatArray
from sim.results.steady_state import Summary, Value, in_order, in_windows, is_refused
from sim.statistics import LEVEL, Comparison, Family, Interval, compare, log_ratios

TIME_UNITS = (("s", 1.0, 300.0, 1000.0), ("min", 60.0, 10800.0, 2e5), ("h", 3600.0, 432000.0, 4e7))
"""Units of time, their seconds, and up to how many the least and the largest of a line are."""


PERCENT, SECONDS, NUMBER, COUNT, ERROR = "%", "s", "", "#", "e"


MOST_ERROR = 10.0
"""Relative errors beyond this are shown as `BEYOND`: their size says nothing more."""


BEYOND = "more than 10 times"


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    key : str
        Key of the summary.
    label : str
    kind : str
        ``%`` for a share, ``s`` for seconds, ``#`` for whole numbers, ``e`` for a
        relative error, else empty.
    better : int
        -1 where less is better, 1 where more is, 0 where neither.
    bounded : bool
        Whether a lower bound of it is known.
    """

    key: str
    label: str
    kind: str
    better: int = 0
    bounded: bool = False


SECTIONS: tuple[tuple[Row, ...], ...] = (
    (
        Row("mean_wait_time", "mean wait", SECONDS, -1),
        Row("mean_response_time", "mean response", SECONDS, -1, bounded=True),
        Row("median_response_time", "median response", SECONDS, -1),
        Row("p95_response_time", "95th percentile response", SECONDS, -1),
        Row("mean_bounded_slowdown", "mean bounded slowdown", NUMBER, -1, bounded=True),
        Row("makespan", "makespan", SECONDS, bounded=True),
    ),
    (
        Row("utilization", "utilisation", PERCENT),
        Row("useful_utilization", "useful utilisation", PERCENT, 1),
        Row("system_efficiency", "system efficiency", PERCENT, 1),
        Row("mean_efficiency", "mean efficiency of a job", PERCENT, 1),
        Row("loss_of_capacity", "loss of capacity", PERCENT, -1),
        Row("mean_allocated_processors", "mean processors of a job", NUMBER),
        Row("max_queued_jobs", "longest queue (jobs)", COUNT, -1),
    ),
    (
        Row("prediction_median_error", "prediction error, median", ERROR, -1),
        Row("prediction_p90_error", "90th percentile", ERROR, -1),
        Row("prediction_within_20", "predicted within 20 %", PERCENT, 1),
        Row("share_own_predictions", "starts with a prediction", PERCENT),
        Row("fallback_median_error", "error of requests instead, median", ERROR),
        Row("share_fitted_starts", "starts decided by past runs", PERCENT),
        Row("share_beliefs_off", "predictions far from past runs", PERCENT, -1),
    ),
)
ROWS = tuple(row for section in SECTIONS for row in section)


EASY_PLUS = "easy_plus"
"""Before the keys of figures of EASY++, which a site could take instead of molding."""
KEPT = ("jobs", "molded_jobs", "steady", *(row.key for part in SECTIONS[:2] for row in part))
"""Its figures that a run keeps beside its own."""


REQUEST_SECTION = (
    Row("requests", "requests of running jobs", COUNT),
    Row("requests_granted", "granted", COUNT),
    Row("requests_deferred", "answered later", COUNT),
    Row("requests_refused", "refused", COUNT),
    Row("requests_withdrawn", "withdrawn", COUNT),
    Row("denied_time", "time lost on denied processors", SECONDS, -1),
    Row("denied_wait", "waits for denied walltime", SECONDS, -1),
)
"""Shown where evolving jobs may ask."""


MORE = frozenset(row.key for row in ROWS if row.better > 0)
"""Figures of which more is better."""
JUDGED = frozenset(row.key for row in ROWS if row.better)
"""Those of which more or less is better for certain."""


SHARES = frozenset(row.key for row in ROWS if row.kind in (PERCENT, ERROR))
"""Figures that are shown in percent, so that they differ by percentage points."""


POINTS = "pp"
"""Stands for percentage points."""


def time_unit(values: Iterable[Value]) -> tuple[str, float]:
    """Return the unit in which a person reads times side by side, and its seconds.

    Examples
    --------
    >>> time_unit([25560.0, 518400.0]), time_unit([25560.0, None]), time_unit([8.0, 9000.0])
    (('h', 3600.0), ('h', 3600.0), ('min', 60.0))
    """
    known = [float(one) for one in values if isinstance(one, int | float) and 0 < one < math.inf]
    least, most = min(known, default=0.0), max(known, default=0.0)
    for name, seconds, low, high in TIME_UNITS:
        if least < low and most < high:
            return name, seconds
    return "d", 86400.0


def unit_of(key: str, values: Iterable[Value]) -> tuple[str, float]:
    """Return the unit of a figure of the summary, and one of it in the figure's own.

    Examples
    --------
    >>> unit_of("mean_wait_time", [7200.0, 18000.0]), unit_of("utilization", [0.5])
    (('min', 60.0), ('%', 0.01))
    """
    if key.endswith(("_time", "makespan")):
        return time_unit(values)
    return (PERCENT, 0.01) if key in SHARES else ("", 1.0)


def texts(values: Sequence[Value], kind: str) -> list[str]:
    """Return figures of one line as text, all in one unit; a dash for null.

    Examples
    --------
    >>> texts([5400.0, 7200.0, None], "s")
    ['90.0 min', '120.0 min', '–']
    >>> texts([0.5, 1234], "%"), texts([1234], "#")
    (['50.0 %', '123,400.0 %'], ['1,234'])
    >>> texts([0.087, 1394.7], "e")
    ['8.7 %', 'more than 10 times']
    """
    unit, seconds = time_unit(values) if kind == SECONDS else ("", 1.0)
    share = kind in (PERCENT, ERROR)
    sizes = [abs(float(value)) / seconds for value in values if isinstance(value, int | float)]
    largest = max(sizes, default=0.0)
    three_digits = 0 if largest >= 1000 else 1 if largest >= 10 else 2
    decimals = 0 if kind == COUNT else 1 if share else three_digits
    shown = []
    for value in values:
        if value is None or isinstance(value, str) or value != value:
            shown.append(value if isinstance(value, str) else "–")
        elif kind == ERROR and value > MOST_ERROR:
            shown.append(BEYOND)
        else:
            number = 100 * value if share else value / seconds
            shown.append(f"{number:,.{decimals}f} {'%' if share else unit}".rstrip())
    return shown


def duration(seconds: float) -> str:
    """Return a time in words."""
    return texts([seconds], SECONDS)[0]


MOLDED = "jobs molded"
"""Heads the first row of every table."""


def molded_text(summaries: Sequence[Mapping[str, Any]]) -> str:
    """Return how many of the jobs of all simulations were molded; a dash where none says it.

    Examples
    --------
    >>> molded_text([{"molded_jobs": 3, "jobs": 1000}, {"molded_jobs": 0, "jobs": 1000}])
    '3 of 2,000'
    """
    molded = [number_of(one, "molded_jobs") for one in summaries]
    known = [one for one, n in zip(summaries, molded, strict=True) if n is not None and n == n]
    some, jobs = (sum(one[key] for one in known) for key in ("molded_jobs", "jobs"))
    return f"{some:,.0f} of {jobs:,.0f}" if known else "–"


def number_of(summary: Summary, key: str) -> float | None:
    """Return a figure that is a number, None where it is none."""
    value = summary.get(key)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None  # type: ignore[arg-type]


def numbers_of(summaries: Sequence[Summary], key: str) -> list[float]:
    """Return a figure of those summaries in which it is a number."""
    return [value for one in summaries if (value := number_of(one, key)) is not None]


def changes_of(pairs: Sequence[tuple[Summary, Summary]], key: str) -> FloatArray:
    """Return a figure's paired log ratios, or differences of a share, shape (n,).

    A pair are summaries of the same jobs: own and reference. It is NaN where a pair lacks the
    figure; NaN in all where any ratio is undefined, as of a wait of 0: leaving such pairs out
    would tell another story.

    Examples
    --------
    >>> changes_of([({"utilization": 0.7}, {"utilization": 0.5})], "utilization").round(3).tolist()
    [0.2]
    """
    both = [(number_of(own, key), number_of(other, key)) for own, other in pairs]
    known = [place for place, pair in enumerate(both) if None not in pair]
    found = np.full(len(pairs), np.nan)
    if known:
        first, second = np.array([both[place] for place in known], np.float64).T
        made = first - second if key in SHARES else log_ratios(first, second)
        found[known] = np.nan if np.isnan(made).any() else made
    return found


def read_together(
    own: Sequence[Summary], other: Sequence[Summary], keys: Sequence[str], level: float = LEVEL
) -> Family:
    """Return how figures of simulations differ from those of others on the same jobs.

    Entry k of both is the summary of replication or window k. Where either queue does not settle
    there are no changes.
    """
    pairs = [(own[place], other[place]) for place in in_order(own)]
    refused = is_refused(own) or is_refused(other)
    columns = [changes_of([] if refused else pairs, key) for key in keys]
    return compare(columns, level, shares=[key in SHARES for key in keys], ordered=in_windows(own))


TOO_WIDE = "interval too wide to tell"
"""What stands in place of a change whose interval is."""
WIDEST = 10.0
"""Width, as a share, beyond which an interval says nothing of a change."""


SMALL = 0.0015
"""Intervals within this share of 0 are shown with more digits."""


def tells(interval: Interval) -> bool:
    """Return whether an interval says more than that nothing is known."""
    return interval.high - interval.low <= WIDEST


def percent(interval: Interval, unit: str = "%") -> str:
    """Return an interval of shares as text.

    Examples
    --------
    >>> percent(Interval(-0.5, -0.6, -0.4, 5)), percent(Interval(0.5, -math.inf, math.inf, 5))
    ('-50.0 % [-60.0, -40.0]', 'interval too wide to tell')
    >>> percent(Interval(-0.5, -0.6, -0.0002, 5))
    '-50.0 % [-60.0, -0.020]'
    """
    if not math.isfinite(interval.mean):
        return "not defined"
    ends = [] if math.isnan(interval.low) else [interval.low, interval.high]
    if ends and not tells(interval):
        return TOO_WIDE
    tiny = ends and 0 < max(map(abs, (interval.mean, *ends))) < SMALL
    mean, *shown = (
        f"{100 * value:z.{3 if tiny or 1e-5 <= abs(value) < 5e-4 else 1}f}"
        for value in (interval.mean, *ends)
    )
    return f"{mean} {unit} [{', '.join(shown)}]" if ends else f"{mean} {unit}"


IDENTICAL = {"runs": "no difference", "replications": "identical replications"}
"""What stands in place of an interval where there is nothing to infer."""


def weighing_notes(simulations: int) -> list[str]:
    """Return in a sentence why a change is not that of two means, where there are several pairs."""
    if simulations < 2:
        return []
    return [
        "± is half of a 95 % interval. A change is a mean over pairs of runs, each with the same "
        "weight (of log ratios): it may differ from the change of the two means, even in sign."
    ]


ONE_PAIR = "one pair of runs does not show how sure that is; replications=10 would"


def change_text(found: Comparison, unit: str = PERCENT) -> str:
    """Return a change as text: with its interval, with few pairs with their range."""
    text = percent(found.change, unit)
    if found.change.mean > 0 and text[0].isdigit():
        text = f"+{text}"
    if found.identical:
        told = IDENTICAL[found.identical]
        return told if found.identical == "runs" else f"{text}, {told}"
    if found.change.count < 2 or not math.isnan(found.change.low):
        return text
    return f"{text}, {100 * found.least:.1f} to {100 * found.most:.1f}"


def bound_notes(run: Summary) -> list[str]:
    """Return the lower bounds in a sentence, for a table without a column of them."""
    rows = [row for row in ROWS if row.bounded]
    known = [(row.label, texts([run.get(f"bound_{row.key}")], row.kind)[0]) for row in rows]
    parts = [f"{label} {text}" for label, text in known if text != "–"]
    return [f"Lower bounds: {', '.join(parts)}."] if parts else []


def reasons(run: Summary) -> list[str]:
    """Return why figures of a summary are null, a sentence each."""
    lines = []
    if run.get("system_efficiency") is None:
        lines.append(
            "Efficiencies are null: T(1) of the jobs is unknown, as under moldability=none."
        )
    elif run.get("useful_utilization") is None:
        lines.append("Useful utilisation is null: T(1) of some jobs is unknown.")
    if run.get("prediction_median_error") is None:
        lines.append("Prediction errors are null: no predictor spoke of a completed run.")
    if run.get("bound_mean_response_time") is None:
        lines.append("Lower bounds are null: the curves of the jobs are too many to go through.")
    return lines
