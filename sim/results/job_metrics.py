"""Figures over jobs: waits, responses, slowdowns, efficiency, fairness, size classes."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictors.base import FloatArray
from sim.results.frames import BOUND_SECONDS

Figures = dict[str, float | int | bool | str | None]
"""Flat figures by key; None where a figure is undefined."""

NARROW_PROCESSORS = 8
SHORT_SECONDS = 3600.0


def _spread(values: FloatArray, name: str) -> Figures:
    keys = [f"{part}_{name}" for part in ("mean", "median", "p95", "p99", "max")]
    if not len(values):
        return dict.fromkeys(keys)
    points = np.percentile(values, [50, 95, 99, 100])
    return dict(zip(keys, [float(values.mean()), *map(float, points)], strict=True))


def mean(values: FloatArray) -> float | None:
    """Return the mean of the values that are defined, None without any."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def weighted_mean(values: FloatArray, weights: FloatArray) -> float | None:
    """Return the mean of the values by weight, None without weight."""
    total = weights.sum()
    return float((values * weights).sum() / total) if total > 0 else None


def jain(values: FloatArray) -> float | None:
    """Return Jain's index (Σx)² / (N Σx²): 1 if all are equal, 1/N if one has all.

    Examples
    --------
    >>> jain(np.array([2.0, 2.0])), jain(np.array([1.0, 0.0]))
    (1.0, 0.5)
    """
    squares = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * squares) if squares > 0 else None


def _fairness(slowdown: FloatArray, user: NDArray[np.int64]) -> Figures:
    known = user >= 0
    _, index = np.unique(user[known], return_inverse=True)
    by_user = np.bincount(index, slowdown[known]) / np.maximum(np.bincount(index), 1)
    return {
        "jain_slowdown": jain(slowdown),
        "jain_users": jain(by_user),
        "users": len(by_user),
    }


def _classes(jobs: pd.DataFrame, slowdown: FloatArray) -> Figures:
    narrow = jobs["requested_processors"].to_numpy() <= NARROW_PROCESSORS
    short = jobs["reference_runtime"].to_numpy() <= SHORT_SECONDS
    columns = {
        "wait_time": jobs["wait_time"].to_numpy(),
        "response_time": jobs["response_time"].to_numpy(),
        "bounded_slowdown": slowdown,
    }
    figures: Figures = {}
    for width, wide in (("narrow", narrow), ("wide", ~narrow)):
        for length, long in (("short", short), ("long", ~short)):
            where = wide & long
            name = f"{width}_{length}"
            figures[f"{name}_jobs"] = int(where.sum())
            figures[f"{name}_mean_efficiency"] = mean(jobs["efficiency"].to_numpy()[where])
            for column, values in columns.items():
                for part, figure in _spread(values[where], column).items():
                    figures[f"{name}_{part}"] = figure
    return figures


def job_figures(jobs: pd.DataFrame) -> Figures:
    """Return the figures over the rows of a job table (columns of ``jobs.parquet``).

    Slowdowns divide by the recorded runtime at the reference count, so a policy
    does not improve them by running jobs slowly; per-processor bounded slowdown
    (Zotkin & Keleher) divides by the reference count as well. Means by area
    weigh with reference count times recorded runtime, which no policy changes.
    Size classes cut at 8 processors and one hour, both of the reference.
    """
    response = jobs["response_time"].to_numpy()
    reference = jobs["reference_runtime"].to_numpy()
    requested = jobs["requested_processors"].to_numpy()
    bounded = jobs["bounded_slowdown"].to_numpy()
    wait = jobs["wait_time"].to_numpy()
    area = requested * reference
    floor = np.maximum(reference, BOUND_SECONDS)
    status = jobs["status"].to_numpy()
    return {
        "jobs": len(jobs),
        **{
            f"{kind}_jobs": int((status == kind).sum())
            for kind in ("completed", "killed", "failed")
        },
        **_spread(wait, "wait_time"),
        **_spread(response, "response_time"),
        **_spread(response / reference, "slowdown"),
        **_spread(bounded, "bounded_slowdown"),
        **_spread(np.maximum(1.0, response / (requested * floor)), "processor_bounded_slowdown"),
        "area_weighted_wait_time": weighted_mean(wait, area),
        "area_weighted_response_time": weighted_mean(response, area),
        "area_weighted_bounded_slowdown": weighted_mean(bounded, area),
        "mean_efficiency": mean(jobs["efficiency"].to_numpy()),
        "mean_allocated_processors": mean(jobs["allocated_processors"].to_numpy(np.float64)),
        "mean_requested_processors": mean(requested.astype(np.float64)),
        "restarts": int(jobs["restarts"].sum()),
        **_fairness(bounded, jobs["user"].to_numpy()),
        **_classes(jobs, bounded),
    }
