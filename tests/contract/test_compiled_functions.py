"""Functions compiled without a count of references neither make arrays nor pass them on."""

import ast
import gc
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from sim.policies.molding.candidates import SPAN
from sim.warm import OTHERS, TOY, warm
from tests.contract.test_architecture import PACKAGES, ROOT, module_name

SCALARS = {"None", "bool", "float", "int", "np.uint64"}
OF_SCALARS = {
    *(
        "abs",
        "bool_",
        "ceil",
        "cos",
        "exp",
        "float64",
        "floor",
        "int64",
        "isfinite",
        "isnan",
        "log",
    ),
    *("log2", "nextafter", "rint", "searchsorted", "sin", "sqrt", "uint64"),
}
"""Functions of NumPy that make no array of what they are given."""
ASKED = (
    *(
        ("policy=sa", f"predictor={name}")
        for name in ("adept", "consensus", "regression", "focused")
    ),
    *((f"policy={name}", "predictor=oracle") for name in ("easy", "equi", "iterative")),
    *(
        (f"policy={name}", "predictor=oracle")
        for name in ("conservative", "fair_share", "queue_time")
    ),
)


def compiled_functions():
    """Yield (module, function, its decorator, where each name comes from)."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            tree, module = ast.parse(path.read_text(encoding="utf-8")), module_name(path)
            origin = {
                alias.asname or alias.name: (node.module, alias.name)
                for node in tree.body
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
            }
            defined = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
            origin |= {node.name: (module, node.name) for node in defined}
            for node in defined:
                for decorator in map(ast.unparse, node.decorator_list):
                    if decorator.startswith("compiled("):
                        yield module, node, decorator, origin


COMPILED = list(compiled_functions())
COUNTED = {(module, node.name) for module, node, how, _ in COMPILED if "makes_arrays=True" in how}
INLINED = {(module, node.name) for module, node, how, _ in COMPILED if "inline" in how}
PLAIN = [one for one in COMPILED if "makes_arrays=True" not in one[2]]


def returns_arrays(node):
    if node.returns is None:
        values = [one.value for one in ast.walk(node) if isinstance(one, ast.Return)]
        return any(value is not None for value in values)
    named = re.split(r"[\[\], ]+", ast.unparse(node.returns))
    return not {name for name in named if name not in ("", "tuple")} <= SCALARS


PASSING_ON = {
    (module, node.name) for module, node, _, _ in COMPILED if returns_arrays(node)
} - INLINED


def called(node):
    return [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]


def test_there_are_both_kinds():
    assert len(PLAIN) > 100
    assert len(COUNTED) > 100


def test_who_returns_arrays_counts_references():
    assert PASSING_ON <= COUNTED
    assert [node.name for _, node, _, _ in PLAIN if returns_arrays(node)] == []


def test_who_is_given_arrays_by_others_counts_references():
    found = [
        f"{module}.{node.name} calls {function.id}"
        for module, node, _, origin in PLAIN
        for function in called(node)
        if isinstance(function, ast.Name) and origin.get(function.id) in PASSING_ON
    ]
    assert found == []


def test_who_does_not_count_makes_none_with_numpy():
    found = [
        f"{module}.{node.name}: {ast.unparse(function)}"
        for module, node, _, _ in PLAIN
        for function in called(node)
        if isinstance(function, ast.Attribute)
        and function.attr not in (OF_SCALARS if ast.unparse(function.value) == "np" else {"sum"})
    ]
    assert found == []


def test_of_ways_to_sort_and_to_search_compiled_code_uses_one_each():
    """Of two, Numba may run one in place of the other, where different processes kept them.

    It tells functions of one name and of the same types apart by a number that counts from 1
    in each process, and its own ways to sort and to search are such.
    """
    wrong = []
    for module, node, _, _ in COMPILED:
        for call in (one for one in ast.walk(node) if isinstance(one, ast.Call)):
            name, options = ast.unparse(call.func).rpartition(".")[2], ast.unparse(call)
            wrong += [f"{module}: {options}"] * (
                (name == "argsort" and "kind='mergesort'" not in options)
                or (name == "searchsorted" and "side=" in options)
                or name in ("partition", "argpartition", "nanmedian")
            )
    assert wrong == []


def kept():
    """Return how many arrays compiled functions have made and nobody has let go."""
    gc.collect()
    told = rtsys.get_allocation_stats()
    return told.mi_alloc - told.mi_free, told.mi_alloc


@pytest.mark.slow
def test_no_array_stays_in_memory():
    runs = [*((*asked, *TOY) for asked in ASKED), *OTHERS]
    warm(runs[0])
    _nrt_python.memsys_enable_stats()
    try:
        for overrides in runs:
            warm(overrides)
            before, _ = kept()
            warm(overrides)
            after, made = kept()
            assert after == before, overrides
        assert made > 10_000
    finally:
        _nrt_python.memsys_disable_stats()


def test_no_field_of_a_record_hides_behind_an_attribute_of_numpy():
    tables = [
        (f"{name}.{table}", one.names)
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in PACKAGES
        for table, one in vars(module).items()
        if isinstance(one, np.dtype) and one.names
    ]
    assert ("sim.policies.molding.candidates.SPAN", SPAN.names) in tables
    assert not [one for one, names in tables if any(hasattr(np.record, n) for n in names)]


SCHEDULES = """
import sim
for policy in ("easy", "sa", "sa_easy", "conservative", "iterative", "fair_share", "aggressive"):
    asked = ("workload.jobs=60", "baseline=null", "predictor=oracle", f"policy={policy}")
    jobs = sim.run(*asked, "cluster.processors=256").jobs
    print(policy, jobs[["start_time", "allocated_processors"]].to_numpy().tolist())
"""


def test_runs_are_the_same_where_nothing_is_compiled():
    plain, compiled = (
        subprocess.run(
            [sys.executable, "-c", SCHEDULES],
            env={**os.environ, "NUMBA_DISABLE_JIT": off},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for off in ("1", "0")
    )
    assert plain.count("\n") == 7
    assert plain == compiled
