"""The command ``moldsim``: finds the subcommand, and says what was probably meant.

Nothing is imported before it is known what is asked for, so that help answers at once.
"""

import gc
import os
import sys
import textwrap
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from sim.help.interrupts import goes_on, watch

BAD_STATUS = 2
TEMPLATES = Path(__file__).parent / "templates"
"""Folder of what subcommands write for others: scripts of shells, parts of one's own."""


class Subcommand(NamedTuple):
    """A subcommand: its module, what comes before its arguments, and what it is for."""

    module: str
    text: str
    before: tuple[str, ...] = ()


SUBCOMMANDS = {
    "run": Subcommand("sim.app", "simulate: moldsim run policy=sa workload.jobs=300"),
    "sweep": Subcommand("sim.app", "simulate every combination: policy=easy,sa seed=1,2", ("-m",)),
    "study": Subcommand("sim.study", "a whole study by its name, and its answers"),
    "compare": Subcommand("sim.compare", "tables, plots and a page of all runs below a folder"),
    "plot": Subcommand("sim.plot", "a picture of a run, for papers and slides"),
    "explain": Subcommand("sim.explain", "why a job waited, and which counts were compared for it"),
    "verify": Subcommand("sim.verify", "which runs below a folder are complete and undamaged"),
    "dataset": Subcommand("sim.dataset", "one data set of all runs below a folder"),
    "backtest": Subcommand("sim.backtest", "how far the simulated machine is from a log's own"),
    "advise": Subcommand("sim.advise", "which processors and walltime to ask for"),
    "predict": Subcommand("predictors", "runtime and speedup at other counts, from a few runs"),
    "describe": Subcommand("workloads", "what a log holds", ("describe",)),
    "convert": Subcommand("workloads", "a log in another format", ("convert",)),
    "generate": Subcommand("workloads", "a log from a model", ("generate",)),
    "fetch": Subcommand("workloads", "a log of the Parallel Workloads Archive", ("fetch",)),
    "oracle": Subcommand("sim.oracle", "schedules by exact rules; check your own by them"),
    "warm": Subcommand("sim.warm", "compile everything, so that later runs start at once"),
    "new": Subcommand("sim.command.new", "class, YAML file and test of a part of your own"),
    "check": Subcommand("sim.library.checking", "what is wrong with a part of your own"),
    "completion": Subcommand("sim.command.completion", "completion for bash, zsh or fish"),
    "help": Subcommand("sim.command.topics", "a group, an option, a key or a subcommand"),
    "version": Subcommand("sim.help.versions", "the version"),
}
OVERVIEW = """usage: moldsim SUBCOMMAND ...

What would adaptive processor allocation do for your machine, and how much of
it depends on the runtime predictor?

  run        simulate a workload under a policy, beside EASY backfilling
  compare    tables and a page of all runs below a folder
  backtest   how far the simulated machine is from a log's own
  advise     which processors and walltime a log's users should ask for
  predict    runtime and speedup at other counts, from a few measured runs

Of a run: KEY=VALUE
  workload=NAME                 a model, or what reads a log (swf, sacct, table)
  workload.path=FILE            the log
  policy=NAME                   how jobs are scheduled
  predictor=NAME                what runtimes the policy expects
  replications=N, seed=N        how many times, from which random numbers
  hydra.run.dir=DIR             where results go; outputs/DATE/TIME by default

  moldsim run workload=swf workload.path=LOG.swf.gz policy=sa_easy
  moldsim compare outputs

{more}moldsim help subcommands                               all of them: {names}
"""
"""What ``moldsim --help`` prints: it fits a terminal of 80 by 40."""
MORE_HELP = """moldsim help policy | predictor | workload | cluster   a table of what there is
moldsim help policy NAME                               one of them
moldsim help KEY                                       such as workload.load
moldsim help keys                                      every key
"""


def overview() -> str:
    """Return what ``moldsim --help`` prints."""
    listed = textwrap.wrap(", ".join(SUBCOMMANDS), 76, initial_indent="  ", subsequent_indent="  ")
    return OVERVIEW.format(more=MORE_HELP, names="\n" + "\n".join(listed))


def subcommands() -> str:
    """Return a line for each subcommand."""
    lines = (f"  {name:<12}{one.text}\n" for name, one in SUBCOMMANDS.items())
    return "".join(lines) + "\nmoldsim SUBCOMMAND --help has its arguments.\n"


def refuse(said: str) -> int:
    """Print an error; return the exit status."""
    sys.stderr.write(f"error: {said}\n")
    return BAD_STATUS


def main(given: Sequence[str] | None = None) -> int:
    """Carry out a subcommand; return its exit status."""
    if given is None:  # the folder may not take the place of modules of workers either
        os.environ.setdefault("PYTHONSAFEPATH", "1")
        gc.disable()  # what is loaded is no garbage
        watch()
        goes_on(["moldsim", *sys.argv[1:]], "start again with")
    name, *rest = [*(sys.argv[1:] if given is None else given)] or ["--help"]
    if name in ("--help", "-h"):
        sys.stdout.write(overview())
        return 0
    if name in ("--version", "version"):
        from sim.help.versions import own_version

        sys.stdout.write(f"moldsim {own_version()}\n")
        return 0
    if name in SUBCOMMANDS:
        return carry_out(name, SUBCOMMANDS[name], rest)
    if "=" in name:
        return refuse(f"{name}: a subcommand comes first; did you mean moldsim run {name}?")
    from sim.help.pages import meant

    hint = meant(name, SUBCOMMANDS, "moldsim --help lists all")
    return refuse(f"{name}: there is no such subcommand; {hint}")


def carry_out(name: str, asked: Subcommand, rest: Sequence[str]) -> int:
    """Hand the arguments to a subcommand's own ``main``."""
    if asked.module == "sim.app" and {"--help", "-h"} & set(rest):
        return carry_out("help", SUBCOMMANDS["help"], [name])
    sys.argv = [f"moldsim {name}", *asked.before, *rest]
    module = import_module(asked.module)
    if hasattr(module, "__path__"):
        module = import_module(f"{asked.module}.__main__")
    if asked.module == "sim.app":
        module.main()
        return 0
    gc.enable()
    from sim.results.durable import output

    status: int = 0
    with output():
        status = module.main([*asked.before, *rest])
    return status


if __name__ == "__main__":
    sys.exit(main())
