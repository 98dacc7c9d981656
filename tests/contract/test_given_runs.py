"""What predictors were given, from the command line: in every summary, and below the table."""

import json

from sim.given import given_line

TOY = ("workload.jobs=40", "workload.applications=4", "cluster.processors=64")


def test_run_and_baseline_say_it_in_their_summaries_and_below_the_table(command, tmp_path):
    ended = command(*TOY, "hydra.run.dir=run")
    run, base = (
        json.loads((tmp_path / place / "summary.json").read_text())
        for place in ("run", "run/baseline")
    )
    assert (run["given_runs"], base["given_runs"]) == (12, 0)
    assert " ".join(f"The predictor was given: {given_line(run)}.".split()) in " ".join(
        ended.out.split()
    )
    assert "their cost is the run's" in " ".join(ended.out.split())


def test_a_run_as_before_is_free_and_its_baseline_the_same(command, tmp_path):
    command(*TOY, "experiment=as_before", "hydra.run.dir=run")
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["given_charged"] is False
    assert summary["given_runs"] == 12
