"""Files that are whole or not there, links that are not followed, odd JSON that is no traceback."""

import json

import pytest

from sim.compare import main as compare
from sim.results.artefacts import is_finished
from sim.results.durable import (
    FAILURE,
    damage,
    read_failure,
    read_object,
    real_folder,
    sha256,
    write_failure,
    write_whole,
)
from sim.verify import main as verify
from sim.verify import state

pytestmark = pytest.mark.fast


def written(folder, **files):
    """A finished run with these files and their checksums."""
    for name, text in {"summary.json": "{}", **files}.items():
        (folder / name).write_text(text)
    sums = {path.name: sha256(path) for path in folder.iterdir()}
    (folder / "manifest.json").write_text(json.dumps({"artefacts": sums}))
    return folder


def test_a_run_is_checked_file_by_file(tmp_path):
    run = written(tmp_path, jobs="abc")
    assert damage(run) is None
    (run / "jobs").write_text("abd")
    assert damage(run) == "jobs is damaged: its checksum differs"
    (run / "jobs").unlink()
    assert damage(run) == "jobs is missing"
    assert damage(run, complete=False) is None
    assert state(run) == ("damaged", "jobs is missing")
    assert verify([str(tmp_path)]) == 1


def test_a_link_is_replaced_and_not_followed(tmp_path):
    target, folder = tmp_path / "mine", tmp_path / "run"
    target.write_text("kept")
    folder.mkdir()
    (folder / FAILURE).symlink_to(target)
    write_failure(folder, "why")
    assert target.read_text() == "kept"
    assert read_failure(folder) == "why"
    (folder / "baseline").symlink_to(tmp_path)
    real_folder(folder / "baseline")
    assert not (folder / "baseline").is_symlink()


def test_a_write_that_breaks_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_whole(path, "first")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, "second")
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]
    assert path.read_text() == "first"


def test_json_without_an_object_is_named(tmp_path):
    path = tmp_path / "summary.json"
    for text in ("", "[1]", '{"a": ' + "[" * 100_000, "\xff"):
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(ValueError, match=r"^summary.json is damaged: it (is no|holds no)"):
            read_object(path)


def test_a_summary_from_somebody_else_is_read_with_care(tmp_path, capsys):
    deep = "[" * 100_000
    for name, text in {
        "deep": '{"a": ' + deep, "list": "[1]", "long": '{"jobs": ' + "9" * 5000 + "}",
        "odd": '{"run": "x", "role": 7, "status": [1], "menu": {"a": 1}, "jobs": 3}',
    }.items():  # fmt: skip
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text(text)
    assert not is_finished(tmp_path / "deep")
    assert compare([str(tmp_path), "--table", "--figure=jobs"]) == 0
    out = capsys.readouterr().out
    assert "damaged deep" in out
    assert "damaged list" in out
