"""One command for a whole study: ``moldsim study NAME[,NAME] [key=value ...]``.

It runs the experiment preset of that name, or several together, as a multirun and compares
what it ran.
"""

import datetime
import os
import shlex
import sys
from collections.abc import Sequence

from sim.command.main import SUBCOMMANDS, carry_out, refuse
from sim.help.interrupts import GO_ON
from sim.help.pages import options

FOLDER = "hydra.sweep.dir="
USAGE = """usage: moldsim study NAME[,NAME] [key=value ...] [--OPTION[=VALUE] ...]

Runs the experiment preset NAME as a multirun, then compares its runs: which policy,
which predictor, how much it matters, and how sure that is. hydra.sweep.dir=DIR says
where (studies/NAME/DATE by default); started again there, it redoes only what is missing.
Options are those of moldsim compare, such as --against=policy=easy or
--figure=p95_response_time.

presets: """


def commands(
    name: str, overrides: Sequence[str], now: datetime.datetime
) -> tuple[list[str], list[str]]:
    """Return the arguments of the two commands of a study: the multirun and the comparison.

    Examples
    --------
    >>> now = datetime.datetime(2026, 1, 2)
    >>> for arguments in commands("herd", ["seed=2"], now):
    ...     print(*arguments)
    experiment=herd seed=2 hydra.sweep.dir=studies/herd/2026-01-02-000000
    studies/herd/2026-01-02-000000
    >>> print(*commands("herd", ["hydra.sweep.dir=here", "--table"], now)[1])
    here --table
    >>> print(*commands("herd,cycles", [], now)[0])
    experiment=[herd,cycles] hydra.sweep.dir=studies/herd+cycles/2026-01-02-000000
    """
    given = [one.removeprefix(FOLDER) for one in overrides if one.startswith(FOLDER)]
    folder = given[-1] if given else f"studies/{name.replace(',', '+')}/{now:%Y-%m-%d-%H%M%S}"
    preset = f"[{name}]" if "," in name else name
    options = [one for one in overrides if one.startswith("--")]
    others = [one for one in overrides if not one.startswith((FOLDER, "--"))]
    return [f"experiment={preset}", *others, FOLDER + folder], [folder, *options]


def main(given: Sequence[str] | None = None) -> int:
    """Run a study; return the exit status: of the comparison, else of the multirun."""
    asked = list(sys.argv[1:] if given is None else given)
    known = [one.name for one in options("experiment")]
    if not asked or asked[0] in ("-h", "--help"):
        sys.stdout.write(USAGE + ", ".join(known) + "\n")
        return 0 if asked else 2
    for name in asked[0].split(","):
        if name not in known:
            return refuse(f"study {name}: no such study; there are {', '.join(known)}")
    run, rest = commands(asked[0], asked[1:], datetime.datetime.now().astimezone())
    again = ["moldsim", "study", *(word for word in asked if FOLDER not in word), run[-1]]
    os.environ.setdefault(GO_ON, shlex.join(again))
    failed = 0
    try:
        carry_out("sweep", SUBCOMMANDS["sweep"], run)
    except SystemExit as ended:
        if ended.code != 1:  # runs that failed are compared as failed
            raise
        failed = 1
    return carry_out("compare", SUBCOMMANDS["compare"], rest) or failed


if __name__ == "__main__":
    sys.exit(main())
