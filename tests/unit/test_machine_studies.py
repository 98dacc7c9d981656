"""The studies of whole machines behind docs/shared.md and docs/dynamic.md, at toy size."""

import numpy as np
import pytest

from predictors.dynamic import Dynamic
from predictors.user_estimate import UserEstimate
from scripts import study_ends, study_evolving, study_shared
from sim.view import Run


def first_number(text):
    return float(text.split(" ± ")[0])


def test_naming_fast_processors_shortens_the_typical_job(monkeypatch):
    monkeypatch.setattr(study_shared, "KNOWN", {"oracle": ["cluster.belief=oracle"]})
    monkeypatch.setattr(study_shared, "GIVEN", [])
    small = ["workload.jobs=40", "workload.applications=4", "predictor=oracle"]  # placement alone
    (found,) = study_shared.rows("bursts", "medium", 3, ["easy_fastest"], small)
    assert found[:4] == ("bursts", "medium", "easy_fastest", "oracle")
    assert first_number(found[6]) < 0.0
    assert first_number(found[7]) == first_number(found[8]) == 0.0


def test_changes_are_paired_by_seed_and_by_job():
    blind = [np.array([100.0, 1.0]), np.array([10.0, 10.0])]
    aware = [np.array([50.0, 1.0]), np.array([5.0, 10.0])]
    means, typical = study_shared.changes(aware, blind)
    assert first_number(means) == round(100 * (np.sqrt(51 / 101 * 0.75) - 1), 1)
    assert typical == f"{100 * (np.sqrt(0.5) - 1):.1f} ± 0.0"


def test_errors_are_sorted_by_count_and_length(monkeypatch):
    known = {"mean": ["cluster.belief=mean", "predictor=oracle"]}
    monkeypatch.setattr(study_shared, "KNOWN", known)
    small = ["workload.jobs=40", "workload.applications=4"]
    found = list(study_shared.by_count_and_length("rounds", "light", 1, ["sa_easy"], small))
    assert [row[4] for row in found] == ["1 to 1", "2 to 4", "5 to 16", "17 to 64"]
    numbers = [int(cell.split("(")[1][:-1]) for row in found for cell in row[5:]]
    assert sum(numbers) == 40


def test_errors_are_told_apart_by_who_decided(monkeypatch):
    known = {
        "no curve": ["predictor=user_estimate"],
        "exact": ["predictor=oracle", "cluster.belief=oracle"],
    }
    monkeypatch.setattr(study_shared, "KNOWN", known)
    small = ["workload.jobs=40", "workload.applications=4"]
    user, exact = study_shared.by_request("rounds", "light", 1, ["easy_fastest"], small)
    assert user[5] == "40 of 40"
    assert float(user[6]) == pytest.approx(float(user[4]), abs=0.6) != 0.0
    assert user[7:] == ("–", "–", "–")
    assert exact[4:] == ("0.0", "0 of 40", "–", "0.0", "0.0", "0.0")


@pytest.mark.parametrize(("belief", "moves"), [("oracle", False), ("last", True)])
def test_predicting_again_changes_nothing_where_all_was_known(monkeypatch, belief, moves):
    monkeypatch.setattr(study_shared, "GIVEN", [])
    small = [
        "workload.jobs=60",
        "workload.load=0.6",
        "predictor=oracle",
        f"cluster.belief={belief}",
    ]
    (found,) = study_shared.by_renewal("rounds", "heavy", 2, ["easy_fastest"], small)
    assert found[:3] == ("rounds", "heavy", "easy_fastest")
    assert (float(found[6]) > 0) == moves
    if not moves:
        assert found[4:6] == ("0.0 ± 0.0", "0.0 ± 0.0")


def test_a_job_that_stops_in_time_loses_less_than_one_that_is_killed():
    ways = dict(study_evolving.WAYS["walltime"]["limit of two hours"])
    del ways["killed for good"]
    killed, stopped = study_evolving.rows("walltime", ways, 2, ["workload.jobs=40"])
    assert float(stopped[4]) < 0.5 * float(killed[4])
    assert float(stopped[6]) <= float(killed[6])
    assert (killed[2], killed[3]) == ("", "")


@pytest.mark.parametrize("preset", ["better_ends", "ill_nodes"])
def test_every_way_of_the_other_studies_runs(preset):
    for ways in study_evolving.WAYS[preset].values():
        found = study_evolving.rows(preset, ways, 1, ["workload.jobs=8"])
        assert [row[0] for row in found] == list(ways)


def test_ends_move_one_way_only_if_asked_and_need_no_cycles_if_exact():
    moved = []
    for ends in ("earlier", "later"):
        kind = study_ends.renewal(ends, np.zeros(1))
        mine = kind(Dynamic(UserEstimate()), None, None, lambda run, end: moved.append(end))
        for end in (50.0, 150.0):
            mine._move(Run(0, 0, ((0, 0),), 1, 0.0, 100.0), end)
    assert moved == [50.0, 150.0]


def test_all_pairs_of_beliefs_run_and_exact_ones_are_those_of_the_oracle():
    table = {row[:2]: row[2:] for row in study_ends.rows(1, ["workload.jobs=60"])}
    assert list(table) == list(study_ends.WAYS)
    plain = study_ends.run("renewed", ["predictor=oracle", "workload.jobs=60", "seed=1"])
    exact = ["predictor=dynamic", study_ends.EXACT_BEFORE, "workload.jobs=60", "seed=1"]
    assert study_ends.run("exact", exact).response.tolist() == plain.response.tolist()
    asked = ["predictor=user_estimate", "workload.jobs=60", "seed=1"]
    same = ["predictor=dynamic", "workload.jobs=60", "seed=1"]
    expected = study_ends.run("renewed", asked).response.tolist()
    assert study_ends.run("requested", same).response.tolist() == expected


def test_jobs_that_outgrow_their_memory_end_sooner_where_they_get_more_processors():
    ways = study_evolving.WAYS["more_processors"]["easy"]
    some = {name: ways[name] for name in ("easy, refused", "easy, at once or later")}
    few = ["workload.jobs=40", "workload.load=0.1"]  # so few that hardly one waits for another
    refused, later = study_evolving.rows("more_processors", some, 1, few)
    assert float(refused[8]) == 0.0
    assert float(later[8]) > 50.0
    assert float(later[9]) < float(refused[9])
    assert float(later[2]) < -20.0


def test_jobs_that_get_a_longer_limit_stop_less_often():
    ways = study_evolving.WAYS["longer_limits"]["easy"]
    some = {name: ways[name] for name in ("stops in time, asks nothing", "asks, at once or later")}
    silent, asking = study_evolving.rows("longer_limits", some, 1, ["workload.jobs=40"])
    assert silent[7:] == ("", "", "")
    assert float(asking[5]) < float(silent[5])
    assert float(asking[8]) > 50.0
