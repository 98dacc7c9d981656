"""The shipped consensus against single methods on measured curves, and its ranges and grades."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.consensus_choice import SHIPPED, Asked, by_width, graded, sides, spread
from benchmarks.measured_curves import Case, cases, read_curves, source_weights, weighted_quantile
from predictors import Adept, Amdahl, Consensus, LogLogRegression, UniversalScalability
from predictors.remarks import GRADES

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


@pytest.fixture(scope="module")
def wide(request: pytest.FixtureRequest) -> Asked:
    """Return all cases of windows of three, four and five counts."""
    return Asked(read_curves(request.getfixturevalue("scaling")), (3, 4, 5))


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


def test_ranges_hold_what_they_say_at_each_distance_and_from_so_many_counts(wide: Asked) -> None:
    missed = np.log(wide.actual / wide.said)
    below, above = sides(wide, SHIPPED)
    over, under = (missed > above).astype(float), (missed < -below).astype(float)
    parts = [wide.distance == distance for distance in ("inside", *DISTANCES)]
    parts += [wide.beyond & (wide.counts == k) for k in (3, 4, 5)]
    parts += [part & (wide.counts == k) for part in parts[1:3] for k in (3, 4, 5)]
    for rows in parts:
        weights = source_weights(wide.source[rows].tolist())
        held = 100.0 * float(weights @ (1.0 - over - under)[rows])
        assert 70.0 <= held <= 90.0
        assert abs(held - 80.0) <= 1.96 * spread(wide, 1.0 - over - under, rows)
    for rows in (wide.beyond, parts[0]):
        weights = source_weights(wide.source[rows].tolist())
        assert 0.5 <= (weights @ over[rows]) / (weights @ under[rows]) <= 2.0


def test_the_shipped_ranges_are_those_that_were_measured(wide: Asked) -> None:
    below, above = sides(wide, SHIPPED)
    free = ~wide.declining & wide.beyond
    for place in np.flatnonzero(free)[::50]:
        ends = wide.models[place].predict_range(wide.cases[place].target)
        logs = np.log(np.array(ends, float) / wide.said[place])
        assert logs == pytest.approx([-below[place], above[place]])


@pytest.mark.parametrize("distance", DISTANCES)
def test_grades_order_errors_by_a_quarter_and_more(wide: Asked, distance: str) -> None:
    shares, medians = graded(wide, by_width(wide), distance)
    assert min(shares) >= 0.05
    assert (np.divide(medians[1:], medians[:-1]) >= 1.25).all(), medians
    said = [
        next((r.grade for r in model.reliability(case.target) if r.code == "wide_range"), "")
        for case, model in zip(wide.cases[::97], wide.models[::97], strict=True)
    ]
    assert said == [GRADES[int(grade)] for grade in by_width(wide)[::97]]
