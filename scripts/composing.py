"""Compose a run as the command line would, and play it without writing artefacts."""

import copy
import functools
import re
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from sim.composition import configuration, prepare
from sim.config import CONFIG_FOLDER

Config = dict[str, Any]
COMMA = re.compile(r",(?![^\[(]*[\])])")
"""Between two values of an axis, not within one."""


def composed(*overrides: str) -> Config:
    """Return the resolved configuration of a run as plain data, checked."""
    return copy.deepcopy(_composed(overrides))


_composed = functools.lru_cache(maxsize=512)(configuration)


def axes(experiment: str) -> dict[str, list[str]]:
    """Return the sweep axes of an experiment preset: each key's values as on a command line."""
    prepare()
    with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
        config = compose("config", [f"experiment={experiment}"], return_hydra_config=True)
    found = config.hydra.sweeper.params
    plain: Any = {} if found is None else OmegaConf.to_container(found, resolve=False)
    return {key: COMMA.split(str(values)) for key, values in plain.items()}
