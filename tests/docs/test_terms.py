"""The page of terms has every configuration group, and every kind of figure in a summary."""

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from scripts.composing import composed
from sim.config import CONFIG_FOLDER
from sim.simulation.replay import artefacts
from sim.simulation.scene import play, set_scene

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guide" / "terms.md").read_text(encoding="utf-8")
INTERNAL = ("defaults_of", "former")
"""Groups that nobody chooses from."""
RUNS = {
    "usual": ("workload.jobs=20", "metrics.warmup=2"),
    "failing": (
        *("workload=decks", "workload.cycles=40", "evolving=adaptive", "predictor=dynamic"),
        *("cluster=failing", "policy=expand", "cluster.shrink_off_failed=true"),
    ),
    "grown": ("growth=keep_time", "workload.jobs=20", "predictor=focused"),
}


def groups() -> set[str]:
    folders = (path.parent.relative_to(CONFIG_FOLDER) for path in CONFIG_FOLDER.rglob("*/*.yaml"))
    return {folder.as_posix() for folder in folders if folder.parts[0] not in INTERNAL}


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_every_configuration_group_has_a_row():
    assert groups() - set(quoted(PAGE)) == set()


@pytest.mark.parametrize("kind", RUNS)
def test_every_key_of_a_summary_belongs_to_a_row(kind):
    section = PAGE.partition("## Keys of `summary.json`")[2].partition("\n## ")[0]
    named = [one for line in section.splitlines() for one in quoted(line.partition(" | ")[0])]
    config = composed(*RUNS[kind])
    scene = set_scene(config, 0)
    keys = artefacts(config, play(config, config, scene), scene, 1.0, "").summary
    assert len(keys) > 100
    assert [key for key in keys if not any(fnmatchcase(key, one) for one in named)] == []


def test_every_row_has_three_cells():
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    assert [row for row in rows if len(re.findall(r"(?<!\\)\|", row)) != 4] == []
