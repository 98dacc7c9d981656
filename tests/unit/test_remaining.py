"""Remaining time: exact where nothing is random, covering where it is."""

from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest

from predictors.cycles.offline import OfflineCyclePredictor
from predictors.cycles.online import CellTrend, RemainingTime
from predictors.errors import NotFittedError, PredictorError
from workloads.evolving.cycle_costs import CYCLE_MACHINES
from workloads.evolving.phases import DECKS, EvolvingRun

pytestmark = pytest.mark.fast


def offline(levels=(1.0, 3.0)):
    cells = np.array([100.0, 1000.0])
    return OfflineCyclePredictor("linear", "points").fit(
        pd.DataFrame({"cells": cells, "runtime": cells * levels})
    )


def test_constant_cells_are_exact():
    model = RemainingTime(100).update(np.full(40, 10.0), np.full(40, 2.0))
    belief = model.predict()
    assert belief.seconds == pytest.approx(120.0)
    assert belief.low < 120.0 < belief.high
    assert np.isnan(belief.offline)


def test_steady_growth_is_followed_exactly():
    cells = 1000.0 + 10.0 * np.arange(100)
    model = RemainingTime(100).update(cells[:30], 0.01 * cells[:30])
    assert model.predict().seconds == pytest.approx(0.01 * cells[30:].sum(), rel=1e-6)


def test_shape_of_the_offline_curve_is_used_and_its_level_is_not():
    cells = 100.0 + 9.0 * np.arange(101)
    seconds = cells * np.interp(cells, [100.0, 1000.0], [1.0, 3.0])
    true = seconds[30:].sum()
    plain = RemainingTime(101, window=1).update(cells[:30], seconds[:30]).predict().seconds
    shaped = RemainingTime(101, offline(), window=1).update(cells[:30], seconds[:30]).predict()
    scaled = RemainingTime(101, offline((5.0, 15.0)), window=1).update(cells[:30], seconds[:30])
    assert plain < 0.8 * true
    assert shaped.seconds == pytest.approx(true, rel=0.01)
    assert scaled.predict().seconds == pytest.approx(shaped.seconds)
    assert scaled.predict().offline == pytest.approx(5 * shaped.offline)


def test_one_by_one_or_all_at_once():
    rng = np.random.default_rng(1)
    cells, seconds = rng.uniform(200, 900, 50), rng.uniform(1, 2, 50)
    whole = RemainingTime(90, offline()).update(cells, seconds).predict()
    model = RemainingTime(90, offline())
    for size, time in zip(cells, seconds, strict=True):
        model.update(size, time)
    assert tuple(model.predict()) == pytest.approx(tuple(whole))


def test_interval_adds_the_walk_of_cells_the_spread_of_cycles_and_that_of_the_level():
    """Ten cycles of constant cells, whose times scatter; thirty are left."""
    seconds = 2.0 * np.exp(0.3 * np.array([1, -1, 1, 1, -1, -1, 1, -1, 1, -1]))
    model = RemainingTime(40).update(np.full(10, 10.0), seconds)
    belief, noise = model.predict(level=0.8), model.online.spread
    per_cell = belief.seconds / (10.0 * 30)
    one_change = (0.1 * 10.0) ** 2 / 10  # the prior step alone, beside nine changes of none
    walk = per_cell**2 * one_change * (sum(k * k for k in range(31)) + sum(range(31)) ** 2 / 10)
    cycles = 30 * (noise * per_cell * 10.0) ** 2
    level = (noise * belief.seconds) ** 2 / 10
    spread = np.log(belief.high / belief.seconds) / NormalDist().inv_cdf(0.9) * belief.seconds
    assert noise > 0.3
    assert spread**2 == pytest.approx(walk + cycles + level, rel=1e-9)
    assert min(walk, cycles, level) > 0.05 * spread**2


def test_nothing_remains_at_the_end():
    model = RemainingTime(5).update(np.ones(5), np.ones(5))
    assert model.predict()[:4] == (0.0, 0.0, 0.0, 0.0)


def test_interval_narrows_and_widens_with_the_level():
    early = RemainingTime(100).update(np.full(10, 10.0), np.full(10, 2.0)).predict()
    late = RemainingTime(100).update(np.full(90, 10.0), np.full(90, 2.0)).predict()
    wide = RemainingTime(100).update(np.full(10, 10.0), np.full(10, 2.0)).predict(level=0.95)
    assert early.high / early.seconds > late.high / late.seconds
    assert wide.high > early.high


@pytest.mark.parametrize(("share", "least", "most"), [(0.25, 0.70, 0.95), (0.5, 0.72, 0.95)])
def test_coverage_on_adaptive_runs(share, least, most):
    deck, machine = DECKS["timing_a"], CYCLE_MACHINES["itanium2"]
    bench = deck.benchmark(machine, np.geomspace(2e3, 1e5, 20), np.random.default_rng(0))
    curve = OfflineCyclePredictor(processors_per_node=2).fit(bench)
    inside, errors = [], []
    for number in range(120):
        run = EvolvingRun(deck, machine, 16, key=6, number=number)
        ends, done = run.cumulative(16), int(200 * share)
        model = RemainingTime(200, curve, 16)
        model.update(run.cells_per_processor(16)[:done], np.diff(ends, prepend=0.0)[:done])
        belief, true = model.predict(0.8), ends[-1] - ends[done - 1]
        inside.append(belief.low < true < belief.high)
        errors.append(abs(belief.seconds / true - 1.0))
    assert least < np.mean(inside) < most
    assert np.median(errors) < 0.25


def test_trend_is_the_mean_change():
    cells = np.concatenate((np.full(50, 100.0), 100.0 + 5.0 * np.arange(1, 21)))
    assert CellTrend().update(cells).drift == pytest.approx(100.0 / 69)


def test_trend_variance_of_a_sum_against_simulation():
    rng = np.random.default_rng(3)
    trend = CellTrend().update(1e6 + np.cumsum(rng.normal(0.0, 1000.0, 4000)))
    walks = np.cumsum(np.cumsum(rng.normal(0.0, np.sqrt(trend.variance), (4000, 30)), 1), 1)[:, -1]
    assert np.sqrt(trend.variance_of_sum(30.0)) == pytest.approx(walks.std(), rel=0.06)


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: RemainingTime(0), PredictorError, "cycles must be at least 1"),
        (lambda: RemainingTime(5, window=0), PredictorError, "window must be at least 1"),
        (lambda: RemainingTime(5, window=None), PredictorError, "window must be at least 1"),
        (lambda: RemainingTime(np.nan), PredictorError, "cycles must be at least 1, got nan"),
        (lambda: CellTrend().update([1.0, np.nan]), PredictorError, "cells must be positive"),
        (lambda: RemainingTime(5).predict(), NotFittedError, "no cycle yet"),
        (
            lambda: RemainingTime(5).update(1.0, 1.0).predict(level=0.0),
            PredictorError,
            "level must be between",
        ),
    ],
)
def test_bad_values_are_named(call, error, named):
    with pytest.raises(error, match=named):
        call()
