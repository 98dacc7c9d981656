"""What a user takes home from a run is true: each finding by what it looked like from outside."""

import json
from pathlib import Path

import numpy as np
import pytest
from swf_samples import job_line, write_log

from scripts.composing import composed
from sim.compare import main as compare
from sim.policies.allocation.sa import SmallestTurnaround
from sim.simulation.build import build
from sim.simulation.scene import play, set_scene
from sim.state.machine_state import Run
from tests.former import WORLD

DOCS = Path(__file__).resolve().parents[2] / "docs"
TOY = ("workload.jobs=40", "workload.applications=4", "cluster.processors=64", "baseline=null")


def log_of(folder, *, asked=lambda k: 300 + k, jobs=60):
    """Write a log of jobs that waited 1,000 s each, of five executables, and name it."""
    lines = [
        job_line(
            job_number=k,
            submit_time=600 * k,
            wait_time=1000,
            run_time=50 + 7 * k,
            requested_time=asked(k),
            allocated_processors=2 ** (k % 4),
            executable=k * k % 5,
            user=1 + k % 3,
        )
        for k in range(1, jobs + 1)
    ]
    return ["workload=swf", f"workload.path={write_log(folder, '; MaxProcs: 16', *lines)}"]


def replayed(*overrides):
    config = composed("baseline=null", *overrides)
    return play(config, config, set_scene(config, 0)).outcome.tables.jobs


def shown(command, *overrides):
    """Return what a run prints, in one line."""
    ended = command(*overrides, "hydra.run.dir=run")
    assert ended.status == 0, ended.err
    return " ".join(ended.out.split())


def test_a_log_keeps_the_applications_that_it_tells_apart(tmp_path):
    jobs = replayed(*log_of(tmp_path), "policy=easy", "predictor=user_estimate")
    k = np.arange(1, 61)
    recorded = list(zip(1 + k % 3, k * k % 5, strict=True))  # user and executable
    told = set(zip(jobs["application"], recorded, strict=True))
    assert len(told) == len(set(recorded)) == jobs["application"].nunique()


def test_nobody_is_told_the_sizes_of_a_logs_jobs(tmp_path):
    jobs = replayed(*log_of(tmp_path), "policy=easy", "predictor=user_estimate")
    assert jobs["size"].isna().all()


@pytest.mark.parametrize("predictor", ["adept", "amdahl", "consensus"])
def test_runs_before_the_start_are_jobs_that_others_wait_for(predictor):
    asked = (f"predictor={predictor}", "policy=easy")
    assert (replayed(*TOY, *asked)["job_id"] > 0).all()  # by default there are none
    jobs = replayed(*TOY, *WORLD, *asked, "given=charged")
    ahead = jobs[jobs["job_id"] < 0]
    assert len(ahead) == 3 * jobs["application"].nunique()
    assert (ahead["held_area"] > 0).all()


def test_a_log_has_no_runs_that_nobody_made(tmp_path):
    config = composed(*log_of(tmp_path), "predictor=adept", "baseline=null")
    run = play(config, config, set_scene(config, 0))
    assert run.known == []
    assert (run.outcome.tables.jobs["job_id"] > 0).all()


def test_the_table_names_whom_each_column_believes(command):
    text = shown(command, *TOY[:3], "policy=easy", "baseline=easy")
    names = text.partition("mean wait")[0]
    assert "adept" in names
    assert "user estimate" in names


def test_the_table_names_the_counts_that_a_rule_chose_from(command):
    assert "powers of two" in shown(command, *TOY, "policy=sa")


def test_the_recorded_wait_stands_beside_the_simulated_one(command, tmp_path):
    more = ("policy=easy", "predictor=user_estimate", "baseline=null")
    text = shown(command, *log_of(tmp_path), *more)
    assert "16.7 min" in text or "1,000" in text


def test_easy_by_users_has_no_foresight_where_users_said_nothing(tmp_path):
    jobs = replayed(*log_of(tmp_path, asked=lambda k: -1), "policy=easy", "predictor=user_estimate")
    assert (jobs["requested_time"] == jobs["runtime"]).mean() < 0.2


def test_replications_of_a_log_are_other_jobs(command, tmp_path):
    more = ("workload.jobs=20", "replications=3", "policy=easy", "predictor=user_estimate")
    ended = command(*log_of(tmp_path), *more, "baseline=null", "hydra.run.dir=run")
    assert ended.status == 0, ended.err
    found = [
        json.loads((tmp_path / f"run/replication={k}/summary.json").read_text()) for k in range(3)
    ]
    assert len({one["mean_response_time"] for one in found}) == 3


def test_bit_identical_replications_are_not_certain(command, tmp_path, capsys):
    more = ("policy=easy,conservative", "predictor=user_estimate", "seed=1,2,3", "baseline=null")
    log = log_of(tmp_path, asked=lambda k: 100 + 900 * (k % 5))
    command("-m", *log, *more, "workload.load=1.5", "hydra.sweep.dir=study")
    assert compare(["study", "--table"]) == 0
    text = capsys.readouterr().out
    assert "< 0.001" not in text
    assert "identical" in text
    assert "not certain" in text or "nothing is certain" in text


def test_no_error_is_shown_whose_size_says_nothing(command):
    text = shown(command, *TOY, "policy=easy")
    assert "prediction error, mean" not in text
    assert "prediction error, median" in text


def test_the_default_machine_never_stands_empty_for_a_day_nor_ask_users_for_twenty_times():
    jobs = set_scene(composed("baseline=null"), 0).trace.jobs
    assert np.diff(jobs["submit_time"]).max() < 86_400
    assert 2 < (jobs["requested_time"] / jobs["reference_runtime"]).median() < 6


class Spy:
    """Asks for the efficiency of jobs that wait, as the engine's own sensor would measure it."""

    def __init__(self, inner):
        self.inner, self.told = inner, {}

    def begin(self, view):
        self.view, self.scheduler = view, self.inner.begin(view)
        return self

    def decide(self):
        for job in range(len(self.view.submit_time)):
            if job not in self.view.running and hasattr(self.view, "sensor"):
                self.told[job] = self.view.sensor(Run(job, 0, (), 2, 0.0, 0.0), 0.0, 0)
        return self.scheduler.decide()


def test_no_policy_reads_the_truth_of_waiting_jobs(monkeypatch):
    spies = []

    def spied(node, key, **more):
        made = build(node, key, **more)
        if key == "policy":
            made = Spy(made)
            spies.append(made)
        return made

    monkeypatch.setattr("sim.simulation.scene.build", spied)
    replayed(*TOY, "policy=fcfs", "predictor=user_estimate")
    assert spies[0].told == {}


def test_forty_equal_jobs_have_two_of_64_processors_each(tmp_path):
    lines = [
        job_line(job_number=k, submit_time=0, run_time=600, requested_time=600,
                 allocated_processors=2, executable=1, user=1)
        for k in range(1, 41)
    ]  # fmt: skip
    log = write_log(tmp_path, "; MaxProcs: 64", *lines)
    asked = ("workload=swf", f"workload.path={log}", "policy=fair_share", "predictor=oracle")
    curves = ("moldability.parallelism_min=64", "moldability.sigma_max=0")
    jobs = replayed(*asked, "workload.applications=1", *curves)
    at_once = jobs[jobs["start_time"] == 0]
    assert at_once["allocated_processors"].tolist() == [2] * 32


def test_the_most_processors_are_no_more_than_shorten_a_job():
    config = composed(*TOY, "policy=maximum", "predictor=oracle")
    outcome = play(config, config, set_scene(config, 0)).outcome
    for job, count in enumerate(outcome.tables.jobs["allocated_processors"]):
        times = outcome.truth.runtimes(job, np.arange(1, count + 1))
        assert count == 1 or times[-1] < times[:-1].min()


def test_sa_does_not_claim_to_try_the_largest_count():
    said = " ".join((SmallestTurnaround.__doc__ or "").split())
    assert "the job's largest are always among them" not in said


def test_the_tutorial_says_what_its_recommendation_rests_on():
    text = (DOCS / "results/tutorial.md").read_text("utf-8")
    assert "no policy here is to be recommended" in text
    assert "this log gives no evidence for molding" in text
    assert "no runs before the start, no sizes" in text
