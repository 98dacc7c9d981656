"""What compiled functions may say so that they do the same everywhere."""

import ast
import os
import re
import subprocess
import sys

import numpy as np

from sim.policies.passes.memory import SPAN
from tests.contract.test_architecture import PACKAGES, ROOT, module_name


def compiled_functions():
    """Yield (module, function) of all that are compiled."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef) and any(
                    re.match(r"compiled\b", ast.unparse(one)) for one in node.decorator_list
                ):
                    yield module_name(path), node


def test_of_ways_to_sort_and_to_search_compiled_code_uses_one_each():
    """Of two, Numba may run one in place of the other, where different processes kept them.

    It tells functions of one name and of the same types apart by a number that counts from 1
    in each process, and its own ways to sort and to search are such.
    """
    functions, wrong = list(compiled_functions()), []
    assert len(functions) > 300
    for module, node in functions:
        for call in (one for one in ast.walk(node) if isinstance(one, ast.Call)):
            name, options = ast.unparse(call.func).rpartition(".")[2], ast.unparse(call)
            wrong += [f"{module}: {options}"] * (
                (name == "argsort" and "kind='mergesort'" not in options)
                or (name == "searchsorted" and "side=" in options)
                or name in ("partition", "argpartition", "nanmedian")
            )
    assert wrong == []


def test_no_field_of_a_record_hides_behind_an_attribute_of_numpy():
    tables = [
        (f"{name}.{table}", one.names)
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in PACKAGES
        for table, one in vars(module).items()
        if isinstance(one, np.dtype) and one.names
    ]
    assert ("sim.policies.passes.memory.SPAN", SPAN.names) in tables
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


PAIRS = "tests/contract/test_policy_predictor_pairs.py"


def test_every_policy_goes_in_plain_python_without_a_warning():
    chosen = "every_policy_with_every_predictor and (regression or oracle) and not noisy"
    options = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-k"]
    ended = subprocess.run(
        [sys.executable, *options, chosen, PAIRS],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-3000:]
    assert int(re.search(r"(\d+) passed", ended.stdout)[1]) >= 55
