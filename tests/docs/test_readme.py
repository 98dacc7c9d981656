"""The README's blocks run as they stand, and the other places say the same."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.results.regions import data

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = [
    line.removeprefix("$ ")
    for kind, text in BLOCKS
    if kind == "console"
    for line in text.splitlines()
    if line.startswith("$ ")
]
SETUP = [command for command in COMMANDS if "venv" in command]
PLAIN = [command for command in COMMANDS if command not in SETUP]
PROGRAMS = [text for kind, text in BLOCKS if kind == "python"]

PLUGIN = re.findall(r"`(mylab/[\w/]+\.\w+)`:\n\n```\w+\n(.*?)```", README, re.DOTALL)
"""The files of a rule of one's own."""


def run(arguments, folder):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the README's commands run one after the other."""
    made = tmp_path_factory.mktemp("readme")
    (runs,) = (text for kind, text in BLOCKS if kind == "csv")
    (made / "runs.csv").write_text(runs, encoding="utf-8")
    for path, text in PLUGIN:
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        (made / path).write_text(text, encoding="utf-8")
    return made


@pytest.mark.parametrize("command", PLAIN)
def test_the_commands_run(command, folder):
    words = shlex.split(command)
    assert words[0] == "python"
    ended = run(words[1:], folder)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip()


def printed() -> dict[str, list[str]]:
    """Return what the README shows that commands print."""
    found: dict[str, list[str]] = {}
    for text in (text for kind, text in BLOCKS if kind == "console"):
        for line in text.splitlines():
            if line.startswith("$ "):
                shown = found.setdefault(line.removeprefix("$ "), [])
            else:
                shown.append(line)
    return {command: lines for command, lines in found.items() if lines}


def test_what_is_shown_is_what_is_printed(folder):
    assert printed()
    for command, lines in printed().items():
        told = run(shlex.split(command)[1:], folder).stdout.splitlines()
        told = [line.rstrip() for line in told]
        assert [line for line in lines if line not in told] == []


def test_the_programs_run_and_print_what_is_shown(folder):
    example = ["-m", "sim", "workload.jobs=50", "hydra.run.dir=outputs/example", "baseline=null"]
    assert run(example, folder).returncode == 0
    ended = run(["-c", "\n".join(PROGRAMS)], folder)
    assert ended.returncode == 0, ended.stderr
    assert "response_time" in ended.stdout
    (shown,) = re.findall(
        r"^```python\nimport sim\n.*?^```\n\n```text\n(.*?)^```", README, re.M | re.S
    )
    assert shown in ended.stdout


def test_the_headline_is_that_of_the_results():
    rows = data("tutorial")["sdsc"]
    best = min((r for r in rows if r["predictor"] != "oracle"), key=lambda r: float(r["change"]))
    low, high = (100 * float(best[key]) for key in ("change_low", "change_high"))
    change = f"{100 * float(best['change']):.1f} % [{low:.1f}, {high:.1f}], not certain"
    assert f"`{best['policy']}, {best['predictor']}` | {change}" in README
    assert all(float(row["p_corrected"]) > 0.05 for row in rows)
    accuracy = ROOT / "docs/results/accuracy/data.json"
    kept = json.loads(accuracy.read_text(encoding="utf-8"))["rows"]
    for row in kept:
        quoted = row["method"] in ("adept", "consensus") and row["counts"] == "3 and 4"
        if quoted and row["distance"] != "inside":
            assert f"{row['median']:.1f} %" in README


def test_there_are_two_commands_for_a_fresh_machine():
    """Both install the package, so that its command and its modules are there in any folder."""
    setup = "python3 -m venv .venv && .venv/bin/pip install -q -r "
    package = ".venv/bin/pip install -q --no-deps -e ."
    first = next(one for one in PLAIN if one.startswith("python -m sim "))
    assert [
        f"{setup}requirements.lock && {package} && "
        f"{first.replace('python -m sim', '.venv/bin/moldsim run')}",
        f"{setup}requirements-dev.lock && {package} && .venv/bin/python -m pytest",
    ] == SETUP


def test_continuous_integration_calls_the_test_command_of_the_readme():
    lines = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    assert SETUP[1] in lines


def test_the_page_is_short_and_its_files_exist():
    assert len(README.splitlines()) < 250
    linked = re.findall(r"\]\((docs/[^)#]+)[^)]*\)", README)
    assert [path for path in linked if not (ROOT / path).is_file()] == []
    named = re.findall(r"`([\w./]+\.(?:md|cff|py))`", README)
    missing = {name for name in named if not (ROOT / name).is_file()}
    assert missing <= {path for path, _ in PLUGIN}


def test_the_first_page_has_a_command_five_lines_of_python_and_a_plugin():
    first = README.partition("## Where results go")[0]
    assert SETUP[0] in first
    assert PROGRAMS[0] in first
    assert len(PROGRAMS[0].replace("\n\n", "\n").splitlines()) <= 5
    assert [Path(path).suffix for path, _ in PLUGIN] == [".py", ".yaml"]
    assert any("policy/allocation=mylab_half" in command for command in PLAIN)


def pins(name):
    """Return the pinned versions of a lock."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==([\w.!+]+) \\$", text, re.MULTILINE))


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_versions_are_pinned_with_hashes_and_without_any_place_to_get_them_from(name):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    stated = [line for line in lines if not line.startswith("#")]
    one = r"[A-Za-z0-9._-]+==[\w.!+]+ \\| {4}--hash=sha256:[0-9a-f]{64}( \\)?"
    assert [line for line in stated if not re.fullmatch(one, line)] == []
    assert len(pins(name)) == sum("==" in line for line in stated) > 20


def test_what_a_run_needs_and_what_development_needs_are_apart():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    runs, all_of_it = pins("requirements.lock"), pins("requirements-dev.lock")

    def names(wanted):
        return {re.match(r"[\w.-]+", one)[0].lower() for one in wanted}

    assert names(project["dependencies"]) <= set(runs)
    assert names(project["optional-dependencies"]["dev"]) <= set(all_of_it)
    assert not names(project["optional-dependencies"]["dev"]) & set(runs)
    assert runs.items() <= all_of_it.items()
