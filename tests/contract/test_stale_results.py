"""A multirun started again redoes what was made from other files or by other code."""

import json
import shutil

import pytest
from swf_samples import job_line, write_log

from sim.compare import main as compare
from sim.report.gathering import gather
from sim.results import provenance
from sim.results.durable import read_object

TINY = ("-m", "workload=swf", "workload.path=log.swf", "policy=fcfs", "predictor=user_estimate",
        "hydra.sweep.dir=sweep")  # fmt: skip


CURVE = "application,problem,nprocs,runtime_s\na,1,1,10\na,1,2,6\na,1,4,4\n"


def log(folder, runtime):
    jobs = [job_line(job_number=k, submit_time=10 * k, run_time=runtime, requested_time=90)
            for k in range(1, 9)]  # fmt: skip
    return write_log(folder, "; MaxProcs: 4", *jobs)


def summaries(folder):
    return {path.parent.name: path.read_bytes() for path in folder.glob("*/summary.json")}


def stamps(folder):
    return {path.parent.name: path.stat().st_mtime_ns for path in folder.glob("*/summary.json")}


@pytest.fixture
def swept(command, tmp_path):
    log(tmp_path, 60)
    assert command(*TINY, "seed=1,2").status == 0
    return tmp_path / "sweep"


def test_another_log_of_the_same_name_is_read(command, swept, tmp_path):
    before = summaries(swept)
    first = command(*TINY, "seed=1,2")
    assert (first.status, summaries(swept)) == (0, before)
    assert "again" not in first.err
    log(tmp_path, 61)
    again = command(*TINY, "seed=1,2")
    assert again.status == 0
    assert "WARNING (2 runs): done again: workload.path is another file than it was\n" in again.err
    after = summaries(swept)
    assert all(before[name] != after[name] for name in before)
    shutil.rmtree(swept)
    command(*TINY, "seed=1,2")
    assert summaries(swept) == after


def test_other_code_is_run_unless_that_is_accepted(command, swept, monkeypatch, capsys):
    code = read_object(next(swept.glob("*/manifest.json")))["code"]
    assert code == provenance.code_checksum()
    monkeypatch.setattr(provenance, "code_checksum", lambda: "0" * 64)
    before = stamps(swept)
    kept = command(*TINY, "seed=1,2,3", "reuse=inputs")
    assert kept.status == 0
    assert {name: stamps(swept)[name] for name in before} == before
    table, keys, _ = gather(swept)
    assert "code" in keys
    assert sorted(table["code"]) == sorted([code[:8], code[:8], "00000000"])
    assert compare([str(swept), "--table"]) == 0
    assert "00000000" in capsys.readouterr().out
    again = command(*TINY, "seed=1,2,3")
    assert (
        "WARNING (2 runs): done again: the code has changed; reuse=inputs keeps such runs\n"
        in again.err
    )
    assert "code" not in gather(swept)[1]


def test_runs_of_other_files_under_one_name_are_no_pairs(command, swept, tmp_path, capsys):
    log(tmp_path, 75)
    assert command(*TINY, "seed=1,2", "policy=easy").status == 0
    table, keys, _ = gather(swept)
    assert "input" in keys
    assert len(set(table["input"])) == 2
    assert compare([str(swept), "--table"]) == 0
    assert "or by other code of a package, are not paired" in capsys.readouterr().out


def test_a_missing_input_changes_nothing(command, swept, tmp_path):
    before = stamps(swept)
    (tmp_path / "log.swf").unlink()
    assert command(*TINY, "seed=1,2").status == 0
    assert stamps(swept) == before


def test_manifests_tell_what_a_run_was_made_of(command, tmp_path):
    log(tmp_path, 60)
    curves = tmp_path / "curves"
    curves.mkdir()
    (curves / "a.csv").write_text(CURVE)
    asked = ("workload=swf", "workload.path=log.swf", "moldability=measured", "hydra.run.dir=run",
             "moldability.path=curves", "predictor=user_estimate", "baseline=null")  # fmt: skip
    ended = command(*asked)
    assert ended.status == 0, ended.err
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert sorted(manifest["inputs"]) == ["moldability.path/a.csv", "workload.path"]
    assert manifest["inputs"]["workload.path"] == manifest["checksum"]
    assert len(manifest["code"]) == 64
    assert manifest["artefacts"]["jobs.parquet"]


def test_reuse_has_one_value(command):
    ended = command("reuse=code")
    assert ended.status == 2
    assert ended.err.strip() == "error: reuse=code: must be inputs or null"
