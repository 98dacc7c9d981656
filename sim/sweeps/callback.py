"""What happens around a multirun: its folders are looked at, its failures told at the end."""

import logging
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from predictors.plain import shown_plainly, told_plainly
from sim.errors import ConfigError, SimError, one_line
from sim.results.durable import FAILURE, HYDRA, read_failure

Stamp = tuple[int, int]


def _failures(folder: Path) -> dict[Path, Stamp]:
    states = {marker.parent: marker.stat() for marker in sorted(folder.rglob(FAILURE))}
    return {run: (state.st_mtime_ns, state.st_ino) for run, state in states.items()}


class KeepToFolders(Callback):
    """Refuse, before anything is written, what would be written outside of a run's folder."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Look at the names that Hydra makes paths of, and at the folder of a sweep."""
        from sim.sweeps.locks import refuse_foreign_sweep

        own = config.hydra
        plain: Any = OmegaConf.to_container(own, resolve=False)  # a subfolder as for any run
        paths = {"job.name": own.job.name, "sweep.subdir": plain["sweep"]["subdir"]}
        try:
            if own.output_subdir is not None:
                said = f"hydra.output_subdir={own.output_subdir}: must be null"
                raise ConfigError(f"{said}, as a run writes {HYDRA}/ with its results")
            for key, name in paths.items():
                if ".." in Path(str(name)).parts or Path(str(name)).is_absolute():
                    raise ConfigError(f"hydra.{key}={name}: must name a place in the run's folder")
            if config.hydra.mode == RunMode.MULTIRUN:
                refuse_foreign_sweep(Path(config.hydra.sweep.dir))
        except (OSError, SimError) as error:
            # After any other exception Hydra would go on.
            sys.stderr.write(f"error: {one_line(error)}\n")
            raise SystemExit(2) from None

    on_multirun_start = on_run_start


WARNED = re.compile(r"\[WARNING\] - (.*)")
"""A warning in the log of a run."""
NUMBERS = re.compile(r"\d[\d,.]*")
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
    alike: dict[str, dict[str, set[Path]]] = {}  # but for numbers, of which each window has others
    for path in sorted(_logs(folder, name)):
        text = path.read_bytes()[before.get(path, 0) :].decode(errors="replace")
        for one in WARNED.findall(text):
            alike.setdefault(NUMBERS.sub("#", one), {}).setdefault(one, set()).add(path)
    found: Counter[str] = Counter()
    for texts in alike.values():
        others = " (elsewhere with other numbers)" if len(texts) > 1 else ""
        found[min(texts) + others] = len(set().union(*texts.values()))
    return found


def _once(at_the_end: bool) -> Callable[[logging.LogRecord], bool]:
    """Return a filter that lets a warning pass once, or not at all where it is told at the end."""
    seen: set[str] = set()

    def passes(record: logging.LogRecord) -> bool:
        told_plainly(record)
        if record.levelno != logging.WARNING:
            return True
        text = record.getMessage()
        told = at_the_end or text in seen
        seen.add(text)
        return not told

    return passes


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
        once = _once(config.hydra.mode == RunMode.MULTIRUN)
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
