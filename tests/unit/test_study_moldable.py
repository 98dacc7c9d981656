"""The study of published claims on moldable rules prints a table for each preset."""

import numpy as np
import pytest

from scripts import study_moldable
from scripts.composing import axes, settings
from scripts.study_moldable import REFERENCES, column_key, main


def table(capsys, *arguments, jobs=30):
    """Return the rows of what the study prints, as cells."""
    main([*arguments, "--replications", "2", "--jobs", str(jobs)])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture
def only(monkeypatch):
    """Let the study carry out only the settings that have a value."""

    def keep(value):
        def some(*asked):
            return (one for one in settings(*asked) if value in one.values())

        monkeypatch.setattr(study_moldable, "settings", some)

    return keep


def test_every_policy_of_a_preset_has_its_row_and_the_reference_its_level(capsys, only):
    only("0.5")
    rows = table(capsys, "one_fraction", "--reference", "aep")
    swept = list(settings("one_fraction"))
    policies = list(dict.fromkeys(one["policy"] for one in swept))
    assert rows[0] == ["rule", "serial part 0.5"]
    assert [row[0] for row in rows[2 : 2 + len(policies)]] == policies
    for row in rows[2 : 2 + len(policies)]:
        unit = " s" if row[0] == "aep" else "%"
        assert all(unit in cell and "[" in cell for cell in row[1:])
    assert all(float(cell.split()[0]) >= 1 for row in rows[-len(policies) :] for cell in row[1:])


@pytest.mark.parametrize("name", REFERENCES)
def test_the_reference_is_one_of_the_presets_policies(name):
    swept = axes(name)
    assert REFERENCES[name] in swept["policy"]
    assert set(swept) == {"policy", column_key(name)}


def test_queue_times_are_predicted_for_both_models(capsys):
    rows = table(capsys, "queue_time_prediction", jobs=200)
    assert [row[:2] for row in rows[2:]] == [
        [jobs, load] for jobs in ("lublin", "downey") for load in ("0.5", "0.6", "0.7")
    ]
    for row in rows[2:]:
        assert all(-1 <= float(cell.split()[0]) <= 1 for cell in row[2:])


def test_the_herd_says_what_jobs_get_and_what_becomes_of_the_first_adopters(capsys, only):
    only("0.9")
    rows = table(capsys, "herd", jobs=40)
    shares = ["0", "0.1", "0.5", "1"]
    assert [row[0] for row in rows if row[0] in shares] == 8 * shares
    begin = [row[0] for row in rows].index("mean processors")
    assert rows[begin + 2][1] == rows[rows.index(rows[begin], begin + 1) + 2][1]  # the requests
    begin = [row[0] for row in rows].index("the tenth that adopts first")
    assert set(rows[begin + 3][1:]) == {"+0 % [+0, +0]"}


def ratios(monkeypatch, name, policies, load, jobs, replications=5):
    """Return geometric means of mean responses over the first policy's, at one load of a preset."""

    def some(*asked):
        wanted = (one for one in settings(*asked) if one["workload.load"] == load)
        return [one for one in wanted if one["policy"] in policies]

    monkeypatch.setattr(study_moldable, "settings", some)
    jobs_of = [f"workload.jobs={jobs}"]
    if name != "molding_of_downey":
        jobs_of.append("workload.types=all")  # Lublin's model as published
    found = study_moldable.summaries(name, jobs_of, replications)
    response = {
        rule: study_moldable.column(runs, "mean_response_time") for (rule, _), runs in found.items()
    }
    first = response[policies[0]]
    return [float(np.exp(np.log(response[rule] / first).mean())) for rule in policies[1:]]


@pytest.mark.parametrize("load", ["0.8", "0.95"])
def test_iterative_before_fair_share_before_sa_on_one_menu(monkeypatch, load):
    fair, iterative = ratios(
        monkeypatch, "whole_queue", ["sa", "fair_share", "iterative"], load, 500
    )
    assert fair < 0.95
    assert iterative < 0.95 * fair


def test_rules_that_look_at_the_load_beat_fixed_sizes(monkeypatch):
    sa, scojo_p = ratios(monkeypatch, "molding_by_load", ["easy", "sa", "scojo_p"], "0.8", 300)
    assert max(sa, scojo_p) < 0.7


def test_the_order_of_sa_and_scojo_p_turns_with_the_load_on_downeys_workload(monkeypatch):
    at_light = ratios(monkeypatch, "molding_of_downey", ["sa", "scojo_p"], "0.5", 300)
    at_heavy = ratios(monkeypatch, "molding_of_downey", ["sa", "scojo_p"], "0.9", 1000)
    assert at_light[0] > 1.03
    assert at_heavy[0] < 0.95
