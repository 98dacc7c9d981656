"""Every byte of the user's files is the same before and after, whatever is refused or broken."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from swf_samples import job_line, write_log

import sim
from sim.compare import main as compare
from sim.errors import SimError
from sim.results.durable import LOCK
from sim.verify import main as verify
from tests.contract.test_architecture import ROOT

TINY = ("workload.jobs=20", "policy=fcfs", "baseline=null", "picture=none")
TABLE = "submit_time,runtime,requested_processors\n0,10,1\n5,20,2\n"
MINE = {
    "jobs.csv": TABLE,
    "schedule.swf": "mine",
    "summary.json": "{}",
    "manifest.json": '{"name": "my page"}',
    ".hydra/config.yaml": "of: another program\n",
    "baseline/summary.json": "{}",
    "multirun.yaml": "of: another program\n",
    "json.py": "raise SystemExit(9)\n",
    "numpy.py": "raise SystemExit(9)\n",
}


def everything(folder):
    """Return the content and the time of every file and folder, but for locks."""
    return {
        path.relative_to(folder).as_posix(): (
            path.read_bytes() if path.is_file() else None,
            path.lstat().st_mtime_ns if path.is_file() else None,
        )
        for path in sorted(folder.rglob("*"))
        if path.name != LOCK
    }


@pytest.fixture
def mine(tmp_path):
    for name, text in MINE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


OWN_FOLDER = {
    "its own input": ("workload=table", "workload.path=jobs.csv", "hydra.run.dir=."),
    "a value out of range": ("workload.load=-1", "hydra.run.dir=."),
    "an unknown key": ("workload.lod=1", "hydra.run.dir=."),
    "a plain run": (*TINY, "export=[csv,swf]", "hydra.run.dir=."),
    "a sweep": ("-m", *TINY, "seed=1,2", "hydra.sweep.dir=."),
    "a group above": ("policy=../../mine", "hydra.run.dir=run"),
    "a group's name above": ("+../mine=jobs", "hydra.run.dir=run"),
    "a log above": (*TINY, "hydra.job.name=../mine", "hydra.run.dir=baseline/new"),
    "a run above its sweep": ("-m", *TINY, "hydra.sweep.subdir=../../x", "hydra.sweep.dir=new"),
    "a copy by Hydra": (*TINY, "hydra.output_subdir=kept", "hydra.run.dir=."),
}


@pytest.mark.parametrize("case", OWN_FOLDER)
def test_a_folder_of_the_user_is_refused_in_a_line_and_stays(command, mine, case):
    before = everything(mine)
    ended = command(*OWN_FOLDER[case])
    assert ended.status == 2, ended.err
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    assert everything(mine) == before


def test_sim_run_and_sweep_refuse_it_too(mine):
    (mine / "runs/workload.jobs=20").mkdir(parents=True)
    (mine / "runs/workload.jobs=20/summary.json").write_text("mine")
    before = everything(mine)
    with pytest.raises(SimError, match="which no run wrote"):
        sim.run("workload.jobs=20", folder=mine)
    table = sim.sweep("workload.jobs=20", policy="fcfs", folder=mine / "runs")
    assert table["status"].tolist() == ["finished"]
    (mine / "runs" / table["run"][0]).rename(mine / "made")
    (mine / "runs/workload.jobs=20").rename(mine / "runs" / table["run"][0])
    with pytest.raises(SimError, match=r"1 of 1 runs failed.*which no run wrote"):
        sim.sweep("workload.jobs=20", policy="fcfs", folder=mine / "runs")
    (mine / "runs" / table["run"][0]).rename(mine / "runs/workload.jobs=20")
    assert before.items() <= everything(mine).items()


@pytest.fixture
def run(command, tmp_path):
    """A finished run, and what is in its folder."""
    assert command(*TINY, "seed=1", "baseline=easy", "hydra.run.dir=run").status == 0
    return everything(tmp_path)


REFUSED_LATER = {
    "a typo": ("workload.lod=1",),
    "a value": ("workload.load=-1",),
    "a missing log": ("workload=swf", "workload.path=none.swf"),
    "a part's own check": ("predictor=adept", "predictor.calibration=-3"),
    "a format": ("export=[../x]",),
}


@pytest.mark.parametrize("case", REFUSED_LATER)
def test_what_is_refused_leaves_good_results_and_their_configuration(command, tmp_path, run, case):
    ended = command(*TINY, "seed=2", *REFUSED_LATER[case], "hydra.run.dir=run")
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert everything(tmp_path) == run


def test_what_breaks_on_the_way_leaves_them_too(command, tmp_path, run, monkeypatch):
    def broken(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("sim.results.artefacts.write_ends", broken)
    assert command(*TINY, "seed=2", "hydra.run.dir=run").status == 130
    assert everything(tmp_path) == run


def test_a_file_called_like_an_artefact_is_not_overwritten(command, tmp_path, run):
    (tmp_path / "run/jobs.csv").write_text(TABLE)
    (tmp_path / "run/notes.txt").write_text("mine")
    before = everything(tmp_path)
    ended = command(*TINY, "export=[csv]", "hydra.run.dir=run")
    assert "it holds jobs.csv, which no run wrote" in ended.err
    assert everything(tmp_path) == before
    (tmp_path / "run/jobs.csv").unlink()
    (tmp_path / "run/baseline/schedule.png").symlink_to(tmp_path / "run/notes.txt")
    assert "baseline/schedule.png" in command(*TINY, "hydra.run.dir=run").err
    (tmp_path / "run/baseline/schedule.png").unlink()
    assert command(*TINY, "seed=3", "export=[csv]", "hydra.run.dir=run").status == 0
    assert (tmp_path / "run/notes.txt").read_text() == "mine"
    assert not (tmp_path / "run/baseline").exists()
    assert verify([str(tmp_path / "run")]) == 0


@pytest.mark.parametrize("name", ["config", "overrides", "hydra"])
def test_a_configuration_of_another_run_is_told(command, tmp_path, run, capsys, name):
    assert command(*TINY, "seed=7", "hydra.run.dir=other").status == 0
    (tmp_path / f"other/.hydra/{name}.yaml").replace(tmp_path / f"run/.hydra/{name}.yaml")
    capsys.readouterr()
    said = f".hydra/{name}.yaml does not belong to these results"
    assert verify([str(tmp_path / "run")]) == 1
    assert said in capsys.readouterr().out
    compare([str(tmp_path / "run"), "--table"])
    assert said in " ".join(capsys.readouterr().out.split())


def test_a_second_process_leaves_the_configuration_of_the_first(command, tmp_path):
    asked = [sys.executable, "-m", "sim", "seed=5", "workload.jobs=3000", "hydra.run.dir=run"]
    with subprocess.Popen(
        asked, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as first:  # fmt: skip
        while not (tmp_path / "run/.hydra/overrides.yaml").exists():
            time.sleep(0.02)
        before = everything(tmp_path / "run/.hydra")
        ended = command(*TINY, "seed=99", "policy=easy", "hydra.run.dir=run")
        first.send_signal(signal.SIGKILL)
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert f"process {first.pid} on " in ended.err
    assert everything(tmp_path / "run/.hydra").items() >= before.items()


CURVE = "application,problem,nprocs,runtime_s\n{0},1,1,10\n{0},1,2,6\n{0},1,4,4\n"


@pytest.mark.parametrize("named", ["curves", "curves/*.csv"])
def test_inputs_by_folder_or_pattern_are_listed_again(command, tmp_path, named):
    jobs = [job_line(job_number=k, submit_time=10 * k, run_time=60) for k in range(1, 9)]
    write_log(tmp_path, "; MaxProcs: 4", *jobs)
    (tmp_path / "curves").mkdir()
    (tmp_path / "curves/a.csv").write_text(CURVE.format("a"))
    asked = (
        *("-m", "workload=swf", "workload.path=log.swf", "policy=fcfs", "hydra.sweep.dir=sweep"),
        *("moldability=measured", f"moldability.path={named}", "predictor=user_estimate"),
    )

    def inputs():
        assert command(*asked).status == 0
        made = json.loads(next(tmp_path.glob("sweep/*/manifest.json")).read_text())["inputs"]
        return [name.partition("/")[2] for name in sorted(made) if "/" in name]

    assert inputs() == ["a.csv"]
    (tmp_path / "curves/b.csv").write_text(CURVE.format("b"))
    assert inputs() == ["a.csv", "b.csv"]
    (tmp_path / "curves/a.csv").unlink()
    assert inputs() == ["b.csv"]
