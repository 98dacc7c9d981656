"""The study of exploring, at toy size."""

import pytest

from scripts import study_explore


@pytest.fixture(scope="module")
def found():
    return study_explore.study(["workload.jobs=120", "workload.applications=4"], 2)


def test_every_way_to_learn_is_played_at_every_load(found):
    names = {*study_explore.NAMES.values(), study_explore.ORACLE}
    assert {name for name, _ in found} == names
    assert {load for _, load in found} == {"0.5", "0.8"}
    assert all(len(runs) == 2 for runs in found.values())


def test_all_rows_of_a_load_replay_the_same_jobs(found):
    for load in ("0.5", "0.8"):
        bounds = [run["bound_makespan"] for run in found["never", load]]
        assert [run["bound_makespan"] for run in found["oracle", load]] == bounds


def test_calibration_is_charged_and_gives_curves_from_the_start(found):
    for run, free in zip(
        found["three calibration runs, charged", "0.8"], found["never", "0.8"], strict=True
    ):
        assert run["calibration_area"] > 0
        assert free["calibration_area"] == 0
        assert run["share_fitted_starts"] > free["share_fitted_starts"]


def test_the_table_has_a_row_for_each_way(found):
    lines = study_explore.table(found, "0.8")
    assert len(lines) == 2 + 5
    assert lines[2].startswith("| never | ")
    assert "%" in lines[3]
