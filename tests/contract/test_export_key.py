"""Schedules in the formats of other tools, from the command line."""

import numpy as np
import pandas as pd

from workloads.logs.swf import read_swf

TINY = ("workload.jobs=60", "cluster.processors=64", "hydra.run.dir=run", "baseline=null")


def test_both_formats_hold_the_schedule(command, tmp_path):
    assert command(*TINY, "export=[csv,swf]").status == 0
    jobs = pd.read_parquet(tmp_path / "run/jobs.parquet")
    held = pd.read_parquet(tmp_path / "run/allocations.parquet")
    table = pd.read_csv(tmp_path / "run/jobs.csv", dtype={"job_id": str})
    assert table["job_id"].tolist() == jobs["job_id"].astype(str).tolist()
    assert np.array_equal(table["starting_time"], jobs["start_time"])
    assert np.array_equal(table["finish_time"], jobs["end_time"])
    assert np.allclose(table["waiting_time"], jobs["wait_time"])
    nodes = held.set_index("job_id")["nodes"].reindex(jobs["job_id"])
    assert table["allocated_resources"].tolist() == nodes.str.replace(",", " ").tolist()
    log = read_swf(tmp_path / "run/schedule.swf")
    assert log.machine_size() == 64
    assert np.allclose(log.jobs["submit_time"] + log.jobs["wait_time"], jobs["start_time"])
    assert log.jobs["allocated_processors"].tolist() == jobs["allocated_processors"].tolist()
    assert command(*TINY).status == 0
    assert not (tmp_path / "run/jobs.csv").exists()


def test_an_unknown_format_is_refused(command):
    ended = command(*TINY, "export=[xls]")
    assert ended.status == 2
    assert ended.err == "error: export=xls: allowed are csv, swf, or [] for none\n"
