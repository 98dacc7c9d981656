import numpy as np
import pytest

from predictors import Adept, downey
from predictors.adept.fit import distance_weights, noise_of, select
from predictors.adept.grid import grid_search
from predictors.adept.search import Problem, search
from predictors.observations import observed_curve

N = np.array([4.0, 16, 32, 64])
T = 100 * downey.normalised_time(N, 40, 0.7) * [1.03, 0.98, 1.01, 1.0]


def problem(n, t, targets, scale="free"):
    targets = np.asarray(targets, float)
    weights = distance_weights(n, targets, 2.0)
    weights /= weights.sum(axis=1, keepdims=True)
    serial = {"free": None, "unit": 0.0, "serial": t[0].item()}[scale]
    return Problem(n, t, weights, 4 * np.maximum(targets, n[-1]), serial)


def brute_wssre(case, row, scale=None):
    """The least WSSRE over a dense grid of A and sigma, the unit of time fitted or given."""
    A = np.geomspace(1, float(case.reach[row]), 500)[:, None, None]
    sigma = np.concatenate([np.linspace(0, 1, 60), np.geomspace(1.01, 3000, 60)])[None, :, None]
    ratio = downey.normalised_time(case.nprocs, A, sigma) / case.runtime
    W = case.weights[row]
    once, twice = (W * ratio).sum(-1), (W * ratio**2).sum(-1)
    c = once / twice if scale is None else scale
    return float((c * c * twice - 2 * c * once + 1).min())


@pytest.mark.parametrize("seed", range(6))
def test_the_exact_search_is_never_worse_than_a_dense_grid(seed):
    rng = np.random.default_rng(seed)
    n = np.sort(rng.choice(np.arange(1, 200), 5, replace=False)).astype(float)
    t = downey.normalised_time(n, rng.uniform(3, 200), rng.uniform(0, 2.5))
    t = t * np.exp(0.08 * rng.standard_normal(5))
    case = problem(n, t, [n[0], 2 * n[-1]])
    found = search(case)
    for row in range(2):
        assert found.wssre[row].min() <= brute_wssre(case, row) + 1e-12


@pytest.mark.parametrize("scale", ["free", "unit", "serial"])
def test_the_exact_search_is_never_worse_than_the_papers_grid(scale):
    rng = np.random.default_rng(3)
    for _ in range(4):
        n = np.array([1.0, 6, 20, 50])
        t = downey.normalised_time(n, rng.uniform(4, 80), rng.uniform(0, 2))
        t = t * np.exp(0.04 * rng.standard_normal(4))
        case = problem(n, t, [100.0], scale)
        exact, grid = search(case), grid_search(case, np.array([100.0]))
        assert exact.wssre.min() <= grid.wssre.min() + 1e-12


def test_wssre_is_what_the_candidates_runtimes_say():
    case = problem(N, T, [128.0, 20.0])
    found = search(case)
    for row in range(2):
        best = int(found.wssre[row].argmin())
        B, c, sigma, _ = found.values[row, :, best]
        A = (B + sigma) / (1.0 + sigma) if found.high[best] else B
        shape = downey.relative_time(N, A, sigma)
        unit = c * (B + (sigma if found.high[best] else 0.0))
        error = (unit * shape / T - 1) ** 2 @ case.weights[row]
        assert found.wssre[row, best] == pytest.approx(error, rel=1e-9)


def test_all_targets_at_once_are_the_same_as_one_by_one():
    targets = np.array([2.0, 7, 64, 100, 1000])
    together = Adept().fit_arrays(N, T).predict(targets)
    alone = [Adept().fit_arrays(N, T).predict(target).item() for target in targets]
    np.testing.assert_allclose(together, alone, rtol=1e-12)


@pytest.mark.parametrize("scale", ["unit", "serial"])
def test_fixed_scales_recover_their_curve(scale):
    n = np.array([1.0, 5, 28, 35, 60, 70])
    for A, sigma in ((20, 0.4), (20, 1.8), (12.5, 0.0)):
        t = downey.normalised_time(n, A, sigma) * (1.0 if scale == "unit" else 37.0)
        model = Adept(scale=scale).fit_arrays(n, t)
        assert (model.A_, model.sigma_) == pytest.approx((A, sigma), rel=1e-3, abs=1e-3)
        assert model.predict(1.0).item() == pytest.approx(t[0], rel=1e-5)


def test_serial_scale_meets_the_first_runtime_whatever_the_noise():
    n, t = np.array([1.0, 4, 16, 64]), np.array([100.0, 31, 9.5, 5.5])
    assert Adept(scale="serial").fit_arrays(n, t).predict([1]).item() == pytest.approx(100)
    with pytest.raises(ValueError, match="needs a run on 1 processor"):
        Adept(scale="serial").fit_arrays(n[1:], t[1:])


def test_the_papers_grid_predicts_close_to_the_exact_search():
    for A, sigma in ((40, 0.7), (40, 1.9)):
        n = np.array([4.0, 16, 60, 75, 130, 160])
        t = 9 * downey.normalised_time(n, A, sigma)
        targets = np.array([8.0, 100])
        grid = Adept(search="grid").fit_arrays(n, t).predict(targets)
        np.testing.assert_allclose(grid, 9 * downey.normalised_time(targets, A, sigma), rtol=0.02)


def test_lower_median_of_the_indistinguishable_candidates_predicts():
    targets = np.array([128.0])
    found = search(problem(N, T, targets))
    chosen = select(found, targets, 0.05, False, False, 1.0, 64.0)
    B, c, r, _ = found.values[0]
    G = np.maximum(np.minimum(B / 128 - 0.5 / 128 - 0.5, 0.5 - 0.5 / 128), found.high)
    runtimes = c * (np.maximum(B / 128, 1.0) + r * G)
    inside = np.sort(runtimes[found.wssre[0] <= 1.1 * found.wssre[0].min() + 0.05**2])
    predicted, low, high = chosen.answers[:3, 0]
    assert predicted == inside[(len(inside) - 1) // 2]
    assert low <= inside[0]
    assert high >= inside[-1]
    best = select(found, targets, 0.05, False, True, 1.0, 64.0)
    assert found.wssre[0, best.chosen[0]] == found.wssre[0].min()


def noise_floor(curve, residual, used):
    return noise_of(curve.repeats, curve.scatter, curve.scatter_degrees_of_freedom, residual, used)


def test_noise_floor_comes_from_expectation_residuals_and_repeats():
    four = observed_curve(N, T)
    assert noise_floor(four, 1e-8, 4) == 0.0
    assert noise_floor(observed_curve(N[:3], T[:3]), 1e-8, 3) == pytest.approx(0.025)
    assert noise_floor(four, 0.10, 4) == pytest.approx(np.sqrt((3 * 0.025**2 + 4 * 0.01) / 4))
    repeated = observed_curve(np.repeat(N, 2), np.repeat(T, 2) * np.tile([0.9, 1.1], 4))
    assert repeated.scatter == pytest.approx(np.sqrt(8 * 0.01 / 4))
    assert noise_floor(repeated, 1e-8, 4) > noise_floor(four, 0.05, 4)
    assert Adept(floor=0.07).fit_arrays(N, T).floor_ == 0.07


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"q": 1.0}, "q must be above 1, got 1.0"),
        ({"q": float("nan")}, "q must be above 1, got nan"),
        ({"search": "brute"}, "search must be one of exact, grid; got 'brute'"),
        ({"scale": "log"}, "scale must be one of"),
        ({"floor": -0.1}, "floor must be 'auto' or in"),
        ({"floor": "none"}, "floor must be one of auto"),
        ({"metric": "x"}, "metric must be one of"),
        ({"allowed": "odd numbers"}, "allowed must be counts or one of powers of 2"),
        ({"allowed": [0, 4]}, "allowed must hold counts of at least 1"),
    ],
)
def test_arguments_out_of_range_are_refused(keywords, message):
    with pytest.raises(ValueError, match=message):
        Adept(**keywords).check_parameters()
