"""The synthetic cases of the paper's Figures 7 and 8."""

import numpy as np
import pytest

from predictors import Adept, UndeterminedError, downey
from predictors.adept.anomalies import anomalies_of
from predictors.adept.layout import Feasible, special_family

DOUBLINGS = 2.0 ** np.arange(1, 9)
TENS = np.arange(10.0, 130, 10)


def codes(model, target):
    return {remark.code for remark in model.reliability(target)}


@pytest.mark.parametrize("metric", ["doubling", "paper"])
@pytest.mark.parametrize("factor", [1.3, 1 / 1.3])
def test_figure_7_an_anomalous_point_at_64(metric, factor):
    t = downey.normalised_time(DOUBLINGS, 150, 0.7)
    t[5] *= factor
    starts, points, deviations = anomalies_of(DOUBLINGS, t, metric == "paper")
    assert DOUBLINGS[points].tolist() == [64]
    assert deviations[0] > 0
    assert starts.tolist() == [0]


def test_figure_7_a_point_20_percent_too_fast_at_80_is_dropped_and_the_rest_fits_well():
    true = 50 * downey.normalised_time(TENS, 60, 0.8)
    measured = true.copy()
    measured[7] /= 1.2
    model = Adept().fit_arrays(TENS, measured)
    assert [point.nprocs for point in model.anomalies_] == [80]
    assert model.anomalies_[0].deviation > 10
    np.testing.assert_allclose(model.predict(TENS), true, rtol=0.01)
    assert "anomalous_point" in codes(model, 80)


@pytest.mark.parametrize("metric", ["doubling", "paper"])
def test_figure_8_two_phases_with_the_break_at_the_right_place(metric):
    n = np.arange(1.0, 11)
    true = 10 * downey.normalised_time(n, 40, 0.8)
    true[5:] /= 1.5
    model = Adept(metric=metric).fit_arrays(n, true)
    assert model.phases_ == ((1, 5), (6, 10))
    np.testing.assert_allclose(model.predict(n), true, rtol=0.01)
    assert "stepwise" in codes(model, 12)


def test_figure_8_three_phases():
    n = np.arange(1.0, 13)
    true = downey.normalised_time(n, 30, 0.8)
    true[4:] /= 1.4
    true[8:] /= 1.4
    model = Adept().fit_arrays(n, true)
    assert model.phases_ == ((1, 4), (5, 8), (9, 12))
    np.testing.assert_allclose(model.predict(n), true, rtol=0.01)


def test_a_phase_of_two_points_borrows_the_shape_of_all():
    n = np.array([1.0, 2, 4, 8, 16, 32])
    true = downey.normalised_time(n, 60, 0.6)
    true[4:] /= 1.6
    model = Adept().fit_arrays(n, true)
    assert model.phases_ == ((1, 8), (16, 32))
    np.testing.assert_allclose(model.predict(n[4:]), true[4:], rtol=0.15)
    assert model.predict(24).item() < true[4]


def test_figure_8_powers_of_two_are_found_and_kept():
    n = np.array([2.0, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64])
    true = 30 * downey.normalised_time(n, 90, 0.7)
    slow = ~Feasible("powers of 2").holds(n)
    measured = np.where(slow, 1.5 * true, true)
    model = Adept().fit_arrays(n, measured)
    assert model.feasible_.name == "powers of 2"
    assert model.feasible([48, 64, 128]).tolist() == [False, True, True]
    np.testing.assert_allclose(model.predict(n[~slow]), true[~slow], rtol=0.01)
    assert "special" in codes(model, 64)
    refused = [remark for remark in model.reliability(100) if remark.code == "infeasible"]
    assert (refused[0].grade, refused[0].measure_at) == ("unusable", 128)
    assert model.predict(100).item() > 0
    with pytest.raises(UndeterminedError, match="100 is not among powers of 2"):
        model.predict([64, 100], strict=True)


def test_smooth_curves_are_not_special_and_not_anomalous():
    rng = np.random.default_rng(1)
    for _ in range(60):
        n = np.unique(np.rint(np.exp(rng.uniform(0, 5, 12))))
        t = downey.normalised_time(n, rng.uniform(2, 200), rng.uniform(0, 3))
        starts, points, _ = anomalies_of(n, t, False)
        assert not points.size
        assert starts.tolist() == [0]
        assert special_family(n, t) is None


def test_given_counts_are_respected():
    model = Adept(allowed=[4, 9, 16]).fit_arrays([4, 9, 16], [30, 15, 10])
    assert model.feasible([9, 10]).tolist() == [True, False]
    assert "infeasible" in codes(model, 10)
    assert "infeasible" not in codes(model, 9)


@pytest.mark.parametrize(
    ("family", "start", "following"),
    [
        ("powers of 2", 65, 128),
        ("perfect squares", 50, 64),
        ("cubes", 28, 64),
        ("multiples of 12", 25, 36),
    ],
)
def test_next_feasible_count(family, start, following):
    assert Feasible(family).at_least(start) == following


def test_a_declining_end_is_left_out_and_said():
    n = np.array([1.0, 2, 4, 8, 16, 32])
    t = np.array([100.0, 52, 28, 17, 20, 27])
    model = Adept().fit_arrays(n, t)
    assert model.declines_after_ == 8
    assert "declining" not in codes(model, [1, 3, 8])
    assert model.predict(8).item() == pytest.approx(17, rel=0.1)
    np.testing.assert_allclose(model.predict([16, 32]), [20, 27], rtol=1e-9)
    assert {r.grade for r in model.reliability([16, 32]) if r.code == "declining"} == {"warning"}
    assert {r.grade for r in model.reliability([24, 64]) if r.code == "declining"} == {"unusable"}


def test_a_single_rising_point_is_uncertain():
    model = Adept().fit_arrays([1, 2, 4, 8], [100, 52, 28, 34])
    assert "rising_end" in codes(model, 16)
    assert "declining" not in codes(model, 16)


def test_a_rise_within_the_scatter_is_no_decline_but_uncertain():
    n, falling = np.array([1.0, 2, 4, 8, 16]), [100.0, 52, 28]
    model = Adept().fit_arrays(n, [*falling, 30, 34])
    assert model.declines_after_ is None
    assert "rising_end" in codes(model, 16)
    twice = Adept().fit_arrays([*n, 1], [*falling, 30, 34, 101])
    assert twice.declines_after_ == 4


def test_at_least_three_points_keep_weight():
    n = np.array([1.0, 2, 4, 8])
    t = np.array([100.0, 50, 80, 12.5])
    model = Adept().fit_arrays(n, t)
    assert [point.nprocs for point in model.anomalies_] == [4]
    assert "its weight is 0.50 of what it would be" in " ".join(
        r.text for r in model.reliability(8)
    )
    assert np.isfinite(model.predict([1, 3, 100])).all()
