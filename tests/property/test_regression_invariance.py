"""Invariances of the regressions: units, base of the logarithm, order, repetition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictors.regression.barnes import LogLogRegression
from predictors.regression.garren import FocusedRegression

factors = st.floats(1e-6, 1e6)
seeds = st.integers(0, 10_000)


def runs(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    nprocs = np.repeat([2.0, 4.0, 8.0, 16.0], 3)
    size = rng.uniform(1e3, 1e5, 12)
    return nprocs, size, size**1.2 / nprocs**0.8 * np.exp(rng.normal(0, 0.05, 12))


@settings(max_examples=50)
@given(seeds, factors, factors)
def test_units_of_time_and_of_inputs_only_rescale(seed: int, time: float, unit: float) -> None:
    nprocs, size, seconds = runs(seed)
    plain = LogLogRegression().fit_arrays(nprocs, seconds, [size])
    scaled = LogLogRegression().fit_arrays(nprocs, time * seconds, [unit * size])
    assert scaled.form_ == plain.form_
    assert scaled.predict(64, size=unit * 3e4) == pytest.approx(
        time * plain.predict(64, size=3e4), rel=1e-7
    )
    assert scaled.solve_size(time * 50.0, 64) == pytest.approx(
        unit * plain.solve_size(50.0, 64), rel=1e-7
    )
    assert scaled.rmse_ == pytest.approx(plain.rmse_, rel=1e-6)


@settings(max_examples=30)
@given(seeds, st.floats(0.2, 5.0))
def test_the_base_of_the_logarithm_does_not_matter(seed: int, power: float) -> None:
    """Raising everything to a power is a change of base: exponents of inputs stay."""
    nprocs, size, seconds = runs(seed)
    plain = LogLogRegression(form="linear").fit_arrays(nprocs, seconds, [size])
    other = LogLogRegression(form="linear").fit_arrays(nprocs**power, seconds**power, [size**power])
    assert other.coefficients_[1:] == pytest.approx(plain.coefficients_[1:], rel=1e-7)
    assert other.coefficients_[0] == pytest.approx(power * plain.coefficients_[0], rel=1e-7)
    assert other.predict(64**power, size=3e4**power) == pytest.approx(
        plain.predict(64, size=3e4) ** power, rel=1e-6
    )


@settings(max_examples=30)
@given(seeds, st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(seed: int, random) -> None:
    nprocs, size, seconds = runs(seed)
    order = list(range(12))
    random.shuffle(order)
    for model in (LogLogRegression(), FocusedRegression(focal_time=1e3)):
        plain = model.fit_arrays(nprocs, seconds, [size]).predict([32, 64], size=4e4)
        mixed = model.fit_arrays(nprocs[order], seconds[order], [size[order]])
        assert mixed.predict([32, 64], size=4e4) == pytest.approx(plain, rel=1e-9)


@settings(max_examples=30)
@given(seeds)
def test_repeating_every_row_keeps_the_coefficients(seed: int) -> None:
    nprocs, size, seconds = runs(seed)
    model = LogLogRegression(form="linear")
    once = model.fit_arrays(nprocs, seconds, [size]).coefficients_
    twice = model.fit_arrays(np.tile(nprocs, 2), np.tile(seconds, 2), [np.tile(size, 2)])
    assert twice.coefficients_ == pytest.approx(once, rel=1e-8)


@settings(max_examples=60)
@given(
    st.lists(st.floats(1e-3, 1e6), min_size=4, max_size=4),
    st.floats(1.0, 1e6),
    st.sampled_from([0.1, 0.5, 0.8, 0.99]),
)
def test_predictions_are_finite_and_positive_inside_their_ranges(
    seconds: list[float], target: float, level: float
) -> None:
    model = LogLogRegression(()).fit_arrays([1, 2, 4, 8], seconds)
    predicted = model.predict([target])
    low, high = model.predict_range([target], level)
    assert np.isfinite(predicted).all()
    assert (predicted > 0).all()
    assert (low <= predicted).all()
    assert (predicted <= high).all()
