"""The log that a site's command is given: its format, its configuration, its jobs."""

import argparse
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sim.composition import configuration
from sim.errors import ConfigError, SimError
from sim.simulation.build import build
from sim.simulation.scene import source_of
from sim.site.log_schedule import NO_WAITS
from workloads.base import Trace
from workloads.logs.formats import guess_format
from workloads.logs.log import LogWorkload
from workloads.streams import Streams

RIGID = ("moldability=none", "predictor=user_estimate")
"""What replays of rigid jobs need."""


def answered(
    prog: str, about: str, keys: str, logs: str, given: Sequence[str] | None,
    answer: Callable[[Sequence[str]], int],
) -> int:  # fmt: skip
    """Answer a command line of a log and overrides; return the exit status.

    Parameters
    ----------
    prog, about : str
        The command, and what it does.
    keys : str
        Those of its own.
    logs : str
        What it takes for a log.
    given : sequence of str, optional
    answer : callable
        Takes the words of the line, returns the status.
    """
    told = f"Overrides are those of moldsim run (workload.*, cluster.processors, seed), and {keys}."
    parser = argparse.ArgumentParser(prog=prog, description=about, epilog=told)
    words = f"{logs}; overrides"
    parser.add_argument("words", nargs="*", metavar="LOG KEY=VALUE", help=words)
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    return answer(parser.parse_args(given).words)


def composed(overrides: Sequence[str]) -> dict[str, Any]:
    """Return the configuration of a replay of rigid jobs; what Hydra refuses in a line."""
    return configuration([*RIGID, *overrides])


def of_log(given: Sequence[str]) -> list[str]:
    """Return the overrides of a command line whose first word may be a log.

    Its format is known by content unless ``workload=`` says it.

    Raises
    ------
    ConfigError
        If one of them has no effect on what is done with a log.
    """
    for one in given:
        if one.partition("=")[0].lstrip("+~").partition(".")[0] in ("policy", "baseline"):
            raise ConfigError(
                f"{one}: has no effect here; workload.*, cluster.processors, seed have"
            )
    if not given or "=" in given[0]:
        return list(given)
    log, rest = given[0], list(given[1:])
    named = any(one.startswith("workload=") for one in rest)
    kind = [] if named else [f"workload={guess_format(log)}"]
    quoted = str(log).replace("\\", "\\\\").replace("'", "\\'")
    return [*kind, f"workload.path='{quoted}'", *rest]


def read_source(
    config: Mapping[str, Any], quiet: bool = False, waits: bool = False
) -> tuple[Trace, int | None]:
    """Return all jobs of a log, and the machine's size that is asked for.

    Parameters
    ----------
    config : mapping
        The whole configuration.
    quiet : bool
        Whether what is left out was told before.
    waits : bool
        Whether a log without recorded waits is refused.

    Raises
    ------
    SimError, WorkloadError
        If it cannot be read, or is no log, or lacks waits that are wanted.
    """
    source = build(source_of(config["workload"]), "workload")
    if not isinstance(source, LogWorkload):
        raise SimError("a model has no recorded machine: give a log, or workload=archive")
    log = source.read_part()
    if waits and not (log.jobs["wait_time"] >= 0).any():
        raise SimError(f"{log.source}: {NO_WAITS}")
    asked = config["cluster"]["processors"]
    teller = logging.getLogger(LogWorkload.__module__)
    teller.disabled = quiet
    try:
        return source.trace_of(log, Streams(config["seed"], 0), asked), asked
    finally:
        teller.disabled = False
