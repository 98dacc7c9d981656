"""Page's CUSUM: stated false alarms, delay, what it forgives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from published_rules.cusum import SequentialDetector, cusum_threshold, learned_spread, run_length

from predictors.errors import PredictorError

FIGURE5 = np.where(np.arange(200) < 50, 1.0, 2.0)


def first(states):
    return int(np.argmax(states))


def test_doubling_is_seen_at_the_second_cycle():
    assert first(SequentialDetector().update(FIGURE5)) == 51


def test_a_lone_outlier_raises_nothing():
    ratios = np.ones(100)
    ratios[[20, 40, 60]] = 10.0
    assert not SequentialDetector().update(ratios).any()


def test_alarms_clear_after_the_end():
    ratios = np.where((np.arange(100) >= 50) & (np.arange(100) < 70), 2.0, 1.0)
    assert np.flatnonzero(SequentialDetector().update(ratios)).tolist() == list(range(51, 71))


@pytest.mark.parametrize(("reference", "threshold"), [(0.5, 3.0), (1.0, 2.0)])
def test_run_lengths_against_a_simulation(reference, threshold):
    # 4,000 CUSUMs side by side until each has crossed once.
    rng = np.random.default_rng(7)
    sums, lengths = np.zeros(4000), np.zeros(4000)
    running = np.ones(4000, dtype=bool)
    while running.any():
        sums = np.maximum(0.0, sums + rng.standard_normal(4000) - reference)
        lengths += running
        running &= sums < threshold
    assert run_length(reference, threshold) == pytest.approx(lengths.mean(), rel=0.05)


@pytest.mark.parametrize("spread", [0.2, 0.3])
def test_false_alarms_come_as_stated(spread):
    detector = SequentialDetector(false_alarm=1e-3, spread=spread)
    rng = np.random.default_rng(11)
    states = detector.update(np.exp(spread * rng.standard_normal(1_000_000)))
    alarms = int((np.diff(states.astype(int)) == 1).sum())
    expected = 1e-3 * float((~states).sum())
    assert abs(alarms - expected) < 4.0 * np.sqrt(expected)


def test_false_alarms_are_rarer_where_the_floor_holds():
    detector = SequentialDetector(false_alarm=1e-3, spread=0.08)
    rng = np.random.default_rng(12)
    assert not detector.update(np.exp(0.08 * rng.standard_normal(200_000))).any()


def test_confirm_sets_the_fewest_cycles():
    for confirm in (1, 2, 3, 5):
        assert first(SequentialDetector(confirm=confirm).update(FIGURE5)) == 49 + confirm


def test_half_the_slowdown_is_forgiven():
    detector = SequentialDetector(slowdown=1.5, spread=0.05)
    assert not detector.update(np.full(5000, 1.2)).any()
    assert detector.update(np.full(50, 1.3)).any()


def test_bias_is_taken_off():
    assert SequentialDetector().update(np.full(100, 1.4)).any()
    assert not SequentialDetector(bias=np.log(1.4)).update(np.full(100, 1.4)).any()


def test_reset_forgets():
    detector = SequentialDetector()
    detector.update(FIGURE5)
    detector.reset()
    assert not detector.raised_
    assert first(detector.update(FIGURE5)) == 51


def test_learned_spread_ignores_steps():
    rng = np.random.default_rng(0)
    ratios = np.exp(0.1 * rng.standard_normal(400)) * np.repeat([1.0, 2.0], 200)
    assert learned_spread(ratios) == pytest.approx(0.1, rel=0.15)


def test_threshold_meets_the_stated_rate():
    threshold = cusum_threshold(0.7, 1e-3, 2)
    assert run_length(0.7, threshold, 2) == pytest.approx(1000.0, rel=1e-3)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: SequentialDetector(false_alarm=0.0), "false_alarm must be between"),
        (lambda: SequentialDetector(slowdown=1.0), "slowdown must be above 1"),
        (lambda: SequentialDetector(spread=0.0), "spread must be positive"),
        (lambda: SequentialDetector(slowdown=np.inf), "slowdown must be above 1 and finite"),
        (lambda: SequentialDetector(spread=np.inf), "spread must be positive and finite"),
        (lambda: SequentialDetector(bias=np.nan), "bias must be finite, got nan"),
        (lambda: SequentialDetector(confirm=0), "confirm must be at least 1"),
        (lambda: SequentialDetector().update([1.0, 0.0]), "must be positive, got 0.0"),
        (lambda: learned_spread([1.0]), "at least 8 ratios"),
    ],
)
def test_bad_values_are_named(call, named):
    with pytest.raises(PredictorError, match=named):
        call()


def test_a_threshold_exists_where_the_chain_loses_its_precision():
    assert 4.0 < SequentialDetector(1e-4, 1.5, spread=0.04).threshold_ < 6.0


@settings(max_examples=100)
@given(
    st.lists(st.sampled_from([0.8, 1.0, 1.15, 1.3, 1.6, 2.5]), min_size=1, max_size=60),
    st.integers(0, 60),
)
def test_one_by_one_or_all_at_once(ratios, cut):
    kind = SequentialDetector
    whole = kind().update(ratios)
    single, parts = kind(), kind()
    assert whole.tolist() == [bool(single.update(r)[0]) for r in ratios]
    halves = [*parts.update(ratios[:cut]).tolist(), *parts.update(ratios[cut:]).tolist()]
    assert whole.tolist() == halves
    assert single.raised_ == whole[-1] == parts.raised_
