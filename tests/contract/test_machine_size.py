"""The size of a machine that a log does not state: the most that it holds at once, everywhere."""

import json
import logging

import pytest
from swf_samples import job_line, write_log

from sim.advise import main as advise
from sim.backtest import main as backtest
from sim.compare import main as compare
from workloads.__main__ import main as workloads
from workloads.logs.cleaning import screen
from workloads.logs.swf import read_swf

HELD = 11
"""By the second and the third job, side by side; the first, the widest, has 7."""
SAID = f"the most processors that it holds at once, {HELD} (cluster.processors=N says otherwise"
JOBS = ((0, 0, 100, 7), (10, 90, 100, 5), (20, 130, 100, 6), (30, 900, 50, 4))
"""Submit, wait, runtime, processors."""


def log_of(folder, jobs):
    lines = [
        job_line(job_number=n, submit_time=s, wait_time=w, run_time=r, allocated_processors=p)
        for n, (s, w, r, p) in enumerate(jobs, 1)
    ]
    return write_log(folder, "; Note: no size", *lines)


def test_a_run_and_its_comparison_take_and_state_it(command, tmp_path, capsys):
    log = log_of(tmp_path, JOBS)
    rigid = (
        "moldability=none",
        "policy=conservative",
        "predictor=user_estimate",
        "hydra.run.dir=run",
    )
    ended = command("workload=swf", f"workload.path={log}", *rigid)
    assert SAID in ended.err.splitlines()[0]
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["processors"], summary["processors_by"]) == (HELD, "recorded")
    assert compare([str(tmp_path / "run"), "--table"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"the most processors that its jobs held at once, {HELD}." in shown


@pytest.mark.parametrize(
    ("act", "given"),
    [
        (backtest, ["LOG", "backtest.folder=told", "backtest.candidates=[easy]"]),
        (advise, ["LOG", "advise.folder=told", "advise.starts=false"]),
        (workloads, ["describe", "LOG", "--json", "told.json"]),
        (workloads, ["convert", "LOG", "told.swf", "--jobs", "2"]),
        (workloads, ["convert", "LOG", "told.swf"]),
    ],
)
def test_other_commands_take_and_state_it(tmp_path, monkeypatch, capsys, caplog, act, given):
    monkeypatch.chdir(tmp_path)
    log = log_of(tmp_path, JOBS)
    with caplog.at_level(logging.WARNING):
        assert act([str(log) if one == "LOG" else one for one in given]) == 0
    assert [SAID in record.getMessage() for record in caplog.records].count(True) == 1
    told = "".join(path.read_text() for path in tmp_path.rglob("*.*") if path.suffix == ".json")
    told += (tmp_path / "told.swf").read_text() if (tmp_path / "told.swf").exists() else ""
    size = f"MaxProcs: {HELD}" if "--jobs" in given else f'"processors": {HELD}'
    assert size in told or given[-1] == "told.swf"


def test_jobs_without_recorded_waits_count_one_by_one(tmp_path, caplog):
    unknown = log_of(tmp_path, [(s, -1, r, p) for s, _, r, p in JOBS])
    assert screen(read_swf(unknown)).machine == 7
    some = log_of(tmp_path, [*JOBS[:3], (150, -1, 100, 4)])
    assert screen(read_swf(some)).machine == HELD
    with caplog.at_level(logging.WARNING):
        assert workloads(["describe", str(some)]) == 0
    assert "1 of 4 jobs have no recorded wait, and each counts by itself" in caplog.text
