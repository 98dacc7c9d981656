"""Which runs below a folder are finished, missing, damaged or foreign: ``moldsim verify``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from predictors.cli.terminal import Display, PlainConsole
from predictors.plain import shown_plainly
from sim.errors import SimError
from sim.report.gathering import find_runs, missing_runs
from sim.results import durable
from sim.results.artefacts import is_finished
from sim.results.durable import MANIFEST
from sim.sweeps.configurations import read_configuration

STATES = ("finished", "missing", "damaged", "failed", "foreign")


def state(run: Path) -> tuple[str, str]:
    """Return one of `STATES`, and what is to be said of it.

    Missing is a run that was begun and wrote no summary; foreign one that has a summary
    but nothing by which its files could be checked, or no configuration beside it.
    """
    if (run / durable.FAILURE).exists():
        return "failed", durable.read_failure(run)
    if not (run / durable.SUMMARY).exists():
        return "missing", f"it has no {durable.SUMMARY}"
    wrong = durable.damage(run)
    try:
        configured = read_configuration(run).values
        checked = is_finished(run) and durable.CHECKSUMS in durable.read_object(run / MANIFEST)
    except (SimError, ValueError) as error:
        return "damaged", wrong or str(error)
    if wrong is not None:
        return "damaged", wrong
    if not configured:
        return "foreign", "it has no configuration in .hydra/"
    return ("finished", "") if checked else ("foreign", f"{MANIFEST} has no checksums")


@durable.answering
def main(given: Sequence[str] | None = None) -> int:
    """Print every run that is not whole, and how many there are of each state.

    Returns
    -------
    int
        0 if all are finished and whole, 1 if not, 2 if there is nothing to verify.
    """
    parser = argparse.ArgumentParser(
        prog="moldsim verify",
        description="Check the files of all runs below a folder against their checksums.",
    )
    parser.add_argument("folder", type=Path, help="folder of a run or a multirun")
    folder: Path = parser.parse_args(given).folder
    counts = dict.fromkeys(STATES, 0)
    with Display(PlainConsole(stderr=True), "verify") as shown:
        runs = shown.each(find_runs(folder), "checks the runs")
        every = [(run.relative_to(folder).as_posix(), *state(run)) for run in runs]
    for name, found, said in every:
        counts[found] += 1
        if found != "finished":
            sys.stdout.write(shown_plainly(f"{found}: {name}: {said}") + "\n")
    left = missing_runs(folder, {folder / name for name, *_ in every})
    told = [f"{number} {name}" for name, number in counts.items() if number]
    sys.stdout.write(shown_plainly(", ".join(filter(None, [*told, left]))) + "\n")
    return 0 if counts["finished"] == len(every) and not left else 1


if __name__ == "__main__":
    sys.exit(main())
