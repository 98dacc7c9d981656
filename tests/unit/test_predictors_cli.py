import json
import subprocess
import sys

import pytest

from predictors.__main__ import METHODS, main

pytestmark = pytest.mark.fast

CSV = "Cores,Seconds\n1,100\n2,52\n4,28\n4,28.5\n8,17\n16,12\n"


@pytest.fixture
def runs(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(CSV, encoding="utf-8")
    return path


def answer(capsys, *arguments) -> dict:
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_answers_as_json(runs, capsys, method):
    report = answer(capsys, runs, "--method", method, "--target", "2-4", "32")
    assert [row["nprocs"] for row in report["rows"]] == [2, 3, 4, 32]
    for row in report["rows"]:
        assert row["low"] <= row["runtime"] <= row["high"]
        assert row["efficiency"] == pytest.approx(row["speedup"] / row["nprocs"])
    assert report["method"] == method
    assert report["serial_measured"]
    assert report["rows"][0]["speedup"] == pytest.approx(100 / report["rows"][0]["runtime"])


def test_adept_reports_parameters_knee_and_remarks(runs, capsys):
    report = answer(capsys, runs, "--target", 1000)
    assert report["parameters"]["A"] > 1
    assert report["knee"] > 1
    assert report["at_efficiency"]["0.5"] > report["at_efficiency"]["0.8"] > 1
    assert {"far"} <= {remark["code"] for remark in report["remarks"]}
    assert report["rows"][0]["grade"] in ("warning", "unusable")


def test_the_table_is_for_people(runs, capsys):
    assert main([str(runs)]) == 0
    text = capsys.readouterr().out
    for words in ("processors", "average parallelism A", "knee", "efficiency of at least 0.8"):
        assert words in text
    assert "measure next on" in text


def test_allowed_counts_are_respected(runs, capsys):
    report = answer(capsys, runs, "--target", "24", "32", "--allowed", "powers of 2")
    assert [row["grade"] == "unusable" for row in report["rows"]] == [True, False]
    report = answer(capsys, runs, "--target", "24", "--allowed", "8,16,24")
    assert report["rows"][0]["grade"] != "unusable"


KEEPING = ("adept", "amdahl", "usl", "consensus", "regression", "focused")
SLIGHT_RISE = [(1, 100), (2, 52), (4, 28), (8, 14), (16, 8), (24, 8.6), (32, 9.4)]
DECLINE = [(32, 0.075), (64, 0.113), (128, 0.137)]


def written(tmp_path, runs):
    path = tmp_path / "measured.csv"
    path.write_text("nprocs,runtime\n" + "".join(f"{n},{t}\n" for n, t in runs), encoding="utf-8")
    return path


@pytest.mark.parametrize("method", KEEPING)
def test_a_slight_rise_is_followed_within_its_scatter(tmp_path, capsys, method):
    """Nothing repeats, so s is 1.22 and this is no decline; adept printed 4.8 s at 32."""
    report = answer(capsys, written(tmp_path, SLIGHT_RISE), "--method", method)
    said = {row["nprocs"]: row["runtime"] for row in report["rows"]}
    assert all(t / 1.2215 <= said[n] <= t * 1.2215 for n, t in SLIGHT_RISE)
    assert report["declines_after"] is None
    assert method != "adept" or report["knee"] < 16


@pytest.mark.parametrize("method", KEEPING)
def test_with_repeats_it_is_a_decline_and_what_is_useful_ends_there(tmp_path, capsys, method):
    report = answer(capsys, written(tmp_path, [*SLIGHT_RISE, (1, 101)]), "--method", method)
    grades = {row["nprocs"]: row["grade"] for row in report["rows"]}
    assert report["declines_after"] == 16
    assert report["knee"] <= 16
    assert all(count is not None and count <= 16 for count in report["at_efficiency"].values())
    assert [grades[n] for n in (24, 32, 64, 128)] == ["warning"] * 2 + ["unusable"] * 2
    assert report["measure_next"] is None or report["measure_next"] <= 16


@pytest.mark.parametrize("method", KEEPING)
def test_a_decline_from_the_first_count_on_is_answered_by_its_runs(tmp_path, capsys, method):
    path = written(tmp_path, DECLINE)
    report = answer(capsys, path, "--method", method, "--target", "32", "64", "128", "256")
    said = [row["runtime"] for row in report["rows"]]
    assert said == [pytest.approx(0.075, rel=0.2215), *map(pytest.approx, (0.113, 0.137, 0.137))]
    assert main([str(path), "--method", method]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.count("warning: the runtime rises beyond 32 processors, from 0.075 s there to") == 1
    assert text.count("where nothing was measured there, nothing is predicted") == 1


def test_a_plot_is_written(runs, tmp_path, capsys):
    picture = tmp_path / "curve.png"
    assert main([str(runs), "--plot", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "many"], "--target many: a processor count"),
        (["--form", "quadratic"], "--form is read by --method regression; the method is adept"),
        (["--at", "size=3"], "--at is read by --method regression, focused, consensus"),
        (["--method", "regression", "--tolerance", "1"], "--tolerance is read by --method focused"),
        (["--method", "usl", "--allowed", "8"], "--allowed is read by --method adept; the method"),
        (["--size-for-time", "0"], "--size-for-time 0: positive seconds are needed"),
        (["--target", "8-4"], "the range must run upwards"),
        (["--target", "0"], "processor counts must be finite and at least 1, got 0"),
        (["--where", "colour=red"], "expected COLUMN=VALUE"),
        (["--level", "2"], "level must be between 0 and 1"),
        (["--allowed", "odd"], "allowed must be counts or one of"),
    ],
)
def test_bad_arguments_end_with_status_2_and_one_line(runs, capsys, arguments, message):
    assert main([str(runs), *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_the_module_runs_from_the_command_line(runs):
    command = [sys.executable, "-m", "predictors", str(runs), "--json", "--target", "32"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["rows"][0]["nprocs"] == 32
    bad = subprocess.run([*command[:3], "absent.csv"], capture_output=True, text=True, check=False)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "python -m predictors: error: absent.csv: no such file\n"
