"""How figures are shown: their names, units and digits, and the difference of two."""

from collections.abc import Sequence
from dataclasses import dataclass

Value = float | int | bool | str | None


TIME_UNITS = (("s", 1.0, 300.0), ("min", 60.0, 10800.0), ("h", 3600.0, 432000.0))
"""Units of time, their seconds, and up to how many seconds each is shown."""


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
    bound : str or None
        Key of a lower bound.
    """

    key: str
    label: str
    kind: str
    better: int = 0
    bound: str | None = None


SECTIONS: tuple[tuple[Row, ...], ...] = (
    (
        Row("jobs", "jobs", COUNT),
        Row("mean_wait_time", "mean wait", SECONDS, -1),
        Row("mean_response_time", "mean response", SECONDS, -1, "bound_mean_response_time"),
        Row("median_response_time", "median response", SECONDS, -1),
        Row("p95_response_time", "95th percentile response", SECONDS, -1),
        Row(
            "mean_bounded_slowdown", "mean bounded slowdown", NUMBER, -1,
            "bound_mean_bounded_slowdown",
        ),
        Row("makespan", "makespan", SECONDS, 0, "bound_makespan"),
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
        Row("share_fitted_starts", "starts on a fitted curve", PERCENT),
        Row("share_beliefs_off", "beliefs off past runs", PERCENT, -1),
    ),
)  # fmt: skip


SIZE_SECTION = (
    Row("sizes_grew", "jobs that grow", COUNT),
    Row("size_growth_median", "growth of the size, median", NUMBER),
    Row("kept_time_median_error", "error of the kept time, median", PERCENT, -1),
    Row("kept_time_p90_error", "error of the kept time, 90th p.", PERCENT, -1),
    Row("kept_time_within_range", "kept times in their range", PERCENT),
    Row("weak_scaling_median_error", "error of weak scaling, median", PERCENT),
    Row("weak_scaling_p90_error", "error of weak scaling, 90th p.", PERCENT),
)
"""Shown where the machine grew and sizes with it."""


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


CONDITIONAL = {"sizes_grew": SIZE_SECTION, "requests": REQUEST_SECTION}
"""Sections that are shown where a side has this key."""


SHARES = frozenset(
    row.key
    for section in (*SECTIONS, SIZE_SECTION)
    for row in section
    if row.kind in (PERCENT, ERROR)
)
"""Figures that are shown in percent, so that they differ by percentage points."""


POINTS = "pp"
"""Stands for percentage points."""


def _unit(values: Sequence[Value]) -> tuple[str, float]:
    largest = max((float(v) for v in values if isinstance(v, int | float)), default=0.0)
    for name, seconds, limit in TIME_UNITS:
        if largest < limit:
            return name, seconds
    return "d", 86400.0


def _decimals(values: Sequence[Value], seconds: float) -> int:
    """Return how many decimals show three digits of the largest value."""
    sizes = [abs(float(v)) / seconds for v in values if isinstance(v, int | float)]
    largest = max(sizes, default=0.0)
    return 0 if largest >= 1000 else 1 if largest >= 10 else 2


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
    unit, seconds = _unit(values) if kind == SECONDS else ("", 1.0)
    share = kind in (PERCENT, ERROR)
    decimals = 0 if kind == COUNT else 1 if share else _decimals(values, seconds)
    shown = []
    for value in values:
        if value is None or isinstance(value, str):
            shown.append("–" if value is None else value)
        elif kind == ERROR and value > MOST_ERROR:
            shown.append(BEYOND)
        else:
            number = 100 * value if share else value / seconds
            shown.append(f"{number:,.{decimals}f} {'%' if share else unit}".rstrip())
    return shown


def difference(value: Value, other: Value, is_share: bool = False) -> float | None:
    """Return by which part of the other the value differs, None where that is undefined.

    Shares differ by the plain difference, in points.

    Examples
    --------
    >>> difference(75.0, 100.0), difference(1.0, 0.0), difference(0.5, 0.25, is_share=True)
    (-0.25, None, 0.25)
    """
    if not isinstance(value, int | float) or not isinstance(other, int | float):
        return None
    if is_share:
        return value - other
    return (value - other) / abs(other) if other else None


def duration(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds.

    Examples
    --------
    >>> duration(3725.0)
    '1:02:05'
    """
    whole = int(seconds)
    return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
