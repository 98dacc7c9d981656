"""The consensus: its rule, its range, its memory, and what it does with few runs."""

import inspect
import re

import numpy as np
import pandas as pd
import pytest

from predictors.consensus.combination import Consensus, ErrorMemory
from predictors.consensus.member_kernels import BASE, BEND, REACH, weighted_median
from predictors.errors import NotFittedError, PredictorError, UndeterminedError

pytestmark = pytest.mark.fast

CURVE = pd.DataFrame({"nprocs": [4, 8, 16, 32], "runtime": [104.0, 55.0, 29.5, 17.6]})


def with_sizes(exponent: float = 1.3) -> pd.DataFrame:
    rows = [(n, s, 1e-2 * s**exponent / n**0.8) for n in (2, 4, 8, 16) for s in (1e3, 2e3, 4e3)]
    return pd.DataFrame(rows, columns=["nprocs", "size", "runtime"])


def test_weighted_median_is_the_middle_of_the_weight() -> None:
    values = np.array([[1.0, 5.0], [2.0, 1.0], [9.0, 3.0]])
    assert weighted_median(values, np.ones(3)).tolist() == [2.0, 3.0]
    assert weighted_median(values, np.array([1.0, 1.0, 4.0])).tolist() == [9.0, 3.0]
    assert weighted_median(np.array([[1.0], [3.0]]), np.ones(2)).tolist() == [2.0]


def test_one_method_going_astray_does_not_move_it() -> None:
    model = Consensus().fit(CURVE)
    members = sorted(row.item() for row in model.member_predictions([256]).values())
    assert len(members) == 3
    assert model.predict([256]).item() == pytest.approx(members[1])


def test_a_law_that_can_rise_answers_where_the_runtime_rises() -> None:
    falls, rises = Consensus().fit(CURVE), Consensus().fit_arrays([2, 4, 8], [10.0, 7.0, 7.2])
    assert set(falls.members_.methods) == {"amdahl", "linear", "quadratic"}
    assert set(rises.members_.methods) == {"usl", "linear", "quadratic"}
    assert rises.predict([16]).item() > 6.0


def test_from_one_observation_scaling_is_ideal_and_not_to_be_trusted() -> None:
    model = Consensus().fit_arrays([16], [100.0])
    assert model.predict([16]) == pytest.approx([100.0])
    assert model.predict([64]) == pytest.approx([25.0])
    low, high = model.predict_range([64])
    assert low < model.predict([64]) < high
    found = model.reliability([64])
    assert {"few_points", "single_observation"} <= {r.code for r in found}
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


def test_ranges_reach_farther_up_than_down_and_farther_with_fewer_counts() -> None:
    exact = Consensus().fit_arrays([1, 2, 4], [80.0, 40.0, 20.0])
    low, high = (end.item() for end in exact.predict_range([8]))
    above = BASE + REACH * np.log(2.0)
    assert (low, high) == pytest.approx((10.0 * np.exp(-BASE), 10.0 * np.exp(above)), rel=1e-6)
    for counts, few in (([2, 4], 1.5), ([1, 2, 4, 8], 0.75)):
        model = Consensus().fit_arrays(counts, [80.0 / n for n in counts])
        low = model.predict_range([2 * counts[-1]])[0].item()
        assert np.log(40.0 / counts[-1] / low) == pytest.approx(BASE * np.sqrt(few), rel=1e-6)


def test_ranges_reach_up_by_the_distance_of_methods_and_where_runs_flatten() -> None:
    model = Consensus().fit_arrays([1, 2, 4], [100.0, 50.0, 40.0])
    says = np.log([row.item() for row in model.member_predictions([8]).values()])
    apart = np.sort(np.abs(says - np.median(says)))[1]
    bend = 1.0 - np.log(50 / 40) / np.log(2.0)
    low, high = (end.item() for end in model.predict_range([8]))
    said = model.predict([8]).item()
    assert np.log(said / low) == pytest.approx(BASE + apart)
    assert np.log(high / said) == pytest.approx(BASE + apart + (REACH + BEND * bend) * np.log(2.0))


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


def test_ranges_are_graded_by_their_width_and_say_where_to_measure() -> None:
    assert not Consensus().fit_arrays([1, 2, 4], [80.0, 40.0, 20.0]).reliability([8])
    grades = {}
    for middle, last in ((80.0, 20.0), (51.0, 33.0), (51.0, 45.0)):
        model = Consensus().fit_arrays([1, 2, 4], [100.0, middle, last])
        (found,) = (r for r in model.reliability([8]) if r.code == "wide_range")
        assert (found.target, found.measure_at) == (8.0, 6)
        grades[middle, last] = found.grade
    assert list(grades.values()) == ["note", "warning", "unusable"]


def test_a_wide_range_is_graded_for_its_distance() -> None:
    model = Consensus().fit_arrays([1, 2, 4], [90.0, 45.0, 20.0])
    for target, doublings in ((8.0, 1.0), (16.0, 2.0)):
        low, high = (end.item() for end in model.predict_range([target]))
        least = {"": 0.0, "note": 0.7, "warning": 0.9, "unusable": 1.2}
        wide = np.log(high / low) / np.sqrt(doublings)
        graded = [r.grade for r in model.reliability([target]) if r.code == "wide_range"]
        assert (graded or [""])[0] == [g for g in least if wide > least[g]][-1], (wide, graded)


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
    with pytest.raises(PredictorError, match=r"lack the columns \['runtime'\]"):
        Consensus().fit(CURVE[["nprocs"]])
    model = Consensus().fit(with_sizes())
    with pytest.raises(PredictorError, match="missing \\['size'\\]"):
        model.predict([4])
    with pytest.raises(PredictorError, match="level must be between 0 and 1"):
        model.predict_range([4], level=1.0, size=1e3)


def test_it_is_explained_in_a_few_sentences() -> None:
    explanation = inspect.getdoc(Consensus).split("Parameters")[0].split("\n\n")[1]
    assert len(re.findall(r"\.(?:\s|$)", explanation)) == 3


@pytest.mark.parametrize("size", [None, 7.0])
def test_runs_that_are_left_out_as_outliers_leave_the_others(size):
    runs = pd.DataFrame({"nprocs": [1, 1, 1, 1, 2, 4], "runtime": [100, 101, 99, 700, 52, 29]})
    if size is not None:
        runs["size"] = size
    without = runs[runs["runtime"] < 700]
    given = {} if size is None else {"size": np.full(1, size)}
    told, known = (Consensus().fit(one).predict([8], **given)[0] for one in (runs, without))
    assert told == pytest.approx(known)
