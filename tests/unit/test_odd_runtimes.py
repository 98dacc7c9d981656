"""Runtimes that are no plain numbers, counts in a column, and counts of which no run tells."""

import numpy as np
import pandas as pd
import pytest

from predictors import (
    Adept,
    Amdahl,
    Consensus,
    FocusedRegression,
    LogLogRegression,
    RationalPolynomial,
    UniversalScalability,
)
from predictors.downey import normalised_time
from predictors.errors import PredictorError, UndeterminedError

ESTIMATORS = {
    "adept": Adept,
    "amdahl": Amdahl,
    "consensus": Consensus,
    "focused": FocusedRegression,
    "loglog": LogLogRegression,
    "rational": lambda: RationalPolynomial(1, 1, 1),
    "scalability": UniversalScalability,
}
COUNTS = np.array([1, 2, 4, 8, 16])
SECONDS = 100.0 / COUNTS + 3.0


def runs(name, runtime):
    table = pd.DataFrame({"nprocs": COUNTS, "runtime": runtime})
    if name != "rational":
        return table
    return table.assign(size=np.arange(1.0, 6.0), available_cpu=1.0, available_bandwidth=1.0)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_time_spans_are_seconds_and_a_column_of_counts_gives_one_value_each(name):
    more = {"size": 2.0} if name == "rational" else {}
    known = ESTIMATORS[name]().fit(runs(name, SECONDS)).predict(np.array([[3.0], [6.0]]), **more)
    spans = ESTIMATORS[name]().fit(runs(name, pd.to_timedelta(SECONDS, unit="s")))
    assert known.shape == (2,)
    assert spans.predict(np.array([3.0, 6.0]), **more) == pytest.approx(known, rel=1e-6)
    assert [end.shape for end in spans.predict_range(np.array([[3.0]]), **more)] == [(1,), (1,)]


@pytest.mark.parametrize(
    "runtime",
    [
        SECONDS + 0j,
        SECONDS > 0,
        SECONDS.astype(str).astype(object),
        pd.Series(["soon"] * 5),
        pd.to_datetime(SECONDS, unit="s"),
    ],
    ids=["complex", "boolean", "text", "words", "dates"],
)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_is_no_number_is_refused_in_words(name, runtime):
    with pytest.raises(PredictorError, match=r"^runtime in row 0 is not a number: "):
        ESTIMATORS[name]().fit(runs(name, runtime))


def test_the_range_holds_the_instance_that_fits_exactly():
    targets = np.array([3.0, 64.0, 500.0])
    for A in (2, 16, 24, 100):
        for sigma in (0.0, 0.5, 1.0, 3.0):
            for counts in ([1, 2, 4], [4, 8, 24, 30], [1, 2, 4, 8, 16, 32]):
                n = np.array(counts)
                model = Adept().fit(n, 100.0 * normalised_time(n, A, sigma))
                low, high = model.predict_range(targets)
                exact = 100.0 * normalised_time(targets, A, sigma)
                assert ((low <= exact) & (exact <= high)).all(), (A, sigma, counts)


def test_a_polynomial_of_one_count_refuses_others():
    size = np.arange(1.0, 6.0)
    table = runs("rational", 5.0 + size).assign(nprocs=4)
    model = RationalPolynomial(1, 1, 1).fit(table)
    load = {"available_cpu": 1.0, "available_bandwidth": 1.0}
    with pytest.raises(UndeterminedError, match="on 8 processors"):
        model.predict(8, strict=True, size=2.0, **load)
    assert model.reliability(8, size=2.0, **load)[0][:2] == ("unusable", "undetermined")
    with pytest.raises(UndeterminedError, match="every run was on 4 processors"):
        model.solve_size([7.0], [8], **load)
    assert model.solve_size([7.0], [4], **load) == pytest.approx(2.0, rel=0.1)
