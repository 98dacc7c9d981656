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
    for ending in ("svg", "dark.svg"):
        assert (tmp_path / f"run/cycles.{ending}").is_file()
        assert (tmp_path / f"run/checkpoints.{ending}").is_file() == (name == "checkpoints")


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
    assert "cluster.mtbf must be at least 1 and" in ended.err


@pytest.mark.parametrize("policy", ["equi", "pools", "sa", "lpa"])
def test_other_policies_cope_with_failures(command, policy):
    more = ("predictor=noisy_oracle", "baseline=null", "hydra.run.dir=run")
    small = [o for o in SMALL if not o.startswith(("policy", "predictor"))]
    ended = command(*small, *FAILING, f"policy={policy}", *more)
    assert ended.status == 0, ended.err


LIMITED = ("evolving=adaptive", "overrun=kill", "workload.estimate_limit=7200", "baseline=null")


def test_what_jobs_ask_for_is_in_summary_and_table(command, tmp_path):
    plain = [o for o in SMALL if not o.startswith("predictor")] + ["predictor=user_estimate"]
    asks = ("evolving.asks.walltime=true", "policy/grants=defer")
    assert command(*plain, *LIMITED, "hydra.run.dir=off").status == 0
    for folder in ("one", "two"):
        assert command(*plain, *LIMITED, *asks, f"hydra.run.dir={folder}").status == 0
    off = json.loads((tmp_path / "off" / "summary.json").read_bytes())
    on = json.loads((tmp_path / "one" / "summary.json").read_bytes())
    assert "requests" not in off
    assert not (tmp_path / "off" / "requests.parquet").exists()
    assert on["requests_for_walltime"] == on["requests"] > 0
    assert on["restarts"] < off["restarts"]
    table = pd.read_parquet(tmp_path / "one" / "requests.parquet")
    assert len(table) == on["requests"]
    granted = table["outcome"] == "granted"
    assert granted.sum() == on["requests_granted"] > 0
    assert on["granted_walltime"] == pytest.approx(table["wanted_seconds"][granted].sum())
    for name in ("summary.json", "requests.parquet"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_asks_that_cannot_be_are_named(command):
    asks = ("evolving=adaptive", "evolving.asks.memory=true")
    ended = command(*SMALL, *asks, "hydra.run.dir=run")
    assert ended.status == 2
    assert "evolving.memory" in ended.err
    grants = ("policy=expand", "+policy/grants=now", "evolving=adaptive")
    small = [o for o in SMALL if not o.startswith("policy")]
    ended = command(*small, *grants, "hydra.run.dir=run")
    assert ended.status == 2
    assert "policy.grants" in ended.err
