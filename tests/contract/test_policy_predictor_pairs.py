"""Every policy preset runs with every predictor, on jobs of which some are rigid."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from sim.composition import prepare
from sim.config import CONFIG_FOLDER
from sim.policies.base import OpenAllocation
from sim.results.metrics import summarise
from sim.simulation.build import build
from sim.simulation.scene import play, set_scene

prepare()
POLICIES = sorted({path.stem for path in (CONFIG_FOLDER / "policy").glob("*.yaml")} - {"recorded"})
PREDICTORS = sorted(path.stem for path in (CONFIG_FOLDER / "predictor").glob("*.yaml"))
ALLOCATIONS = sorted(path.stem for path in (CONFIG_FOLDER / "policy/allocation").glob("*.yaml"))
BACKFILLS = sorted(path.stem for path in (CONFIG_FOLDER / "policy/backfill").glob("*.yaml"))
SHARES = (0.0, 0.5, 1.0)
TOY = ["workload.jobs=15", "cluster.processors=32", "sim.check=true", "workload.load=1.0"]


def pairs():
    """Return all pairs; each policy and each predictor is among the fast ones."""
    fast = {(policy, PREDICTORS[k % len(PREDICTORS)]) for k, policy in enumerate(POLICIES)}
    return [
        pytest.param(*pair, marks=[pytest.mark.fast] if pair in fast else [])
        for pair in product(POLICIES, PREDICTORS)
    ]


@cache
def composed(*overrides):
    with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
        config = compose("config", overrides=[*TOY, *overrides])
    return OmegaConf.to_container(config, resolve=True)


@cache
def scene(share):
    return set_scene(composed(f"moldability.share={share}"), 0)


def option(name):
    return OmegaConf.to_container(OmegaConf.load(CONFIG_FOLDER / f"{name}.yaml"), resolve=True)


def check(outcome):
    assert set(outcome.records.status) == {"completed"}
    rigid = ~outcome.truth.moldable
    requested = outcome.trace.jobs["requested_processors"].to_numpy()
    assert (outcome.records.allocated[rigid] == requested[rigid]).all()
    summary = summarise(outcome)
    assert summary["bound_makespan"] <= summary["makespan"] * (1 + 1e-9)
    assert summary["bound_mean_response_time"] <= summary["mean_response_time"] * (1 + 1e-9)
    assert np.isfinite(outcome.records.end_time).all()


@pytest.mark.parametrize(("policy", "predictor"), pairs())
def test_every_policy_with_every_predictor(policy, predictor):
    pair = POLICIES.index(policy) + PREDICTORS.index(predictor)
    parts = {
        "policy": composed(f"policy={policy}")["policy"],
        "predictor": composed(f"predictor={predictor}")["predictor"],
    }
    check(play(composed(), parts, scene(SHARES[pair % len(SHARES)])).outcome)


@pytest.mark.parametrize(("allocation", "backfill"), list(product(ALLOCATIONS, BACKFILLS)))
def test_every_allocation_with_every_backfilling_rule(allocation, backfill):
    policy = composed()["policy"] | {
        "allocation": composed(f"policy/allocation={allocation}")["policy"]["allocation"],
        "backfill": composed(f"policy/backfill={backfill}")["policy"]["backfill"],
    }
    parts = {"policy": policy, "predictor": option("predictor/oracle")}
    is_open = isinstance(build(policy["allocation"], "policy.allocation"), OpenAllocation)
    if backfill == "batches" and not is_open:
        with pytest.raises(ValueError, match="open"):
            play(composed(), parts, scene(0.5))
        return
    check(play(composed(), parts, scene(0.5)).outcome)
