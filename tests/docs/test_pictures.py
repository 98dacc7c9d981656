"""Every picture in README and docs is made by a command that stands beside it."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from sim.results.plots.pictures import KINDS, SCHEDULE
from sim.results.plots.style import in_dark
from tests.docs.commands import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
IMAGE = re.compile(
    r'<picture><source media="\(prefers-color-scheme: dark\)" '
    r'srcset="(?P<dark>[^"]+)"><img src="(?P<light>[^"]+)" alt="[^"]+"></picture>'
    r"\n\n\(`(?P<made>[^`]+\.svg)`"
)
"""A picture with its text, and below it in brackets which file it is."""
COMMAND = re.compile(r"moldsim (?:run|sweep) [^`$]*?hydra\.(?:run|sweep)\.dir=([\w/]+)")
MOST_BYTES = 350_000
"""Of a picture in the repository."""
NEAR = 800
"""Characters between a picture and its command."""
REDRAWN = ("schedule.svg", "events.svg", "interference_all.svg")
"""Those that take a few seconds; the others are made by tests/docs/test_commands.py."""


BEFORE = re.compile(r"moldsim oracle write (\w+)")


class Picture(NamedTuple):
    """A picture on a page: where it lies, the file that it is, and the commands that make that."""

    path: Path
    made: str
    commands: list[str]
    dark: Path


def pictures():
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for shown in IMAGE.finditer(text):
            beside = text[max(shown.start() - NEAR, 0) : shown.end() + NEAR]
            commands = [
                " ".join(one[0].split())
                for one in COMMAND.finditer(beside)
                if shown["made"].startswith(f"{one[1]}/")
            ]
            path = shown["light"]
            assert commands, f"{page.name}: no command beside {path} makes {shown['made']}"
            steps = [one[0] for one in BEFORE.finditer(beside) if one[1] in commands[0]]
            steps += commands[:1]
            if "/plots/" in shown["made"]:
                folder, _, kind = shown["made"].removesuffix(".svg").split("/")
                if kind in (SCHEDULE, *KINDS):
                    steps.append(f"moldsim plot {folder} {kind}")
                    assert steps[-1] in " ".join(beside.split()), shown["made"]
            dark = (page.parent / shown["dark"]).resolve()
            found.append(Picture((page.parent / path).resolve(), shown["made"], steps, dark))
    return found


PICTURES = pictures()


def test_all_pictures_have_a_command_and_all_files_are_shown():
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    shown = r'!\[[^\]]*\]\(([^)]+)\)|<img src="([^"]+)'
    every = [one or other for text in texts for one, other in re.findall(shown, text)]
    assert len(PICTURES) == sum("images/" in one for one in every) > 0
    files = set((ROOT / "docs" / "images").iterdir())
    assert {one.path for one in PICTURES} | {one.dark for one in PICTURES} == files
    for one in PICTURES:
        assert one.dark.read_text("utf-8") == in_dark(one.path.read_text("utf-8"))
        assert one.path.stat().st_size < MOST_BYTES


@pytest.mark.parametrize("name", REDRAWN)
def test_the_command_makes_the_picture(name, tmp_path):
    (picture,) = (one for one in PICTURES if one.path.name == name)
    told = ""
    for command in picture.commands:
        ended = run(command, tmp_path)
        assert ended.returncode == 0, ended.stderr
        told = told or ended.stdout
    made, kept = tmp_path / picture.made, picture.path
    made, kept = (re.findall("<!-- .* -->", one.read_text("utf-8")) for one in (made, kept))
    assert made == kept
    if name == "schedule.svg":
        assert told.splitlines()[0].rstrip() in PAGES[0].read_text(encoding="utf-8")
