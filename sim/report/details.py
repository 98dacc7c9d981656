"""What only the tables of a run tell: curves, errors, distributions and losses."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from predictors.base import FloatArray
from sim.report.samples import Group, Sample
from sim.results.job_metrics import with_errors
from sim.results.plots.pictures import HISTORY
from sim.results.plots.style import waiting
from sim.results.steps import Levels

CURVE_POINTS = 240
COUNT_BINS = tuple(2**power for power in range(18))
QUANTILES = np.linspace(0.0, 1.0, 201)


@dataclass(frozen=True)
class Details:
    """What the tables of a group's samples say.

    Attributes
    ----------
    hours : numpy.ndarray of float, shape (k,)
        Time since the first submit, of the first sample.
    busy, queued : numpy.ndarray of float, shape (k,)
        Share of busy processors, and waiting jobs, of the first sample.
    slowdown : numpy.ndarray of float, shape (201,)
        Quantiles of bounded slowdown over all samples read.
    by_count, by_history : pandas.Series
        Median relative error of prediction by bin.
    losses : pandas.Series
        Where the machine's time went, as shares of processors x makespan, means over the
        samples read: ``useful``, what the work takes without any parallelism, and
        ``inefficiency``, what is held beyond that; ``unknown``, what is held where T(1) is
        unknown, and the first two are NaN; ``held_back``, idle while a waiting job could have
        started as requested; ``fragmentation``, idle while jobs wait, but too few processors
        for any request; ``no_demand``, idle while nothing waits; and, a part of no other,
        ``misprediction``, by which beliefs were wrong.
    """

    hours: FloatArray
    busy: FloatArray
    queued: FloatArray
    slowdown: FloatArray
    by_count: pd.Series
    by_history: pd.Series
    losses: pd.Series


def details(group: Group, most: int) -> Details | None:
    """Return what the tables of the first samples of a group say; None without any."""
    chosen = [s for s in group.samples if (s.folder / "jobs.parquet").exists()][:most]
    if not chosen:
        return None
    slowdowns, errors, losses = [], [], []
    for sample in chosen:
        jobs = pd.read_parquet(sample.folder / "jobs.parquet")
        slowdowns.append(jobs.loc[jobs["job_id"] >= 0, "bounded_slowdown"].to_numpy())
        timeline = pd.read_parquet(sample.folder / "timeline.parquet")
        predictions = pd.read_parquet(sample.folder / "predictions.parquet")
        errors.append(with_errors(predictions)[["nprocs", "observations", "error"]])
        losses.append(_losses(sample, timeline, predictions))
        if len(losses) == 1:
            curve = _curve(sample, timeline, jobs)
    every = pd.concat(errors)
    return Details(
        *curve,
        np.quantile(np.concatenate(slowdowns), QUANTILES),
        _binned(every, "nprocs", COUNT_BINS),
        _binned(every, "observations", HISTORY),
        pd.DataFrame(losses).mean(),  # of those that are known
    )


def _binned(errors: pd.DataFrame, column: str, bins: tuple[int, ...]) -> pd.Series:
    """Return the median error by lower end of a bin, of bins with at least 5 predictions."""
    place = np.searchsorted(bins, errors[column].to_numpy(), side="right") - 1
    found = errors.groupby(np.asarray(bins)[np.maximum(place, 0)])["error"]
    return found.median()[found.size() >= 5]


def _curve(
    sample: Sample, timeline: pd.DataFrame, jobs: pd.DataFrame
) -> tuple[FloatArray, FloatArray, FloatArray]:
    times = timeline["time"].to_numpy(float)
    processors = float(sample.summary.get("processors") or 1)
    if len(times) < 2 or times[-1] <= times[0]:
        return (np.zeros(1),) * 3
    edges = np.linspace(times[0], times[-1], CURVE_POINTS + 1)
    busy = Levels(times, timeline["busy_processors"].to_numpy(float)).means(edges)
    queued = Levels(times, waiting(timeline, jobs)).means(edges)
    return (edges[:-1] - edges[0]) / 3600.0, busy / processors, queued


def _losses(sample: Sample, timeline: pd.DataFrame, predictions: pd.DataFrame) -> dict[str, float]:
    figures = sample.summary
    processors = float(figures.get("processors") or 1)
    times = timeline["time"].to_numpy(float)
    total = processors * float(figures.get("makespan") or np.nan)
    lasting = np.diff(times, append=times[-1:])
    idle = (processors - timeline["busy_processors"].to_numpy(float)) * lasting
    waiting = timeline["queued_jobs"].to_numpy() > 0
    used = float(figures.get("utilization") or np.nan)
    useful = figures.get("useful_utilization")
    known = useful if isinstance(useful, float) else np.nan
    lost = float(figures.get("loss_of_capacity_requested") or 0.0)
    wrong = (predictions["predicted"] - predictions["actual"]).abs() * predictions["nprocs"]
    return {
        "useful": known,
        "inefficiency": used - known,
        "unknown": used if np.isnan(known) else 0.0,
        "held_back": lost,
        "fragmentation": max(float(idle[waiting].sum()) / total - lost, 0.0),
        "no_demand": float(idle[~waiting].sum()) / total,
        "misprediction": float(wrong.sum()) / total,
    }
