"""The README's blocks run as they stand, and the other places say the same."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.results import logs
from predictors.compiling import kernel_folder
from tests.docs.commands import README as PAGE
from tests.docs.commands import ROOT, blocks, run, steps, written

README = PAGE.read_text(encoding="utf-8")
COMMANDS = [step.command for step in steps(PAGE)]
SETUP = [command for command in COMMANDS if "venv" in command]
PLAIN = [command for command in COMMANDS if command not in SETUP]
PROGRAMS = blocks(PAGE, "python")
PLUGIN = [path for path in written(PAGE) if path.startswith("mylab/")]
"""The files of a rule of one's own."""


def test_the_programs_run_and_print_what_is_shown(tmp_path):
    example = "moldsim run workload.jobs=50 hydra.run.dir=outputs/example baseline=null"
    assert run(example, tmp_path).returncode == 0
    ended = subprocess.run(
        [sys.executable, "-c", "\n".join(PROGRAMS)], cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path),
             "NUMBA_CACHE_DIR": str(kernel_folder().parent)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "response_time" in ended.stdout
    (shown,) = re.findall(
        r"^```python\nimport sim\n.*?^```\n\n```text\n(.*?)^```", README, re.M | re.S
    )
    assert shown in ended.stdout


@pytest.mark.fast
def test_the_first_screen_says_what_a_name_is_before_it_uses_it():
    first = README.partition("## Which way")[0]
    names = r"`?\b(sa|sa_easy|adept|ADEPT|user_estimate|given=\w+)\b`?"
    assert re.findall(names, first) == []
    assert README.index("`sa_easy` is") < README.index("sa_easy by adept")
    assert README.index("`adept` is") < README.index("sa_easy by adept")
    (cells,) = re.findall(r"^mean response +([\d.]+) min +[\d.]+ min +([\d.]+) min", README, re.M)
    after, before = (round(float(cell)) for cell in cells)
    assert f"falls from {before} to {after} minutes" in first


def test_the_headline_is_that_of_the_results():
    """On one log of five the gain is certain, on another an order of backfilling gains more."""
    keys, found = logs.family()
    told = {key: one for key, one in zip(keys, found.comparisons, strict=True) if one.certain}
    gains = {log: one.change.mean for (log, rule), one in told.items() if rule == "sa_easy"}
    assert list(gains) == ["SDSC-SP2"]
    assert f"by {-100 * gains['SDSC-SP2']:.0f} %" in README.partition("## Two commands")[0]
    more = {log for log, rule in told if rule == "easy_plus"} - set(gains)
    assert more == {"ALCF Theta"}


def test_there_are_two_commands_for_a_fresh_machine():
    """Both install the package, so that its command and its modules are there in any folder."""
    setup = "python3 -m venv .venv && .venv/bin/pip install -q --no-compile -r "
    package = ".venv/bin/pip install -q --no-compile --no-deps -e ."
    first = next(one for one in PLAIN if one.startswith("moldsim run "))
    assert [
        f"{setup}requirements.lock && {package} && .venv/bin/{first}",
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
    assert missing <= set(written(PAGE))


def test_the_first_page_has_a_command_five_lines_of_python_and_a_plugin():
    first = README.partition("## Where results go")[0]
    assert SETUP[0] in first
    assert PROGRAMS[0] in first
    assert len(PROGRAMS[0].replace("\n\n", "\n").splitlines()) <= 5
    assert [Path(path).suffix for path in PLUGIN] == [".py", ".yaml"]
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
