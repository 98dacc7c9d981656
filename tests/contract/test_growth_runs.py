"""A doubled machine from the command line: the preset, its table, the same bytes."""

import json

import pandas as pd

SMALL = ("experiment=keep_time", "workload.jobs=120", "workload.applications=4")


def test_the_preset_says_which_sizes_keep_the_time(command, tmp_path):
    ended = command(*SMALL, "sim.check=true", "hydra.run.dir=run")
    assert ended.status == 0, ended.err
    assert "time kept" in ended.out
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    sizes = pd.read_parquet(tmp_path / "run/sizes.parquet")
    jobs = pd.read_parquet(tmp_path / "run/jobs.parquet").query("job_id >= 0", engine="python")
    jobs = jobs.reset_index(drop=True)
    grew = sizes["outcome"] == "grew"
    assert summary["processors"] == 512
    assert summary["sizes_grew"] == grew.sum() > 60
    assert (sizes["grown_processors"][grew] == 2 * sizes["processors"][grew]).all()
    assert (jobs["allocated_processors"] == sizes["grown_processors"]).all()
    assert (jobs["reference_runtime"] == sizes["runtime"]).all()
    assert summary["kept_time_median_error"] < 0.2


def test_a_growth_is_the_same_under_any_policy_and_repeats_byte_by_byte(command, tmp_path):
    command(*SMALL, "hydra.run.dir=one")
    command(*SMALL, "policy=sa", "predictor=oracle", "hydra.run.dir=other")
    one, other = ((tmp_path / f / "sizes.parquet").read_bytes() for f in ("one", "other"))
    assert one == other


def test_a_growth_that_cannot_be_solved_is_refused(command, tmp_path):
    ended = command(*SMALL, "workload.size=hidden", "hydra.run.dir=run")
    assert ended.status == 2
    assert "needs workload.size=known" in ended.err
    assert not (tmp_path / "run/summary.json").exists()
    ended = command(*SMALL, "growth.factor=1", "hydra.run.dir=run")
    assert ended.status == 2
    assert "growth.factor=1: must be at least 2" in ended.err
