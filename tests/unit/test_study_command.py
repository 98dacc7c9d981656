import sys

import pytest

from sim import study
from sim.help.interrupts import GO_ON

pytestmark = pytest.mark.fast


@pytest.fixture
def ran(monkeypatch):
    """Commands that would have run; those with a status end with it."""
    calls, statuses = [], {}

    def carry_out(name, _, arguments):
        calls.append([name, *arguments])
        if statuses.get("sweep") and name == "sweep":
            raise SystemExit(statuses[name])
        return statuses.get(name, 0)

    monkeypatch.setattr(study, "carry_out", carry_out)
    monkeypatch.setattr(study.os, "environ", {})
    return calls, statuses


def test_a_study_runs_a_preset_and_compares_it(ran):
    calls, _ = ran
    assert study.main(["herd", "seed=2", "hydra.sweep.dir=here"]) == 0
    assert study.os.environ[GO_ON] == "moldsim study herd seed=2 hydra.sweep.dir=here"
    assert calls == [
        ["sweep", "experiment=herd", "seed=2", "hydra.sweep.dir=here"],
        ["compare", "here"],
    ]


def test_presets_are_studied_together(ran):
    calls, _ = ran
    assert study.main(["herd,cycles", "hydra.sweep.dir=here"]) == 0
    assert calls[0] == ["sweep", "experiment=[herd,cycles]", "hydra.sweep.dir=here"]
    assert study.main(["herd,cycles"]) == 0
    assert calls[3][1].startswith("studies/herd+cycles/")
    assert study.main(["herd,heard"]) == 2


def test_failed_runs_are_compared_too_and_keep_their_status(ran):
    calls, statuses = ran
    statuses["sweep"] = 1
    assert study.main(["herd"]) == 1
    assert len(calls) == 2
    statuses["sweep"] = 130
    with pytest.raises(SystemExit, match="130"):
        study.main(["herd"])
    assert len(calls) == 3
    del statuses["sweep"]
    statuses["compare"] = 2
    assert study.main(["herd"]) == 2


def test_an_unknown_preset_is_refused_with_what_there_is(ran, capsys, monkeypatch):
    assert study.main(["heard"]) == 2
    assert "study heard: no such study; there are " in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["study"])
    assert study.main() == 2
    assert study.main(["--help"]) == 0
    assert "predictor_impact" in capsys.readouterr().out
    assert ran[0] == []
