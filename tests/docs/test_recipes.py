"""What docs/guide/extend.md says to type in is all it takes: three files.

The recipes are typed into a copy of the tree, as they stand; there their own tests and the
tests over all presets must pass, and no other file may be touched.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("docs/guide/extend.md",)
COPIED = (
    *("sim", "predictors", "workloads", "conf", "hydra_plugins", "benchmarks", "scripts"),
    *("tests", "docs", "examples", "README.md", "pyproject.toml"),
)
FILE = re.compile(
    r"`((?:sim|predictors|workloads|conf|tests)/[\w/]+\.\w+)`[^`]*?:\n\n```\w+\n(.*?)```", re.S
)
NEW = ("half", "squeezed", "perfectly_parallel", "poisson")
ALL_FILES = ("test_architecture", "test_plan", "summary_names", "menus_are_named")
"""Tests that look at all files or presets at once."""
ALL_PRESETS = (
    *("tests/contract/test_options.py", "tests/contract/test_architecture.py"),
    *("tests/contract/test_plan.py", "tests/contract/test_policy_predictor_pairs.py"),
    *("tests/contract/test_pairs_on_clusters.py", "tests/contract/test_no_leak.py"),
    *("tests/contract/test_wrappers.py", "tests/contract/test_experiments.py"),
    *("tests/unit/test_given.py", "tests/unit/test_menus.py"),
)
"""Tests that go over all presets, of which those of the new ones are run."""


def recipes() -> dict[str, str]:
    """Return the text of each file that the pages say to write."""
    return {
        path: text
        for page in PAGES
        for path, text in FILE.findall((ROOT / page).read_text(encoding="utf-8"))
    }


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the tree into which the recipes are typed."""
    folder = tmp_path_factory.mktemp("tree")
    for name in COPIED:
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy2
        copy(source, folder / name)
    for path, text in recipes().items():
        assert not (folder / path).exists(), path
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def run(folder, *arguments):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def passed(ended, least):
    assert ended.returncode == 0, ended.stdout[-3000:]
    assert int(re.search(r"(\d+) passed", ended.stdout)[1]) >= least


def test_each_recipe_is_a_class_a_yaml_file_and_a_test():
    for name in NEW:
        files = [Path(path) for path in recipes() if Path(path).stem.removeprefix("test_") == name]
        kinds = sorted((path.parts[0] == "tests", path.suffix) for path in files)
        assert kinds == [(False, ".py"), (False, ".yaml"), (True, ".py")], name
    assert len(recipes()) == 3 * len(NEW)


@pytest.mark.parametrize("name", NEW)
def test_its_own_test_passes(tree, name):
    passed(run(tree, "pytest", "-q", "-n", "0", f"tests/unit/test_{name}.py"), 1)


def test_nothing_else_wants_to_be_told(tree):
    chosen = " or ".join((*NEW, *ALL_FILES, "impact_preset"))
    passed(
        run(tree, "pytest", "-q", "-n", "0", "-k", f"({chosen}) and not shared", *ALL_PRESETS), 100
    )


def test_it_is_written_as_everything_else(tree):
    files = [path for path in recipes() if path.endswith(".py")]
    for asked in (("check",), ("format", "--check")):
        ended = run(tree, "ruff", *asked, *files)
        assert ended.returncode == 0, ended.stdout


def test_a_run_takes_all_of_them_at_once(tree):
    named = ("workload=poisson", "policy=squeezed", "predictor=perfectly_parallel")
    ended = run(tree, "sim", *named, "workload.jobs=50", "hydra.run.dir=out")
    assert ended.returncode == 0, ended.stderr
    assert (tree / "out/summary.json").is_file()
    parts = ("policy/allocation=half", "policy/order=sjf", "policy/backfill=conservative")
    assert run(tree, "sim", *parts, "workload.jobs=50", "hydra.run.dir=out").returncode == 0
