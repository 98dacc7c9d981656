"""A run in a folder of its own: done once, or found there as it would be."""

import logging
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sim.config import digest
from sim.results.artefacts import finish, read_results, replacing, replication_folder
from sim.results.durable import FAILURE, SUMMARY
from sim.results.provenance import (
    CODE,
    DIGEST,
    INPUTS,
    KEEP,
    checked_inputs,
    code_checksum,
    input_files,
    why_again,
)
from sim.simulation.progress import Show
from sim.simulation.replay import Results, Simulated, run

logger = logging.getLogger(__name__)


class Carried(NamedTuple):
    """A run that is finished in its folder: its summaries, the files that it read, the folder."""

    results: Results
    inputs: Mapping[str, Path]
    folder: Path

    @property
    def places(self) -> list[Path]:
        """The folder of each replication, where there are several."""
        number = int(self.results[0].get("replications") or 0)
        return [replication_folder(self.folder, k) for k in range(number)]

    @property
    def parts(self) -> list[Results]:
        """The summaries of each replication, where there are several."""
        return [*map(read_results, self.places)]


def run_in(
    folder: Path,
    config: Mapping[str, Any],
    show: Show,
    save: Callable[[Path], None],
    keep: Callable[[Simulated], None] | None = None,
    *,
    anew: bool,
    goes_on: bool = True,
) -> Carried:
    """Carry out a run in a folder that nobody else works in.

    Parameters
    ----------
    folder : pathlib.Path
    config : mapping
        Its whole settings.
    show : Show
    save : callable
        Writes the configuration into a folder's ``.hydra/``: at once where there are no former
        results, which otherwise keep their own until the new ones are whole.
    keep : callable, optional
        Is handed each replication as it ends.
    anew : bool
        Whether to do again what is finished there with this configuration, these
        inputs and this code.
    goes_on : bool
        Whether replications that an interrupted run left there are taken for its own.
    """
    files = input_files(config)
    identity = {DIGEST: digest(config), INPUTS: checked_inputs(files), CODE: code_checksum()}
    finish(folder)
    (folder / FAILURE).unlink(missing_ok=True)
    if not anew:
        why = why_again(folder, identity, keep_code=config["reuse"] == KEEP)
        if why is None:
            logger.info("already finished: %s", folder.name)
            return Carried(read_results(folder), files, folder)
        if why:
            logger.warning("done again: %s", why)
    if not (folder / SUMMARY).exists():
        save(folder)
    with replacing(folder, goes_on=goes_on) as new:
        for part in new.iterdir():
            if part.is_file():
                part.unlink()
            elif why_again(part, identity, keep_code=config["reuse"] == KEEP) is not None:
                shutil.rmtree(part)
        save(new)
        results = run(config, new, identity, show, keep)
    return Carried(results, files, folder)
