"""Composing configurations: for the command, within Hydra's, and for Python, outside of it."""

import contextlib
import itertools
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import hydra
import yaml
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf._utils import get_omega_conf_dumper
from omegaconf.errors import OmegaConfBaseException

from sim import config as schema
from sim.errors import ConfigError, SimError
from sim.help.pages import page, refusal
from sim.results.durable import HYDRA, write_whole
from sim.sweeps.configurations import folder_name, load_yaml
from sim.sweeps.shapes import compose_once, split

_one_at_a_time = threading.RLock()
"""Hydra composes for one caller at a time."""


def new_folder(parent: str) -> str:
    """Make a folder named by date and time that nobody else has, and return its path.

    Two that are asked for within a second, by one process or by several, are numbered.
    """
    day = Path(parent) / time.strftime("%Y-%m-%d")
    day.mkdir(parents=True, exist_ok=True)
    moment = time.strftime("%H-%M-%S")
    for number in itertools.count(1):
        folder = day / (moment if number == 1 else f"{moment}-{number}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            break
    return str(folder)


def prepare() -> None:
    """Make schema and resolvers known to Hydra, in this process and in every worker."""
    compose_once(schema.register)
    OmegaConf.register_new_resolver("moldsim.new_folder", new_folder, replace=True, use_cache=True)
    OmegaConf.register_new_resolver("moldsim.folder", folder_name, replace=True)
    OmegaConf.register_new_resolver("moldsim.page", lambda: page().replace("$", "$$"), replace=True)


class Composed(NamedTuple):
    """A run's configuration.

    Attributes
    ----------
    settings : dict
        As plain data, resolved and checked, the baseline's parts filled in.
    own : dict
        As Hydra composed it, not resolved, without Hydra's own part.
    command : DictConfig or dict
        Hydra's own part.
    overrides : sequence of str
        What it was asked for.
    """

    settings: dict[str, Any]
    own: dict[str, Any]
    command: Any
    overrides: Sequence[str]

    @property
    def choices(self) -> Mapping[str, Any]:
        """The chosen option of each group."""
        found: Mapping[str, Any] = self.command["runtime"]["choices"]
        return found

    def save(self, folder: Path) -> None:
        """Write the configuration into a run's folder, where and as Hydra would."""
        place = folder / HYDRA
        place.mkdir(parents=True, exist_ok=True)
        parts = {"config": self.own, "hydra": {"hydra": self.command}, "overrides": self.overrides}
        for name, part in parts.items():
            # As OmegaConf writes it, without making a configuration of it first.
            dumper = get_omega_conf_dumper()
            text = yaml.dump(part, Dumper=dumper, allow_unicode=True, sort_keys=False)
            write_whole(place / f"{name}.yaml", text)


def preset(name: str, command: Any) -> dict[str, Any]:
    """Return policy and predictor of a policy preset, composed without the run's overrides.

    Raises
    ------
    ConfigError
        If there is no policy preset of that name.
    """
    if not re.fullmatch(r"[\w.-]+", name):
        raise ConfigError(f"baseline={name}: must be the name of a policy preset, or null")
    searched = [o for o in command.overrides.hydra if o.startswith("hydra.searchpath=")]
    parts = [f"policy='{name}'", f"predictor={schema.BASELINE_PREDICTOR}"]
    try:
        composed = hydra.compose(command.job.config_name, overrides=[*parts, *searched])
    except HydraException as error:
        options = ", ".join(re.findall(r"^\t(\w+)$", str(error), re.MULTILINE))
        raise ConfigError(f"baseline={name}: must be one of {options}, or null") from error
    plain: Any = OmegaConf.to_container(OmegaConf.masked_copy(composed, ["policy", "predictor"]))
    return {"name": name, **plain}


def composed_of(composed: DictConfig, command: Any, multirun: bool) -> Composed:
    """Return what Hydra composed as a run's configuration, checked, its baseline filled in.

    Parameters
    ----------
    composed : DictConfig
        Without Hydra's own part.
    command : DictConfig
        That part.
    multirun : bool
        Whether it is one of many: a baseline must then be asked for.

    Raises
    ------
    ConfigError
        If a value is out of range.
    """
    plain: Any = OmegaConf.to_container(composed, resolve=True)
    schema.check_values(plain)
    tasks = [str(one) for one in command.overrides.task]
    named = any(one.lstrip("+").startswith("baseline=") for one in tasks)
    name = plain["baseline"] if named or not multirun else None
    composed.baseline = name  # so that a run's folder says what was played
    plain["baseline"] = None if name is None else preset(name, command)
    plain["picture"] = plain["picture"] or ("none" if multirun else "first")
    own: Any = OmegaConf.to_container(composed, enum_to_str=True)
    return Composed(plain, own, OmegaConf.to_container(command, enum_to_str=True), tasks)


@contextlib.contextmanager
def _alone(overrides: Sequence[str]) -> Iterator[None]:
    """Compose outside of Hydra's command, and say in one line what it refuses."""
    with _one_at_a_time:
        prepare()
        try:
            with hydra.initialize_config_dir(str(schema.CONFIG_FOLDER), version_base="1.3"):
                yield
        except SimError:
            raise
        except (HydraException, OmegaConfBaseException, ValueError) as error:
            raise ConfigError(refusal(error, overrides)) from None


def compose(overrides: Sequence[str], multirun: bool = False) -> Composed:
    """Return the configuration of a run as the command would.

    Raises
    ------
    ConfigError
        If Hydra refuses an override, or a value is out of range.
    """
    with _alone(overrides):
        own = hydra.compose("config", list(overrides), return_hydra_config=True)
        command = own.hydra
        with open_dict(own):
            del own["hydra"]
        return composed_of(own, command, multirun)


def configuration(overrides: Sequence[str]) -> dict[str, Any]:
    """Return the settings of a run that is compared with nothing unless that is asked for."""
    return compose(overrides, multirun=True).settings


def options_below(prefix: str, usual: Any, given: Sequence[str]) -> Any:
    """Return a command's own options, changed as its command line says.

    Parameters
    ----------
    prefix : str
        Before their names, such as ``backtest.``.
    usual : object
        An instance of a dataclass, which names their types.
    given : sequence of str
        Words such as ``backtest.capacity=recorded``.

    Raises
    ------
    ConfigError
        If there is no such option, or its value is of another type.
    """
    try:
        mine = OmegaConf.from_dotlist([one.removeprefix(prefix) for one in given])
        return OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(usual), mine))
    except (OmegaConfBaseException, ValueError, yaml.YAMLError) as error:
        keys = ", ".join(f"{prefix}{one.name}" for one in fields(usual))
        first = str(error).splitlines()[0]
        raise ConfigError(f"{' '.join(given)}: {first}; keys are {keys}") from error


def recorded(root: Path) -> dict[str, Any]:
    """Return the settings that a finished run left in its folder, that with ``.hydra/``.

    Raises
    ------
    SimError
        If there is no configuration, or one of another version.
    """
    kept = load_yaml(root / HYDRA / "config.yaml")
    if not isinstance(kept, dict):
        raise SimError(f"{root}: it has no configuration in {HYDRA}/")
    usual = OmegaConf.to_container(OmegaConf.structured(schema.Config))  # of keys that came later
    plain: Any = OmegaConf.to_container(OmegaConf.merge(usual, kept), resolve=True)
    try:
        schema.check_values(plain)
    except (KeyError, TypeError, AttributeError):
        raise SimError(f"{root}: its configuration is of another version of the code") from None
    name = plain["baseline"]
    if name is not None:
        command = recorded_command(root)
        with _alone([]):
            plain["baseline"] = preset(str(name), command)
    return dict(plain)


def recorded_command(root: Path) -> Any:
    """Return what a finished run kept of Hydra's own part, with what `preset` needs."""
    kept = load_yaml(root / HYDRA / "hydra.yaml")
    own = kept.get("hydra") if isinstance(kept, dict) else None
    least = {
        "overrides": {"hydra": []},
        "runtime": {"cwd": "another folder"},
        "job": {"config_name": "config"},
    }
    return OmegaConf.merge(least, own if isinstance(own, dict) else {})


def quoted(text: str) -> str:
    """Return a text as an override may give it, whatever stands in it."""
    return QuotedString(text, Quote.single).with_quotes()


def combinations(overrides: Sequence[str]) -> list[list[str]]:
    """Return the overrides of each run of a sweep, the last axis changing first.

    Examples
    --------
    >>> combinations(["policy=easy,sa", "seed=1"])
    [['policy=easy', 'seed=1'], ['policy=sa', 'seed=1']]
    """
    with _alone(overrides):
        return split(overrides, GlobalHydra.instance().config_loader())
