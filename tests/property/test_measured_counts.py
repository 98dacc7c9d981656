"""Every model of one curve believes what was measured, on any data."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictors import (
    Adept,
    Amdahl,
    Consensus,
    FocusedRegression,
    LogLogRegression,
    UniversalScalability,
)
from predictors.downey import normalised_time
from predictors.errors import PredictorError, UndeterminedError
from predictors.observations import dropped_of
from predictors.remarks import gravest

CURVES = {
    "adept": Adept,
    "adept, one search": partial(Adept, q=np.inf),
    "adept, exact runtimes": partial(Adept, floor=0.0),
    "adept, the paper's unit": partial(Adept, scale="unit"),
    "amdahl": Amdahl,
    "universal scalability": UniversalScalability,
    "consensus": Consensus,
}
REGRESSIONS = {
    "linear": partial(LogLogRegression, form="linear"),
    "quadratic": partial(LogLogRegression, form="quadratic"),
    "chosen": LogLogRegression,
    "focused": FocusedRegression,
    "focused on 5 s": partial(FocusedRegression, focal_time=5.0),
    "without influential runs": partial(FocusedRegression, influence="drop"),
}
MODELS = CURVES | REGRESSIONS

beside_them = st.floats(1.0, 3000.0).map(lambda count: round(count, 3))


@st.composite
def measurements(draw):
    """Draw runs of an application: a Downey curve with noise, steps, spikes and declines."""
    counts = np.array(sorted(draw(st.sets(st.integers(1, 600), min_size=1, max_size=9))), float)
    times = normalised_time(counts, draw(st.floats(1, 300)), draw(st.floats(0, 4)))
    for _ in range(draw(st.integers(0, 2))):
        place, factor = draw(st.integers(0, len(counts) - 1)), draw(st.floats(0.3, 3.0))
        kind = draw(st.sampled_from(["step", "spike", "decline"]))
        if kind == "step":
            times[place:] *= factor
        elif kind == "spike":
            times[place] *= factor
        else:
            times[place:] *= (counts[place:] / counts[place]) ** draw(st.floats(0.5, 2.0))
    noise = draw(st.sampled_from([0.0, 0.01, 0.05, 0.3]))
    repeats = draw(st.lists(st.integers(1, 4), min_size=len(counts), max_size=len(counts)))
    if draw(st.booleans()):
        repeats = [1] * len(counts)
    scatter = np.random.default_rng(draw(st.integers(0, 10**6))).normal(0, noise, sum(repeats))
    unit = draw(st.sampled_from([1e-3, 1.0, 3600.0]))
    return np.repeat(counts, repeats), unit * np.repeat(times, repeats) * np.exp(scatter)


def kept(nprocs, runtime):
    """Return counts, each one's runs without outliers, and s, by the words of the rule."""
    counts = np.unique(nprocs)
    runs = []
    for count in counts:
        all_runs = runtime[nprocs == count]
        dropped = dropped_of(all_runs)
        runs.append(np.array([t for t in all_runs if t not in dropped]))
    freedom = sum(len(part) - 1 for part in runs)
    d = 0.10
    if freedom:
        squares = sum(((np.log(part) - np.log(part).mean()) ** 2).sum() for part in runs)
        d = max(0.02, np.sqrt(squares / freedom))
    return counts, runs, np.exp(2 * d)


def fastest_of_decline(counts, runs, s):
    """Return the count after which runtimes decline, None if they do not; NaN if in doubt."""
    means = np.array([part.mean() for part in runs])
    fastest = int(means.argmin())
    slower = int((means[fastest + 1 :] > means[fastest]).sum())
    rise, needed = means[-1] / means[fastest], max(1.03, s)
    if abs(rise / needed - 1) < 1e-9:
        return np.nan
    return counts[fastest] if slower >= 2 and rise > needed else None


def fitted(name, data):
    """Fit; None where a regression says that the runs do not determine it."""
    try:
        return MODELS[name]().fit_arrays(*data)
    except PredictorError:
        assert name in REGRESSIONS
        return None


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=60)
@given(data=measurements())
def test_a_measured_count_is_answered_within_the_scatter_of_its_runs(name, data):
    model, (counts, runs, s) = fitted(name, data), kept(*data)
    if model is None:
        return
    answers = [model.predict(count).item() for count in counts]
    exempt = {point.nprocs for point in getattr(model, "anomalies_", ())}
    for count, part, answer in zip(counts.tolist(), runs, answers, strict=True):
        said = [r for r in model.reliability(count) if r.target in (count, None)]
        assert not any(r.code == "far" for r in said)
        if count in exempt:
            assert ("warning", "anomalous_point") in {(r.grade, r.code) for r in said if r.target}
        else:
            assert part.min() / s <= answer <= part.max() * s


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=60)
@given(data=measurements(), beside=beside_them)
def test_a_declining_end_is_followed_where_measured_and_refused_beside(name, data, beside):
    model, (counts, runs, s) = fitted(name, data), kept(*data)
    end = fastest_of_decline(counts, runs, s)
    if model is None or (end is not None and np.isnan(end)):
        return
    assert model.declines_after_ == end
    targets = np.append(counts, beside)
    declining = np.zeros(len(targets), bool) if end is None else targets > end
    assert model.declining(targets).tolist() == declining.tolist()
    shortest = min(part.mean() for part in runs)
    for target, out, answer in zip(targets, declining, model.predict(targets), strict=True):
        about = [r for r in model.reliability(target) if r.code == "declining"]
        if not out:
            assert about == []
            continue
        measured = target in counts
        grade = "warning" if measured else "unusable"
        assert [(r.grade, r.target) for r in about] == [(grade, pytest.approx(target, rel=1e-11))]
        assert gravest(model.reliability(target))[0] == grade
        assert answer >= shortest * (1 - 1e-12)
        if measured:
            part = runs[np.flatnonzero(counts == target)[0]]
            assert answer == pytest.approx(part.mean(), rel=1e-9)
            model.predict(target, strict=True)
        else:
            with pytest.raises(UndeterminedError, match="the runtime rises beyond"):
                model.predict(target, strict=True)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=30)
@given(data=measurements(), beside=st.lists(beside_them, min_size=1, max_size=3))
def test_answers_lie_in_their_ranges_and_hang_on_nothing_else_that_is_asked(name, data, beside):
    model = fitted(name, data)
    if model is None:
        return
    targets = np.append(np.unique(data[0]), beside)
    answers, (low, high) = model.predict(targets), model.predict_range(targets)
    assert np.isfinite(high).all()
    assert (low > 0).all()
    assert ((low <= answers) & (answers <= high)).all()
    alone = [model.predict([target])[0] for target in targets]
    np.testing.assert_allclose(alone, answers, rtol=1e-6)
    last = np.unique(data[0])[-1]
    free = (targets > last) & ~model.declining(targets)
    np.testing.assert_allclose(answers[free], model.predict_model(targets)[free], rtol=1e-9)


@pytest.mark.parametrize("model", [Adept(), Adept(allowed="powers of 2"), Consensus()], ids=repr)
@settings(max_examples=60)
@given(data=measurements(), beside=st.lists(beside_them, min_size=1, max_size=3))
def test_judgements_are_the_gravest_of_the_remarks(model, data, beside):
    model.fit_arrays(*data)
    targets = np.unique(np.append(data[0], beside))
    for n, (grade, code) in zip(targets, model.judgements(targets), strict=True):
        said = gravest(model.reliability(n))
        assert (grade, code) == (said if said[0] == "unusable" else (said[0], ""))
