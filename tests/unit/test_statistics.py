"""Intervals, paired comparisons, corrections, batch means and precision against known answers."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.results.regions import share_of_gain
from sim.errors import ConfigError, StatisticsError
from sim.results.artefacts import RUN
from sim.results.metrics import batch_figures
from sim.results.steady_state import batch_means
from sim.simulation.precision import Objective, Precision
from sim.statistics import compare, log_ratios, ratio_of_means, t_interval

pytestmark = pytest.mark.fast

RNG = np.random.default_rng(7)
OWN, REFERENCE = RNG.lognormal(4, 0.3, 12), RNG.lognormal(4.2, 0.3, 12)


def test_t_interval_is_students():
    found = t_interval(OWN)
    low, high = stats.ttest_1samp(OWN, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.relative == pytest.approx((high - low) / 2 / OWN.mean())


def test_few_or_equal_samples_have_no_or_no_wide_interval():
    assert np.isnan(t_interval([]).mean)
    assert (t_interval([3.0]).mean, np.isnan(t_interval([3.0]).low)) == (3.0, True)
    assert t_interval([0.1 + 0.2, 0.3, 0.3]).half == 0  # they differ by rounding


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: t_interval([1.0, np.nan]), "finite"),
        (lambda: compare([[1.0], [1.0, 2.0]]), r"of one length, got \[1, 2\]"),
        (lambda: compare([[1.0]], 95), "between 0 and 1, got 95"),
        (lambda: log_ratios([1.0], [1.0, 2.0]), "equal numbers, got 1 and 2"),
        (lambda: batch_means(np.ones(50)), "50 observations; at least 100"),
    ],
)
def test_bad_samples_are_refused(call, message):
    with pytest.raises(StatisticsError, match=message):
        call()


def test_a_change_is_exp_of_the_mean_log_ratio_with_a_symmetric_interval_of_it():
    (found,) = compare([log_ratios(OWN, REFERENCE)]).comparisons
    logs = np.log(OWN / REFERENCE)
    assert found.change.mean == pytest.approx(np.exp(logs.mean()) - 1)
    assert (found.least, found.most) == pytest.approx(tuple(np.expm1([logs.min(), logs.max()])))
    low, high = np.log1p([found.change.low, found.change.high])
    assert (low + high) / 2 == pytest.approx(logs.mean())
    error = logs.std(ddof=1) / np.sqrt(12)
    assert 2.0 < (high - low) / 2 / error < 2.8  # Student's would be 2.2
    assert compare([logs]) == compare([logs])  # a named stream, no global state
    assert compare([logs], 0.8).comparisons[0].change.low > found.change.low


def test_shares_differ_by_their_mean_difference():
    (found,) = compare([[0.1, 0.2, 0.3]], shares=[True]).comparisons
    assert (found.change.mean, found.least, found.most) == pytest.approx((0.2, 0.1, 0.3))


def test_fewer_than_eight_pairs_have_a_range_and_no_interval_and_do_not_count():
    few, enough = np.append(np.arange(1.0, 8.0), np.nan), np.arange(1.0, 9.0)
    found = compare([few, enough])
    assert (found.intervals, found.comparisons[0].change.count) == (1, 7)
    assert np.isnan(found.comparisons[0].change.low)
    assert not found.comparisons[0].certain
    assert found.comparisons[0].least == pytest.approx(np.e - 1)
    assert found.comparisons[1] == compare([enough]).comparisons[0]
    assert found.comparisons[1].certain


def test_ratios_of_nothing_to_something_are_undefined():
    assert np.isnan(log_ratios([0.0, 1.0, -1.0], [1.0, 0.0, 1.0])).all()
    assert log_ratios([0.0, -2.0], [0.0, -2.0]).tolist() == [0.0, 0.0]
    assert np.isnan(compare([[np.nan] * 9]).comparisons[0].change.mean)


@pytest.mark.parametrize(
    ("ratios", "kind"),
    [([0.0] * 9, "runs"), ([0.0], "runs"), ([0.5] * 9, "replications"), ([0.5], "")],
)
def test_what_is_identical_has_a_mean_but_no_interval(ratios, kind):
    (found,) = compare([ratios]).comparisons
    assert (found.identical, found.certain) == (kind, False)
    assert found.change.mean == pytest.approx(np.expm1(ratios[0]))
    assert np.isnan([found.change.low, found.change.high]).all()


def test_one_repetition_keeps_a_share_without_an_interval():
    kept = share_of_gain([8.0] * 3, [4.0] * 3, [16.0] * 3)
    assert (kept.mean, np.isnan(kept.low)) == (pytest.approx(0.5), True)


SKEWED = 4 / 9
"""Shape of a gamma law of skewness 3."""


@pytest.mark.parametrize(
    ("law", "low", "high"),
    [
        (lambda rng, n: rng.normal(size=n), 0.93, 0.98),
        (lambda rng, n: rng.standard_t(2, size=n), 0.93, 0.98),
        (lambda rng, n: rng.gamma(SKEWED, size=n) - SKEWED, 0.85, 0.98),
    ],
)
def test_intervals_cover_whatever_the_tails(law, low, high, monkeypatch):
    monkeypatch.setattr("sim.statistics.RESAMPLES", 300)
    rng = np.random.default_rng(11)
    for pairs in (10, 40):
        drawn = (compare([law(rng, pairs)], shares=[True]).comparisons[0] for _ in range(300))
        assert low - 0.02 <= np.mean([one.change.contains(0.0) for one in drawn]) <= high + 0.015


def test_two_hundred_tables_of_equals_call_at_most_sixteen_better(monkeypatch):
    monkeypatch.setattr("sim.statistics.RESAMPLES", 300)
    rng = np.random.default_rng(12)
    false = 0
    for _ in range(200):
        times = rng.lognormal(9.0, 0.4, (13, 20))  # a reference and twelve like it
        found = compare([log_ratios(own, times[0]) for own in times[1:]])
        false += any(one.certain for one in found.comparisons)
    assert 1 <= false <= 16


def test_rows_where_hardly_any_pair_differs_widen_no_others():
    drawn = np.random.default_rng(8).normal(size=(9, 6))
    few = np.zeros((9, 4))
    few[[2, 5, 6, 7], range(4)] = 1.0
    usual = compare(list(drawn.T), shares=[True] * 6).comparisons
    beside = compare(list(np.hstack([drawn, few]).T), shares=[True] * 10).comparisons
    widths = [
        np.array([one.change.high - one.change.low for one in each]) for each in (usual, beside)
    ]
    assert (widths[1][:6] < 1.5 * widths[0]).all()
    assert not any(one.certain for one in beside[6:])


def test_neighbouring_windows_that_are_alike_are_read_in_blocks():
    alone = np.random.default_rng(3).normal(size=40)
    assert compare([alone], ordered=True).block == 1
    alike = np.repeat(alone[:20], 2) + 0.1 * alone
    found, as_scalars = compare([alike], ordered=True), compare([alike])
    assert found.block >= 2
    assert found.correlation > 0.3
    wide, narrow = (one.comparisons[0].change for one in (found, as_scalars))
    assert np.log1p(wide.high) - np.log1p(wide.low) > 1.2 * np.log(
        (1 + narrow.high) / (1 + narrow.low)
    )
    assert wide.mean == narrow.mean


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
    halfway = share_of_gain(np.sqrt(rigid * best), best, rigid)
    assert (halfway.mean, halfway.half < 1e-6) == (pytest.approx(0.5), True)


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
        batched += batch_means(values[100:]).interval.contains(10.0)
        naive += t_interval(values).contains(10.0)
    assert batched >= 53
    assert naive <= 30


def test_short_runs_say_so():
    values = np.concatenate([np.full(500, 1e6), np.random.default_rng(1).normal(5, 1, 1005)])
    found = batch_means(values[500:])
    assert found.batches == 30
    assert found.interval.mean == pytest.approx(5, abs=0.2)
    drift = batch_means(np.linspace(0, 1, 600))
    assert drift.batches == 10
    assert drift.correlated


def test_a_long_run_has_intervals_of_its_steady_means():
    values = np.random.default_rng(2).normal(100.0, 10.0, 600)
    jobs = pd.DataFrame(
        {"wait_time": np.linspace(0, 1, 600), "response_time": values, "bounded_slowdown": 2.0}
    )
    figures = batch_figures(jobs)
    assert figures["mean_response_time_half_width"] == batch_means(values).interval.half
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
    rule = Precision(0.05, least=2, objective=Objective("wait", "run"))
    same = rule.figures([{RUN: {"wait": 3.0}}] * 3)
    assert same == {"precision_reached": None, "precision_met": None}
    near = rule.figures([{RUN: {"wait": wait}} for wait in (100.0, 101.0, 100.5)])
    assert near["precision_met"] is True


def test_precision_refuses_what_cannot_be_meant():
    with pytest.raises(ConfigError, match="most_replications=5: must be at least the 10"):
        Precision(0.1, 10, 5)
