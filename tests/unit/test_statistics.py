"""Intervals, paired comparisons, corrections, batch means and precision against known answers."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from sim.errors import ConfigError, StatisticsError
from sim.results.metrics import batch_figures
from sim.results.steady_state import batch_means
from sim.simulation.replication import Objective, Precision, Stopping
from sim.statistics.intervals import bootstrap_interval, t_interval
from sim.statistics.paired import (
    compare_paired,
    false_discovery,
    holm,
    ratio_of_means,
    relative_change,
    share_of_gain,
)

pytestmark = pytest.mark.fast

RNG = np.random.default_rng(7)
OWN, REFERENCE = RNG.lognormal(4, 0.3, 12), RNG.lognormal(4.2, 0.3, 12)
PROBABILITIES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_t_interval_is_students(level):
    found = t_interval(OWN, level)
    low, high = stats.ttest_1samp(OWN, 0).confidence_interval(level)
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.relative == pytest.approx((high - low) / 2 / OWN.mean())


def test_few_or_equal_samples_have_no_or_no_wide_interval():
    assert np.isnan(t_interval([]).mean)
    assert (t_interval([3.0]).mean, np.isnan(t_interval([3.0]).low)) == (3.0, True)
    assert t_interval([0.1 + 0.2, 0.3, 0.3]).half == 0  # they differ by rounding
    assert np.isnan(bootstrap_interval([1.0, 2.0, 4.0]).low)  # too few to studentize
    assert bootstrap_interval([2.0] * 9).half == 0


@pytest.mark.parametrize("method", ["studentized", "percentile", "bca"])
def test_bootstrap_agrees_with_students_interval_on_many_normal_samples(method):
    values = np.random.default_rng(3).normal(10, 2, 400)
    found, right = bootstrap_interval(values, method=method), t_interval(values)
    assert (found.low, found.high) == pytest.approx((right.low, right.high), abs=0.03)
    assert bootstrap_interval(values, method=method) == found  # a seed, no global state


def test_studentized_bootstrap_follows_skewness():
    values = np.random.default_rng(5).lognormal(0, 1, 40)
    found = bootstrap_interval(values)
    assert found.high - found.mean > 1.2 * (found.mean - found.low)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: t_interval([1.0, np.nan]), "finite"),
        (lambda: t_interval([1.0, 2.0], 95), "between 0 and 1, got 95"),
        (lambda: bootstrap_interval([1.0, 2.0], method="jackknife"), "method=jackknife"),
        (lambda: compare_paired([1.0], [1.0, 2.0]), "equal numbers, got 1 and 2"),
        (lambda: holm([0.2, 1.2]), "between 0 and 1"),
        (lambda: batch_means(np.ones(50), 0), "leave 50; at least 100"),
        (lambda: batch_means(np.ones(50), -1), "warmup=-1"),
    ],
)
def test_bad_samples_are_refused(call, message):
    with pytest.raises(StatisticsError, match=message):
        call()


def test_a_paired_comparison_is_the_paired_t_test():
    found = compare_paired(OWN, REFERENCE)
    right = stats.ttest_rel(OWN, REFERENCE)
    limits = right.confidence_interval(0.95)
    assert found.p_value == pytest.approx(right.pvalue)
    assert (found.difference.low, found.difference.high) == pytest.approx((limits.low, limits.high))
    assert found.bootstrap.mean == found.difference.mean
    ratios = stats.ttest_rel(np.log(OWN), np.log(REFERENCE)).confidence_interval(0.95)
    assert found.change.low == pytest.approx(np.expm1(ratios.low))


def test_common_random_numbers_narrow_the_interval():
    noise = RNG.normal(100, 20, 10)
    paired = compare_paired(noise * 0.9, noise).change
    assert paired.mean == pytest.approx(-0.1)
    assert paired.half < 1e-9
    assert compare_paired(noise - 1, noise).p_value == 0.0
    assert np.isnan(relative_change([0.0, 1.0], [1.0, 1.0]).mean)


@pytest.mark.parametrize(
    ("own", "reference", "kind", "mean"),
    [
        ([3.0, 4.0, 6.0], [3.0, 4.0, 6.0], "runs", 0.0),
        ([3.0] * 4, [4.0] * 4, "replications", -1.0),
    ],
)
def test_what_is_identical_has_a_mean_but_no_interval_and_no_p_value(own, reference, kind, mean):
    found = compare_paired(own, reference)
    assert (found.identical, found.difference.mean) == (kind, mean)
    assert found.change.mean == pytest.approx(own[0] / reference[0] - 1)
    for interval in (found.difference, found.bootstrap, found.change):
        assert np.isnan([interval.low, interval.high]).all()
    assert np.isnan(found.p_value)


def test_one_repetition_or_replications_of_one_side_alone_are_not_identical():
    assert compare_paired([3.0], [3.0]).identical == ""
    assert compare_paired([3.0, 3.0], [4.0, 4.5]).identical == ""
    kept = share_of_gain([3.0] * 3, [2.0] * 3, [4.0] * 3)
    assert (kept.mean, np.isnan(kept.low)) == (0.5, True)


def test_fiellers_limits_are_where_the_difference_is_just_significant():
    found = ratio_of_means(OWN, REFERENCE)
    for limit in (found.low, found.high):
        assert stats.ttest_1samp(OWN - limit * REFERENCE, 0).pvalue == pytest.approx(0.05)
    assert found.low < found.mean < found.high
    unknown = ratio_of_means(OWN, REFERENCE - REFERENCE.mean() + 0.1)
    assert (unknown.low, unknown.high) == (-np.inf, np.inf)


def test_the_oracle_keeps_all_of_its_gain_and_the_reference_none():
    rigid, best = REFERENCE + 60, OWN
    assert share_of_gain(best, best, rigid).mean == pytest.approx(1)
    assert share_of_gain(rigid, best, rigid).mean == pytest.approx(0)
    assert share_of_gain((rigid + best) / 2, best, rigid).half < 1e-6


@pytest.mark.slow
@settings(max_examples=30)
@given(PROBABILITIES)
def test_corrections_are_those_of_statsmodels(probabilities):
    for own, method in ((holm, "holm"), (false_discovery, "fdr_bh")):
        right = multipletests(probabilities, method=method)[1]
        np.testing.assert_allclose(own(probabilities), right, atol=1e-12)


def test_comparisons_that_could_not_be_made_do_not_count():
    assert holm([0.02, np.nan, 0.04]).tolist() == pytest.approx([0.04, np.nan, 0.04], nan_ok=True)
    assert np.isnan(false_discovery([np.nan])).all()


def autoregressive(length, memory, seed):
    noise = np.random.default_rng(seed).normal(size=length)
    values = np.zeros(length)
    for k in range(1, length):
        values[k] = memory * values[k - 1] + noise[k]
    return 10 + values


def test_batch_means_cover_the_mean_of_correlated_jobs_where_one_interval_does_not():
    batched, naive = 0, 0
    for seed in range(60):
        values = autoregressive(3000, 0.9, seed)
        batched += batch_means(values, 100).interval.contains(10.0)
        naive += t_interval(values).contains(10.0)
    assert batched >= 53
    assert naive <= 30


def test_warmup_is_left_out_and_short_runs_say_so():
    values = np.concatenate([np.full(500, 1e6), np.random.default_rng(1).normal(5, 1, 1005)])
    found = batch_means(values, 500)
    assert (found.warmup, found.batches, found.size) == (500, 30, 33)
    assert found.interval.mean == pytest.approx(5, abs=0.2)
    drift = batch_means(np.linspace(0, 1, 600), 0)
    assert drift.batches == 10
    assert drift.correlated
    assert batch_means(values, 500, batches=5).size == 201


def test_a_long_run_has_intervals_of_its_steady_means():
    values = np.random.default_rng(2).normal(100.0, 10.0, 600)
    jobs = pd.DataFrame(
        {"wait_time": np.linspace(0, 1, 600), "response_time": values, "bounded_slowdown": 2.0}
    )
    figures = batch_figures(jobs)
    assert figures["mean_response_time_half_width"] == batch_means(values, 0).interval.half
    assert figures["mean_bounded_slowdown_half_width"] == 0
    assert (figures["batches"], figures["batches_correlated"]) == (10, True)  # waits grow
    assert batch_figures(jobs.iloc[:99]) == {}


def test_precision_stops_at_the_first_width_that_is_asked():
    asked = Precision(0.05, least=3, most=6)
    assert not asked.enough([100.0, 100.0])
    assert asked.met([100.0, 101.0, 102.0])
    wide = [100.0, 150.0, 50.0, 100.0, 120.0]
    assert not asked.enough(wide)
    assert asked.enough([*wide, 10.0])
    assert not asked.met([*wide, 10.0])
    assert not asked.met([0.0, 1.0, -1.0])


def test_the_same_again_and_again_is_no_precision():
    rule = Stopping(Precision(0.05, least=2), Objective("wait", "run"))
    same = rule.figures([({"wait": 3.0}, None)] * 3)
    assert same == {"precision_reached": None, "precision_met": None}
    near = rule.figures([({"wait": wait}, None) for wait in (100.0, 101.0, 100.5)])
    assert near["precision_met"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0,), "precision=0.0: must lie"),
        ((5,), "precision=5: must lie"),
        ((0.1, 1), "least=1: must be at least 2"),
        ((0.1, 10, 5), "most_replications=5: must be at least the 10"),
    ],
)
def test_precision_refuses_what_cannot_be_meant(arguments, message):
    with pytest.raises(ConfigError, match=message):
        Precision(*arguments)
