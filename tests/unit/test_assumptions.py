"""Which other assumption changes the outcome of a run most."""

from math import log

import pytest

import sim
from sim.composition import compose, configuration
from sim.errors import ConfigError
from sim.results.sentences import rests_sentence
from sim.simulation import assumptions, replay

JOBS = "workload.jobs=150"


def changed(*overrides: str) -> float:
    """Return the change of the mean response of a run against its baseline."""
    run = sim.run(JOBS, *overrides)
    assert run.baseline is not None
    own, base = (one.summary["mean_response_time"] for one in (run, run.baseline))
    return float(own / base - 1)


def test_the_assumption_that_is_named_changes_the_outcome_most_as_its_own_run_says() -> None:
    run = sim.run(JOBS, "sim.assumptions=true")
    usual = changed()
    found = {
        "requests independent of the curves": changed("moldability.requests=independent"),
        "efficiencies of 0.5 in the median at the request": changed("moldability.efficiency=0.5"),
        "efficiencies of 0.8 in the median at the request": changed("moldability.efficiency=0.8"),
        "hidden sizes": changed("workload.size=hidden"),
        "exact requested times": changed("workload.estimates=exact"),
        "half as many moldable jobs": changed("moldability.share=0.5"),
        "curves by Amdahl's law": changed("moldability=amdahl"),
    }
    most = max(found, key=lambda name: abs(log((1 + found[name]) / (1 + usual))))
    assert run.summary["assumption"] == most
    assert run.summary["assumption_change"] == pytest.approx(found[most], abs=1e-12)


def test_what_is_assumed_already_is_no_other_assumption() -> None:
    asked = ["moldability=amdahl", "moldability.efficiency=0.5", "workload.size=hidden"]
    names = [name for name, _ in assumptions.others(configuration(asked))]
    assert names == [
        "requests independent of the curves",
        "efficiencies of 0.8 in the median at the request",
        "exact requested times",
        "half as many moldable jobs",
    ]


def test_a_queue_that_does_not_settle_under_another_assumption_changes_it_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = {"as assumed": -0.2, "one": -3.0, "two": None}
    monkeypatch.setattr(assumptions, "others", lambda _: [("one", {}), ("two", {})])
    monkeypatch.setattr(assumptions, "change", lambda config, messages, name: found[name])
    figures = assumptions.decisive({})
    assert figures == {"assumption": "two", "assumption_change": None}
    said = rests_sentence({"given_runs": 0, **figures})
    assert said.endswith("Under one other assumption tried (two) a queue does not settle.")
    found["as assumed"] = None
    assert assumptions.decisive({}) == {}


@pytest.mark.fast
def test_without_a_baseline_nothing_changes() -> None:
    with pytest.raises(ConfigError, match="needs a baseline"):
        sim.run(JOBS, "sim.assumptions=true", "baseline=null")


def test_easy_plus_beside_a_run_is_the_preset() -> None:
    of_run, preset = (
        compose([f"policy={name}", "predictor=user_estimate"]).settings
        for name in ("sa_easy", "easy_plus")
    )
    found = replay.easy_plus_of(of_run)
    assert found is not None
    assert found["policy"] == preset["policy"]
    assert replay.easy_plus_of(preset) is None


def test_a_run_against_easy_keeps_figures_of_easy_plus_on_the_same_jobs() -> None:
    run = sim.run(JOBS)
    alone = sim.run(JOBS, policy="easy_plus", baseline=None)
    for key in ("mean_response_time", "molded_jobs", "jobs", "max_queued_jobs"):
        assert run.summary[f"easy_plus_{key}"] == alone.summary[key]
    for other in (alone, sim.run(JOBS, policy="easy_plus"), sim.run(JOBS, baseline="conservative")):
        assert not any(key.startswith("easy_plus_") for key in other.summary)
