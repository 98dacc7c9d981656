"""A schedule in the formats of other tools: Batsim's and evalys' table, and SWF.

References
----------
Batsim's documentation, "Output files", ``_jobs.csv``; evalys, class ``JobSet``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from sim.errors import ConfigError
from sim.results.artefacts import REQUESTS, write_table
from sim.results.outcome import Outcome, requests_frame
from workloads.logs.swf import log_of_schedule, write_swf

FORMATS: Mapping[str, str] = {"csv": "jobs.csv", "swf": "schedule.swf"}
"""What ``export`` may name, and the file that it writes."""

_FINAL = {"completed": "COMPLETED_SUCCESSFULLY", "killed": "COMPLETED_WALLTIME_REACHED"}


def check_formats(names: Sequence[str]) -> None:
    """Refuse names that are no format.

    Raises
    ------
    ConfigError
        Naming the key ``export``.
    """
    for name in names:
        if name not in FORMATS:
            raise ConfigError(f"export={name}: allowed are {', '.join(FORMATS)}, or [] for none")


def batsim_table(jobs: pd.DataFrame, allocations: pd.DataFrame) -> pd.DataFrame:
    """Return a schedule in the columns of Batsim's ``_jobs.csv``, which evalys reads.

    Parameters
    ----------
    jobs, allocations : pandas.DataFrame
        Columns of ``jobs.parquet`` and ``allocations.parquet``.

    Returns
    -------
    pandas.DataFrame
        A row for each stretch of constant allocation, in order of job and start.
        A job that was neither resized nor restarted has one; further stretches
        of a job have ``!1``, ``!2`` behind its number. Stretch (the column) is
        turnaround over execution time, as in Batsim.

    Examples
    --------
    >>> jobs = pd.DataFrame({"job_id": [7], "submit_time": [0.0], "requested_processors": [2],
    ...     "requested_time": [60.0], "status": ["completed"]})
    >>> held = pd.DataFrame({"job_id": [7], "run": [0], "start_time": [5.0], "end_time": [15.0],
    ...     "processors": [2], "nodes": ["0,4"]})
    >>> batsim_table(jobs, held).loc[0, "allocated_resources"]
    '0 4'
    """
    position = pd.Series(range(len(jobs)), index=jobs["job_id"])
    held = allocations.assign(place=position.reindex(allocations["job_id"]).to_numpy())
    held = held.sort_values(["place", "start_time"], kind="stable", ignore_index=True)
    owner = jobs.iloc[held["place"].to_numpy()].reset_index(drop=True)
    number = held.groupby("job_id").cumcount()
    last = ~held["job_id"].duplicated(keep="last")
    begin, end, submit = held["start_time"], held["end_time"], owner["submit_time"]
    identifier = held["job_id"].astype(str)
    status = owner["status"].where(last, "completed")
    return pd.DataFrame(
        {
            "job_id": identifier.where(number == 0, identifier + "!" + number.astype(str)),
            "workload_name": "moldsim",
            "profile": (end - begin).map(repr).radd("delay_"),
            "submission_time": submit,
            "requested_number_of_resources": owner["requested_processors"],
            "requested_time": owner["requested_time"],
            "success": (status == "completed").astype(int),
            "final_state": status.map(_FINAL).fillna("COMPLETED_FAILED"),
            "starting_time": begin,
            "execution_time": end - begin,
            "finish_time": end,
            "waiting_time": begin - submit,
            "turnaround_time": end - submit,
            "stretch": (end - submit) / (end - begin).where(end > begin),
            "allocated_resources": held["nodes"].fillna("").str.replace(",", " ", regex=False),
            "consumed_energy": -1,
            "metadata": "",
        }
    )


def write_formats(folder: Path, run: Outcome, names: Sequence[str]) -> None:
    """Write a schedule into a folder in formats named as in `FORMATS`, and what its jobs asked."""
    if run.records.requests is not None:
        write_table(requests_frame(run.trace, run.records.requests), folder / REQUESTS)
    if "csv" in names:
        table = batsim_table(run.tables.jobs, run.tables.allocations)
        table.to_csv(folder / FORMATS["csv"], index=False, lineterminator="\n")
    if "swf" in names:
        records = run.records
        group = run.trace.models.get("group", -1)
        log = log_of_schedule(
            run.trace.jobs.assign(submit_time=records.submit_time, group=group),
            records.run_start,
            records.end_time,
            records.allocated,
            status=records.status,
            processors=records.processors,
            notes=(f"a schedule of {run.trace.source}, simulated by moldsim",),
        )
        write_swf(folder / FORMATS["swf"], log)
