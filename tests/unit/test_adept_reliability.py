import numpy as np
import pytest

from predictors import Adept, UndeterminedError, downey

pytestmark = pytest.mark.fast

N = np.array([4.0, 8, 16, 32])


def remarks(model, target, code):
    return [r for r in model.reliability(target) if r.code == code]


def test_all_in_the_linear_section_is_warned_of_and_the_range_holds_the_truth():
    t = 60 * downey.normalised_time(N, 100, 0.6)
    model = Adept().fit_arrays(N, t)
    assert model.floor_ == 0
    targets = np.array([64.0, 128, 256])
    truth = 60 * downey.normalised_time(targets, 100, 0.6)
    low, high = model.predict_range(targets)
    assert (low <= truth * (1 + 1e-6)).all()
    assert (truth <= high * (1 + 1e-6)).all()
    found = remarks(model, 256, "linear_section")
    assert found[0].grade == "warning"
    assert found[0].target == 256
    assert found[0].measure_at > 32
    # Inside the observations Amdahl's law is all that is needed.
    assert model.predict(12).item() == pytest.approx(
        float(60 * downey.normalised_time(12, 100, 0.6)), rel=1e-6
    )


def test_the_run_asked_for_lies_past_the_linear_section():
    """The paper's Table 3: on at least A; a run on fewer may tell no more than those before."""
    rng = np.random.default_rng(5)
    asked = []
    for _ in range(60):
        n = np.sort(rng.choice([1.0, 2, 4, 8, 12, 16, 24, 32, 48, 64], 4, replace=False))
        t = downey.normalised_time(n, 100, rng.uniform(0.05, 1.0))
        asked += [r.measure_at for r in remarks(Adept().fit_arrays(n, t), 200, "linear_section")]
    assert len(asked) > 30
    assert min(asked) >= 100


def test_measuring_where_asked_settles_the_curve():
    true = lambda n: 60 * downey.normalised_time(n, 40, 0.5)  # noqa: E731
    n = N
    for _ in range(3):
        model = Adept().fit_arrays(n, true(n))
        asked = [r.measure_at for r in model.reliability(256) if r.measure_at]
        if not asked:
            break
        n = np.unique([*n, float(asked[0])])
    assert model.predict(256).item() == pytest.approx(float(true(256)), rel=0.01)


def test_advice_respects_feasible_counts():
    t = 60 * downey.normalised_time(N, 100, 0.6)
    model = Adept(allowed="perfect squares").fit_arrays(N, t)
    asked = {r.measure_at for r in remarks(model, 256, "linear_section")}
    assert asked
    assert all(round(np.sqrt(count)) ** 2 == count for count in asked)


def test_a_high_fitting_error_names_the_point():
    t = 100 / N
    t[1] *= 1.2
    model = Adept(floor=0.0).fit_arrays(N[:3], t[:3])
    found = remarks(model, 16, "high_fitting_error")
    worst = N[np.argmax(np.abs(model.curve().runtime(N[:3]) / t[:3] - 1))]
    assert found == [] or found[0].measure_at == worst


def test_one_observation_answers_itself_alone():
    model = Adept().fit_arrays([8], [100.0])
    assert model.predict([8, 16, 4]).tolist() == [100, 50, 200]
    assert model.predict(8, strict=True).item() == 100
    with pytest.raises(UndeterminedError, match="one processor count"):
        model.predict(16, strict=True)
    low, high = model.predict_range([16])
    assert low[0] < 50 * (1 + 1e-9)
    assert high[0] >= 100


def test_two_observations_give_amdahls_law_with_a_warning():
    n = np.array([4.0, 16])
    model = Adept().fit_arrays(n, 10 + 80 / n)
    np.testing.assert_allclose(model.predict([2, 8, 64]), [50, 20, 11.25], rtol=1e-9)
    assert remarks(model, 8, "few_points")[0].grade == "warning"
    assert model.serial_time_ == pytest.approx(90)
    np.testing.assert_allclose(model.curve().runtime(n), 10 + 80 / n, rtol=1e-6)


def test_far_targets_and_a_million_processors_are_graded():
    model = Adept().fit_arrays(N, [100, 51, 26, 13])
    assert remarks(model, 1000, "far")[0].grade == "warning"
    assert not remarks(model, 128, "far")
    assert "unusable" in {r.grade for r in model.reliability(1e6) if r.target == 1e6}
    assert 0 < model.predict(1e6).item() < 13


def test_noise_widens_the_range_and_level_widens_it_further():
    t = 100 / N * [1.04, 0.97, 1.03, 0.98]
    model = Adept().fit_arrays(N, t)
    assert model.floor_ > 0
    narrow, wide = (model.predict_range([64.0], level) for level in (0.5, 0.95))
    assert wide[0] < narrow[0] < model.predict([64.0]) < narrow[1] < wide[1]


def test_speedup_refers_to_the_measured_runtime_or_to_the_same_instance():
    n = np.array([1.0, 4, 24, 30])
    t = 90 * downey.normalised_time(n, 16, 0.5)
    measured, estimated = Adept().fit_arrays(n, t), Adept().fit_arrays(n[1:], t[1:])
    assert measured.serial_measured_
    assert not estimated.serial_measured_
    np.testing.assert_allclose(measured.speedup([1, 8]), downey.speedup([1, 8], 16, 0.5), rtol=1e-3)
    np.testing.assert_allclose(measured.efficiency([8]), measured.speedup([8]) / 8, rtol=1e-12)
    assert estimated.speedup([1]).item() == pytest.approx(1.0, rel=0.05)


def test_flat_and_ideal_data():
    flat = Adept().fit_arrays([4, 8, 16], [7, 7, 7])
    np.testing.assert_allclose(flat.predict([8, 64]), 7, rtol=1e-9)
    ideal = Adept().fit_arrays(N, 64 / N)
    np.testing.assert_allclose(ideal.predict([1, 20]), [64, 3.2], rtol=1e-6)


def test_superlinear_data_are_flagged():
    model = Adept().fit_arrays([1, 2, 4], [100, 40, 12])
    assert remarks(model, 4, "superlinear")
    assert model.predict(8).item() > 0


def test_envelope_is_reported_with_the_delta_that_passes():
    exact = Adept().fit_arrays(N, 60 * downey.normalised_time(N, 12, 0.5))
    assert exact.envelope_.delta == pytest.approx(0.10)
    assert exact.envelope_.holds(12, 0.5)
    rough = Adept().fit_arrays([1, 2, 4, 8], [100, 80, 20, 14])
    assert (
        rough.envelope_.delta
        >= np.abs(rough.curve().runtime([1, 2, 4, 8]) / [100, 80, 20, 14] - 1).max() - 1e-9
    )
    assert rough.envelope_.delta > 0.10


def test_curve_gives_knee_and_counts_for_an_efficiency():
    n = np.array([4.0, 20, 70, 150])
    curve = Adept().fit_arrays(n, downey.normalised_time(n, 60, 1.0)).curve()
    assert pytest.approx(60, rel=1e-3) == curve.A
    assert curve.knee == pytest.approx(119, rel=0.01)
    assert curve.largest_at_efficiency(0.9) == pytest.approx(14.33, rel=0.01)
    assert curve.largest_useful == pytest.approx(119, rel=0.01)
