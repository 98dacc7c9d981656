"""``moldsim new KIND NAME``: class, YAML file and test of a part, written into the package here."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sim.command.main import BAD_STATUS
from sim.errors import SimError
from sim.help.misspellings import meant
from sim.help.pages import PLUGINS, options
from sim.results.durable import answering

POLICY = '''"""A policy of {package}."""

from sim import Conservative, FirstComeFirstServed, Request, View
from sim.policies.base import Policy, Scheduler


class {kind}:
    """Requests as they are, first come first served, conservative backfilling; change it.

    Anything with `begin(view)` will do that returns an object whose `decide()` returns
    decisions (`sim.state.decisions`) at every scheduling pass.
    """

    def begin(self, view: View) -> Scheduler:
        """Begin a run."""
        return Policy(FirstComeFirstServed(), Conservative(), Request()).begin(view)
'''
ALLOCATION = '''"""An allocation of {package}."""

from sim import View
from sim.policies.base import Outlook


class {kind}:
    """Part of the request.

    Parameters
    ----------
    share : float
        Of the requested processors.
    """

    def __init__(self, share: float) -> None:
        if not 0 < share <= 1:
            raise ValueError(f"share={{share}}: must lie above 0 and be at most 1")
        self.share = share

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the count for a job that has just arrived."""
        counts = view.counts(job)
        most = max(int(view.requested_processors[job] * self.share), counts[0])
        return int(counts[counts <= most][-1])
'''
ORDER = '''"""An order of {package}."""

import numpy as np


class {kind}:
    """Least believed work (processors times runtime) first."""

    recomputed = False

    def keys(
        self, now: float, submit: np.ndarray, processors: np.ndarray, runtime: np.ndarray
    ) -> np.ndarray:
        """Return a key a job, the smallest first."""
        return processors * runtime
'''
PREDICTOR = '''"""A predictor of {package}."""

import numpy as np
from predictors.base import Explanation, Observation, VisibleJobs


class {kind}:
    """The requested time, shorter in proportion on more processors."""

    learns = False

    def attach(self, jobs: VisibleJobs) -> None:
        """Begin a run; jobs are shown as they arrive. Forget all observations."""
        self._jobs = jobs

    def observe(self, observation: Observation) -> bool:
        """Take in a finished run, if `learns`; True if beliefs changed."""
        return False

    def curve(self, job: int, counts: np.ndarray) -> np.ndarray | None:
        """Return the believed runtimes at each count, seconds; None: the requested time."""
        area = self._jobs.requested_time[job] * self._jobs.requested_processors[job]
        return area / counts

    def explain(self, job: int, nprocs: int) -> Explanation:
        """Say where a belief came from, and on how many runs it rests."""
        return Explanation(method="{name}", observations=0, reliability="")
'''
WORKLOAD = '''"""A workload of {package}."""

import numpy as np
import pandas as pd
from workloads import FrameWorkload, Streams, Trace


class {kind}:
    """Poisson arrivals of jobs with exponential runtimes.

    Parameters
    ----------
    jobs : int
    width : int
        Processors of each job.
    """

    def __init__(self, jobs: int, width: int) -> None:
        self.jobs, self.width = jobs, width

    def trace(self, streams: Streams, processors: int | None) -> Trace:
        """Return the jobs; random numbers come from `streams` alone."""
        rng = streams("{name}")
        runtime = rng.exponential(600.0, self.jobs)
        frame = pd.DataFrame(
            {{
                "submit_time": np.cumsum(rng.exponential(300.0, self.jobs)),
                "runtime": runtime,
                "requested_processors": self.width,
                "requested_time": 2 * runtime,
            }}
        )
        return FrameWorkload(frame=frame).trace(streams, processors)
'''
TEST = '''"""What {name} does."""

import sim

HERE = "hydra.searchpath=[pkg://{package}.conf]"
"""Not needed once {package} is installed with its entry point."""


def test_a_run_ends_with_{name}():
    result = sim.run(HERE, "{override}", {more}processors=16, baseline=None)
    assert set(result.jobs["status"]) == {{"completed"}}
'''


class Kind(NamedTuple):
    """What is written for a kind of part: its group, class, further keys, and the test's run."""

    group: str
    code: str
    keys: str = ""
    more: str = '"workload.jobs=20", '


KINDS = {
    "policy": Kind("policy", POLICY),
    "allocation": Kind("policy/allocation", ALLOCATION, "share: 0.5  # of the request\n"),
    "order": Kind("policy/order", ORDER),
    "predictor": Kind("predictor", PREDICTOR),
    "workload": Kind(
        "workload", WORKLOAD, "jobs: 20  # how many jobs\nwidth: 4  # processors of each job\n", ""
    ),
}
USAGE = f"""usage: moldsim new {"|".join(KINDS)} NAME

Writes NAME.py, conf/GROUP/NAME.yaml and tests/test_NAME.py into the package of this folder:
the folder itself, or the one package in it (a folder with __init__.py).
"""
ENTRY = """Its options are known by name wherever {top} is installed, if its pyproject.toml has

[project.entry-points."{plugins}"]
{top} = "{package}.conf"

[tool.setuptools.package-data]
"*" = ["*.yaml"]
"""


def package_at(here: Path) -> Path:
    """Return the folder of the package here.

    Raises
    ------
    SimError
        If there is none, or several.
    """
    if (here / "__init__.py").is_file():
        return here
    inside = [path.parent for part in ("", "src") for path in (here / part).glob("*/__init__.py")]
    found = sorted(folder for folder in inside if folder.name != "tests")
    if len(found) != 1:
        names = ", ".join(folder.name for folder in found) or "none"
        raise SimError(
            f"{here}: one package is needed, a folder with __init__.py; there are: {names}"
        )
    return found[0]


def dotted(package: Path) -> tuple[str, Path]:
    """Return the dotted name of a package's folder, and the folder that the outermost lies in."""
    names, place = [package.name], package.parent
    while (place / "__init__.py").is_file():
        names.insert(0, place.name)
        place = place.parent
    return ".".join(names), place


def files(kind: str, name: str, package: Path) -> dict[Path, str]:
    """Return the files of a new part with their content.

    Raises
    ------
    SimError
        If the name is none, or the program has such an option already.
    """
    made = KINDS[kind]
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise SimError(f"{name}: must be a name such as my_rule (small letters, digits, _)")
    if name in {one.name for one in options(made.group)}:
        raise SimError(f"{made.group}={name}: there is such an option already; choose another name")
    module, above = dotted(package)
    root = above.parent if above.name == "src" else above
    words = {"package": module, "name": name, "kind": name.title().replace("_", "")}
    words |= {"override": f"{made.group}={name}", "more": made.more}
    about = re.search(r'class .*?"""(.*?)\n?(?:"""|\n)', made.code, re.DOTALL)
    option = f"# {about[1] if about else name}\n_target_: {module}.{name}.{words['kind']}\n"
    found = {
        package / f"{name}.py": made.code.format(**words),
        package / "conf" / made.group / f"{name}.yaml": option + made.keys,
        root / "tests" / f"test_{name}.py": TEST.format(**words),
    }
    if not (package / "conf" / "__init__.py").exists():
        found[package / "conf" / "__init__.py"] = f'"""Configuration of {module}."""\n'
    return found


@answering
def main(given: Sequence[str]) -> int:
    """Write the files of a new part; return the exit status."""
    if not given or {"--help", "-h"} & set(given):
        sys.stdout.write(USAGE)
        return 0 if given else BAD_STATUS
    written, package = write(list(given), Path.cwd())
    for path in written:
        sys.stdout.write(f"wrote {os.path.relpath(path)}\n")
    sys.stdout.write(ENTRY.format(top=package.split(".")[0], plugins=PLUGINS, package=package))
    return 0


def write(given: Sequence[str], here: Path) -> tuple[list[Path], str]:
    """Write the files; return them and the package's dotted name.

    Raises
    ------
    SimError
        If the kind is none, a file is there already, or as `files` and `package_at`.
    """
    kind = given[0]
    if kind not in KINDS:
        hint = meant(kind, KINDS, f"there are {', '.join(KINDS)}")
        raise SimError(f"new {kind}: there is no such kind; {hint}")
    if len(given) != 2:
        raise SimError(f"new {' '.join(given)}: a kind and a name are needed")
    package = package_at(here)
    found = files(kind, given[1], package)
    there = [path for path in found if path.exists()]
    if there:
        raise SimError(f"{there[0]}: exists already; nothing was written")
    for path, text in found.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(found), dotted(package)[0]
