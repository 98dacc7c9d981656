"""The shipped consensus against each of its methods on measured curves."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.measured_curves import cases, read_curves, source_weights, weighted_quantile
from predictors.consensus.combination import Consensus


@pytest.fixture(scope="module")
def answers(request: pytest.FixtureRequest) -> dict[str, dict[str, np.ndarray]]:
    """Relative errors by distance and method, and coverage of every fourth case."""
    folder: Path = request.getfixturevalue("scaling")
    curves = read_curves(folder)
    asked = [c for k in (3, 4) for c in cases(curves, k) if c.distance != "inside"]
    found: dict[str, dict[str, list[float]]] = {"near": {}, "far": {}}
    for place, case in enumerate(asked):
        model = Consensus().fit_arrays(case.nprocs, case.runtime)
        said = {name: row[0] for name, row in model.member_predictions([case.target]).items()}
        said["consensus"] = model.predict([case.target])[0]
        row = {name: abs(value / case.actual - 1) for name, value in said.items()}
        row["covered"] = np.nan
        if place % 4 == 0:
            low, high = model.predict_range([case.target])
            row["covered"] = float(low[0] <= case.actual <= high[0])
        row["weight"] = 0.0
        for name, value in row.items():
            found[case.distance].setdefault(name, []).append(value)
        found[case.distance].setdefault("source", []).append(case.source)  # type: ignore[arg-type]
    for part in found.values():
        part["weight"] = source_weights(part.pop("source")).tolist()  # type: ignore[arg-type]
    return {d: {k: np.array(v) for k, v in part.items()} for d, part in found.items()}


@pytest.mark.parametrize("distance", ["near", "far"])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_errors_are_below_every_single_methods(
    answers: dict[str, dict[str, np.ndarray]], distance: str, level: float
) -> None:
    part = answers[distance]
    methods = ["adept", "linear", "quadratic", "amdahl", "usl"]
    ours = weighted_quantile(part["consensus"], part["weight"], level)
    theirs = {m: weighted_quantile(part[m], part["weight"], level) for m in methods}
    assert ours < min(theirs.values()), theirs


def test_ranges_hold_about_as_many_as_they_say(
    answers: dict[str, dict[str, np.ndarray]],
) -> None:
    covered = np.concatenate([part["covered"] for part in answers.values()])
    assert 0.75 <= np.nanmean(covered) <= 0.88
