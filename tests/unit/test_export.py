import numpy as np
import pytest

from workloads.logs.log import SwfWorkload
from workloads.logs.swf import log_of_schedule, log_of_trace, read_swf, write_swf
from workloads.models.lublin import Lublin
from workloads.streams import Streams

pytestmark = pytest.mark.fast


def test_a_written_trace_reads_back_as_the_same_jobs(tmp_path):
    trace = Lublin(jobs=200, types="both").trace(Streams(seed=6), 64)
    write_swf(tmp_path / "model.swf.gz", log_of_trace(trace, ("made by a test",)))
    again = SwfWorkload(tmp_path / "model.swf.gz").trace(Streams(seed=6))
    assert again.jobs[list(trace.jobs)].equals(trace.jobs)
    assert again.processors == 64
    assert (again.dropped, again.repaired) == ({}, {})
    log = read_swf(tmp_path / "model.swf.gz")
    assert log.jobs["queue"].tolist() == trace.models["queue"].tolist()
    assert log.directives() == [
        ("Version", "2.2"),
        ("MaxJobs", "200"),
        ("MaxRecords", "200"),
        ("MaxProcs", "64"),
        ("Note", "made by a test"),
    ]


def test_a_schedule_records_waits_runtimes_and_allocations(tmp_path):
    jobs = Lublin(jobs=3).trace(Streams(seed=6), 64).jobs
    start = jobs["submit_time"] + np.array([0.0, 2.5, 100.0])
    end = start + np.array([10.0, 20.25, 30.0])
    log = log_of_schedule(
        jobs, start, end, [1, 2, 3], status=["completed", "killed", "odd"], processors=64
    )
    write_swf(tmp_path / "schedule.swf", log)
    table = read_swf(tmp_path / "schedule.swf").jobs
    assert np.allclose(table["wait_time"], [0.0, 2.5, 100.0])
    assert np.allclose(table["run_time"], [10.0, 20.25, 30.0])
    assert table["allocated_processors"].tolist() == [1, 2, 3]
    assert table["requested_processors"].tolist() == jobs["requested_processors"].tolist()
    assert table["requested_time"].tolist() == jobs["requested_time"].tolist()
    assert table["status"].tolist() == [1, 0, -1]
