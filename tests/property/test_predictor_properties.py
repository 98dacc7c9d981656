"""What holds of every predictor of one curve, whatever it is given."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictors import Adept, Amdahl, LevenbergMarquardt, UniversalScalability

MODELS = [Adept, Amdahl, UniversalScalability, LevenbergMarquardt]
TARGETS = np.array([1.0, 2, 3, 17, 64, 1000, 1e6])

counts = st.one_of(st.integers(1, 4096), st.floats(1, 1e6))
runs = st.lists(st.tuples(counts, st.floats(1e-3, 1e6)), min_size=1, max_size=12)


def frame(pairs) -> pd.DataFrame:
    return pd.DataFrame(pairs, columns=["nprocs", "runtime"]).astype(float)


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=25)
@given(pairs=runs)
def test_predictions_and_ranges_are_finite_positive_and_ordered(model, pairs):
    fitted = model().fit(frame(pairs))
    predicted = fitted.predict(TARGETS)
    low, high = fitted.predict_range(TARGETS)
    assert predicted.dtype == np.float64
    for values in (predicted, low, high):
        assert np.isfinite(values).all()
        assert (values > 0).all()
    assert (low <= predicted * (1 + 1e-9)).all()
    assert (high >= predicted * (1 - 1e-9)).all()
    for remark in fitted.reliability(TARGETS):
        assert remark.grade in ("note", "warning", "unusable")
        assert remark.text
        assert remark.measure_at is None or remark.measure_at >= 1


@pytest.mark.parametrize("model", [Adept, Amdahl, UniversalScalability])
@settings(max_examples=20)
@given(pairs=runs, exponent=st.integers(-20, 20), seed=st.integers(0, 1000))
def test_unit_of_time_and_order_of_rows_do_not_matter(model, pairs, exponent, seed):
    rows = frame(pairs)
    shuffled = rows.sample(frac=1.0, random_state=seed)
    # A power of two, so that scaling itself does not round.
    shuffled["runtime"] *= 2.0**exponent
    before, after = model().fit(rows), model().fit(shuffled)
    np.testing.assert_allclose(
        after.predict(TARGETS), 2.0**exponent * before.predict(TARGETS), rtol=1e-6
    )


@pytest.mark.parametrize("model", MODELS)
def test_refit_replaces_and_inputs_stay_as_they_are(model):
    first = frame([(1, 100.0), (4, 30.0), (16, 12.0), (64, 9.0)])
    second = frame([(2, 7.0), (8, 2.0), (32, 0.8)])
    copy = first.copy()
    fitted = model().fit(first)
    assert fitted.fit(second) is fitted
    pd.testing.assert_frame_equal(first, copy)
    np.testing.assert_array_equal(fitted.predict(TARGETS), model().fit(second).predict(TARGETS))
    np.testing.assert_array_equal(
        fitted.predict(TARGETS), model().fit_arrays(second.nprocs, second.runtime).predict(TARGETS)
    )


@pytest.mark.parametrize("model", MODELS)
def test_shapes_and_other_columns(model):
    rows = frame([(1, 100.0), (4, 30.0), (16, 12.0), (64, 9.0)])
    fitted = model().fit(rows.assign(colour="red", size=[3, 1, 2, 9]))
    assert fitted.predict(8).shape == ()
    assert fitted.predict([[8, 9], [1, 2]]).shape == (2, 2)
    assert fitted.predict([]).shape == (0,)
    np.testing.assert_array_equal(fitted.predict(TARGETS), model().fit(rows).predict(TARGETS))
    ignored = [r.text for r in fitted.reliability(8) if r.code == "ignored_columns"]
    assert ignored == ["columns not used: colour, size"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no observation"),
        ([(0, 1.0)], "nprocs in row 0 is 0; it must be finite and at least 1"),
        ([(4, 2.0), (-3, 1.0)], "nprocs in row 1 is -3"),
        ([(4, 2.0), (8, 0.0)], "runtime in row 1 is 0; it must be finite and above 0"),
        ([(4, -2.0)], "runtime in row 0 is -2"),
        ([(4, float("nan"))], "runtime in row 0 is nan"),
        ([(float("inf"), 1.0)], "nprocs in row 0 is inf"),
    ],
)
def test_garbage_is_refused_with_its_row(model, rows, message):
    with pytest.raises(ValueError, match=message):
        model().fit(frame(rows))


@pytest.mark.parametrize("model", MODELS)
def test_bad_questions_are_refused(model):
    with pytest.raises(ValueError, match="before fit"):
        model().predict(4)
    fitted = model().fit(frame([(1, 9.0), (2, 5.0), (4, 3.0)]))
    for bad in (0, [4, float("nan")], [-1], ["many"]):
        with pytest.raises(ValueError, match="processor counts must be"):
            fitted.predict(bad)
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        fitted.predict_range(4, level=1.0)
    with pytest.raises(ValueError, match="from nprocs alone, not from size"):
        fitted.predict(4, size=[1])
    with pytest.raises(ValueError, match="missing column runtime"):
        model().fit(pd.DataFrame({"nprocs": [1]}))
    with pytest.raises(ValueError, match=r"runtime in row \d is not a number: '"):
        model().fit(pd.DataFrame({"nprocs": [1, 2], "runtime": ["3", "fast"]}))


@pytest.mark.parametrize("search", ["exact", "grid"])
@pytest.mark.parametrize("scale", ["free", "unit", "serial"])
def test_every_option_of_adept_gives_finite_answers_to_hard_data(search, scale):
    hard = [
        [(1, 5.0)],
        [(1, 5.0), (1, 5.5), (1, 4.5)],
        [(1, 5.0), (2, 6.0)],
        [(1, 7.0), (10, 7.0), (100, 7.0)],
        [(1, 100.0), (2, 20.0), (4, 3.0)],
        [(1, 1.0), (1e6, 1e-9), (1e7, 1e9)],
    ]
    for rows in hard:
        model = Adept(search=search, scale=scale).fit(frame(rows))
        targets = TARGETS if search == "exact" else TARGETS[-1:]
        for values in (model.predict(targets), *model.predict_range(targets)):
            assert np.isfinite(values).all()
            assert (values > 0).all()
        assert np.isfinite([model.A_, model.sigma_, model.serial_time_]).all()
        assert model.reliability(targets)


def test_repeating_a_row_changes_nothing():
    rows = frame([(1, 100.0), (4, 30.0), (16, 12.0), (64, 9.0)])
    doubled = pd.concat([rows, rows])
    np.testing.assert_allclose(
        Adept(floor=0.02).fit(doubled).predict(TARGETS),
        Adept(floor=0.02).fit(rows).predict(TARGETS),
        rtol=1e-12,
    )
