"""Whole shares within limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.policies.reallocation.shares import (
    apportion,
    fill_level,
    hand_out,
    level,
    shrink_to_fit,
    snap,
)

pytestmark = pytest.mark.fast

limits = st.lists(
    st.tuples(st.floats(0.01, 10.0), st.integers(1, 5), st.integers(0, 20)), min_size=1, max_size=8
)


@given(jobs=limits, extra=st.integers(0, 60))
def test_shares_use_what_there_is_within_limits(jobs: list, extra: int) -> None:
    weights = np.array([weight for weight, _, _ in jobs])
    least = np.array([low for _, low, _ in jobs])
    largest = least + np.array([more for _, _, more in jobs])
    total = int(least.sum()) + extra
    shares = apportion(weights, total, least, largest)
    assert (shares >= least).all()
    assert (shares <= largest).all()
    assert shares.sum() == min(total, largest.sum())
    exact = fill_level(weights, float(total), least.astype(float), largest.astype(float))
    assert (np.abs(shares - exact) < 1 + 1e-9).all()
    inside = (exact > least + 1e-9) & (exact < largest - 1e-9)
    np.testing.assert_allclose(
        np.ptp((exact / weights)[inside]) if inside.any() else 0, 0, atol=1e-6
    )


def test_left_over_processors_go_to_the_oldest() -> None:
    ones = np.ones(3, np.int64)
    assert apportion(np.ones(3), 11, ones, 9 * ones).tolist() == [4, 4, 3]


def test_snapping_hands_on_what_it_frees() -> None:
    powers = np.array([1, 2, 4, 8, 16])
    assert snap(np.array([5, 5, 6]), 16, [powers, None, powers]).tolist() == [4, 5, 4]
    assert snap(np.array([7, 9]), 16, [powers, powers]).tolist() == [8, 8]


def test_moves_follow_their_order() -> None:
    counts = np.array([5, 5, 5])
    shrink_to_fit(counts, np.array([1, 4, 1]), 9, np.array([1, 2, 0]))
    assert counts.tolist() == [4, 4, 1]
    hand_out(counts, np.array([9, 9, 3]), 14, np.array([2, 0]))
    assert counts.tolist() == [7, 4, 3]


def test_levelling_goes_by_rank() -> None:
    counts, least, largest = np.array([8, 2]), np.array([1, 1]), np.array([9, 5])
    level(counts, least, largest, 6)  # from 7/8 down to 3/8, above 1/4
    assert counts.tolist() == [4, 2]
    level(counts, least, largest, 11)
    assert counts.tolist() == [7, 4]
