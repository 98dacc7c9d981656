"""Learning a regression per application, with sizes where they are known."""

from copy import copy

import numpy as np
import pytest
from toys import rigid, trace_of

from predictors.base import Observation, VisibleJobs
from predictors.errors import PredictorError
from predictors.in_loop.learned_sized import (
    BEGIN,
    COUNT,
    END,
    FOCI,
    RegressionPerApplication,
    SizedFit,
    SizedHistory,
    as_runs_correct,
    asked_of,
    compare,
    focused,
    latest_runs,
    with_run,
)
from predictors.regression.barnes import LogLogRegression
from predictors.regression.garren import FocusedRegression
from predictors.remarks import gravest
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from tests.former import build_truth
from workloads.shapes.analytic import General
from workloads.streams import Streams


def visible(sizes, classes=None) -> VisibleJobs:
    number = len(sizes)
    zero = np.zeros(number, np.int64)
    labels = zero - 1 if classes is None else np.array(classes)
    return VisibleJobs(zero, labels, np.array(sizes, float), zero, zero + 4, zero + 100.0)


def seen(nprocs, runtime, size=np.nan, size_class=-1, **more) -> Observation:
    return Observation(0, size_class, size, nprocs, runtime, 0.0, more=more)


def law(nprocs, size):
    return 3.0 * size**1.5 / nprocs**0.8


@pytest.fixture
def regression() -> RegressionPerApplication:
    return RegressionPerApplication(LogLogRegression(), "regression")


def test_recovers_a_power_law_in_size_and_count(regression) -> None:
    regression.attach(visible([50.0, np.nan]))
    for size in (10.0, 40.0, 160.0):
        for nprocs in (1, 4, 16):
            regression.observe(seen(nprocs, law(nprocs, size), size))
    counts = np.array([2, 8, 64])
    np.testing.assert_allclose(regression.curve(0, counts), law(counts, 50.0), rtol=1e-9)
    method, observations, *_ = regression.explain(0, 8)
    assert (method, observations) == ("regression", 9)
    assert regression.curve(1, counts) is None


def test_beyond_the_sizes_seen_time_is_in_proportion(regression) -> None:
    regression.attach(visible([320.0]))
    for size in (10.0, 40.0, 160.0):
        for nprocs in (1, 4, 16):
            regression.observe(seen(nprocs, law(nprocs, size), size))
    counts = np.array([4])
    np.testing.assert_allclose(regression.curve(0, counts), 2 * law(4, 160.0), rtol=1e-9)


def test_sizes_that_hardly_differ_get_no_exponent(regression) -> None:
    regression.attach(visible([5.0]))
    for nprocs, size in ((1, 1.0), (4, 1.1), (16, 0.9)):
        regression.observe(seen(nprocs, size * 100.0 / nprocs, size))
    np.testing.assert_allclose(regression.curve(0, np.array([2, 32])), [250.0, 500.0 / 32])


def test_hidden_sizes_keep_classes_apart(regression) -> None:
    regression.attach(visible([np.nan, np.nan], classes=[0, 1]))
    for nprocs in (1, 2, 4):
        regression.observe(seen(nprocs, 80.0 / nprocs, size_class=0))
    np.testing.assert_allclose(regression.curve(0, np.array([8])), [10.0])
    assert regression.curve(1, np.array([8])) is None


def test_nothing_to_say_with_a_single_count(regression) -> None:
    regression.attach(visible([1.0]))
    regression.observe(seen(4, 10.0, 1.0))
    assert regression.curve(0, np.array([4])) is None
    assert regression.explain(0, 4).method == "requested_time"


def test_a_focused_fit_looks_at_runs_near_the_jobs_own_time() -> None:
    """Long runs scale well, short ones badly: one law cannot serve both."""
    focused = RegressionPerApplication(FocusedRegression(), "focused")
    complete = RegressionPerApplication(LogLogRegression(split="total"), "regression")
    big = 1000.0
    for predictor in (focused, complete):
        predictor.attach(visible([big]))
        for size in (1.0, 8.0, 64.0, 250.0, 1000.0, 1700.0, 2600.0):
            for nprocs in (1, 2, 4, 8, 16):
                runtime = size / nprocs + 3.0
                predictor.observe(seen(nprocs, runtime, size))
    target = np.array([16])
    errors = [abs(p.curve(0, target)[0] / (big / 16 + 3.0) - 1.0) for p in (focused, complete)]
    assert errors[0] < 0.05 < 0.09 < errors[1]


def test_the_engine_splits_times_for_who_asks(regression) -> None:
    streams = Streams(2)
    trace = trace_of([(t, 8, 100.0) for t in range(5)])
    family = General(model="communication")
    truth = build_truth(trace, family, streams, 16, applications=1)
    told = []
    regression.observe = lambda observation: told.append(observation) or False
    simulate(Setup(trace, truth, rigid("easy"), regression, Dedicated(16)))
    for observation in told:
        parts = observation.more["computation"], observation.more["communication"]
        assert sum(parts) == pytest.approx(observation.runtime)
        assert min(parts) > 0
    assert len({o.more["communication"] for o in told}) > 1  # noise of its own


@pytest.mark.parametrize("bad", [{"calibration": -1}, {"growth": -0.1}])
def test_refuses(bad: dict) -> None:
    name, value = next(iter(bad.items()))
    with pytest.raises(ValueError, match=f"{name} must be at least .*, got {value}"):
        RegressionPerApplication(LogLogRegression(), "regression", **bad)


@pytest.mark.parametrize("model", [LogLogRegression(), FocusedRegression()])
def test_the_grade_of_a_count_is_the_worst_of_its_remarks(model) -> None:
    rng = np.random.default_rng(3)
    predictor = RegressionPerApplication(model, "regression")
    sizes = np.exp(rng.uniform(0.0, 6.0, 20))
    predictor.attach(visible(sizes))
    nprocs = 2 ** rng.integers(1, 6, 20)
    runtime = law(nprocs, sizes) * np.exp(0.05 * rng.standard_normal(20))
    for n, t, size in zip(nprocs.tolist(), runtime.tolist(), sizes.tolist(), strict=True):
        predictor.observe(seen(n, t, size))
    fitted = LogLogRegression().fit_arrays(nprocs, runtime, [sizes])  # of all runs
    grades = set()
    for job, size in enumerate(sizes.tolist()):
        for n in (1, 8, 100, 200):
            grade = predictor.explain(job, n).reliability
            assert grade == gravest(fitted.reliability(n, size=size))[0]
            grades.add(grade)
    assert len(grades) > 1


def told(predictor, runs: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tell a predictor of noisy runs of several sizes; return them."""
    rng = np.random.default_rng(seed)
    sizes, nprocs = np.exp(rng.uniform(0.0, 7.0, runs)), 2.0 ** rng.integers(0, 6, runs)
    runtime = law(nprocs, sizes) * np.exp(0.1 * rng.standard_normal(runs))
    for n, t, size in zip(nprocs.tolist(), runtime.tolist(), sizes.tolist(), strict=True):
        predictor.observe(seen(int(n), t, size))
    return nprocs, runtime, sizes


def plainly(history: SizedHistory, counts: np.ndarray, size: float) -> np.ndarray:
    """What the fits say, without the runs' correction."""
    history.believe(counts, size)
    asked = asked_of(history._latest, history._fit, counts, size)
    found = focused(history._latest, history._fit, history._foci, asked)
    return found[: counts.size] * asked[3]


FOCUSED = {
    "region": FocusedRegression(),
    "wide": FocusedRegression(tolerance=1.0),
    "weights": FocusedRegression(focus="weights"),
    "drop": FocusedRegression(influence="drop"),
}


def answer(model, nprocs, runtime, sizes, n: int, size: float) -> float:
    """What the runs about the time in question say, where they cover the target; else all."""
    complete = LogLogRegression().fit_arrays(nprocs, runtime, [sizes]).predict(n, size=size)
    focal = copy(model)
    focal.focal_time = 2.0 ** (round(float(np.log2(complete)) * 4) / 4)
    try:
        focal.fit_arrays(nprocs, runtime, [sizes])
    except PredictorError:
        return float(complete)
    ends = dict(zip(("nprocs", *focal.model_.inputs), focal.model_.ends, strict=True))
    for name, value in {"nprocs": n, "size": size}.items():
        if name in ends and not ends[name][0] <= np.log2(value) <= ends[name][1]:
            return float(complete)
    return float(focal.predict(n, **dict.fromkeys(focal.model_.inputs, size)))


@pytest.mark.parametrize("kind", FOCUSED)
@pytest.mark.parametrize("runs", [30, 900])
def test_focal_predictions_are_those_of_a_fit_made_for_the_job(kind: str, runs: int) -> None:
    """Compiled or not, kept or fitted anew; of many runs the last 400 count."""
    model, target = FOCUSED[kind], np.array([2, 32, 128])
    predictor = RegressionPerApplication(model, "focused", growth=0.0)
    predictor.attach(visible(np.exp(np.linspace(0.5, 6.5, 12))))
    nprocs, runtime, sizes = (part[-400:] for part in told(predictor, runs))
    for job in range(12):
        size = float(predictor._size(job))
        expected = [answer(model, nprocs, runtime, sizes, n, size) for n in target.tolist()]
        predictor.curve(job, target)
        said = plainly(predictor._history(job), target, size)
        np.testing.assert_allclose(said, expected, rtol=1e-9)


def test_a_focal_fit_stands_until_a_run_ends_within_its_region() -> None:
    predictor = RegressionPerApplication(FocusedRegression(), "focused", growth=0.0)
    predictor.attach(visible([50.0, 1000.0]))
    told(predictor, 200)
    target = np.array([8])
    history, far = predictor._history(0), law(8, 1000.0)
    plain = plainly(history, target, 50.0)[0]
    assert predictor.observe(seen(8, far, 1000.0))
    assert plainly(history, target, 50.0)[0] == plain
    assert predictor.observe(seen(8, 1.1 * law(8, 50.0), 50.0))
    assert plainly(history, target, 50.0)[0] != plain


def test_all_runs_answer_where_those_in_focus_allow_no_fit() -> None:
    focused = RegressionPerApplication(FocusedRegression(), "focused")
    complete = RegressionPerApplication(LogLogRegression(), "regression")
    for predictor in (focused, complete):
        predictor.attach(visible([50.0]))
        told(predictor, 40)
    target = np.array([2, 8])
    apart = focused.curve(0, target)
    history = focused._history(0)
    history._foci.parts[:, 0] = 0  # the fits stand, and there is none
    assert (focused.curve(0, target) != apart).all()
    np.testing.assert_allclose(focused.curve(0, target), complete.curve(0, target), rtol=1e-9)


def test_a_run_that_took_no_time_leaves_the_request_standing(regression) -> None:
    regression.attach(visible([1.0]))
    for nprocs, runtime in ((1, 8.0), (2, 4.0), (4, 0.0)):
        regression.observe(seen(nprocs, runtime, 1.0))
    assert regression.curve(0, np.array([4])) is None
    assert regression.explain(0, 4).method == "requested_time"


@pytest.mark.parametrize("kept", [3, 40])
def test_latest_runs_forget_the_oldest(kept: int) -> None:
    runs = latest_runs()
    for number in range(200):
        runs = with_run(runs, (number, 1.0, 1.0, 1.0, 1.0), kept)
        expected = list(range(max(0, number + 1 - kept), number + 1))
        assert runs.table[COUNT, runs.span[BEGIN] : runs.span[END]].tolist() == expected


def stepped(nprocs, size):
    """A step at 8 processors, which no power law has."""
    return size * 64.0 / nprocs**0.9 * (0.5 if nprocs >= 8 else 1.0)


@pytest.mark.parametrize("model", [LogLogRegression(form="linear"), FocusedRegression()])
@pytest.mark.parametrize("sizes", [(1.0, 1.5, 2.0), (1.0, 10.0, 100.0)])
def test_what_was_measured_is_believed_at_the_asked_size(model, sizes) -> None:
    predictor = RegressionPerApplication(model, "regression")
    predictor.attach(visible([sizes[1]]))
    for _ in range(3):
        for size in sizes:
            for nprocs in (1, 2, 4, 8, 16):
                predictor.observe(seen(nprocs, stepped(nprocs, size), size))
    counts = np.array([1, 2, 4, 8, 16])
    expected = [stepped(n, sizes[1]) for n in counts.tolist()]
    np.testing.assert_allclose(predictor.curve(0, counts), expected, rtol=0.1)
    said = predictor.explain(0, 8)
    assert said.runs_at_count == 9
    assert said.mean_at_count == pytest.approx(expected[3], rel=1e-6)
    assert np.isnan(predictor.explain(0, 3).mean_at_count)


def corrected(counts, runtimes, sizes, predicted, size: float) -> float:
    """What is believed on 4 processors where a model says 1 s, with what it says of the runs."""
    runs = latest_runs()
    for run in zip(counts, runtimes, sizes, predicted, predicted, strict=True):
        runs = with_run(runs, run)
    flat = np.zeros((1, 2))
    limits = np.array([np.nan, np.nan, 0.0, 4.0, 4.0])
    fit = SizedFit(np.zeros((1, 1)), np.ones(1), np.zeros(1), np.empty((0, 2, 1)), flat, limits)
    compare(runs, fit)
    runs.table[5, : len(counts)] = np.log(np.array(runtimes) / predicted)
    asked = asked_of(runs, fit, np.array([4]), np.nan)
    return as_runs_correct(runs, np.array([4]), size, asked, asked[1]).item()


def test_runs_of_like_size_correct_most() -> None:
    """Small runs take twice what a law says, large ones half."""
    runs = [4] * 8, [2.0] * 4 + [50.0] * 4, [1.0] * 4 + [100.0] * 4, [1.0] * 4 + [100.0] * 4
    small, between, large = (np.log2(corrected(*runs, size)) for size in (1.0, 10.0, 100.0))
    assert small == pytest.approx(-large)
    assert small > 0.7
    assert between == pytest.approx(0.0)
    assert 2.5 < corrected([4, 4], [2.0, 8.0], [np.nan] * 2, [1.0, 1.0], np.nan) < 4.0


def test_each_count_has_a_focus_of_its_own() -> None:
    """Time stops falling at 8: runs of about a minute on 16 know it, those of hours on 1 do not."""
    focused = RegressionPerApplication(FocusedRegression(), "focused", growth=0.0)
    focused.attach(visible([600.0]))
    rng = np.random.default_rng(5)
    for size in np.exp(rng.uniform(4.0, 9.0, 60)).tolist():
        for nprocs in (1, 4, 16):
            focused.observe(seen(nprocs, size / min(nprocs, 8), size))
    history = focused._history(0)
    for counts in ([1, 4, 16], [1]):
        history.believe(np.array(counts), 600.0)
        assert history._latest.span[FOCI] == 3


def test_runs_of_other_sizes_count_in_full_at_their_count(regression) -> None:
    """Three small runs on 16 that took twice as long are believed of a far larger job."""
    regression.attach(visible([1e6]))
    for size in (10.0, 100.0, 1e3, 1e4, 1e5, 1e6):
        for nprocs in (1, 2, 4, 8):
            regression.observe(seen(nprocs, size / nprocs, size))
    for size in (10.0, 20.0, 30.0):
        regression.observe(seen(16, 2.0 * size / 16, size))
    assert regression.curve(0, np.array([16]))[0] == pytest.approx(2e6 / 16, rel=0.1)


def test_a_grade_that_the_distance_decides_has_its_code(regression) -> None:
    regression.attach(visible([1e3]))
    for size in (1e2, 1e3, 1e4):
        for nprocs in (1, 2, 4, 8):
            regression.observe(seen(nprocs, size / nprocs * (3.0 if nprocs > 2 else 1.0), size))
    assert regression.explain(0, 8).reliability != "unusable"
    said = regression.explain(0, 64)
    assert (said.reliability, said.code) == ("unusable", "expected_error")
