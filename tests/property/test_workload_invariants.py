"""What holds for the jobs of any log, however odd, and for any estimates and loads."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from swf_samples import clean

from workloads.arrivals import offered_load, scale_load
from workloads.base import check_jobs
from workloads.logs.log import LogWorkload
from workloads.logs.swf import FIELDS, SwfLog
from workloads.models.estimates import generate_histogram, tsafrir_estimates
from workloads.streams import Streams

RANGES = {
    "job_number": st.integers(1, 12),
    "submit_time": st.integers(-2, 40),
    "run_time": st.sampled_from([-1, 0, 0.5, 1, 60, 61.25]),
    "allocated_processors": st.sampled_from([-1, 0, 1, 2.5, 4, 16, 17]),
    "requested_processors": st.sampled_from([-1, 0, 1, 8, 20]),
    "requested_time": st.sampled_from([-1, 0, 10, 3600]),
    "status": st.sampled_from([-1, 0, 1, 2, 3, 4, 5]),
    "preceding_job": st.integers(-1, 13),
    "think_time": st.integers(-1, 5),
}


@st.composite
def odd_logs(draw: st.DrawFn) -> SwfLog:
    rows = draw(st.lists(st.fixed_dictionaries(RANGES), max_size=8))
    table = pd.DataFrame(rows, columns=list(FIELDS)).fillna(-1.0)
    return SwfLog(table.astype({"job_number": "int64"}) if rows else table.astype(float))


@given(log=odd_logs(), machine=st.sampled_from([None, 16]), limit=st.sampled_from([None, 1, 5]))
@settings(max_examples=150)
def test_no_record_is_lost_and_all_that_stay_can_run(log, machine, limit):
    cleaned, whole = clean(log, machine, limit=limit), clean(log, machine)
    filled = {"requested_time": 1.0}  # missing ones wait for a model
    jobs = check_jobs(cleaned.jobs.fillna(filled), "odd")
    assert len(whole.jobs) + sum(whole.dropped.values()) == len(log.jobs)
    assert len(jobs) == min(len(whole.jobs), len(whole.jobs) if limit is None else limit)
    pd.testing.assert_frame_equal(
        jobs, check_jobs(whole.jobs.fillna(filled), "odd").iloc[: len(jobs)]
    )
    assert all(cleaned.dropped.get(name, 0) <= count for name, count in whole.dropped.items())
    assert jobs["job_id"].is_unique
    if machine:
        assert (jobs["requested_processors"] <= machine).all()
    place = {job: row for row, job in enumerate(jobs["job_id"])}
    for row, job in enumerate(jobs["preceding_job"]):
        assert job == -1 or place[job] < row


@dataclass
class Given(LogWorkload):
    log: SwfLog

    def read(self):
        return self.log


@given(log=odd_logs(), jobs=st.sampled_from([None, 1, 2]), replication=st.integers(0, 3))
@settings(max_examples=100)
def test_every_replication_of_an_odd_log_is_a_table_of_jobs(log, jobs, replication):
    usable = len(clean(log).jobs)
    assume(usable)
    trace = Given(log, jobs=jobs).trace(Streams(1, replication))
    assert len(trace.jobs) == min(usable, jobs or usable)
    assert (trace.jobs["requested_time"] > 0).all()
    assert trace.jobs["job_id"].is_unique
    assert trace.processors == clean(log).processors
    left = usable // len(trace.jobs)
    assert (trace.altered is None) == (replication < left)


@given(
    submit=st.lists(st.floats(0, 1e7), min_size=2, max_size=30),
    target=st.floats(0.05, 2.0),
    origin=st.sampled_from([0.0, 1.6e9]),
)
def test_any_load_is_reached_in_the_same_order(submit, target, origin):
    assume(max(submit) - min(submit) > 1)
    jobs = pd.DataFrame({"submit_time": np.sort(submit) + origin})
    jobs = jobs.assign(requested_processors=4, reference_runtime=100.0)
    scaled = scale_load(jobs, 64, target)
    assert abs(offered_load(scaled, 64) / target - 1) < 1e-5
    assert (np.diff(scaled["submit_time"]) >= 0).all()


@given(
    runtimes=st.lists(st.floats(0.1, 2e6), min_size=1, max_size=400),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=60)
def test_modelled_estimates_cover_any_runtimes(runtimes, seed):
    estimates = tsafrir_estimates(np.array(runtimes), np.random.default_rng(seed))
    assert (estimates >= runtimes).all()


@given(jobs=st.integers(200, 400_000), hours=st.integers(1, 800), seed=st.integers(0, 2**32))
@settings(max_examples=60)
def test_any_histogram_counts_all_jobs_once(jobs, hours, seed):
    histogram = generate_histogram(jobs, hours * 3600, np.random.default_rng(seed))
    assert histogram.counts.sum() == jobs
    assert histogram.counts.min() >= 1
    assert histogram.times.min() > 0
    assert histogram.times[-1] == hours * 3600
    assert (np.diff(histogram.times) > 0).all()
