"""The study of what recommendations rest on, at toy size."""

import json

import pytest
from swf_samples import job_line, write_log

from scripts import study_given
from sim.report.answers import differences
from sim.report.samples import Group, Sample

TOY = ["workload.jobs=24", "cluster.processors=32"]


@pytest.fixture
def log(tmp_path):
    lines = [
        job_line(job_number=k, submit_time=20 * k, run_time=60 + k, requested_time=400,
                 user=k % 2, executable=k % 2, allocated_processors=4 + k % 9,
                 requested_processors=4 + k % 9)
        for k in range(1, 41)
    ]  # fmt: skip
    return write_log(tmp_path, "; MaxProcs: 32", *lines)


def test_every_setting_is_named_with_what_was_given_and_written(tmp_path, log, capsys):
    out = tmp_path / "results/sdsc.json"
    asked = ["sdsc", "--log", str(log), "--draws", "2", "--out", str(out), *TOY]
    study_given.main(asked)
    record = json.loads(out.read_text())
    assert [row["setting"] for row in record["rows"]] == list(study_given.SETTINGS)
    given = [row["given"] for row in record["rows"]]
    assert "free of charge" in given[0]
    assert "charged" in given[1]
    assert all("no runs before the start" in one for one in given[2:])
    assert "recorded applications" in given[3]
    assert "(a job each)" in given[4]
    assert len({row["former"] for row in record["rows"]}) == 1
    assert str(tmp_path) not in out.read_text()
    shown = capsys.readouterr().out
    assert shown.count("\n| ") == 2 + len(study_given.SETTINGS) - 1


def test_models_have_no_recorded_applications():
    rows = study_given.study(study_given.PLACES["lublin"], 2, TOY)
    assert [row["setting"] for row in rows] == list(study_given.SETTINGS)[:3]
    assert rows[0]["former"] == rows[0]["recommended"]
    assert rows[0]["former_change"] == rows[0]["recommended_change"]


def fabricated(policy, predictor, responses):
    drawn = [
        Sample(None, f"seed={k}", {"seed": k, "mean_response_time": r})
        for k, r in enumerate(responses)
    ]
    return Group({"policy": policy, "predictor": predictor}, "run", drawn)


def test_a_recommendation_survives_if_it_is_certain_and_better():
    rigid = fabricated("easy", "user_estimate", (100.0, 110.0, 120.0))
    better = fabricated("sa", "adept", (50.0, 56.0, 59.0))
    worse = fabricated("sa", "amdahl", (150.0, 166.0, 179.0))
    unsure = fabricated("efficiency", "adept", (20.0, 300.0, 60.0))
    truth = fabricated("sa", "oracle", (10.0, 11.0, 12.0))
    found = differences([rigid, better, worse, unsure, truth], against="easy, user_estimate")
    lasting = {one.group.label: study_given.survives(one) for one in found}
    assert lasting == {
        "sa, adept": True, "sa, amdahl": False, "efficiency, adept": False, "sa, oracle": True
    }  # fmt: skip
    assert study_given.best_of(found).group is better
