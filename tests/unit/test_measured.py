"""Answers of curve models keep to what was measured, and stop at a decline."""

import numpy as np
import pandas as pd
import pytest

from predictors import (
    Adept,
    Amdahl,
    Consensus,
    FocusedRegression,
    LogLogRegression,
    UniversalScalability,
)
from predictors.curves.estimator import Evidence
from predictors.errors import UndeterminedError
from predictors.observations import merged_curve, observed_curve
from predictors.remarks import gravest

MODELS = [Adept, Amdahl, UniversalScalability, Consensus, LogLogRegression, FocusedRegression]
DECLINING = [1.0, 2, 4, 8, 16, 32], [100.0, 52, 28, 17, 22, 30]


def test_reach_is_twice_the_pooled_scatter_of_logarithms():
    assert observed_curve([1, 2], [10, 5]).reach == 0.2
    assert observed_curve([1, 1, 2], [10, 10, 5]).reach == 0.04
    runs = np.array([10.0, 14.0, 5.0, 6.5, 6.0])
    curve = observed_curve([1, 1, 2, 2, 2], runs)
    squares = sum(np.var(np.log(part)) * len(part) for part in (runs[:2], runs[2:]))
    assert curve.reach == pytest.approx(2 * np.sqrt(squares / 3), rel=1e-12)
    assert (curve.shortest.tolist(), curve.longest.tolist()) == ([10, 5], [14, 6.5])


def test_runs_merged_one_by_one_say_the_same():
    counts, times = [1, 1, 2, 4, 4, 4, 4], [10.0, 14, 5, 3, 3.1, 2.9, 30]
    whole = observed_curve(counts, times)
    runs = np.array([[10.0, 14, 0, 0], [5, 0, 0, 0], [3, 3.1, 2.9, 30]])
    merged = merged_curve(np.array([1, 2, 4]), runs, np.array([2.0, 1, 4]))
    assert merged.dropped == whole.dropped == ((4.0, 30.0),)
    for name in (
        "nprocs",
        "runtime",
        "shortest",
        "longest",
        "log_scatter",
        "scatter_degrees_of_freedom",
    ):
        np.testing.assert_allclose(getattr(merged, name), getattr(whole, name), rtol=1e-12)


@pytest.mark.parametrize(
    ("times", "start"),
    [
        ([20, 10, 12.3, 12.3], 1),  # above s = 1.22
        ([20, 10, 12.3, 12.2], -1),  # the last within it
        ([20, 15, 10, 40], -1),  # a single one beyond
        ([10, 12, 9, 15, 13], 2),  # the rise need not be steady
        ([10, 12, 13], 0),
        ([10, 10, 14], -1),  # of two as fast, one alone is slower
        ([10, 10, 12, 14], 0),
    ],
)
def test_a_decline_needs_two_slower_counts_and_a_rise_beyond_scatter(times, start):
    assert observed_curve(np.arange(1.0, len(times) + 1), times).decline == start


def test_with_repeats_a_rise_of_five_percent_is_a_decline_and_of_four_is_not():
    counts = [1, 1, 2, 4, 8]
    assert observed_curve(counts, [20, 20, 10, 10.2, 10.5]).decline == 1
    assert observed_curve(counts, [20, 20, 10, 10.2, 10.4]).decline == -1


def test_between_measured_counts_the_correction_is_linear_in_ln_n_and_beyond_there_is_none():
    evidence = Evidence(observed_curve([2, 8], [10.0, 40.0]))
    targets = np.array([1.0, 2, 4, 8, 16])
    answers, model = evidence.answers(targets, lambda n: np.full(len(n), 20.0))
    assert model.tolist() == [20.0] * 5
    s = np.exp(0.2)
    expected = [20, 10 * s, np.sqrt(10 * s * 40 / s), 40 / s, 20]
    np.testing.assert_allclose(answers, expected, rtol=1e-8)


def test_exempt_points_are_passed_over_and_lone_ones_act_at_their_own_count():
    curve = observed_curve([1, 2, 4, 8, 16], [10.0] * 2 + [90.0] + [10.0] * 2)
    targets = np.array([2.0, 3, 4, 5])
    flat = lambda n: np.full(len(n), 10.0)  # noqa: E731
    np.testing.assert_allclose(Evidence(curve, exempt=[2]).answers(targets, flat)[0], 10.0)
    alone = Evidence(curve, alone=[2]).answers(targets, flat)[0]
    np.testing.assert_allclose(alone, [10, 10, 90 / np.exp(0.2), 10], rtol=1e-8)


def test_a_spike_acts_at_its_own_count_also_where_it_is_asked_alone():
    curve = observed_curve([1, 2, 4, 8], [10.0, 30.0, 30.0, 9.0])
    evidence = Evidence(curve, exempt=[3])  # so that the spikes lie outside what is left
    for count in (2.0, 4.0):
        answers, model = evidence.answers(np.array([count]), lambda n: np.full(len(n), 10.0))
        assert (answers[0], model[0]) == (pytest.approx(30 / np.exp(0.2)), 10.0)
    assert evidence.answers(np.array([3.0]), lambda n: np.full(len(n), 10.0))[0][0] == 10.0


@pytest.mark.parametrize("model", MODELS)
def test_a_declining_end_is_believed_at_its_counts_and_nowhere_else(model):
    counts, times = DECLINING
    fitted = model().fit(pd.DataFrame({"nprocs": counts, "runtime": times}))
    assert fitted.declines_after_ == 8
    assert fitted.declining([8, 9]).tolist() == [False, True]
    np.testing.assert_allclose(fitted.predict([16, 32]), [22, 30], rtol=1e-9)
    assert (fitted.predict([9, 12, 24, 31, 64, 1e4]) >= 17).all()
    for count, grade in ((16, "warning"), (32, "warning"), (12, "unusable"), (64, "unusable")):
        about = [r for r in fitted.reliability(count) if r.code == "declining"]
        assert [(r.grade, r.target) for r in about] == [(grade, count)]
    assert all(r.code != "declining" for r in fitted.reliability([1, 3, 8]))
    for refused in (12, 33):
        with pytest.raises(UndeterminedError, match="rises beyond 8 processors, from 17 s there"):
            fitted.predict([4, refused], strict=True)


@pytest.mark.parametrize("model", MODELS)
def test_in_a_decline_the_range_is_that_of_a_new_run(model):
    counts, times = DECLINING
    fitted = model().fit_arrays([*counts, 32], [*times, 33.0])
    low, high = fitted.predict_range([16, 32], level=0.8)
    d = np.sqrt(((np.log([30, 33]) - np.log([30, 33]).mean()) ** 2).sum())
    np.testing.assert_allclose(high / [22, 31.5], np.exp(1.2815516 * d), rtol=1e-6)
    np.testing.assert_allclose(low * high, np.square([22, 31.5]), rtol=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_the_defect_of_three_rising_counts_is_mended(model):
    fitted = model().fit_arrays([32, 64, 128], [0.075, 0.113, 0.137])
    assert 0.075 / np.exp(0.2) < fitted.predict(32).item() < 0.075 * np.exp(0.2)
    np.testing.assert_allclose(fitted.predict([64, 128]), [0.113, 0.137], rtol=1e-9)
    assert (fitted.predict([48, 256, 1024]) >= 0.075).all()
    assert not any(r.code == "far" for r in fitted.reliability([32, 64, 128]))


@pytest.mark.parametrize("model", MODELS)
def test_the_plain_model_is_there_for_layers_of_ones_own(model):
    counts, times = np.array([1.0, 4, 16]), np.array([100.0, 15, 14])
    fitted = model().fit_arrays(counts, times)
    plain, kept = fitted.predict_model(counts), fitted.predict(counts)
    np.testing.assert_allclose(fitted.predict([64]), fitted.predict_model([64]), rtol=1e-12)
    s = np.exp(0.2)
    np.testing.assert_allclose(kept, np.clip(plain, times / s, times * s), rtol=1e-8)
    assert not np.allclose(kept, plain, rtol=0.02)


def test_with_sizes_the_formula_is_the_answer():
    rng = np.random.default_rng(3)
    runs = pd.DataFrame({"nprocs": [1.0, 2, 4, 8] * 3, "size": np.repeat([1.0, 2, 4], 4)})
    runs["runtime"] = runs["size"] / runs["nprocs"] * np.exp(rng.normal(0, 0.8, 12))
    for model in (LogLogRegression(), FocusedRegression(), Consensus()):
        fitted = model.fit(runs)
        asked = {"nprocs": [1.0, 2, 16], "size": [4.0, 1, 2]}
        np.testing.assert_array_equal(fitted.predict(**asked), fitted.predict_model(**asked))
        assert fitted.declines_after_ is None
        assert not fitted.declining([1, 64]).any()


def test_adepts_anomalous_point_is_warned_of_and_exempt():
    n = np.array([1.0, 2, 4, 8, 16, 32])
    t = 100 / n
    t[3] *= 2.0
    model = Adept().fit_arrays(n, t)
    assert [point.nprocs for point in model.anomalies_] == [8]
    assert model.predict(8).item() < t[3] / 1.3
    said = model.reliability([4, 8])
    warned = [(r.grade, r.target) for r in said if r.code == "anomalous_point"]
    assert warned == [("note", None), ("warning", 8)]


def test_counts_outside_a_found_family_are_believed_where_they_were_measured():
    n = np.array([2.0, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64])
    t = np.where(np.frexp(n)[0] == 0.5, 100 / n, 150 / n)
    model = Adept().fit_arrays(n, t)
    assert model.feasible_.name == "powers of 2"
    assert model.predict(24).item() >= 150 / 24 / np.exp(0.2)
    assert gravest(model.reliability(24))[0] == "warning"
    assert gravest(model.reliability(25))[0] == "unusable"
    assert model.judgements([24, 25]) == [("warning", ""), ("unusable", "infeasible")]
    without = Adept().fit_arrays(np.delete(n, 8), np.delete(t, 8))
    assert without.predict(32).item() == pytest.approx(100 / 32, rel=0.01)


def test_what_is_useful_ends_where_the_decline_begins():
    counts, times = [1.0, 2, 4, 8, 16, 32], [100.0, 50.2, 25.3, 12.8, 16, 22]
    curve = Adept().fit_arrays(counts, times).curve()
    assert (curve.knee, curve.largest_useful, curve.largest_at_efficiency(0.5)) == (8, 8, 8)
