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


def test_a_table_says_what_each_package_takes_and_why(tmp_path):
    from benchmarks.installed_size import FOR, table

    packages = tmp_path / "lib/python3.11/site-packages"
    for name, size in {"scipy": 2**23, "simpy": 2**20, "pip": 2**20}.items():
        places = packages / name, packages / f"{name}-1.dist-info"
        for place in places:
            place.mkdir(parents=True)
        (places[0] / "__init__.py").write_bytes(b"#" * size)
        (places[1] / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (places[1] / "RECORD").write_text(f"{name}/__init__.py,,\n{name}-1.dist-info/METADATA,,\n")
    lines = table(tmp_path)
    assert [line.split(" | ")[-1].rstrip(" |") for line in lines[2:]] == ["8", "2", "10", "9"]
    assert lines[2] == f"| scipy | {FOR['scipy']} | 8 |"
    page = (ROOT / "docs/results/performance.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (.+) \| (.*) \| (\d+) \|$", page.partition("## Installed size")[2], re.M
    )
    assert {name: why for name, why, _ in rows[:-3]} == FOR
    assert int(rows[-1][2]) <= 650
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"The environment then takes {rows[-2][2]} MB" in readme


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_fonttools_is_pinned_to_its_small_wheel(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert re.search(r"^fonttools==\S+ \\\n    --hash=\S+\n(?! )", text, re.M)
