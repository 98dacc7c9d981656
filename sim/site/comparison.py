"""What a backtest finds: how far simulated schedules are from the recorded one, in its files."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from sim.results.job_metrics import Figures, spread
from sim.results.outcome import Levels
from sim.results.rows import number_of
from sim.site.outages import Outage
from sim.site.site_logs import Recorded, dates, levels
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
    far, rank = (number_of(quarter, key) for key in ("mean_wait_difference", "spearman_wait"))
    return far is not None and rank is not None and abs(far) <= most and rank >= least


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
    """Compare a candidate's starts with the recorded ones; NaN where it did not play the job."""
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
        "width": pd.Series([str(2**w) if w < 2 else f"{2 ** (w - 1) + 1}–{2**w}" for w in width]),
        "length": pd.Series([LENGTHS[place][1] for place in length]),
        "month": dates(found),
    }
    for name in ("user", "partition"):
        if name in jobs and (jobs[name] >= 0).any() and jobs[name].nunique() > 1:
            names = pd.Series(found.trace.named(name))
            usual = names[found.judged].value_counts().index[:MOST_CLASSES]
            every[name] = names.where(names.isin([*usual, "unknown"]), "others")
    return every


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


@dataclass(frozen=True)
class Reason:
    """Something in the log that a simulated scheduler does not do.

    Attributes
    ----------
    code : str
    text : str
        A sentence with figures.
    evidence : dict
        What of the log shows it.
    weight : float
        Share of the recorded waiting, of jobs or of the machine that it concerns.
    """

    code: str
    text: str
    evidence: Mapping[str, object]
    weight: float


@dataclass(frozen=True)
class Backtest:
    """What a backtest found.

    Attributes
    ----------
    found : Recorded
    candidates : tuple of Compared
    left_out : dict of str to str
        Candidates that were not played, and why.
    reasons : tuple of Reason
    outages : tuple of Outage
        What replays went without.
    changes : tuple of Compared
        The nearest candidate with one thing changed.
    given : tuple of str
        Overrides that set something otherwise than the log and the defaults say.
    """

    found: Recorded
    candidates: tuple[Compared, ...]
    left_out: Mapping[str, str]
    reasons: tuple[Reason, ...]
    outages: tuple[Outage, ...]
    changes: tuple[Compared, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def nearest(self) -> Compared:
        """The candidate of the best verdict, among these that of the nearest mean wait."""
        order = [*VERDICTS, DISTRUST]

        def distance(one: Compared) -> tuple[int, float]:
            difference = number_of(one.figures, "mean_wait_difference")
            far = 99 if difference is None or difference <= -1 else abs(np.log1p(difference))
            return order.index(one.verdict), float(far)

        return min(self.candidates, key=distance)

    def figures(self) -> dict[str, Any]:
        """Return what ``backtest.json`` holds."""
        found, nearest = self.found, self.nearest
        return {
            "log": found.trace.source,
            **({"given": list(self.given)} if self.given else {}),
            "checksum": found.trace.checksum,
            "jobs": int(found.judged.sum()),
            "jobs_without_wait": int((~found.known).sum()),
            "processors": found.processors,
            "processors_by": found.source_of_size,
            "begin": found.begin,
            "running_at_begin": int(found.running_first.sum()),
            "waiting_at_begin": int(found.waiting_first.sum()),
            "outages": [asdict(one) for one in self.outages],
            "dropped_jobs": dict(found.trace.dropped),
            "recorded": recorded_figures(found),
            "candidates": [
                {"name": one.name, **one.figures, "quarters": list(one.quarters),
                 "verdict": one.verdict}
                for one in self.candidates
            ],
            "left_out": dict(self.left_out),
            "nearest": nearest.name,
            "verdict": nearest.verdict,
            "reasons": [asdict(one) for one in self.reasons],
            "changes": [
                {"name": one.name, **one.figures, "verdict": one.verdict}
                for one in self.changes
            ],
            "classes": class_tables(found, nearest),
        }  # fmt: skip


def jobs_frame(found: Recorded, candidates: Sequence[Compared]) -> pd.DataFrame:
    """Return the table of ``backtest_jobs.parquet``: a row for each job and candidate."""
    judged = found.judged
    jobs = found.trace.jobs.loc[judged, ["job_id", "submit_time"]]
    jobs = jobs.assign(recorded_start_time=found.start[judged])
    parts = [jobs.assign(candidate=one.name, start_time=one.start[judged]) for one in candidates]
    columns = ["job_id", "candidate", "submit_time", "recorded_start_time", "start_time"]
    return pd.concat(parts, ignore_index=True)[columns].astype({"candidate": "str"})
