import logging

import pytest
from swf_samples import job_line, write_log

from workloads.arrivals import offered_load
from workloads.errors import WorkloadError
from workloads.logs.log import SwfWorkload
from workloads.streams import Streams

pytestmark = pytest.mark.fast

STREAMS = Streams(seed=1)

# What each real log loses and what is filled, as counted by hand-written filters over the files.
REAL_LOGS = {
    "SDSC-SP2-1998-4.2-cln": (
        54_034,
        {"cancelled_before_start": 5_681},
        {"missing_requested_time": 35},
    ),
    "LLNL-Atlas-2006-2.1-cln": (
        36_600,
        {"cancelled_before_start": 4_601, "zero_runtime": 2_577},
        {"missing_requested_time": 5_352},
    ),
    "NASA-iPSC-1993-3.1-cln": (18_066, {"zero_runtime": 173}, {"missing_requested_time": 18_066}),
    "ALCF-Theta-2022": (23_911, {}, {}),
    "lublin_256": (10_000, {}, {"missing_requested_time": 10_000}),
    "lublin_256_new2": (10_000, {}, {"missing_requested_time": 10_000}),
}


@pytest.mark.parametrize("name", REAL_LOGS)
def test_real_logs_load_with_their_oddities_counted(traces, name):
    jobs, dropped, repaired = REAL_LOGS[name]
    trace = SwfWorkload(traces / f"{name}.swf.gz").trace(STREAMS)
    assert (len(trace.jobs), trace.dropped, trace.repaired) == (jobs, dropped, repaired)


def test_published_means_of_the_synthetic_logs(traces):
    jobs = SwfWorkload(traces / "lublin_256.swf.gz").trace(STREAMS).jobs
    assert jobs["reference_runtime"].mean() == pytest.approx(4863, abs=0.5)
    assert jobs["reference_runtime"].median() == pytest.approx(137, abs=0.5)
    assert jobs["requested_processors"].mean() == pytest.approx(22.1, abs=0.05)
    assert offered_load(jobs, 256) == pytest.approx(1.061, abs=5e-4)


def test_unix_seconds_keep_their_origin_even_when_scaled(traces):
    trace = SwfWorkload(traces / "ALCF-Theta-2022.swf.gz", load=0.9, jobs=500).trace(STREAMS)
    assert trace.jobs["submit_time"].iloc[0] == 1_641_021_254
    assert offered_load(trace.jobs, 4360) == pytest.approx(0.9, rel=1e-9)
    assert len(trace.jobs) == 500


@pytest.fixture
def path(tmp_path):
    lines = [
        "; MaxProcs: 8",
        job_line(job_number=1, submit_time=10),
        job_line(job_number=2, submit_time=20, run_time=-1),
        job_line(job_number=3, submit_time=30, allocated_processors=9),
        job_line(job_number=4, submit_time=40, preceding_job=1, think_time=5),
        job_line(job_number=5, submit_time=50, requested_time=40, executable=3),
    ]
    return write_log(tmp_path, *lines)


def test_what_is_left_out_is_named_in_one_warning(path, caplog):
    with caplog.at_level(logging.WARNING):
        trace = SwfWorkload(path).trace(STREAMS)
    assert trace.dropped == {"unknown_runtime": 1, "wider_than_machine": 1}
    assert [record.getMessage() for record in caplog.records] == [
        "log.swf: 2 of 5 jobs left out: 1 unknown_runtime (has not ended, or has no valid "
        "runtime), 1 wider_than_machine (needs more processors than the machine has)"
    ]


def test_the_configured_machine_decides_what_is_too_wide_and_the_load(path):
    trace = SwfWorkload(path, load=0.5).trace(STREAMS, processors=16)
    assert trace.jobs["job_id"].tolist() == [1, 3, 4, 5]
    assert trace.processors == 8
    assert offered_load(trace.jobs, 16) == pytest.approx(0.5)


def test_recorded_estimates_stand_even_below_the_runtime(path):
    jobs = SwfWorkload(path).trace(STREAMS).jobs
    assert jobs["requested_time"].tolist() == [100, 100, 40]
    assert jobs["executable"].tolist() == [-1, -1, 3]
    exact = SwfWorkload(path, estimates="exact").trace(STREAMS).jobs
    assert exact["requested_time"].tolist() == [60, 60, 60]
    capped = SwfWorkload(path, estimate_limit=70).trace(STREAMS).jobs
    assert capped["requested_time"].tolist() == [70, 70, 40]


def times_log(folder, *requested, **more):
    lines = [
        job_line(job_number=i, submit_time=i, run_time=600 * i, requested_time=asked, **more)
        for i, asked in enumerate(requested, start=1)
    ]
    return write_log(folder, *lines, name="times.swf")


def test_missing_requested_times_are_modelled_up_to_the_logs_largest(tmp_path):
    path = times_log(tmp_path, 7200, -1, 14400, -1, 0)
    trace = SwfWorkload(path).trace(STREAMS)
    asked, runtime = (trace.jobs[k].to_numpy() for k in ("requested_time", "reference_runtime"))
    assert asked[[0, 2]].tolist() == [7200, 14400]
    assert (asked >= runtime).all()
    assert asked.max() <= 14400
    assert (asked[[1, 3, 4]] != runtime[[1, 3, 4]]).any()
    assert trace.repaired == {"missing_requested_time": 3}
    other = SwfWorkload(path).trace(Streams(seed=2)).jobs["requested_time"]
    assert other[[0, 2]].tolist() == [7200, 14400]
    assert not other.equals(trace.jobs["requested_time"])


def test_a_log_without_requested_times_has_the_usual_limit_above_its_longest_runtime(tmp_path):
    path = times_log(tmp_path, *[-1] * 150)  # up to 25 hours
    asked = SwfWorkload(path).trace(STREAMS).jobs["requested_time"]
    assert asked.max() == 36 * 3600
    part = SwfWorkload(path, jobs=20).trace(STREAMS).jobs["requested_time"]
    assert part.max() == 36 * 3600  # of the log, not of its part


@pytest.mark.parametrize("action", ["exact", "repair"])
def test_missing_requested_times_can_be_the_runtimes(tmp_path, action):
    path = times_log(tmp_path, 7200, -1)
    trace = SwfWorkload(path, cleaning={"missing_requested_time": action}).trace(STREAMS)
    assert trace.jobs["requested_time"].tolist() == [7200, 1200]
    assert trace.repaired == {"missing_requested_time": 1}


def test_estimates_that_are_drawn_anew_fill_nothing(tmp_path):
    path = times_log(tmp_path, 7200, -1)
    trace = SwfWorkload(path, estimates="exact").trace(STREAMS)
    assert trace.repaired == {}
    assert trace.jobs["request_class"].tolist() == [-1, -1]


def test_nobody_foresees_runtimes_on_logs_without_requested_times(traces):
    jobs = SwfWorkload(traces / "NASA-iPSC-1993-3.1-cln.swf.gz").trace(STREAMS).jobs
    assert (jobs["requested_time"] == jobs["reference_runtime"]).mean() < 0.01
    assert (jobs["requested_time"] / jobs["reference_runtime"]).median() > 2


def test_recorded_waits_are_carried(tmp_path):
    lines = [job_line(job_number=i, submit_time=i, wait_time=w) for i, w in ((1, 5), (2, -1))]
    jobs = SwfWorkload(write_log(tmp_path, *lines)).trace(STREAMS).jobs
    assert jobs["recorded_wait_time"].tolist() == [5, -1]


def weeks_log(folder, jobs=70, hours=6.0):
    """Return a log of a job every `hours`, in which job i waits i seconds and runs 100 + i."""
    lines = [
        job_line(
            job_number=i,
            submit_time=round(3600 * hours * i),
            run_time=100 + i,
            wait_time=i,
            user=i % 2,
        )
        for i in range(1, jobs + 1)
    ]
    return write_log(folder, *lines, name="weeks.swf")


def test_replications_take_windows_far_apart_the_first_first(tmp_path):
    path = weeks_log(tmp_path)
    workload = SwfWorkload(path, jobs=16)
    firsts = [workload.trace(Streams(1, k)).jobs["job_id"].tolist() for k in range(4)]
    begins = [1, 33, 17, 49]
    assert firsts == [list(range(begin, begin + 16)) for begin in begins]
    third = workload.trace(Streams(5, 2))
    assert third.jobs["submit_time"].tolist() == [3600 * 6 * i for i in range(17, 33)]
    assert third.jobs["recorded_wait_time"].tolist() == list(range(17, 33))
    assert third.altered is None


@pytest.mark.parametrize(("jobs", "replication"), [(None, 1), (16, 12)])
def test_without_a_window_left_weeks_are_drawn_again_and_it_is_said(
    tmp_path, caplog, jobs, replication
):
    workload = SwfWorkload(weeks_log(tmp_path, 200), jobs=jobs)
    with caplog.at_level(logging.WARNING):
        trace = workload.trace(Streams(1, replication))
    assert len(trace.jobs) == (jobs or 200)
    assert (trace.jobs["recorded_wait_time"] == -1).all()
    assert trace.altered == (
        f"replication {replication} draws weeks of the log again, as no window is left"
    )
    assert trace.altered in caplog.text
    other = workload.trace(Streams(2, replication)).jobs["reference_runtime"]
    assert not other.equals(trace.jobs["reference_runtime"])


def test_the_identity_of_a_part_is_that_of_the_log(tmp_path):
    part = SwfWorkload(weeks_log(tmp_path), jobs=4).trace(STREAMS)
    assert part.identity == "user"
    assert part.jobs["application"].tolist() == [0, 1, 0, 1]


def test_feedback_is_carried_and_refuses_a_load(path):
    trace = SwfWorkload(path, feedback=True).trace(STREAMS)
    assert trace.feedback
    assert not SwfWorkload(path).trace(STREAMS).feedback
    assert trace.jobs["preceding_job"].tolist() == [-1, 1, -1]
    assert trace.jobs["think_time"].tolist() == [-1, 5, -1]
    with pytest.raises(WorkloadError, match=r"workload.load=0.8: refused with workload.feedback"):
        SwfWorkload(path, load=0.8, feedback=True)


def test_a_log_that_states_no_machine_has_what_it_holds_at_once(tmp_path, caplog):
    lines = [
        job_line(job_number=n, submit_time=n, wait_time=1, run_time=9, allocated_processors=n)
        for n in (4, 5, 14)  # from 5 to 14, from 6 to 15, from 15 on
    ]
    said = "taken to be the most processors that it holds at once, 14 (cluster.processors=N says"
    for header, asked, warned in (("; Note: x", None, True), ("; Note: x", 9, False),
                                  ("; MaxProcs: 8", None, False)):  # fmt: skip
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            SwfWorkload(write_log(tmp_path, header, *lines)).trace(STREAMS, asked)
        assert (said in caplog.text) is warned


def test_more_jobs_than_there_are_is_said(path, caplog):
    with caplog.at_level(logging.WARNING):
        trace = SwfWorkload(path, jobs=9).trace(STREAMS)
    assert len(trace.jobs) == 3
    assert "workload.jobs=9: fewer jobs can run; all of them are taken: 3" in caplog.text


def test_a_log_without_runnable_jobs_is_refused(tmp_path):
    path = write_log(tmp_path, job_line(run_time=0), job_line(job_number=2, run_time=0))
    with pytest.raises(WorkloadError) as refusal:
        SwfWorkload(path).trace(STREAMS)
    assert str(refusal.value) == (
        "log.swf: none of 2 jobs can run; left out: 2 zero_runtime (ran for 0 seconds)"
    )
    empty = write_log(tmp_path, "; Version: 2.2", name="empty.swf")
    with pytest.raises(WorkloadError, match=r"empty.swf: none of 0 jobs can run$"):
        SwfWorkload(empty).trace(STREAMS)


def test_cleaning_is_configurable(path):
    with pytest.raises(
        WorkloadError, match=r"log.swf: job 2 has not ended, or has no valid runtime; workload.cl"
    ):
        SwfWorkload(path, cleaning={"unknown_runtime": "error"}).trace(STREAMS)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"path": None}, "workload.path is not set; give an SWF file, such as "),
        ({"jobs": -3}, "workload.jobs=-3: must be a whole number of at least 1"),
        ({"load": -0.5}, "workload.load=-0.5: must be positive and finite, or null"),
        ({"estimates": "good"}, "workload.estimates=good: allowed are recorded, exact, "),
        ({"cleaning": "skip"}, "workload.cleaning=skip: must be a mapping of names to values"),
        ({"estimates": ["exact"]}, "workload.estimates=['exact']: allowed are recorded, "),
        ({"feedback": "yes"}, "workload.feedback=yes: must be true or false"),
        ({"cleaning": {"zero": "skip"}}, "workload.cleaning.zero: no such rule; there are "),
    ],
)
def test_impossible_arguments_are_refused_before_reading(keywords, message):
    with pytest.raises(WorkloadError) as refusal:
        SwfWorkload(**{"path": "none.swf"} | keywords)
    assert str(refusal.value).startswith(message)
