"""The study of docs/methods/rational.md at toy size: its machinery, its two plainest findings."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks import rational_runs as study


def test_under_constant_load_only_load_aware_models_predict():
    table = pd.concat([study.errors(study.CASES[0], 120.0, seed) for seed in (1, 2)])
    own = study.by_seed(table, model="rational", method="nnls", load="measured")
    blind = study.by_seed(table, model="size alone", method="nnls", load="measured")
    assert (own < 0.05).all()
    assert (blind - own > 0.3).all()


def test_medium_runs_are_predicted_within_a_fifth():
    case = replace(study.CASES[1], train=tuple(np.arange(3000.0, 7001.0, 100.0)))
    table = pd.concat([study.errors(case, 600.0, seed) for seed in (1, 2)])
    assert set(table.load) == {"measured", "forecast", "last value"}
    own = study.by_seed(table, model="rational", method="nnls", load="forecast")
    assert (own < 0.2).all()


def test_runs_take_their_stated_length_on_an_idle_machine():
    for case in study.CASES:
        seconds = study.parts(case, float(np.median(case.train)), 600.0)
        assert sum(seconds.values()) == pytest.approx(600.0, rel=1e-12)


def test_training_runs_see_single_samples_only_when_short():
    case = study.CASES[3]
    short = study.play(case, 15.0, 1).query("training")
    long = study.play(case, 1800.0, 1).query("training")
    assert (short.samples == 1).mean() > 0.4
    assert (long.samples > 1).all()


def test_the_effective_load_predicts_better_than_the_paper_s_and_than_size_alone():
    own = replace(study.CASES[1], train=tuple(np.arange(3000.0, 7001.0, 100.0)))
    errors = {}
    for form in ("min_avg_avail", "effective"):
        case = replace(own, form=form)
        table = pd.concat(
            [study.errors(case, 120.0, seed, ("rational", "size alone")) for seed in (1, 2, 3)]
        )
        errors[form] = study.by_seed(table, model="rational", method="nnls", load="measured")
    blind = study.by_seed(table, model="size alone", method="nnls", load="measured")
    assert errors["effective"].mean() < 0.6 * errors["min_avg_avail"].mean()
    assert errors["effective"].mean() < 0.6 * blind.mean()


def test_the_analytical_model_knows_the_idle_machine_and_not_what_contention_costs():
    """As the paper found: far off, under load that changes, unless its times are fitted."""
    found = {}
    for case in (study.CASES[0], replace(study.CASES[1], train=study.CASES[1].train[::2])):
        table = pd.concat(
            [study.errors(case, 600.0, seed, ("rational", "analytical")) for seed in (1, 2)]
        )
        of = {k: study.by_seed(table, method=k, load="measured") for k in ("known", "fitted")}
        found[case.constant] = {name: float(each.mean()) for name, each in of.items()}
    assert found[True]["known"] < 0.1
    assert found[False]["known"] > 0.5 > 3 * found[False]["fitted"]


def test_the_times_of_the_idle_machine_give_the_leading_terms():
    case = study.CASES[1]
    flop, word, message = study.machine_times(case, 600.0)
    assert 22 / 3 * 5000.0**3 / 8 * flop == pytest.approx(0.9 * 0.70 * 600)
    assert 5 * 3 * 5000.0**2 / np.sqrt(8) * word == pytest.approx(0.9 * 0.25 * 600)
    assert message == 0.0
