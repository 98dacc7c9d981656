"""The plan of the house: how many rooms a package has, how they lean on each other, how large.

Nodes of a package are its direct children, modules and folders; edges are imports between
them, late ones too. A change that adds a node says so here, in the commit that adds it.
"""

import ast
from collections import defaultdict

import pytest

from tests.contract.test_architecture import MODULES, PACKAGES, ROOT, module_name, within

pytestmark = pytest.mark.fast

PATHS = {
    module_name(path): path
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
}
FOLDERS = {name for name, path in PATHS.items() if path.name == "__init__.py"}
LIMITS = {"sim": (31, 122, 10), "predictors": (21, 66, 9), "workloads": (12, 38, 8)}
"""For each package at most so many nodes, edges, and nodes on the longest path.

Three edges above the plan are of ``sim.plot``, which draws what five rooms know of a run; four
nodes with theirs are of ``sim.library``, the functions behind ``sim.run`` and ``sim.sweep``,
``sim.composition``, which composes for them and for the command, ``sim.command``, the subcommands
of ``moldsim``, and ``sim.help``, what they and Python say of keys; seven edges of ``sim.explain``,
which replays a run and looks on, and of plots that make a run again. In workloads one is of
``workloads.frame``, jobs from a table in memory. ``sim.site``, what a log says of its machine, and
its commands ``sim.backtest`` and ``sim.advise`` are three nodes with seventeen edges.
"""
WEIGHTS = {"sim": 21_800, "predictors": 9_551, "workloads": 4_981, "examples": 1_943}
"""Code lines of each package; an issue that adds some says by how many this rises."""
SAME_EVERYWHERE = {"__main__", "base", "grades", "none"}
"""Names that mean one thing in every room: its command, its base, its grades, nothing to do."""


def resolved(name):
    """Return the module of the project that an import names, or None."""
    while name and name not in PATHS:
        name = name.rpartition(".")[0]
    return name or None


IMPORTS = {
    module: {found for name, _ in names if (found := resolved(name)) and found != module}
    for module, names in MODULES.items()
}


def node(module):
    return ".".join(module.split(".")[:2])


def nodes(package):
    return {node(module) for module in within(package) if "." in module}


def arrows(package):
    """Return the nodes that each node of a package imports."""
    found = defaultdict(set)
    for module in within(package):
        for other in IMPORTS[module]:
            ends = node(module), node(other)
            if len(set(ends)) == 2 and all(end in nodes(package) for end in ends):
                found[ends[0]].add(ends[1])
    return found


def longest_path(graph):
    """Return the number of nodes on the longest path; a cycle is an error."""
    lengths, under_way = {}, []

    def length(place):
        assert place not in under_way, f"a cycle: {[*under_way, place]}"
        if place not in lengths:
            under_way.append(place)
            lengths[place] = 1 + max((length(other) for other in graph.get(place, ())), default=0)
            under_way.pop()
        return lengths[place]

    return max(length(place) for place in list(graph))


@pytest.mark.parametrize("package", LIMITS)
def test_a_package_has_few_rooms_and_few_arrows(package):
    most_nodes, most_edges, most_steps = LIMITS[package]
    graph = arrows(package)
    assert len(nodes(package)) <= most_nodes
    assert sum(map(len, graph.values())) <= most_edges
    assert longest_path(graph) <= most_steps


def test_no_modules_import_each_other_in_a_circle():
    assert longest_path(IMPORTS) > 1


def test_no_folder_holds_more_than_15_modules():
    held = defaultdict(int)
    for module in set(PATHS) - FOLDERS:
        held[module.rpartition(".")[0]] += 1
    assert {folder: number for folder, number in held.items() if number > 15} == {}


def test_a_name_means_one_thing_in_a_package():
    for package in LIMITS:
        meanings = defaultdict(set)
        for module in within(package) - FOLDERS:
            meanings[module.rpartition(".")[2]].add(module)
        twins = {name: found for name, found in meanings.items() if len(found) > 1}
        assert set(twins) <= SAME_EVERYWHERE, twins


def test_packages_hide_no_import():
    """Only the three packages themselves hand on what stands in their rooms."""
    for folder in FOLDERS:
        if folder not in PACKAGES:
            assert IMPORTS[folder] == set(), folder


def functions(path):
    return [
        one
        for one in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def parameters(function):
    taken = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [one.arg for one in taken if one.arg not in ("self", "cls")]


@pytest.mark.slow
def test_no_function_takes_more_than_8_parameters():
    """Constructors may: theirs are configuration keys."""
    found = {
        f"{module}.{one.name}": len(parameters(one))
        for module, path in PATHS.items()
        for one in functions(path)
        if one.name != "__init__" and len(parameters(one)) > 8
    }
    assert found == {}


def code_lines(path):
    """Count the lines that are neither blank nor a comment nor part of a docstring."""
    text = path.read_text(encoding="utf-8")
    bodies = (getattr(node, "body", []) for node in ast.walk(ast.parse(text)))
    said = {
        line
        for body in bodies
        for one in (body if isinstance(body, list) else [])
        if isinstance(one, ast.Expr)
        and isinstance(one.value, ast.Constant)
        and isinstance(one.value.value, str)
        for line in range(one.lineno, one.end_lineno + 1)
    }
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in said
        for number, line in enumerate(text.splitlines(), 1)
    )


@pytest.mark.parametrize("package", WEIGHTS)
def test_a_package_weighs_no_more_than_it_may(package):
    files = (ROOT / package).rglob("*.py")
    assert sum(code_lines(path) for path in files) <= WEIGHTS[package]
