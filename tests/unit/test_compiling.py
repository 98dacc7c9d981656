"""Compiled code is found again, by every copy of the same sources, and never by others."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from predictors import compiling
from predictors.compiling import DAYS_KEPT, MOST_KEPT, NAME, KernelLocator, remove_old
from sim.config import CONFIG_FOLDER
from sim.policies.ties import first_least
from sim.warm import main, toys

pytestmark = pytest.mark.fast

NEAR = """from predictors.compiling import compiled

@compiled
def slack(value):
    return value + {slack}
"""
RULE = """from predictors.compiling import compiled, kernel_folder
from sim.near import slack

@compiled
def rule(value):
    return 10 * slack(value)

if __name__ == "__main__":
    print(rule(1), sum(rule.stats.cache_hits.values()) if hasattr(rule, "stats") else "plain")
    print(kernel_folder())
"""


@pytest.fixture
def copy(tmp_path):
    """Return what makes a small copy of the project: the compiler, a rule and what it calls."""

    def make(name):
        root = tmp_path / name
        for package in compiling.PACKAGES:
            (root / package).mkdir(parents=True)
            (root / package / "__init__.py").touch()
        shutil.copy(compiling.__file__, root / "predictors")
        (root / "sim" / "near.py").write_text(NEAR.format(slack=1), encoding="utf-8")
        (root / "sim" / "rule.py").write_text(RULE, encoding="utf-8")
        return root

    return make


def begin(root, **environment):
    kept = {name: os.environ[name] for name in os.environ if not name.startswith("NUMBA_")}
    # Python, too, would keep what it compiles, and take an edit of the same second for none.
    kept["PYTHONDONTWRITEBYTECODE"] = "1"
    home = {"XDG_CACHE_HOME": str(root.parent / "home"), "TMPDIR": str(root.parent)}
    return subprocess.Popen(
        [sys.executable, "-m", "sim.rule"], cwd=root, stdout=subprocess.PIPE, text=True,
        env={**kept, **home, "PYTHONPATH": str(root), **environment},
    )  # fmt: skip


def answer(begun):
    """Return (what the rule gives, how often kept code was found, where it is kept)."""
    printed, _ = begun.communicate(timeout=300)
    assert begun.returncode == 0
    counts, folder = printed.splitlines()
    given, hits = counts.split()
    return int(given), hits, Path(folder)


def test_a_second_process_and_another_copy_find_what_is_kept(copy):
    clone, installed = copy("clone"), copy("installed")
    given, hits, folder = answer(begin(clone))
    assert (given, hits) == (20, "0")
    assert folder.parent == clone.parent / "home" / "moldsim"
    files = sorted(folder.rglob("*"))
    assert answer(begin(clone)) == (20, "1", folder)
    assert answer(begin(installed)) == (20, "1", folder)
    assert sorted(folder.rglob("*")) == files


def test_an_edit_of_a_function_that_another_file_calls_is_noticed(copy):
    root = copy("clone")
    folder = answer(begin(root))[2]
    (root / "sim" / "near.py").write_text(NEAR.format(slack=2), encoding="utf-8")
    given, hits, other = answer(begin(root))
    assert (given, hits) == (30, "0")
    assert other != folder
    (root / "sim" / "near.py").write_text(NEAR.format(slack=1), encoding="utf-8")
    assert answer(begin(root)) == (20, "1", folder)


@pytest.mark.slow
def test_an_edit_is_noticed_in_a_folder_that_the_user_names(copy, tmp_path):
    root, mine = copy("clone"), tmp_path / "mine"
    given, _, folder = answer(begin(root, NUMBA_CACHE_DIR=str(mine)))
    assert given == 20
    assert folder.parent == mine
    assert list(folder.rglob("*.nbi"))
    assert not (tmp_path / "home").exists()
    (root / "sim" / "near.py").write_text(NEAR.format(slack=2), encoding="utf-8")
    assert answer(begin(root, NUMBA_CACHE_DIR=str(mine)))[:2] == (30, "0")


@pytest.mark.slow
def test_two_processes_at_once_are_both_right(copy):
    root = copy("clone")
    both = [begin(root), begin(root)]
    assert [answer(one)[0] for one in both] == [20, 20]
    assert answer(begin(root))[:2] == (20, "1")


@pytest.mark.slow
def test_without_a_home_code_goes_to_a_private_folder(copy, tmp_path):
    root = copy("clone")
    given, _, folder = answer(begin(root, XDG_CACHE_HOME="/proc/nowhere"))
    assert given == 20
    assert folder.is_relative_to(tmp_path)
    assert folder.parent.stat().st_mode & 0o077 == 0
    # Somebody else may have put a folder there that all can write.
    folder.parent.chmod(0o777)
    assert answer(begin(root, XDG_CACHE_HOME="/proc/nowhere"))[2].parent != folder.parent


def test_where_nothing_is_compiled_the_same_functions_run(copy):
    assert answer(begin(copy("clone"), NUMBA_DISABLE_JIT="1"))[:2] == (20, "plain")


def test_code_of_old_sources_is_removed_but_the_latest(tmp_path):
    now, old = time.time(), DAYS_KEPT * 86400 + 1000
    folders = [tmp_path / f"{NAME}{k}" for k in range(MOST_KEPT + 3)]
    for k, folder in enumerate(folders):
        folder.mkdir()
        (folder / "kept.nbi").touch()
        os.utime(folder, (now, now - (old - k if k < 5 else 0)))
    (tmp_path / "of_others").mkdir()
    os.utime(tmp_path / "of_others", (now, now - 2 * old))
    remove_old(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"of_others", *(folder.name for folder in folders[-MOST_KEPT:])}


def test_functions_of_others_are_left_to_numba():
    assert KernelLocator.from_function(np.median, np.__file__) is None


def test_code_that_is_compiled_now_takes_in_what_was_kept():
    costs = np.array([2.0, 1.0, 1.0])
    first_least(costs)
    kept = compiling.compiled()(first_least.py_func)
    assert kept(costs) == 1
    assert sum(kept.stats.cache_hits.values()) == 1
    caller = compiling.njit(lambda values: 10 * kept(values))
    assert caller(costs) == 10


@pytest.mark.slow
def test_the_command_compiles_and_says_where(capsys):
    assert main(["policy=fcfs"]) == 0
    assert "compiled; cached in" in capsys.readouterr().out
    assert main(["policy=nothing"]) == 2
    assert "policy=nothing: selects nothing; give parts such as" in capsys.readouterr().err


def test_small_runs_reach_every_rule_and_every_predictor():
    reached = {override for runs in toys() for overrides in runs for override in overrides}
    for group in ("policy", "predictor"):
        names = {path.stem for path in (CONFIG_FOLDER / group).glob("*.yaml")}
        assert {f"{group}={name}" for name in names} <= reached
