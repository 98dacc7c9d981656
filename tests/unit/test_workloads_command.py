import json
import re
import warnings

import pandas as pd
import pytest
from swf_samples import job_line, write_log

from predictors.cli import terminal
from workloads.__main__ import main
from workloads.logs.batsim import BatsimWorkload
from workloads.logs.description import describe
from workloads.logs.formats import guess_format
from workloads.logs.swf import FIELDS, Comment, SwfLog, read_swf

ROW = dict.fromkeys(FIELDS, -1) | {"status": 1}


def log_of(rows, machine=8):
    jobs = pd.DataFrame([ROW | {"job_number": i} | row for i, row in enumerate(rows, start=1)])
    return SwfLog(jobs, (Comment(0, f"; MaxProcs: {machine}"),))


def job(submit, width, runtime, **more):
    return {"submit_time": submit, "allocated_processors": width, "run_time": runtime, **more}


def test_figures_of_a_small_log():
    rows = [job(0, 1, 100, user=1, requested_time=200), job(50, 8, 100, user=2, requested_time=50)]
    rows += [job(86400, 4, 300, user=1, requested_time=600), job(86500, 4, 300, user=1,
                                                                 requested_time=600)]  # fmt: skip
    found = describe(log_of([*rows, job(1, 9, 5)]))
    assert found["log"]["jobs"] == 4
    assert found["sizes"]["share_serial"] == 0.25
    assert found["sizes"]["share_half_machine_or_more"] == 0.75
    assert found["runtimes"]["median"] == 200.0
    assert found["runtimes"]["share_longer_than_requested"] == 0.25
    assert found["load"]["offered"] == pytest.approx(3300 / (8 * 86500))
    assert found["load"]["most_jobs_a_day"] == 2
    assert found["load"]["longest_gap"] == 86350.0
    assert found["users"]["known"] == 2
    assert found["users"]["busiest_share_of_jobs"] == 0.75
    assert found["users"]["users_with_half_of_the_area"] == 1
    assert found["repetition"]["classes_of_similar_jobs"] == 3
    assert found["repetition"]["share_seen_before"] == 0.25
    assert found["repetition"]["median_factor_to_the_last_similar"] == 1.0
    assert found["anomalies"]["left out: needs more processors than the machine has"] == 1


def test_what_repeats_is_told_for_each_identity():
    rows = [
        job(60 * i, (1, 2, 4, 8, 1)[i % 5], 100, user=i % 2, executable=i, requested_time=600)
        for i in range(20)
    ]
    found = describe(log_of(rows))["applications"]
    assert found["auto_takes"] == "user"
    shares = {
        name: [
            found[f"{name}: {what}"]
            for what in (
                "applications",
                "share seen three times before",
                "share seen at three counts before",
            )
        ]
        for name in ("user_executable", "executable", "user", "user_request", "none")
    }
    assert shares == {
        "user_executable": [20, 0, 0],
        "executable": [20, 0, 0],
        "user": [2, 14 / 20, 13 / 20],
        "user_request": [8, 2 / 20, 0],
        "none": [20, 0, 0],
    }
    assert not [name for name in found if name.startswith("user_name")]


def test_a_log_without_requested_times_is_described_by_what_it_says():
    rows = [job(60 * i, 2, 100, user=1) for i in range(6)]
    found = describe(log_of(rows))
    assert found["runtimes"]["median_requested_time"] is None
    assert found["runtimes"]["median_requested_over_runtime"] is None
    assert found["runtimes"]["distinct_requested_times"] == 0
    assert found["repetition"]["classes_of_similar_jobs"] == 1
    some = describe(log_of([*rows, job(400, 2, 100, user=1, requested_time=300)]))
    assert some["runtimes"]["median_requested_over_runtime"] == 3.0


def test_jobs_of_zero_seconds_spoil_no_figure():
    rows = [job(0, 1, 0, user=1, requested_time=60), job(50, 1, 4, user=1, requested_time=60)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = describe(log_of(rows), actions={"zero_runtime": "keep"})
    assert found["runtimes"]["median_requested_over_runtime"] == 15.0
    assert found["repetition"]["median_factor_to_the_last_similar"] == pytest.approx(4.0)


def test_overrides_of_a_run_do_what_options_of_their_names_do(tmp_path, capsys):
    path = write_log(tmp_path, "; MaxProcs: 4", job_line(job_number=1, run_time=600))
    assert main(["describe", str(path), "cluster.processors=64"]) == 0
    assert re.search(r"processors +64\n", capsys.readouterr().out)


def test_floods_and_overfull_instants_are_found():
    calm = [job(86400 * day, 1, 10, user=1, wait_time=0) for day in range(30)]
    flood = [job(86400 * 30 + i, 4, 10, user=2, wait_time=0) for i in range(40)]
    found = describe(log_of([*calm, *flood]))["anomalies"]
    assert found["days with a flurry of one user"] == 1
    assert found["jobs in flurries"] == 40
    assert found["instants with more processors held than there are"] == 45  # 38 starts, 7 ends


def test_a_log_with_a_date_is_dated(tmp_path, capsys):
    lines = [job_line(job_number=k, submit_time=1800 * k, run_time=600) for k in range(1, 41)]
    path = write_log(tmp_path, "; UnixStartTime: 1613080800", "; MaxProcs: 4", *lines)
    assert main(["describe", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "2021-02-11 22:30 UTC" in shown
    assert "first submit " in shown
    assert "first submit  " not in shown.replace("first submit date", "")


def test_what_a_request_cannot_show_is_said_to_be_so_by_definition(tmp_path, capsys):
    rows = [
        job(60 * k, k % 3 + 1, 60, user=1, requested_time=60, job_number=k + 1) for k in range(9)
    ]
    path = write_log(tmp_path, "; MaxProcs: 4", *(job_line(**row) for row in rows))
    assert main(["describe", str(path)]) == 0
    shown = {line[:60].strip(): line[60:].strip() for line in capsys.readouterr().out.splitlines()}
    last = "share seen at three counts before"
    assert shown[f"user request: {last}"] == "- (by definition: each has one count)"
    assert shown[f"user: {last}"] == "0.6667"


def test_formats_are_guessed(tmp_path):
    for text, kind in (("; a\n1 2\n", "swf"), ("JobID|User\n", "sacct"), ('\n{"a": 1}', "batsim")):
        (tmp_path / "file").write_text(text)
        assert guess_format(tmp_path / "file") == kind


def test_a_terminal_is_told_what_is_read_and_written(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(terminal, "PATIENCE_SECONDS", 0.0)
    swf = tmp_path / "a.swf"
    for asked, told in (
        (["generate", "lublin", str(swf), "--jobs", "20"], ["draws jobs", "writes a.swf"]),
        (["convert", str(swf), str(tmp_path / "a.json")], ["reads a.swf", "writes a.json"]),
        (["describe", str(swf)], ["reads a.swf", "counts"]),
    ):
        assert main(asked) == 0
        shown = capsys.readouterr().err
        assert re.search(rf"{told[0]} · -:--:-- left.*{told[1]} · 0:00:0\d left", shown, re.DOTALL)


def test_generate_convert_and_describe(tmp_path, capsys):
    swf, batsim, again = (tmp_path / name for name in ("a.swf.gz", "a.json", "b.swf"))
    assert main(["generate", "lublin", str(swf), "--jobs", "60", "--processors", "64"]) == 0
    assert main(["convert", str(swf), str(batsim)]) == 0
    assert main(["convert", str(batsim), str(again), "--jobs", "50"]) == 0
    assert len(json.loads(batsim.read_text())["jobs"]) == 60
    first, second = read_swf(swf).jobs, read_swf(again).jobs
    same = ["job_number", "submit_time", "run_time", "requested_processors", "requested_time"]
    assert second[same].equals(first[same].iloc[:50])
    assert BatsimWorkload(batsim).read().machine_size() == 64
    capsys.readouterr()
    figures = tmp_path / "a.json.figures"
    assert main(["describe", str(swf), "--json", str(figures)]) == 0
    assert json.loads(figures.read_text())["log"]["jobs"] == 60
    assert "repetition" in capsys.readouterr().out


def test_an_unchanged_conversion_keeps_defects(tmp_path):
    (tmp_path / "a.swf").write_text("1 0 -1 -1 4 -1 -1 4 60 -1 1 1 1 1 1 1 -1 -1\n")
    assert main(["convert", str(tmp_path / "a.swf"), str(tmp_path / "b.swf")]) == 0
    assert read_swf(tmp_path / "b.swf").jobs["run_time"].tolist() == [-1]


def test_errors_are_one_line_and_status_2(tmp_path, capsys):
    for asked in (["describe", str(tmp_path / "none.swf")], ["fetch", "SDSC-SP3"]):
        assert main(asked) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert error.count("\n") == 1
    assert main(["fetch"]) == 0
    assert "SDSC-SP2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["generate", "lublin", "{}/g.swf", "--processors", "-4"], "--processors=-4: must be a "),
        (["generate", "lublin", "{}/g.swf", "--seed", "-1"], "--seed=-1: must be a whole number"),
        (["generate", "lublin", "{}/g.csv"], "g.csv: unknown format; must end in .swf, .json"),
        (["convert", "{}/w.json", "{}/w.txt"], "w.txt: unknown format"),
        (["describe", "{}/w.json"], "workload.speed=1e9"),
        (["describe", "{}/w.json", "--speed", "-1"], "workload.speed=-1.0: must be positive"),
        (["describe", "{}/w.json", "--communication", "no"], "must be error or ignore"),
    ],
)
def test_what_is_refused_is_named_in_one_line(tmp_path, capsys, given, problem):
    profile = {"type": "parallel_homogeneous", "cpu": 5e9, "com": 1}
    jobs = [{"id": "1", "subtime": 0, "res": 4, "profile": "p"}]
    content = {"nb_res": 8, "jobs": jobs, "profiles": {"p": profile | {"com": 0}}}
    (tmp_path / "w.json").write_text(json.dumps(content))
    assert main([word.format(tmp_path) for word in given]) == 2
    said = capsys.readouterr().err
    assert problem in said
    assert said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["w.json"]
    assert main(["convert", f"{tmp_path}/w.json", f"{tmp_path}/w.swf", "--speed", "1e9"]) == 0
    assert read_swf(tmp_path / "w.swf").jobs["run_time"].tolist() == [5]


def test_one_partition_is_described_and_converted(tmp_path, capsys):
    lines = (job_line(job_number=k, submit_time=k, partition=1 + k % 3) for k in range(1, 8))
    path = write_log(tmp_path, *lines)
    assert main(["describe", str(path), "--partition", "2"]) == 0
    assert " lines " in (told := capsys.readouterr().out)
    assert next(line for line in told.splitlines() if " lines " in line).split()[-1] == "3"
    assert main(["convert", str(path), "--partition", "2", str(tmp_path / "part.swf")]) == 0
    assert read_swf(tmp_path / "part.swf").jobs["job_number"].tolist() == [1, 4, 7]
    assert main(["describe", str(path), "--partition", "9"]) == 2
    assert "workload.partition=9: no job" in capsys.readouterr().err
