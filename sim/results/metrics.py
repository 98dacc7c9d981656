"""The summary of a run: flat, sorted, reproducible figures, over jobs and over the whole run."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray, Observation
from sim.results import outcome
from sim.results.lower_bounds import bound_figures, over_bounds
from sim.results.outcome import RECOVERY_PARTS, Outcome, Table, completed, held_area
from sim.results.steady_state import EPOCH, FEWEST, WINDOW, Figures, Trim, batch_means
from sim.state.records import LEAST_OBSERVED_SHARE, Records, are_among

NARROW_PROCESSORS = 8
SHORT_SECONDS = 3600.0
COUNT_BINS = (1, 2, 5, 9, 17, 33, 65, 129, 257, 513, 1025)
"""Least counts of the bins of allocated processors."""
FITTED_OBSERVATIONS = 2
"""Fewest observations behind a belief that is read off a fitted curve."""
PLAIN_METHODS = frozenset({"user_estimate", "requested_time", "oracle", "noisy_oracle"})
"""Methods whose beliefs are not read off a fitted curve."""
FALLBACK = "requested_time"
"""Method of a belief that is the request, as the predictor had no prediction of its own."""
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
    classes = _classes(jobs)
    return pd.Series(np.select([*classes.values()], [*classes], ""), index=jobs.index)


def narrow_processors(jobs: Table) -> int:
    """Return up to which request jobs are narrow: 8, or the median where none asks for so few.

    Examples
    --------
    >>> narrow_processors(pd.DataFrame({"requested_processors": [128, 256, 4096]}))
    256
    """
    requested = jobs["requested_processors"].to_numpy()
    all_wide = requested.size and requested.min() > NARROW_PROCESSORS
    return int(np.median(requested)) if all_wide else NARROW_PROCESSORS


def count_bin(counts: pd.Series) -> pd.Series:
    """Return the bin of each processor count in words.

    Examples
    --------
    >>> count_bin(pd.Series([1, 3, 8, 2000])).tolist()
    ['1', '2-4', '5-8', '1025 or more']
    """
    place = np.searchsorted(COUNT_BINS, counts.to_numpy(), side="right") - 1
    several = (f"{low}-{end - 1}" for low, end in pairwise(COUNT_BINS[1:]))
    names = ["1", *several, f"{COUNT_BINS[-1]} or more"]
    return pd.Series(np.array(names, dtype=object)[place], index=counts.index)


def spread(values: FloatArray, name: str) -> Figures:
    """Return mean and percentiles; the values are in another order afterwards."""
    keys = [f"{part}_{name}" for part in ("mean", "median", "p95", "p99", "max")]
    if not len(values):
        return dict.fromkeys(keys)
    average = float(values.mean())
    points = np.percentile(values, [50, 95, 99, 100], overwrite_input=True)
    return dict(zip(keys, [average, *map(float, points)], strict=True))


def mean(values: FloatArray | NDArray[np.bool_]) -> float | None:
    """Return the mean of the values that are defined, None without any."""
    missing = np.isnan(values)
    known = values[~missing] if missing.any() else values
    return float(known.mean()) if len(known) else None


def jain(values: FloatArray) -> float | None:
    """Return Jain's index (Σx)² / (N Σx²): 1 if all are equal, 1/N if one has all.

    Examples
    --------
    >>> jain(np.array([2.0, 2.0])), jain(np.array([1.0, 0.0]))
    (1.0, 0.5)
    """
    squares = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * squares) if squares > 0 else None


def _classes(jobs: Table) -> dict[str, NDArray[np.bool_]]:
    """Return which jobs are of each class, by the class's name."""
    narrow = jobs["requested_processors"].to_numpy() <= narrow_processors(jobs)
    short = jobs["reference_runtime"].to_numpy() <= SHORT_SECONDS
    return {
        f"{width}_{length}": wide & long
        for width, wide in (("narrow", narrow), ("wide", ~narrow))
        for length, long in (("short", short), ("long", ~short))
    }


def job_figures(jobs: Table) -> Figures:
    """Return the figures over the rows of a job table (columns of ``jobs.parquet``).

    Slowdowns divide by the recorded runtime at the reference count, so a policy
    does not improve them by running jobs slowly; per-processor bounded slowdown
    (Zotkin & Keleher) divides by the reference count as well. Jobs of zero seconds
    have no slowdown but a bounded one. Means by area
    weigh with reference count times recorded runtime, which no policy changes.
    Size classes cut at 8 processors and one hour, both of the reference.
    """
    reference = jobs["reference_runtime"].to_numpy()
    requested = jobs["requested_processors"].to_numpy()
    timed, area = reference > 0, requested * reference
    total = area.sum()
    classes, states = _classes(jobs), jobs["status"].value_counts()
    efficiency = jobs["efficiency"].to_numpy()
    figures: Figures = {
        "jobs": len(jobs),
        **{f"{kind}_jobs": int(states.get(kind, 0)) for kind in ("completed", "killed", "failed")},
        **{f"{name}_jobs": int(where.sum()) for name, where in classes.items()},
        **{f"{name}_mean_efficiency": mean(efficiency[own]) for name, own in classes.items()},
        "mean_efficiency": mean(efficiency),
        "mean_allocated_processors": mean(jobs["allocated_processors"].to_numpy(np.float64)),
        "mean_requested_processors": mean(requested.astype(np.float64)),
        "restarts": int(jobs["restarts"].sum()),
    }
    del efficiency
    for column in ("wait_time", "response_time", "bounded_slowdown"):
        values = jobs[column].to_numpy(copy=True)
        weighted = float((values * area).sum() / total) if total > 0 else None
        figures[f"area_weighted_{column}"] = weighted
        for name, where in classes.items():
            own = spread(values[where], column)
            figures |= {f"{name}_{part}": figure for part, figure in own.items()}
        if column == "response_time":
            figures |= spread(values[timed] / reference[timed], "slowdown")
            bound = np.maximum(reference, outcome.BOUND_SECONDS) * requested
            figures |= spread(np.maximum(1.0, values / bound), "processor_bounded_slowdown")
        if column == "bounded_slowdown":
            user = jobs["user"].to_numpy()
            index, _ = pd.factorize(user[user >= 0], sort=True)
            by_user = np.bincount(index, values[user >= 0]) / np.maximum(np.bincount(index), 1)
            fair = {"jain_slowdown": jain(values), "jain_users": jain(by_user)}
            figures |= {**fair, "users": len(by_user)}
        figures |= spread(values, column)
    return figures


def error_figures(predictions: Table) -> Figures:
    """Return the errors of a predictor's own predictions of completed last runs.

    Rows of ``predictions.parquet`` whose ``actual`` is null have no error.
    Requests that a predictor fell back on are none of its predictions: they have an error
    of their own, and ``share_own_predictions`` is that of the others among the starts.
    An error is |predicted - actual| / actual. A belief below the actual runtime
    counts as under, one above it as over; under and over keep their own mean.
    """
    actual, predicted = (predictions[name].to_numpy() for name in ("actual", "predicted"))
    own = (predictions["method"] != FALLBACK).to_numpy(np.bool_)
    known = np.isfinite(actual) & np.isfinite(predicted)
    every = np.abs(predicted - actual) / actual
    stated, error = every[known & ~own], every[known & own]
    under, over = (predicted < actual)[known & own], (predicted > actual)[known & own]
    some = len(error) > 0
    return {
        "predictions": len(error),
        "prediction_mape": mean(error),
        "prediction_median_error": float(np.median(error)) if some else None,
        "prediction_p90_error": float(np.percentile(error, 90)) if some else None,
        "prediction_within_20": mean(error <= NEAR),
        "prediction_p95_error": float(np.percentile(error, 95)) if some else None,
        "prediction_under_share": mean(under),
        "prediction_over_share": mean(over),
        "prediction_mean_under_error": mean(error[under]),
        "prediction_mean_over_error": mean(error[over]),
        "share_own_predictions": mean(own),
        "fallback_median_error": float(np.median(stated)) if len(stated) else None,
    }


def with_errors(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return what was predicted of jobs that were completed, with its relative error."""
    right = np.isfinite(predictions["actual"]) & (predictions["job_id"] >= 0)
    known: pd.DataFrame = predictions[right]
    return known.assign(error=(known["predicted"] - known["actual"]).abs() / known["actual"])


def waiting(timeline: Table, jobs: Table) -> FloatArray:
    """Return how many jobs wait from each instant of a timeline on, as tables count them.

    Calibration runs, whose numbers are negative, hold processors in pictures and tables alike,
    and are waiting jobs in neither.
    """
    own = np.asarray(jobs["job_id"]) < 0
    begin, end = (np.sort(np.asarray(jobs[k])[own]) for k in ("submit_time", "start_time"))
    submitted, started = (np.searchsorted(one, timeline["time"], "right") for one in (begin, end))
    return np.asarray(timeline["queued_jobs"], np.float64) - (submitted - started)


def belief_figures(predictions: Table) -> Figures:
    """Return how far beliefs were from runs at the very count they are about.

    Counted are beliefs read off a fitted curve at counts with three or more runs;
    off is more than a factor of 1.25 from their geometric mean. The share of the
    area is that of the processor-seconds of those among them that completed.
    """
    measured = (predictions["runs_at_count"].fillna(0) >= MEASURED_RUNS).to_numpy(np.bool_)
    measured &= ~predictions["method"].isin(PLAIN_METHODS).to_numpy(np.bool_)
    there = predictions[measured]
    ratio = np.log(there["predicted"].to_numpy() / there["mean_at_count"].to_numpy())
    off = np.abs(ratio) > OFF * (1 + 1e-12)
    area = (there["nprocs"] * there["actual"]).fillna(0.0).to_numpy()
    total = float(area.sum())
    return {
        "beliefs_at_measured_counts": len(there),
        "share_beliefs_off": mean(off),
        "area_share_beliefs_off": _ratio(float(area[off].sum()), total),
    }


def _shown_counts(records: Records) -> tuple[IntArray, IntArray]:
    """Return the job indices of completed runs and the counts that each of them showed."""
    held, wide = records.allocations, np.int64(1 << 32)
    last = completed(records)[held.job] & (held.run == records.restarts[held.job])
    pairs, place = np.unique(held.job[last] * wide + held.processors[last], return_inverse=True)
    spent = np.bincount(place, (held.end_time - held.start_time)[last])
    jobs, counts = np.divmod(pairs, wide)
    shown = spent >= LEAST_OBSERVED_SHARE * (records.end_time - records.run_start)[jobs]
    return jobs[shown], counts[shown]


def seen_share(run: Outcome, calibration: Sequence[Observation]) -> float:
    """Return the share of jobs whose application was seen at three counts before they started.

    It runs over the jobs that count. A completed run shows its application, from the
    instant of its end, at each count on which it spent a twentieth of its time or more; runs of
    the calibration are before the first submit.
    """
    truth, records = run.truth, run.records
    shown, at = _shown_counts(records)
    known = np.array([(o.application, o.nprocs) for o in calibration], np.int64).reshape(-1, 2)
    seen = pd.Series(np.append(np.full(len(known), -np.inf), records.end_time[shown]))
    pairs = [np.append(known[:, 0], truth.application[shown]), np.append(known[:, 1], at)]
    first = seen.groupby(pairs).min().sort_values(kind="stable")
    when = first.groupby(level=0).nth(SEEN_COUNTS - 1).droplevel(1)
    since = when.reindex(truth.application[run.own]).to_numpy()  # NaN where never
    return float((since <= records.start_time[run.own]).mean())


def learning_figures(run: Outcome, calibration: Sequence[Observation]) -> Figures:
    """Return how much there was to learn, over the jobs that count.

    A start is decided on a fitted curve if its belief rests on at least two
    observations, its method is none of the plain ones, and no rule left the request
    standing although there was a curve; the share is of all started runs, whether a
    predictor was asked or not.
    """
    truth, own, asked = run.truth, run.own, run.records.predictions
    _, uses = np.unique(truth.application[own], return_counts=True)
    plain = are_among(asked.method, PLAIN_METHODS)
    many = asked.observations >= FITTED_OBSERVATIONS
    fitted = run.counted[asked.job] & many & ~plain & asked.chosen_by_curve
    runs = int((run.records.restarts[own] + 1).sum())
    return {
        "applications": len(uses),
        "mean_jobs_per_application": float(uses.mean()),
        "median_jobs_per_application": float(np.median(uses)),
        "max_jobs_per_application": int(uses.max()),
        "share_seen_at_three_counts": seen_share(run, calibration),
        "share_fitted_starts": _ratio(float(fitted.sum()), runs),
        "share_assumed_serial_time": mean(truth.serial_time_assumed[own]),
        "share_moldable": mean(truth.moldable[own]),
        "share_malleable": mean(truth.malleable[own]),
    }


STATED = frozenset({"user_estimate", FALLBACK})
"""Methods of beliefs that are requests."""


def plain(value: object) -> float | int | bool | str | None:
    """Return a figure as JSON has it: plain types, None for what is not finite.

    Examples
    --------
    >>> plain(np.int64(3)), plain(np.float64("nan")), plain(np.True_)
    (3, None, True)
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(f"a summary holds numbers, text and null, not {type(value).__name__}")


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def recovery_figures(records: Records) -> Figures:
    """Return sums over all jobs, and their shares of the held area; nothing where none apply."""
    paid = records.failure_costs
    if paid is None:
        return {}
    area = float(held_area(records).sum())
    sums = {name: float(getattr(paid, name).sum()) for name in RECOVERY_PARTS}
    return {
        "evolving_jobs": int(paid.evolving.sum()),
        "unfinished_jobs": int((np.array(paid.failure_reason) != "").sum()),
        **sums,
        **{f"{name}_share": _ratio(total, area) for name, total in sums.items()},
    }


def asking_figures(records: Records) -> Figures:
    """Return what was asked, granted, and what it cost to go without; nothing where nobody may ask.

    Returns
    -------
    dict
        ``requests`` and how many of them were ``granted``, ``refused``, ``withdrawn``,
        and whatever the answer ``deferred``: answered later than they were made;
        ``requests_for_more``, ``…_fewer``, ``…_walltime`` and how many of each were
        granted; ``mean_grant_delay`` (s, from asking to getting; null without a grant);
        ``granted_processors``, ``returned_processors``, ``granted_walltime`` (s);
        ``denied_time`` (s that runs would have been spared on the processors that
        they asked for, by the truth) and ``denied_wait`` (s that jobs waited to go on
        after they ended at a limit which they had asked to have moved).
    """
    if records.requests is None:
        return {}
    asked = records.requests.asked
    got = [a for a in asked if a.outcome == "granted"]
    outcomes, kinds = Counter(a.outcome for a in asked), Counter(a.kind for a in asked)
    given, delays = Counter(a.kind for a in got), [a.answered - a.time for a in got]
    return {
        "requests": len(asked),
        **{f"requests_{one}": outcomes[one] for one in ("granted", "refused", "withdrawn")},
        "requests_deferred": sum(a.answered > a.time for a in asked),
        **{f"requests_for_{one}": kinds[one] for one in ("more", "fewer", "walltime")},
        **{f"requests_for_{one}_granted": given[one] for one in ("more", "fewer", "walltime")},
        "mean_grant_delay": float(np.mean(delays)) if delays else None,
        "granted_processors": sum(a.wanted - a.held for a in got if a.kind == "more"),
        "returned_processors": sum(a.held - a.wanted for a in got if a.kind == "fewer"),
        "granted_walltime": sum(a.wanted_seconds for a in got),
        "denied_time": sum(a.denied_time for a in asked),
        "denied_wait": records.requests.denied_wait,
    }


def whole_figures(run: Outcome) -> Figures:
    """Return the figures that count every job, calibration runs among them, and those over time."""
    records = run.records
    area = held_area(records)
    begin, end = float(records.submit_time.min()), float(records.end_time.max())
    runs = int((records.restarts + 1).sum())
    jobs, arrivals = run.trace.jobs[run.own], records.submit_time[run.own]
    first, last = float(arrivals.min()), float(arrivals.max())
    span = (last - first) * records.processors
    work = (jobs["requested_processors"] * jobs["reference_runtime"]).to_numpy(np.float64)
    serial, whole = run.truth.serial_time, records.processors * (end - begin)
    known = run.counted & np.isfinite(serial)
    done = float(serial[known & completed(records)].sum())  # on one processor each
    return {
        "makespan": end - begin,
        "held_area": float(area.sum()),
        "processors": records.processors,
        "reallocations": len(records.allocations.job) - runs,
        **recovery_figures(records),
        **asking_figures(records),
        "system_efficiency": _ratio(done, float(area[known].sum())),
        "useful_utilization": _ratio(done, whole) if known[run.counted].all() else None,
        "offered_load": _ratio(float(work.sum()), span),
        "work_load": _ratio(float(serial[run.counted].sum()), span),
        **outcome.machine_figures(run.steps, records.processors, begin, end),
        **outcome.settling_figures(run.steps, first, last, work),
    }


def treatment_figures(run: Outcome) -> Figures:
    """Return how many jobs were treated otherwise than they asked, and on what beliefs.

    Jobs are molded that start on other processors than they request, below requests on fewer
    than any job requests, resized that have others while a run lasts. Decisions by belief are
    starts decided on a prediction of the predictor's own, be it an oracle's.
    """
    records, held, counted = run.records, run.records.allocations, run.counted
    asked, requested = records.predictions, run.trace.jobs["requested_processors"].to_numpy()
    several = np.bincount(held.job)[held.job] > 1
    job, number, size = (v[several] for v in (held.job, held.run, held.processors))
    counts = pd.Series(size).groupby([job, number]).nunique()
    resized = np.unique(counts.index.get_level_values(0)[counts > 1])
    read = counted[asked.job] & asked.chosen_by_curve & ~are_among(asked.method, STATED)
    return {
        "molded_jobs": int((counted & (records.allocated != requested)).sum()),
        "jobs_below_requests": int((counted & (records.allocated < requested.min())).sum()),
        "resized_jobs": int(counted[resized].sum()),
        "decisions_by_belief": int(read.sum()),
    }


def slug(reason: str) -> str:
    """Return a reason in words as a part of a key.

    Examples
    --------
    >>> slug("wider than the machine")
    'wider_than_the_machine'
    """
    return re.sub(r"[^a-z0-9]+", "_", reason.lower()).strip("_")


def _cleaning(run: Outcome) -> Figures:
    figures: Figures = {"processors_by": "recorded"} if run.trace.size_by_use else {}
    told = {"dropped_jobs": run.trace.dropped, "repaired_values": run.trace.repaired}
    for name, counts in told.items():
        figures[name] = sum(counts.values())
        figures |= {f"{name}_{slug(reason)}": count for reason, count in counts.items()}
    return figures


DRAWN_AGAIN = "as no window is left"
"""How the reason ends why the times of weeks that were drawn again are not the log's."""


def window_figures(run: Outcome) -> Figures:
    """Return where a window of a log begins, and its dates; null of models, weeks drawn again."""
    drawn = (run.trace.altered or "").endswith(DRAWN_AGAIN)
    jobs = run.trace.jobs[run.own]
    known = not drawn and run.trace.is_recorded
    epoch = run.trace.epoch if known else None
    return {WINDOW: jobs["submit_time"].min() if known else None, EPOCH: epoch}


def recorded_figures(run: Outcome) -> Figures:
    """Return what the log says of its jobs' waits, over those of which it says it.

    ``recorded_times_kept`` tells whether submits are the log's own too, so that
    the run's figures answer to them; nothing on logs without waits.
    """
    jobs = run.trace.jobs[run.own]
    kept = run.trace.altered is None
    if "recorded_wait_time" in jobs:
        jobs = jobs[jobs["recorded_wait_time"] >= 0]
    if "recorded_wait_time" not in jobs or jobs.empty:
        return {} if kept else {"recorded_times_kept": False}
    wait, runtime = (jobs[k].to_numpy() for k in ("recorded_wait_time", "reference_runtime"))
    response = wait + runtime
    return {
        "recorded_times_kept": kept,
        "recorded_mean_wait_time": mean(wait),
        "recorded_mean_response_time": mean(response),
        "recorded_mean_bounded_slowdown": mean(outcome.bounded(response, runtime)),
    }


def steady_figures(run: Outcome, trim: Trim) -> Figures:
    """Return the ``steady_*`` twins: the rule is in `Trim`; nothing if nothing is trimmed."""
    if trim == Trim():
        return {}
    jobs, predictions = run.tables.columns("jobs"), run.tables.columns("predictions")
    jobs = jobs[jobs["job_id"] >= 0]
    inside = np.zeros(len(jobs), np.bool_)
    inside[trim.window(len(jobs))] = True
    kept = jobs[inside]
    begin, end = (float(kept["submit_time"].iloc[row]) for row in (0, -1))
    predictions = predictions[predictions["job_id"].isin(kept["job_id"])]
    figures = {
        **job_figures(kept),
        **outcome.machine_figures(run.steps, run.records.processors, begin, end),
        **error_figures(predictions),
        **belief_figures(predictions),
        **batch_figures(kept),
    }
    return {f"steady_{key}": value for key, value in figures.items()}


def batch_figures(jobs: Table) -> Figures:
    """Return how sure the means of one run are, by means of batches of jobs in submit order.

    These are half-widths of 95 % intervals of three means over jobs without the warm-up, the
    least number of batches that they rest on, and whether any batches are still correlated: the
    run is then too short for its intervals. Nothing below 100 jobs.
    """
    if len(jobs) < FEWEST:
        return {}
    found = {
        column: batch_means(jobs[column].to_numpy(float))
        for column in ("wait_time", "response_time", "bounded_slowdown")
    }
    return {
        **{f"mean_{column}_half_width": one.interval.half for column, one in found.items()},
        "batches": min(one.batches for one in found.values()),
        "batches_correlated": any(one.correlated for one in found.values()),
    }


def _merge(parts: Sequence[Mapping[str, object]]) -> Figures:
    figures: Figures = {}
    for part in parts:
        twice = sorted(figures.keys() & part.keys())
        if twice:
            raise ValueError(f"two figures of the summary have one key: {', '.join(twice)}")
        figures |= {key: plain(value) for key, value in part.items()}
    return dict(sorted(figures.items()))


def summarise(
    run: Outcome,
    *,
    trim: Trim | None = None,
    calibration: Sequence[Observation] = (),
    calibration_area: float = 0.0,
    more: Mapping[str, object] | None = None,
) -> Figures:
    """Return the summary of a run, sorted by key; undefined figures are None.

    Parameters
    ----------
    run : Outcome
    trim : Trim, optional
        What the ``steady_*`` twins leave out; without it there are none.
    calibration : sequence of Observation
        Runs that predictors saw before the first submit.
    calibration_area : float, processor-seconds
        What those runs held; that of calibration jobs in the trace is added.
    more : mapping, optional
        Further keys, such as the choices of the configuration.

    Returns
    -------
    dict
        Plain numbers, text and None by key.

    Raises
    ------
    ValueError
        If a counter or a key of `more` is the name of another figure.

    Examples
    --------
    >>> import sim, workloads
    >>> from predictors.in_loop.user_estimate import UserEstimate
    >>> from workloads.shapes.family import NoMoldability
    >>> streams = workloads.Streams(seed=1, replication=0)
    >>> trace = workloads.Lublin(jobs=20).trace(streams, 64)
    >>> truth = workloads.build_truth(trace, NoMoldability(), streams, 64)
    >>> policy = sim.Policy(sim.FirstComeFirstServed(), sim.Easy(), sim.Request())
    >>> setup = sim.Setup(trace, truth, policy, UserEstimate(), sim.Dedicated(64))
    >>> ended = sim.outcome(trace, truth, sim.simulate(setup))
    >>> summary = sim.summarise(ended)
    >>> summary["jobs"], summary["dropped_jobs"]
    (20, 0)
    """
    jobs, predictions = run.tables.columns("jobs"), run.tables.columns("predictions")
    predictions = predictions[predictions["job_id"] >= 0]
    charged = jobs["job_id"] < 0
    own = _merge([job_figures(jobs[~charged]), whole_figures(run), bound_figures(run)])
    return _merge(
        [
            own,
            over_bounds(own),
            error_figures(predictions),
            belief_figures(predictions),
            treatment_figures(run),
            learning_figures(run, calibration),
            {"calibration_area": calibration_area + float(jobs["held_area"][charged].sum())},
            _cleaning(run),
            recorded_figures(run),
            window_figures(run),
            steady_figures(run, trim or Trim()),
            run.records.counters,
            more or {},
        ]
    )
