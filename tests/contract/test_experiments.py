"""Every experiment preset runs at toy size, with each value of each of its axes."""

import pytest

from scripts.composing import COMMA, axes, composed
from sim.config import CONFIG_FOLDER
from sim.results.metrics import summarise
from sim.simulation.scene import play, set_scene

EXPERIMENTS = sorted(path.stem for path in (CONFIG_FOLDER / "experiment").glob("*.yaml"))
ASKED = {
    "predictor_impact": {"predictor", "policy"},
    "load_sweep": {"workload.load", "policy", "predictor"},
    "policy_comparison": {"policy"},
    "calibration": {"predictor.calibration", "predictor.charge", "predictor"},
    "repetition": {"workload.applications", "workload.sizes", "workload.size_noise", "predictor"},
    "shared_load": {"policy", "cluster.belief"},
    "shared_bursts": {"policy", "cluster.belief", "cluster.cpu.free"},
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
    if name in ("shared_load", "shared_bursts"):
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


def test_the_impact_preset_has_oracles_users_and_every_learned_predictor_of_ours():
    swept = set(axes("predictor_impact")["predictor"])
    options = {path.stem for path in (CONFIG_FOLDER / "predictor").glob("*.yaml")}
    assert swept <= options
    assert {"user_estimate", "oracle", "noisy_oracle", "adept", "consensus", "regression"} < swept
    assert {"focused", "rational", "amdahl", "universal_scalability"} < swept


def test_commas_within_a_value_separate_nothing():
    assert COMMA.split("[1,4],[1,16],null") == ["[1,4]", "[1,16]", "null"]
    assert COMMA.split("easy,sa") == ["easy", "sa"]
    assert COMMA.split("interval(0.1,0.9)") == ["interval(0.1,0.9)"]


def told(config):
    """Return all that a run's predictors are told before the start."""
    runs = (config["predictor"].get("calibration"), config["predictor"].get("charge"))
    workload = config["workload"]
    return runs, *(workload[key] for key in ("applications", "size", "size_noise", "estimates"))


LEARNED = {
    path.stem
    for path in (CONFIG_FOLDER / "predictor").glob("*.yaml")
    if "\ncharge:" in path.read_text(encoding="utf-8")
}
WITH_LEARNED = [
    name
    for name in EXPERIMENTS
    if name != "backfill_or_mold"  # by the default of the day
    and (
        "charge" in composed(f"experiment={name}")["predictor"]
        or LEARNED & set(axes(name).get("predictor", ()))
    )
]


@pytest.mark.parametrize("name", WITH_LEARNED)
def test_a_preset_names_all_that_learned_predictors_are_told(name, tmp_path):
    preset = f"experiment={name}"
    log = ("workload=swf", f"workload.path={tmp_path / 'log.swf'}")
    assert told(composed(preset)) == told(composed(preset, *log))
    assert told(composed(preset)) == ((3, True), 50, "known", 0.1, "tsafrir")
    curves = composed(preset, "moldability=amdahl"), composed(preset)
    assert [c["moldability"]["_target_"].rpartition(".")[2] for c in curves] == ["Amdahl", "Downey"]
    assert "override /moldability" in (CONFIG_FOLDER / f"experiment/{name}.yaml").read_text()
    assert told(composed(preset, *log, "given=recorded")) == told(composed(*log, "given=recorded"))
    assert told(composed(*log, "given=recorded")) == ((0, True), "log", "hidden", 0.1, "recorded")


def test_one_command_runs_a_preset_and_answers(command, tmp_path):
    from sim.compare import main

    toy = ("workload.jobs=40", "replications=2", "policy=easy,sa_easy", "predictor=oracle")
    command("-m", "experiment=predictor_impact", *toy, "hydra.sweep.dir=study")
    assert main(["study", "--table"]) == 0
    assert (tmp_path / "study/differences.csv").is_file()
