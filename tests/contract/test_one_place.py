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
RUNS = {
    "default": ("predictor=user_estimate", "workload.jobs=60"),
    "checked": ("predictor=user_estimate", "workload.jobs=60", "sim.check=true"),
    "failing": ("cluster=failing", "cluster.mtbf=1000000", "workload.jobs=60"),
    "shared": ("cluster=shared", "cluster.processors=16", "cluster.history=1200",
               "workload.jobs=40", "predictor=user_estimate"),
    "learning": ("predictor=adept", "predictor.calibration=0", "workload.jobs=60"),
}  # fmt: skip
PLAYED = """
import json, sys
from sim.composition import prepare
prepare()
from scripts.composing import composed
from sim.errors import SimError
from sim.results.metrics import summarise
from sim.simulation.scene import play, set_scene
import warnings
warnings.simplefilter("ignore")
found = {}
for name, overrides in json.loads(sys.argv[1]).items():
    config = composed(*overrides)
    try:
        found[name] = json.dumps(summarise(play(config, config, set_scene(config, 0)).outcome))
    except SimError as error:
        found[name] = str(error)
print(json.dumps(found))
"""
EDITS = {
    "easy: nobody is backfilled": (
        "easy",
        "sim/policies/backfill/easy.py",
        "    return number\n\n\n@compiled(makes_arrays=True)\ndef start_newcomers",
        "    return int(own.heads)\n\n\n@compiled(makes_arrays=True)\ndef start_newcomers",
    ),
    "fcfs: heads leave a processor free": (
        "fcfs",
        "sim/policies/backfill/easy.py",
        "find_heads(queue.processors, at.first, at.last, free, queue.found)",
        "find_heads(queue.processors, at.first, at.last, free - 1, queue.found)",
    ),
    "conservative: who is due waits for the next pass": (
        "conservative",
        "sim/policies/backfill/conservative.py",
        "                    if starts[k] <= now:\n",
        "                    if starts[k] <= now - 1.0:\n",
    ),
}


def played(folder, policy):
    asked = {name: (f"policy={policy}", *CROWDED, *more) for name, more in RUNS.items()}
    command = [sys.executable, "-c", PLAYED, json.dumps(asked)]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(folder)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


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
    policy, file, before, after = EDITS[edit]
    source = copied / file
    text = source.read_text(encoding="utf-8")
    assert text.count(before) == 1
    was = played(copied, policy)
    source.write_text(text.replace(before, after), encoding="utf-8")
    try:
        now = played(copied, policy)
    finally:
        source.write_text(text, encoding="utf-8")
    assert [name for name in RUNS if was[name] == now[name]] == []
