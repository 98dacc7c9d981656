"""Output of another encoding, closed or full: results stay, and there is no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sim.results.durable import damage
from tests.contract.test_architecture import ROOT

RUN = ("sim", "workload.jobs=20", "policy=fcfs", "baseline=easy", "hydra.run.dir=run")


def ran(folder, *command, **more):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, check=False, timeout=120,
        stderr=subprocess.PIPE, **({"stdout": subprocess.PIPE} | more),
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("outputs")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_any_encoding_shows_what_it_can(folder, encoding):
    ended = ran(folder, *RUN, env={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"})
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"mean wait" in ended.stdout
    for command in (("sim.compare", "run", "--table"), ("sim.verify", "run")):
        ended = ran(folder, *command, env={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"})
        assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_a_full_output_is_told_and_loses_nothing(folder):
    for command in (RUN, ("sim.compare", "run", "--table"), ("sim.verify", "run")):
        with Path("/dev/full").open("wb") as full:
            ended = ran(folder, *command, stdout=full)
        assert ended.returncode == 1
        assert ended.stderr.startswith(b"error: the output cannot be written: No space left")
        assert ended.stderr.count(b"\n") == 1
    assert damage(folder / "run") is None


def test_a_reader_that_has_gone_away_is_no_error(folder):
    read, write = os.pipe()
    os.close(read)
    for command in (RUN, ("sim.compare", "run", "--table"), ("sim.verify", "run")):
        ended = ran(folder, *command, stdout=write)
        assert b"Traceback" not in ended.stderr
        assert b"Exception ignored" not in ended.stderr
    os.close(write)
    assert damage(folder / "run") is None


@pytest.mark.parametrize("name", ["predictors", "workloads", "conf"])
def test_a_file_of_a_package_s_name_in_the_current_folder_is_no_hindrance(tmp_path, name):
    (tmp_path / f"{name}.py").write_text("raise SystemExit(9)\n")
    code = "import sys; sys.path.append(sys.argv.pop()); from sim.app import main; main()"
    asked = ["workload.jobs=5", "baseline=null", "picture=none", "hydra.run.dir=run"]
    ended = subprocess.run(
        [sys.executable, "-c", code, *asked, str(ROOT)],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "run/summary.json").is_file()


def test_another_module_of_that_name_is_named(tmp_path):
    (tmp_path / "predictors.py").write_text("")
    code = "import predictors, sys; sys.path.append(sys.argv.pop()); import sim"
    ended = subprocess.run(
        [sys.executable, "-c", code, str(ROOT)],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        text=True,
    )
    assert ended.returncode == 1
    assert ended.stderr.endswith("in the place of moldsim's package predictors; rename it\n")
