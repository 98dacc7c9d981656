"""Focused regression: the focal region, its weights, influence and parts."""

import numpy as np
import pandas as pd
import pytest

from predictors.errors import PredictorError, UndeterminedError
from predictors.regression.garren import (
    FocusedRegression,
    distance_weights,
    within_bands,
    within_time,
)
from predictors.regression.loglog_kernels import region

LEVELS = (16, 32, 64, 128, 256)


def bent(nprocs: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return times with a cache step far below 100 s: a power law near 100 s only."""
    seconds = 1e-3 * size**1.1 / nprocs
    return np.where(seconds < 40.0, 0.4 * seconds, seconds)


def complete_set() -> pd.DataFrame:
    rows = [(n, n * per) for n in LEVELS for per in (3e3, 1e4, 2e4, 4e4, 6e4, 8e4)]
    frame = pd.DataFrame(rows, columns=["nprocs", "size"]).astype(float)
    frame["runtime"] = bent(frame["nprocs"].to_numpy(), frame["size"].to_numpy())
    return frame


def codes(model: FocusedRegression, nprocs: float, **inputs: float) -> dict[str, str]:
    return {r.code: r.grade for r in model.reliability([nprocs], **inputs)}


def test_focal_region_holds_what_the_complete_set_hides() -> None:
    frame = complete_set()
    complete = FocusedRegression().fit(frame)
    focused = FocusedRegression(focal_time=100.0, tolerance=0.8).fit(frame)
    assert focused.coefficients_ == pytest.approx([np.log2(1e-3), -1.0, 1.1], rel=1e-9)
    truth = bent(np.array([512.0]), np.array([1.5e7]))
    assert focused.predict([512], size=1.5e7) == pytest.approx(truth, rel=1e-9)
    assert abs(complete.predict([512], size=1.5e7) / truth - 1) > 0.02
    assert complete.runs_.rows == 30
    assert focused.runs_.rows == focused.region_.rows.sum() < 30


def test_region_is_the_rows_within_the_tolerance_in_log2() -> None:
    log_time = np.log2([60.0, 80.0, 100.0, 123.0, 124.0])
    assert within_time(log_time, 100.0, 0.3).tolist() == [False, False, True, True, False]


def test_region_widens_by_tenths_until_three_rows_more_than_coefficients() -> None:
    log_time = np.log2(100.0) + np.array([0.0, 0.05, 0.35, 0.42, 0.55, 0.9, 2.0])
    log_q = np.array([4.0, 5.0, 4.0, 5.0, 6.0, 4.0, 5.0])
    rows, half_width, widened = region(log_q[None], log_time, float(np.log2(100.0)), 0.3)
    assert widened == 3
    assert half_width == pytest.approx(0.6)
    assert rows.sum() == 5
    frame = complete_set()
    model = FocusedRegression(focal_time=100.0, tolerance=0.02).fit(frame)
    assert model.region_.widened > 0
    assert codes(model, 512, size=1e7)["focus_widened"] == "warning"


def test_region_widens_past_runs_whose_sizes_follow_their_counts() -> None:
    levels = np.repeat([16.0, 32.0, 64.0], 3)
    size = levels * np.tile([50.0, 100.0, 220.0], 3)
    frame = pd.DataFrame({"nprocs": levels, "size": size, "runtime": size / levels})
    frame = pd.concat([frame] * 2, ignore_index=True)  # six runs of exactly 100 s
    model = FocusedRegression(focal_time=100.0, tolerance=0.3).fit(frame)
    assert model.region_.half_width == pytest.approx(1.0)
    assert model.coefficients_ == pytest.approx([0.0, -1.0, 1.0], abs=1e-9)


def test_weights_are_one_at_the_focal_time_and_fall_with_distance() -> None:
    weights = distance_weights(np.log2([100.0, 200.0, 50.0, 400.0]), 100.0, 1.0)
    assert weights == pytest.approx([1.0, 0.5, 0.5, 0.2])


def test_weighted_focus_keeps_all_rows_and_comes_nearer_than_equal_weights() -> None:
    frame = complete_set()
    frame["runtime"] = 1e-3 * frame["size"] / frame["nprocs"]
    far = frame["runtime"] < 5.0
    frame.loc[far, "runtime"] *= 3.0
    weighted = FocusedRegression(focal_time=80.0, tolerance=0.3, focus="weights").fit(frame)
    complete = FocusedRegression().fit(frame)
    assert weighted.runs_.rows == len(frame)
    exponent = [abs(m.coefficients_[2] - 1.0) for m in (weighted, complete)]
    assert exponent[0] < 0.6 * exponent[1]


def test_condition_bands_are_in_log2_around_the_value() -> None:
    ratio = {"ratio": np.array([0.25, 0.5, 1.0, 2.0, 4.0])}
    assert within_bands(ratio, {"ratio": 1.0}, 1.0).tolist() == [False, True, True, True, False]
    assert within_bands(ratio, {"ratio": 4.0}, 0.0).tolist() == [False] * 4 + [True]


def test_condition_selects_training_runs_and_forecasts() -> None:
    frame = complete_set()
    frame["runtime"] = 1e-3 * frame["size"] / frame["nprocs"]
    odd = frame.assign(ratio=8.0, runtime=frame["runtime"] * frame["size"] ** 0.2)
    both = pd.concat([frame.assign(ratio=1.0), odd], ignore_index=True)
    model = FocusedRegression(condition={"ratio": 1.0}, band=1.0).fit(both)
    assert model.runs_.rows == len(frame)
    assert model.coefficients_[1:] == pytest.approx([-1.0, 1.0], rel=1e-9)
    with pytest.raises(PredictorError, match="no run meets the condition"):
        FocusedRegression(condition={"ratio": 1000.0}).fit(both)
    with pytest.raises(PredictorError, match="no such column"):
        FocusedRegression(condition={"shape": 1.0}).fit(both)


def test_influential_run_is_flagged_by_default_and_dropped_once_by_option() -> None:
    frame = complete_set()
    frame["runtime"] = 1e-3 * frame["size"] / frame["nprocs"]
    frame.loc[29, "runtime"] *= 3.0
    flagged = FocusedRegression().fit(frame)
    assert np.flatnonzero(flagged.influential_).tolist() == [29]
    assert codes(flagged, 512, size=1e7)["influential"] == "note"
    dropped = FocusedRegression(influence="drop").fit(frame)
    assert dropped.runs_.rows == 29
    assert dropped.coefficients_ == pytest.approx([np.log2(1e-3), -1.0, 1.0], rel=1e-8)


def test_parts_are_fitted_apart_above_half_communication_at_the_largest_count() -> None:
    def with_share(share: float) -> FocusedRegression:
        frame = complete_set()
        n, s = frame["nprocs"], frame["size"]
        computation = 1e-3 * s / n
        rate = share / (1 - share) / 256**0.5 * 1e-3 / 256
        frame["communication"] = rate * s * n**0.5
        frame["computation"] = computation
        frame["runtime"] = computation + frame["communication"]
        return FocusedRegression().fit(frame)

    apart = with_share(0.6)
    assert apart.choice_.split == "max"
    assert apart.model_.parts[0].fit.coefficients[1:] == pytest.approx([-1.0, 1.0])
    assert apart.model_.parts[1].fit.coefficients[1:] == pytest.approx([0.5, 1.0])
    assert with_share(0.4).choice_.split == "total"


def test_out_of_focus_predictions_are_flagged() -> None:
    model = FocusedRegression(focal_time=100.0).fit(complete_set())
    per_hundred = float(model.solve_size(100.0, 512))
    assert "out_of_focus" not in codes(model, 512, size=per_hundred)
    assert codes(model, 512, size=10 * per_hundred)["out_of_focus"] == "warning"


def test_plain_one_works_without_size_but_cannot_solve_for_it() -> None:
    frame = pd.DataFrame({"nprocs": [2, 4, 8, 16], "runtime": [8.0, 4.0, 2.0, 1.0]})
    model = FocusedRegression().fit(frame)
    assert model.predict([32]) == pytest.approx([0.5])
    with pytest.raises(UndeterminedError, match="no input named size"):
        model.solve_size(1.0, 32)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"focal_time": 0.0}, "focal_time must be positive"),
        ({"tolerance": -0.1}, "tolerance must be positive"),
        ({"influence": "ignore"}, "influence must be one of flag, drop"),
        ({"focus": "near"}, "focus must be one of region, weights"),
        ({"band": -1.0}, "band must not be negative"),
        ({"condition": {"ratio": 0.0}}, "value must be positive"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(PredictorError, match=message):
        FocusedRegression(**arguments).check_parameters()  # type: ignore[arg-type]


def test_one_condition_fixed_and_another_within_a_band() -> None:
    frame = complete_set()
    frame["shape"] = np.resize([1.0, 2.0, 4.0], len(frame))
    frame["code"] = np.resize([1.0, 1.0, 1.0, 3.0], len(frame))
    both = {"shape": 2.0, "code": 1.0}
    model = FocusedRegression(condition=both, band={"shape": 1.0}).fit(frame)
    assert model.runs_.rows == int((frame["code"] == 1.0).sum())
    narrow = FocusedRegression(condition=both, band={}).fit(frame)
    assert narrow.runs_.rows == int(((frame["code"] == 1.0) & (frame["shape"] == 2.0)).sum())
    with pytest.raises(PredictorError, match="band of colour: there is no such condition"):
        FocusedRegression(condition=both, band={"colour": 1.0}).fit(frame)


def test_it_checks_itself_within_its_runs_and_sizes_carry_all_remarks() -> None:
    frame = complete_set()
    frame["runtime"] *= np.where(frame["nprocs"] == frame["nprocs"].max(), 2.0, 1.0)
    model = FocusedRegression().fit(frame)
    target = 4.0 * frame["nprocs"].max()
    assert model.validation(target).error > 0.1
    codes = {remark.code for remark in model.size_reliability(100.0, target)}
    assert {"expected_error", "poor_fit"} <= codes
