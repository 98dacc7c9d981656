"""The objective of a run, and the search for the best one with Optuna where it is installed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from sim.app import _objective
from sim.errors import ConfigError
from sim.results.artefacts import BASELINE, RUN, read_results
from sim.simulation.precision import Objective

ROOT = Path(__file__).resolve().parents[2]
TINY = ("workload.jobs=40", "predictor=oracle")


def test_the_objective_is_the_figure_or_its_ratio_to_the_baselines(command, tmp_path):
    for more in ((), ("replications=2",)):
        command(*TINY, "policy=sa_easy", *more, "hydra.run.dir=run")
        found = read_results(tmp_path / "run")
        own, base = found[RUN], found[BASELINE]
        assert own["mean_wait_time"] != base["mean_wait_time"]
        assert Objective("mean_wait_time", "run").value(found) == own["mean_wait_time"]
        ratio = Objective("mean_response_time", "change").value(found)
        assert ratio == own["mean_response_time"] / base["mean_response_time"]
    command(*TINY, "baseline=null", "hydra.run.dir=alone")
    with pytest.raises(ConfigError, match="needs a baseline"):
        Objective("mean_response_time", "change").value(read_results(tmp_path / "alone"))


@pytest.mark.parametrize(
    ("summary", "base", "of", "message"),
    [
        ({"wait": None}, {}, "run", "objective=wait: is None in this run; must be"),
        ({"wait": True}, {}, "run", "objective=wait: is True in this run; must be"),
        ({"mean_wait": 1.0}, {}, "run", "must be a key of summary.json, such as mean_wait"),
        ({"wait": 1.0}, {"wait": 0.0}, "change", "wait of the baseline is 0"),
    ],
)
def test_an_objective_that_is_no_number_is_named(summary, base, of, message, caplog):
    found = {RUN: summary, BASELINE: base}
    with pytest.raises(ConfigError, match=message):
        Objective("wait", of).value(found)
    assert _objective({"objective": "wait", "objective_of": of}, found) is None
    assert message.split(",")[0] in caplog.text


def test_optuna_finds_the_best_objective(tmp_path):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper.config")
    asked = (
        *("-m", *TINY, "hydra/sweeper=optuna", "hydra.sweeper.n_trials=4"),
        *("hydra.sweeper.n_jobs=1", "hydra.sweeper.sampler.seed=1", f"hydra.sweep.dir={tmp_path}"),
        *("policy=efficiency", "policy.allocation.efficiency=interval(0.2,0.95)"),
    )
    # a process of its own: the plugin's warnings are not ours to fail on
    command = [sys.executable, "-m", "sim", *asked, "objective=mean_response_time"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    best = yaml.safe_load((tmp_path / "optimization_results.yaml").read_text())
    found = [json.loads(path.read_text()) for path in tmp_path.glob("*/summary.json")]
    assert len(found) == 4
    assert best["best_value"] == min(one["mean_response_time"] for one in found)
    assert 0.2 <= best["best_params"]["policy.allocation.efficiency"] <= 0.95
