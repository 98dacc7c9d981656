"""What happens around a multirun: names of its folders, and its failures at the end."""

import hashlib
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

if TYPE_CHECKING:
    from sim.changed_defaults import Remembered

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
    from sim.artefacts import FAILURE

    stamps = {}
    for marker in sorted(folder.rglob(FAILURE)):
        status = marker.stat()
        stamps[marker.parent] = (status.st_mtime_ns, status.st_ino)
    return stamps


def _message(run: Path) -> str:
    from sim.artefacts import FAILURE

    content = json.loads((run / FAILURE).read_text(encoding="utf-8"))
    return str(content["message"])


class TellChangedDefaults(Callback):
    """Say in one line which defaults have changed since the same command last ran.

    Of a multirun the first runs that its folder remembers are looked at.
    """

    def __init__(self) -> None:
        self._before: dict[Path, Remembered] = {}

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Compare the composed configuration with the one in the run's folder."""
        asked = config.hydra.overrides
        dated = not any(str(one).startswith("hydra.run.dir=") for one in asked.hydra)
        from sim.changed_defaults import earlier

        before = earlier(Path(config.hydra.run.dir), [str(one) for one in asked.task], dated)
        if before is not None:
            own = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
            self._say(before, OmegaConf.to_container(own))

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Note what the folder's first runs were."""
        from sim.changed_defaults import HYDRA, remembered

        for path in sorted(Path(config.hydra.sweep.dir).glob(f"*/{HYDRA}"))[:FIRST_RUNS]:
            found = remembered(path.parent)
            if found is not None:
                self._before[path.parent] = found

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Compare it with what they are now."""
        from sim.changed_defaults import remembered

        for run, (overrides, before) in self._before.items():
            now = remembered(run)
            if now is not None and sorted(now[0]) == sorted(overrides) and now[1] != before:
                self._say(before, now[1])
                return

    def _say(self, before: Mapping[str, object], now: Any) -> None:
        from sim.changed_defaults import changed, line
        from sim.configurations import flatten

        found = changed(before, flatten(now))
        if found:
            sys.stderr.write(f"note: {line(found)}\n")


class ReportFailures(Callback):
    """Report a multirun's failed runs at its end, whichever process they ran in.

    A failed run leaves a file in its folder and ends normally, so that the
    others go on under every launcher. At the end the files that are new since
    the beginning give a line each, and the multirun ends with exit status 1.
    """

    def __init__(self) -> None:
        self._before: dict[Path, Stamp] = {}

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Note the failures of earlier multiruns into the same folder."""
        self._before = _failures(Path(config.hydra.sweep.dir))

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print one line for each run that failed, and leave with status 1."""
        folder = Path(config.hydra.sweep.dir)
        failed = [run for run, stamp in _failures(folder).items() if self._before.get(run) != stamp]
        for run in failed:
            sys.stderr.write(f"failed: {run.relative_to(folder)}: {_message(run)}\n")
        if failed:
            raise SystemExit(1)
