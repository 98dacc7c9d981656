import numpy as np
import pytest

from predictors import Adept, Amdahl, LevenbergMarquardt, UniversalScalability, downey

pytestmark = pytest.mark.fast

N = np.array([1.0, 2, 4, 8, 16, 32])


def test_amdahl_recovers_its_law_and_keeps_parts_non_negative():
    model = Amdahl().fit_arrays(N, 3 + 40 / N)
    assert (model.serial_, model.parallel_) == pytest.approx((3, 40))
    superlinear = Amdahl().fit_arrays([1, 2, 4], [100, 40, 15])
    assert superlinear.serial_ == 0
    rising = Amdahl().fit_arrays([1, 2], [1, 2])
    assert rising.parallel_ == 0
    assert Amdahl().fit_arrays([8], [5]).predict(16).item() == pytest.approx(2.5)


def test_amdahl_is_least_squares_on_relative_errors():
    t = np.array([45.0, 22, 14, 7.5, 5.8, 4.1])
    design = np.stack([1 / N, np.ones(6)], axis=1) / t[:, None]
    parallel, serial = np.linalg.lstsq(design, np.ones(6), rcond=None)[0]
    model = Amdahl().fit_arrays(N, t)
    assert (model.serial_, model.parallel_) == pytest.approx((serial, parallel))


def test_universal_scalability_recovers_contention_and_coherency():
    t = 70 * (1 + 0.04 * (N - 1) + 0.002 * N * (N - 1)) / N
    model = UniversalScalability().fit_arrays(N, t)
    found = (model.serial_time_, model.contention_, model.coherency_)
    assert found == pytest.approx((70, 0.04, 0.002))
    assert model.predict(64).item() == pytest.approx(70 * (1 + 0.04 * 63 + 0.002 * 64 * 63) / 64)


@pytest.mark.parametrize("model", [Amdahl, UniversalScalability])
def test_ranges_hold_about_their_share_of_new_runs(model):
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(300):
        t = (3 + 40 / N) * np.exp(0.1 * rng.standard_normal(6))
        low, high = model().fit_arrays(N, t).predict_range([64.0], 0.8)
        hits += low[0] <= (3 + 40 / 64) * np.exp(0.1 * rng.standard_normal()) <= high[0]
    assert 0.70 < hits / 300 < 0.92


def test_levenberg_marquardt_needs_a_good_start_and_adept_does_not():
    n = np.array([20.0, 60, 150, 260])
    t = downey.normalised_time(n, 120, 0.6)
    truth = float(downey.normalised_time(400, 120, 0.6))
    near = LevenbergMarquardt(start=(110, 0.5)).fit_arrays(n, t).predict(400).item()
    far = LevenbergMarquardt(start=(3000, 3000)).fit_arrays(n, t).predict(400).item()
    assert near == pytest.approx(truth, rel=0.01)
    assert abs(far / truth - 1) > 0.2
    assert Adept().fit_arrays(n, t).predict(400).item() == pytest.approx(truth, rel=1e-3)


def test_levenberg_marquardt_checks_its_arguments():
    with pytest.raises(ValueError, match="A must be finite and at least 1, got 0"):
        LevenbergMarquardt(start=(0, 1)).check_parameters()
    with pytest.raises(ValueError, match="scale must be one of free, unit"):
        LevenbergMarquardt(scale="x").check_parameters()
