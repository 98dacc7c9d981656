"""Damaged and foreign runs: found, told, done again; never an end of a comparison."""

import json
import shutil

import pytest

from sim.compare import main as compare
from sim.report.gathering import gather
from sim.results.durable import damage
from sim.verify import main as verify

TINY = ("-m", "workload.jobs=20", "policy=fcfs", "picture=all", "hydra.sweep.dir=sweep")


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("kept") / "sweep"


@pytest.fixture
def swept(command, tmp_path, kept):
    """A sweep of three runs and their baselines, made once."""
    if not kept.exists():
        assert command(*TINY, "seed=1,2,3", "baseline=easy").status == 0
        shutil.copytree(tmp_path / "sweep", kept)
    else:
        shutil.copytree(kept, tmp_path / "sweep")
    return tmp_path / "sweep"


def run_of(swept, seed):
    return next(path for path in swept.iterdir() if f"seed={seed}" in path.name)


def content(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.glob("*/**/*"))
        if path.suffix in (".parquet", ".png") or path.name == "summary.json"
    }


def empty(path):
    path.write_bytes(b"")


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])


def other(path):
    text = path.read_text()
    path.write_text(text.replace("1", "2", 1))


DAMAGES = {
    "an empty summary": ("summary.json", empty),
    "a cut summary": ("summary.json", cut),
    "another summary": ("summary.json", other),
    "an empty manifest": ("manifest.json", empty),
    "a cut table": ("jobs.parquet", cut),
    "a cut picture": ("schedule.png", cut),
    "a cut baseline": ("baseline/jobs.parquet", cut),
    "an empty baseline": ("baseline/summary.json", empty),
}


def test_every_damage_is_found_told_and_done_again(command, swept, capsys):
    whole = content(swept)
    assert verify([str(swept)]) == 0
    assert capsys.readouterr().out == "3 finished\n"
    run = run_of(swept, 2)
    for said, (name, damaged) in DAMAGES.items():
        damaged(run / name)
        assert verify([str(swept)]) == 1, said
        out = capsys.readouterr().out
        assert out.startswith(f"damaged: {run.name}: {name.rpartition('/')[0]}"), said
        assert "2 finished, 1 damaged" in out
        assert compare([str(swept), "--table"]) == 0, said
        assert "damaged" in capsys.readouterr().out
        assert command(*TINY, "seed=1,2,3", "baseline=easy").status == 0
        assert content(swept) == whole, said
    assert verify([str(swept)]) == 0


def test_what_is_missing_is_done_again_and_leaves_figures(command, swept, capsys):
    whole = content(swept)
    run = run_of(swept, 3)
    (run / "jobs.parquet").unlink()
    (run / "baseline" / "manifest.json").unlink()
    assert gather(swept)[0]["status"].eq("finished").all()
    assert verify([str(swept)]) == 1
    assert f"damaged: {run.name}: baseline/manifest.json is missing" in capsys.readouterr().out
    shutil.rmtree(run_of(swept, 1) / "baseline")
    assert command(*TINY, "seed=1,2,3", "baseline=easy").status == 0
    assert content(swept) == whole


ODD = {
    "overrides.yaml": "- [",
    "hydra.yaml": "- a\n- b\n",
    "config.yaml": "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
}


@pytest.mark.parametrize("name", ODD)
def test_odd_yaml_is_told_stops_nothing_and_is_written_again(command, swept, capsys, name):
    run = run_of(swept, 1)
    (run / ".hydra" / name).write_text(ODD[name])
    table, *_ = gather(swept)
    assert table["status"].tolist().count("damaged") == 1
    assert compare([str(swept), "--table"]) == 0
    assert f"damaged {run.name}: " in capsys.readouterr().out
    assert verify([str(swept)]) == 1
    command(*TINY, "seed=1,2,3", "baseline=easy")
    assert verify([str(swept)]) == 0


def test_missing_failed_and_foreign_runs_are_told_apart(command, swept, capsys):
    (run_of(swept, 1) / "summary.json").unlink()
    run = run_of(swept, 2)
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps({"host": manifest["host"]}))
    command(*TINY, "seed=-1", "baseline=easy")
    capsys.readouterr()
    assert verify([str(swept)]) == 1
    out = capsys.readouterr().out
    assert f"missing: {run_of(swept, 1).name}: it has no summary.json" in out
    assert f"foreign: {run.name}: manifest.json has no checksums" in out
    assert out.endswith("1 finished, 1 missing, 1 failed, 1 foreign\n")
    assert verify([str(swept / "nowhere")]) == 2


def test_runs_that_a_sweep_never_began_are_told(command, swept, tmp_path, capsys):
    for seed in (2, 3):
        shutil.rmtree(run_of(swept, seed))
    left = "not there: 2 of 3 asked for in multirun.yaml"
    assert verify([str(swept)]) == 1
    assert capsys.readouterr().out == f"1 finished, {left}\n"
    assert compare([str(swept)]) == 0
    assert capsys.readouterr().out.startswith(f"Runs {left}.\n")
    assert f" finished, {left}; " in (swept / "comparison.html").read_text()
    (run_of(swept, 1) / "summary.json").unlink()
    assert verify([str(swept)]) == 1
    assert capsys.readouterr().out.endswith(f"\n1 missing, {left}\n")
    assert verify([str(run_of(swept, 1))]) == 1
    assert capsys.readouterr().out.endswith("\n1 missing\n")
    assert command(*TINY, "seed=1,2", "baseline=easy").status == 0
    assert command(*TINY[:-1], "seed=4,5", "hydra.sweep.dir=other").status == 0
    shutil.rmtree(run_of(tmp_path / "other", 4))
    assert verify([str(tmp_path)]) == 1
    files = "other/multirun.yaml, sweep/multirun-1.yaml"
    assert capsys.readouterr().out == f"3 finished, not there: 2 of 5 asked for in {files}\n"
    (swept / "multirun-1.yaml").write_text("hydra: [")
    assert verify([str(swept)]) == 0
    kept = (swept / "multirun.yaml").read_text()
    (swept / "multirun-1.yaml").write_text(kept.replace("seed=1,2", "seed=range(1,9999999999)"))
    assert verify([str(swept)]) == 0


def test_replications_are_checked_too(command, tmp_path, capsys):
    asked = ("-m", "workload.jobs=20", "replications=2", "hydra.sweep.dir=sweep", "policy=fcfs")
    assert command(*asked).status == 0
    run = next((tmp_path / "sweep").glob("policy*"))
    assert damage(run) is None
    cut(run / "replication=1" / "jobs.parquet")
    assert damage(run) == "replication=1/jobs.parquet is damaged: its checksum differs"
    assert command(*asked).status == 0
    assert damage(run) is None
    shutil.rmtree(run / "replication=1")
    assert compare([str(tmp_path / "sweep"), "--table"]) == 0
    gone = "replication=1/manifest.json is missing; what is there is compared"
    assert f"\nfinished {run.name}: {gone}\n" in capsys.readouterr().out
