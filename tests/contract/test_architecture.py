"""Who may import what: arrows point one way, and frameworks stay at their doors."""

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.fast

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("sim", "predictors", "workloads", "conf")
HYDRA_DOORS = {
    *("sim.app", "sim.composition", "sim.config", "sim.sweeps.callback", "sim.sweeps.shapes"),
}
SIMPY_DOORS = {"sim.engine.engine", "sim.engine.clock"}


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path):
    """Return (module, is at the top level) of every import in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = set(tree.body)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node in top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [name for name in inner if (ROOT / f"{name.replace('.', '/')}.py").is_file()]
            yield from ((name, node in top) for name in modules or [node.module])


MODULES = {
    module_name(path): list(imported(path))
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
}


def importers(prefixes, modules=MODULES):
    """Return the modules that import one of the packages."""
    return {
        module
        for module, imports in modules.items()
        for name, _ in imports
        if any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)
    }


def within(package):
    return {module for module in MODULES if module.split(".")[0] == package}


def test_hydra_stays_at_its_doors():
    assert importers(["hydra", "omegaconf"]) == HYDRA_DOORS


def test_simpy_stays_in_the_engine():
    users = importers(["simpy"])
    assert users
    assert users <= SIMPY_DOORS


def test_policies_import_the_engine_and_never_the_other_way():
    below = {name for name in MODULES if name.startswith(("sim.engine.", "sim.state."))}
    assert below
    assert not importers(["sim.policies"]) & below
    assert any(name.startswith("sim.policies.") for name in importers(["sim.engine"]))


@pytest.mark.parametrize("package", ["predictors", "workloads", "conf"])
def test_nothing_below_imports_sim(package):
    assert not importers(["sim"]) & within(package)


def test_predictors_stand_on_their_own():
    assert not importers(["workloads", "conf"]) & within("predictors")


def test_workloads_take_formulas_alone_from_predictors():
    """Its command shows how far it is as the other commands do."""
    taken = {
        name
        for module in within("workloads") - {"workloads.__main__"}
        for name, _ in MODULES[module]
        if name.split(".")[0] == "predictors"
    }
    assert taken <= {f"predictors.{one}" for one in ("compiling", "downey", "lazy", "plain")}


def test_what_every_command_imports_is_light():
    """``--help`` must not wait for arrays, tables and pictures."""
    heavy = {"numpy", "pandas", "scipy", "matplotlib", "pyarrow", "numba", "simpy", "rich"}
    pending, seen = ["sim.__main__"], set()
    while pending:
        module = pending.pop()
        if module in seen or module not in MODULES:
            continue
        seen.add(module)
        names = [name for name, top in MODULES[module] if top]
        assert not heavy & {name.split(".")[0] for name in names}, module
        pending += [part for name in names for part in (name, name.split(".")[0])]
    assert "sim.app" in seen
