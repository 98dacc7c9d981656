"""Log-log regression: its rules, its remarks, its errors."""

import numpy as np
import pandas as pd
import pytest

from predictors.errors import NotFittedError, PredictorError, UndeterminedError
from predictors.regression.barnes import LogLogRegression

pytestmark = pytest.mark.fast

LEVELS = np.array([2.0, 4.0, 8.0, 16.0, 32.0])


def grid(seconds, levels=LEVELS, sizes=(1e3, 2e3, 5e3)) -> pd.DataFrame:
    """Return every size at every count with its time."""
    rows = [(n, s, seconds(n, s)) for n in levels for s in sizes]
    return pd.DataFrame(rows, columns=["nprocs", "size", "runtime"])


def split_grid(computation, communication, **more) -> pd.DataFrame:
    """Return a grid whose time is the sum of two parts, with both given."""
    frame = grid(lambda n, s: computation(n, s) + communication(n, s), **more)
    n, s = frame["nprocs"].to_numpy(), frame["size"].to_numpy()
    frame["computation"], frame["communication"] = computation(n, s), communication(n, s)
    return frame


def codes(model: LogLogRegression, nprocs: float, **inputs: float) -> dict[str, str]:
    return {r.code: r.grade for r in model.reliability([nprocs], **inputs)}


def test_recovers_a_power_law_exactly() -> None:
    model = LogLogRegression().fit(grid(lambda n, s: 3e-4 * s**1.7 * n**-0.8))
    assert model.form_ == ("linear",)
    assert model.coefficients_ == pytest.approx([np.log2(3e-4), -0.8, 1.7], rel=1e-9)
    assert model.predict(512, size=9e4) == pytest.approx(3e-4 * 9e4**1.7 * 512**-0.8, rel=1e-9)
    assert model.r_squared_ == pytest.approx(1.0)


def test_recovers_a_quadratic_exactly() -> None:
    def seconds(n, s):
        return 2.0 ** (5 - 1.1 * np.log2(n) + 0.9 * np.log2(s) + 0.06 * np.log2(n) ** 2)

    model = LogLogRegression().fit(grid(seconds))
    assert model.form_ == ("quadratic",)
    assert model.coefficients_ == pytest.approx([5.0, -1.1, 0.9, 0.06], rel=1e-9)
    assert model.predict([64], size=777) == pytest.approx([seconds(64, 777)], rel=1e-9)


def test_recovers_computation_and_communication_and_adds_them() -> None:
    frame = split_grid(lambda n, s: 0.01 * s**1.2 / n, lambda n, s: 0.02 * s**0.6 * n**0.4)
    model = LogLogRegression().fit(frame)
    assert model.split_ == "max"
    assert [part.name for part in model.model_.parts] == ["computation", "communication"]
    expected = 0.01 * 8e3**1.2 / 256 + 0.02 * 8e3**0.6 * 256**0.4
    assert model.predict(256, size=8e3) == pytest.approx(expected, rel=1e-9)
    assert codes(model, 64, size=2e3)["separate"] == "note"


def test_linear_below_three_counts() -> None:
    frame = grid(lambda n, s: s / n**0.7, levels=(4.0, 16.0))
    model = LogLogRegression().fit(frame)
    assert model.form_ == ("linear",)
    assert codes(model, 32, size=1e3)["few_levels"] == "warning"


def test_rmse_over_degrees_of_freedom_chooses_the_form() -> None:
    # Three counts: no guard. The curvature is small against the scatter.
    n = np.array([2.0, 2.0, 4.0, 4.0, 8.0, 8.0])
    log_t = -np.log2(n) + np.array([0.10, -0.10, 0.14, -0.06, 0.10, -0.10])
    model = LogLogRegression(()).fit_arrays(n, 2.0**log_t)
    quadratic = LogLogRegression((), form="quadratic").fit_arrays(n, 2.0**log_t)
    assert model.form_ == ("linear",)
    # with residuals over rows alone the quadratic would have won
    assert quadratic.model_.parts[0].fit.squared_error < model.model_.parts[0].fit.squared_error


def test_guard_drops_the_form_that_fails_at_the_largest_count() -> None:
    # A bend at the end: the quadratic fits all five best, but from the first four it
    # predicts the fifth no worse; a jump at the fourth count makes it predict far off.
    log_q = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    log_t = np.array([0.0, -1.0, -2.0, -2.4, -3.9])
    auto = LogLogRegression(()).fit_arrays(2**log_q, 2**log_t)
    assert auto.form_ == ("linear",)
    smooth = 10 - 1.4 * log_q + 0.15 * log_q**2
    assert LogLogRegression(()).fit_arrays(2**log_q, 2**smooth).form_ == ("quadratic",)


def test_total_where_computation_dominates_and_communication_falls() -> None:
    frame = split_grid(lambda n, s: s / n, lambda n, s: 0.05 * s / n)
    assert LogLogRegression().fit(frame).split_ == "total"
    assert LogLogRegression(split="separate").fit(frame).split_ == "max"


def test_separates_below_ninety_percent_computation_at_any_count() -> None:
    frame = split_grid(lambda n, s: s / n, lambda n, s: 0.12 * s / n)
    assert LogLogRegression().fit(frame).split_ == "max"
    frame = split_grid(lambda n, s: s / n, lambda n, s: 0.10 * s / n)
    assert LogLogRegression().fit(frame).split_ == "total"


def test_separates_where_communication_grows() -> None:
    frame = split_grid(lambda n, s: 100 * s / n, lambda n, s: 0.01 * s * n**0.1)
    model = LogLogRegression().fit(frame)
    assert model.split_ == "max"
    assert "grows" in model.choice_.why


def test_chooses_the_way_of_splitting_with_the_lower_weighted_rmse() -> None:
    frame = split_grid(lambda n, s: s / n, lambda n, s: 0.5 * s**0.5)
    noise = 1 + 0.2 * np.sin(np.arange(len(frame)))
    frame["computation_cp"] = frame["computation"]
    frame["communication_cp"] = frame["communication"]
    frame["computation"] = frame["computation"] * noise
    frame["runtime"] = frame["computation"] + frame["communication"]
    # the critical path's parts must add up too, else they are mended
    frame["communication_cp"] = frame["runtime"] - frame["computation_cp"]
    frame = frame[frame["communication_cp"] > 0]
    by_max = LogLogRegression(split="separate").fit(
        frame.drop(columns=["computation_cp", "communication_cp"])
    )
    by_cp = LogLogRegression(split="separate").fit(
        frame.drop(columns=["computation", "communication"])
    )
    both = LogLogRegression(split="separate").fit(frame)
    winner = "cp" if by_cp.rmse_ < by_max.rmse_ else "max"
    assert both.split_ == winner


def test_zero_communication_is_absent_and_some_zeros_are_logged() -> None:
    frame = split_grid(lambda n, s: s / n, lambda n, s: 0 * s)
    assert LogLogRegression().fit(frame).split_ == "total"
    frame = split_grid(lambda n, s: s / n, lambda n, s: 0.5 * s * (n > 2))
    model = LogLogRegression().fit(frame)
    assert model.split_ == "max"
    assert np.isfinite(model.predict(64, size=1e3))


def test_a_missing_part_is_the_runtime_minus_the_other() -> None:
    frame = split_grid(lambda n, s: s / n, lambda n, s: 0.3 * s**0.9)
    whole = LogLogRegression().fit(frame).predict(99, size=1.5e3)
    half = LogLogRegression().fit(frame.drop(columns="communication")).predict(99, size=1.5e3)
    assert half == pytest.approx(whole, rel=1e-9)


def test_parts_that_do_not_add_up_are_mended_and_said() -> None:
    frame = split_grid(lambda n, s: s / n, lambda n, s: 0.3 * s**0.9)
    frame["runtime"] *= 1.2
    model = LogLogRegression().fit(frame)
    assert codes(model, 16, size=2e3)["split_mismatch"] == "note"
    first = frame.iloc[0]
    assert model.predict(first["nprocs"], size=first["size"]) == pytest.approx(
        first["runtime"], rel=0.05
    )


def test_constant_input_is_left_out_and_flagged_where_a_target_differs() -> None:
    frame = grid(lambda n, s: s / n, sizes=(4e3,))
    model = LogLogRegression().fit(frame)
    assert model.runs_.constants == {"size": 4e3}
    assert model.predict([64]) == pytest.approx([62.5])
    assert codes(model, 64, size=4e3)["constant_input"] == "note"
    assert codes(model, 64, size=8e3)["constant_input"] == "unusable"
    with pytest.raises(UndeterminedError, match="its effect is unknown"):
        model.predict(64, size=8e3, strict=True)


def test_expected_error_is_the_prediction_within_the_training_runs() -> None:
    levels = (2.0, 4.0, 8.0, 64.0)
    frame = grid(lambda n, s: s / n if n < 64 else 1.4 * s / n, levels=levels)
    model = LogLogRegression(form="linear").fit(frame)
    found = model.validation(512)
    assert found is not None
    assert found.error == pytest.approx(0.4, rel=1e-6)  # 2^|log2 1.4| - 1
    assert (found.factor, found.end) == (8.0, 64.0)
    assert found.expected(8.0) == pytest.approx(0.13 * 8.0 * 0.4**0.25)
    assert codes(model, 512, size=1e3)["expected_error"] == "unusable"
    assert codes(model, 128, size=1e3)["expected_error"] == "warning"  # 0.13 · 2 · 0.8
    good = LogLogRegression().fit(grid(lambda n, s: s / n))
    assert codes(good, 64, size=1e3)["expected_error"] == "note"


def test_the_check_reaches_as_far_as_the_target() -> None:
    """Only a start of twice or more below the end sees that scaling stops at 16."""
    frame = grid(lambda n, s: s / min(n, 16), levels=(1.0, 2.0, 4.0, 8.0, 16.0, 32.0))
    model = LogLogRegression(form="linear").fit(frame)
    checks = [model.validation(32.0 * factor) for factor in (1.5, 2.0, 4.0, 16.0)]
    assert [check.factor for check in checks] == [2.0, 2.0, 4.0, 16.0]
    assert model.validation(32.0) is None
    below = LogLogRegression(form="linear").fit(frame[frame["nprocs"] >= 4])
    assert below.validation(2.0).end == 4.0
    assert below.validation(2.0).error == pytest.approx(2.0 ** (2.0 / 3.0) - 1.0, rel=1e-6)


def test_no_error_is_foretold_among_the_training_counts() -> None:
    rough = grid(lambda n, s: s / n * (3.0 if n > 8 else 1.0))
    model = LogLogRegression(form="linear").fit(rough)
    assert "expected_error" not in codes(model, 12, size=1e3)
    assert "unusable" not in codes(model, 12, size=1e3).values()


def test_superlinear_speedup_is_said_where_it_is() -> None:
    frame = grid(lambda n, s: s / n * (1.0 if n < 16 else 0.7))
    model = LogLogRegression(form="linear").fit(frame)
    found = [r for r in model.reliability(64, size=1e3) if r.code == "superlinear"]
    assert len(found) == 1
    assert found[0].grade == "warning"
    assert "from 8 to 16" in found[0].text
    plain = LogLogRegression().fit(grid(lambda n, s: s / n**0.9))
    assert "superlinear" not in codes(plain, 64, size=1e3)


def test_far_targets_are_flagged_with_where_to_measure() -> None:
    model = LogLogRegression().fit(grid(lambda n, s: s / n))
    assert "far" not in codes(model, 128, size=1e3)
    far = [r for r in model.reliability(512, size=1e3) if r.code == "far"]
    assert far[0].measure_at == 128
    assert codes(model, 64, size=5e4)["far_input"] == "warning"


def test_size_is_used_where_given_and_other_inputs_must_be_there() -> None:
    frame = grid(lambda n, s: s / n)
    no_size = LogLogRegression().fit(frame[frame["size"] == 1e3].drop(columns="size"))
    assert no_size.predict(10) == pytest.approx(100.0)
    with pytest.raises(PredictorError, match=r"lack the columns \['width'\]"):
        LogLogRegression(("width",)).fit(frame)


def test_two_inputs_by_name() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"nprocs": rng.choice([4, 8, 16], 20)})
    frame["width"], frame["steps"] = rng.uniform(1, 9, 20), rng.uniform(50, 99, 20)
    frame["runtime"] = 7 * frame["width"] ** 2 * frame["steps"] / frame["nprocs"]
    model = LogLogRegression(("width", "steps")).fit(frame)
    assert model.coefficients_[1:4] == pytest.approx([-1.0, 2.0, 1.0], rel=1e-8)
    assert model.predict([4, 8], width=3.0, steps=60.0) == pytest.approx([945.0, 472.5])
    with pytest.raises(PredictorError, match="missing \\['steps'\\]"):
        model.predict(4, width=3.0)
    with pytest.raises(PredictorError, match="no size can be solved for"):
        model.solve_size(100.0, 8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"runtime": [-1.0, 2, 3, 4]}, "runtime in row 0 is -1"),
        ({"runtime": [1.0, 0, 3, 4]}, "runtime in row 1 is 0"),
        ({"runtime": [1.0, 2, np.nan, 4]}, "runtime in row 2 is nan"),
        ({"nprocs": [0.5, 2, 4, 8]}, "nprocs in row 0 is 0.5"),
        ({"size": [1.0, 2, 3, np.inf]}, "size in row 3 is inf"),
        ({"size": [0.0, 2, 3, 5]}, "size in row 0 is 0"),
        ({"nprocs": [4, 4, 4, 4]}, "distinct processor counts in training: 1"),
        ({"size": [3.0, 6, 12, 24]}, "size is collinear with nprocs"),
        ({"computation": [9.0, 1, 1, 1]}, "exceeds the runtime"),
        ({"communication": [-0.5, 1, 1, 1], "computation": [1.0, 1, 1, 1]}, "expected at least 0"),
    ],
)
def test_bad_observations_are_named(change: dict[str, list[float]], message: str) -> None:
    frame = {"nprocs": [1, 2, 4, 8], "size": [3.0, 4, 5, 7], "runtime": [8.0, 5, 3, 2]}
    with pytest.raises(PredictorError, match=message):
        LogLogRegression().fit(pd.DataFrame({**frame, **change}))


def test_too_few_runs_for_the_coefficients() -> None:
    frame = pd.DataFrame({"nprocs": [1, 2], "size": [1.0, 3.0], "runtime": [5.0, 6.0]})
    with pytest.raises(PredictorError, match="2 runs cannot determine 3 coefficients"):
        LogLogRegression().fit(frame)
    with pytest.raises(PredictorError, match="a quadratic form needs at least 3"):
        LogLogRegression(form="quadratic").fit(frame.drop(columns="size"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": "size"}, "sequence of names"),
        ({"inputs": ("size", "size")}, "distinct names"),
        ({"inputs": ("nprocs",)}, "other than nprocs"),
        ({"form": "cubic"}, "form must be one of auto, linear, quadratic; got 'cubic'"),
        ({"split": "both"}, "split must be one of"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(PredictorError, match=message):
        LogLogRegression(**arguments).check_parameters()  # type: ignore[arg-type]


def test_separate_without_split_times_is_an_error() -> None:
    with pytest.raises(PredictorError, match="split=separate needs"):
        LogLogRegression(split="separate").fit(grid(lambda n, s: s / n))


def test_asked_before_fitted() -> None:
    with pytest.raises(NotFittedError):
        LogLogRegression().predict(4)


@pytest.mark.parametrize("nprocs", [0, np.nan, np.inf, [4, -1]])
def test_bad_targets(nprocs: object) -> None:
    model = LogLogRegression().fit(grid(lambda n, s: s / n))
    with pytest.raises(PredictorError, match="nprocs: expected finite"):
        model.predict(nprocs, size=1e3)  # type: ignore[arg-type]


def test_ranges_hold_new_runs_as_often_as_they_say() -> None:
    rng = np.random.default_rng(11)
    inside = 0
    for _ in range(400):
        frame = grid(lambda n, s: s / n**0.8 * np.exp(rng.normal(0, 0.05)))
        model = LogLogRegression(form="linear").fit(frame)
        low, high = model.predict_range(64, level=0.8, size=2e3)
        truth = 2e3 / 64**0.8 * np.exp(rng.normal(0, 0.05))
        inside += bool(low <= truth <= high)
    assert 0.75 <= inside / 400 <= 0.85


def test_solve_size_inverts_predict_for_total_and_separate() -> None:
    total = LogLogRegression().fit(grid(lambda n, s: 1e-3 * s**1.3 / n**0.7))
    parts = LogLogRegression().fit(
        split_grid(lambda n, s: 0.01 * s**1.2 / n, lambda n, s: 0.02 * s**0.6 * n**0.4)
    )
    for model in (total, parts):
        sizes = model.solve_size([10.0, 20.0], 64)
        assert sizes.shape == (2,)
        assert model.predict([64, 64], size=sizes) == pytest.approx([10.0, 20.0], rel=1e-8)


def test_size_range_holds_the_size_whose_interval_ends_at_the_time() -> None:
    rng = np.random.default_rng(2)
    frame = grid(lambda n, s: 1e-3 * s**1.3 / n**0.7 * np.exp(rng.normal(0, 0.05)))
    model = LogLogRegression(form="linear").fit(frame)
    size = model.solve_size(30.0, 64)
    low, high = model.size_range(30.0, 64)
    assert low < size < high
    assert model.predict_range(64, size=low)[1] == pytest.approx(30.0, rel=1e-6)
    assert model.predict_range(64, size=high)[0] == pytest.approx(30.0, rel=1e-6)


def test_a_size_that_time_does_not_depend_on_is_refused_or_graded() -> None:
    rng = np.random.default_rng(4)
    flat = grid(lambda n, s: 100 / n * np.exp(rng.normal(0, 0.05)))
    model = LogLogRegression(form="linear").fit(flat)
    remarks = model.size_reliability(5.0, 32)
    assert [(r.code, r.grade) for r in remarks] == [("size_effect", "unusable")]
    with pytest.raises(UndeterminedError):
        model.solve_size(5.0, 32, strict=True)
    falling = LogLogRegression(form="linear").fit(grid(lambda n, s: 100 / n / s**0.1))
    with pytest.raises(UndeterminedError, match="does not grow with size"):
        falling.solve_size(5.0, 32)
    constant = LogLogRegression().fit(grid(lambda n, s: s / n, sizes=(1e3,)))
    with pytest.raises(UndeterminedError, match="size was 1000 in every run"):
        constant.solve_size(5.0, 32)


def test_far_sizes_are_graded() -> None:
    model = LogLogRegression().fit(grid(lambda n, s: s / n))
    assert "far_input" in {r.code for r in model.size_reliability(1000.0, 64)}
    assert model.size_reliability(100.0, 32) == []


def test_two_points_give_a_line_with_a_warning_and_a_range() -> None:
    model = LogLogRegression(()).fit_arrays([4, 16], [100.0, 30.0])
    assert model.predict(64) == pytest.approx(9.0)
    low, high = model.predict_range(64)
    assert low < 9.0 < high
    assert codes(model, 64)["no_freedom"] == "warning"


def test_errors_beyond_any_float_are_large_and_finite():
    # A held-out count so far off that 2^|e| would overflow: the form is chosen all the same.
    runs = pd.DataFrame(
        {"nprocs": [1e2, 3.0, 1e9, 4.0, 16.0], "runtime": [4e-5, 4e-4, 1.6e7, 4e-6, 7e6]}
    )
    predicted = LogLogRegression().fit(runs).predict([1, 1e6, 3e8])
    assert np.isfinite(predicted).all()
    assert (predicted > 0).all()


def test_a_clean_split_is_considered_where_the_other_asks_for_one() -> None:
    """By the slowest process computation is 80 %, along the critical path 95 %."""
    counts = np.repeat([2.0, 4.0, 8.0, 16.0, 32.0], 2)
    rng = np.random.default_rng(2)
    runtime = 100.0 / counts
    share = 0.8 * rng.lognormal(0.0, 0.05, counts.size)
    frame = pd.DataFrame({"nprocs": counts, "runtime": runtime})
    frame["computation"], frame["communication"] = share * runtime, (1.0 - share) * runtime
    noisy = LogLogRegression().fit(frame)
    assert noisy.split_ == "max"
    frame["computation_cp"], frame["communication_cp"] = 0.95 * runtime, 0.05 * runtime
    clean = LogLogRegression().fit(frame)
    assert clean.split_ == "cp"
    assert clean.rmse_ < noisy.rmse_
    only = frame.drop(columns=["computation", "communication"])
    assert LogLogRegression().fit(only).split_ == "total"
