"""What became of a job in a run: its folder is replayed with a recorder, as plain data."""

from pathlib import Path

import pandas as pd
from rich.console import Console

from predictors.cli.display import Display
from sim.errors import SimError
from sim.explain.recorder import Account, Recorder
from sim.results.metrics import plain
from sim.simulation.progress import beginning
from sim.simulation.recorded_run import recorded_run
from sim.state.records import Records


def explained(folder: Path, job: int, console: Console | None = None) -> Account:
    """Replay a run and return what became of a job.

    Parameters
    ----------
    folder : pathlib.Path
        Of a run, a replication or a baseline; of several replications the first.
    job : int
        Its ``job_id``.
    console : rich.console.Console, optional
        Where progress is shown.

    Returns
    -------
    dict
        Of plain values, as ``--json`` prints it; times in seconds on the trace's clock.

    Raises
    ------
    SimError
        If there is no such run or job, or the run cannot be replayed.
    """
    run = recorded_run(folder)
    jobs = pd.read_parquet(run.place / "jobs.parquet")
    own = jobs[jobs["job_id"] == job]
    if not len(own):
        known = jobs["job_id"][jobs["job_id"] >= 0]
        raise SimError(
            f"job {job}: {run.place} has no such job; its {len(known):,} jobs have numbers from "
            f"{known.min()} to {known.max()}"
        )
    scene = run.scene()
    origin, start = beginning(scene.trace)
    recorder = Recorder(job)
    with Display(console or Console(quiet=True), "replay") as shown:
        records = scene.replay(recorder.around(run.setup(scene, shown)))
    epoch = None if start is None else scene.trace.epoch
    return {
        "job": job,
        "run": run.place.as_posix(),
        "notes": list(run.notes),
        "origin": origin,
        "epoch": epoch,
        **_row(own.iloc[0]),
        **_agreement(jobs, records, recorder.job),
        "weighed": recorder.weighed,
        "waits": recorder.waits,
        "resized": recorder.resized,
    }


def _row(row: pd.Series) -> Account:
    keys = ("submit_time", "start_time", "end_time", "wait_time", "requested_processors",
            "requested_time", "allocated_processors", "believed_runtime", "runtime", "status",
            "restarts", "application")  # fmt: skip
    return {key: plain(row[key]) for key in keys}


def _agreement(jobs: pd.DataFrame, records: Records, place: int) -> Account:
    """Return whether the replay is what was recorded, for the job and for all."""
    recorded = jobs["start_time"].to_numpy()
    same = recorded.size == records.start_time.size
    other = int((recorded != records.start_time).sum()) if same else max(recorded.size, 1)
    return {
        "replayed_start_time": plain(records.start_time[place]),
        "agrees": bool(same and recorded[place] == records.start_time[place]),
        "other_starts": other,
    }
