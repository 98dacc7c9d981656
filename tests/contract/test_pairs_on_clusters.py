"""Every policy preset with every predictor on a shared or a failing cluster, turn by turn."""

from functools import cache

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from sim.composition import prepare
from sim.config import CONFIG_FOLDER
from sim.results.metrics import summarise
from sim.simulation.scene import play, set_scene

prepare()
POLICIES = sorted({path.stem for path in (CONFIG_FOLDER / "policy").glob("*.yaml")} - {"recorded"})
PREDICTORS = sorted(path.stem for path in (CONFIG_FOLDER / "predictor").glob("*.yaml"))
SHARES = (0.5, 1.0)
TOY = [
    "workload.applications=2",
    "cluster.processors=8",
    "cluster.processors_per_node=2",
    "sim.check=true",
]
CLUSTERS = {
    "shared": [
        "workload.jobs=5",
        "workload.load=0.3",
        "cluster.history=600",
        "cluster.sample_every=600",
    ],
    "failing": [
        *("workload.jobs=8", "workload.load=1.0", "cluster.mtbf=8000", "cluster.repair=900"),
        *("cluster.shrink_off_failed=true", "cluster.shrink_seconds=5", "cluster.interference=0.3"),
    ],
}


@cache
def composed(cluster, *overrides):
    with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
        whole = [f"cluster={cluster}", *TOY, *CLUSTERS[cluster], *overrides]
        return OmegaConf.to_container(compose("config", overrides=whole), resolve=True)


@cache
def scene(cluster, share):
    return set_scene(composed(cluster, f"moldability.share={share}"), 0)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_predictor_goes_with_a_policy(cluster, policy):
    config, chosen_policy = composed(cluster), composed("failing", f"policy={policy}")["policy"]
    turn = POLICIES.index(policy) + [*CLUSTERS].index(cluster)
    for place, predictor in [*enumerate(PREDICTORS)][turn % len(CLUSTERS) :: len(CLUSTERS)]:
        chosen = composed("failing", f"predictor={predictor}")["predictor"]
        share = SHARES[(place // len(CLUSTERS) + turn) % len(SHARES)]
        parts = {"policy": chosen_policy, "predictor": chosen}
        outcome = play(config, parts, scene(cluster, share)).outcome
        assert set(outcome.records.status) == {"completed"}, predictor
        rigid = ~outcome.truth.moldable
        requested = outcome.trace.jobs["requested_processors"].to_numpy()
        assert (outcome.records.allocated[rigid] == requested[rigid]).all(), predictor
        summary = summarise(outcome)
        assert np.isfinite(outcome.records.end_time).all(), predictor
        bound = summary["bound_mean_response_time"]
        assert bound is None or bound <= summary["mean_response_time"] * (1 + 1e-9), predictor


def test_nodes_fail_in_the_toys():
    """Otherwise the pairs above would show nothing."""
    config = composed("failing", "policy=equi", "predictor=oracle")
    counters = play(config, config, scene("failing", 1.0)).outcome.records.counters
    assert counters["node_failures"] >= 3
    assert counters["shrunk_runs"] >= 1
