"""Oracles on a shared machine are exact, under every kind of load there is."""

from pathlib import Path

import numpy as np
import pytest

import conf
from scripts.composing import composed
from sim.simulation.scene import play, set_scene

GROUPS = Path(conf.__file__).parent / "cluster"
KINDS = {
    group: sorted(path.stem for path in (GROUPS / group).glob("*.yaml"))
    for group in ("cpu", "network")
}
SMALL = (
    "cluster=shared", "cluster.processors=32", "workload.jobs=40", "workload.load=0.3",
    "workload.applications=4", "cluster.history=7200", "baseline=null", "sim.check=true",
)  # fmt: skip
CPU = "start_time,end_time,node,available_cpu\n"
LINK = "start_time,end_time,source,destination,available_bandwidth\n"


@pytest.fixture
def recordings(tmp_path):
    """A recording of processors and one of links, each with changes of its own."""
    rng = np.random.default_rng(1)

    def write(name, head, places):
        lines = []
        for place in places:
            times = np.concatenate(([0.0], np.sort(rng.uniform(0, 9000.0, 30)), [9000.0]))
            for start, end in zip(times[:-1].tolist(), times[1:].tolist(), strict=True):
                lines.append(f"{start!r},{end!r},{place},{rng.uniform(0.1, 1.0)}\n")
        (tmp_path / name).write_text(head + "".join(lines))
        return tmp_path / name

    return {
        "cpu": write("cpu.csv", CPU, range(32)),
        "network": write("network.csv", LINK, [f"{k},{(k + 5) % 32}" for k in range(32)]),
    }


def off_by(*overrides):
    """Return by how much each job's belief at its start was off, and the predictions' method."""
    config = composed(*SMALL, *overrides)
    tables = play(config, config, set_scene(config, 0)).outcome.tables
    jobs = tables.jobs[(tables.jobs["status"] == "completed")]
    assert len(jobs) > 20
    return np.abs(jobs["believed_runtime"] / jobs["runtime"] - 1.0).to_numpy()


@pytest.mark.parametrize(
    ("group", "kind"), [(group, kind) for group, kinds in KINDS.items() for kind in kinds]
)
def test_an_oracle_of_runtime_and_load_is_exact(group, kind, recordings):
    given = [f"cluster/{group}={kind}"]
    if kind == "recorded":
        given.append(f"cluster.{group}.path={recordings[group]}")
    found = off_by(*given, "predictor=oracle", "cluster.belief=oracle", "policy=sa_easy")
    assert found.max() < 1e-6


@pytest.mark.parametrize("policy", ["fcfs", "conservative", "easy_fastest", "load_aware"])
def test_it_is_exact_whatever_the_policy(policy):
    assert off_by("predictor=oracle", "cluster.belief=oracle", f"policy={policy}").max() < 1e-6


def test_an_oracle_of_runtime_alone_is_not():
    assert off_by("predictor=oracle", "cluster.belief=mean", "policy=sa_easy").max() > 0.1


LENDING = ("moldability=downey", "cluster.belief=oracle", "predictor=noisy_oracle_50",
           "cluster.processors_per_node=2", "overrun=kill", "workload.load=1.5")  # fmt: skip


@pytest.mark.parametrize("policy", ["expand", "equi"])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_start_on_processors_yet_to_be_given_up_is_left_to_the_engine(policy, share):
    part = "+policy/placement=fastest"
    given = (*LENDING, part, f"policy={policy}", f"moldability.malleable={share}")
    config = composed(*SMALL, *given)
    assert (play(config, config, set_scene(config, 0)).outcome.tables.jobs["runtime"] > 0).all()
