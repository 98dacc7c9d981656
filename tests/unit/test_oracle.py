"""Oracles: exact, or wrong by a fixed factor for each job and count."""

import numpy as np
import pytest
from scipy import stats

from predictors.base import VisibleJobs
from predictors.errors import NotFittedError, PredictorError
from predictors.in_loop.oracle import NeedsTruth, NoisyOracle, Oracle, normal_draws
from predictors.in_loop.user_estimate import UserEstimate

pytestmark = pytest.mark.fast

COUNTS = np.array([1, 2, 4, 8, 16])


def true_runtimes(job, counts):
    return 1000.0 * (job + 1) / counts


def bound(predictor, key=7):
    predictor.bind_truth(true_runtimes, key)
    return predictor


def visible(jobs):
    numbers = np.zeros(jobs, dtype=np.int64)
    return VisibleJobs(numbers, numbers, numbers * np.nan, numbers, numbers + 4, numbers + 60.0)


def test_oracle_returns_the_truth_to_the_bit():
    assert (bound(Oracle()).curve(3, COUNTS) == true_runtimes(3, COUNTS)).all()


def test_noise_is_fixed_per_job_and_count_in_any_order_of_asking():
    forwards, backwards = bound(NoisyOracle()), bound(NoisyOracle())
    first = {job: forwards.curve(job, COUNTS) for job in range(5)}
    second = {job: backwards.curve(job, COUNTS[::-1])[::-1] for job in reversed(range(5))}
    for job in range(5):
        assert (first[job] == second[job]).all()
        assert first[job][2] == forwards.curve(job, np.array([4]))[0]


def test_errors_differ_between_jobs_counts_and_keys():
    draws = np.array([normal_draws(key, job, COUNTS) for key in (7, 8) for job in range(50)])
    assert len(np.unique(draws)) == draws.size


def test_draws_are_standard_normal_and_uncorrelated():
    draws = np.array([normal_draws(99, job, np.arange(1, 101)) for job in range(1000)])
    assert stats.kstest(draws.ravel(), "norm").pvalue > 0.01
    assert abs(np.corrcoef(draws[:-1].ravel(), draws[1:].ravel())[0, 1]) < 0.01
    assert abs(np.corrcoef(draws[:, :-1].ravel(), draws[:, 1:].ravel())[0, 1]) < 0.01


def test_bias_and_spread_are_those_of_the_logarithm():
    noisy = bound(NoisyOracle(bias=1.5, spread=0.3))
    counts = np.arange(1, 101)
    ratios = [noisy.curve(job, counts) / true_runtimes(job, counts) for job in range(500)]
    logs = np.log(np.concatenate(ratios))
    assert np.median(logs) == pytest.approx(np.log(1.5), abs=0.006)
    assert logs.std() == pytest.approx(0.3, abs=0.003)


def test_no_spread_and_no_bias_is_the_oracle():
    noisy = bound(NoisyOracle(bias=1.0, spread=0.0))
    assert (noisy.curve(2, COUNTS) == true_runtimes(2, COUNTS)).all()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"bias": 0.0}, r"bias must lie between 1e-06 and 1e\+06, got 0.0"),
        ({"bias": float("nan")}, r"bias must lie between 1e-06 and 1e\+06, got nan"),
        ({"bias": float("inf")}, r"bias must lie between 1e-06 and 1e\+06, got inf"),
        ({"spread": -0.1}, "spread must lie between 0 and 10, got -0.1"),
        ({"spread": 11.0}, "spread must lie between 0 and 10, got 11.0"),
    ],
)
def test_out_of_range_is_refused(values, message):
    with pytest.raises(PredictorError, match=message):
        NoisyOracle(**values)


def test_an_oracle_without_the_truth_says_so():
    with pytest.raises(NotFittedError, match=r"NoisyOracle\.curve was called before bind_truth"):
        NoisyOracle().curve(0, COUNTS)


def test_only_oracles_ask_for_the_truth():
    assert isinstance(Oracle(), NeedsTruth)
    assert isinstance(NoisyOracle(), NeedsTruth)
    assert not isinstance(UserEstimate(), NeedsTruth)


@pytest.mark.parametrize("predictor", [UserEstimate(), bound(Oracle()), bound(NoisyOracle())])
def test_finished_runs_change_nothing(predictor):
    predictor.attach(visible(3))
    before = predictor.curve(1, COUNTS)
    assert predictor.observe(None) is False
    after = predictor.curve(1, COUNTS)
    assert (before is None) == (after is None)
    assert before is None or (before == after).all()
    assert predictor.explain(1, 4).observations == 0
