"""Every command in the pages runs, and what is shown below it is what it prints.

Commands are the lines of ``console`` blocks that begin with "$ ", run page by page, each page in
a folder of its own. The tutorial's log is among the real ones. With MOLDSIM_WHOLE every command
runs as it stands; without it, studies run on fewer seeds and predictors.
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

ROOT = Path(__file__).resolve().parents[2]
DUMP = "slurm-micro-sacct-2021.txt.gz"
SHORTER = {
    "seed=1,2,3": "seed=1,2",
    "predictor=user_estimate,amdahl,adept,oracle": "predictor=user_estimate,amdahl",
    "predictor=user_estimate,amdahl,adept": "predictor=user_estimate,amdahl",
    "policy=easy,conservative,sa": "policy=easy,conservative",
}


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
    if not os.environ.get("MOLDSIM_WHOLE"):
        words = [SHORTER.get(word, word) for word in words]
    ended = subprocess.run(
        [sys.executable, *words[1:]], cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
    return ended.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(page, tmp_path, request):
    if page.name == "tutorial.md":
        dump = request.getfixturevalue("traces") / DUMP
        (tmp_path / "jobs.txt").write_bytes(gzip.decompress(dump.read_bytes()))
    for command, shown in blocks(page):
        told = run(command, tmp_path).splitlines()
        printed = [line.rstrip() for line in told]
        assert [line for line in shown if line not in printed] == [], command
    if page.name == "tutorial.md":
        kept = pd.read_csv(ROOT / "docs/results/tutorial/slurm.csv")
        again = pd.read_csv(tmp_path / "study/differences.csv")
        both = again.merge(kept, on=["policy", "predictor"], suffixes=("", "_kept"))
        assert len(both) >= 3
        assert both["change"].to_numpy() == pytest.approx(both["change_kept"], abs=1e-6)


def test_a_page_in_the_readme_s_tone_has_no_command_outside_a_block():
    """Lines that begin with a dollar stand in console blocks, so that none is left out."""
    for page in (ROOT / "docs").rglob("*.md"):
        lines = re.findall(r"^\s*\$ .*$", page.read_text("utf-8"), re.M)
        assert len(lines) == len(blocks(page)), page.name
