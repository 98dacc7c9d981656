"""How far a simulated schedule is from the recorded one: waits, ranks, utilisation, classes."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from sim.results.metrics import spread
from sim.results.outcome import Levels
from sim.results.steady_state import Figures
from sim.site.log_schedule import Recorded, dates, levels
from workloads.base import FloatArray

QUARTERS = 4
VERDICTS = {"trust": (0.2, 0.7), "care": (0.5, 0.4)}
"""Largest relative difference of mean waits and least rank correlation, in every quarter."""
DISTRUST = "distrust"
MOST_CLASSES = 10
"""Users and partitions that are shown, those with most jobs."""
LENGTHS = ((600.0, "up to 10 min"), (3600.0, "up to 1 h"), (28800.0, "up to 8 h"),
           (86400.0, "up to 1 d"), (np.inf, "longer"))  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """A candidate's schedule beside the recorded one.

    Attributes
    ----------
    name : str
    start : numpy.ndarray of float, shape (jobs of the log,), seconds
        NaN for jobs that were over before the begin.
    figures : dict
        Of `compare`.
    quarters : tuple of dict
        ``mean_wait_difference``, relative, and ``spearman_wait`` of each quarter of the jobs.
    """

    name: str
    start: FloatArray
    figures: Figures
    quarters: tuple[Figures, ...] = field(default=())

    @property
    def verdict(self) -> str:
        """``trust``, ``care`` or ``distrust``: what holds in every quarter."""
        for name, (most, least) in VERDICTS.items():
            if all(_within(quarter, most, least) for quarter in self.quarters):
                return name
        return DISTRUST


def _within(quarter: Figures, most: float, least: float) -> bool:
    difference, rank = quarter["mean_wait_difference"], quarter["spearman_wait"]
    if not isinstance(difference, float) or not isinstance(rank, float):
        return False
    return abs(difference) <= most and rank >= least


def spearman(first: FloatArray, second: FloatArray) -> float | None:
    """Return the rank correlation of two samples, ties sharing their mean rank.

    None where one of them is constant.

    Examples
    --------
    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0]))
    0.5
    """
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return round(float(np.corrcoef(rankdata(first), rankdata(second))[0, 1]), 12)


def wait_figures(wait: FloatArray) -> Figures:
    """Return mean, median and 95th percentile of waits."""
    figures = spread(wait.copy(), "wait_time")
    return {key: figures[key] for key in ("mean_wait_time", "median_wait_time", "p95_wait_time")}


def utilization(found: Recorded, start: FloatArray) -> float | None:
    """Return the share of the machine that was held from the begin to the last end."""
    there = np.isfinite(start)
    begin, end = np.maximum(start[there], found.begin), (start + found.runtime)[there]
    lasting = end > found.begin
    area = float((found.count[there] * (end - begin))[lasting].sum())
    span = float(end.max(initial=found.begin)) - found.begin
    return area / (found.processors * span) if span > 0 else None


def held_by(found: Recorded, start: FloatArray) -> Levels:
    """Return the processors that a schedule holds over time."""
    there = np.isfinite(start)
    return levels(start[there], (start + found.runtime)[there], found.count[there])


def compare(found: Recorded, name: str, start: FloatArray) -> Compared:
    """Compare a candidate's starts with the recorded ones.

    Parameters
    ----------
    found : Recorded
    name : str
    start : numpy.ndarray of float, shape (jobs of the log,), seconds
        NaN where the candidate did not play the job.
    """
    judged = np.flatnonzero(found.judged)
    wait, recorded = (start - found.submit)[judged], found.wait[judged]
    figures: Figures = {
        **wait_figures(wait),
        **distance_figures(wait, recorded),
        "median_absolute_wait_difference": float(np.median(np.abs(wait - recorded))),
        "utilization": utilization(found, start),
    }
    parts = np.array_split(np.arange(len(judged)), QUARTERS)
    quarters = tuple(distance_figures(wait[q], recorded[q]) for q in parts if len(q))
    return Compared(name, start, figures, quarters)


def distance_figures(wait: FloatArray, recorded: FloatArray) -> Figures:
    """Return how far waits are from recorded ones, in the mean and by rank."""
    mean, reference = float(wait.mean()), float(recorded.mean())
    same = 0.0 if mean == 0 else None
    return {
        "mean_wait_difference": mean / reference - 1.0 if reference else same,
        "spearman_wait": spearman(wait, recorded),
    }


def nearest_of(candidates: Sequence[Compared]) -> Compared:
    """Return the candidate of the best verdict, among these that of the nearest mean wait."""
    order = [*VERDICTS, DISTRUST]

    def distance(one: Compared) -> tuple[int, float]:
        difference = one.figures["mean_wait_difference"]
        far = abs(np.log1p(difference)) if isinstance(difference, float) and difference > -1 else 99
        return order.index(one.verdict), float(far)

    return min(candidates, key=distance)


def recorded_figures(found: Recorded) -> Figures:
    """Return the figures of the recorded schedule."""
    start = np.where(found.end > found.begin, found.start, np.nan)
    return {**wait_figures(found.wait[found.judged]), "utilization": utilization(found, start)}


def class_labels(found: Recorded) -> Mapping[str, pd.Series]:
    """Return the class of each job: by width, length, user, partition and month."""
    jobs = found.trace.jobs
    width = np.ceil(np.log2(np.maximum(found.count, 1))).astype(int)
    length = np.searchsorted([limit for limit, _ in LENGTHS], found.runtime)
    every = {
        "width": pd.Series([_between(w) for w in width]),
        "length": pd.Series([LENGTHS[place][1] for place in length]),
        "month": dates(found),
    }
    for name in ("user", "partition"):
        if name in jobs and (jobs[name] >= 0).any() and jobs[name].nunique() > 1:
            names = pd.Series(found.trace.named(name))
            usual = names[found.judged].value_counts().index[:MOST_CLASSES]
            every[name] = names.where(names.isin([*usual, "unknown"]), "others")
    return every


def _between(width: int) -> str:
    return str(2**width) if width < 2 else f"{2 ** (width - 1) + 1}–{2**width}"


def class_tables(found: Recorded, nearest: Compared) -> dict[str, list[dict[Hashable, Any]]]:
    """Return waits by class, recorded and by the nearest candidate, a list of rows a kind."""
    judged = found.judged
    wait = (nearest.start - found.submit)[judged]
    frame = pd.DataFrame({"recorded": found.wait[judged], "wait": wait})
    frame["difference"] = (frame["wait"] - frame["recorded"]).abs()
    tables = {}
    for kind, labels in class_labels(found).items():
        table = frame.groupby(labels.astype(str).to_numpy()[judged]).agg(
            jobs=("wait", "size"),
            recorded_mean_wait_time=("recorded", "mean"),
            mean_wait_time=("wait", "mean"),
            median_absolute_wait_difference=("difference", "median"),
        )
        rows = table.rename_axis("class").reset_index().to_dict("records")
        tables[kind] = sorted(rows, key=lambda row: _order(kind, row["class"]))
    return tables


def _order(kind: str, name: str) -> tuple[float, str]:
    """Return by what classes of a kind are sorted."""
    if kind == "length":
        return float([label for _, label in LENGTHS].index(name)), ""
    first = "".join(c for c in name.split("–")[0].split(" to ")[0] if c.isdigit())
    return (np.inf if name in ("others", "unknown") else float(first or 0)), name
