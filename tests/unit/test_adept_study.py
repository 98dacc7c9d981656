"""How accurate ADEPT is on curves that are known, and the table of accuracy on measured ones."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy import METHODS, Row, answered, measured, table
from benchmarks.measured_curves import cases, read_curves, source_weights, weighted_quantile
from predictors import Adept, Amdahl
from predictors.downey import normalised_time


def random_layout(rng):
    """Draw A, sigma and four counts: two well before the first breakpoint, two beyond it."""
    A, sigma = float(np.exp(rng.uniform(np.log(4), np.log(256)))), float(rng.uniform(0, 2))
    breakpoint = A if sigma <= 1 else A + A * sigma - sigma
    while True:
        before = np.sort(rng.uniform(1, 0.85 * breakpoint, 2))
        beyond = np.sort(rng.uniform(1.15 * breakpoint, 2 * breakpoint, 2))
        if before[1] > 1.1 * before[0] and beyond[1] > 1.05 * beyond[0]:
            return A, sigma, np.concatenate([before, beyond])


def noisy_curves(count, seed, noise=0.05):
    rng = np.random.default_rng(seed)
    n = np.array([4.0, 16, 32, 64])
    for _ in range(count):
        A, sigma = float(np.exp(rng.uniform(np.log(8), np.log(256)))), float(rng.uniform(0, 2))
        yield n, normalised_time(n, A, sigma) * np.exp(noise * rng.standard_normal(4)), A, sigma


def noise_errors(make, count, seed):
    """Return relative errors at 128 and 256 under 5 % noise, shape (count, 2)."""
    found = []
    for n, t, A, sigma in noisy_curves(count, seed):
        at = np.array([128.0, 256.0])
        fitted = make().fit_arrays(n, t)
        found.append(np.abs(fitted.predict(at) / normalised_time(at, A, sigma) - 1))
    return np.array(found)


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
    adept, amdahl = (noise_errors(make, 400, seed=2) for make in (Adept, Amdahl))
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
    fitted = METHODS[name]().fit_arrays(n, 64 / n)
    assert fitted.predict(np.array([16.0])) == pytest.approx(4, rel=0.05)


def test_the_table_has_a_row_for_each_method_and_distance(tmp_path):
    rows = "".join(f"CG,{n},{64 / n}\n" for n in (1, 2, 4, 8, 16, 32, 64))
    (tmp_path / "one.csv").write_text("problem,nprocs,runtime_s\n" + rows)
    asked = cases(read_curves(tmp_path), 3)
    found = [measured(name, "3", asked, answered(name, asked)) for name in ("Amdahl", "ADEPT")]
    shown = table([row for each in found for row in each]).splitlines()
    assert [line.split(" | ")[:3] for line in shown[2:]] == [
        [f"| {name}", "3", distance]
        for name in ("Amdahl", "ADEPT") for distance in ("inside", "near", "far")
    ]  # fmt: skip
    assert all("0.0 % [0.0, 0.0]" in line for line in shown[2:5])


def test_the_consensus_leads_the_results_file():
    kept = Path(__file__).resolve().parents[2] / "docs/results"
    files = [kept / name / "data.json" for name in ("accuracy", "accuracy_extrap")]
    every = [row for one in files for row in json.loads(one.read_text(encoding="utf-8"))["rows"]]
    rows = [Row(**row) for row in every]
    for distance in ("near", "far"):
        medians = {
            row.method: row.median
            for row in rows
            if row.distance == distance and row.counts == "3 and 4"
        }
        assert min(medians, key=medians.__getitem__) == "consensus"
        assert sum("Extra-P" in name for name in medians) == 2


def graded(asked):
    """Return ADEPT's errors, and whether it warned."""
    errors, warned = [], []
    for case in asked:
        fitted = Adept().fit_arrays(case.nprocs, case.runtime)
        errors.append(abs(fitted.predict(case.target).item() / case.actual - 1))
        warned.append(any(r.grade != "note" for r in fitted.reliability(case.target)))
    return np.array(errors), np.array(warned)


@pytest.mark.parametrize("distance", ["near", "far"])
def test_grades_separate_on_measured_curves(scaling, distance):
    """Where a rising end is warned of, the answer follows what was measured there."""
    curves = read_curves(scaling)
    asked = [case for k in (3, 4) for case in cases(curves, k) if case.distance == distance]
    errors, warned = graded(asked)
    weights = source_weights([case.source for case in asked])
    assert weights[~warned].sum() >= 0.5
    without, warning = (
        weighted_quantile(errors[kind], weights[kind], 0.5) for kind in (~warned, warned)
    )
    assert 1.5 * without <= warning <= {"near": 0.3, "far": 0.55}[distance]
