"""The log in the package: made by one command, said to be generated, taken by every command."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import sim
from scripts.make_sample import FILE, JOBS, PROCESSORS, make
from sim.advise import main as advise
from sim.backtest import main as backtest
from sim.results.steady_state import STEADY
from workloads.__main__ import main as describe
from workloads.logs.log import SwfWorkload
from workloads.logs.swf import log_file, read_swf, unpack
from workloads.streams import Streams

pytestmark = pytest.mark.fast


def test_the_command_of_its_header_makes_it_again_byte_for_byte(tmp_path):
    make(tmp_path / "again.swf.gz")
    assert unpack(tmp_path / "again.swf.gz")[1] == unpack(FILE)[1]
    assert FILE.stat().st_size < 100_000
    notes = " ".join(read_swf(FILE).values("Note"))
    assert "GENERATED" in notes
    assert "python -m scripts.make_sample" in notes
    for source in ("Lublin", "Tsafrir", "Zilber"):
        assert re.search(rf"{source}.* \(?\d{{4}}", notes)


def test_it_says_all_that_a_site_records():
    log = read_swf(FILE)
    jobs = log.jobs
    assert (len(jobs), log.machine_size()) == (JOBS, PROCESSORS)
    assert log.date(0.0) == "2026-01-05 00:00 UTC"
    known = ("wait_time", "run_time", "requested_time", "user", "group", "executable", "status")
    assert all((jobs[name] >= 0).all() and (jobs[name] % 1 == 0).all() for name in known)
    ended = jobs["status"] == 0  # at the limit
    assert 0 < ended.sum() < 50
    assert (jobs["run_time"][ended] == jobs["requested_time"][ended]).all()
    assert (jobs["wait_time"] > 0).mean() > 0.2


def test_a_run_takes_all_of_it_and_easy_plays_what_it_records():
    run = sim.run("workload=sample", policy="easy", predictor="user_estimate", baseline="recorded")
    assert run.summary["jobs"] == JOBS
    assert run.summary["dropped_jobs"] == 0
    assert run.summary[STEADY] is True
    assert run.summary["mean_wait_time"] == run.summary["recorded_mean_wait_time"]
    assert run.baseline.summary["mean_wait_time"] == run.summary["mean_wait_time"]
    jobs = run.jobs
    area = (jobs["requested_processors"] * jobs["reference_runtime"]).sum()
    load = area / (PROCESSORS * np.ptp(jobs["submit_time"]))
    assert load == pytest.approx(0.7, abs=0.01)


def test_sample_stands_where_a_log_does(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert describe(["describe", "sample"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"sample.swf.gz ({FILE})"
    assert backtest(["sample", "backtest.candidates=easy", "workload.jobs=300"]) == 0
    assert "easy comes nearest" in capsys.readouterr().out
    assert advise(["sample", "workload.jobs=300"]) == 0
    assert "advice.html" in capsys.readouterr().out
    run = sim.run("workload.jobs=50", jobs="sample", policy="easy", baseline=None, folder="run")
    assert len(run.jobs) == 50
    assert '"workload.path"' in Path("run/manifest.json").read_text()


def test_a_file_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = " ".join(map(str, (1, 0, 0, 60, 4, -1, -1, 4, 90, *(-1,) * 9)))
    Path("sample").write_text(f"; MaxProcs: 8\n{line}\n")
    assert log_file("sample") == Path("sample")
    assert len(SwfWorkload("sample").trace(Streams(1)).jobs) == 1


def test_packages_take_it_along():
    """The wheel itself is looked into by .ci/run, which plays it from there."""
    root = Path(__file__).resolve().parents[2]
    settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert any(FILE.match(pattern) for pattern in settings["package-data"]["*"])
    assert (FILE.parent / "__init__.py").exists()
