"""What predictors believe in the loop is what their public estimators say of the same runs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictors import Adept, Amdahl, Consensus, LogLogRegression
from predictors.base import Observation, VisibleJobs
from predictors.errors import PredictorError
from predictors.in_loop.learned import CurvePerApplication
from predictors.in_loop.learned_consensus import ConsensusPerApplication
from predictors.in_loop.learned_sized import RegressionPerApplication
from predictors.in_loop.residuals import corrected
from predictors.remarks import gravest

pytestmark = pytest.mark.fast

RUNS = st.lists(
    st.tuples(st.integers(0, 8), st.floats(0.5, 2.0), st.floats(1.0, 500.0)),
    min_size=4,
    max_size=60,
)
"""Count (its logarithm), what a run takes over its law, and its size."""
ASKED = np.array([1, 2, 3, 8, 32, 100, 256, 512])


def told(predictor, runs, sized):
    """Tell a predictor of runs, asking it in between; return them as arrays.

    No two take the same time: a mean that stands would leave a fit standing.
    """
    unknown, zero = np.array([np.nan]), np.array([0])
    size = np.array([20.0]) if sized else unknown
    predictor.attach(VisibleJobs(zero, zero - 1, size, zero, zero + 4, unknown))
    seen = []
    for place, (log_n, factor, scale) in enumerate(runs):
        nprocs, own = 2**log_n, scale if sized else np.nan
        seconds = (
            (1.0 + 1e-3 * place) * factor * (scale if sized else 20.0) * (0.05 + 1.0 / nprocs**0.9)
        )
        predictor.observe(Observation(0, -1, own, nprocs, seconds, 0.0))
        predictor.curve(0, ASKED[::3])
        predictor.explain(0, 8)
        seen.append((nprocs, seconds, own))
    return np.array(seen).T


def residuals(nprocs, ratios):
    """Return the counts, and mean and number of ln ratios there with their squares, plainly."""
    known = np.unique(nprocs).astype(np.int64)
    own = [np.log(ratios[nprocs == n])[-16:] for n in known]
    means = np.array([logs.mean() for logs in own])
    squares = sum(((logs - logs.mean()) ** 2).sum() for logs in own)
    return known, means, np.array([float(len(logs)) for logs in own]), float(squares)


CURVES = {
    "adept": lambda: CurvePerApplication(Adept(q=np.inf), "x", tolerance=0.0, scatter=9.0),
    "amdahl": lambda: CurvePerApplication(Amdahl(), "x", tolerance=0.0, scatter=9.0),
    "consensus": lambda: ConsensusPerApplication(
        Consensus(), "x", min_counts=3, tolerance=0.0, scatter=9.0, memory=False
    ),
}


@pytest.mark.parametrize("name", CURVES)
@settings(max_examples=25)
@given(runs=RUNS)
def test_a_belief_about_a_curve_is_the_estimators_as_the_runs_correct_it(name, runs):
    predictor = CURVES[name]()
    nprocs, seconds, _ = told(predictor, runs, sized=False)
    believed = predictor.curve(0, ASKED)
    if np.unique(nprocs).size < 3:
        assert believed is None
        return
    kept = np.concatenate([np.flatnonzero(nprocs == n)[-16:] for n in np.unique(nprocs)])
    model = predictor.model.fit_arrays(nprocs[kept], seconds[kept])
    known = np.unique(nprocs).astype(np.int64)
    said = dict(zip(*(both := np.union1d(ASKED, known), model.predict_model(both)), strict=True))
    own, there = (np.array([said[n] for n in counts.tolist()]) for counts in (ASKED, known))
    rated = residuals(nprocs, seconds / np.array([said[n] for n in nprocs.astype(int).tolist()]))
    np.testing.assert_allclose(believed, corrected(own, ASKED, there, *rated), rtol=1e-10)
    for n in ASKED.tolist():
        found, grave = predictor.explain(0, n), gravest(model.reliability([n]))
        assert found.reliability == grave[0]
        assert found.code == grave[1] or found.reliability != "unusable"
        assert found.runs_at_count == min(np.sum(nprocs == n), 16)


@settings(max_examples=40)
@given(runs=RUNS, sized=st.booleans())
def test_a_belief_about_a_size_is_the_regressions_as_the_runs_correct_it(runs, sized):
    predictor = RegressionPerApplication(LogLogRegression(), "x", growth=0.0)
    nprocs, seconds, sizes = told(predictor, runs, sized)
    believed = predictor.curve(0, ASKED)
    varies = sized and sizes.max() >= 4.0 * sizes.min()
    unit = sizes if sized and not varies else np.ones(len(sizes))
    if np.unique(nprocs).size == 1:  # the estimator takes ideal scaling
        assert believed is None
        return
    try:
        model = LogLogRegression().fit_arrays(nprocs, seconds / unit, [sizes] if varies else ())
    except PredictorError:
        assert believed is None
        return
    size = 20.0 if sized else np.nan
    inside = np.clip(size, sizes.min(), sizes.max())
    factor = size / inside if varies else (size if sized else 1.0)

    def says(counts, inputs, scale):
        return model.predict_model(counts, **({"size": inputs} if varies else {})) * scale

    off = np.log(seconds / says(nprocs, sizes, unit))
    like = 1.0 / (1.0 + (np.log(sizes / size) / np.log(2.0)) ** 2) if sized else np.ones(len(sizes))
    known = np.unique(nprocs).astype(np.int64)
    at = [nprocs == n for n in known]
    means = np.array([np.average(off[here], weights=like[here]) for here in at])
    apart = [
        here.sum() * np.average((off[here] - mean) ** 2, weights=like[here])
        for here, mean in zip(at, means, strict=True)
    ]
    numbers = np.array([float(here.sum()) for here in at])
    own, there = (says(counts, inside, factor) for counts in (ASKED, known))
    expected = corrected(own, ASKED, there, known, means, numbers, float(sum(apart)))
    np.testing.assert_allclose(believed, expected, rtol=1e-8)
    for n in nprocs[:3].astype(int).tolist():
        found = predictor.explain(0, n)
        assert found.reliability == gravest(model.remarks_on_fit())[0]
        assert found.runs_at_count == np.sum(nprocs == n)
