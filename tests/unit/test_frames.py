import numpy as np
import pandas as pd
import pytest
from random_schedules import make_trace, rigid_truth

from sim.results.metrics import summarise
from sim.results.outcome import Columns, outcome
from sim.results.steady_state import Trim
from sim.state.processors import NodeSets
from sim.state.records import Allocations, Predictions, Records

pytestmark = pytest.mark.fast

JOB_COLUMNS = [
    *("job_id", "user", "application", "size", "submit_time", "start_time", "end_time"),
    *("wait_time", "response_time", "bounded_slowdown", "requested_processors"),
    *("requested_time", "reference_runtime", "allocated_processors", "runtime", "held_area"),
    *("efficiency", "believed_runtime", "status", "restarts"),
]


def small(methods=("adept",) * 4, second=25.0):
    """Job 10 runs from 0, fails, and runs again; job 11 waits; job 12 is killed.

    Machine of 4. Job 10: 2 processors, 0-1 in [100, 110), then 0,3 in [115, 135).
    Job 11: 4 processors, in [135, 139), after submit at 112; recorded 4 s.
    Job 12: 1 processor on 2, in [120, 128), killed; believed 30 s.
    """
    trace = make_trace([100, 112, 120], [2, 4, 1], [20, 4, 40], ids=[10, 11, 12], user=[7, 8, 7])
    truth = rigid_truth(trace, serial_time=[30.0, 12.0, 40.0])
    allocations = Allocations(
        np.array([0, 0, 2, 1]),
        np.array([0, 1, 0, 0]),
        np.array([100.0, 115.0, 120.0, 135.0]),
        np.array([110.0, 135.0, 128.0, 139.0]),
        np.array([2, 2, 1, 4]),
        [((0, 1),), ((0, 0), (3, 3)), ((2, 2),), ((0, 3),)],
    )
    asked = Predictions(
        np.array([0, 0, 2, 1]),
        np.array([100.0, 115.0, 120.0, 135.0]),
        np.array([2, 2, 1, 4]),
        np.array([15.0, second, 30.0, 3.0]),
        list(methods),
        ["ok"] * 4,
        np.array([0, 2, 3, 3]),
        np.array([0, 3, 4, 3]),
        np.array([np.nan, 20.0, 30.0, 4.0]),
        np.array([True, True, False, True]),
        np.array([False, True, True, True]),
    )
    records = Records(
        np.array([100.0, 112.0, 120.0]),
        np.array([100.0, 135.0, 120.0]),
        np.array([135.0, 139.0, 128.0]),
        np.array([115.0, 135.0, 120.0]),
        np.array([2, 4, 1]),
        np.array([25.0, 3.0, 30.0]),
        ["completed", "completed", "killed"],
        np.array([1, 0, 0]),
        allocations,
        asked,
        {"looks": 9.0},
        4,
    )
    return outcome(trace, truth, records)


def test_jobs_have_the_columns_and_values_of_the_contract():
    jobs = small().tables.jobs
    assert list(jobs.columns) == JOB_COLUMNS
    assert jobs["job_id"].tolist() == [10, 11, 12]
    assert jobs["wait_time"].tolist() == [0.0, 23.0, 0.0]
    assert jobs["response_time"].tolist() == [35.0, 27.0, 8.0]
    assert jobs["bounded_slowdown"].tolist() == [35 / 20, 27 / 10, 1.0]
    assert jobs["runtime"].tolist() == [20.0, 4.0, 8.0]
    assert jobs["held_area"].tolist() == [60.0, 16.0, 8.0]
    assert jobs["efficiency"].tolist()[:2] == [0.5, 0.75]
    assert np.isnan(jobs["efficiency"][2])
    assert jobs["status"].tolist() == ["completed", "completed", "killed"]
    assert jobs["restarts"].tolist() == [1, 0, 0]


def test_allocations_name_processors():
    allocations = small().tables.allocations
    columns = ["job_id", "run", "start_time", "end_time", "processors", "nodes"]
    assert list(allocations.columns) == columns
    assert allocations["nodes"].tolist() == ["0-1", "0,3", "2", "0-3"]
    assert allocations["job_id"].tolist() == [10, 10, 12, 11]


def test_timeline_has_a_row_a_change():
    timeline = small().tables.timeline
    assert list(timeline.columns) == ["time", "busy_processors", "queued_jobs", "queued_processors"]
    assert timeline.to_numpy().tolist() == [
        [100, 2, 0, 0],
        [110, 0, 1, 2],
        [112, 0, 2, 6],
        [115, 2, 1, 4],
        [120, 3, 1, 4],
        [128, 2, 1, 4],
        [135, 4, 0, 0],
        [139, 0, 0, 0],
    ]


def test_predictions_have_actuals_of_completed_last_runs():
    predictions = small().tables.predictions
    columns = "job_id time application nprocs size predicted actual method observations reliability"
    assert list(predictions.columns) == [*columns.split(), "runs_at_count", "mean_at_count"]
    assert predictions["runs_at_count"].isna().tolist() == [True, False, False, False]
    assert predictions["mean_at_count"].fillna(-1).tolist() == [-1, 20.0, 30.0, 4.0]
    assert predictions["actual"].fillna(-1).tolist() == [-1, 20.0, -1, 4.0]


def test_requests_in_place_of_predictions_have_an_error_of_their_own():
    methods = ("adept", "requested_time", "requested_time", "adept")
    summary = summarise(small(methods, second=60.0))
    assert (summary["predictions"], summary["prediction_median_error"]) == (1, 0.25)
    assert (summary["share_own_predictions"], summary["fallback_median_error"]) == (0.5, 2.0)
    assert summary["decisions_by_belief"] == 2
    own = summarise(small(("user_estimate",) * 4))
    assert (own["predictions"], own["share_own_predictions"]) == (2, 1.0)
    assert (own["fallback_median_error"], own["decisions_by_belief"]) == (None, 0)
    nothing = summarise(small(("requested_time",) * 4))
    assert (nothing["predictions"], nothing["prediction_mape"]) == (0, None)
    assert nothing["share_own_predictions"] == 0


def test_summary_of_a_hand_worked_schedule():
    summary = summarise(small())
    expected = {
        "jobs": 3,
        "makespan": 39.0,
        "held_area": 84.0,
        "utilization": 84 / (4 * 39),
        "mean_wait_time": 23 / 3,
        "mean_response_time": 70 / 3,
        "median_response_time": 27.0,
        "p95_response_time": 27 + 0.9 * 8,
        "mean_slowdown": (35 / 20 + 27 / 4 + 8 / 40) / 3,
        "mean_bounded_slowdown": (1.75 + 2.7 + 1) / 3,
        "mean_processor_bounded_slowdown": 1.0,
        "mean_efficiency": 0.625,
        "system_efficiency": (30 + 12) / 84,
        "useful_utilization": 42 / (4 * 39),
        "area_weighted_response_time": (40 * 35 + 16 * 27 + 40 * 8) / 96,
        # idle with a waiting job that fits: 4 from 110 (job 10 needs 2) to 115
        "loss_of_capacity": 4 * 5 / (4 * 39),
        "prediction_mape": (5 / 20 + 1 / 4) / 2,
        "share_own_predictions": 1.0,
        "molded_jobs": 0,
        "resized_jobs": 0,
        "decisions_by_belief": 3,
        "prediction_p90_error": 1 / 4,
        "prediction_within_20": 0.0,
        "prediction_over_share": 0.5,
        "prediction_under_share": 0.5,
        "share_fitted_starts": 2 / 4,  # job 12 kept its request, whatever its curve says
        "beliefs_at_measured_counts": 3,
        "share_beliefs_off": 1 / 3,  # 3 s where three runs took 4; 25 for 20 is no more than 1.25
        "area_share_beliefs_off": 4 * 4 / (4 * 4 + 2 * 20),
        "restarts": 1,
        "reallocations": 0,
        "killed_jobs": 1,
        "looks": 9.0,
        "max_queued_jobs": 2,
        "offered_load": (40 + 16 + 40) / (4 * 20),
    }
    assert {key: summary[key] for key in expected} == pytest.approx(expected)


def test_rows_follow_the_submit_order_under_feedback():
    run = small()
    records = run.records
    later = Records(**{**vars(records), "submit_time": np.array([100.0, 121.0, 120.0])})
    jobs = outcome(run.trace, run.truth, later).tables.jobs
    assert jobs["job_id"].tolist() == [10, 12, 11]


def test_charged_calibration_counts_in_area_and_makespan_alone():
    run = small()
    table = run.trace.jobs.copy()
    table["job_id"] = [-1, 11, 12]
    trace = type(run.trace)(table, None, "made.swf")
    charged, plain = summarise(outcome(trace, run.truth, run.records)), summarise(run)
    for key in ("utilization", "held_area", "makespan"):
        assert charged[key] == plain[key]
    assert charged["calibration_area"] == 60.0
    assert charged["jobs"] == 2
    assert charged["mean_response_time"] == (27 + 8) / 2
    assert charged["max_queued_jobs"] == 1
    assert charged["system_efficiency"] == 12 / 24
    assert charged["predictions"] == 1
    assert charged["applications"] == 2
    assert charged["bound_makespan"] == plain["bound_makespan"]


def test_efficiencies_are_null_where_serial_times_are_unknown():
    run = small()
    truth = rigid_truth(run.trace)
    summary = summarise(outcome(run.trace, truth, run.records))
    for key in ("mean_efficiency", "system_efficiency", "useful_utilization"):
        assert summary[key] is None


def test_summary_refuses_two_figures_under_one_key():
    with pytest.raises(ValueError, match="makespan"):
        summarise(small(), more={"makespan": 1.0})


def test_interval_sets():
    sets = NodeSets.of([((0, 0), (2, 5)), ((4, 4),)])
    assert sets.texts().to_pylist() == ["0,2-5", "4"]
    assert NodeSets.of([(), ((255, 255),)]).texts().to_pylist() == [None, "255"]


def test_a_frame_of_a_table_is_a_copy():
    run = small()
    frame = run.tables.jobs
    assert not np.shares_memory(frame["submit_time"], run.records.submit_time)


def test_columns_have_plain_types():
    jobs = small().tables.jobs
    for name in ("job_id", "user", "application", "requested_processors", "restarts"):
        assert jobs[name].dtype == np.int64
    for name in ("submit_time", "efficiency", "held_area", "believed_runtime", "size"):
        assert jobs[name].dtype == np.float64
    assert pd.api.types.is_string_dtype(jobs["status"])


def test_steady_figures_leave_out_charged_calibration_first():
    run = small()
    table = run.trace.jobs.copy()
    table["job_id"] = [-1, 11, 12]
    trace = type(run.trace)(table, None, "made.swf")
    steady = summarise(outcome(trace, run.truth, run.records), trim=Trim(0, 1e-9))
    assert steady["steady_jobs"] == 2
    assert steady["steady_mean_response_time"] == (27 + 8) / 2


def test_useful_utilisation_needs_every_serial_time():
    run = small()
    truth = rigid_truth(run.trace, serial_time=[30.0, np.nan, 40.0])
    summary = summarise(outcome(run.trace, truth, run.records))
    assert summary["useful_utilization"] is None
    assert summary["system_efficiency"] == 30 / 68
    assert summary["mean_efficiency"] == 0.5


def test_a_table_by_column_says_which_columns_it_has():
    table = Columns(
        slice(0, 2), {"number": np.arange(2), "twice": lambda rows: 2 * np.arange(2)[rows]}
    )
    assert list(table) == ["number", "twice"]
    assert "number" in table
    assert "start_time" not in table
