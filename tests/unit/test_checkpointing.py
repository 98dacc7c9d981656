"""Checkpoint intervals and expected wall time (policies.md 9)."""

import numpy as np
import pytest
from known_walltime import expected_walltime
from scipy.optimize import minimize_scalar

from predictors.cycles.checkpointing import (
    DalyRule,
    FixedRule,
    NoCheckpoints,
    YoungRule,
    best_interval,
    daly_interval,
    young_interval,
)
from predictors.errors import PredictorError

pytestmark = pytest.mark.fast

CASES = [
    (60.0, 86_400.0, 3180.06, 3180.06, 3219.94),
    (300.0, 21_600.0, 3402.84, 3402.78, 3600.0),
    (600.0, 3_600.0, 1699.23, 1697.71, 2078.46),
    (600.0, 1_000.0, 737.5, 732.0, 1095.4),
]


def test_young_target_s1():
    assert float(young_interval(10.0, 600.0)) == pytest.approx(109.545, abs=0.001)


@pytest.mark.parametrize(("cost", "mtbf", "best", "daly", "young"), CASES)
def test_intervals_of_the_survey(cost, mtbf, best, daly, young):
    assert float(best_interval(cost, mtbf)) == pytest.approx(best, abs=0.05)
    assert float(daly_interval(cost, mtbf)) == pytest.approx(daly, abs=0.05)
    assert float(young_interval(cost, mtbf)) == pytest.approx(young, abs=0.05)


def test_cost_factors_of_the_survey():
    intervals = [f(600.0, 1000.0) for f in (best_interval, daly_interval, young_interval)]
    factors = expected_walltime(1.0, np.array(intervals), 600.0, 1000.0)
    assert factors == pytest.approx([3.8095, 3.8096, 4.061], abs=5e-4)


@pytest.mark.parametrize("ratio", [0.001, 0.1, 1.0, 3.0])
def test_best_interval_minimises_the_closed_form(ratio):
    found = minimize_scalar(
        lambda x: float(expected_walltime(1.0, x, ratio, 1.0)),
        bounds=(1e-4, 10.0),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert float(best_interval(ratio, 1.0)) == pytest.approx(found.x, rel=1e-4)


def test_daly_within_one_percent_and_young_within_two_up_to_a_sixth():
    cost = np.geomspace(1e-5, 20.0, 400)
    best = expected_walltime(1.0, best_interval(cost, 1.0), cost, 1.0)
    daly = expected_walltime(1.0, daly_interval(cost, 1.0), cost, 1.0) / best
    young = expected_walltime(1.0, young_interval(cost, 1.0), cost, 1.0) / best
    assert (daly[cost < 1.5] < 1.01).all()
    assert (young[cost <= 1 / 6] < 1.02).all()
    assert young[cost > 1.0].min() > 1.08  # Young's loss beyond
    assert (daly >= 1.0 - 1e-12).all()


def test_daly_beyond_twice_the_mtbf_is_the_mtbf():
    assert daly_interval([199.9, 200.0, 500.0], 100.0)[1:].tolist() == [100.0, 100.0]


def test_restart_multiplies_by_its_exponential():
    plain = expected_walltime(1000.0, 100.0, 10.0, 500.0)
    assert float(expected_walltime(1000.0, 100.0, 10.0, 500.0, 50.0)) == pytest.approx(
        float(plain) * np.exp(0.1)
    )


def test_rules_answer_alike():
    assert float(YoungRule().interval(10.0, 600.0)) == pytest.approx(109.545, abs=0.001)
    assert float(DalyRule().interval(60.0, 86400.0)) == pytest.approx(3180.06, abs=0.01)
    assert FixedRule(50.0).interval(np.ones(3), 1.0).tolist() == [50.0] * 3
    assert np.isinf(NoCheckpoints().interval(1.0, np.ones(2))).all()


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: young_interval(-1.0, 600.0), "cost must be at least 0, got -1.0"),
        (lambda: daly_interval(1.0, 0.0), "mtbf must be positive, got 0.0"),
        (lambda: best_interval(1.0, np.nan), "mtbf must be positive, got nan"),
        (lambda: FixedRule(0.0), "seconds must be positive"),
    ],
)
def test_bad_values_are_named(call, named):
    with pytest.raises(PredictorError, match=named):
        call()
