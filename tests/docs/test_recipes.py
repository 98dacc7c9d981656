"""What the pages say to type in is all it takes: three files, in a package or in the tree.

The recipes are typed into a package, as they stand, and into a copy of the tree, where the names
of modules are its own; there their own tests and the tests over all presets must pass, and no
other file may be touched.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.commands import DOCS, ROOT, write, written

PAGES = ("study_policies", "study_predictors", "extend")
COPIED = (
    *("sim", "predictors", "workloads", "conf", "hydra_plugins", "benchmarks", "scripts"),
    *("tests", "docs", "examples", "README.md", "pyproject.toml"),
)
PLACES = {
    "squeezed": "sim/policies/allocation",
    "last_run": "predictors/in_loop",
    "poisson": "workloads/models",
}
"""Where the class of each recipe lies in the program's own tree."""
NEW = tuple(PLACES)
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


def typed() -> dict[str, str]:
    """Return the text of each file that the pages say to write, in a package of one's own."""
    pages = (DOCS / "guide" / f"{page}.md" for page in PAGES)
    found = {path: text for page in pages for path, text in written(page).items()}
    return {path: text for path, text in found.items() if Path(path).stem != "first_study"}


def recipes() -> dict[str, str]:
    """Return the same files as they would stand in the program's tree."""
    found = {}
    for path, text in typed().items():
        for name, folder in PLACES.items():
            path = path.replace(f"mylab/{name}.py", f"{folder}/{name}.py")
            text = text.replace(f"mylab.{name}", f"{folder.replace('/', '.')}.{name}")
        path = re.sub("^tests/", "tests/unit/", path.removeprefix("mylab/"))
        found[path] = text
    return found


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
    """Run in the tree, in plain Python: a new file would have all compiled anew."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["NUMBA_DISABLE_JIT"] = "1"
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
    wanted = f"({chosen}) and not (shared or weighs)"
    passed(run(tree, "pytest", "-q", "-n", "0", "-k", wanted, *ALL_PRESETS), 80)


def test_it_is_written_as_everything_else(tree):
    files = [path for path in recipes() if path.endswith(".py")]
    for asked in (("check",), ("format", "--check")):
        ended = run(tree, "ruff", *asked, *files)
        assert ended.returncode == 0, ended.stdout


def test_a_run_takes_all_of_them_at_once(tree):
    named = ("workload=poisson", "policy=squeezed", "predictor=last_run")
    ended = run(tree, "sim", *named, "workload.jobs=50", "hydra.run.dir=out")
    assert ended.returncode == 0, ended.stderr
    assert (tree / "out/summary.json").is_file()


def test_in_a_package_of_ones_own_their_tests_pass_too(tmp_path):
    write(typed(), tmp_path)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": f".:{ROOT}"},
    )  # fmt: skip
    passed(ended, len(NEW))
