"""ScaLAPACK's analytical model: hand-worked times, its fit, what it refuses."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.scalapack_model import AnalyticalModel
from predictors.errors import NotFittedError, PredictorError, UndeterminedError

pytestmark = pytest.mark.fast

TIMES = (1e-6, 1e-5, 1e-3)
ONE = pd.DataFrame(
    {"nprocs": [4.0], "size": 300.0, "runtime": 60.0, "available_cpu": 1.0,
     "available_bandwidth": 1.0}
)  # fmt: skip


@pytest.mark.parametrize(
    ("nprocs", "load", "seconds"),
    [
        # n = 300: 22/3 n^3 = 198e6 operations; on 4, 5 log2(4) 90,000 / 2 = 450,000 words
        # and (17/2 + 2/50) 300 = 2,562 messages
        (4, {}, 49.5 + 4.5 + 2.562),
        (4, {"available_cpu": 0.5}, 99.0 + 4.5 + 2.562),
        (4, {"available_bandwidth": 0.25}, 49.5 + 18.0 + 2.562),
        (4, {"latency": 3.0}, 49.5 + 4.5 + 7.686),
        (1, {"available_bandwidth": 0.1, "latency": 9.0}, 198.0),  # sends nothing
        (16, {}, 12.375 + 4.5 + 2.562),  # 5 · 4 · 90,000 / 4 words again
    ],
)
def test_hand_worked_times(nprocs, load, seconds):
    model = AnalyticalModel(TIMES, block=50).fit(ONE)
    assert model.predict(nprocs, size=300.0, **load) == pytest.approx(seconds, rel=1e-12)


def made(rows=40):
    """Return runs that the model's own formula made, under load and latency that vary."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "nprocs": rng.choice([2, 4, 8, 16], rows),
            "size": rng.uniform(200, 3000, rows),
            "available_cpu": rng.uniform(0.1, 1, rows),
            "available_bandwidth": rng.uniform(0.1, 1, rows),
            "latency": rng.uniform(1, 5, rows),
            "runtime": 1.0,
        }
    )
    load = table[["size", "available_cpu", "available_bandwidth", "latency"]]
    own = AnalyticalModel(TIMES).fit(ONE).predict(table.nprocs, **load.to_dict("series"))
    return table.assign(runtime=own)


@pytest.mark.parametrize("method", ["nnls", "ols"])
@pytest.mark.parametrize("weights", ["absolute", "relative"])
def test_a_fit_recovers_the_times_and_answers_at_other_counts(method, weights):
    model = AnalyticalModel(method=method, weights=weights).fit(made())
    np.testing.assert_allclose(model.times_, TIMES, rtol=1e-6)
    known = AnalyticalModel(TIMES).fit(ONE)
    asked = {"size": 5000.0, "available_cpu": 0.3, "latency": [1.0, 8.0]}
    np.testing.assert_allclose(
        model.predict(64, strict=True, **asked), known.predict(64, **asked), rtol=1e-6
    )
    assert model.reliability(64, **asked) == []


def test_ranges_hold_what_the_runs_scattered_by():
    table = made()
    table["runtime"] *= np.tile([0.8, 1.0, 1.0, 1.25], 10)
    model = AnalyticalModel(TIMES).fit(table)
    middle = model.predict(4, size=300.0)
    low, high = model.predict_range(4, level=0.8, size=300.0)
    assert (low / middle, high / middle) == (pytest.approx(0.8), pytest.approx(1.25))


def test_one_run_does_not_determine_three_times_unless_they_are_given():
    with pytest.raises(UndeterminedError, match="three times"):
        AnalyticalModel().fit(ONE).predict(4, size=900.0, strict=True)
    assert AnalyticalModel(TIMES).fit(ONE).predict(4, size=900.0, strict=True) > 0


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"block": 0}, "block must be at least 1, got 0"),
        ({"times": (1e-9, -1.0, 0.0)}, "times must be three seconds"),
        ({"times": (1e-9, 1e-9)}, "times must be three seconds"),
        ({"method": "ridge"}, "ridge"),
    ],
)
def test_unknown_arguments_are_refused(keywords, said):
    with pytest.raises(PredictorError, match=said):
        AnalyticalModel(**keywords)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"latency": 0.0}, "latency must be finite and positive, got 0"),
        ({"latency": [1.0, np.nan, 1.0]}, "got nan"),
        ({"latency": [1.0, 1.0]}, "do not go together"),
        ({"delay": 1.0}, "unknown inputs delay"),
    ],
)
def test_wrong_inputs_are_refused(inputs, said):
    model = AnalyticalModel(TIMES).fit(ONE)
    with pytest.raises(PredictorError, match=said):
        model.predict([1, 2, 4], size=300.0, **inputs)


def test_it_is_not_asked_before_fit():
    with pytest.raises(NotFittedError):
        AnalyticalModel(TIMES).predict(4, size=300.0)
