"""The shipped consensus against single methods on measured curves, and its ranges and grades."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.measured_curves import Case, cases, read_curves, source_weights, weighted_quantile
from predictors import Adept, Amdahl, Consensus, LogLogRegression, UniversalScalability

SINGLE = {
    "adept": Adept,
    "linear": lambda: LogLogRegression((), "linear", "total"),
    "quadratic": lambda: LogLogRegression((), "quadratic", "total"),
    "amdahl": Amdahl,
    "usl": UniversalScalability,
}
DISTANCES = ("near", "far")


@pytest.fixture(scope="module")
def asked(request: pytest.FixtureRequest) -> list[Case]:
    """Return all cases beyond windows of three and four counts."""
    folder: Path = request.getfixturevalue("scaling")
    curves = read_curves(folder)
    return [case for k in (3, 4) for case in cases(curves, k) if case.distance != "inside"]


@pytest.fixture(scope="module")
def errors(asked: list[Case]) -> dict[str, np.ndarray]:
    """Return each method's relative errors, and the median method's, a case each."""
    found = {
        name: np.array([make().fit_arrays(c.nprocs, c.runtime).predict(c.target) for c in asked])
        for name, make in {**SINGLE, "consensus": Consensus}.items()
    }
    found["median"] = np.median([found[name] for name in SINGLE], axis=0)
    actual = np.array([case.actual for case in asked])
    return {name: np.abs(predicted / actual - 1.0) for name, predicted in found.items()}


def quantile(asked: list[Case], errors: np.ndarray, level: float, chosen: np.ndarray) -> float:
    weights = source_weights([case.source for case, one in zip(asked, chosen, strict=True) if one])
    return weighted_quantile(errors[chosen], weights, level)


def at(asked: list[Case], distance: str) -> np.ndarray:
    return np.array([case.distance == distance for case in asked])


@pytest.mark.parametrize("distance", DISTANCES)
def test_its_median_error_is_below_that_of_every_method_and_of_their_median(
    asked: list[Case], errors: dict[str, np.ndarray], distance: str
) -> None:
    chosen = at(asked, distance)
    found = {name: quantile(asked, each, 0.5, chosen) for name, each in errors.items()}
    assert min(found, key=found.__getitem__) == "consensus", found
    assert found["consensus"] < {"near": 0.16, "far": 0.24}[distance]
    tails = {name: quantile(asked, each, 0.9, chosen) for name, each in errors.items()}
    assert tails["consensus"] < 1.05 * min(tails.values()), tails


def test_where_runtimes_rise_at_the_end_it_errs_by_less_than_30_percent_near(
    asked: list[Case], errors: dict[str, np.ndarray]
) -> None:
    rising = np.array([case.runtime[-1] > case.runtime[-2] for case in asked])
    assert quantile(asked, errors["consensus"], 0.5, at(asked, "near") & rising) < 0.30


@pytest.mark.parametrize("distance", DISTANCES)
def test_ranges_hold_what_they_say_and_miss_alike_on_both_sides(
    asked: list[Case], distance: str
) -> None:
    chosen = [case for case in asked if case.distance == distance]
    weights = source_weights([case.source for case in chosen])
    above, below = np.zeros(len(chosen)), np.zeros(len(chosen))
    for place, case in enumerate(chosen):
        low, high = Consensus().fit_arrays(case.nprocs, case.runtime).predict_range(case.target)
        above[place], below[place] = case.actual > high, case.actual < low
    assert 0.76 <= 1.0 - weights @ (above + below) <= 0.84
    assert 0.5 <= (weights @ above) / (weights @ below) <= 2.0


def test_near_grades_order_errors(asked: list[Case], errors: dict[str, np.ndarray]) -> None:
    near = at(asked, "near")
    medians = []
    models = [Consensus().fit_arrays(case.nprocs, case.runtime) for case in asked]
    found = [
        {r.grade for r in model.reliability(case.target) if r.code == "methods_differ"}
        for model, case in zip(models, asked, strict=True)
    ]
    declines = np.array([model.declines_after_ is not None for model in models])
    for grade in (set(), {"note"}, {"warning"}, {"unusable"}):
        chosen = near & ~declines & np.array([one == grade for one in found])
        medians.append(quantile(asked, errors["consensus"], 0.5, chosen))
    assert medians == sorted(medians)
    assert medians[3] > 2.0 * medians[2] > 2.0 * 1.25 * medians[1], medians
