"""A command without a named folder has a new one: twice, with another seed, two at once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from sim.composition import new_folder
from tests.contract.test_architecture import ROOT

RUN = ("workload.jobs=20", "policy=fcfs", "baseline=null", "picture=none")


def begun(folder, *words):
    """Start a command whose cache is in the folder."""
    environment = os.environ | {
        "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MOLDSIM_CACHE": str(folder / "cache"),
    }  # fmt: skip
    command = [sys.executable, "-m", "sim", *words]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def ended(process):
    _, said = process.communicate(timeout=120)
    assert (process.returncode, said.decode()) == (0, "")


def seeds(folder, pattern):
    """Return the seeds of the finished runs that are there, one by one."""
    found = []
    for run in sorted(folder.glob(pattern)):
        assert json.loads((run / "summary.json").read_text())["jobs"] == 20
        found.append(yaml.safe_load((run / ".hydra" / "config.yaml").read_text())["seed"])
    return sorted(found)


def test_every_run_without_a_named_folder_is_found_again(tmp_path):
    ended(begun(tmp_path, *RUN, "seed=1"))  # the cache is empty here, and full from here on
    ended(begun(tmp_path, *RUN, "seed=1"))
    ended(begun(tmp_path, *RUN, "seed=2"))
    assert seeds(tmp_path, "outputs/*/*") == [1, 1, 2]
    for process in [begun(tmp_path, *RUN, f"seed={seed}") for seed in (3, 4)]:
        ended(process)
    assert seeds(tmp_path, "outputs/*/*") == [1, 1, 2, 3, 4]


def test_every_multirun_without_a_named_folder_is_found_again(tmp_path):
    words = ("-m", *(word for word in RUN if word != "baseline=null"), "seed=5,6")
    for again in ([words], [words, words]):
        started = [begun(tmp_path, *one) for one in again]
        for process in started:
            _, said = process.communicate(timeout=120)
            assert process.returncode == 0, said
    assert len(list(tmp_path.glob("multirun/*/*/multirun.yaml"))) == 3
    assert seeds(tmp_path, "multirun/*/*/*=*") == [5, 5, 5, 6, 6, 6]
    for kept in tmp_path.glob("multirun/*/*/*=*/.hydra/config.yaml"):
        assert "\nbaseline: null\n" in kept.read_text()  # as none was played


def test_two_at_once_with_an_empty_cache(tmp_path):
    for process in [begun(tmp_path, *RUN, "seed=7") for _ in range(2)]:
        ended(process)
    assert seeds(tmp_path, "outputs/*/*") == [7, 7]


@pytest.mark.fast
def test_folders_of_one_second_are_numbered(tmp_path):
    made = [new_folder(str(tmp_path)) for _ in range(5)]
    assert len(set(made)) == 5


@pytest.mark.fast
def test_what_the_environment_chooses_is_not_kept(command, monkeypatch):
    chosen = []
    for name in ("dedicated", "failing"):
        monkeypatch.setenv("MY_CLUSTER", name)
        ended = command(*RUN[:1], "cluster=${oc.env:MY_CLUSTER}", *RUN[1:], f"hydra.run.dir={name}")
        assert ended.status == 0
        kept = yaml.safe_load(Path(f"{name}/.hydra/hydra.yaml").read_text())
        chosen.append(kept["hydra"]["runtime"]["choices"]["cluster"])
    assert chosen == ["dedicated", "failing"]
