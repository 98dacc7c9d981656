"""The exact targets of ADEPT: closed forms, envelope, weights, statistics."""

import numpy as np
import pytest

from predictors import Adept, downey
from predictors.adept.anomalies import paper_metric
from predictors.adept.fit import anomaly_factor, distance_weights
from predictors.adept.grid import envelope_boxes, free_boxes, serial_sigma, unit_boxes

pytestmark = pytest.mark.fast


def instance(rng: np.random.Generator) -> tuple[float, float]:
    return float(np.exp(rng.uniform(np.log(2), np.log(300)))), float(rng.uniform(0, 3))


def test_a1_speedup_times_time_is_the_serial_time_in_every_piece():
    rng = np.random.default_rng(1)
    for _ in range(200):
        A, sigma = instance(rng)
        n = np.concatenate([rng.uniform(1, 6 * A, 20), [1.0, A, max(2 * A - 1, 1)]])
        product = downey.speedup(n, A, sigma) * downey.normalised_time(n, A, sigma)
        first = downey.normalised_time(1.0, A, sigma)
        np.testing.assert_allclose(product, first, rtol=1e-12)


def test_a2_continuity_at_the_breakpoints_and_between_the_families():
    rng = np.random.default_rng(2)
    for _ in range(200):
        A, sigma = instance(rng)
        for at in (A, 2 * A - 1, A + A * sigma - sigma):
            below, above = downey.normalised_time([at * (1 - 1e-11), at * (1 + 1e-11)], A, sigma)
            assert below == pytest.approx(above, rel=1e-9)
        n = rng.uniform(1, 4 * A, 10)
        np.testing.assert_allclose(
            downey.speedup(n, A, 1.0), downey.speedup(n, A, 1.0 + 1e-13), rtol=1e-9
        )


@pytest.mark.parametrize(
    ("piece", "A", "sigma", "pair"),
    [
        ("L1", 40.0, 0.6, (5.0, 31.0)),
        ("L2", 40.0, 0.6, (45.0, 70.0)),
        ("H1", 40.0, 2.5, (5.0, 90.0)),
    ],
)
def test_a3_noiseless_pairs_give_the_parameters_outright(piece, A, sigma, pair):
    times = downey.normalised_time(pair, A, sigma)
    boxes = unit_boxes(pair[0], times[0], pair[1], times[1], 0.0, 1e4)
    exact = [
        box
        for box in boxes
        if box.A_low == pytest.approx(A, rel=1e-9) and box.A_high == pytest.approx(A, rel=1e-9)
    ]
    assert len(exact) == 1, piece
    assert exact[0].sigma_low == pytest.approx(sigma, rel=1e-9)
    assert exact[0].sigma_high == pytest.approx(sigma, rel=1e-9)


def test_a3_flat_pairs_bound_a_and_leave_it_free():
    low = unit_boxes(90.0, 1.0, 100.0, 1.0, 0.0, 1e4)
    assert any(box.A_low == 1.0 and box.A_high == 45.5 and box.sigma_high == 1.0 for box in low)
    sigma = 2.5
    high = unit_boxes(150.0, sigma + 1, 200.0, sigma + 1, 0.0, 1e4)
    flat = [box for box in high if box.sigma_low == pytest.approx(sigma)]
    assert any(box.A_high == pytest.approx((150 + sigma) / (1 + sigma)) for box in flat)


@pytest.mark.parametrize(
    ("piece", "A", "sigma", "n"), [("L1", 40, 0.6, 17), ("L2", 40, 0.6, 55), ("H1", 40, 2.5, 60)]
)
def test_a3_one_observation_gives_sigma_when_the_serial_time_is_known(piece, A, sigma, n):
    inverse_efficiency = 1.0 / downey.efficiency(n, A, sigma)
    assert serial_sigma(piece, n, float(inverse_efficiency), A) == pytest.approx(sigma, rel=1e-9)


def serial_pair(n_i: float, u_i: float, n_j: float, u_j: float) -> tuple[float, float]:
    """Return A and sigma from two observations in L2 when T(1) is known.

    With u = n T(n)/T(1), p = (u_j - u_i)/(n_j - n_i), r = u_i - p n_i and
    b = 2 + p - r, A is the larger root of 2 p A^2 - b A + 1 = 0 and
    sigma = 2(1 - p A).
    """
    p = (u_j - u_i) / (n_j - n_i)
    b = 2.0 + p - (u_i - p * n_i)
    A = (b + float(np.sqrt(max(b * b - 8.0 * p, 0.0)))) / (4.0 * p)
    return A, 2.0 * (1.0 - p * A)


def test_a3_the_quadratic_for_two_observations_and_a_known_serial_time():
    rng = np.random.default_rng(3)
    for _ in range(200):
        A, sigma = float(rng.uniform(3, 300)), float(rng.uniform(0.01, 1))
        n = np.sort(rng.uniform(A, 2 * A - 1, 2))
        u = 1.0 / downey.efficiency(n, A, sigma)
        if n[1] - n[0] < 0.05 * A:
            continue
        found = serial_pair(n[0], u[0], n[1], u[1])
        assert found == pytest.approx((A, sigma), rel=1e-8)


def piece_of(n: float, A: float, sigma: float) -> str:
    if sigma > 1:
        return "H1" if n <= A + A * sigma - sigma else "H2"
    return "L1" if n <= A else ("L2" if n <= 2 * A - 1 else "L3")


@pytest.mark.parametrize("scale", ["free", "unit"])
def test_a4_the_corner_envelope_always_contains_the_truth(scale):
    rng = np.random.default_rng(4)
    checked = 0
    for _ in range(1000):
        A, sigma = instance(rng)
        n = np.sort(np.exp(rng.uniform(0, np.log(4 * A), 3)))
        pieces = [piece_of(count, A, sigma) for count in n]
        if len(set(pieces)) == 3 or (np.diff(n) < 1e-6).any():
            continue
        delta = float(rng.choice([0.02, 0.1, 0.3]))
        unit = 1.0 if scale == "unit" else float(np.exp(rng.uniform(-5, 5)))
        true = unit * downey.normalised_time(n, A, sigma)
        # T within t (1 +- delta) of every measured t.
        measured = true / (1 + rng.uniform(-delta, delta, 3))
        boxes = envelope_boxes(n, measured, delta, scale, max(4 * n[-1], A))
        assert any(box.holds(A, sigma) for box in boxes), (n, A, sigma, delta)
        checked += 1
    assert checked > 500


def test_a4_free_boxes_do_not_depend_on_the_unit_of_time():
    seconds = free_boxes(4.0, 30.0, 16.0, 11.0, 0.1, 256.0)
    minutes = free_boxes(4.0, 30.0 / 60, 16.0, 11.0 / 60, 0.1, 256.0)
    np.testing.assert_allclose(seconds, minutes, rtol=1e-9)


def test_a5_the_papers_metric_moves_with_the_gaps_of_ideal_speedup():
    n = np.array([1.0, 2, 3, 4, 8, 16])
    np.testing.assert_allclose(paper_metric(n, 7.0 / n), [1.5, 1.3333, 1.25, 1.5, 1.5], atol=1e-4)


def test_a6_weights():
    weights = distance_weights(np.array([4.0, 16, 64]), np.array([128.0]), 2.0)
    assert weights.tolist() == [[124, 136, 184]]


@pytest.mark.parametrize("factor", [1 / 60, 1000.0, 3e-9])
def test_a7_predictions_scale_with_the_unit_of_time(factor):
    n = np.array([2.0, 4, 8, 16, 32])
    t = np.array([812.0, 430, 235, 141, 104])
    targets = np.array([1.0, 3, 24, 64, 128])
    before = Adept().fit_arrays(n, t)
    after = Adept().fit_arrays(n, factor * t)
    np.testing.assert_allclose(after.predict(targets), factor * before.predict(targets), rtol=1e-9)
    for one, other in zip(after.predict_range(targets), before.predict_range(targets), strict=True):
        np.testing.assert_allclose(one, factor * other, rtol=1e-9)


def test_a8_the_share_of_weight_that_anomalous_points_keep():
    assert [anomaly_factor(D) for D in (0.0, 2.0, 5.0, 12.0)] == [0.5, 0.3, 0, 0]
