"""A preset carried out without artefacts gives the figures of real runs."""

import numpy as np
import pytest

from scripts import study_preset
from scripts.composing import COMMA, composed
from sim.metrics import summarise
from sim.run import play, set_scene

TOY = ["workload.jobs=30", "policy=easy,sa_easy", "predictor=oracle,amdahl"]


def test_all_settings_replay_the_same_jobs_by_replication():
    groups = study_preset.carry_out("predictor_impact", TOY, 2)
    assert [group.label for group in groups] == [
        "easy, oracle", "easy, amdahl", "sa_easy, oracle", "sa_easy, amdahl"
    ]  # fmt: skip
    config = composed("experiment=predictor_impact", TOY[0], "policy=sa_easy", "predictor=amdahl")
    alone = [summarise(play(config, config, set_scene(config, k)).outcome) for k in range(2)]
    values = [one["mean_response_time"] for one in alone]
    np.testing.assert_array_equal(groups[-1].values("mean_response_time"), values)


def test_loads_have_jobs_of_their_own_and_curves(capsys):
    toy = ["workload.jobs=30", "policy=easy,sa_easy", "predictor=oracle", "workload.load=0.3,0.9"]
    study_preset.main(["load_sweep", *toy, "--replications", "2"])
    shown = capsys.readouterr().out
    assert "### Over load, up to saturation" in shown
    assert "| runs | load 0.3 |" in shown
    assert "| sa_easy, workload.load=0.3 | easy, workload.load=0.3 | 2 |" in shown
    assert "sa_easy, workload.load=0.3 | easy, workload.load=0.9" not in shown
    assert "Best with foresight: " in shown or "Best: sa_easy" in shown


def test_commas_within_a_value_separate_nothing():
    assert COMMA.split("[1,4],[1,16],null") == ["[1,4]", "[1,16]", "null"]
    assert COMMA.split("easy,sa") == ["easy", "sa"]
    assert COMMA.split("interval(0.1,0.9)") == ["interval(0.1,0.9)"]


def test_numbers_become_numbers():
    assert study_preset.typed("0.5") == 0.5
    assert study_preset.typed("easy") == "easy"
    with pytest.raises(SystemExit):
        study_preset.main([])
