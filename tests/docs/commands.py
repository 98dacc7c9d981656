"""The commands of pages: which there are, what is shown below each, and how they are run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from predictors.compiling import kernel_folder

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, *sorted(DOCS.rglob("*.md")), ROOT / "examples/mylab/README.md"]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
FILE = re.compile(r"`([\w/]+\.\w+)`[^`]*?:\n\n```(?:py|python|yaml|csv)\n(.*?)```", re.S)
"""A file that a page says to write."""
PROGRAM = "import sys; from sim.command.main import main; sys.exit(main())"
MODULE = re.compile(r"python -m (benchmarks|scripts|tests)\b")


class Step(NamedTuple):
    """A command of a page, and the lines that stand below it."""

    command: str
    shown: list[str]


def blocks(page: Path, kind: str) -> list[str]:
    """Return the texts of a page's blocks of a kind."""
    return [text for name, text in BLOCK.findall(page.read_text("utf-8")) if name == kind]


def steps(page: Path) -> list[Step]:
    """Return the commands in a page's console blocks, in order."""
    found: list[Step] = []
    for line in (line for text in blocks(page, "console") for line in text.splitlines()):
        if line.startswith("$ "):
            found.append(Step(line.removeprefix("$ "), []))
        elif line.strip():
            found[-1].shown.append(line)
    return found


def written(page: Path) -> dict[str, str]:
    """Return the files that a page says to write, with their text."""
    return dict(FILE.findall(page.read_text("utf-8")))


def write(files: dict[str, str], folder: Path) -> None:
    """Type files into a folder."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def run(command: str, folder: Path, more_path: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command of ``moldsim``, or one of the repository's, as somebody who types it."""
    words = shlex.split(command)
    if words[0] == "moldsim":
        words[:1] = [sys.executable, "-c", PROGRAM]
    else:
        assert MODULE.match(command), command
        words[0] = sys.executable
    paths = [more_path, str(ROOT)] if more_path else [str(ROOT)]
    kept = {"NUMBA_CACHE_DIR": str(kernel_folder().parent)}
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=900, check=False,
        env={"PYTHONPATH": ":".join(paths), "PATH": "/usr/bin:/bin", "HOME": str(folder), **kept},
    )  # fmt: skip


def follow(page: Path, folder: Path, left_out: str = "venv") -> None:
    """Carry out a page in a folder, and compare what is printed with what it shows.

    A shown line may be part of a printed one, which may be folded, and lines may be left out.
    """
    write(written(page), folder)
    path = ""
    for command, shown in steps(page):
        if left_out in command:
            continue
        if command.startswith("export PYTHONPATH="):
            path = command.partition("=")[2]
            continue
        ended = run(command, folder, path)
        assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
        printed = flat(ended.stdout)
        assert [line for line in shown if flat(line) not in printed] == [], command


def flat(text: str) -> str:
    """Return a text with one blank between words."""
    return " ".join(text.split())
