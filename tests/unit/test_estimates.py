import logging

import numpy as np
import pytest

from workloads.errors import WorkloadError
from workloads.models.estimates import METHODS, Estimates

pytestmark = pytest.mark.fast

RUNTIMES = np.random.default_rng(5).lognormal(6.0, 2.0, 4000)


def draw(method: str, **keywords: float) -> np.ndarray:
    return Estimates(method, **keywords).draw(RUNTIMES, np.random.default_rng(1))


@pytest.mark.parametrize("method", METHODS)
def test_estimates_are_never_short_and_depend_on_the_seed_alone(method):
    estimates = draw(method, time_limit=None)
    assert (estimates >= RUNTIMES).all()
    assert np.array_equal(estimates, draw(method, time_limit=None))


def test_jobs_longer_than_the_limit_request_it():
    limit = 18 * 3600.0
    estimates = draw("tsafrir")
    assert (limit < RUNTIMES).any()
    assert (estimates[limit < RUNTIMES] == limit).all()
    assert (estimates >= np.minimum(RUNTIMES, limit)).all()


def test_exact_is_the_runtime():
    assert np.array_equal(draw("exact"), RUNTIMES)


def test_f_model_is_uniform_up_to_twice_the_factor():
    ratio = draw("f_model", factor=3.0) / RUNTIMES
    assert ratio.mean() == pytest.approx(3.0, abs=0.1)
    assert ratio.max() == pytest.approx(5.0, abs=0.01)
    assert np.array_equal(draw("f_model", factor=1.0), RUNTIMES)


def test_badness_makes_accuracy_uniform():
    accuracy = RUNTIMES / draw("badness")
    assert np.quantile(accuracy, [0.25, 0.5, 0.75]) == pytest.approx([0.25, 0.5, 0.75], abs=0.03)


def test_loose_leaves_15_percent_exact_and_triples_the_others_in_whole_minutes():
    estimates = draw("loose")
    exact = estimates == RUNTIMES
    assert exact.mean() == pytest.approx(0.15, abs=0.02)
    assert (estimates[~exact] % 60 == 0).all()
    long = ~exact & (RUNTIMES > 1e4)
    assert (estimates[long] / RUNTIMES[long]).mean() == pytest.approx(3.0, abs=0.4)


def test_a_site_limit_caps_and_says_for_how_many(caplog):
    with caplog.at_level(logging.WARNING):
        estimates = draw("exact", limit=1000.0)
    over = int((RUNTIMES > 1000.0).sum())
    assert np.array_equal(estimates, np.minimum(RUNTIMES, 1000.0))
    assert f"{over:,} of 4,000 jobs run longer than workload.estimate_limit=1000 s" in caplog.text


def test_impossible_parameters_are_refused():
    with pytest.raises(WorkloadError) as refusal:
        Estimates("guess")
    assert str(refusal.value) == (
        "workload.estimates=guess: allowed are recorded, exact, tsafrir, f_model, badness, loose"
    )
    with pytest.raises(WorkloadError, match=r"workload.estimate_factor=0.5: must be at least 1"):
        Estimates("f_model", factor=0.5)
    with pytest.raises(WorkloadError, match=r"workload.estimate_limit=-1: must be positive"):
        Estimates("exact", limit=-1)
