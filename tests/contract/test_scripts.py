"""Scripts run from the top of a checkout, where nothing of it is installed."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from scripts.check_mutants import mutants, mutated

ROOT = Path(__file__).resolve().parents[2]
ALONE = {"check_evalys", "check_page"}
"""Scripts that want packages of their own."""
OWN = r"^(?:from|import) (?:predictors|scripts|sim|workloads)\b"
SCRIPTS = sorted({path.stem for path in (ROOT / "scripts").glob("*.py")} - ALONE)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_finds_its_modules_from_the_top(name, monkeypatch):
    folder = ROOT / "scripts"
    others = [path for path in sys.path if Path(path or ".").resolve() != folder]
    monkeypatch.setattr(sys, "path", [str(ROOT), *others])
    importlib.import_module(f"scripts.{name}")


def test_commands_in_texts_name_scripts_that_need_no_installation():
    texts = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", *(ROOT / "scripts").glob("*.py")]
    for text in texts:
        for name in re.findall(r"python scripts/(\w+)\.py", text.read_text(encoding="utf-8")):
            script = (ROOT / "scripts" / f"{name}.py").read_text(encoding="utf-8")
            own = re.findall(
                r"^(?:from|import) (?:predictors|scripts|sim|workloads)\b", script, re.M
            )
            assert own == [], f"{text.name}: python -m scripts.{name}"


def test_every_wrong_variant_can_be_applied():
    for mutant in mutants():
        assert mutated(mutant, (ROOT / mutant["file"]).read_text(encoding="utf-8"))
        assert (ROOT / mutant["test"].partition("::")[0]).is_file(), mutant["test"]


def test_scripts_stay_small():
    """Studies are presets; what is left checks, measures and records."""
    files = (path for path in (ROOT / "scripts").iterdir() if path.is_file())
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 1000
