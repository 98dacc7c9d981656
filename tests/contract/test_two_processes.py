"""Several processes on one folder: sharing a sweep run by run, refusing a run."""

import os
import signal
import subprocess
import sys
import time

from sim.sweeps.locks import locked
from sim.verify import main as verify
from tests.contract.test_architecture import ROOT

SWEEP = ("workload.jobs=60", "policy=fcfs,easy", "baseline=easy", "seed=1,2,3")


def begun(folder, name, *more):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "sim", "-m", *SWEEP, f"hydra.sweep.dir={name}", *more]
    return subprocess.Popen(
        command, cwd=folder, env=environment, start_new_session=True,
        stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip


def content(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.suffix in (".parquet", ".png") or path.name == "summary.json"
    }


def test_four_processes_share_a_sweep_and_two_are_killed(tmp_path, capsys):
    alone = begun(tmp_path, "alone")
    assert alone.wait(90) == 0
    shared = [begun(tmp_path, "shared") for _ in range(4)]
    while len(list((tmp_path / "shared").glob("*/summary.json"))) < 2:
        time.sleep(0.05)
    for victim in shared[:2]:
        os.killpg(victim.pid, signal.SIGKILL)
        victim.wait()
    assert [process.wait(90) for process in shared[2:]] == [0, 0]
    assert content(tmp_path / "shared") == content(tmp_path / "alone")
    assert verify([str(tmp_path / "shared")]) == 0
    assert capsys.readouterr().out == "6 finished\n"
    left = [path for path in (tmp_path / "shared").rglob("*") if "partial" in path.name]
    assert [path for path in left if path.parent.name != ".hydra"] == []


def test_a_second_process_on_a_run_is_refused_and_harms_nothing(command, tmp_path):
    asked = ("workload.jobs=20", "policy=fcfs", "baseline=null", "hydra.run.dir=run")
    assert command(*asked).status == 0
    before = content(tmp_path / "run")
    with locked(tmp_path / "run"):
        ended = command(*asked)
    assert ended.status == 2
    assert ended.err.startswith(f"error: {tmp_path / 'run'}: process {os.getpid()} on ")
    assert ended.err.count("\n") == 1
    assert content(tmp_path / "run") == before
    assert command(*asked).status == 0


def test_a_multirun_waits_for_what_others_are_at(command, tmp_path):
    asked = ("-m", "workload.jobs=20", "policy=fcfs", "seed=1,2", "hydra.sweep.dir=sweep")
    assert command(*asked).status == 0
    run = next(path for path in (tmp_path / "sweep").iterdir() if "seed=1" in path.name)
    (run / "summary.json").unlink()
    code = (
        "import sys, time; from pathlib import Path; from sim.sweeps.locks import locked\n"
        "with locked(Path(sys.argv[1])):\n"
        "    print('in', flush=True)\n    time.sleep(4)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(run)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "in\n"
        ended = command(*asked)
        assert other.wait() == 0
    assert ended.status == 0
    assert (run / "summary.json").is_file()
