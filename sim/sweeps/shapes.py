"""One composition per shape of a sweep: runs that choose the same files differ in values alone.

Hydra reads and merges the files that the overrides choose among, then puts values in. The first
part, which takes most of the time, is done once for runs that choose alike, and kept in the
user's cache; the second is Hydra's own for each run. Whatever is not plainly a choice or a
value, or is refused, is composed by Hydra from the start.
"""

import contextlib
import hashlib
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any

import hydra
import omegaconf
from hydra._internal import hydra as commands
from hydra._internal.config_loader_impl import ConfigLoaderImpl, get_overrides_dirname
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from sim.errors import ConfigError
from sim.help.pages import CONFIG_FOLDER, plugin_folders
from sim.results.durable import replaced

MOST = 200
"""Shapes that are kept, in memory and in the cache."""
MOST_RUNS = 1_000_000
"""Of a sweep whose plan is read from a file."""
OWN = {"pkg://hydra.conf", f"file://{CONFIG_FOLDER}", "structured://"}
"""Where configuration is from if nobody adds to it; what others add is kept in memory alone."""
_kept: dict[str, bytes] = {}
_register: list[Callable[[], None]] = []


def compose_once(register: Callable[[], None]) -> None:
    """Let Hydra compose once per shape, in this process and in every worker.

    Parameters
    ----------
    register : callable
        Makes the schema known to Hydra; called before files are read.
    """
    _register[:] = [register]
    commands.ConfigLoaderImpl = Loader  # type: ignore[attr-defined]


class Loader(ConfigLoaderImpl):
    """Hydra's loader of configurations, which remembers what the choice of files gave."""

    def _parse_overrides_and_create_caching_repo(self, *given: Any) -> Any:
        _register[0]()
        return super()._parse_overrides_and_create_caching_repo(*given)

    def get_group_options(self, *given: Any, **more: Any) -> Any:
        """Return the options of a group, those of the schema among them."""
        _register[0]()
        return super().get_group_options(*given, **more)

    def _load_configuration_impl(
        self, config_name: str | None, overrides: list[str], *given: Any, **more: Any
    ) -> DictConfig:
        parsed = OverridesParser.create().parse_overrides(overrides)
        self._refuse_above(parsed)
        if not any(one.is_sweep_override() for one in parsed):
            with contextlib.suppress(Exception):  # Hydra itself is to say what it refuses
                return self._filled_in(config_name, parsed, *given, **more)
        return super()._load_configuration_impl(config_name, overrides, *given, **more)

    def _filled_in(
        self, config_name: str | None, parsed: Sequence[Override], *given: Any, **more: Any
    ) -> DictConfig:
        """Return a configuration: what was composed of its shape, with its own values.

        Raises
        ------
        Exception
            If an override is refused, or it is not certain that the result would be Hydra's.
        """
        values: list[Override] = []
        choices: list[str] = []
        for one in parsed:
            if self._is_value(one):
                values.append(one)
            elif isinstance(one.value(), dict):
                raise ValueError("values of a whole group")
            else:
                choices.append(str(one.input_line))
        if any("${" in one for one in choices):
            raise ValueError("it depends on the moment")
        sources = [f"{one.scheme()}://{one.path}" for one in self.repository.get_sources()]
        key = _key(sources, (config_name, choices, given, sorted(more.items())))
        lasts = set(sources) <= OWN and not any("hydra" in one for one in choices)
        whole = _recalled(key, lasts=lasts)
        if whole is None:
            found = super()._load_configuration_impl(config_name, choices, *given, **more)
            if found.hydra.searchpath:
                raise ValueError("sources that are not known here")
            OmegaConf.clear_cache(found)  # what hangs on the moment is resolved at each start
            whole = pickle.dumps(found)
            _remember(key, whole, lasts=lasts)
        composed: DictConfig = pickle.loads(whole)
        self._apply_overrides_to_config(values, composed)
        _note(composed.hydra, parsed)
        return composed

    def _refuse_above(self, parsed: Sequence[Override]) -> None:
        """Refuse names of groups and options that lead out of the folder of configurations."""
        for one in parsed:
            key = one.key_or_group
            chosen = str(one.value()) if self.repository.group_exists(key) else ""
            if ".." in key.split("/") or ".." in chosen.split("/"):
                raise ConfigError(f"{one.input_line}: must be the name of a group and an option")

    def _is_value(self, one: Override) -> bool:
        """Return whether an override says a value, and does not choose among files."""
        key = one.key_or_group
        if key == "hydra.searchpath":
            raise ValueError("sources that are not known here")
        return "/" not in key and one.package is None and not self.repository.group_exists(key)


def _note(own: Any, parsed: Sequence[Override]) -> None:
    """Note in Hydra's own part what it notes of a run's overrides and surroundings."""
    if own.job.env_copy:
        raise ValueError("the environment is part of it")
    task = [one for one in parsed if not one.is_hydra_override()]
    own.overrides.task = [one.input_line for one in task]
    own.overrides.hydra = [one.input_line for one in parsed if one.is_hydra_override()]
    own.runtime.cwd = os.getcwd()  # noqa: PTH109
    dirname = own.job.config.override_dirname
    own.job.override_dirname = get_overrides_dirname(
        overrides=task,
        kv_sep=dirname.kv_sep,
        item_sep=dirname.item_sep,
        exclude_keys=dirname.exclude_keys,
    )


def _stamps(folder: Path) -> list[tuple[str, int, int]]:
    """Return name, size and time of all that is below a folder."""
    found = []
    for place, _, names in os.walk(folder, followlinks=True):
        for path in (Path(place, name) for name in names):
            status = path.stat()
            found.append((str(path), status.st_size, status.st_mtime_ns))
    return sorted(found)


def _key(sources: Sequence[str], shape: object) -> str:
    """Return what is another where any file, version or choice is."""
    folders = [Path(one[7:]) for one in sources if one.startswith("file://")]
    folders += plugin_folders().values()
    schema = CONFIG_FOLDER.parent / "sim" / "config.py"
    files = [_stamps(one) for one in folders], schema.stat().st_size, schema.stat().st_mtime_ns
    versions = sys.version, hydra.__version__, omegaconf.__version__
    return hashlib.sha256(repr((versions, sources, files, shape)).encode()).hexdigest()


def _cache() -> Path:
    from workloads.logs.cache import cache_folder  # late: what help prints needs no cache

    return cache_folder() / "composed"


def _recalled(key: str, *, lasts: bool) -> bytes | None:
    """Return what was composed of a shape; from the cache if it is this user's alone."""
    if key not in _kept and lasts:
        with contextlib.suppress(OSError), (_cache() / key).open("rb") as stream:
            status = os.fstat(stream.fileno())
            if status.st_uid == os.getuid() and not status.st_mode & 0o022:
                _kept[key] = stream.read()
    return _kept.get(key)


def _remember(key: str, whole: bytes, *, lasts: bool) -> None:
    _kept[key] = whole
    if len(_kept) > MOST:
        _kept.pop(next(iter(_kept)))
    if not lasts:
        return
    with contextlib.suppress(OSError):  # without a cache the next process composes again
        folder = _cache()
        folder.mkdir(parents=True, exist_ok=True)
        with replaced(folder / key) as made:
            made.write_bytes(whole)
        (folder / key).chmod(0o600)
        kept = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        for path in kept[:-MOST]:
            path.unlink(missing_ok=True)


def split(overrides: Sequence[str], loader: Any = None) -> list[list[str]]:
    """Return the overrides of each run of a sweep; axes with ``glob`` need Hydra's loader."""
    parsed = OverridesParser.create(config_loader=loader).parse_overrides(list(overrides))
    return [list(one) for one in BasicSweeper.split_arguments(parsed, None)[0]]


def runs_of(overrides: Sequence[str]) -> list[list[str]]:
    """Return the overrides of each run of a sweep; none of a million or more, or with ``glob``."""
    try:
        parsed = OverridesParser.create().parse_overrides(list(overrides))
        axes = (one.sweep_string_iterator() for one in parsed if one.is_sweep_override())
        runs = prod(len([*islice(axis, MOST_RUNS)]) for axis in axes)
        return [] if runs >= MOST_RUNS else split(overrides)
    except (AssertionError, HydraException):
        return []
