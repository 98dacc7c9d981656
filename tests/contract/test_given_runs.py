"""What predictors were given, from the command line: in every summary, and below the table."""

import json

from sim.results.sentences import given_line
from sim.simulation.replay import step_between
from tests.former import WORLD

TOY = (
    "workload.jobs=40",
    "workload.applications=4",
    "cluster.processors=64",
    *WORLD,
    "given=default",
)


def test_run_and_baseline_say_it_in_their_summaries_and_below_the_table(command, tmp_path):
    ended = command(*TOY, "hydra.run.dir=run")
    run, base = (
        json.loads((tmp_path / place / "summary.json").read_text())
        for place in ("run", "run/baseline")
    )
    assert (run["given_runs"], base["given_runs"]) == (12, 0)
    assert " ".join(f"This rests on: {given_line(run)};".split()) in " ".join(ended.out.split())
    assert "the run alone bears their cost" in " ".join(ended.out.split())


def summaries(folder):
    return {path.parent.relative_to(folder).as_posix(): json.loads(path.read_text())
            for path in folder.rglob("summary.json")}  # fmt: skip


def test_the_step_between_is_the_baselines_policy_with_the_runs_predictor(command, tmp_path):
    ended = command(*TOY, "policy=sa_easy", "hydra.run.dir=run")
    found = summaries(tmp_path / "run")
    assert set(found) == {".", "baseline", "baseline_predictor"}
    command(*TOY, "policy=easy", "baseline=null", "hydra.run.dir=alone")
    alone = tmp_path / "alone/jobs.parquet"
    assert (tmp_path / "run/baseline_predictor/jobs.parquet").read_bytes() == alone.read_bytes()
    shown = " ".join(ended.out.split())
    assert "Change by policy: sa_easy by adept against easy by adept." in shown
    assert "Change by runtime information: easy by adept against easy by user_estimate." in shown


def test_like_and_like_need_no_step(command, tmp_path):
    for place, same in (("a", "policy=easy"), ("b", "predictor=user_estimate")):
        ended = command(*TOY, same, f"hydra.run.dir={place}")
        assert set(summaries(tmp_path / place)) == {".", "baseline"}
        assert "Difference: " in ended.out
    refused = command(*TOY, "baseline_predictor=false", "hydra.run.dir=c")
    assert set(summaries(tmp_path / "c")) == {".", "baseline"}
    assert "Both differ: baseline_predictor=true simulates the" in " ".join(refused.out.split())


def test_replications_have_the_step_each_and_a_run_without_it_leaves_none(command, tmp_path):
    command(*TOY, "replications=2", "hydra.run.dir=run")
    parts = {"", "/baseline", "/baseline_predictor"}
    assert set(summaries(tmp_path / "run")) == {
        ".",
        *(f"replication={k}{p}" for k in (0, 1) for p in parts),
    }
    command(*TOY, "baseline=null", "hydra.run.dir=run")
    assert set(summaries(tmp_path / "run")) == {"."}
    assert not (tmp_path / "run/replication=0").exists()


def test_many_jobs_have_a_step_only_if_it_is_asked_for():
    parts = {name: {"policy": {"x": name}, "predictor": {"y": name}} for name in ("own", "base")}
    config = parts["own"] | {"baseline": parts["base"], "menu": None, "baseline_predictor": None}
    step = {"policy": {"x": "base"}, "predictor": {"y": "own"}}
    assert step_between(config, 100_000) == step
    assert step_between(config, 100_001) is None
    assert step_between(config | {"baseline_predictor": True}, 100_001) == step
    assert step_between(config | {"baseline_predictor": False}, 5) is None
    assert step_between(config | {"baseline": None}, 5) is None
