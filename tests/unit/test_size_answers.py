"""The command line's regressions, consensus, sizes for a time and focal procedure."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from predictors.__main__ import main


@pytest.fixture
def sized(tmp_path: Path) -> Path:
    rows = [(n, s, 1e-3 * s**1.2 / n) for n in (16, 32, 64) for s in (1e6, 2e6, 4e6)]
    path = tmp_path / "runs.csv"
    frame = pd.DataFrame(rows, columns=["nodes", "Size", "runtime_s"])
    frame["problem"] = "size " + frame["Size"].astype(str)
    frame.to_csv(path, index=False)
    return path


def answer(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, object]:
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("method", ["regression", "focused", "consensus"])
def test_methods_with_inputs_predict_at_a_size(
    method: str, sized: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = answer(capsys, sized, "--method", method, "--at", "size=3e6", "--target", "128", "256")
    expected = [1e-3 * 3e6**1.2 / n for n in (128, 256)]
    assert [row["runtime"] for row in report["rows"]] == pytest.approx(expected, rel=0.05)


def test_the_largest_size_is_the_default_and_is_said(
    sized: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--method", "regression", "--inputs", "size"]
    report = answer(capsys, sized, *words, "--target", "128")
    assert report["rows"][0]["runtime"] == pytest.approx(1e-3 * 4e6**1.2 / 128)
    assert "largest size = 4e+06" in report["remarks"][0]["text"]
    assert report["answer"].startswith("All 9 runs are one curve, asked at size = 4e+06. 128 ")
    assert "again" not in report["answer"]  # runs of other sizes are not of this one
    measured = answer(capsys, sized, *words)["rows"][3:]
    assert [row["measured"] for row in measured] == [False, True, True, True, False, False]
    assert measured[1]["measured_runtime"] == pytest.approx(1e-3 * 4e6**1.2 / 16)
    asked = answer(capsys, sized, "--method", "regression", "--at", "size=3e6")
    assert not any(row["measured"] for row in asked["rows"])
    assert not any(use["measured"] for use in asked["uses"])


@pytest.mark.parametrize("method", ["adept", "regression", "focused", "consensus"])
def test_every_method_splits_a_file_alike_unless_it_is_told_to_learn_from_sizes(
    method: str, sized: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [sized, "--method", method, "--target", "128"]
    found = answer(capsys, *words)["curves"]
    assert list(found) == [f"problem=size {size}" for size in (1e6, 2e6, 4e6)]
    one = answer(capsys, *words, "--curve", "2")
    assert one == found["problem=size 2000000.0"]
    assert one["observations"] == 3
    if method != "adept":
        assert main([*map(str, words), "--inputs", "size", "--curve", "2"]) == 2
        assert "--curve 2: a number from 1 to 1 is needed; 1 is all runs" in capsys.readouterr().err
        alike = answer(capsys, *words, "--inputs", "size", "--where", "size=1e6")
        assert alike["answer"].startswith("128 processors take")


def test_size_for_a_wanted_time(sized: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = answer(capsys, sized, "--size-for-time", "600", "--target", "128", "--tolerance", "2")
    row = report["rows"][0]
    assert 1e-3 * row["size"] ** 1.2 / 128 == pytest.approx(600.0, rel=1e-6)
    assert row["low"] <= row["size"] <= row["high"]


def test_size_for_a_wanted_time_in_words(sized: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--method", "regression", "--size-for-time", "600", "--target", "128"]
    assert main([str(sized), *words]) == 0
    out = capsys.readouterr().out
    assert out.startswith("size for 600 s (80% interval)")
    assert "nprocs" in out


def test_focal_procedure_by_way_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def seconds(nprocs: float, size: float) -> float:
        return 2e-4 * size**1.5 / nprocs**0.9

    path = tmp_path / "client.csv"
    runs = [(1024, 4e4, seconds(1024, 4e4)), (512, 2.6e4, seconds(512, 2.6e4))]
    command = [str(path), "--focal-levels", "32,64,128"]
    asked = []
    for _ in range(3):
        pd.DataFrame(runs, columns=["nprocs", "size", "runtime"]).to_csv(path, index=False)
        assert main(command) == 0
        out = capsys.readouterr().out
        if not out.startswith("#"):
            break
        lines = [line.split(",") for line in out.splitlines()[2:]]
        asked.append(len(lines))
        runs += [(int(n), float(s), seconds(float(n), float(s))) for n, s, *_ in lines]
    assert asked == [4, 9]
    assert out.startswith("sizes on 2048 processors from 15 runs")
    found = answer(capsys, *command, "--target", "4096")
    sizes = np.array([row["size"] for row in found["rows"]])
    wanted = np.array([row["seconds"] for row in found["rows"]])
    assert seconds(4096, sizes) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--method", "regression", "--inputs", "width", "--where", "size=1000000.0"],
            "no column width for --inputs",
        ),
        (["--method", "regression", "--at", "width=3"], "expected NAME=NUMBER with an input of"),
        (["--method", "regression", "--at", "size=big"], "expected NAME=NUMBER"),
        (
            ["--method", "adept", "--size-for-time", "9", "--where", "size=1000000.0"],
            "needs --method",
        ),
        (["--method", "focused", "--focal-time", "-1"], "focal_time must be positive"),
        (["--focal-levels", "100"], "levels must lie in"),
        (["--focal-levels", "4,x"], "--focal-levels 4,x: processor counts such as 16,32,64"),
    ],
)
def test_wrong_words_are_one_clear_error(
    words: list[str], message: str, sized: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(sized), *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


@pytest.fixture
def stepped(tmp_path: Path) -> Path:
    runs = [(n, s, k, 1e-3 * s * k / n) for n in (4, 8, 16) for s in (1e4, 2e4) for k in (10, 20)]
    runs += [(16, 4e4, 10, t) for t in (25.0, 24.9, 25.1, 70.0)]
    path = tmp_path / "stepped.csv"
    frame = pd.DataFrame(runs, columns=["nprocs", "size", "steps", "runtime"])
    frame.to_csv(path, index=False)
    return path


def test_any_input_is_solved_for_beside_the_others(
    stepped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--method", "regression", "--inputs", "size,steps", "--size-for-time", "12.5"]
    found = answer(capsys, stepped, *words, "--target", "32", "--at", "steps=10")
    (row,) = found["rows"]
    assert row["size"] == pytest.approx(4e4, rel=0.01)
    assert row["weak scaling"] == pytest.approx(4e4)
    texts = {remark["code"]: remark["text"] for remark in found["remarks"]}
    assert texts["at_inputs"] == "solved at steps = 10; --at chooses another"
    assert texts["outlier_runs"] == "left out among repeats: 70 s on 16"
    assert "expected_error" in texts
    found = answer(
        capsys, stepped, *words, "--target", "32", "--solve", "steps", "--at", "size=2e4"
    )
    assert found["rows"][0]["steps"] == pytest.approx(20.0, rel=0.01)


def test_conditions_choose_the_runs_of_a_focused_regression(
    stepped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--method", "focused", "--size-for-time", "12.5", "--target", "32"]
    (row,) = answer(capsys, stepped, *words, "--condition", "steps=20")["rows"]
    assert row["size"] == pytest.approx(2e4)
    (near,) = answer(capsys, stepped, *words, "--condition", "steps=15~0.6")["rows"]
    assert near["size"] > row["size"]
    assert main([str(stepped), *words, "--condition", "steps"]) == 2
    assert "--condition steps: expected NAME=VALUE" in capsys.readouterr().err
