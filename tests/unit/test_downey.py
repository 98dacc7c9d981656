"""Downey's model: every fact of the literature, and closed forms against grid search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictors import downey
from predictors.errors import PredictorError

pytestmark = pytest.mark.fast

parallelism = st.floats(1, 300)
variance = st.one_of(st.floats(0, 1), st.floats(1, 5))
plain_variance = st.one_of(st.just(0.0), st.floats(1e-3, 5))
GRID = [(A, s) for A in (4.0, 16.5, 60.0) for s in (0, 0.2, 0.5, 0.66, 0.7, 0.9, 1, 1.5, 2, 5)]


def printed_speedup(n: float, A: float, sigma: float) -> float:
    """The speedup as the ADEPT paper prints it, piece by piece."""
    if sigma <= 1:
        if n <= A:
            return A * n / (A + sigma / 2 * (n - 1))
        if n <= 2 * A - 1:
            return A * n / (sigma * (A - 0.5) + n * (1 - sigma / 2))
        return A
    if n <= A + A * sigma - sigma:
        return n * A * (sigma + 1) / (sigma * (n + A - 1) + A)
    return A


@given(parallelism, variance, st.floats(1, 1500))
def test_speedup_is_the_printed_one_and_the_ratio_of_times(A, sigma, n):
    expected = printed_speedup(n, A, sigma)
    assert downey.speedup(n, A, sigma) == pytest.approx(expected, rel=1e-12)
    ratio = downey.normalised_time(1, A, sigma) / downey.normalised_time(n, A, sigma)
    assert ratio == pytest.approx(expected, rel=1e-12)


@given(parallelism, variance, st.floats(1, 1500))
def test_speedup_is_bounded_by_processors_and_parallelism(A, sigma, n):
    assert downey.speedup(1, A, sigma) == 1.0
    assert downey.speedup(n, A, sigma) <= min(n, A) * (1 + 1e-12)
    assert downey.efficiency(n, A, sigma) <= 1 + 1e-12


@given(parallelism, variance)
def test_continuous_at_every_breakpoint(A, sigma):
    for point in (A, 2 * A - 1, A + A * sigma - sigma):
        around = np.array([max(1.0, point * (1 - 1e-10)), point, point * (1 + 1e-10)])
        for values in (
            downey.speedup(around, A, sigma),
            downey.normalised_time(around, A, sigma),
        ):
            assert np.ptp(values) <= 1e-8 * values.max()


@pytest.mark.parametrize("A", [1.0, 4.0, 16.5, 60.0])
def test_branches_agree_at_variance_one(A):
    n = np.linspace(1, 3 * A, 400)
    just_above = np.nextafter(1.0, 2.0)
    low, high = downey.speedup(n, A, 1.0), downey.speedup(n, A, just_above)
    np.testing.assert_allclose(low, high, rtol=1e-12)
    twice = downey.normalised_time(n, A, just_above) / downey.normalised_time(n, A, 1.0)
    np.testing.assert_allclose(twice, 2.0, rtol=1e-12)


def test_exact_at_the_breakpoints():
    # A = 4, sigma = 1/2: T = 3.75/n + 1/4 to n = 4, 1.75/n + 3/4 to n = 7, then 1
    times = downey.normalised_time([1, 4, 7, 8], 4, 0.5)
    assert times.tolist() == [4.0, 1.1875, 1.0, 1.0]
    # A = 4, sigma = 2: N = 10, T = 2 + 10/n to n = 10, then 3
    assert downey.normalised_time([1, 5, 10, 11], 4, 2).tolist() == [12.0, 4.0, 3.0, 3.0]
    assert downey.largest_useful(4, [0.5, 2]).tolist() == [7.0, 10.0]


def test_limits_of_the_variance():
    n, A = np.arange(1, 200), 30.0
    np.testing.assert_allclose(downey.speedup(n, A, 0), np.minimum(n, A), rtol=1e-14)
    np.testing.assert_allclose(downey.speedup(n, A, 1e9), n * A / (n + A - 1), rtol=1e-7)


@given(parallelism, st.floats(0, 50))
def test_average_parallelism_gives_half_of_both(A, sigma):
    share = downey.speedup(A, A, sigma) / A
    assert share >= A / (2 * A - 1) * (1 - 1e-12)
    assert share > 0.5


@pytest.mark.parametrize(("A", "sigma"), GRID)
def test_largest_useful_is_where_speedup_reaches_parallelism(A, sigma):
    end = downey.largest_useful(A, sigma)
    assert downey.speedup(end, A, sigma) == pytest.approx(A, rel=1e-13)
    if sigma > 0:
        assert downey.speedup(end - 1e-3, A, sigma) < A * (1 - 1e-9)


@pytest.mark.parametrize(("A", "sigma"), GRID)
def test_knee_against_grid_search(A, sigma):
    n = np.unique(np.append(np.linspace(1, 8 * A, 200_001), [A, 2 * A - 1]))
    efficacy = downey.speedup(n, A, sigma) ** 2 / n
    found = downey.knee(A, sigma)
    assert downey.speedup(found, A, sigma) ** 2 / found >= efficacy.max() * (1 - 1e-12)
    smallest = n[efficacy >= efficacy.max() * (1 - 1e-13)][0]
    assert found == pytest.approx(smallest, abs=8 * A / 200_000 + 2e-3 * A)


@pytest.mark.parametrize(("A", "sigma"), GRID)
@pytest.mark.parametrize("e", [1.0, 0.95, 0.9, 0.8, 0.7, 0.5, 0.3, 0.1])
def test_efficiency_limit_against_grid_search(A, sigma, e):
    n = np.linspace(1, 11 * A, 200_001)
    largest = n[downey.efficiency(n, A, sigma) >= e - 1e-12][-1]
    found = downey.largest_at_efficiency(e, A, sigma)
    assert largest - 1e-9 <= found <= largest + 11 * A / 200_000
    assert downey.efficiency(found, A, sigma) == pytest.approx(e, rel=1e-12)


def test_sample_values():
    assert downey.knee(60, 1) == 119
    found = downey.largest_at_efficiency([0.9, 0.7, 0.5], 60, 1)
    np.testing.assert_allclose(found, [14.33, 52.43, 120], atol=0.005)
    assert downey.knee(16.5, 0.66) == 16.5
    found = downey.largest_at_efficiency([0.9, 0.7, 0.5], 16.5, 0.66)
    np.testing.assert_allclose(found, [6.56, 19.42, 33], atol=0.005)


def test_knee_falls_from_the_end_towards_parallelism():
    sigma = np.array([1, 2, 10, 1e6])
    knees = downey.knee(60, sigma)
    assert knees[0] == 119
    assert (np.diff(knees) < 0).all()
    assert knees[-1] == pytest.approx(59, abs=1e-3)
    assert downey.knee(1.01, 50) == 1.0


@given(parallelism, plain_variance, st.integers(1, 20), st.integers(0, 500))
def test_integer_largest_useful_is_the_smallest_fastest_count(A, sigma, least, span):
    S = downey.speedup(np.arange(least, least + span + 1), A, sigma)
    useful = int(downey.integer_largest_useful(A, sigma, least, least + span)) - least
    assert S[useful] >= S.max() * (1 - 2e-12)
    assert (S[:useful] < S[useful] * (1 - 1e-13)).all()


def test_broadcasting_shapes():
    A, sigma, n = np.ones((3, 1, 1)) * 8, np.array([0.5, 2.0])[:, None], np.arange(1, 6)
    for function in (
        downey.speedup,
        downey.normalised_time,
        downey.relative_time,
        downey.efficiency,
    ):
        assert function(n, A, sigma).shape == (3, 2, 5)
    assert downey.knee(A, sigma).shape == (3, 2, 1)
    assert downey.integer_largest_useful(8, 0.5).dtype == np.int64


@pytest.mark.parametrize("e", [0, -0.1, 1.01, np.nan])
def test_efficiency_out_of_range_is_refused(e):
    with pytest.raises(PredictorError, match="efficiency must be in"):
        downey.largest_at_efficiency(e, 4, 1)


def test_bad_parameters_are_refused():
    with pytest.raises(PredictorError, match=r"A must be finite and at least 1, got 0\.5"):
        downey.check_parameters([2, 0.5], 1)
    with pytest.raises(PredictorError, match="sigma must be finite and at least 0, got -1"):
        downey.check_parameters(2, [0, -1])
    with pytest.raises(PredictorError, match="got 3 to 2"):
        downey.integer_largest_useful(4, 1, least=3, most=2)
    downey.check_parameters([1, 60], [0, 5])
