"""The compiled search and choice against the same in arrays."""

import numpy as np
import pytest

from predictors import Adept, downey
from predictors.adept.fit import EXACT, RUNNER_UP, distance_weights, select
from predictors.adept.search import LARGEST_SIGMA, Problem, search
from predictors.remarks import gravest

pytestmark = pytest.mark.fast

TARGETS = np.array([3.0, 20.0, 64.0, 128.0, 700.0])


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n = np.sort(rng.choice(np.arange(1, 130), rng.integers(3, 8), replace=False)).astype(float)
    t = downey.normalised_time(n, rng.uniform(4, 120), rng.uniform(0, 2))
    t = t * np.exp(0.08 * rng.standard_normal(len(n)))
    weights = distance_weights(n, TARGETS, 2.0)
    weights /= weights.sum(axis=1, keepdims=True)
    return Problem(n, t, weights, 4 * np.maximum(TARGETS, n[-1]))


def terms(breakpoint, high, nprocs):
    x, half = breakpoint / nprocs, 0.5 / nprocs
    return np.maximum(x, 1.0), np.maximum(np.minimum(x - half - 0.5, 0.5 - half), high)


def runtime_of(found):
    F, G = terms(found.values[:, 0], found.high.astype(float), TARGETS[:, None])
    return found.values[:, 1] * (F + found.values[:, 2] * G)


def parameters_of(found):
    B, r = found.values[:, 0], found.values[:, 2]
    return np.where(found.high, (B + r) / (1.0 + r), B), r


def solved_in_arrays(case, breakpoint, least, most, high):
    """Minimise over r and c: the share explained has one maximum over r >= 0."""
    F, G = terms(breakpoint[..., None], high[:, None], case.nprocs)
    once = (case.weights / case.runtime)[:, :, None]
    twice = once / case.runtime[:, None]
    FF, FG, GG = ((product @ twice)[..., 0] for product in (F * F, F * G, G * G))
    F1, G1 = ((product @ once)[..., 0] for product in (F, G))
    above, below = FF * G1 - FG * F1, GG * F1 - FG * G1
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        r = np.where(below > 0.0, above / below, most)
    r = np.clip(np.where(np.abs(above) <= 1e-14 * FF * G1, least, r), least, most)
    top = F1 + r * G1
    c = top / (FF + r * (2.0 * FG + r * GG))
    return c, r, np.maximum(1.0 - top * c, 0.0)


def chosen_by_arrays(found, floor, balanced):
    """The lower median of the members, weighted by family or not, row by row."""
    runtime = runtime_of(found)
    rows = []
    for w, seconds in zip(found.wssre, runtime, strict=True):
        inside = w <= RUNNER_UP * w.min() + max(floor, EXACT) ** 2
        weight = inside.astype(float)
        if balanced:
            for family in (found.high, ~found.high):
                weight[family] /= max(weight[family].sum(), 1.0)
        order = np.argsort(np.where(inside, seconds, np.inf), kind="stable")
        share = np.cumsum(weight[order])
        rows.append(order[np.flatnonzero(share >= 0.5 * share[-1] * (1 - 1e-9))[0]])
    return np.array(rows)


@pytest.mark.parametrize("seed", range(8))
def test_every_candidate_is_solved_as_in_arrays(seed):
    case = random_problem(seed)
    found = search(case)
    flat = found.values[:, 0] * np.where(found.high, 1.0, 2.0) - ~found.high <= case.nprocs[0]
    least = found.high.astype(float)
    most = np.where(found.high, LARGEST_SIGMA, 1.0)
    _, r, w = solved_in_arrays(case, found.values[:, 0], least, most, least)
    compared = np.isfinite(found.wssre) & ~flat
    assert compared.sum() > 500
    np.testing.assert_allclose(found.wssre[compared], w[compared], rtol=1e-9, atol=1e-13)
    sharp = compared & (r > least) & (r < most)
    np.testing.assert_allclose(found.values[:, 2][sharp], r[sharp], rtol=1e-6)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("balanced", [False, True])
def test_the_compiled_choice_is_that_of_arrays(seed, balanced):
    found = search(random_problem(seed))
    for floor in (0.0, 0.03, 0.2):
        chosen = select(found, TARGETS, floor, balanced, False, 1.0, 130.0)
        _, low, high, _, its_A, its_sigma, A_low, A_high, _ = chosen.answers
        np.testing.assert_array_equal(chosen.chosen, chosen_by_arrays(found, floor, balanced))
        members = found.wssre <= (
            RUNNER_UP * found.wssre.min(axis=1, keepdims=True) + max(floor, EXACT) ** 2
        )
        np.testing.assert_array_equal(chosen.members, members)
        A, sigma = parameters_of(found)
        np.testing.assert_allclose(A_low, np.where(members, A, np.inf).min(axis=1))
        np.testing.assert_allclose(A_high, np.where(members, A, 0).max(axis=1))
        rows = np.arange(len(TARGETS))
        np.testing.assert_allclose(its_A, A[rows, chosen.chosen])
        np.testing.assert_allclose(its_sigma, sigma[rows, chosen.chosen])
        runtime = runtime_of(found)
        beside = members | members[:, found.neighbours[:, 0]] | members[:, found.neighbours[:, 1]]
        beside &= np.isfinite(found.wssre)
        np.testing.assert_allclose(low, np.where(beside, runtime, np.inf).min(axis=1))
        np.testing.assert_allclose(high, np.where(beside, runtime, 0).max(axis=1))


@pytest.mark.parametrize("q", [2.0, float("inf")])
@pytest.mark.parametrize("seed", range(4))
def test_the_grade_of_a_count_is_the_worst_of_its_remarks(seed, q):
    rng = np.random.default_rng(seed)
    n = np.array([4.0, 8, 16, 40, 64, 100])[: 3 + seed]
    t = downey.normalised_time(n, 40, 0.6) * np.exp(
        [0.0, 0.02, 0.3, 0.8][seed] * rng.random(len(n))
    )
    model = Adept(q=q).fit_arrays(n, t)
    model.predict([1, 16, 2000])
    targets = (1, 16, 300, 2000)
    grades = dict(zip(targets, (one for one, _ in model.judgements(targets)), strict=True))
    fresh = Adept(q=q).fit_arrays(n, t)
    assert grades == {target: gravest(fresh.reliability(target))[0] for target in grades}
    assert {"warning", "unusable"} & set(grades.values())


def test_equal_weights_serve_all_targets_with_one_search():
    n = np.array([4.0, 8, 24, 30])
    model = Adept(q=float("inf")).fit_arrays(n, 90 * downey.normalised_time(n, 16, 0.5))
    np.testing.assert_allclose(
        model.predict([2, 12, 500]),
        90 * downey.normalised_time(np.array([2.0, 12, 500]), 16, 0.5),
        rtol=1e-5,
    )
