import inspect
from dataclasses import asdict
from pathlib import Path

import pytest
from hydra.utils import get_class, instantiate
from omegaconf import OmegaConf

import conf
from workloads.errors import Limits
from workloads.logs.cleaning import RULES

pytestmark = pytest.mark.fast

FOLDER = Path(conf.__file__).parent / "workload"
OF_APPLICATIONS = {
    "applications": 50,
    "popularity": 1.0,
    "sizes": None,
    "size": "known",
    "size_noise": 0.1,
}
OF_LOGS = OF_APPLICATIONS | {"applications": "log", "size": "hidden"}
NEEDED = {"swf": {"path": "log.swf"}, "archive": {"name": "KTH-SP2"}, "table": {"path": "jobs.csv"}}
MINE = ("swf", "archive", "table", "lublin", "downey")


def load(option: str) -> dict:
    config = OmegaConf.load(FOLDER / f"{option}.yaml")
    return OmegaConf.to_container(config)


@pytest.mark.parametrize("option", MINE)
def test_every_constructor_argument_stands_in_the_file_with_its_default(option):
    config = load(option)
    target = get_class(config.pop("_target_"))
    arguments = inspect.signature(target).parameters
    for key, value in (
        OF_LOGS if option in ("swf", "archive", "table") else OF_APPLICATIONS
    ).items():
        assert config[key] == value
        if key not in arguments:
            del config[key]
    assert set(config) == set(arguments)
    assert config.get("limits", asdict(Limits())) == asdict(Limits())
    for key, parameter in arguments.items():
        default = None if parameter.default is inspect.Parameter.empty else parameter.default
        given = {"cleaning": None, "parameters": None, "limits": None}.get(key, config[key])
        assert given == (list(default) if isinstance(default, tuple) else default), key


@pytest.mark.parametrize("option", MINE)
def test_the_option_instantiates(option):
    config = load(option)
    arguments = inspect.signature(get_class(config["_target_"])).parameters
    for key in OF_APPLICATIONS:
        if key not in arguments:
            del config[key]
    workload = instantiate(config | NEEDED.get(option, {}), _convert_="all")
    assert type(workload).__name__ == config["_target_"].rsplit(".", 1)[1]


@pytest.mark.parametrize("option", ["swf", "archive"])
def test_cleaning_rules_stand_in_the_file_with_their_default_actions(option):
    assert load(option)["cleaning"] == {name: rule.actions[0] for name, rule in RULES.items()}


@pytest.mark.parametrize("option", MINE)
def test_every_key_has_a_comment(option):
    lines = (FOLDER / f"{option}.yaml").read_text().splitlines()
    assert all("  # " in line for line in lines if not line.startswith(("_target_", "# ")))
