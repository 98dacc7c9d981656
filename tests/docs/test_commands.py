"""Every command in the pages, in help and in docstrings runs, and prints what is shown below it.

Commands in console blocks are run page by page, each page in a folder of its own with the files
that it says to write. Those elsewhere are run once, unless a capital word stands for something
of the reader's or another program is needed; of these subcommand, keys and options must exist.
"""

import functools
import gzip
import os
import re
from pathlib import Path

import pandas as pd
import pytest

import sim
from benchmarks.results.regions import data
from sim.command.main import OVERVIEW, SUBCOMMANDS
from sim.help.pages import groups, known_keys, options
from tests.docs.commands import PAGES, ROOT, flat, follow, run, steps

DUMP = "slurm-micro-sacct-2021.txt.gz"
TWO_LOGS = "tutorial.md"
SOURCES = [
    path
    for name, kind in (("sim", "py"), ("predictors", "py"), ("workloads", "py"), ("conf", "*"))
    for path in sorted((ROOT / name).rglob(f"*.{kind}"))
    if path.suffix in (".py", ".yaml", ".txt")
]
SPAN = re.compile(r"`+(moldsim [^`]+)`+|^(?:  )?(moldsim \S(?:.*\\\n)*.*)$", re.M)
"""A command within a text, or on a line of its own."""
STANDS_FOR = {
    "help policy NAME": "help policy sa",
    "help KEY": "help workload.load",
    "help NAME": "help seed",
    "help TOPIC": "help policy",
    **dict.fromkeys(("LOG.swf.gz", "LOG", "JOBS", "jobs.txt"), "sample"),
    "RUN JOB": "first 13",
    "RUN KIND": "first waits",
    **dict.fromkeys(("RUN", "FOLDER", "outputs"), "first"),
    "RUNS.csv": "runs.csv",
    "SWEEP TARGET": "first target",
}
"""What a reader would write for a capital word."""
RUNS = "nprocs,size,runtime\n" + "".join(
    f"{n},{m},{0.02 * m / n}\n" for n in (4, 8, 16, 32, 512, 1024) for m in (10000, 20000, 40000)
)
ELSEWHERE = re.compile(r"submitit|optuna|warm|--line|[A-Z]{2,}|[|…\[{]|moldability.path|against")
"""What needs another program or something of the reader's, takes long, or is asked by a shell."""


@pytest.mark.parametrize("page", [p for p in PAGES if steps(p)], ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(page, tmp_path, request):
    if page.name == TWO_LOGS:
        if not os.environ.get("MOLDSIM_WHOLE"):
            pytest.skip("set MOLDSIM_WHOLE to carry out the study of two logs anew")
        log_of_the_tutorial(request, tmp_path)
    if page.parent.name == "mylab":
        pytest.skip("tests/contract/test_plugins.py installs and runs it")
    follow(page, tmp_path)
    if page.name == TWO_LOGS:
        kept = pd.DataFrame(data("tutorial")["slurm"])
        again = pd.read_csv(tmp_path / "study/differences.csv")
        both = again.merge(kept, on=["policy", "predictor"], suffixes=("", "_kept"))
        assert len(both) == len(kept)
        assert both["change"].to_numpy() == pytest.approx(both["change_kept"], abs=1e-6)


def log_of_the_tutorial(request: pytest.FixtureRequest, folder: Path) -> Path:
    """Write the tutorial's log, or skip the test where there are no real logs."""
    dump = request.getfixturevalue("traces") / DUMP
    path = folder / "jobs.txt"
    path.write_bytes(gzip.decompress(dump.read_bytes()))
    return path


@pytest.mark.parametrize("wanted", [("conservative", "amdahl"), ("conservative", "user_estimate")])
def test_rows_of_the_tutorial_are_recomputed(wanted, tmp_path, request):
    """Those that are the same in each draw of the curves, from one draw."""
    log = log_of_the_tutorial(request, tmp_path)
    asked = ("workload=sacct", f"workload.path={log}", "cluster.processors=120", "given=recorded",
             "moldability.share=0.5", "baseline=null")  # fmt: skip
    former = ("predictor.most_error=null",) if wanted[1] == "amdahl" else ()
    means = [
        sim.run(*asked, *more, policy=policy, predictor=predictor, seed=1).summary[
            "mean_response_time"
        ]
        for policy, predictor, more in ((*wanted, former), ("easy", "user_estimate", ()))
    ]
    kept = pd.DataFrame(data("tutorial")["slurm"]).set_index(["policy", "predictor"])
    assert means[0] / means[1] - 1 == pytest.approx(kept.loc[wanted, "change"], abs=1e-6)


def test_no_command_stands_outside_a_block():
    """Lines that begin with a dollar stand in console blocks, so that none is left out."""
    for page in PAGES:
        lines = re.findall(r"^\s*\$ .*$", page.read_text("utf-8"), re.M)
        assert len(lines) == len(steps(page)), page.name


def test_pages_type_the_command():
    for page in PAGES:
        typed = re.findall(r"python -m (?:sim|predictors|workloads)\b.*", page.read_text("utf-8"))
        assert typed == [], page.name


@functools.cache
def elsewhere() -> dict[str, str]:
    """Return the commands outside console blocks, and where each stands."""
    found: dict[str, str] = {}
    for path in (*PAGES, *SOURCES):
        text = re.sub(r"^```console.*?^```", "", path.read_text("utf-8"), flags=re.M | re.S)
        for one in SPAN.finditer(text):
            command = (one[1] or one[2]).replace("\\\n", "").replace("\n", " ")
            found.setdefault(re.split(r" {3,}(?!hydra|policy|')", command)[0], str(path))
    return {flat(command): place for command, place in found.items()}


def test_commands_elsewhere_name_what_there_is():
    keys, named = {*known_keys()}, {*groups()}
    wrong = []
    for command, place in elsewhere().items():
        _, verb, *words = command.replace("'", "").split()
        if verb not in SUBCOMMANDS and not re.fullmatch(r"[A-Z]+|--\w+", verb):
            wrong.append((place, command, verb))
        for word in words:
            key, equals, value = word.partition("=")
            if (
                not equals
                or key.startswith(("--", "hydra"))
                or not re.fullmatch(r"[a-z][\w./]*", key)
            ):
                continue
            if key not in keys:
                wrong.append((place, command, key))
            if key in named and re.fullmatch(r"[a-z_,]+", value):
                there = {one.name for one in options(key)}
                wrong += [(place, command, one) for one in value.split(",") if one not in there]
    assert wrong == []
    assert len(elsewhere()) > 40


def test_commands_elsewhere_run(tmp_path):
    """In a folder in which lies the run of the first picture."""
    (tmp_path / "runs.csv").write_text(RUNS, encoding="utf-8")
    done = {step.command for page in PAGES for step in steps(page)}
    asked = {"moldsim run workload.jobs=1000 hydra.run.dir=first": ""}
    for command in elsewhere():
        for word, meant in STANDS_FOR.items():
            command = re.sub(rf"(?<![\w.]){re.escape(word)}(?![\w\[.])", meant, command)
        if len(command.split()) > 2 and command not in done and not ELSEWHERE.search(command):
            asked[command] = ""
    assert len(asked) > 20
    for command in asked:
        ended = run(command, tmp_path)
        assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"


@pytest.mark.fast
def test_help_fits_a_screen_and_its_commands_are_looked_at():
    listed = [line for line in OVERVIEW.splitlines() if line.startswith("  moldsim run")]
    assert {flat(line) for line in listed} <= elsewhere().keys()
