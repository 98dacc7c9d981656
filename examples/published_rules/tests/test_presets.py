"""Each preset runs by its name, and what its paper or the pages of results say of it holds."""

from pathlib import Path

import numpy as np
import pytest
from published_rules import conf
from published_rules.knee import Knee

import sim
from scripts.composing import axes, composed
from sim.results.metrics import summarise
from sim.simulation.scene import play, set_scene
from tests.former import WORLD

CONF = Path(conf.__file__).parent
PRESETS = sorted(path.stem for path in (CONF / "policy").glob("*.yaml"))
EXPERIMENTS = sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))
FORMERLY = WORLD[1:]
"""The world that the pages were made in, at the load that a preset says."""


def figures(*overrides: str, replication: int = 0) -> dict:
    config = composed(*overrides)
    return summarise(play(config, config, set_scene(config, replication)).outcome)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_runs_by_its_name_and_keeps_the_invariants(name):
    asked = (f"policy={name}", "sim.check=true", "moldability.malleable=0.5")
    result = sim.run(*asked, "workload.jobs=40", predictor="oracle", baseline=None)
    assert set(result.jobs["status"]) == {"completed"}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_runs_with_each_policy(name):
    for policy in axes(name).get("policy", ["careful"]):
        found = figures(f"experiment={name}", f"policy={policy}", "workload.jobs=20")
        ended = sum(found[f"{kind}_jobs"] for kind in ("completed", "killed", "failed"))
        assert ended == found["jobs"] > 0


def test_the_processor_working_set_is_where_efficacy_is_largest():
    # T(n) = 4 + 12/n; n·T²: 256, 200, 192, 196, 204.8, ...
    from by_name import mold

    records = mold("easy", Knee(), [(0, 2, 10)], [lambda n: 4 + 12 / n])
    assert records.allocated.tolist() == [3]


def ratio(load: str, jobs: int) -> float:
    """Return the geometric mean over replications of SCOJO-P's mean response over SA's."""
    toy = ("experiment=molding_of_downey", *FORMERLY, f"workload.jobs={jobs}")
    found = [
        [
            figures(*toy, f"workload.load={load}", f"policy={name}", replication=k)[
                "mean_response_time"
            ]
            for name in ("sa", "scojo_p")
        ]
        for k in range(5)
    ]
    return float(np.exp(np.log([after / before for before, after in found]).mean()))


def test_the_order_of_sa_and_scojo_p_turns_with_the_load_on_downeys_workload():
    assert ratio("0.9", 1000) < 0.95
    assert ratio("0.5", 300) > 1.03


def test_load_aware_rules_beat_fixed_sizes():
    toy = ("experiment=molding_by_load", *FORMERLY, "workload.jobs=300", "workload.load=0.8")
    easy, scojo = (
        np.log([
            figures(*toy, "workload.types=all", f"policy={name}", replication=k)[
                "mean_response_time"
            ]
            for k in range(5)
        ]).mean()
        for name in ("easy", "scojo_p")
    )  # fmt: skip
    assert np.exp(scojo - easy) < 0.7


def test_counts_that_are_no_choice_are_refused_in_one_line():
    for wrong in ("policy.backfill.slack=-1", "policy/allocation=request"):
        with pytest.raises(sim.SimError) as refused:
            sim.run("policy=lazy", wrong, "workload.jobs=10", predictor="oracle", baseline=None)
        assert "\n" not in str(refused.value)
