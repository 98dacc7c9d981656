"""Rational polynomials stay finite and positive, whatever the runs."""

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.load_comparators import RatioPolynomial, SizePolynomial
from benchmarks.scalapack_model import AnalyticalModel
from predictors.under_load.rational import RationalPolynomial

fractions = st.floats(0.01, 1.0)
row = st.tuples(
    st.sampled_from([1, 2, 4, 8]), st.floats(1e-3, 1e7), st.floats(1.0, 1e6), fractions, fractions
)
COLUMNS = ["nprocs", "runtime", "size", "available_cpu", "available_bandwidth"]


@given(
    st.lists(row, min_size=1, max_size=40),
    st.sampled_from(["nnls", "ols"]),
    st.sampled_from(["absolute", "relative"]),
    st.sampled_from([(3, 3, 2), ("1", "n log n", "n"), ("n", "n^2 | n^3", "auto")]),
)
@settings(max_examples=60)
def test_predictions_and_ranges_are_finite_and_positive(rows, method, weights, parts):
    table = pd.DataFrame(rows, columns=COLUMNS)
    size = table["size"].max() * np.array([0.5, 1.0, 3.0])
    size = np.maximum(size, 1.0)
    asked = {"size": size, "available_cpu": 0.07, "available_bandwidth": [0.02, 0.5, 1.0]}
    degree = 3 if parts[0] == 3 else "n log n"
    models = [
        RationalPolynomial(*parts, method=method, weights=weights),
        SizePolynomial(degree, method, weights),
        AnalyticalModel(None, 64, method, weights),
        AnalyticalModel((1e-9, 1e-8, 1e-5)),
    ]
    for model in models:
        model.fit(table)
        seconds = model.predict([1, 8, 64], **asked)
        low, high = model.predict_range([1, 8, 64], **asked)
        assert (np.isfinite(seconds) & (seconds > 0)).all()
        assert ((low > 0) & (low <= seconds) & (seconds <= high) & np.isfinite(high)).all()
        assert all(len(remark) == 5 for remark in model.reliability([1, 8, 64], **asked))


@given(
    st.lists(row, min_size=4, max_size=30),
    st.sampled_from(["nnls", "ols"]),
    st.sampled_from([1, 2]),
)
@settings(max_examples=25)
def test_ratio_polynomials_are_finite_and_positive(rows, method, kind):
    table = pd.DataFrame(rows, columns=COLUMNS)
    model = RatioPolynomial(2, kind, method).fit(table)
    asked = {"size": [1.0, 1e6], "available_cpu": [0.07, 1.0], "available_bandwidth": 0.3}
    seconds = model.predict(4, **asked)
    assert (np.isfinite(seconds) & (seconds > 0)).all()
