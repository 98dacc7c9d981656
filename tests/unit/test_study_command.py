import sys

import pytest

from sim import study
from sim.help.interrupts import GO_ON

pytestmark = pytest.mark.fast


@pytest.fixture
def ran(monkeypatch):
    """Commands that would have run; those with a status fail."""

    class Calls(list):
        again = ""

    calls, statuses = Calls(), {}

    def run(command, check):
        calls.append(command[1:])
        return type("Ended", (), {"returncode": statuses.get(command[2], 0)})

    class Begun:
        def __init__(self, command, env):
            calls.again = env[GO_ON]
            self.status = run(command, check=False).returncode

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def wait(self):
            return self.status

    monkeypatch.setattr(study.subprocess, "run", run)
    monkeypatch.setattr(study.subprocess, "Popen", Begun)
    return calls, statuses


def test_a_study_runs_a_preset_and_compares_it(ran):
    calls, _ = ran
    assert study.main(["herd", "seed=2", "hydra.sweep.dir=here"]) == 0
    assert calls.again == "moldsim study herd seed=2 hydra.sweep.dir=here"
    assert calls == [
        ["-m", "sim", "-m", "experiment=herd", "seed=2", "hydra.sweep.dir=here"],
        ["-m", "sim.compare", "here"],
    ]


def test_presets_are_studied_together(ran):
    calls, _ = ran
    assert study.main(["herd,cycles", "hydra.sweep.dir=here"]) == 0
    assert calls[0] == ["-m", "sim", "-m", "experiment=[herd,cycles]", "hydra.sweep.dir=here"]
    assert study.main(["herd,cycles"]) == 0
    assert calls[3][2].startswith("studies/herd+cycles/")
    assert study.main(["herd,heard"]) == 2


def test_failed_runs_are_compared_too_and_keep_their_status(ran):
    calls, statuses = ran
    statuses["sim"] = 1
    assert study.main(["herd"]) == 1
    assert len(calls) == 2
    statuses["sim"] = 130
    assert study.main(["herd"]) == 130
    assert len(calls) == 3
    statuses.update({"sim": 0, "sim.compare": 2})
    assert study.main(["herd"]) == 2


def test_an_unknown_preset_is_refused_with_what_there_is(ran, capsys, monkeypatch):
    assert study.main(["heard"]) == 2
    assert "heard: must be one of" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["study"])
    assert study.main() == 2
    assert study.main(["--help"]) == 0
    assert "predictor_impact" in capsys.readouterr().out
    assert ran[0] == []
