"""Predictors as scikit-learn's users know estimators, and alike at the edges."""

import pickle
from io import BytesIO

import joblib
import numpy as np
import pandas as pd
import pytest

import predictors
from predictors import (
    Adept,
    Amdahl,
    Consensus,
    FocusedRegression,
    LevenbergMarquardt,
    LogLogRegression,
    NotFittedError,
    OfflineCyclePredictor,
    OnlineCyclePredictor,
    PredictorError,
    RationalPolynomial,
    UniversalScalability,
)

COUNTS = np.array([1.0, 2.0, 4.0, 8.0, 8.0, 16.0])
RUNS = pd.DataFrame({"nprocs": COUNTS, "runtime": 100.0 / COUNTS + 4.0 + 0.1 * np.sin(COUNTS)})
OF_COUNTS = (
    *(Adept(), Adept(q=3.0, allowed="powers of 2"), Amdahl(), UniversalScalability()),
    *(LevenbergMarquardt(), LogLogRegression(), LogLogRegression(form="linear"), Consensus()),
    *(FocusedRegression(), FocusedRegression(focal_time=20.0, tolerance=2.0, focus="weights")),
)
SIZED = (LogLogRegression(split="total"), FocusedRegression(influence="drop"), Consensus())
RATIONAL = RationalPolynomial("n", "n", "n")
CYCLES = OfflineCyclePredictor(knots="points")
ALL = (*OF_COUNTS, RATIONAL, CYCLES, OnlineCyclePredictor(window=3, fallback=CYCLES))


def named(models):
    return pytest.mark.parametrize("model", models, ids=repr)


def sized_runs():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"nprocs": rng.choice([4.0, 8, 16, 32], 24)})
    frame["size"] = rng.uniform(1e3, 1e4, 24)
    frame["runtime"] = (0.01 * frame["size"] / frame["nprocs"] + 1.0) * rng.lognormal(0, 0.02, 24)
    return frame


def loaded_runs():
    frame = sized_runs()
    frame["available_cpu"] = np.resize([1.0, 0.5, 0.8], len(frame))
    frame["available_bandwidth"] = np.resize([1.0, 0.25, 0.5, 0.9], len(frame))
    return frame


@named(ALL)
def test_parameters_are_what_the_constructor_takes(model):
    params = model.get_params(deep=False)
    twin = type(model)(**params)
    assert all(getattr(twin, name) is value for name, value in params.items())
    assert set(vars(twin)) == set(params)
    assert repr(twin) == repr(model) == repr(model.set_params(**params))
    with pytest.raises(PredictorError, match="has no parameter colour; it has"):
        model.set_params(colour="red")


def test_nested_parameters_and_repr():
    model = OnlineCyclePredictor(fallback=OfflineCyclePredictor())
    assert model.get_params()["fallback__breakpoints"] == 3
    model.set_params(window=2, fallback__breakpoints=1)
    assert repr(model) == (
        "OnlineCyclePredictor(window=2, fallback=OfflineCyclePredictor(breakpoints=1))"
    )
    assert repr(Adept(q=3)) == "Adept(q=3)"


@named(OF_COUNTS)
def test_a_fitted_curve_survives_pickle_and_joblib(model):
    model.fit(RUNS)
    asked = np.array([1.0, 3.0, 16.0, 64.0])
    expected, ends = model.predict(asked), model.predict_range(asked)
    box = BytesIO()
    joblib.dump(model, box)
    box.seek(0)
    for twin in (pickle.loads(pickle.dumps(model)), joblib.load(box)):
        assert twin.predict(asked).tolist() == expected.tolist()
        assert np.array_equal(twin.predict_range(asked), ends)
        assert twin.reliability(asked) == model.reliability(asked)


def test_fitted_models_of_more_than_counts_survive_pickle():
    for model in SIZED:
        model.fit(sized_runs())
        twin = pickle.loads(pickle.dumps(model))
        assert twin.predict(64, size=5e3) == model.predict(64, size=5e3)
    asked = loaded_runs().drop(columns="runtime")
    model = RATIONAL.fit(loaded_runs())
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(asked), model.predict(asked))
    cells = pd.DataFrame({"cells": [1e3, 1e4, 1e5], "runtime": [1.0, 15.0, 200.0]})
    cycles = pickle.loads(pickle.dumps(CYCLES.fit(cells)))
    assert cycles.predict(cells=[2e3, 2e4]).tolist() == CYCLES.predict(cells=[2e3, 2e4]).tolist()
    online = OnlineCyclePredictor(window=2).update([100, 200], [1.0, 2.3])
    assert pickle.loads(pickle.dumps(online)).predict(cells=300) == online.predict(cells=300)


@named(OF_COUNTS)
def test_counts_and_runtimes_apart_fit_as_a_table_does(model):
    expected = model.fit(RUNS).predict([3, 32])
    counts, seconds = RUNS["nprocs"], RUNS["runtime"]
    for given in (counts, counts.tolist(), counts.to_numpy()[:, None], RUNS[["nprocs"]]):
        assert model.fit(given, seconds).predict([3, 32]).tolist() == expected.tolist()
    assert model.predict(pd.DataFrame({"nprocs": [3, 32]})).tolist() == expected.tolist()
    assert model.score(RUNS) == model.score(counts, seconds)
    assert 0.9 < model.score(RUNS) <= 1.0 or isinstance(model, LevenbergMarquardt)
    with pytest.raises(PredictorError, match="6 rows of runs, but 5 runtimes"):
        model.fit(counts, seconds[1:])
    with pytest.raises(PredictorError, match="a table with columns nprocs and runtime is needed"):
        model.fit(counts.to_numpy())


@named(SIZED)
def test_inputs_go_in_columns(model):
    runs = sized_runs()
    table = runs[["nprocs", "size"]]
    expected = model.fit(runs).predict(runs["nprocs"], size=runs["size"])
    assert model.fit(table.to_numpy(), runs["runtime"]).predict(table) == pytest.approx(expected)
    assert model.score(runs) > 0.95


@named([model for model in OF_COUNTS if getattr(model, "allowed", None) is None])
def test_nothing_and_one_count_are_alike_everywhere(model):
    model = type(model)(
        **{**model.get_params(), **({"allowed": None} if "allowed" in vars(model) else {})}
    )
    with pytest.raises(PredictorError, match="there is no observation; at least one run is needed"):
        model.fit(RUNS[:0])
    with pytest.raises(NotFittedError):
        type(model)().predict(4)
    for runs in (RUNS[2:3], pd.concat([RUNS[2:3]] * 3)):
        model.fit(runs)
        assert model.predict([4.0])[0] == pytest.approx(29.0, rel=0.05)
        assert model.predict([2.0])[0] > 29.0 > model.predict([16.0])[0] > 0.0
        grades = {(remark.target, remark.grade) for remark in model.reliability([4, 16])}
        assert (16.0, "unusable") in grades
        assert (4.0, "unusable") not in grades
    model.fit(RUNS)
    assert model.predict([]).shape == (0,)
    assert model.predict(4).shape == ()
    assert [end.shape for end in model.predict_range([])] == [(0,), (0,)]
    assert all(remark.target is None for remark in model.reliability([]))


def test_star_import_brings_the_public_names():
    names: dict[str, object] = {}
    exec("from predictors import *", names)
    assert set(predictors.__all__) == set(dir(predictors)) <= set(names)


ON_ITS_DATA = "fits columns of counts that are at least 1 and inputs that are positive, no others"
WORDS = "refuses in words of its own"
EXCEPTIONS = {
    "check_estimators_unfitted": "NotFittedError is the package's own",
    "check_n_features_in": "there is no n_features_in_",
    "check_n_features_in_after_fitting": "there is no n_features_in_",
    "check_array_api_input": "numpy arrays alone",
    **dict.fromkeys(
        (
            *("check_positive_only_tag_during_fit", "check_complex_data", "check_fit2d_1sample"),
            *("check_estimators_empty_data_messages", "check_estimators_nan_inf"),
            *("check_estimator_sparse_tag", "check_estimator_sparse_array"),
            *("check_estimator_sparse_matrix", "check_fit2d_1feature"),
        ),
        WORDS,
    ),
    **dict.fromkeys(
        (
            *("check_fit_score_takes_y", "check_estimators_overwrite_params"),
            *("check_dont_overwrite_parameters", "check_estimators_fit_returns_self"),
            *("check_readonly_memmap_input", "check_estimators_dtypes", "check_dtype_object"),
            *("check_pipeline_consistency", "check_estimators_pickle", "check_regressors_train"),
            *("check_f_contiguous_array_estimator", "check_regressor_data_not_an_array"),
            *("check_regressors_no_decision_function", "check_supervised_y_2d"),
            *("check_regressors_int", "check_methods_sample_order_invariance"),
            *("check_methods_subset_invariance", "check_dict_unchanged", "check_fit_idempotent"),
            *("check_fit_check_is_fitted", "check_fit2d_predict1d"),
        ),
        ON_ITS_DATA,
    ),
}
"""Checks of scikit-learn that do not fit, and why; what they are after is tested above."""


@named((Adept(), Amdahl(), UniversalScalability(), LogLogRegression(), Consensus()))
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_accepts_them(model):
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    results = checks.check_estimator(
        model, expected_failed_checks=EXCEPTIONS, on_skip=None, on_fail=None
    )
    failed = {one["check_name"] for one in results if one["status"] == "failed"}
    assert failed == set()
    assert sum(one["status"] == "passed" for one in results) >= 14


def test_scikit_learn_tools_take_them():
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, cross_val_score

    fitted = Adept(q=3.0).fit(RUNS)
    assert repr(clone(fitted)) == repr(fitted)
    assert not hasattr(clone(fitted), "curve_")
    runs = pd.concat([RUNS] * 2, ignore_index=True)
    X, y = runs[["nprocs"]], runs["runtime"]
    assert cross_val_score(Amdahl(), X, y, cv=3).min() > 0.9
    found = GridSearchCV(LogLogRegression(), {"form": ["linear", "quadratic"]}, cv=3).fit(X, y)
    assert found.best_params_ == {"form": "quadratic"}
