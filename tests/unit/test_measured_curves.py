import numpy as np
import pytest

from benchmarks.measured_curves import (
    MeasuredCurve,
    bootstrap_interval,
    cases,
    read_curves,
    relative_errors,
    source_halves,
    source_weights,
    weighted_quantile,
)

N = 2.0 ** np.arange(6)
CURVE = MeasuredCurve("file", "curve", N, 64 / N)


def test_windows_and_targets_of_doublings():
    found = cases([CURVE], 3)
    near = [(case.nprocs.tolist(), case.target) for case in found if case.distance == "near"]
    assert near == [([1, 2, 4], 8), ([2, 4, 8], 16), ([4, 8, 16], 32)]
    far = [(case.nprocs[-1], case.target) for case in found if case.distance == "far"]
    assert far == [(4, 16), (8, 32)]
    inside = [(case.nprocs.tolist(), case.target) for case in found if case.distance == "inside"]
    assert inside[:2] == [([1, 4, 8], 2), ([1, 2, 8], 4)]
    assert len(inside) == 6


def test_errors_are_relative_to_the_measured_runtime():
    found = [case for case in cases([CURVE], 3) if case.distance == "near"]
    errors = relative_errors(found, lambda n, t, target: 1.1 * t[-1] * n[-1] / target)
    np.testing.assert_allclose(errors, 0.1)


def test_every_source_weighs_the_same():
    weights = source_weights(["a", "b", "b", "b"])
    np.testing.assert_allclose(weights, [1 / 2, 1 / 6, 1 / 6, 1 / 6])
    assert weighted_quantile([1, 5, 6, 7], weights, 0.5) == pytest.approx(4.0)
    assert weighted_quantile([1, 2, 3], [1, 1, 1], 0.5) == 2


def test_halves_are_disjoint_and_seeded():
    first, second = source_halves("abcdefg", seed=3)
    assert first | second == set("abcdefg")
    assert not first & second
    assert (first, second) == source_halves("gfedcba", seed=3)


def test_bootstrap_draws_whole_groups():
    values = np.array([0.0, 0, 0, 1, 1, 1])
    low, high = bootstrap_interval(
        lambda drawn: float(values[drawn].mean()), ["a"] * 3 + ["b"] * 3, resamples=200
    )
    assert (low, high) == (0, 1)
    alone = bootstrap_interval(lambda drawn: float(values[drawn].mean()), ["a"] * 6, resamples=9)
    assert alone == (0.5, 0.5)


def test_reading_takes_medians_of_repeats(tmp_path):
    (tmp_path / "x.csv").write_text("problem,nprocs,runtime_s\np,1,9\np,1,7\np,1,90\np,2,5\n")
    curve = read_curves(tmp_path)[0]
    assert (curve.source, curve.problem) == ("x", "p")
    assert curve.runtime.tolist() == [9, 5]
    with pytest.raises(ValueError, match="no measured curves"):
        read_curves(tmp_path / "none")


def test_the_shared_curves_give_the_known_number_of_cases(scaling):
    curves = read_curves(scaling)
    assert len(curves) == 98
    assert len({curve.source for curve in curves}) == 15
