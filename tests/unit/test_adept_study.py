"""A toy of the study: the same code on a few curves, with the targets of the full one."""

import numpy as np
import pytest

from predictors import Adept
from predictors.downey import normalised_time
from predictors.evaluation import cases, read_curves, source_weights, weighted_quantile
from scripts.study_adept import METHODS, graded, noise_errors, noisy_curves, random_layout, study


def test_noiseless_curves_are_recovered_or_warned_of():
    rng = np.random.default_rng(11)
    missed = 0
    for _ in range(150):
        A, sigma, n = random_layout(rng)
        unit = float(np.exp(rng.uniform(-8, 8)))
        model = Adept().fit_arrays(n, unit * normalised_time(n, A, sigma))
        assert model.floor_ == 0
        targets = np.geomspace(n[0], 4 * n[-1], 9)
        truth = unit * normalised_time(targets, A, sigma)
        if np.abs(model.predict(targets) / truth - 1).max() > 1e-3:
            missed += 1
            low, high = model.predict_range(targets)
            assert ((truth >= low * (1 - 1e-6)) & (truth <= high * (1 + 1e-6))).all()
            assert any(remark.grade == "warning" for remark in model.reliability(targets))
    assert missed <= 3


def test_five_percent_noise_and_half_of_amdahls_error():
    adept, amdahl = (noise_errors(METHODS[name], 400, seed=2) for name in ("ADEPT", "Amdahl"))
    near, far = np.median(adept, axis=0)
    assert near <= 0.07
    assert far <= 0.10
    assert far <= 0.5 * np.median(amdahl[:, 1])


def test_noisy_curves_are_never_taken_as_noiseless():
    for n, t, _, _ in noisy_curves(50, seed=3):
        assert Adept().fit_arrays(n, t).floor_ > 0.01


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_of_the_study_interpolates_a_power_law(name):
    n = np.array([4.0, 8, 32])
    assert METHODS[name](n, 64 / n, 16.0) == pytest.approx(4, rel=0.05)


def test_the_study_runs_without_measured_curves():
    text = study(quick=True, folder=None)
    assert "## Noiseless curves" in text
    assert "| ADEPT |" in text


@pytest.mark.parametrize("distance", ["near", "far"])
def test_grades_separate_on_measured_curves(scaling, distance):
    """Where a rising end is warned of, the answer follows what was measured there."""
    curves = read_curves(scaling)
    asked = [case for k in (3, 4) for case in cases(curves, k) if case.distance == distance]
    errors, warned, _ = graded(asked)
    weights = source_weights([case.source for case in asked])
    assert weights[~warned].sum() >= 0.5
    without, warning = (
        weighted_quantile(errors[kind], weights[kind], 0.5) for kind in (~warned, warned)
    )
    assert 1.5 * without <= warning <= {"near": 0.3, "far": 0.55}[distance]
