"""The consensus: its rule, its range, its memory, and what it does with few runs."""

import inspect
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from predictors.consensus.combination import RANGES, RULE, Consensus
from predictors.consensus.weighting import ErrorMemory, damped_growth, weighted_median
from predictors.errors import NotFittedError, PredictorError, UndeterminedError

pytestmark = pytest.mark.fast

CURVE = pd.DataFrame({"nprocs": [4, 8, 16, 32], "runtime": [104.0, 55.0, 29.5, 17.6]})


def with_sizes(exponent: float = 1.3) -> pd.DataFrame:
    rows = [(n, s, 1e-2 * s**exponent / n**0.8) for n in (2, 4, 8, 16) for s in (1e3, 2e3, 4e3)]
    return pd.DataFrame(rows, columns=["nprocs", "size", "runtime"])


def weights(*values: float, targets: int = 1) -> np.ndarray:
    return np.repeat(np.array(values, float)[:, None], targets, axis=1)


def test_weighted_median_is_the_middle_of_the_weight() -> None:
    values = np.array([[1.0, 5.0], [2.0, 1.0], [9.0, 3.0]])
    assert weighted_median(values, weights(1, 1, 1, targets=2)).tolist() == [2.0, 3.0]
    assert weighted_median(values, weights(1, 1, 4, targets=2)).tolist() == [9.0, 3.0]
    assert weighted_median(np.array([[1.0], [3.0]]), weights(1, 1)).tolist() == [2.0]


def test_one_method_going_astray_moves_it_little() -> None:
    growth = np.log(np.array([[0.5], [0.52], [0.55], [0.5], [0.51]]))
    distance = np.log(np.array([2.0]))
    usual = damped_growth(RULE, growth, distance, weights(1, 1, 1, 1, 1), None, 9.0)
    growth[1] = 50.0
    astray = damped_growth(RULE, growth, distance, weights(1, 1, 1, 1, 1), None, 9.0)
    assert abs(astray[0] - usual[0]) < 0.06


def test_exponents_are_kept_within_what_is_seen() -> None:
    growth, distance = np.array([[5.0], [5.0]]), np.log(np.array([4.0]))
    rule = replace(RULE, typical_information=0.0)
    found = damped_growth(rule, growth, distance, weights(1, 1), None, 1.0)
    assert found / distance == pytest.approx([RULE.flattest])
    found = damped_growth(rule, -growth, distance, weights(1, 1), None, 1.0)
    assert found / distance == pytest.approx([RULE.steepest])
    below = damped_growth(rule, growth, -distance, weights(1, 1), None, 1.0)
    assert below / -distance == pytest.approx([RULE.steepest])


@pytest.mark.parametrize(("share", "exponent"), [(0.0, -0.9), (1.0, -0.7), (0.25, -0.85)])
def test_the_mean_has_its_share_of_limited_exponents(share: float, exponent: float) -> None:
    rule = replace(RULE, typical_information=0.0, mean_share=share, steepest=-1.0, flattest=0.0)
    distance = np.log(np.array([2.0]))
    growth = np.array([-0.9, -5.0, 3.0])[:, None] * distance
    found = damped_growth(rule, growth, distance, weights(2, 1, 1), None, 1.0)
    assert found / distance == pytest.approx([exponent])


def test_the_line_decides_more_the_farther_the_target() -> None:
    rule = replace(RULE, typical_information=0.0, mean_share=0.0)
    distance = np.log(np.array([2.0, 8.0]))
    growth = np.array([-1.0, -0.2, -0.2])[:, None] * distance
    found = damped_growth(rule, growth, distance, weights(1, 1, 1, targets=2), 0, 1.0)
    share = (found / distance + 0.2) / -0.8
    assert share == pytest.approx(1 - np.exp(-RULE.line_rate * distance))


def test_from_one_observation_it_leans_to_the_typical_growth() -> None:
    model = Consensus().fit_arrays([16], [100.0])
    assert model.predict([16]) == pytest.approx([100.0])
    assert model.predict([64]) == pytest.approx([100.0 * 4.0**RULE.typical_exponent])
    low, high = model.predict_range([64])
    assert low < model.predict([64]) < high
    found = model.reliability([64])
    assert "few_points" in {r.code for r in found}
    assert any(r.measure_at for r in found)


def test_from_two_observations_on_the_line_counts() -> None:
    model = Consensus().fit_arrays([8, 32], [100.0, 25.0])
    assert "linear" in model.members_.methods
    assert "quadratic" not in model.members_.methods
    assert model.predict([128])[0] == pytest.approx(6.25, rel=0.05)


def test_ideal_scaling_is_predicted_as_such() -> None:
    model = Consensus().fit_arrays([1, 2, 4, 8], [80.0, 40.0, 20.0, 10.0])
    assert model.predict([16, 32]) == pytest.approx([5.0, 2.5], rel=0.02)


def test_it_is_continuous_at_the_ends_of_the_measurements() -> None:
    model = Consensus().fit(CURVE)
    for end in (4.0, 32.0):
        below, at, above = model.predict([end * 0.9999, end, end * 1.0001])
        assert below == pytest.approx(at, rel=1e-3)
        assert above == pytest.approx(at, rel=1e-3)


def test_ranges_hold_the_prediction_and_widen_with_level_and_distance() -> None:
    model = Consensus().fit(CURVE)
    middle = model.predict([8, 64, 512])
    narrow, wide = model.predict_range([8, 64, 512], 0.5), model.predict_range([8, 64, 512], 0.9)
    assert (wide[0] < narrow[0]).all()
    assert (narrow[0] <= middle).all()
    assert (middle <= narrow[1]).all()
    assert (narrow[1] < wide[1]).all()
    width = wide[1] / wide[0]
    assert width[0] < width[1] < width[2]


def test_range_model_follows_its_table() -> None:
    low, high = RANGES.ends(0.8)
    place = RANGES.levels.index(0.1)
    assert low == pytest.approx(RANGES.quantiles[place])
    assert high == pytest.approx(RANGES.quantiles[RANGES.levels.index(0.9)])
    scale = RANGES.scale(3, np.array([0.0, 1.0]), np.array([0.0, 0.2]))
    assert scale[0] == pytest.approx(RANGES.base[2])
    assert scale[1] == pytest.approx(RANGES.base[2] + RANGES.reach[2] + 0.2 * RANGES.disagreement)


def test_where_sizes_vary_focused_regression_joins_and_all_agree_on_a_power_law() -> None:
    model = Consensus().fit(with_sizes())
    assert "focused" in model.members_.methods
    members = model.member_predictions([32], size=8e3)
    truth = 1e-2 * 8e3**1.3 / 32**0.8
    assert members["linear"] == pytest.approx([truth], rel=1e-6)
    assert members["focused"] == pytest.approx([truth], rel=1e-6)
    assert model.predict([32], size=8e3) == pytest.approx([truth], rel=0.05)
    assert model.predict([8, 8], size=[1e3, 4e3])[1] / model.predict(8, size=1e3) == pytest.approx(
        4**1.3, rel=0.02
    )


def test_curve_methods_see_times_brought_to_one_size() -> None:
    rows = [(2, 1e3), (4, 3e3), (8, 1e3), (16, 3e3), (16, 1e3)]
    frame = pd.DataFrame(rows, columns=["nprocs", "size"]).astype(float)
    frame["runtime"] = frame["size"] ** 1.5 / frame["nprocs"]
    model = Consensus().fit(frame)
    for name, predicted in model.member_predictions([32], size=2e3).items():
        assert predicted == pytest.approx([2e3**1.5 / 32], rel=0.02), name


def test_sizes_that_grow_with_counts_are_taken_as_proportional_with_a_warning() -> None:
    frame = pd.DataFrame({"nprocs": [2, 4, 8], "size": [2e3, 4e3, 8e3], "runtime": [9.0, 9.5, 10]})
    model = Consensus().fit(frame)
    codes = {r.code: r.grade for r in model.reliability([16], size=16e3)}
    assert codes["inputs_not_told_apart"] == "warning"
    assert 7.0 < model.predict([16], size=16e3)[0] < 14.0
    assert model.predict([8], size=16e3) == pytest.approx(2 * model.predict([8], size=8e3))


def test_a_size_never_varied_is_graded() -> None:
    model = Consensus().fit(CURVE.assign(size=5.0))
    assert np.isfinite(model.predict([64], size=5.0)).all()
    assert ("unusable", "constant_input") in {
        (r.grade, r.code) for r in model.reliability([64], size=9.0)
    }
    with pytest.raises(UndeterminedError):
        model.predict([64], size=9.0, strict=True)


def test_memory_moves_weight_to_the_method_that_has_been_right() -> None:
    memory = ErrorMemory()
    model = Consensus(memory=memory, application="cfd").fit(CURVE)
    members = model.member_predictions([256])
    favourite = max(members, key=lambda name: members[name][0])
    truth = float(members[favourite][0])
    before = abs(np.log(model.predict([256])[0] / truth))
    for _ in range(30):
        memory.record("cfd", model.member_errors(256, truth))
    after = abs(np.log(model.predict([256])[0] / truth))
    assert after < 0.7 * before
    here, elsewhere = memory.expected_errors("cfd"), memory.expected_errors("other")
    assert here[favourite] < elsewhere[favourite] < 0.2
    assert memory.multipliers("cfd")[favourite] > 1.0


def test_memory_fades_and_keeps_applications_apart() -> None:
    memory = ErrorMemory()
    assert memory.multipliers("a") == {}
    for _ in range(10):
        memory.record("a", {"x": 0.5, "y": 0.1})
        memory.record("b", {"x": 0.1, "y": 0.5})
    assert memory.expected_errors("a")["x"] > memory.expected_errors("b")["x"]
    for _ in range(30):
        memory.record("a", {"x": 0.0, "y": 0.5})
    assert memory.multipliers("a")["x"] > 1.0 > memory.multipliers("a")["y"]
    assert all(0.25 <= f <= 4.0 for f in memory.multipliers("a").values())
    with pytest.raises(PredictorError, match="error of x on 'a' is NaN"):
        memory.record("a", {"x": float("nan")})


def test_member_errors_are_log_ratios() -> None:
    model = Consensus().fit(CURVE)
    members = model.member_predictions([64])
    errors = model.member_errors(64, 10.0)
    assert errors == pytest.approx({k: np.log(v[0] / 10.0) for k, v in members.items()})
    with pytest.raises(PredictorError, match="must be positive"):
        model.member_errors(64, 0.0)


def test_wide_ranges_say_where_to_measure() -> None:
    steep = Consensus().fit_arrays([1, 2, 4], [100.0, 52.0, 49.0])
    wide = [r for r in steep.reliability([64]) if r.code == "wide_range"]
    assert wide
    assert wide[0].target == 64.0
    assert wide[0].measure_at == 16
    assert "wide_range" not in {r.code for r in Consensus().fit(CURVE).reliability([16])}


def test_units_of_time_only_rescale_and_rows_may_come_in_any_order() -> None:
    plain = Consensus().fit(CURVE).predict([2, 16, 100])
    shuffled = CURVE.sample(frac=1.0, random_state=3).assign(runtime=lambda f: 60 * f["runtime"])
    assert Consensus().fit(shuffled).predict([2, 16, 100]) == pytest.approx(60 * plain, rel=1e-6)


def test_shapes_and_single_targets() -> None:
    model = Consensus().fit(CURVE)
    assert model.predict(64).shape == ()
    assert model.predict([[16, 32], [64, 128]]).shape == (2, 2)
    many = model.predict(np.arange(1, 200))
    assert np.isfinite(many).all()
    assert (many > 0).all()


def test_errors_name_what_is_wrong() -> None:
    with pytest.raises(NotFittedError):
        Consensus().predict([4])
    with pytest.raises(PredictorError, match="runtime in row 1 is -2"):
        Consensus().fit_arrays([4, 8], [3.0, -2.0])
    with pytest.raises(PredictorError, match=r"lack the column\(s\) \['runtime'\]"):
        Consensus().fit(CURVE[["nprocs"]])
    model = Consensus().fit(with_sizes())
    with pytest.raises(PredictorError, match="missing \\['size'\\]"):
        model.predict([4])
    with pytest.raises(PredictorError, match="level must be between 0 and 1"):
        model.predict_range([4], level=1.0, size=1e3)


def test_it_is_explained_in_a_few_sentences() -> None:
    explanation = inspect.getdoc(Consensus).split("Parameters")[0].split("\n\n")[1]
    assert len(re.findall(r"\.(?:\s|$)", explanation)) == 3
