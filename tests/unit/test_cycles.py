"""The online predictor: windows, and the behaviours of the paper's Figure 5."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictors.cycles.offline import OfflineCyclePredictor
from predictors.cycles.online import OnlineCyclePredictor
from predictors.errors import NotFittedError, PredictorError

pytestmark = pytest.mark.fast

DISTURBED = np.where(np.arange(400) < 50, 1.0, 2.0)
CELLS = np.full(400, 1000.0)


def within_a_tenth(window, seconds=DISTURBED, cells=CELLS):
    predicted = OnlineCyclePredictor(window).follow(cells, seconds)
    return np.abs(predicted / seconds - 1.0) <= 0.1 + 1e-12


def first_right_for_good(right, after=50):
    wrong = np.flatnonzero(~right[after:])
    return after + (wrong[-1] + 1 if wrong.size else 0)


def test_window_one_is_wrong_once():
    right = within_a_tenth(1)
    assert not right[50]
    assert right[51:].all()
    assert right[1:50].all()


@pytest.mark.parametrize("window", [2, 5, 10, 20, 50])
def test_window_follows_within_its_length(window):
    right = within_a_tenth(window)
    assert first_right_for_good(right) == 50 + int(np.ceil(0.8 * window))
    assert not right[50 : 50 + int(np.ceil(0.8 * window))].any()


def test_all_cycles_target_s3():
    right = within_a_tenth(None)
    assert not right[50:250].any()
    assert right[250:].all()
    predicted = OnlineCyclePredictor().follow(CELLS, DISTURBED)
    k = np.arange(50, 400)
    assert predicted[50:] == pytest.approx((50 + 2 * (k - 50)) / k)


def test_growing_cells_favour_the_recent():
    cells = 1000.0 + 20.0 * np.arange(400)
    assert first_right_for_good(within_a_tenth(None, DISTURBED * cells, cells)) < 250


def test_intermittent_interference_barely_moves_the_large_window():
    phase = np.arange(400) // 25 % 2
    seconds = np.where((np.arange(400) >= 50) & (phase == 0), 2.0, 1.0)
    large = OnlineCyclePredictor().follow(CELLS, seconds)[150:]
    small = OnlineCyclePredictor(1).follow(CELLS, seconds)[150:]
    assert np.ptp(large) < 0.15
    assert ((large > 1.3) & (large < 1.6)).all()
    assert set(small) == {1.0, 2.0}


@settings(max_examples=80)
@given(
    st.lists(st.tuples(st.floats(1, 1e4), st.floats(0.1, 100)), min_size=1, max_size=25),
    st.one_of(st.none(), st.integers(1, 30)),
    st.integers(0, 25),
)
def test_one_by_one_or_all_at_once(cycles, window, cut):
    cells, seconds = np.array(cycles).T
    whole = OnlineCyclePredictor(window)
    together = whole.follow(cells, seconds)
    single = OnlineCyclePredictor(window)
    apart = []
    for size, time in cycles:
        apart.append(float(single.predict(cells=size)) if single.cycles_ else np.nan)
        single.update(size, time)
    assert together == pytest.approx(apart, rel=1e-9, nan_ok=True)
    parts = OnlineCyclePredictor(window)
    halves = np.concatenate(
        (parts.follow(cells[:cut], seconds[:cut]), parts.follow(cells[cut:], seconds[cut:]))
    )
    assert together == pytest.approx(halves, rel=1e-9, nan_ok=True)
    assert parts.seconds_per_cell() == pytest.approx(single.seconds_per_cell(), rel=1e-9)


def test_ratio_of_sums_not_mean_of_ratios():
    model = OnlineCyclePredictor().update([100.0, 300.0], [1.0, 5.0])
    assert float(model.predict(cells=100.0)) == pytest.approx(1.5)


def test_before_the_first_cycle():
    with pytest.raises(NotFittedError, match="no cycle yet"):
        OnlineCyclePredictor().predict(cells=10.0)
    assert OnlineCyclePredictor().reliability()[0].grade == "unusable"
    bench = pd.DataFrame({"cells": [10.0, 100.0], "runtime": [1.0, 10.0]})
    offline = OfflineCyclePredictor().fit(bench)
    model = OnlineCyclePredictor(fallback=offline)
    assert float(model.predict(cells=50.0)) == pytest.approx(5.0)
    assert model.follow([50.0, 50.0], [7.0, 7.0]) == pytest.approx([5.0, 7.0])


def test_memory_does_not_grow():
    model = OnlineCyclePredictor(window=3)
    everything = OnlineCyclePredictor()
    for _ in range(20):
        model.update(np.ones(50), np.ones(50))
        everything.update(np.ones(50), np.ones(50))
    assert model.recent_cells.size == 3
    assert everything.recent_cells.size == 0
    assert everything.cycles_ == 1000


def test_range_covers_what_it_says():
    rng = np.random.default_rng(5)
    inside = []
    for _ in range(300):
        seconds = np.exp(0.1 * rng.standard_normal(41))
        model = OnlineCyclePredictor().update(np.ones(40), seconds[:-1])
        low, high = model.predict_range(0.8, cells=1.0)
        inside.append(low < seconds[-1] < high)
    assert np.mean(inside) == pytest.approx(0.8, abs=0.07)


def test_drift_is_reported():
    rng = np.random.default_rng(0)
    seconds = np.exp(0.02 * rng.standard_normal(60))
    model = OnlineCyclePredictor().update(np.ones(60), seconds)
    assert model.reliability() == []
    model.update(np.ones(3), np.full(3, 2.0))
    assert model.reliability()[0].code == "drifting"


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: OnlineCyclePredictor(0).update(1.0, 1.0), "window must be at least 1"),
        (
            lambda: OnlineCyclePredictor(2.5).update(1, 1),
            "window must be at least 1 cycle, whole.* got 2.5",
        ),
        (
            lambda: OnlineCyclePredictor(np.nan).update(1, 1),
            "window must be at least 1 cycle, whole.* got nan",
        ),
        (lambda: OnlineCyclePredictor().update([1, 2], [1]), r"one shape, got \(2,\) and \(1,\)"),
        (lambda: OnlineCyclePredictor().update(1.0, 1.0).predict(cells=[1, np.inf]), "got inf"),
        (lambda: OnlineCyclePredictor(nprocs=0).update(1, 1), "nprocs must be at least 1"),
        (lambda: OnlineCyclePredictor().update(0.0, 1.0), "cells must be positive"),
        (lambda: OnlineCyclePredictor().update(1.0, np.inf), "seconds must be positive"),
        (lambda: OnlineCyclePredictor().update(1.0, 1.0).predict(cells=-1.0), "cells must be"),
        (lambda: OnlineCyclePredictor().predict_range(1.0, cells=1.0), "level must be between"),
    ],
)
def test_bad_values_are_named(call, named):
    with pytest.raises(PredictorError, match=named):
        call()
