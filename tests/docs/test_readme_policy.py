"""The README's example of a new allocation rule: one file, one YAML, one test, as they stand."""

import re
import sys
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

import sim.policies.allocation as package
from sim.app import prepare
from sim.config import CONFIG_FOLDER
from sim.run import play, set_scene

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
PLACE = "sim.policies.allocation.half"


def block(kind: str, inside: str) -> str:
    """Return the README's block of a kind that holds some text."""
    blocks = re.findall(rf"^```{kind}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    return next(text for text in blocks if inside in text)


@pytest.fixture
def conf(tmp_path, monkeypatch):
    """Put the example's files where the README says, in a folder of their own."""
    (tmp_path / "half.py").write_text(block("python", "class Half"), encoding="utf-8")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, PLACE, raising=False)
    yaml = tmp_path / "conf/policy/allocation/half.yaml"
    yaml.parent.mkdir(parents=True)
    yaml.write_text(block("yaml", PLACE), encoding="utf-8")
    yield tmp_path / "conf"
    sys.modules.pop(PLACE, None)


def test_the_example_s_own_test_passes(conf):
    names: dict = {}
    exec(block("py", "import Half"), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert len(tests) == 1
    tests[0]()


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_the_example_is_an_option_with_any_order_and_backfilling(conf, backfill):
    prepare()
    parts = ["policy/allocation=half", f"policy/backfill={backfill}", "policy/order=sjf"]
    toy = ["workload.jobs=20", "predictor=oracle", f"hydra.searchpath=[file://{conf}]"]
    with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
        config = OmegaConf.to_container(compose("config", overrides=[*toy, *parts]), resolve=True)
    outcome = play(config, config, set_scene(config, 0)).outcome
    requested = outcome.trace.jobs["requested_processors"].tolist()
    assert outcome.records.allocated.tolist() == [max(n // 2, 1) for n in requested]
