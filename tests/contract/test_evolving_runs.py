"""Evolving jobs and failing nodes from the command line: presets, pictures, same bytes."""

import json

import pandas as pd
import pytest

SMALL = (
    "workload.jobs=60",
    "cluster.processors=64",
    "policy=easy",
    "predictor=dynamic",
    "predictor.renew_every=60",
    "sim.check=true",
)
FAILING = ("evolving=adaptive", "evolving.share=0.5", "cluster=failing", "cluster.mtbf=400000")


@pytest.mark.parametrize("name", ["cycles", "checkpoints", "interference"])
def test_presets_draw_their_figures(command, tmp_path, name):
    ended = command(f"experiment={name}", "sim.check=true", "hydra.run.dir=run")
    assert ended.status == 0, ended.err
    assert (tmp_path / "run" / "cycles.png").is_file()
    assert (tmp_path / "run" / "checkpoints.png").is_file() == (name == "checkpoints")


def test_failures_are_in_metrics_and_tables_and_repeat_byte_by_byte(command, tmp_path):
    for folder in ("one", "two"):
        assert command(*SMALL, *FAILING, f"hydra.run.dir={folder}").status == 0
    one, two = ((tmp_path / f / "summary.json").read_bytes() for f in ("one", "two"))
    assert one == two
    summary = json.loads(one)
    assert summary["restarts"] > 0
    assert summary["lost_work"] > 0.0
    assert summary["checkpoint_overhead"] > 0.0
    assert summary["unfinished_jobs"] == 0
    assert 0 < summary["evolving_jobs"] < 60
    jobs = pd.read_parquet(tmp_path / "one" / "jobs.parquet")
    assert jobs["lost_work"].sum() == pytest.approx(summary["lost_work"])
    assert (jobs["reason"] == "").all()
    base = json.loads((tmp_path / "one" / "baseline" / "summary.json").read_bytes())
    assert base["evolving_jobs"] == summary["evolving_jobs"]


def test_a_bad_value_is_named(command):
    ended = command(*SMALL, "cluster=failing", "cluster.mtbf=-1", "hydra.run.dir=run")
    assert ended.status == 2
    assert "cluster.mtbf must be positive" in ended.err


@pytest.mark.parametrize("policy", ["equi", "pools", "sa", "lpa"])
def test_other_policies_cope_with_failures(command, policy):
    more = ("predictor=noisy_oracle", "baseline=null", "hydra.run.dir=run")
    small = [o for o in SMALL if not o.startswith(("policy", "predictor"))]
    ended = command(*small, *FAILING, f"policy={policy}", *more)
    assert ended.status == 0, ended.err
