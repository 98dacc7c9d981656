"""What a run leaves behind, as tables with the contract's columns."""

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictors.base import FloatArray
from sim.results.steps import Steps
from sim.state.processors import NodeSets
from sim.state.records import Records
from workloads.base import GroundTruth, Trace

BOUND_SECONDS = 10.0
"""Runtimes below this count as this in bounded slowdowns (policies: tau)."""


RECOVERY_PARTS = ("lost_work", "checkpoint_overhead", "restart_overhead")
"""Areas, processor-seconds, that failures, limits and checkpoints cost."""


@dataclass(frozen=True)
class Tables:
    """The four tables of a run; times in seconds, areas in processor-seconds.

    Attributes
    ----------
    jobs : pandas.DataFrame
        A row a job, in submit order.
    allocations : pandas.DataFrame
        A row for each stretch of constant allocation, in order of its start.
    timeline : pandas.DataFrame
        A row a change of machine or queue.
    predictions : pandas.DataFrame
        A row for each started run that a predictor was asked about.
    """

    jobs: pd.DataFrame
    allocations: pd.DataFrame
    timeline: pd.DataFrame
    predictions: pd.DataFrame


def completed(records: Records) -> NDArray[np.bool_]:
    """Return which jobs ended by themselves, shape (n,)."""
    return np.fromiter(
        (s == "completed" for s in records.status), dtype=np.bool_, count=len(records.status)
    )


def held_area(records: Records) -> FloatArray:
    """Return the processor-seconds that each job held over all its runs, shape (n,)."""
    held = records.stretches
    area = held.processors * (held.end_time - held.start_time)
    return np.bincount(held.job, area, len(records.submit_time)).astype(np.float64)


def _efficiency(truth: GroundTruth, records: Records, area: FloatArray) -> FloatArray:
    known = completed(records) & (area > 0)
    efficiency = np.full(len(area), np.nan)
    efficiency[known] = truth.serial_time[known] / area[known]
    return efficiency


def recovery_columns(records: Records) -> pd.DataFrame:
    """Return what failures and limits cost each job; no column where nothing could.

    Returns
    -------
    pandas.DataFrame
        ``evolving``, ``lost_work``, ``checkpoint_overhead``, ``restart_overhead``
        (processor-seconds) and ``reason``, by job index.
    """
    paid = records.recoveries
    if paid is None:
        return pd.DataFrame(index=pd.RangeIndex(len(records.submit_time)))
    columns: dict[str, object] = {"evolving": paid.evolving}
    columns |= {name: getattr(paid, name) for name in RECOVERY_PARTS}
    return pd.DataFrame(columns | {"reason": pd.Series(paid.reason, dtype="str")})


def recorded_columns(trace: Trace) -> pd.DataFrame:
    """Return when the log says that each job started; no column where it says it of none.

    Where submit times are scaled, a job's recorded wait follows its scaled submit.
    """
    jobs = trace.jobs
    if "recorded_wait_time" not in jobs or (jobs["recorded_wait_time"] < 0).all():
        return pd.DataFrame(index=jobs.index)
    start = jobs["submit_time"] + jobs["recorded_wait_time"]
    return pd.DataFrame({"recorded_start_time": start.where(jobs["recorded_wait_time"] >= 0)})


def jobs_frame(trace: Trace, truth: GroundTruth, records: Records) -> pd.DataFrame:
    """Return the table of ``jobs.parquet``: a row a job, in submit order."""
    jobs = trace.jobs
    reference = jobs["reference_runtime"].to_numpy()
    response = records.end_time - records.submit_time
    area = held_area(records)
    frame = pd.DataFrame(
        {
            "job_id": jobs["job_id"].to_numpy(),
            "user": jobs["user"].to_numpy(),
            "application": truth.application,
            "size": truth.size,
            "submit_time": records.submit_time,
            "start_time": records.start_time,
            "end_time": records.end_time,
            "wait_time": records.start_time - records.submit_time,
            "response_time": response,
            "bounded_slowdown": np.maximum(1.0, response / np.maximum(reference, BOUND_SECONDS)),
            "requested_processors": jobs["requested_processors"].to_numpy(),
            "requested_time": jobs["requested_time"].to_numpy(),
            "reference_runtime": reference,
            "allocated_processors": records.allocated,
            "runtime": records.end_time - records.run_start,
            "held_area": area,
            "efficiency": _efficiency(truth, records, area),
            "believed_runtime": records.believed_runtime,
            "status": pd.Series(records.status, dtype="str"),
            "restarts": records.restarts,
        }
    )
    frame = pd.concat([frame, recovery_columns(records), recorded_columns(trace)], axis=1)
    if (np.diff(records.submit_time) < 0).any():  # feedback can change the order
        return frame.sort_values("submit_time", kind="stable", ignore_index=True)
    return frame


def allocations_frame(trace: Trace, records: Records) -> pd.DataFrame:
    """Return the table of ``allocations.parquet``: a row a stretch of constant allocation.

    ``nodes`` is null where nobody says which processors a job held.
    """
    held = records.stretches
    return pd.DataFrame(
        {
            "job_id": trace.jobs["job_id"].to_numpy()[held.job],
            "run": held.run,
            "start_time": held.start_time,
            "end_time": held.end_time,
            "processors": held.processors,
            "nodes": pd.Series(NodeSets.of(held.nodes).texts(), dtype="str").replace("", None),
        }
    )


def timeline_frame(state: Steps) -> pd.DataFrame:
    """Return the table of ``timeline.parquet``: a row a change of machine or queue."""
    columns = (state.busy, state.queued_jobs, state.queued_processors)
    changed = np.zeros(len(state.times), np.bool_)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return pd.DataFrame(
        {
            "time": state.times[changed],
            "busy_processors": state.busy[changed],
            "queued_jobs": state.queued_jobs[changed],
            "queued_processors": state.queued_processors[changed],
        }
    )


def _actual(truth: GroundTruth, records: Records) -> FloatArray:
    """Return what each consulted run took at the count it started on, NaN if that is nothing.

    Runs that did not end and those of zero seconds say nothing of a prediction.
    A run that kept its processors took what the clock says; one that was
    resized would have taken the ground truth's time. Where the clock agrees
    with the ground truth up to its own rounding, the latter is exact.
    """
    asked, held = records.consultations, records.stretches
    pieces = np.bincount(held.job, minlength=len(records.submit_time))
    resized = pieces > records.restarts + 1
    exact = truth.runtimes_at(asked.job, asked.nprocs)
    end = records.end_time[asked.job]
    clock = end - records.run_start[asked.job]
    agrees = np.abs(clock - exact) <= 4 * np.spacing(np.abs(end) + clock)
    actual = np.where(agrees | resized[asked.job], exact, clock)
    ended = asked.final & completed(records)[asked.job]
    return np.where(ended & (actual > 0), actual, np.nan)


def predictions_frame(trace: Trace, truth: GroundTruth, records: Records) -> pd.DataFrame:
    """Return the table of ``predictions.parquet``: a row for each started run asked about."""
    asked = records.consultations
    measured = asked.runs_at_count > 0
    return pd.DataFrame(
        {
            "job_id": trace.jobs["job_id"].to_numpy()[asked.job],
            "time": asked.time,
            "application": truth.application[asked.job],
            "nprocs": asked.nprocs,
            "size": truth.size[asked.job],
            "predicted": asked.predicted,
            "actual": _actual(truth, records),
            "method": pd.Series(asked.method, dtype="str"),
            "observations": asked.observations,
            "reliability": pd.Series(asked.reliability, dtype="str"),
            "runs_at_count": pd.Series(asked.runs_at_count, dtype="Int64").where(measured),
            "mean_at_count": np.where(measured, asked.mean_at_count, np.nan),
        }
    )


def _files(folder: Path) -> list[Path]:
    return [folder / f"{field.name}.parquet" for field in fields(Tables)]


def has_tables(folder: Path) -> bool:
    """Say whether all tables of a simulation are in a folder."""
    return all(path.is_file() for path in _files(folder))


def read_tables(folder: Path) -> Tables:
    """Return the tables of a simulation as its folder has them."""
    return Tables(*map(pd.read_parquet, _files(folder)))


def tables(trace: Trace, truth: GroundTruth, records: Records, state: Steps) -> Tables:
    """Return the four tables of a run, `state` being that of all its jobs."""
    return Tables(
        jobs_frame(trace, truth, records),
        allocations_frame(trace, records),
        timeline_frame(state),
        predictions_frame(trace, truth, records),
    )
