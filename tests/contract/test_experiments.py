"""Every experiment preset runs at toy size, with each value of each of its axes."""

import pytest

from scripts.composing import axes, composed
from sim.config import CONFIG_FOLDER
from sim.metrics import summarise
from sim.run import play, set_scene

EXPERIMENTS = sorted(path.stem for path in (CONFIG_FOLDER / "experiment").glob("*.yaml"))
ASKED = {
    "predictor_impact": {"predictor", "policy"},
    "load_sweep": {"workload.load", "policy", "predictor"},
    "policy_comparison": {"policy"},
    "calibration": {"predictor.calibration", "predictor.charge", "predictor"},
    "repetition": {"workload.applications", "workload.sizes", "workload.size_noise", "predictor"},
    "shared_load": {"policy", "cluster.belief"},
    "checkpoints": set(),
    "malleable_share": {"moldability.share"},
}


def every_value_once(name):
    """Return combinations of a preset's axes that hold each value at least once."""
    swept = [[f"{key}={value}" for value in values] for key, values in axes(name).items()]
    first = [values[0] for values in swept]
    longest = max(map(len, swept), default=0)
    alone = [[values[min(k, len(values) - 1)] for values in swept] for k in range(longest)]
    return [list(c) for c in dict.fromkeys(map(tuple, [first, *alone]))]


def small(name):
    """Return overrides that make a preset a toy."""
    if name in ("checkpoints", "cycles", "interference"):
        return ["workload.cycles=60"]
    if name == "shared_load":
        return ["workload.jobs=10", "cluster.processors=16", "cluster.history=1200"]
    return ["workload.jobs=20"]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_runs_at_toy_size(name):
    for setting in every_value_once(name):
        config = composed(f"experiment={name}", *small(name), *setting)
        figures = summarise(play(config, config, set_scene(config, 0)).outcome)
        ended = sum(figures[f"{kind}_jobs"] for kind in ("completed", "killed", "failed"))
        assert ended == figures["jobs"] > 0, setting


@pytest.mark.parametrize("name", ASKED)
def test_the_experiments_sweep_what_they_are_named_for(name):
    assert ASKED[name] <= set(axes(name))


def test_the_impact_preset_has_every_predictor_that_needs_no_evolving_jobs():
    options = {path.stem for path in (CONFIG_FOLDER / "predictor").glob("*.yaml")}
    assert set(axes("predictor_impact")["predictor"]) == options - {"dynamic", "repaired"}


def test_one_command_runs_a_preset_and_answers(command, tmp_path):
    from sim.compare import main

    toy = ("workload.jobs=40", "replications=2", "policy=easy,sa_easy", "predictor=oracle")
    command("-m", "experiment=predictor_impact", *toy, "hydra.sweep.dir=study")
    assert main(["study", "--table"]) == 0
    assert (tmp_path / "study/differences.csv").is_file()
