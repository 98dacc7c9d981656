"""Ctrl-C while something is composed, at work in compiled code, swallowed, or a sweep's."""

import json
import os
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from sim.help import interrupts
from sim.help.interrupts import SAID
from tests.contract.test_architecture import ROOT
from tests.soak.interrupts import heed

WAYS = {
    "in Python": "print('in', flush=True)\nwhile True: pass",
    "swallowed": """
        while True:
            try:
                print('in', flush=True)
                while True: pass
            except BaseException:
                pass
    """,
    "in compiled code": """
        from predictors.compiling import compiled
        @compiled
        def endless(number):
            while number > 0:
                number = (number * 3) % 1000003 + 1
            return number
        endless(0)
        print('in', flush=True)
        endless(5)
    """,
    "in an answer of compiled code": """
        from typing import NamedTuple
        from predictors.compiling import compiled
        class Two(NamedTuple):
            one: int
            other: int
        class Four(NamedTuple):
            a: Two
            b: Two
            c: Two
            d: Two
        class Many(NamedTuple):
            a: Four
            b: Four
            c: Four
        @compiled
        def many():
            two = Two(1, 2)
            four = Four(two, two, two, two)
            return Many(four, four, four)
        many()
        print('in', flush=True)
        while True: many()
    """,
    "as something else": """
        try:
            print('in', flush=True)
            while True: pass
        except KeyboardInterrupt:
            pass
        raise ImportError('a module could not be loaded')
    """,
    "among threads": """
        import threading
        def busy():
            while True: sorted(range(1000))
        for _ in range(4): threading.Thread(target=busy, daemon=True).start()
        print('in', flush=True)
        while True: pass
    """,
    "with a worker": """
        import subprocess, time
        worker = subprocess.Popen(['sleep', '1000'])
        print('in', worker.pid, flush=True)
        while True: time.sleep(100)
    """,
}


@pytest.mark.parametrize("way", WAYS)
def test_an_interrupt_ends_a_command_with_one_line(tmp_path, way):
    (tmp_path / "interrupted.py").write_text(
        "from sim.help.interrupts import watch\nwatch()\n" + textwrap.dedent(WAYS[way])
    )
    with subprocess.Popen(
        [sys.executable, "interrupted.py"], cwd=tmp_path, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heed,
    ) as process:  # fmt: skip
        first = process.stdout.readline().split()
        assert first[:1] == ["in"]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == SAID
    assert all(is_gone(worker) for worker in first[1:])


def is_gone(process):
    """Say whether a process ends soon; a signal to end is carried out when its turn comes."""
    status, until = Path(f"/proc/{process}/stat"), time.monotonic() + 10.0
    while time.monotonic() < until:
        try:
            if status.read_text().split()[2] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def test_python_m_can_be_interrupted_as_soon_as_the_package_is_found():
    code = (
        "import os, signal, sys; sys.argv = ['-m']; import sim\n"
        "os.kill(os.getpid(), signal.SIGINT)\nimport sim.compare"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=heed,
    )
    assert (ended.returncode, ended.stderr) == (130, SAID)


def test_an_interrupted_sweep_says_how_to_go_on_and_does(tmp_path):
    asked = ["policy=easy", "seed=range(1,25)", "workload.jobs=20", "hydra.sweep.dir=a b"]
    with subprocess.Popen(
        [sys.executable, "-m", "sim", "-m", *asked], cwd=tmp_path, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=heed,
    ) as process:  # fmt: skip
        while process.poll() is None and not list(tmp_path.glob("*/*/summary.json")):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        said = process.stderr.read().splitlines()
    assert said[-2:-1] == [SAID.strip()]
    first, command = said[-1].split("go on with: ")
    assert first == "what is finished stays; "
    words = shlex.split(command)
    assert words == ["moldsim", "sweep", *asked]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*/summary.json")}
    assert 0 < len(before) < 24
    subprocess.run(
        [sys.executable, "-m", "sim", "-m", *words[2:]], cwd=tmp_path, check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True,
    )  # fmt: skip
    after = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*/summary.json")}
    assert len(after) == 24
    assert {path: after[path] for path in before} == before


def test_an_interrupted_backtest_says_how_to_go_on_and_does(tmp_path):
    asked = ["backtest", "sample", "backtest.candidates=[fcfs,easy,sjf,saf,wfp3]"]
    main = "import sys; from sim.command.main import main; sys.exit(main())"
    call = [sys.executable, "-P", "-c", main]
    own = {"cwd": tmp_path, "text": True, "env": os.environ | {"PYTHONPATH": str(ROOT)}}
    kept = ".moldsim-partial-starts/*.npy"
    with subprocess.Popen(
        [*call, *asked], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=heed, **own
    ) as process:
        while process.poll() is None and not list(tmp_path.glob(f"backtests/*/{kept}")):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        said = process.stderr.read().splitlines()
    first, command = said[-1].split("go on with: ")
    assert first == "what is finished stays; "
    words = shlex.split(command)
    assert words == ["moldsim", *asked]
    (folder,) = tmp_path.glob("backtests/*")
    finished = list(folder.glob(kept))
    for path in finished:  # moved, they show whether they are read or played again
        np.save(path, np.load(path) + 1e6)
    subprocess.run([*call, *words[1:]], check=True, capture_output=True, **own)
    rows = json.loads((folder / "backtest.json").read_text(encoding="utf-8"))["candidates"]
    assert sum(row["mean_wait_time"] > 9e5 for row in rows) == len(finished) < len(rows)
    assert not (folder / kept).parent.exists()


def test_an_interrupted_study_names_itself(monkeypatch, capsys):
    monkeypatch.setattr(interrupts, "_going_on", [])
    monkeypatch.setenv(interrupts.GO_ON, "moldsim study herd hydra.sweep.dir=here")
    interrupts.goes_on(["moldsim", "sweep", "experiment=herd"])
    with pytest.raises(SystemExit):
        interrupts.end()
    told = capsys.readouterr().err
    assert told.endswith("stays; go on with: moldsim study herd hydra.sweep.dir=here\n")


def test_an_interrupted_run_of_replications_says_how_to_go_on_and_does(tmp_path):
    asked = ["policy=easy", "replications=20", "workload.jobs=60", "baseline=null"]
    own = {"cwd": tmp_path, "text": True, "env": os.environ | {"PYTHONPATH": str(ROOT)}}
    done = "outputs/*/*/.moldsim-partial-run/*/manifest.json"
    with subprocess.Popen(
        [sys.executable, "-m", "sim", *asked],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=heed, **own,
    ) as process:  # fmt: skip
        while process.poll() is None and not list(tmp_path.glob(done)):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        first, command = process.stderr.read().splitlines()[-1].split("go on with: ")
    (folder,) = tmp_path.glob("outputs/*/*")
    words = shlex.split(command)
    assert first == "what is finished stays; "
    assert words == ["moldsim", "run", *asked, f"hydra.run.dir={folder.relative_to(tmp_path)}"]
    before = {path.parent.name: path.stat().st_mtime_ns for path in tmp_path.glob(done)}
    call = [sys.executable, "-m", "sim", *words[2:]]
    subprocess.run(call, check=True, capture_output=True, **own)
    after = {path.parent.name: path.stat().st_mtime_ns for path in folder.glob("*/manifest.json")}
    assert 0 < len(before) < len(after) == 20
    assert {name: after[name] for name in before} == before
    subprocess.run([*call, "hydra.run.dir=whole"], check=True, capture_output=True, **own)
    whole = [one / "summary.json" for one in (folder, tmp_path / "whole")]
    assert whole[0].read_bytes() == whole[1].read_bytes()
    assert not [*folder.glob(".moldsim-partial*")]


@pytest.mark.parametrize("name", ["compare", "advise"])
def test_other_commands_that_are_interrupted_say_how_to_start_again(name):
    code = (
        f"import os, signal, sys; sys.argv[1:] = ['{name}', 'a b', 'seed=2']\n"
        "from sim.command import main\n"
        "main.import_module = lambda _: os.kill(os.getpid(), signal.SIGINT)\nmain.main()"
    )
    asked = [sys.executable, "-c", code]
    ended = subprocess.run(
        asked, cwd=ROOT, capture_output=True, text=True, check=False, preexec_fn=heed
    )
    again = f"start again with: moldsim {name} 'a b' seed=2\n"
    assert (ended.returncode, ended.stderr) == (130, SAID + again)
