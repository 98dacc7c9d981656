"""A doubled machine from the command line: the preset, its table, the same bytes."""

import json

import pandas as pd
import pytest

from tests.former import WORLD

SMALL = (
    *WORLD,
    "given=default",
    "experiment=keep_time",
    "workload.jobs=120",
    "workload.applications=4",
)


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


def test_the_policy_gives_the_count_and_the_predictor_the_size_that_keeps_the_time(
    command, tmp_path
):
    asked = (*SMALL, "growth.allotment=policy", "policy=sa")
    ended = command(*asked, "hydra.run.dir=run")
    assert ended.status == 0, ended.err
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    sizes = pd.read_parquet(tmp_path / "run/sizes.parquet")
    jobs = pd.read_parquet(tmp_path / "run/jobs.parquet").query("job_id >= 0", engine="python")
    jobs = jobs.reset_index(drop=True)
    sized = sizes["outcome"].isin(["grew", "shrank"])
    assert sized.sum() == summary["sizes_grew"] + summary["sizes_shrank"] > 40
    assert (sizes["grown_processors"] == jobs["allocated_processors"]).all()
    assert sizes["runtime"].to_numpy() == pytest.approx(jobs["runtime"].to_numpy())
    stayed = sizes["outcome"] == "stayed"
    assert (jobs["allocated_processors"] == jobs["requested_processors"])[stayed].all()
    assert (sizes["runtime"] == sizes["wanted_time"])[stayed].all()
    grew = sizes["outcome"] == "grew"
    assert (sizes["grown_size"] > sizes["size"])[grew].all()
    assert (sizes["grown_processors"] > sizes["processors"])[grew].all()
    off = (sizes["runtime"] / sizes["wanted_time"] - 1).abs()[sized]
    assert summary["kept_time_median_error"] == pytest.approx(off.median())
    assert summary["kept_time_median_error"] < 0.2
    assert summary["prediction_median_error"] < 0.3  # of the size's time, not of the old one's
    command(*asked, "sim.check=true", "hydra.run.dir=checked")
    one, other = (tmp_path / f / "sizes.parquet" for f in ("run", "checked"))
    assert one.read_bytes() == other.read_bytes()


def test_sizing_in_the_loop_is_refused_in_a_line_where_it_cannot_be(command):
    for more, said in (
        ("moldability.size_exponent=0.3", "needs moldability.size_exponent=0"),
        ("workload.size=hidden", "needs workload.size=known"),
        ("growth.allotment=users", "growth.allotment=users: must be request or policy"),
    ):
        ended = command(*SMALL, "growth.allotment=policy", more, "hydra.run.dir=run")
        assert ended.status == 2
        assert said in ended.err
