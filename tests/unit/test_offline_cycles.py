"""The offline predictor: pieces, contention, communication, flags."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictors.cycles.messages import ITANIUM2, Exchange
from predictors.cycles.offline import (
    Curves,
    OfflineCyclePredictor,
    choose_knots,
    knot_values,
    seconds_per_cell,
)
from predictors.errors import NotFittedError, PredictorError

CELLS = np.geomspace(1e3, 1e5, 31)
KNOTS = CELLS[[0, 9, 20, 30]]
VALUES = np.array([1.0, 1.1, 2.0, 2.05])


def bench(cells, each, **more):
    return pd.DataFrame({"cells": cells, "runtime": cells * each, **more})


def test_exact_knots_on_noiseless_pieces():
    each = np.interp(np.log(CELLS), np.log(KNOTS), VALUES)
    model = OfflineCyclePredictor().fit(bench(CELLS, each))
    assert model.knots_[1.0] == pytest.approx(KNOTS)
    assert model.seconds_per_cell_[1.0] == pytest.approx(VALUES)
    assert model.spread_ < 1e-9


def test_linear_form_is_exact_on_its_own_pieces():
    cells = np.linspace(100.0, 3000.0, 30)
    each = np.interp(cells, cells[[0, 12, 29]], [3.0, 1.0, 2.0])
    model = OfflineCyclePredictor(form="linear").fit(bench(cells, each))
    assert model.knots_[1.0] == pytest.approx(cells[[0, 12, 29]])
    assert model.predict(cells=cells) == pytest.approx(cells * each)


def test_bic_leaves_a_straight_line_alone():
    rng = np.random.default_rng(3)
    each = (1.0 + 0.1 * np.log(CELLS)) * (1 + 0.02 * rng.standard_normal(31))
    assert OfflineCyclePredictor().fit(bench(CELLS, each)).knots_[1.0].size == 2


def test_choice_of_knots_is_the_least_squares_one():
    rng = np.random.default_rng(4)
    x = np.arange(12.0)
    y = np.interp(x, [0, 4, 11], [1.0, 3.0, 2.0]) + 0.3 * rng.standard_normal(12)
    best = min(
        range(1, 11),
        key=lambda k: np.sum(
            (np.interp(x, x[[0, k, 11]], knot_values(x, y, x[[0, k, 11]])) / y - 1) ** 2
        ),
    )
    assert choose_knots(x, y, 1).tolist() in ([0, best, 11], [0, 11])
    assert choose_knots(x, np.interp(x, [0, 4, 11], [1.0, 3.0, 2.0]), 3).tolist() == [0, 4, 11]


def test_row_order_and_repeats_do_not_matter():
    rng = np.random.default_rng(1)
    table = bench(np.repeat(CELLS, 2), rng.uniform(1, 1.2, 62))
    shuffled = table.sample(frac=1.0, random_state=1)
    first = OfflineCyclePredictor().fit(table).predict(cells=CELLS)
    assert first.tolist() == OfflineCyclePredictor().fit(shuffled).predict(cells=CELLS).tolist()


def test_constant_beyond_the_benchmark_and_flagged():
    model = OfflineCyclePredictor(knots="points").fit(bench(CELLS[:3], VALUES[:3]))
    assert model.seconds_per_cell([1.0, 1e9]).tolist() == [VALUES[0], VALUES[2]]
    assert model.reliability(cells=CELLS[:3]) == []
    assert model.reliability(cells=[1.0, 1e9])[0].code == "outside_benchmark"


def test_interpolation_is_straight_in_the_logarithm():
    model = OfflineCyclePredictor(knots="points").fit(bench(np.array([10.0, 1000.0]), [1.0, 3.0]))
    assert float(model.seconds_per_cell(100.0)) == pytest.approx(2.0)
    model = OfflineCyclePredictor("linear", "points").fit(bench(np.array([10.0, 1000.0]), [1, 3]))
    assert float(model.seconds_per_cell(505.0)) == pytest.approx(2.0)


def test_given_knots_are_kept():
    each = np.interp(np.log(CELLS), np.log(KNOTS), VALUES)
    model = OfflineCyclePredictor(knots=KNOTS.tolist()).fit(bench(CELLS, each))
    assert model.seconds_per_cell_[1.0] == pytest.approx(VALUES)


def test_contention_between_and_beyond_benchmarks():
    cells = np.array([100.0, 1000.0])
    table = pd.concat(
        [bench(cells, np.full(2, v), processes_per_node=k) for k, v in ((1, 1.0), (4, 1.6))]
    )
    model = OfflineCyclePredictor(processors_per_node=4).fit(table)
    assert model.seconds_per_cell(500.0, [1, 2, 4, 9]).tolist() == pytest.approx([1, 1.2, 1.6, 1.6])
    assert model.predict([1, 2, 16], cells=100.0) == pytest.approx([100, 120, 160])
    dual = OfflineCyclePredictor(processors_per_node=2).fit(table)
    assert float(dual.predict(16, cells=100.0)) == pytest.approx(120.0)
    assert model.reliability(2, cells=500.0)[0].code == "contention_not_measured"
    assert model.reliability(16, cells=500.0) == []


def test_communication_is_added():
    exchange = Exchange(ITANIUM2)
    table = bench(CELLS, np.ones(31))
    plain = OfflineCyclePredictor().fit(table).predict(8, cells=CELLS)
    both = OfflineCyclePredictor(communication=exchange).fit(table).predict(8, cells=CELLS)
    assert both - plain == pytest.approx(exchange.seconds(8, CELLS))


def test_range_widens_with_the_spread():
    rng = np.random.default_rng(2)
    table = bench(np.tile(CELLS, 20), np.exp(0.1 * rng.standard_normal(620)))
    model = OfflineCyclePredictor(breakpoints=0).fit(table)
    assert model.spread_ == pytest.approx(0.1, rel=0.1)
    low, high = model.predict_range(level=0.8, cells=1e4)
    fresh = 1e4 * np.exp(0.1 * rng.standard_normal(5000))
    assert np.mean((low < fresh) & (fresh < high)) == pytest.approx(0.8, abs=0.03)


def test_one_point_scales():
    model = OfflineCyclePredictor().fit(bench(np.array([100.0]), np.array([2.0])))
    assert model.predict(cells=[50.0, 400.0]).tolist() == pytest.approx([100.0, 800.0])


def flat():
    return OfflineCyclePredictor().fit(pd.DataFrame({"cells": [1.0], "runtime": [1.0]}))


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: OfflineCyclePredictor(form="cubic").check_parameters(), "form must be"),
        (lambda: OfflineCyclePredictor(knots="few").check_parameters(), "knots must be auto"),
        (lambda: OfflineCyclePredictor(knots=[2.0, 1.0]).check_parameters(), "2 or more rising"),
        (
            lambda: OfflineCyclePredictor(breakpoints=4).check_parameters(),
            "breakpoints must be 0 to 3",
        ),
        (
            lambda: OfflineCyclePredictor(processors_per_node=0).check_parameters(),
            "processors_per_node",
        ),
        (lambda: OfflineCyclePredictor().fit(pd.DataFrame({"cells": [1]})), "columns runtime"),
        (
            lambda: OfflineCyclePredictor().fit(pd.DataFrame({"cells": [1, 2], "runtime": [1, 0]})),
            "row 1: cells, runtime.* positive and finite, got runtime 0",
        ),
        (
            lambda: OfflineCyclePredictor().fit(pd.DataFrame({"cells": ["many"], "runtime": [1]})),
            "cells in row 0 is not a number: 'many'",
        ),
        (
            lambda: OfflineCyclePredictor(knots=[np.nan, 2.0]).check_parameters(),
            "2 or more rising numbers, got",
        ),
        (lambda: flat().predict(cells=[1.0, -2.0]), "cells must be positive and finite, got -2.0"),
        (lambda: flat().predict(np.inf, cells=1.0), "nprocs must be at least 1.* got inf"),
        (
            lambda: OfflineCyclePredictor(knots=[1, 2, 3]).fit(bench(np.array([1.0, 1.5]), [1, 1])),
            "do not determine",
        ),
    ],
)
def test_bad_values_are_named(call, named):
    with pytest.raises(PredictorError, match=named):
        call()


def test_asked_before_fit():
    with pytest.raises(NotFittedError):
        OfflineCyclePredictor().predict(cells=1.0)
    with pytest.raises(NotFittedError):
        OfflineCyclePredictor().reliability(cells=1.0)


@given(
    st.lists(st.integers(1, 60), min_size=2, max_size=6, unique=True).map(sorted),
    st.lists(st.floats(0.25, 80.0), min_size=1, max_size=12),
    st.sampled_from([1.0, 1.5, 2.0, 3.0, 4.0, 9.0]),
)
def test_times_of_a_cell_are_numpys_interpolation_to_the_bit(knots, asked, shared):
    x, at = np.array(knots, float), np.concatenate((asked, knots))
    axis = np.concatenate((x, [1.0], 2.0 * x))
    values = np.random.default_rng(knots).uniform(1.0, 2.0, axis.size)
    starts = np.array([0, x.size, x.size + 1, axis.size])
    curves = Curves(np.array([1.0, 2.0, 4.0]), starts, axis, values)
    each = [np.interp(at, axis[a:b], values[a:b]) for a, b in pairwise(starts.tolist())]
    place = float(np.interp(shared, curves.levels, np.arange(3)))
    low = min(int(place), 1)
    expected = each[low] + (place - low) * (each[low + 1] - each[low])
    assert seconds_per_cell(curves, at, np.full(at.size, shared)).tolist() == expected.tolist()
