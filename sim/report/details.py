"""What only the tables of a run tell: curves, errors, distributions and losses."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from predictors.base import FloatArray
from sim.report.samples import Group, Sample
from sim.results.plots.style import resample, waiting

CURVE_POINTS = 240
HISTORY_BINS = (0, 1, 2, 3, 5, 10, 20, 50, 100)
"""Observations behind a belief: lower ends of the bins."""
COUNT_BINS = tuple(2**power for power in range(18))
QUANTILES = np.linspace(0.0, 1.0, 201)


@dataclass(frozen=True)
class Losses:
    """Where the machine's time went, as shares of processors x makespan.

    Attributes
    ----------
    useful : float
        Σ T(1): what the work takes without any parallelism.
    inefficiency : float
        Held beyond that.
    unknown : float
        Held, where T(1) is unknown; the first two are then NaN.
    held_back : float
        Idle while a waiting job could have started as requested.
    fragmentation : float
        Idle while jobs wait, but too few processors for any request.
    no_demand : float
        Idle while nothing waits.
    misprediction : float
        Processor-seconds by which beliefs were wrong; a part of no other.
    """

    useful: float
    inefficiency: float
    unknown: float
    held_back: float
    fragmentation: float
    no_demand: float
    misprediction: float


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
    losses : Losses
        Means over the samples read.
    read : int
        Samples read.
    """

    hours: FloatArray
    busy: FloatArray
    queued: FloatArray
    slowdown: FloatArray
    by_count: pd.Series
    by_history: pd.Series
    losses: Losses
    read: int


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
        errors.append(_errors(predictions))
        losses.append(_losses(sample, timeline, predictions))
        if len(losses) == 1:
            curve = _curve(sample, timeline, jobs)
    every = pd.concat(errors)
    return Details(
        *curve,
        np.quantile(np.concatenate(slowdowns), QUANTILES),
        _binned(every, "nprocs", COUNT_BINS),
        _binned(every, "observations", HISTORY_BINS),
        Losses(*pd.DataFrame(losses).mean().tolist()),  # of those that are known
        len(chosen),
    )


def _errors(predictions: pd.DataFrame) -> pd.DataFrame:
    right = np.isfinite(predictions["actual"]) & (predictions["job_id"] >= 0)
    known: pd.DataFrame = predictions[right]
    error = (known["predicted"] - known["actual"]).abs() / known["actual"]
    return known[["nprocs", "observations"]].assign(error=error)


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
    busy = resample(times, timeline["busy_processors"].to_numpy(float), edges)[0]
    queued = resample(times, waiting(timeline, jobs), edges)[0]
    return (edges[:-1] - edges[0]) / 3600.0, busy / processors, queued


def _losses(sample: Sample, timeline: pd.DataFrame, predictions: pd.DataFrame) -> list[float]:
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
    return [
        known,
        used - known,
        used if np.isnan(known) else 0.0,
        lost,
        max(float(idle[waiting].sum()) / total - lost, 0.0),
        float(idle[~waiting].sum()) / total,
        float(wrong.sum()) / total,
    ]
