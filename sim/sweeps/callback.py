"""What happens around a multirun: names of its folders, and its failures at the end."""

import hashlib
import logging
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from predictors.plain import shown_plainly, told_plainly
from sim.errors import ConfigError, SimError, one_line
from sim.results.durable import FAILURE, read_failure
from sim.results.durable import HYDRA as HYDRA
from sim.sweeps.configurations import Setting, flatten, load_yaml

LATEST = 50
"""Earlier runs in folders named by date and time that are looked through."""
LISTED = 6
"""Changed defaults that the line lists."""
ADVICE = "experiment=as_before restores former values, CHANGELOG.md says why they changed"

Remembered = tuple[list[str], Setting]
"""Overrides of an earlier run, and every value of its configuration."""


def remembered(run: Path) -> Remembered | None:
    """Return what a run's folder remembers of its command; None if nothing readable."""
    try:
        overrides, config = (load_yaml(run / HYDRA / f"{n}.yaml") for n in ("overrides", "config"))
    except SimError:
        return None
    if not isinstance(overrides, list) or not isinstance(config, dict):
        return None
    return [str(one) for one in overrides], flatten(config)


def earlier(folder: Path, overrides: Sequence[str], dated: bool) -> Setting | None:
    """Return the configuration of this very command when it last ran.

    Parameters
    ----------
    folder : pathlib.Path
        Where the run is about to write.
    overrides : sequence of str
        The command, in any order.
    dated : bool
        Whether folders are named by date and time, so that an earlier one is
        another; the latest `LATEST` are looked through.
    """
    places: Iterable[Path] = [folder]
    if dated:
        files = sorted(folder.parents[1].glob(f"*/*/{HYDRA}/overrides.yaml"), reverse=True)
        places = [path.parents[1] for path in files[:LATEST]]
    for place in places:
        found = remembered(place)
        if found is not None and sorted(found[0]) == sorted(overrides):
            return found[1]
    return None


def changed(before: Mapping[str, object], now: Mapping[str, object]) -> dict[str, tuple[str, str]]:
    """Return the keys that both have with the values that differ; classes may move.

    Examples
    --------
    >>> changed({"a.charge": False, "b": 1, "old": 2}, {"a.charge": True, "b": 1, "new": 3})
    {'a.charge': ('false', 'true')}
    """
    return {
        key: (_shown(before[key]), _shown(now[key]))
        for key in sorted(before.keys() & now.keys())
        if before[key] != now[key] and not key.endswith("_target_")
    }


def _shown(value: object) -> str:
    return {None: "null", True: "true", False: "false"}.get(value, str(value))  # type: ignore[call-overload,no-any-return]


def line(found: Mapping[str, tuple[str, str]]) -> str:
    """Return the line that says so.

    Examples
    --------
    >>> line({"predictor.charge": ("false", "true")}).partition(";")[0]
    'defaults have changed since this command last ran: predictor.charge false -> true'
    """
    parts = [f"{key} {old} -> {new}" for key, (old, new) in found.items()]
    more = f" and {len(parts) - LISTED} more" if len(parts) > LISTED else ""
    said = ", ".join(parts[:LISTED])
    return f"defaults have changed since this command last ran: {said}{more}; {ADVICE}"


FIRST_RUNS = 20
"""Runs of a multirun whose former configurations are remembered."""
LONGEST_NAME = 120
"""Characters; with its hash a name stays below what file systems allow (255 bytes)."""

Stamp = tuple[int, int]


def folder_name(overrides: str) -> str:
    """Return the name of a run's folder from its overrides, never from its job number.

    Characters that do not belong in a name are replaced and long names cut; a
    hash of the overrides then keeps the name unique.

    Parameters
    ----------
    overrides : str
        As Hydra's ``hydra.job.override_dirname`` has them, sorted.

    Examples
    --------
    >>> folder_name("policy=easy,seed=2")
    'policy=easy,seed=2'
    >>> folder_name("workload.path=logs/a.swf")
    'workload.path=logs_a.swf-5cbece51'
    >>> folder_name("")
    'defaults'
    """
    safe = re.sub(r"[^A-Za-z0-9_=.,+-]", "_", overrides)[:LONGEST_NAME]
    if not overrides:
        return "defaults"
    if safe == overrides and safe.strip("."):
        return overrides
    return f"{safe}-{hashlib.sha256(overrides.encode()).hexdigest()[:8]}"


def _failures(folder: Path) -> dict[Path, Stamp]:
    stamps = {}
    for marker in sorted(folder.rglob(FAILURE)):
        status = marker.stat()
        stamps[marker.parent] = (status.st_mtime_ns, status.st_ino)
    return stamps


class KeepToFolders(Callback):
    """Refuse, before anything is written, what would be written outside of a run's folder."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Look at the names that Hydra makes paths of; its own copies are not wanted."""
        self._check(config, None)

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Look at the folder of a sweep too."""
        self._check(config, Path(config.hydra.sweep.dir))

    def _check(self, config: DictConfig, sweep: Path | None) -> None:
        from sim.sweeps.locks import refuse_foreign_sweep

        try:
            _refuse_outside(config.hydra)
            if sweep is not None:
                refuse_foreign_sweep(sweep)
        except SimError as error:  # Hydra would go on after any other exception
            sys.stderr.write(f"error: {one_line(error)}\n")
            raise SystemExit(2) from None


def _refuse_outside(own: DictConfig) -> None:
    if own.output_subdir is not None:
        said = f"hydra.output_subdir={own.output_subdir}: must be null"
        raise ConfigError(f"{said}, as a run writes {HYDRA}/ with its results")
    plain: Any = OmegaConf.to_container(own, resolve=False)  # a subfolder as it is for any run
    for key, name in (("job.name", own.job.name), ("sweep.subdir", plain["sweep"]["subdir"])):
        if ".." in Path(str(name)).parts or Path(str(name)).is_absolute():
            raise ConfigError(f"hydra.{key}={name}: must name a place in the run's folder")


class TellChangedDefaults(Callback):
    """Say in one line which defaults have changed since the same command last ran.

    Of a multirun the first runs that its folder remembers are looked at.
    """

    def __init__(self) -> None:
        self._before: dict[Path, Remembered] = {}
        self._former: Setting | None = None

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Note the configuration in the run's folder."""
        asked = config.hydra.overrides
        dated = not any(str(one).startswith("hydra.run.dir=") for one in asked.hydra)
        words = [str(one) for one in asked.task]
        self._former = earlier(Path(config.hydra.run.dir), words, dated)

    def on_run_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Compare it with the one composed, below what the run shows."""
        if self._former is not None:
            own = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
            self._say(self._former, OmegaConf.to_container(own))

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Note what the folder's first runs were."""
        for path in sorted(Path(config.hydra.sweep.dir).glob(f"*/{HYDRA}"))[:FIRST_RUNS]:
            found = remembered(path.parent)
            if found is not None:
                self._before[path.parent] = found

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Compare it with what they are now."""
        for run, (overrides, before) in self._before.items():
            now = remembered(run)
            if now is not None and sorted(now[0]) == sorted(overrides) and now[1] != before:
                self._say(before, now[1])
                return

    def _say(self, before: Mapping[str, object], now: Any) -> None:
        from sim.sweeps.configurations import flatten

        found = changed(before, flatten(now))
        if found:
            sys.stderr.write(f"note: {line(found)}\n")


WARNED = re.compile(r"\[WARNING\] - (.*)")
"""A warning in the log of a run."""
MOST_WARNINGS = 10
"""Warnings that are listed at the end of a multirun."""


def _logs(folder: Path, name: str) -> dict[Path, int]:
    """Return the sizes of the logs of a multirun's runs."""
    return {path: path.stat().st_size for path in folder.glob(f"*/{name}.log")}


def warned(folder: Path, name: str, before: Mapping[Path, int]) -> Counter[str]:
    """Return what the runs of a multirun were warned of, each with the number of runs.

    Parameters
    ----------
    folder : pathlib.Path
    name : str
        Of the runs' logs.
    before : mapping of pathlib.Path to int
        Sizes of the logs when it began; what they held then is not read.
    """
    found: Counter[str] = Counter()
    for path in sorted(_logs(folder, name)):
        text = path.read_bytes()[before.get(path, 0) :].decode(errors="replace")
        found.update(list(dict.fromkeys(WARNED.findall(text))))
    return found


class _Once(logging.Filter):
    """Lets a warning pass once, or not at all where it is told at the end."""

    def __init__(self, at_the_end: bool) -> None:
        super().__init__()
        self.at_the_end = at_the_end
        self.seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record passes."""
        told_plainly(record)
        if record.levelno != logging.WARNING:
            return True
        text = record.getMessage()
        told = self.at_the_end or text in self.seen
        self.seen.add(text)
        return not told


class ReportFailures(Callback):
    """Report a multirun's warnings and failed runs at its end, whichever process they ran in.

    A warning stands in the log of each of its runs, and in the terminal once: at the end of a
    multirun, with how many runs had it. A failed run leaves a file in its folder and ends
    normally, so that the others go on under every launcher. At the end the files that are
    new since the beginning give a line each, and the multirun ends with exit status 1.
    """

    def __init__(self) -> None:
        self._before: dict[Path, Stamp] = {}
        self._logs: dict[Path, int] = {}

    def on_job_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Keep repeated warnings off the terminal."""
        once = _Once(config.hydra.mode == RunMode.MULTIRUN)
        for handler in logging.getLogger().handlers:
            if not isinstance(handler, logging.FileHandler):
                handler.addFilter(once)

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Note the failures and logs of earlier multiruns into the same folder."""
        folder = Path(config.hydra.sweep.dir)
        self._before, self._logs = _failures(folder), _logs(folder, config.hydra.job.name)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print each warning, and a line for each run that failed; then leave with status 1."""
        folder = Path(config.hydra.sweep.dir)
        found = warned(folder, config.hydra.job.name, self._logs)
        for text, runs in found.most_common(MOST_WARNINGS):
            sys.stderr.write(f"WARNING ({runs} run{'s' if runs > 1 else ''}): {text}\n")
        if len(found) > MOST_WARNINGS:
            sys.stderr.write(f"WARNING: {len(found) - MOST_WARNINGS} more in the runs' logs\n")
        failed = [run for run, stamp in _failures(folder).items() if self._before.get(run) != stamp]
        for run in failed:
            sys.stderr.write(
                shown_plainly(f"failed: {run.relative_to(folder)}: {read_failure(run)}\n")
            )
        if failed:
            raise SystemExit(1)
