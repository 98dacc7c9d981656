"""One menu of counts for every rule, in run and baseline."""

from functools import cache

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from sim.composition import prepare
from sim.config import CONFIG_FOLDER
from sim.simulation.build import has_menu, menu_name, with_menu
from sim.simulation.replay import summary_of
from sim.simulation.scene import play, set_scene

prepare()
POLICIES = sorted(path.stem for path in (CONFIG_FOLDER / "policy").glob("*.yaml"))
WITHOUT = {
    *("conservative", "easy", "easy_fastest", "fcfs", "fixed"),
    *("deq", "equi", "expand", "hesrpt", "marginal", "pdpa", "pools"),
    "recorded",
}
"""Presets of which no rule chooses among counts."""
TOY = ("workload.jobs=60", "cluster.processors=64", "predictor=oracle", "workload.load=0.6")


@cache
def composed(*overrides):
    with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
        config = compose("config", overrides=[*TOY, *overrides])
    return OmegaConf.to_container(config, resolve=True)


def allocated(*overrides, parts=None):
    config = composed(*overrides)
    outcome = play(config, parts or config, set_scene(config, 0)).outcome
    requested = outcome.trace.jobs["requested_processors"].to_numpy()
    return outcome.records.allocated, requested


def is_power(counts):
    return (counts & (counts - 1)) == 0


@pytest.mark.parametrize("policy", [p for p in POLICIES if p not in WITHOUT])
def test_every_rule_that_chooses_keeps_to_the_menu(policy):
    if not has_menu(composed(f"policy={policy}")["policy"]):
        return
    counts, requested = allocated(f"policy={policy}", "menu=powers_of_two")
    assert (is_power(counts) | (counts == requested)).all()


@pytest.mark.parametrize("policy", ["sa", "greedy", "iterative", "lpa", "maximum"])
def test_all_counts_are_on_the_other_menu(policy):
    counts, requested = allocated(f"policy={policy}", "menu=all")
    assert not (is_power(counts) | (counts == requested)).all()


def test_the_menu_reaches_the_baseline_too():
    base = {"policy": composed("policy=efficiency")["policy"], "predictor": composed()["predictor"]}
    own, requested = allocated("menu=null", parts=base)
    assert not (is_power(own) | (own == requested)).all()
    cut, requested = allocated("menu=powers_of_two", parts=base)
    assert (is_power(cut) | (cut == requested)).all()


@pytest.mark.parametrize("policy", POLICIES)
def test_presets_have_menus_where_they_choose(policy):
    config = composed(f"policy={policy}")["policy"]
    assert has_menu(config) == ("counts" in config.get("allocation", ()))
    assert not has_menu(config) or policy not in WITHOUT
    assert with_menu(config, None) == config
    assert (with_menu(config, "all") == config) == (menu_name(config) in (None, "all"))


def test_menus_are_named():
    chosen = (*WITHOUT, "sa", "lpa")
    names = {name: menu_name(composed(f"policy={name}")["policy"]) for name in chosen}
    assert {name for name in names if names[name] is None} == WITHOUT
    assert (names["sa"], names["lpa"]) == ("powers_of_two", "all")
    assert menu_name(composed("policy=sa")["policy"], "all") == "all"
    assert menu_name(composed("policy=easy")["policy"], "all") is None
    assert menu_name({"_target_": "sim.simulation.recorded_schedule.RecordedSchedule"}) is None


@pytest.mark.parametrize(("policy", "menu"), [("sa", "powers_of_two"), ("easy", None)])
def test_the_summary_names_the_menu(policy, menu):
    config = composed(f"policy={policy}")
    scene = set_scene(config, 0)
    played = play(config, config, scene)
    assert played.menu == menu
    assert summary_of(config, scene, played)["menu"] == menu
