import re

import numpy as np
import pandas as pd
import pytest

from predictors.cli import terminal
from sim.errors import SimError
from sim.oracle.__main__ import (
    TINY,
    check_files,
    crowded_rows,
    main,
    rigid_trace,
    schedule,
    write_pack,
)
from sim.oracle.rules import RULES, RigidJob, check_schedule


def rigid_jobs(trace):
    columns = ["job_id", "submit_time", "requested_processors", "reference_runtime"]
    rows = trace.jobs[[*columns, "requested_time"]].itertuples(index=False, name=None)
    return [RigidJob(*row) for row in rows]


def spans_of(jobs):
    return {j: (a, b) for j, a, b in jobs[["job_id", "start_time", "end_time"]].values.tolist()}


def checked(rows, spans, rule, processors=4):
    trace = rigid_trace(rows, processors, "toy")
    return [(b.job_id, b.time, b.rule) for b in
            check_schedule(rigid_jobs(trace), spans, processors, rule)]  # fmt: skip


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pack")
    write_pack(folder)
    return folder


def test_the_packs_schedules_keep_their_rules(pack):
    index = pd.read_csv(pack / "index.csv")
    assert len(index) == 4 * 8
    assert (pack / "README.md").read_text().count("- `") == 4
    for row in index[index["jobs"] < 100].itertuples():
        assert check_files(pack / row.workload, pack / row.schedule, row.rule) == []
        json_form = pack / row.workload.replace(".swf", ".json")
        assert check_files(json_form, pack / row.schedule, row.rule) == []


def test_the_rules_differ(pack):
    for own in RULES:
        for other in RULES:
            found = [
                violation
                for number in range(1, 6)
                for violation in check_files(
                    pack / f"crowded-{number}.swf", pack / f"crowded-{number}.{own}.csv", other
                )
            ]
            assert (found == []) == (own == other), (own, other)


@pytest.mark.parametrize("rule", list(RULES))
def test_a_job_started_later_is_named(rule):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        trace = rigid_trace(crowded_rows(rng, 25, 6), 6, "toy")
        jobs = schedule(trace, rule).jobs
        assert check_schedule(rigid_jobs(trace), spans_of(jobs), 6, rule) == []
        row = int(rng.integers(len(jobs)))
        spans = spans_of(jobs)
        start, end = spans[row + 1]
        spans[row + 1] = (start + 0.5, end + 0.5)
        found = check_schedule(rigid_jobs(trace), spans, 6, rule)
        assert (row + 1, start, "idle") in [(b.job_id, b.time, b.rule) for b in found]


@pytest.mark.fast
def test_each_rule_is_named():
    rows = [(0, 3, 10, 10), (1, 4, 5, 5), (2, 1, 20, 20), (3, 1, 4, 4)]
    right = {1: (0, 10), 2: (10, 15), 3: (15, 35), 4: (3, 7)}
    assert checked(rows, right, "easy") == []
    assert checked(rows, right, "fcfs") == [(4, 3.0, "order")]
    greedy = right | {3: (2, 22), 4: (10, 14), 2: (22, 27)}
    assert (3, 2.0, "delay") in checked(rows, greedy, "easy")
    assert (3, 2.0, "order") in checked(rows, greedy, "conservative")
    assert (1, 0.0, "runtime") in checked(rows, right | {1: (0, 9)}, "easy")
    assert (2, 0.0, "early") in checked(rows, right | {2: (0, 5)}, "easy")
    assert (2, 1.0, "missing") in checked(rows, {k: right[k] for k in (1, 3, 4)}, "easy")
    assert (9, 0.0, "missing") in checked(rows, right | {9: (0, 5)}, "easy")
    full = checked(rows, right | {2: (9, 14)}, "easy")
    assert (2, 9.0, "capacity") in full


@pytest.mark.fast
def test_tiny_example_by_hand():
    # 4 processors: job 1 holds 3 until 10; 3 may end by 12, when 2 was to start; 4 may not pass
    starts = schedule(rigid_trace(TINY, 4, "tiny"), "easy").jobs["start_time"].tolist()
    assert starts[:4] == [0.0, 10.0, 2.0, 10.0]


def test_a_terminal_is_told_how_much_is_checked(pack, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(terminal, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(terminal, "TERMINAL_SECONDS", 0.0)
    files = ["--workload", str(pack / "tiny.swf"), "--schedule", str(pack / "tiny.easy.csv")]
    assert main(["check", "--rule", "easy", *files]) == 0
    assert re.search(r"checks the jobs · 0:00:00 left", capsys.readouterr().err)


def test_the_command_answers(pack, capsys, tmp_path):
    asked = ["check", "--rule", "easy", "--workload", str(pack / "tiny.swf"), "--schedule"]
    assert main([*asked, str(pack / "tiny.easy.csv")]) == 0
    assert "keeps the rule" in capsys.readouterr().out
    assert main([*asked, str(pack / "tiny.fcfs.csv"), "--most", "1"]) == 1
    assert "idle: fits at" in capsys.readouterr().out
    assert main([*asked, str(pack / "none.csv")]) == 2
    (tmp_path / "a.csv").write_text("job_id,starting_time\n1,2\n")
    assert main([*asked, str(tmp_path / "a.csv")]) == 2
    assert "finish_time" in capsys.readouterr().err
    (tmp_path / "a.csv").write_text("job_id,starting_time,finish_time\n1,2,3\n1,4,5\n")
    assert main([*asked, str(tmp_path / "a.csv")]) == 2
    assert "job 1 appears twice" in capsys.readouterr().err
    assert main(["write", str(tmp_path / "again"), "--seed", "1"]) == 0
    for path in pack.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


def test_refusals():
    with pytest.raises(SimError, match="must be one of fcfs, easy"):
        check_schedule([], {}, 4, "sjf")
    with pytest.raises(SimError, match="job 1 needs more than the 4 processors"):
        check_schedule([RigidJob(1, 0, 5, 1, 1)], {1: (0, 1)}, 4, "easy")


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("none.csv", None, "there is no such file; give a schedule"),
        ("a.csv", "", "not a table of jobs: No columns"),
        ("a.csv", "job_id,starting_time\n1,2\n", "lacks finish_time; a schedule needs"),
        ("a.csv", "job_id,starting_time,finish_time\n1,ten,2\n", "1, column starting_time: 'ten'"),
        ("a.csv", "job_id,starting_time,finish_time\n1,1,2\nx,1,2\n", "2, column job_id: 'x' is"),
        ("a.csv", "job_id,starting_time,finish_time\n1,1,\n", "1, column finish_time: nan is not"),
        ("a.csv", "job_id,starting_time,finish_time\n1,1,2\n1,1,2\n", "job 1 appears twice"),
        ("a.parquet", "no parquet", "not a table of jobs: "),
    ],
)
def test_files_that_are_no_schedule_are_named(pack, tmp_path, capsys, name, text, problem):
    if text is not None:
        (tmp_path / name).write_text(text)
    files = ["--workload", f"{pack}/tiny.swf", "--schedule", f"{tmp_path}/{name}"]
    assert main(["check", "--rule", "easy", *files]) == 2
    error = capsys.readouterr().err
    assert f"{tmp_path}/{name}" in error
    assert problem in error
    assert error.count("\n") == 1


def test_a_machine_without_processors_is_refused(pack, capsys):
    files = ["--workload", f"{pack}/tiny.swf", "--schedule", f"{pack}/tiny.easy.csv"]
    assert main(["check", "--rule", "easy", "--processors", "0", *files]) == 2
    assert "--processors=0: must be at least 1" in capsys.readouterr().err
