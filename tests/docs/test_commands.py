"""Every command in the pages runs, and what is shown below it is what it prints.

Commands are the lines of ``console`` blocks that begin with "$ ", run page by page, each page in
a folder of its own. The tutorial's log is among the real ones. Without MOLDSIM_WHOLE, which
``make test-extra`` sets, the short pages alone run, and one row of the tutorial.
"""

import gzip
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import sim
from benchmarks.results.regions import data

ROOT = Path(__file__).resolve().parents[2]
DUMP = "slurm-micro-sacct-2021.txt.gz"
SHORT = ("rules", "formats")
"""Pages whose commands take a few seconds."""


def blocks(page: Path) -> list[tuple[str, list[str]]]:
    """Return the commands of a page with the lines shown below each."""
    found: list[tuple[str, list[str]]] = []
    text = page.read_text("utf-8")
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line.rstrip())
    return found


PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if blocks(page)]


def run(command: str, folder: Path) -> str:
    words = shlex.split(command)
    assert words[0] == "python", command
    ended = subprocess.run(
        [sys.executable, *words[1:]], cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
    return ended.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(page, tmp_path, request):
    if page.stem not in SHORT and not os.environ.get("MOLDSIM_WHOLE"):
        pytest.skip("set MOLDSIM_WHOLE to run the commands of all pages")
    if page.name == "tutorial.md":
        log_of_the_tutorial(request, tmp_path)
    for command, shown in blocks(page):
        printed = [line.rstrip() for line in run(command, tmp_path).splitlines()]
        assert [line for line in shown if line not in printed] == [], command
    if page.name == "tutorial.md":
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
    for page in (ROOT / "docs").rglob("*.md"):
        lines = re.findall(r"^\s*\$ .*$", page.read_text("utf-8"), re.M)
        assert len(lines) == len(blocks(page)), page.name
