"""Compiled code is dropped when anything changes that it was compiled from, and finds a place."""

from pathlib import Path

import numpy as np
import pytest

from predictors import compiling
from predictors.compiling import ROOT, KernelLocator, compiled_from, folder_of, folders_of
from sim.config import CONFIG_FOLDER
from sim.policies.ties import first_least
from sim.warm import main, toys

pytestmark = pytest.mark.fast


FORGOTTEN = (
    compiling.compiled_from, compiling.folder_of, compiling._imports, compiling._digest,
    compiling._stamp,
)  # fmt: skip


@pytest.fixture
def forgetful():
    """Find folders and files anew, before and after, wherever this process keeps its code."""
    given, compiling.config.CACHE_DIR = compiling.config.CACHE_DIR, ""
    for one in FORGOTTEN:
        one.cache_clear()
    yield
    compiling.config.CACHE_DIR = given
    for one in FORGOTTEN:
        one.cache_clear()


def test_compiled_functions_are_numbered_otherwise_in_each_process():
    first = next(compiling.FunctionIdentity._unique_ids)
    assert 1_000_000 < first < next(compiling.FunctionIdentity._unique_ids)


def test_modules_that_import_more_than_the_compiler_are_followed():
    names = {path.name for path in compiled_from(ROOT / "predictors/in_loop/sized_kernels.py")}
    assert {"residuals.py", "loglog_kernels.py", "qr.py"} <= names


def test_compiled_steps_hang_on_the_rules_and_tables_that_they_call():
    names = {
        str(path.relative_to(ROOT))
        for path in compiled_from(ROOT / "sim/policies/passes/instants.py")
    }
    rooms = (
        "policies/passes/queue_passes",
        "policies/ties",
        "state/availability",
        "state/run_state",
    )
    assert {f"sim/{one}.py" for one in ("policies/passes/instants", *rooms)} <= names
    assert "sim/app.py" not in names


def test_a_constant_of_another_file_changes_the_stamp(tmp_path, monkeypatch, forgetful):
    monkeypatch.setattr(compiling, "ROOT", tmp_path)
    (tmp_path / "sim").mkdir()
    rule, far = tmp_path / "sim" / "rule.py", tmp_path / "sim" / "far.py"
    header = "from predictors.compiling import compiled\n"
    rule.write_text(f"{header}from sim.near import slack\n", encoding="utf-8")
    (tmp_path / "sim" / "near.py").write_text(f"{header}from sim import far\n", encoding="utf-8")
    far.write_text("SLACK = 1\n", encoding="utf-8")
    locator = KernelLocator.from_function(lambda: None, str(rule))
    before = locator.get_source_stamp()
    assert before == locator.get_source_stamp()
    far.write_text("SLACK = 2\n", encoding="utf-8")
    compiling._digest.cache_clear()
    compiling._stamp.cache_clear()
    assert locator.get_source_stamp() != before


def test_functions_of_others_are_left_to_numba():
    assert KernelLocator.from_function(np.median, np.__file__) is None


def test_where_nothing_can_be_written_code_goes_to_a_private_folder(
    tmp_path, monkeypatch, forgetful
):
    monkeypatch.setattr(compiling.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    folder = folder_of(Path("/proc/nowhere/sim/rule.py"))
    assert folder.is_relative_to(tmp_path)
    assert folder.parent.stat().st_mode & 0o077 == 0
    # Somebody else may have put a folder there that all can write.
    folder.parent.chmod(0o777)
    compiling.folder_of.cache_clear()
    assert folder_of(Path("/proc/nowhere/sim/rule.py")).parent != folder.parent


def test_a_folder_of_ones_own_is_taken_first(tmp_path, monkeypatch, forgetful):
    monkeypatch.setattr(compiling.config, "CACHE_DIR", str(tmp_path))
    assert folders_of(ROOT / "sim" / "policies" / "ties.py")[0].parent == tmp_path
    assert folder_of(ROOT / "sim" / "policies" / "ties.py").parent == tmp_path


def test_the_project_s_functions_are_kept_by_it():
    assert first_least(np.array([2.0, 1.0])) == 1
    assert isinstance(first_least._cache._impl.locator, KernelLocator)


def test_code_that_is_compiled_now_takes_in_what_was_kept():
    costs = np.array([2.0, 1.0, 1.0])
    first_least(costs)
    kept = compiling.compiled()(first_least.py_func)
    assert kept(costs) == 1
    assert sum(kept.stats.cache_hits.values()) == 1
    caller = compiling.njit(lambda values: 10 * kept(values))
    assert caller(costs) == 10


@pytest.mark.slow
def test_the_command_compiles_and_says_where(capsys):
    assert main(["policy=fcfs"]) == 0
    assert "compiled; cached in" in capsys.readouterr().out
    assert main(["policy=nothing"]) == 2
    assert "policy=nothing: must be parts such as" in capsys.readouterr().err


def test_small_runs_reach_every_rule_and_every_predictor():
    reached = {override for overrides in toys() for override in overrides}
    for group in ("policy", "predictor"):
        names = {path.stem for path in (CONFIG_FOLDER / group).glob("*.yaml")}
        assert {f"{group}={name}" for name in names} <= reached
