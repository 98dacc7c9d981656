"""``pytest -m fast`` reaches every room of the source, and every module."""

import ast
import re

import pytest

from sim.config import CONFIG_FOLDER
from tests.conftest import FAST
from tests.contract.test_architecture import ROOT
from tests.contract.test_plan import IMPORTS, PATHS, node, resolved

pytestmark = pytest.mark.fast
TESTS = ROOT / "tests"
CHOSEN = [path for path in TESTS.rglob("test_*.py") if FAST in path.read_text(encoding="utf-8")]
DOORS = {f"{package}.__main__" for package in ("sim", "predictors", "workloads")}
DOORS |= {"sim.compare", "sim.dataset"}
DOORS |= {name for name in PATHS if name.startswith("sim.command.templates")}
"""Commands of a few lines around what stands elsewhere."""


def imported(path, seen):
    """Return the project's modules that a test imports, by way of other tests' modules too."""
    found = set()
    for part in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(part, ast.ImportFrom) and part.module:
            names = [f"{part.module}.{alias.name}" for alias in part.names]
        elif isinstance(part, ast.Import):
            names = [alias.name for alias in part.names]
        else:
            continue
        found |= {module for name in names if (module := resolved(name))}
        for name in names:
            other = [ROOT / f"{place}.py" for place in (f"tests/{name}", name.replace(".", "/"))]
            other += [one.parent.with_suffix(".py") for one in other]
            for one in other:
                if one.is_file() and one.parent in (TESTS, ROOT / "scripts") and one not in seen:
                    found |= imported(one, seen | {one})
    return found


def direct():
    """Return what the fast tests import, and what presets name that the pairs among them build."""
    doors = [path.parent / "conftest.py" for path in CHOSEN]
    found = set().union(*(imported(path, {path}) for path in {*CHOSEN, *doors} if path.is_file()))
    for path in (CONFIG_FOLDER / "policy").rglob("*.yaml"):
        named = re.findall(r"_target_: ([\w.]+)", path.read_text(encoding="utf-8"))
        found |= {module for name in named if (module := resolved(name))}
    return found


def reached(modules):
    """Return the modules and all that they import, directly or not."""
    pending, seen = list(modules), set()
    while pending:
        module = pending.pop()
        if module not in seen:
            seen.add(module)
            pending += [*IMPORTS[module], *filter(None, [resolved(module.rpartition(".")[0])])]
    return seen


def test_every_room_has_a_fast_test_of_its_own():
    folders = {module for module, path in PATHS.items() if path.name == "__init__.py"}
    rooms = {node(module) for module in folders if "." in module and "conf" not in module}
    assert rooms - {node(module) for module in direct()} == set()


def test_every_module_is_imported():
    """Some by their examples alone, which are fast tests, too."""
    examples = {name for name, path in PATHS.items() if ">>>" in path.read_text(encoding="utf-8")}
    assert set(PATHS) - reached(direct()) - examples - DOORS == set()
