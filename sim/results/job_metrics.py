"""Figures over jobs: waits, slowdowns, efficiency, fairness, size classes, predictions."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray, Observation
from sim.results.frames import BOUND_SECONDS, Columns, completed
from sim.state.records import SHOWN_SHARE, Records
from workloads.base import GroundTruth

Figures = dict[str, float | int | bool | str | None]
"""Flat figures by key; None where a figure is undefined."""

NARROW_PROCESSORS = 8
SHORT_SECONDS = 3600.0
COUNT_BINS = (1, 2, 5, 9, 17, 33, 65, 129, 257, 513, 1025)
"""Least counts of the bins of allocated processors."""
FITTED_OBSERVATIONS = 2
"""Fewest observations behind a belief that is read off a fitted curve."""
PLAIN_METHODS = frozenset({"user_estimate", "requested_time", "oracle", "noisy_oracle"})
"""Methods whose beliefs are not read off a fitted curve."""
MEASURED_RUNS = 3
"""Fewest runs at a count that a belief there is compared with."""
OFF = np.log(1.25)
"""A belief that is further from their geometric mean, as a logarithm, is off."""
NEAR = 0.2
"""Relative error up to which a belief counts as near."""
SEEN_COUNTS = 3
"""Distinct processor counts after which an application counts as seen."""


def job_class(jobs: pd.DataFrame) -> pd.Series:
    """Return the class of each job by its request, as summaries name them.

    Examples
    --------
    >>> jobs = pd.DataFrame({"requested_processors": [4, 64], "reference_runtime": [60.0, 9e4]})
    >>> job_class(jobs).tolist()
    ['narrow_short', 'wide_long']
    """
    width = np.where(jobs["requested_processors"] <= NARROW_PROCESSORS, "narrow_", "wide_")
    length = np.where(jobs["reference_runtime"] <= SHORT_SECONDS, "short", "long")
    return pd.Series(np.char.add(width, length), index=jobs.index)


def count_bin(counts: pd.Series) -> pd.Series:
    """Return the bin of each processor count in words.

    Examples
    --------
    >>> count_bin(pd.Series([1, 3, 8, 2000])).tolist()
    ['1', '2-4', '5-8', '1025 or more']
    """
    edges = np.array(COUNT_BINS)
    place = np.searchsorted(edges, counts.to_numpy(), side="right") - 1
    last = len(edges) - 1
    names = [
        f"{low}" if high == low else f"{low}-{high}"
        for low, high in zip(edges[:-1].tolist(), (edges[1:] - 1).tolist(), strict=True)
    ]
    names.append(f"{edges[last]} or more")
    return pd.Series(np.array(names, dtype=object)[place], index=counts.index)


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


def _classes(jobs: pd.DataFrame | Columns, slowdown: FloatArray) -> Figures:
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


def job_figures(jobs: pd.DataFrame | Columns) -> Figures:
    """Return the figures over the rows of a job table (columns of ``jobs.parquet``).

    Slowdowns divide by the recorded runtime at the reference count, so a policy
    does not improve them by running jobs slowly; per-processor bounded slowdown
    (Zotkin & Keleher) divides by the reference count as well. Jobs of zero seconds
    have no slowdown but a bounded one. Means by area
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
    timed = reference > 0
    states = jobs["status"].value_counts()
    return {
        "jobs": len(jobs),
        **{f"{kind}_jobs": int(states.get(kind, 0)) for kind in ("completed", "killed", "failed")},
        **_spread(wait, "wait_time"),
        **_spread(response, "response_time"),
        **_spread(response[timed] / reference[timed], "slowdown"),
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


def error_figures(predictions: pd.DataFrame | Columns) -> Figures:
    """Return the errors of the beliefs of completed last runs.

    Parameters
    ----------
    predictions : pandas.DataFrame or Columns
        Those of ``predictions.parquet``; rows whose ``actual`` is null do not count.

    Notes
    -----
    An error is |predicted - actual| / actual. A belief below the actual runtime
    counts as under, one above it as over; under and over keep their own mean.
    """
    actual = predictions["actual"].to_numpy()
    known = np.isfinite(actual) & np.isfinite(predictions["predicted"].to_numpy())
    actual, predicted = actual[known], predictions["predicted"].to_numpy()[known]
    error = np.abs(predicted - actual) / actual
    under, over = predicted < actual, predicted > actual
    some = len(error) > 0
    return {
        "predictions": len(error),
        "prediction_mape": mean(error),
        "prediction_median_error": float(np.median(error)) if some else None,
        "prediction_p90_error": float(np.percentile(error, 90)) if some else None,
        "prediction_within_20": float((error <= NEAR).mean()) if some else None,
        "prediction_p95_error": float(np.percentile(error, 95)) if some else None,
        "prediction_under_share": float(under.mean()) if some else None,
        "prediction_over_share": float(over.mean()) if some else None,
        "prediction_mean_under_error": mean(error[under]),
        "prediction_mean_over_error": mean(error[over]),
    }


def belief_figures(predictions: pd.DataFrame | Columns) -> Figures:
    """Return how far beliefs were from runs at the very count they are about.

    Parameters
    ----------
    predictions : pandas.DataFrame or Columns
        Those of ``predictions.parquet``.

    Notes
    -----
    Counted are beliefs read off a fitted curve at counts with three or more runs;
    off is more than a factor of 1.25 from their geometric mean. The share of the
    area is that of the processor-seconds of those among them that completed.
    """
    runs = predictions["runs_at_count"].fillna(0).to_numpy(np.int64)
    plain = predictions["method"].isin(PLAIN_METHODS).to_numpy(np.bool_)
    there = predictions[(runs >= MEASURED_RUNS) & ~plain]
    ratio = np.log(there["predicted"].to_numpy() / there["mean_at_count"].to_numpy())
    off = np.abs(ratio) > OFF * (1 + 1e-12)
    area = (there["nprocs"] * there["actual"]).fillna(0.0).to_numpy()
    total = float(area.sum())
    return {
        "beliefs_at_measured_counts": len(there),
        "share_beliefs_off": float(off.mean()) if len(there) else None,
        "area_share_beliefs_off": float(area[off].sum()) / total if total > 0 else None,
    }


def _first_seen(application: IntArray, nprocs: IntArray, time: FloatArray) -> pd.Series:
    """Return when each application had been seen at three distinct counts, by application."""
    seen = pd.DataFrame({"application": application, "nprocs": nprocs, "time": time})
    first = seen.groupby(["application", "nprocs"], as_index=False).agg({"time": "min"})
    ordered = first.sort_values("time", kind="stable").groupby("application")
    nth = ordered.nth(SEEN_COUNTS - 1)
    return pd.Series(nth["time"].to_numpy(), index=nth["application"].to_numpy())


def _shown_counts(records: Records) -> tuple[IntArray, IntArray]:
    """Return the job indices of completed runs and the counts that each of them showed."""
    held = records.stretches
    last = completed(records)[held.job] & (held.run == records.restarts[held.job])
    if len(held.job) == len(records.submit_time) and not records.restarts.any():
        return held.job[last], held.processors[last]  # each on one count from start to end
    spent = pd.DataFrame(
        {
            "job": held.job[last],
            "nprocs": held.processors[last],
            "seconds": (held.end_time - held.start_time)[last],
        }
    )
    spent = spent.groupby(["job", "nprocs"], as_index=False).agg({"seconds": "sum"})
    whole = (records.end_time - records.run_start)[spent["job"].to_numpy()]
    spent = spent[spent["seconds"].to_numpy() >= SHOWN_SHARE * whole]
    return spent["job"].to_numpy(), spent["nprocs"].to_numpy()


def seen_share(
    truth: GroundTruth,
    records: Records,
    calibration: Sequence[Observation],
    counted: IntArray,
) -> float | None:
    """Return the share of jobs whose application was seen at three counts before they started.

    Parameters
    ----------
    truth : GroundTruth
    records : Records
    calibration : sequence of Observation
        Runs before the first submit.
    counted : numpy.ndarray of int
        Job indices over which the share runs.

    Notes
    -----
    A completed run shows its application, from the instant of its end, at each
    count on which it spent a twentieth of its time or more.
    """
    if not len(counted):
        return None
    shown, at = _shown_counts(records)
    extra = [(o.application, o.nprocs) for o in calibration]
    before = np.array(extra, dtype=np.int64).reshape(-1, 2)
    when = _first_seen(
        np.concatenate([truth.application[shown], before[:, 0]]),
        np.concatenate([at, before[:, 1]]),
        np.concatenate([records.end_time[shown], np.full(len(before), -np.inf)]),
    )
    known = when.reindex(truth.application[counted]).fillna(np.inf).to_numpy()
    return float((known <= records.start_time[counted]).mean())


def learning_figures(
    truth: GroundTruth,
    records: Records,
    calibration: Sequence[Observation],
    counted: IntArray,
) -> Figures:
    """Return how much there was to learn, over the job indices `counted`.

    A start is decided on a fitted curve if its belief rests on at least two
    observations, its method is none of the plain ones, and no rule left the request
    standing although there was a curve; the share is of all started runs, whether a
    predictor was asked or not.
    """
    asked = records.consultations
    _, uses = np.unique(truth.application[counted], return_counts=True)
    plain = np.fromiter((m in PLAIN_METHODS for m in asked.method), np.bool_, len(asked.method))
    ours = np.zeros(len(records.submit_time), np.bool_)
    ours[counted] = True
    fitted = ours[asked.job] & (asked.observations >= FITTED_OBSERVATIONS) & ~plain & asked.decided
    runs = int((records.restarts[counted] + 1).sum())
    assumed = truth.serial_time_assumed[counted]
    return {
        "applications": len(uses),
        "mean_jobs_per_application": float(uses.mean()) if len(uses) else None,
        "median_jobs_per_application": float(np.median(uses)) if len(uses) else None,
        "max_jobs_per_application": int(uses.max(initial=0)),
        "share_seen_at_three_counts": seen_share(truth, records, calibration, counted),
        "share_fitted_starts": float(fitted.sum()) / runs if runs else None,
        "share_assumed_serial_time": float(assumed.mean()) if len(counted) else None,
        "share_moldable": float(truth.moldable[counted].mean()) if len(counted) else None,
        "share_malleable": float(truth.malleable[counted].mean()) if len(counted) else None,
    }
