"""``moldsim run`` and ``sweep``: compose a configuration, run it, answer for its errors.

Heavy imports wait until a run really begins, so that ``--help`` answers at once.
"""

import contextlib
import gc
import logging
import os
import re
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from sim import config as schema
from sim.composition import composed_of, prepare
from sim.errors import BAD_INPUT, ConfigError, PluginError, SimError, one_line
from sim.help.interrupts import end, goes_on, noting_interrupts, was_interrupted
from sim.help.pages import refusal, with_key_swept
from sim.results.durable import output, write_failure

BAD_STATUS = 2
logger = logging.getLogger(__name__)
RUN_FOLDER = "hydra.run.dir="
FULL_ERROR = "HYDRA_FULL_ERROR"
_begun: list[bool] = []


def _run(composed: DictConfig, folder: Path, multirun: bool) -> float | None:
    """Carry the run out; show its results, or return its objective in a multirun."""
    made = composed_of(composed, HydraConfig.get(), multirun)
    from predictors.cli.terminal import SILENT, Display, PlainConsole
    from sim.console import Side, print_results
    from sim.results.artefacts import BASELINE, RUN, STEP, replication_folder
    from sim.simulation.replay import Run, names_of

    if not gc.isenabled():  # all is loaded, which is no garbage
        gc.freeze()
        gc.enable()
    config, names = made.settings, names_of(made)
    if not multirun and (config["replications"] > 1 or config["precision"] is not None):
        words = ["moldsim", "run", *sys.argv[1:]]
        named = any(RUN_FOLDER in one for one in words)
        goes_on(words if named else [*words, RUN_FOLDER + os.path.relpath(folder)])
    asked, marked = config["sim"]["progress"], made.overrides if multirun else None
    progress = not multirun if asked is None else asked
    with Display(PlainConsole(stderr=True)) if progress else SILENT as shown:
        run = Run(config, names, shown)
        done = run.carry_out_in(folder, made, anew=not multirun, marked=marked)
    if multirun:
        return _objective(config, done.results)
    changed = [one for one in made.overrides if re.match(r"\+*policy[/.]", one)]
    names[RUN] = replace(names[RUN], policy=", ".join([names[RUN].policy, *changed]))
    parts = done.parts
    places = [replication_folder(folder, k) for k in range(len(parts))] or [folder]
    sides = [
        Side(
            done.results[role],
            names[role].policy,
            names[role].asked,
            role == BASELINE,
            [one[role] for one in parts if role in one],
            [place / role / "jobs.parquet" for place in places],
        )
        for role in (RUN, STEP, BASELINE)
        if role in done.results
    ]
    # A terminal that cannot take the table takes nothing else along.
    with output(f"; the artefacts are in {folder}"), contextlib.suppress(SystemExit):
        print_results(PlainConsole(), sides, folder)
    return None


def _objective(config: dict[str, Any], results: Any) -> float | None:
    """Return what a sweeper that searches minimises; None, with a warning, if undefined."""
    from sim.simulation.precision import Objective

    try:
        return Objective(config["objective"], config["objective_of"]).value(results)
    except ConfigError as error:
        logger.warning("%s", error)
        return None


def _task(composed: DictConfig) -> float | None:
    """Carry out a run; return its objective in a multirun, None if it failed.

    A run that another process is at is left to it: a multirun comes back for what is
    not finished then (`sim.sweeps.resume.Sweep`), a single run is refused.
    """
    from sim.sweeps.locks import BusyError, own_folder
    from sim.sweeps.resume import comes_back

    _begun.append(True)
    hydra_config = HydraConfig.get()
    folder = Path(hydra_config.runtime.output_dir)
    multirun = hydra_config.mode == RunMode.MULTIRUN
    try:
        plain: Any = OmegaConf.to_container(hydra_config, resolve=False)
        with own_folder(folder, wait=multirun and not comes_back(plain)):
            return _carried_out(composed, folder, multirun)
    except SimError as error:
        if not multirun:
            _refuse(folder, one_line(error), multirun)
        if not isinstance(error, BusyError):
            raise
        return None


def _carried_out(composed: DictConfig, folder: Path, multirun: bool) -> float | None:
    """Carry out a run in a folder of which no other process makes use."""
    from predictors.cli.terminal import warnings_last

    try:
        with warnings_last():
            return _run(composed, folder, multirun)
    except BaseException as error:
        if was_interrupted(error):
            raise KeyboardInterrupt from None
        if isinstance(error, (*BAD_INPUT, OmegaConfBaseException)):
            if isinstance(error, PluginError):
                logger.info("refused because of this exception", exc_info=error.__cause__)
            _refuse(folder, one_line(error), multirun)
        elif isinstance(error, Exception) and multirun:
            logger.info("unexpected", exc_info=True)
            _refuse(folder, f"{type(error).__name__}: {one_line(error)}", multirun)
        else:
            raise
    return None


def _refuse(folder: Path, message: str, multirun: bool) -> None:
    if not multirun:
        sys.stderr.write(f"error: {message}\n")
        raise SystemExit(BAD_STATUS)
    write_failure(folder, message)


def _compose_once() -> None:
    """Keep Hydra from composing everything beforehand for the sake of ``hydra.mode``.

    No configuration here sets it, so that an override or ``-m`` alone can.
    """
    from hydra._internal.hydra import Hydra

    def mode(self: Hydra, config_name: str | None, overrides: list[str]) -> RunMode | None:
        asked = [o.partition("=")[2] for o in overrides if o.startswith("hydra.mode=")]
        return RunMode[asked[-1]] if asked and asked[-1] in RunMode.__members__ else None

    Hydra.get_mode = mode  # type: ignore[method-assign]


def main() -> None:
    """Run the command line."""
    _compose_once()
    command = hydra.main(
        version_base="1.3", config_path=str(schema.CONFIG_FOLDER), config_name="config"
    )(_task)
    if sys.argv[1:] == ["--version"]:
        from sim.help.versions import own_version

        sys.stdout.write(f"moldsim {own_version()}\n")
        return
    os.environ.setdefault(FULL_ERROR, "1")  # Hydra then leaves its errors to us
    _begun.clear()
    try:
        with noting_interrupts():
            command()
    except (KeyboardInterrupt, Exception) as error:
        if was_interrupted(error):
            end()
        if _begun:
            traceback.print_exc()
            raise SystemExit(1) from None
        if "-m" in sys.argv and (words := with_key_swept(error, sys.argv[1:])):
            sys.argv[1:] = words
            main()
            return
        own = isinstance(error, OSError | SimError) and not isinstance(error, HydraException)
        said = one_line(error) if own else refusal(error, sys.argv[1:])
        sys.stderr.write(f"error: {said}\n")
        raise SystemExit(BAD_STATUS) from None


prepare()
