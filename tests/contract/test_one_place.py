"""Who edits a rule where it stands changes every run: compiled, checked, failing, shared, learning.

Each edit is made in a copy of the packages, where Numba is switched off: the rules run as the
plain Python that one reads. That an edit is noticed in a warm cache of compiled code is tested
in `tests/unit/test_compiling.py`.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.contract.test_architecture import PACKAGES, ROOT

CROWDED = "baseline=null", "workload.load=1.2"
SHARED = "cluster=shared", "cluster.processors=8", "cluster.history=60"
RUNS = {
    "default": ("predictor=oracle", "workload.jobs=40"),
    "checked": ("predictor=oracle", "workload.jobs=40", "sim.check=true"),
    "failing": ("predictor=oracle", "cluster=failing", "cluster.mtbf=1000000", "workload.jobs=40"),
    "shared": (*SHARED, "predictor=noisy_oracle", "workload.jobs=15"),
    "learning": ("predictor=regression", "predictor.calibration=40", "workload.jobs=30"),
}  # fmt: skip
RIGID = RUNS | {"shared": (*SHARED, "predictor=user_estimate", "workload.jobs=60")}
RUNS_OF = {
    **dict.fromkeys(("easy", "fcfs", "conservative", "easy_plus"), RIGID),
    "easy_fastest": {"shared": (*SHARED, "predictor=user_estimate", "workload.jobs=12")},
    "load_aware": {name: RUNS[name] for name in ("default", "checked", "failing", "learning")},
}
"""Where others than `RUNS`: without load nodes are alike, and with it forecasts take long."""
PLAYED = """
import json, sys
from sim.composition import prepare
prepare()
from scripts.composing import composed
from sim.results.metrics import summarise
from sim.simulation.scene import play, set_scene
import warnings
warnings.simplefilter("ignore")
found = {}
for name, overrides in json.loads(sys.argv[1]).items():
    config = composed(*overrides)
    try:
        found[name] = json.dumps(summarise(play(config, config, set_scene(config, 0)).outcome))
    except Exception as error:  # no start, or one that breaks a promise, is a change, too
        found[name] = str(error)
print(json.dumps(found))
"""
HEADS = "queue.processors[at.first] <= free"
BEST = "    best = first_least(turnarounds)\n"
EARLIER = "is_less(start - now + runtime, least)"
DUE = "found[number] = k\n                        number += 1"
BLOCKED = "        if is_blocked:"
EDITS = {
    "easy": ("backfill/easy.py", BLOCKED, "        if False:"),
    "fcfs": ("backfill/easy.py", HEADS, HEADS.replace("free", "free // 2")),
    "conservative": ("backfill/conservative.py", DUE, DUE.replace("1", "0")),
    "easy_sjbf": ("backfill/easy.py", "runtime[k] < shortest)", "runtime[k] > shortest)"),
    "easy_plus": ("backfill/easy.py", BLOCKED, "        if False:"),
    "easy_fastest": ("placement.py", "np.argsort(-cpu[free]", "np.argsort(cpu[free]"),
    "sa": ("allocation/sa.py", BEST, "    best = 0\n"),
    "sa_easy": ("allocation/sa.py", BEST, "    best = 0\n"),
    "sa_easy_usual": ("allocation/sa.py", BEST, "    best = 0\n"),
    "load_aware": ("allocation/sa.py", BEST, "    best = 0\n"),
    "maximum": ("allocation/curve.py", "int(first_least(reading.runtimes))", "0"),
    "average_parallelism": (
        "allocation/curve.py",
        "int(average(*reading))",
        "len(reading.counts) - 1",
    ),
    "efficiency": ("allocation/curve.py", "efficient(reading, self.efficiency)", "0"),
    "fixed": ("allocation/rigid.py", "(counts, self.processors)", "(counts, 2)"),
    "lpa": ("allocation/local.py", "min(self._unlimited(reading), ", "min(0, "),
    "fair": (
        "allocation/local.py",
        "settle(memory, rule.job_columns[:, BALANCED], float(limit))",
        "settle(memory, rule.job_columns[:, BALANCED], 1.0)",
    ),
    "fair_share": (
        "allocation/fair_share.py",
        "np.ceil(rule.divided_processors *",
        "np.ceil(0.1 * rule.divided_processors *",
    ),
    "iterative": (
        "allocation/iterative.py",
        "    place = -1\n    for k",
        "    return -1\n    for k",
    ),
    "utilization": ("allocation/iterative.py", "while idle > 0:", "while idle > 10**9:"),
    "queue_time": (
        "allocation/queue_time.py",
        "is_less(wait + runtime, least)",
        "best == 0",
    ),
    "greedy": ("molding/base.py", EARLIER, "best < 0"),
    "aggressive": (
        "molding/base.py",
        "reserved < rule.reservations",
        "False",
    ),
    "equi": (
        "reallocation/equi.py",
        "in_equal_parts(claims.total, claims.least, claims.largest)",
        "in_equal_parts(claims.total // 2, claims.least, claims.largest)",
    ),
    "deq": (
        "reallocation/equi.py",
        "in_equal_parts(claims.total, claims.least, largest)",
        "in_equal_parts(claims.total // 2, claims.least, largest)",
    ),
    "expand": ("reallocation/equi.py", "claims.total, running)", "claims.total, running[:0])"),
    "hesrpt": ("reallocation/hesrpt.py", "np.argsort(ranks(-work)", "np.argsort(ranks(work)"),
    "marginal": ("reallocation/marginal.py", "is_less(largest, equal)", "is_less(equal, largest)"),
    "pools": (
        "reallocation/pools.py",
        "np.maximum(held, least)",
        "np.maximum(least, least)",
    ),
    "pdpa": ("reallocation/pdpa.py", "return held + int(own[STEP])", "return held"),
}
"""A wrong variant of the rule of each preset, below sim/policies."""
PASS, BELIEFS = "passes/malleable.py", "reallocation/beliefs.py"
SHARING = {
    "backfilling": ("equi", "backfill/easy.py", BLOCKED, "        if False:"),
    "lent ends": ("equi", PASS, "ends[k] = since +", "ends[k] = 1e4 + since +"),
    "lent": ("equi", PASS, "state.processors[job] - keeps if", "0 * keeps if"),
    "kept": ("equi", PASS, "own.least if sharing.reclaims", "0 if sharing.reclaims"),
    "free": ("equi", PASS, "int(free - tally.held_back)", "int(free // 2 - tally.held_back)"),
    "held back": ("pdpa", PASS, "held_back = free if", "held_back = 0 if"),
    "order of ends": ("equi", PASS, "np.argsort(ends[:", "np.argsort(-ends[:"),
    "room": ("pdpa", PASS, "max(largest[k], held[k], least[k])", "least[k]"),
    "deferred": ("hesrpt", PASS, "got = shares > 0", "got = shares >= 0"),
    "order of steps": ("hesrpt", PASS, "= ~got[running.size :]", "= got[running.size :]"),
    "growth": ("equi", PASS, "counts[k] > claims.held", "counts[k] < claims.held"),
    "rest": ("equi", "../state/run_steps.py", "max(1.0 - done, 0.0)", "max(0.9 - done, 0.0)"),
    "work left": ("hesrpt", "../state/run_steps.py", "* after / before", "/ after"),
    "work of who starts": ("hesrpt", BELIEFS, "float(serial_time(known, job))", "1.0"),
    "equal counts": ("hesrpt", BELIEFS, "(known, jobs[k], counts[k])", "(known, jobs[k], 1)"),
    "limits": ("expand", PASS, "else 0, own.most", "else 0, own.least"),
    "who starts": ("equi", PASS, "total -= held[job]", "total -= 0"),
    "search": ("pdpa", PASS, "sharing.searches[jobs] = claims.searches", "pass"),
    "open counts": (
        "aggressive",
        "molding/base.py",
        "search_end = memory.queue.at[0].last if is_due",
        "search_end = memory.queue.at[0].first + 1 if is_due",
    ),
}
"""A wrong variant of what goes for many rules, or for any predictor, with one of them."""
MIXED = {
    "default": ("predictor=oracle", "workload.jobs=80"),
    "learning": ("predictor=regression", "predictor.calibration=40", "workload.jobs=60"),
}
"""The first is compiled, the second is not; few jobs are malleable, so that some wait."""
OFTEN = "easy", "fcfs", "conservative", "equi"


def played(folder, asked):
    command = [sys.executable, "-c", PLAYED, json.dumps(asked)]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(folder)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def unchanged(folder, edit, asked):
    """Return which runs give the same with an edit as without."""
    file, before, after = edit
    source = folder / "sim/policies" / file
    text = source.read_text(encoding="utf-8")
    was = played(folder, asked)
    source.write_text(text.replace(before, after), encoding="utf-8")
    try:
        now = played(folder, asked)
    finally:
        source.write_text(text, encoding="utf-8")
    return [name for name in was if was[name] == now[name]]


def test_the_lines_to_edit_stand_once():
    edits = [*EDITS.values(), *(edit[1:] for edit in SHARING.values())]
    texts = [(ROOT / "sim/policies" / file).read_text(encoding="utf-8") for file, *_ in edits]
    pairs = zip(edits, texts, strict=True)
    assert [edit for edit, text in pairs if text.count(edit[1]) != 1] == []


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of the packages and of what composes configurations."""
    folder = tmp_path_factory.mktemp("copy")
    for package in {*PACKAGES, "conf", "hydra_plugins", "scripts"}:
        shutil.copytree(
            ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_of_a_rule_changes_every_run(edit, copied):
    if edit not in OFTEN and not os.environ.get("MOLDSIM_WHOLE"):
        pytest.skip("set MOLDSIM_WHOLE to edit the rule of each preset: some ten seconds each")
    runs = RUNS_OF.get(edit, RUNS)
    asked = {name: (f"policy={edit}", *CROWDED, *more) for name, more in runs.items()}
    assert unchanged(copied, EDITS[edit], asked) == []


@pytest.mark.slow
@pytest.mark.parametrize("edit", SHARING)
def test_an_edit_of_what_rules_share_by_changes_compiled_passes_and_others(edit, copied):
    if not os.environ.get("MOLDSIM_WHOLE"):
        pytest.skip("set MOLDSIM_WHOLE to edit what goes for many rules: some ten seconds each")
    policy, *wrong = SHARING[edit]
    common = f"policy={policy}", "baseline=null", "workload.load=4", "moldability.malleable=0.3"
    asked = {name: (*common, *more) for name, more in MIXED.items()}
    assert unchanged(copied, wrong, asked) == []
