"""What a log says of its own schedule stands beside every run on it."""

import json

import pandas as pd
import pytest
from swf_samples import job_line, write_log

QUIET = ("predictor=user_estimate", "hydra.run.dir=run")


@pytest.fixture
def log(tmp_path):
    """Four jobs on 8 processors; the first ran alone though the second would have fitted."""
    rows = [(0, 0, 100, 4), (10, 90, 50, 4), (20, 5, 8, 2), (30, -1, 40, 2)]
    lines = [
        job_line(
            job_number=i,
            submit_time=submit,
            wait_time=wait,
            run_time=runtime,
            allocated_processors=width,
            requested_time=200,
            user=1,
        )
        for i, (submit, wait, runtime, width) in enumerate(rows, start=1)
    ]
    return write_log(tmp_path, "; MaxProcs: 8", *lines)


def run(command, log, *more):
    ended = command("workload=swf", f"workload.path={log}", "policy=easy", *QUIET, *more)
    assert ended.status == 0, ended.err
    summary = json.loads((log.parent / "run/summary.json").read_text())
    return ended, summary, pd.read_parquet(log.parent / "run/jobs.parquet")


def test_recorded_waits_stand_in_the_table_of_jobs_and_in_the_summary(command, log):
    _, summary, jobs = run(command, log)
    assert jobs["recorded_start_time"].iloc[:3].tolist() == [0, 100, 25]
    assert jobs["recorded_start_time"].isna().tolist() == [False, False, False, True]
    waits, runtimes = [0, 90, 5], [100, 50, 8]
    responses = [wait + runtime for wait, runtime in zip(waits, runtimes, strict=True)]
    assert summary["recorded_mean_wait_time"] == pytest.approx(sum(waits) / 3)
    assert summary["recorded_mean_response_time"] == pytest.approx(sum(responses) / 3)
    slowdowns = [1.0, 140 / 50, 13 / 10]
    assert summary["recorded_mean_bounded_slowdown"] == pytest.approx(sum(slowdowns) / 3)
    assert summary["recorded_times_kept"] is True
    assert (
        json.loads((log.parent / "run/baseline/summary.json").read_text()).items()
        >= {key: value for key, value in summary.items() if key.startswith("recorded_")}.items()
    )


def test_other_submits_are_not_the_logs_times(command, log):
    _, summary, jobs = run(command, log, "workload.load=0.5")
    assert summary["recorded_times_kept"] is False
    assert summary["recorded_mean_wait_time"] == pytest.approx(95 / 3)
    waits = jobs["recorded_start_time"] - jobs["submit_time"]
    assert waits.iloc[:3].tolist() == pytest.approx([0, 90, 5])


def test_charged_runs_have_no_recorded_start(command, log):
    more = ("predictor=adept", "predictor.calibration=2", "predictor.charge=true")
    _, summary, jobs = run(command, log, *more)
    assert (jobs["job_id"] < 0).sum() >= 2
    assert jobs.loc[jobs["job_id"] < 0, "recorded_start_time"].isna().all()
    assert summary["recorded_mean_wait_time"] == pytest.approx(95 / 3)


def test_models_record_nothing(command, tmp_path):
    assert command("workload.jobs=20", "policy=easy", *QUIET).status == 0
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert not [key for key in summary if key.startswith("recorded_")]
    assert "recorded_start_time" not in pd.read_parquet(tmp_path / "run/jobs.parquet")


SKIP = "workload.cleaning.missing_wait=skip"


def test_the_recorded_schedule_is_replayed_as_a_run(command, log):
    ended, summary, jobs = run(command, log, "policy=recorded", SKIP)
    assert jobs["start_time"].tolist() == [0, 100, 25]
    assert jobs["end_time"].tolist() == [100, 150, 33]
    assert jobs["allocated_processors"].tolist() == [4, 4, 2]
    assert summary["mean_wait_time"] == summary["recorded_mean_wait_time"] == pytest.approx(95 / 3)
    assert summary["mean_bounded_slowdown"] == summary["recorded_mean_bounded_slowdown"]
    assert summary["excess_processors"] == 0
    held = pd.read_parquet(log.parent / "run/allocations.parquet")
    assert held["nodes"].isna().all()
    assert held[["job_id", "start_time", "end_time", "processors"]].to_numpy().tolist() == [
        [1, 0, 100, 4], [3, 25, 33, 2], [2, 100, 150, 4],
    ]  # fmt: skip
    assert not len(pd.read_parquet(log.parent / "run/predictions.parquet"))
    assert (log.parent / "run/schedule.png").is_file()
    assert "processors more than" not in ended.out


def test_the_recorded_schedule_is_a_baseline_as_any(command, log):
    ended, _, jobs = run(command, log, "baseline=recorded", "predictor=adept", SKIP)
    assert not (log.parent / "run/baseline_predictor").exists()  # nobody to ask
    assert "recorded by" not in ended.out
    assert "policy=easy shows how much" in " ".join(ended.out.split())
    assert ended.out.count("recorded  ") == 1  # as the baseline, not once more
    base = pd.read_parquet(log.parent / "run/baseline/jobs.parquet")
    assert base["start_time"].tolist() == [0, 100, 25]
    assert jobs["start_time"].tolist() == [0, 10, 60]


def test_a_comparison_has_the_recorded_schedule_once_whatever_the_predictors(command, log, capsys):
    from sim.compare import main

    swept = ("-m", "policy=recorded,easy", "predictor=user_estimate,oracle", SKIP)
    more = ("workload=swf", f"workload.path={log}", "hydra.sweep.dir=all")
    assert command(*swept, *more).status == 0
    capsys.readouterr()
    assert main(["all", "--table", "--markdown"]) == 0
    table = pd.read_csv(log.parent / "all/comparison.csv")
    rows = table[["policy", "predictor", "mean_wait_time"]].fillna("–").to_numpy().tolist()
    assert sorted(rows) == [
        ["easy", "oracle", pytest.approx(40 / 3)],
        ["easy", "user_estimate", pytest.approx(40 / 3)],
        ["recorded", "–", pytest.approx(95 / 3)],
    ]
    said = (log.parent / "all/comparison.md").read_text()
    assert said.count("| recorded |") == 1
    assert "start on an empty machine" not in said + capsys.readouterr().out  # nothing came before


def test_a_comparison_says_that_windows_start_on_an_empty_machine(command, tmp_path, capsys):
    from sim.compare import main

    lines = [
        job_line(job_number=i, submit_time=10 * i, wait_time=5, run_time=20, requested_time=30,
                 allocated_processors=6)
        for i in range(1, 31)
    ]  # fmt: skip
    log = write_log(tmp_path, "; MaxProcs: 8", *lines)
    swept = ("-m", "policy=recorded,easy", "predictor=user_estimate", "replications=2")
    more = ("workload.jobs=10", "hydra.sweep.dir=all")
    assert command(*swept, "workload=swf", f"workload.path={log}", *more).status == 0
    capsys.readouterr()
    assert main(["all", "--markdown"]) == 0
    said = (
        "Simulated windows of the log start on an empty machine; the recorded waits in them reflect"
    )
    assert said in " ".join(capsys.readouterr().out.split())
    assert said in (tmp_path / "all/comparison.md").read_text()
    assert said in (tmp_path / "all/comparison.html").read_text()
    excess = "The recorded schedule holds up to 4 processors more than cluster.processors=8."
    assert excess in (tmp_path / "all/comparison.md").read_text()


def test_a_machine_that_is_too_small_is_said_with_the_largest_excess(command, tmp_path):
    lines = [
        job_line(job_number=i, submit_time=i, wait_time=10 - i, allocated_processors=4)
        for i in (1, 2, 3)
    ]
    log = write_log(tmp_path, "; MaxProcs: 8", *lines)
    ended, summary, _ = run(command, log, "policy=recorded", "baseline=null", "export=[csv,swf]")
    assert summary["excess_processors"] == 4
    assert summary["utilization"] > 1
    said = "The recorded schedule holds up to 4 processors more than cluster.processors=8."
    assert said in " ".join(ended.out.split())


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ((SKIP, "workload.load=0.5"), "workload.load=0.5 scales the distances between them"),
        ((SKIP, "workload.feedback=true"), "workload.feedback=true lets them follow the schedule"),
        ((SKIP, "cluster=shared"), "needs cluster=dedicated"),
        ((SKIP, "cluster=failing"), "needs cluster=dedicated"),
        ((SKIP, "evolving=adaptive"), "needs evolving=none"),
        ((), "records no wait of 1 of 4 jobs; workload.cleaning.missing_wait=skip leaves"),
        ((SKIP, "replications=2"), "repeats the log, too short to cut"),
    ],
)
def test_what_no_log_recorded_is_refused_with_the_reason(command, log, more, reason):
    ended = command(
        "workload=swf", f"workload.path={log}", "policy=recorded", "baseline=null", *QUIET, *more
    )
    assert ended.status == 2
    assert "policy=recorded: " in ended.err
    assert reason in ended.err


def test_a_log_without_any_wait_is_refused_without_a_way_out(command, tmp_path):
    lines = [job_line(job_number=i, submit_time=i, wait_time=-1) for i in (1, 2)]
    log = write_log(tmp_path, *lines)
    more = ("policy=recorded", "baseline=null", *QUIET)
    ended = command("workload=swf", f"workload.path={log}", *more)
    assert ended.status == 2
    assert ended.err.strip().endswith("records no wait of any job")


def test_models_have_no_schedule_to_replay(command):
    ended = command("workload.jobs=20", "policy=easy", "baseline=recorded", *QUIET)
    assert ended.status == 2
    assert "policy=recorded: lublin records no schedule; it needs a log" in ended.err
