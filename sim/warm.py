"""Compile everything once, so that later runs start at once: moldsim warm.

Compiled code is kept in the user's cache folder (XDG_CACHE_HOME), where that can be written,
else in a private temporary folder; NUMBA_CACHE_DIR names another place, which the nodes of a
cluster may share.
"""

import argparse
import contextlib
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from rich.progress import track

from predictors.cli.terminal import PlainConsole
from predictors.compiling import kernel_folder
from sim.composition import configuration
from sim.config import CONFIG_FOLDER
from sim.errors import AT_LEAST_1, SimError
from sim.results.durable import answering

TOY = ("workload.jobs=40",)
SHARED = ("cluster=shared", "cluster.processors=16", "cluster.history=1200", "workload.jobs=10")
OTHERS = (
    ("policy=load_aware", "predictor=rational", *SHARED),
    ("policy=easy", "cluster=failing", "cluster.mtbf=1000000", *TOY),
    ("policy=easy", "workload=decks", "workload.cycles=60", "evolving=adaptive"),
)
"""Runs that need code of their own."""
MOST_PROCESSES = 4
"""Beyond these, processes would compile the same code at the same time."""


def _names(group: str) -> list[str]:
    return sorted(path.stem for path in (CONFIG_FOLDER / group).glob("*.yaml"))


def toys() -> Iterator[Sequence[tuple[str, ...]]]:
    """Yield the overrides of small runs that together use all compiled code.

    Those that share much of it stand in one list, for one process; the longest comes first.
    """
    yield [("policy=sa", f"predictor={predictor}", *TOY) for predictor in _names("predictor")]
    for policy in _names("policy"):
        yield [(f"policy={policy}", f"predictor={one}", *TOY) for one in ("user_estimate", "adept")]
    yield from ([other] for other in OTHERS)


def warm(runs: Sequence[Sequence[str]]) -> None:
    """Play small runs without writing anything of them."""
    from sim.results.metrics import summarise
    from sim.simulation.scene import play, set_scene

    for overrides in runs:
        config = configuration(overrides)
        with warnings.catch_warnings(), contextlib.suppress(SimError):  # parts that do not fit
            warnings.simplefilter("ignore")
            summarise(play(config, config, set_scene(config, 0)).outcome)


@answering
def main(given: Sequence[str] | None = None) -> int:
    """Compile; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="moldsim warm",
        description="Compile everything once, so that later runs start at once.",
        epilog="NUMBA_CACHE_DIR names another folder for compiled code, which computers may share.",
    )
    parser.add_argument("only", nargs="*", help="only overrides that contain this, e.g. policy=sa")
    parser.add_argument(
        *("-p", "--processes"),
        type=int,
        default=min(MOST_PROCESSES, os.cpu_count() or 1),
        help="how many compile at once (default: %(default)s)",
    )
    asked = parser.parse_args(given)
    console = PlainConsole(stderr=True, soft_wrap=True)
    only = {*asked.only}
    wanted = [runs for some in toys() if (runs := [t for t in some if not only or only & {*t}])]
    if not wanted:
        raise SimError(f"{' '.join(asked.only)}: selects nothing; give parts such as policy=sa")
    AT_LEAST_1.check(**{"--processes": asked.processes})
    with ProcessPoolExecutor(min(asked.processes, len(wanted)), get_context("spawn")) as pool:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the processes stay deaf to it
        begun = [pool.submit(warm, runs) for runs in wanted]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        done = as_completed(begun)
        for one in track(done, "compiling", len(wanted), console=console, transient=True):
            one.result()
    PlainConsole(soft_wrap=True).print(f"compiled; cached in {kernel_folder()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
