"""Every picture in README and docs is made by a command that stands beside it."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from sim.results.plots.pictures import KINDS
from tests.docs.commands import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
IMAGE = re.compile(r"!\[([^\]]+)\]\(([^)]+)\)\n\n\(`([^`]+\.png)`")
"""A picture with its text, and below it in brackets which file it is."""
COMMAND = re.compile(r"moldsim (?:run|sweep) [^`$]*?hydra\.(?:run|sweep)\.dir=([\w/]+)")
NEAR = 800
"""Characters between a picture and its command."""
REDRAWN = ("schedule.png", "events.png", "interference_all.png")
"""Those that take a few seconds; the others are made by tests/docs/test_commands.py."""


BEFORE = re.compile(r"moldsim oracle write (\w+)")


class Picture(NamedTuple):
    """A picture on a page: where it lies, the file that it is, and the commands that make that."""

    path: Path
    made: str
    commands: list[str]


def pictures():
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for shown in IMAGE.finditer(text):
            beside = text[max(shown.start() - NEAR, 0) : shown.end() + NEAR]
            commands = [
                " ".join(one[0].split())
                for one in COMMAND.finditer(beside)
                if shown[3].startswith(f"{one[1]}/")
            ]
            assert commands, f"{page.name}: no command beside {shown[2]} makes {shown[3]}"
            steps = [one[0] for one in BEFORE.finditer(beside) if one[1] in commands[0]]
            steps += commands[:1]
            if "/plots/" in shown[3]:
                folder, _, kind = shown[3].removesuffix(".png").split("/")
                if kind in KINDS:
                    steps.append(f"moldsim plot {folder} {kind}")
                    assert steps[-1] in " ".join(beside.split()), shown[3]
            found.append(Picture((page.parent / shown[2]).resolve(), shown[3], steps))
    return found


PICTURES = pictures()


def test_all_pictures_have_a_command_and_all_files_are_shown():
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    every = [one for text in texts for one in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)]
    assert len(PICTURES) == sum("images/" in one for one in every) > 0
    files = set((ROOT / "docs" / "images").iterdir())
    assert {one.path for one in PICTURES} == files


@pytest.mark.parametrize("name", REDRAWN)
def test_the_command_makes_the_picture(name, tmp_path):
    from matplotlib.image import imread

    (picture,) = (one for one in PICTURES if one.path.name == name)
    for command in picture.commands:
        ended = run(command, tmp_path)
        assert ended.returncode == 0, ended.stderr
    made, kept = imread(tmp_path / picture.made), imread(picture.path)
    assert made.shape == kept.shape
    assert np.abs(made - kept).mean() < 0.01
    if name == "schedule.png":
        assert ended.stdout.splitlines()[0].rstrip() in PAGES[0].read_text(encoding="utf-8")
