"""The summary of a run: flat, sorted, reproducible figures."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from predictors.base import FloatArray, Observation
from sim.results.frames import RECOVERY_PARTS, Table, bounded, completed, held_area
from sim.results.job_metrics import (
    FALLBACK,
    Figures,
    belief_figures,
    error_figures,
    job_figures,
    learning_figures,
    mean,
)
from sim.results.lower_bounds import bound_figures, over_bounds
from sim.results.outcome import Outcome, machine_figures, settling_figures
from sim.results.steady_state import EPOCH, LEAST_BATCH, NUMBERS, STEADY, WINDOW, Trim, batch_means
from sim.state.records import Records, are

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


def _efficiencies(run: Outcome, area: FloatArray, total: float) -> Figures:
    """Return Σ T(1) over held and over all processor-seconds, of jobs whose T(1) is known."""
    serial = run.truth.serial_time
    known = run.counted & np.isfinite(serial)
    done = float(serial[known & completed(run.records)].sum())
    some, every = bool(known.any()), bool(known[run.counted].all())
    return {
        "system_efficiency": _ratio(done, float(area[known].sum())) if some else None,
        "useful_utilization": _ratio(done, total) if some and every else None,
    }


def recovery_figures(records: Records) -> Figures:
    """Return sums over all jobs, and their shares of the held area; nothing where none apply."""
    paid = records.recoveries
    if paid is None:
        return {}
    area = float(held_area(records).sum())
    sums = {name: float(getattr(paid, name).sum()) for name in RECOVERY_PARTS}
    shares = {f"{name}_share": total / area if area > 0 else None for name, total in sums.items()}
    return {
        "evolving_jobs": int(paid.evolving.sum()),
        "unfinished_jobs": int((np.array(paid.reason) != "").sum()),
        **sums,
        **shares,
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
        "granted_walltime": sum(a.seconds for a in got),
        "denied_time": sum(a.denied_time for a in asked),
        "denied_wait": records.requests.denied_wait,
    }


def whole_figures(run: Outcome) -> Figures:
    """Return the figures that count every job, calibration runs among them, and those over time."""
    records = run.records
    if not len(records.submit_time):
        empty: Figures = {"makespan": None, "held_area": 0.0, "processors": records.processors}
        return empty | {STEADY: None}
    area = held_area(records)
    begin, end = float(records.submit_time.min()), float(records.end_time.max())
    runs = int((records.restarts + 1).sum())
    jobs, arrivals = run.trace.jobs[run.own], records.submit_time[run.own]
    first, last = (float(arrivals.min()), float(arrivals.max())) if len(arrivals) else (0.0, 0.0)
    span = (last - first) * records.processors
    work = (jobs["requested_processors"] * jobs["reference_runtime"]).to_numpy(np.float64)
    return {
        "makespan": end - begin,
        "held_area": float(area.sum()),
        "processors": records.processors,
        "reallocations": len(records.stretches.job) - runs,
        **recovery_figures(records),
        **asking_figures(records),
        **_efficiencies(run, area, records.processors * (end - begin)),
        "offered_load": _ratio(float(work.sum()), span),
        "work_load": _ratio(float(run.truth.serial_time[run.counted].sum()), span),
        **machine_figures(run.steps, records.processors, begin, end),
        **settling_figures(run.steps, first, last, work),
    }


def treatment_figures(run: Outcome) -> Figures:
    """Return how many jobs were treated otherwise than they asked, and on what beliefs.

    Jobs are molded that start on other processors than they request, below requests on fewer
    than any job requests, resized that have others while a run lasts. Decisions by belief are
    starts decided on a prediction of the predictor's own, be it an oracle's.
    """
    records, held, counted = run.records, run.records.stretches, run.counted
    asked, requested = records.consultations, run.trace.jobs["requested_processors"].to_numpy()
    several = np.flatnonzero(np.bincount(held.job)[held.job] > 1)
    order = several[np.lexsort([v[several] for v in (held.start_time, held.run, held.job)])]
    job, number, size = (v[order] for v in (held.job, held.run, held.processors))
    same_run = (job[1:] == job[:-1]) & (number[1:] == number[:-1])
    resized = np.unique(job[1:][same_run & (size[1:] != size[:-1])])
    read = counted[asked.job] & asked.decided & ~are(asked.method, STATED)
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
    known = not drawn and run.trace.is_recorded and len(jobs) > 0
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
        "recorded_mean_bounded_slowdown": mean(bounded(response, runtime)),
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
        **machine_figures(run.steps, run.records.processors, begin, end),
        **error_figures(predictions),
        **belief_figures(predictions),
        **batch_figures(kept),
    }
    return {f"steady_{key}": value for key, value in figures.items()}


def batch_figures(jobs: Table) -> Figures:
    """Return how sure the means of one run are, by means of batches of jobs in submit order.

    Parameters
    ----------
    jobs : pandas.DataFrame or Columns
        Those of ``jobs.parquet``, the warm-up left out.

    Returns
    -------
    dict
        Half-widths of 95 % intervals of three means, the least number of
        batches that they rest on, and whether any batches are still correlated:
        the run is then too short for its intervals. Nothing below 100 jobs.
    """
    if len(jobs) < LEAST_BATCH * NUMBERS[-1]:
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
    charged, counted = jobs["job_id"] < 0, np.flatnonzero(run.counted)
    own = [job_figures(jobs[~charged]), whole_figures(run), bound_figures(run)]
    return _merge(
        [
            *own,
            over_bounds(_merge(own)),
            error_figures(predictions),
            belief_figures(predictions),
            treatment_figures(run),
            learning_figures(run.truth, run.records, calibration, counted),
            {"calibration_area": calibration_area + float(jobs["held_area"][charged].sum())},
            _cleaning(run),
            recorded_figures(run),
            window_figures(run),
            steady_figures(run, trim or Trim()),
            run.records.counters,
            more or {},
        ]
    )
