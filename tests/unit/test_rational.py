"""The rational polynomial: targets Y1 and Y2, what it refuses, what it says of itself."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.load_comparators import RatioPolynomial, SizePolynomial
from predictors.errors import NotFittedError, PredictorError, UndeterminedError
from predictors.under_load.load_aware import available
from predictors.under_load.rational import RationalPolynomial

TRUE = np.array([3.0, 0.0, 2.0, 5.0, 40.0, 6.0, 0.0, 1.0, 12.0, 3.0, 0.5])


def design(size, cpu, bandwidth):
    z = size / 7000.0
    init = np.stack([z**3, z**2, z, np.ones_like(z)])
    return np.concatenate([init, init / cpu, init[1:] / bandwidth]).T


def runs(cpu="varies", bandwidth="varies", rows=80, noise=0.0, seed=1, nprocs=8):
    rng = np.random.default_rng(seed)
    size = rng.uniform(3000, 7000, rows)
    size[0] = 7000.0
    c = rng.uniform(0.065, 1.0, rows) if cpu == "varies" else np.full(rows, 0.5)
    b = rng.uniform(0.1, 1.0, rows) if bandwidth == "varies" else np.full(rows, 0.25)
    seconds = design(size, c, b) @ TRUE * np.exp(noise * rng.standard_normal(rows))
    return pd.DataFrame(
        {
            "nprocs": nprocs,
            "size": size,
            "available_cpu": c,
            "available_bandwidth": b,
            "runtime": seconds,
        }
    )


def truth(size, cpu, bandwidth):
    return design(np.atleast_1d(size).astype(float), cpu, bandwidth) @ TRUE


@pytest.mark.parametrize(
    ("cpu", "bandwidth", "rank"),
    [("same", "same", 4), ("varies", "same", 8), ("same", "varies", 7), ("varies", "varies", 11)],
)
@pytest.mark.parametrize("method", ["nnls", "ols"])
def test_y1_rank_of_the_eleven_columns(cpu, bandwidth, rank, method):
    model = RationalPolynomial(3, 3, 2, method=method).fit(runs(cpu, bandwidth))
    assert len(model.coefficients_) == 11
    assert model.rank_ == rank
    unknown = model.coefficients_.value.isna()
    assert unknown.sum() == 0 if rank == 11 else unknown.any()


@pytest.mark.parametrize("weights", ["absolute", "relative"])
def test_y2_predictions_at_a_size_beyond_the_largest_are_exact(weights):
    model = RationalPolynomial(3, 3, 2, weights=weights).fit(runs())
    size, cpu, bandwidth = 1.7 * 7000, np.array([0.1, 0.4, 1.0]), np.array([0.9, 0.1, 1.0])
    found = model.predict(
        8, size=size, available_cpu=cpu, available_bandwidth=bandwidth, strict=True
    )
    np.testing.assert_allclose(found, truth([size] * 3, cpu, bandwidth), rtol=1e-6)


def test_constant_bandwidth_answers_at_that_bandwidth_alone():
    model = RationalPolynomial(3, 3, 2).fit(runs(bandwidth="same"))
    same = {"size": 9000.0, "available_cpu": 0.3, "available_bandwidth": 0.25}
    found = model.predict(8, strict=True, **same)
    assert found == pytest.approx(truth(9000.0, 0.3, 0.25)[0], rel=1e-6)
    assert all(remark.grade != "unusable" for remark in model.reliability(8, **same))
    other = {**same, "available_bandwidth": 0.5}
    assert np.isfinite(model.predict(8, **other))
    assert model.reliability(8, **other)[0].grade == "unusable"
    assert "bandwidth was 0.25 in every run" in model.reliability(8, **other)[0].text
    with pytest.raises(UndeterminedError, match="bandwidth"):
        model.predict(8, strict=True, **other)


def test_another_processor_count_is_undetermined_and_named_as_the_one_to_measure():
    model = RationalPolynomial(3, 3, 2).fit(runs())
    inputs = {"size": 5000.0, "available_cpu": 0.5, "available_bandwidth": 0.5}
    remark = model.reliability([8, 16], **inputs)[0]
    assert (remark.grade, remark.measure_at, remark.target) == ("unusable", 16, 16.0)
    with pytest.raises(UndeterminedError, match="processor count was 8"):
        model.predict([8, 16], strict=True, **inputs)


def test_few_rows_keep_the_leading_terms_alone():
    model = RationalPolynomial(3, 3, 2).fit(runs(rows=21))
    named = list(model.coefficients_[["part", "term"]].itertuples(index=False, name=None))
    leading = [("init", "n^3"), ("init", "1"), ("computation", "n^3"), ("communication", "n^2")]
    assert named == leading
    codes = {remark.code for remark in model.reliability(8, size=5000)}
    assert "few_observations" in codes
    assert len(RationalPolynomial(3, 3, 2).fit(runs(rows=22)).coefficients_) == 11


def test_few_rows_add_no_constant_to_terms_that_were_named_exactly():
    model = RationalPolynomial(["n^3"], 3, 2).fit(runs(rows=10))
    named = list(model.coefficients_[["part", "term"]].itertuples(index=False, name=None))
    assert named == [("init", "n^3"), ("computation", "n^3"), ("communication", "n^2")]


def test_nnls_never_predicts_below_zero_where_ols_does():
    noisy = runs(rows=40, noise=0.3, seed=3)
    asked = {"size": np.linspace(200, 14000, 40)[:, None], "available_cpu": [0.065, 0.5, 1.0]}
    asked["available_bandwidth"] = [1.0, 0.05, 0.5]
    nnls = RationalPolynomial(3, 3, 2).fit(noisy)
    assert (nnls.coefficients_.value >= 0).all()
    assert not any(remark.code == "negative" for remark in nnls.reliability(8, **asked))
    ols = RationalPolynomial(3, 3, 2, method="ols").fit(noisy)
    assert (ols.coefficients_.value < 0).any()
    assert (ols.predict(8, **asked) > 0).all()
    assert any(remark.code == "negative" for remark in ols.reliability(8, **asked))
    with pytest.raises(UndeterminedError):
        ols.predict(8, strict=True, **asked)


def test_the_order_of_rows_and_the_unit_of_time_do_not_matter():
    table = runs(noise=0.1)
    asked = {"size": [4000.0, 12000.0], "available_cpu": 0.3, "available_bandwidth": 0.7}
    for method in ("nnls", "ols"):
        plain = RationalPolynomial(3, 3, 2, method=method).fit(table).predict(8, **asked)
        shuffled = table.sample(frac=1, random_state=2)
        again = RationalPolynomial(3, 3, 2, method=method).fit(shuffled).predict(8, **asked)
        np.testing.assert_allclose(again, plain, rtol=1e-6)
        minutes = table.assign(runtime=table.runtime / 60)
        model = RationalPolynomial(3, 3, 2, method=method).fit(minutes)
        np.testing.assert_allclose(model.predict(8, **asked) * 60, plain, rtol=1e-6)


@pytest.mark.parametrize("growth", ["1/n", "1", "log2 n", "n"])
def test_the_growth_of_communication_is_found_and_carries_to_other_counts(growth):
    table = pd.concat([runs(seed=n, nprocs=n, rows=40) for n in (2, 4, 8, 16)], ignore_index=True)

    def seconds(nprocs, size, cpu, bandwidth):
        n = np.asarray(nprocs, float)
        factor = {"1/n": 1 / n, "1": n**0, "log2 n": np.log2(n), "n": n}[growth]
        z = np.asarray(size) / 7000
        return 4 + 9 * z + 900 * z**3 / (n * cpu) + 30 * z**2 * factor / bandwidth

    table["runtime"] = seconds(
        table.nprocs, table["size"], table.available_cpu, table.available_bandwidth
    )
    model = RationalPolynomial(3, 3, 2).fit(table)
    assert model.form_.growth == growth
    asked = {"size": 9000.0, "available_cpu": 0.5, "available_bandwidth": 0.4}
    found = model.predict([4, 32, 64], strict=True, **asked)
    np.testing.assert_allclose(found, seconds([4, 32, 64], 9000.0, 0.5, 0.4), rtol=1e-5)
    assert any(r.code == "other_count" for r in model.reliability(64, **asked))
    assert model.scores_.chosen.sum() == 1


@pytest.mark.parametrize(
    ("computation", "communication"), [("n^3", "n^2"), ("n log n", "n"), ("n^2", "log n")]
)
def test_complexities_are_chosen_by_cross_validation(computation, communication):
    rng = np.random.default_rng(5)
    table = runs(rows=120, seed=6)
    size = table["size"] = np.exp(rng.uniform(np.log(64), np.log(65536), 120))
    order = {
        "n^3": size**3, "n^2": size**2, "n log n": size * np.log2(size), "n": size,
        "log n": np.log2(size),
    }  # fmt: skip
    share = order[computation] / np.median(order[computation]) / table.available_cpu
    rest = order[communication] / np.median(order[communication]) / table.available_bandwidth
    table["runtime"] = (100 * share + 60 * rest) * np.exp(0.01 * rng.standard_normal(120))
    model = RationalPolynomial("1", "auto", "auto", weights="relative").fit(table)
    form = model.form_
    assert (str(form.computation[0]), str(form.communication[0])) == (computation, communication)


def test_with_three_sizes_no_order_is_chosen_that_a_held_out_size_cannot_test():
    table = runs(rows=60)
    table["size"] = np.tile([1400.0, 7000.0, 14000.0], 20)
    table["runtime"] *= table["size"] / 7000
    form = RationalPolynomial(None, "auto", "auto").fit(table).form_
    assert form.longest() <= 2
    assert RationalPolynomial(3, 3, 2).fit(table).form_.longest() == 4


def test_the_range_holds_about_its_share_of_runs_and_contains_the_prediction():
    held = []
    for seed in range(20):
        table, fresh = runs(noise=0.1, seed=seed), runs(noise=0.1, seed=100 + seed)
        model = RationalPolynomial(3, 3, 2).fit(table)
        asked = fresh[["size", "available_cpu", "available_bandwidth"]]
        low, high = model.predict_range(fresh.nprocs, level=0.8, **asked)
        middle = model.predict(fresh.nprocs, **asked)
        assert ((low <= middle) & (middle <= high) & (low > 0)).all()
        held.append(((low <= fresh.runtime) & (fresh.runtime <= high)).mean())
    assert 0.75 <= np.mean(held) <= 0.92


def test_sizes_are_solved_for():
    model = RationalPolynomial(3, 3, 2).fit(runs())
    load = {"available_cpu": 0.4, "available_bandwidth": 0.6}
    seconds = model.predict(8, size=[3500.0, 11000.0], **load)
    np.testing.assert_allclose(model.solve_size(seconds, 8, **load), [3500, 11000], rtol=1e-9)
    with pytest.raises(PredictorError, match="no size"):
        model.solve_size(1e-3, 8, **load)


def test_samples_are_reduced_as_the_form_says():
    samples = np.array([[0.9, 0.5], [0.3, 0.7]])
    assert available(samples) == pytest.approx(0.4)
    assert available(samples, "min_avg_avail") == pytest.approx(0.6)
    assert available(samples, "min_avail") == 0.5
    missing = np.array([[0.9, np.nan], [np.nan, np.nan], [0.3, 0.7]])
    assert available(missing) == pytest.approx(0.6)
    assert available(np.empty((3, 0))) == 1.0
    table = runs(rows=30)
    cells = table.assign(
        available_cpu=[np.array([[c, 1.0], [c, 1.0]]) for c in table.available_cpu]
    )
    asked = {"size": 9000.0, "available_cpu": 0.3, "available_bandwidth": 0.5}
    by_cells = RationalPolynomial(3, 3, 2).fit(cells).predict(8, **asked)
    np.testing.assert_allclose(by_cells, RationalPolynomial(3, 3, 2).fit(table).predict(8, **asked))


def test_training_on_runs_with_a_single_sample_is_flagged():
    table = runs()
    table["runtime"] /= table.runtime.max() / 100
    model = RationalPolynomial(3, 3, 2).fit(table)
    asked = {"size": 14000.0, "available_cpu": 0.1, "available_bandwidth": 0.2}
    assert "short_runs" in {remark.code for remark in model.reliability(8, **asked)}
    assert "short_runs" not in {r.code for r in model.reliability(8, **{**asked, "size": 4000.0})}


def test_remarks_name_sizes_and_loads_beyond_what_was_seen():
    model = RationalPolynomial(3, 3, 2).fit(runs())
    codes = {r.code: r.grade for r in model.reliability(8, size=21000.0, available_cpu=0.02)}
    assert codes["larger_size"] == "warning"
    assert codes["load_outside"] == "warning"
    assert codes["idle_assumed"] == "warning"
    plain = {"size": 5000.0, "available_cpu": 0.5, "available_bandwidth": 0.5}
    assert model.reliability(8, **plain) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"runtime": 0.0}, "runtime must be finite and positive"),
        ({"runtime": np.nan}, "row 0"),
        ({"size": -1.0}, "size"),
        ({"nprocs": 0}, "nprocs must be at least 1"),
        ({"available_cpu": 0.0}, r"available_cpu must be in \(0, 1\]"),
        ({"available_bandwidth": 1.5}, "available_bandwidth"),
    ],
)
def test_impossible_observations_are_refused(change, message):
    with pytest.raises(PredictorError, match=message):
        RationalPolynomial(3, 3, 2).fit(runs().assign(**change))


def test_missing_columns_are_named_and_no_rows_are_an_error():
    with pytest.raises(PredictorError, match="size, available_cpu"):
        RationalPolynomial(3, 3, 2).fit(runs()[["nprocs", "runtime", "available_bandwidth"]])
    with pytest.raises(PredictorError, match="no observation"):
        RationalPolynomial(3, 3, 2).fit(runs().iloc[:0])


def test_text_where_a_number_belongs_is_named_and_unused_columns_are_too():
    table = runs().astype({"runtime": object})
    table.loc[3, "runtime"] = "long"
    with pytest.raises(PredictorError, match="runtime in row 3"):
        RationalPolynomial(3, 3, 2).fit(table)
    model = RationalPolynomial(3, 3, 2).fit(runs().assign(colour=1))
    asked = {"size": 5000.0, "available_cpu": 0.5, "available_bandwidth": 0.5}
    (remark,) = model.reliability(8, **asked)
    assert (remark.code, remark.text) == ("ignored_columns", "columns not used: colour")


def test_predictions_need_a_fit_a_size_and_known_inputs():
    with pytest.raises(NotFittedError):
        RationalPolynomial(3, 3, 2).predict(8, size=1.0)
    model = RationalPolynomial(3, 3, 2).fit(runs())
    with pytest.raises(PredictorError, match="size"):
        model.predict(8)
    with pytest.raises(PredictorError, match="memory"):
        model.predict(8, size=1.0, memory=3.0)
    with pytest.raises(PredictorError, match="shapes"):
        model.predict([8, 8], size=[1.0, 2.0, 3.0])


def with_latency(rows=80, seconds=4.0):
    """Return runs of which so many seconds at the largest size wait for latency, as n grows."""
    table = runs(rows=rows)
    latency = np.random.default_rng(7).uniform(1.0, 20.0, rows)
    more = seconds * table["size"] / 7000.0 * latency
    return table.assign(latency=latency, runtime=table.runtime + more)


@pytest.mark.parametrize("method", ["nnls", "ols"])
def test_messages_wait_for_the_largest_latency(method):
    table = with_latency()
    model = RationalPolynomial(3, 3, 2, method=method, messages=["n"]).fit(table)
    assert model.rank_ == len(model.coefficients_) == 12
    last = model.coefficients_.iloc[-1]
    assert (last.part, last.term) == ("messages", "n")
    assert last.value == pytest.approx(4.0, rel=1e-6)
    asked = {"size": 14000.0, "available_cpu": 0.5, "available_bandwidth": 0.5}
    idle, slow = model.predict(8, strict=True, **asked, latency=[1.0, 11.0])
    assert idle == pytest.approx(truth(14000.0, 0.5, 0.5)[0] + 8.0, rel=1e-6)
    assert slow - idle == pytest.approx(80.0, rel=1e-6)
    assert model.predict(8, **asked) == pytest.approx(idle)  # an idle machine where not given
    init, computation, communication = model.parts_at(np.array([8.0]), 14000.0)
    assert init + computation / 0.5 + communication / 0.5 == pytest.approx(idle)


def test_samples_of_latency_count_by_the_slowest_link():
    seen = np.array([[1.0, 3.0], [9.0, 5.0]])
    cells = [seen * (1 + k % 3) for k in range(80)]
    table = with_latency().assign(latency=cells)
    for form, most in (("effective", 6.0), ("min_avg_avail", 5.0), ("min_avail", 3.0)):
        model = RationalPolynomial(3, 3, 2, load=form, messages=1).fit(table)
        assert model.runs_.latency[:3] == pytest.approx([most, 2 * most, 3 * most])


def test_latency_that_never_varied_answers_at_that_latency_alone():
    model = RationalPolynomial(3, 3, 2, messages=1).fit(with_latency().assign(latency=2.0))
    asked = {"size": 7000.0, "available_cpu": 0.5, "available_bandwidth": 0.5}
    assert model.predict(8, strict=True, **asked, latency=2.0) > 0
    with pytest.raises(UndeterminedError, match="latency was 2 in every run"):
        model.predict(8, strict=True, **asked, latency=3.0)


def test_latency_is_needed_by_messages_and_by_nothing_else():
    with pytest.raises(PredictorError, match="observations lack the columns latency"):
        RationalPolynomial(3, 3, 2, messages=1).fit(runs())
    with pytest.raises(PredictorError, match="latency must be finite and positive, got 0 in row"):
        RationalPolynomial(3, 3, 2, messages=1).fit(with_latency().assign(latency=0.0))
    plain = RationalPolynomial(3, 3, 2).fit(with_latency())
    with pytest.raises(PredictorError, match="unknown inputs latency"):
        plain.predict(8, size=7000.0, latency=2.0)
    remarks = plain.reliability(8, size=7000.0, available_cpu=0.5, available_bandwidth=0.5)
    assert "columns not used: latency" in [remark.text for remark in remarks]


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_one_to_three_runs_are_answered_and_flagged(rows):
    table = runs(rows=rows)
    model = RationalPolynomial(3, 3, 2).fit(table)
    asked = {"size": 14000.0, "available_cpu": 0.9, "available_bandwidth": 0.9}
    assert model.predict(8, **asked) > 0
    assert model.reliability(8, **asked)[0].grade == "unusable"
    low, high = model.predict_range(8, **asked)
    assert 0 < low <= high < np.inf


@pytest.mark.parametrize(
    "keywords",
    [
        {"method": "ridge"},
        {"weights": "log"},
        {"load": "max"},
        {"growth": "n^2"},
        {"init": "m"},
        {"messages": "m"},
    ],
)
def test_unknown_arguments_are_refused(keywords):
    model = RationalPolynomial(**{"init": 3, "computation": 3, "communication": 2, **keywords})
    with pytest.raises(PredictorError):
        model.check_parameters()


@pytest.mark.parametrize("method", ["nnls", "ols"])
@pytest.mark.parametrize("kind", [1, 2])
def test_ratio_polynomials_recover_their_own_form(kind, method):
    table = runs(rows=80)
    z, cpu, bandwidth = table["size"] / 7000, table.available_cpu, table.available_bandwidth
    below = 1 + (3 * cpu + 2 * bandwidth if kind == 1 else 6 * cpu * bandwidth)
    table["runtime"] = (50 + 900 * z**3) / below
    model = RatioPolynomial(3, kind, method).fit(table)
    asked = {"size": 9000.0, "available_cpu": 0.5, "available_bandwidth": 0.25}
    expected = (50 + 900 * (9 / 7) ** 3) / (1 + (2.0 if kind == 1 else 0.75))
    assert model.predict(8, **asked) == pytest.approx(expected, rel=1e-4)
    low, high = model.predict_range(8, **asked)
    assert low <= expected * (1 + 1e-4)
    assert high >= expected * (1 - 1e-4)


def test_a_denominator_near_zero_is_rejected():
    table = runs(rows=40)
    table["runtime"] = 100 / (1.01 - table.available_cpu * table.available_bandwidth)
    model = RatioPolynomial(3, 2, "ols").fit(table)
    grid = np.linspace(0.01, 1, 30)
    below = 1 + model.load_coefficients_[0] * grid
    assert below.min() >= 0.049


def test_size_polynomials_see_no_load_and_flag_what_they_cannot_tell():
    table = runs(rows=40)
    model = SizePolynomial(3, "nnls").fit(table)
    scrambled = table.assign(available_cpu=0.3, available_bandwidth=0.1)
    assert model.predict(8, size=9000) == SizePolynomial(3, "nnls").fit(scrambled).predict(
        8, size=9000, available_cpu=0.1, available_bandwidth=0.1
    )
    with pytest.raises(UndeterminedError, match="processors"):
        model.predict(16, size=9000, strict=True)
    same = SizePolynomial(3).fit(table.assign(size=5000.0))
    assert same.reliability(8, size=9000)[0].grade == "unusable"
    assert same.predict(8, size=5000.0, strict=True) > 0
