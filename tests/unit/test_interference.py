"""The detector of interference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictors.cycles.interference import MedianDetector
from predictors.errors import PredictorError

pytestmark = pytest.mark.fast

FIGURE5 = np.where(np.arange(200) < 50, 1.0, 2.0)


def first(states):
    return int(np.argmax(states))


def test_doubling_is_seen_at_the_second_cycle():
    assert first(MedianDetector().update(FIGURE5)) == 51


def test_a_lone_outlier_raises_nothing():
    ratios = np.ones(100)
    ratios[[20, 40, 60]] = 10.0
    assert not MedianDetector().update(ratios).any()


def test_alarms_clear_after_the_end():
    ratios = np.where((np.arange(100) >= 50) & (np.arange(100) < 70), 2.0, 1.0)
    assert np.flatnonzero(MedianDetector().update(ratios)).tolist() == list(range(51, 71))


def test_median_warns_between_the_bounds():
    detector = MedianDetector()
    detector.update([1.3, 1.3, 1.3])
    assert (detector.health_, detector.raised_) == ("warning", False)
    detector.update([1.6, 1.6])
    assert (detector.health_, detector.raised_) == ("interference", True)
    assert detector.update([1.3, 1.3]).tolist() == [True, True]  # not cleared above 1.2
    assert detector.update([1.1, 1.1]).tolist() == [True, False]
    assert detector.health_ == "clear"


@settings(max_examples=100)
@given(
    st.lists(st.sampled_from([0.8, 1.0, 1.15, 1.3, 1.6, 2.5]), min_size=1, max_size=60),
    st.integers(0, 60),
)
def test_one_by_one_or_all_at_once(ratios, cut):
    kind = MedianDetector
    whole = kind().update(ratios)
    single, parts = kind(), kind()
    assert whole.tolist() == [bool(single.update(r)[0]) for r in ratios]
    halves = [*parts.update(ratios[:cut]).tolist(), *parts.update(ratios[cut:]).tolist()]
    assert whole.tolist() == halves
    assert single.raised_ == whole[-1] == parts.raised_


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: MedianDetector().update([1.0, 0.0]), "must be positive, got 0.0"),
        (lambda: MedianDetector(1.1, 1.2), "1 < warn_at <= raise_at"),
    ],
)
def test_bad_values_are_named(call, named):
    with pytest.raises(PredictorError, match=named):
        call()
