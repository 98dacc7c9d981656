import pandas as pd
import pytest
from swf_samples import UNKNOWN, clean

from workloads.base import COLUMNS
from workloads.errors import WorkloadError
from workloads.logs.cleaning import RULES, screen
from workloads.logs.swf import Comment, SwfLog

pytestmark = pytest.mark.fast

USUAL = UNKNOWN | {
    "submit_time": 0,
    "run_time": 60,
    "allocated_processors": 4,
    "requested_processors": 4,
    "requested_time": 100,
    "status": 1,
    "user": 7,
}


def log_of(*records: dict, header: tuple[str, ...] = ()) -> SwfLog:
    rows = [{"job_number": number} | record for number, record in enumerate(records, start=1)]
    table = pd.DataFrame([USUAL | row for row in rows])
    return SwfLog(table, tuple(Comment(0, line) for line in header), "toy.swf")


DROPS = {
    "partial_execution": {"status": 3},
    "unknown_submit": {"submit_time": -1},
    "cancelled_before_start": {"status": 5, "run_time": 0},
    "unknown_runtime": {"run_time": -1},
    "zero_runtime": {"run_time": 0},
    "no_processors": {"allocated_processors": -1, "requested_processors": 0},
    "wider_than_machine": {"allocated_processors": 9},
}


@pytest.mark.parametrize("reason", DROPS)
def test_jobs_that_cannot_run_are_left_out_and_counted(reason):
    cleaned = clean(log_of({}, DROPS[reason], {}, header=("; MaxProcs: 8",)))
    assert cleaned.jobs["job_id"].tolist() == [1, 3]
    assert cleaned.dropped == {reason: 1}
    assert cleaned.repaired == {}


@pytest.mark.parametrize("reason", DROPS)
def test_a_rule_can_refuse_the_log_by_its_name(reason):
    log = log_of({}, DROPS[reason], DROPS[reason], header=("; MaxProcs: 8",))
    with pytest.raises(WorkloadError) as refusal:
        clean(log, actions={reason: "error"})
    assert str(refusal.value) == (
        f"toy.swf: job 2 {RULES[reason].meaning}, like 1 more; "
        f"workload.cleaning.{reason}=skip accepts such logs"
    )


def test_a_job_with_two_defects_counts_once():
    cleaned = clean(log_of({"status": 5, "run_time": -1, "allocated_processors": 99}, {}))
    assert cleaned.dropped == {"cancelled_before_start": 1}


def test_values_are_filled_and_counted():
    cleaned = clean(
        log_of(
            {"allocated_processors": -1, "requested_processors": 6, "requested_time": -1},
            {"requested_time": 0, "run_time": 33},
            {"allocated_processors": 2.5},
            {},
        ),
        actions={"missing_requested_time": "exact"},
    )
    assert cleaned.jobs["requested_processors"].tolist() == [6, 4, 3, 4]
    assert cleaned.jobs["requested_time"].tolist() == [60, 33, 100, 100]
    assert cleaned.repaired == {
        "missing_allocation": 1,
        "fractional_processors": 1,
        "missing_requested_time": 2,
    }
    assert cleaned.dropped == {}
    logged = ["recorded_wait_time", "recorded_status", "partition"]
    assert list(cleaned.jobs.columns) == [*COLUMNS, *logged]
    assert cleaned.jobs["user"].tolist() == [7, 7, 7, 7]


def test_missing_requested_times_wait_for_a_model_and_are_counted():
    cleaned = clean(log_of({"requested_time": -1}, {}))
    assert cleaned.jobs["requested_time"].isna().tolist() == [True, False]
    assert cleaned.repaired == {"missing_requested_time": 1}


def test_missing_waits_stay_unless_told_otherwise():
    log = log_of({"wait_time": 30}, {"wait_time": -1}, {"wait_time": 0})
    assert clean(log).jobs["recorded_wait_time"].tolist() == [30, -1, 0]
    assert clean(log, actions={"missing_wait": "skip"}).dropped == {"missing_wait": 1}
    with pytest.raises(WorkloadError, match=r"job 2 has no recorded wait; workload.cleaning.mis"):
        clean(log, actions={"missing_wait": "error"})


def test_a_part_of_the_log_counts_its_own_lines():
    log = log_of({"run_time": -1}, {}, {"run_time": 0}, {}, {"run_time": 0}, {"run_time": -1}, {})
    screened = screen(log)
    second, rest = screened.take(1, 1), screened.take(2, None)
    assert (second.jobs["job_id"].tolist(), second.dropped) == ([4], {"zero_runtime": 1})
    assert rest.jobs["job_id"].tolist() == [7]
    assert rest.dropped == {"zero_runtime": 1, "unknown_runtime": 1}
    later = screen(log, actions={"unknown_runtime": "error"})
    assert later.take(1, 1).jobs["job_id"].tolist() == [4]
    with pytest.raises(WorkloadError, match="job 6 has not ended, or has no valid runtime"):
        later.take(2, None)


def test_a_part_of_a_log_has_the_machine_of_the_whole():
    log = log_of({"allocated_processors": 8}, {"allocated_processors": 64})
    assert clean(log, limit=1).processors == 64


def test_repairs_can_be_drops():
    log = log_of({"requested_time": -1}, {"allocated_processors": -1}, {})
    cleaned = clean(log, actions={"missing_requested_time": "skip", "missing_allocation": "skip"})
    assert cleaned.dropped == {"missing_allocation": 1, "missing_requested_time": 1}
    assert cleaned.jobs["job_id"].tolist() == [3]


def test_the_allocation_counts_before_the_request():
    jobs = clean(log_of({"allocated_processors": 16, "requested_processors": 10})).jobs
    assert jobs["requested_processors"].tolist() == [16]


def test_zero_runtimes_can_become_a_second():
    actions = {"zero_runtime": "repair", "missing_requested_time": "repair"}
    cleaned = clean(log_of({"run_time": 0, "requested_time": -1}), None, actions)
    assert cleaned.jobs["reference_runtime"].tolist() == [1.0]
    assert cleaned.jobs["requested_time"].tolist() == [1.0]
    assert cleaned.repaired == {"zero_runtime": 1, "missing_requested_time": 1}


def test_jobs_cancelled_while_running_stay_unless_told_otherwise():
    log = log_of({"status": 5}, {})
    assert len(clean(log).jobs) == 2
    cleaned = clean(log, actions={"cancelled_while_running": "skip"})
    assert cleaned.dropped == {"cancelled_while_running": 1}


def test_duplicates_go_and_repeated_numbers_get_fresh_ones():
    log = log_of(
        {"job_number": 5},
        {"job_number": 5},
        {"job_number": 5, "submit_time": 9},
        {"job_number": 8, "submit_time": 10},
        {"job_number": 5, "submit_time": 11, "status": 2},
    )
    cleaned = clean(log)
    assert cleaned.jobs["job_id"].tolist() == [5, 9, 8]
    assert cleaned.dropped == {"partial_execution": 1, "duplicate": 1}
    assert cleaned.repaired == {"repeated_number": 1}


def test_jobs_without_a_number_get_one():
    cleaned = clean(log_of({"job_number": -1}, {"job_number": 3}, {"job_number": -1, "user": 1}))
    assert cleaned.jobs["job_id"].tolist() == [4, 3, 5]
    assert cleaned.repaired == {"repeated_number": 2}


def test_submits_are_sorted_stably_and_keep_their_origin():
    start = 1_641_021_254
    log = log_of(
        {"submit_time": start + 5},
        {"submit_time": start},
        {"submit_time": start + 5},
        {"submit_time": start + 4},
    )
    cleaned = clean(log)
    assert cleaned.jobs["job_id"].tolist() == [2, 4, 1, 3]
    assert cleaned.jobs["submit_time"].tolist() == [start, start + 4, start + 5, start + 5]
    assert cleaned.repaired == {"out_of_order": 2}
    with pytest.raises(WorkloadError, match="job 2 was submitted before a job above it, like 1"):
        clean(log, actions={"out_of_order": "error"})


def test_ties_of_long_logs_keep_the_order_of_the_file():
    log = log_of(*({"submit_time": (7 * number) % 5} for number in range(500)))
    jobs = clean(log).jobs
    order = jobs["submit_time"] * 1000 + jobs["job_id"]
    assert order.is_monotonic_increasing


def test_short_jobs_run():
    cleaned = clean(log_of({"run_time": 1}, {"run_time": 0.5}))
    assert cleaned.jobs["reference_runtime"].tolist() == [1.0, 0.5]


def test_the_machine_is_the_given_one_else_the_headers_else_the_most_held_at_once():
    records = ({"allocated_processors": 100}, {"allocated_processors": 200})
    assert clean(log_of(*records)).processors == 200
    headed = log_of(*records, header=("; MaxProcs: 150",))
    assert clean(headed).processors == 150
    assert clean(headed).dropped == {"wider_than_machine": 1}
    assert clean(headed, processors=200).dropped == {}
    assert clean(headed, processors=99).dropped == {"wider_than_machine": 2}


def test_the_first_jobs_are_those_that_run_and_later_lines_do_not_count():
    log = log_of({"run_time": -1}, {}, {"run_time": 0}, {}, {"run_time": 0}, {"run_time": -1}, {})
    cleaned = clean(log, limit=2)
    assert cleaned.jobs["job_id"].tolist() == [2, 4]
    assert cleaned.dropped == {"unknown_runtime": 1, "zero_runtime": 1}
    assert len(clean(log, limit=9).jobs) == 3
    twice = log_of({"job_number": 1}, {"job_number": 1, "user": 2}, {"job_number": 8})
    assert clean(twice, limit=2).jobs["job_id"].tolist() == [1, 9]
    assert len(clean(log, actions={"zero_runtime": "error"}, limit=1).jobs) == 1


def test_predecessors_are_carried_where_they_come_before():
    log = log_of(
        {},
        {"preceding_job": 1, "think_time": 30},
        {"preceding_job": 4},
        {"preceding_job": 99},
        {"run_time": 0},
        {"preceding_job": 5, "think_time": 7},
        {"preceding_job": 0},
        {"preceding_job": 8},
    )
    cleaned = clean(log)
    assert cleaned.jobs["preceding_job"].tolist() == [-1, 1, -1, -1, -1, -1, -1]
    assert cleaned.jobs["think_time"].tolist() == [-1, 30, -1, -1, 7, -1, -1]
    assert cleaned.repaired == {"absent_predecessor": 4}


def test_unknown_rules_and_actions_are_refused():
    with pytest.raises(WorkloadError, match=r"workload.cleaning.runtime: no such rule; there are"):
        clean(log_of({}), actions={"runtime": "skip"})
    with pytest.raises(WorkloadError) as refusal:
        clean(log_of({}), actions={"zero_runtime": "drop"})
    assert str(refusal.value) == (
        "workload.cleaning.zero_runtime=drop: allowed are skip, keep, repair, error"
    )


def test_a_log_without_jobs_leaves_no_jobs():
    empty = log_of({}).jobs.iloc[:0]
    cleaned = clean(SwfLog(empty))
    assert len(cleaned.jobs) == 0
    assert cleaned.processors is None
