"""Advice from past jobs: what is known of scaling and of walltimes, and what is not."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from predictors.cli.terminal import Display
from sim.advise import advice_frame, advise, main, options, read_jobs
from sim.site.evidence import (
    COVERAGE,
    FEWEST_RUNS,
    advice_of,
    asked_on,
    clock_time,
    considered,
    minutes,
    walltimes,
    with_starts,
)
from sim.site.site_pages import advice_rows, advice_sentences

pytestmark = pytest.mark.fast

PROCESSORS = 64


def runs_of(counts, serial=100.0, parallel=3200.0, noise=0.02, repeats=4, seed=1):
    """Runs of an application under Amdahl's law."""
    rng = np.random.default_rng(seed)
    nprocs = np.tile(counts, repeats)
    runtime = (serial + parallel / nprocs) * np.exp(noise * rng.standard_normal(len(nprocs)))
    return pd.DataFrame({"nprocs": nprocs, "runtime": runtime, "asked": 7200.0})


def test_counts_of_a_known_curve():
    """At 100 + 3200/n s the efficient count is where 3300/(n T(n)) passes a half: 34."""
    told = advice_of("a", runs_of([1, 2, 4, 8, 16]), 3600.0, PROCESSORS)
    assert told.fastest.count == 32  # the widest that is considered: twice the widest run
    assert told.fastest.predicted == pytest.approx(200.0, rel=0.15)
    assert told.fastest.low < 200.0 < told.fastest.high
    assert told.efficient.count == 32
    flat = advice_of(
        "b", runs_of([1, 2, 4, 8, 16], serial=1000.0, parallel=500.0), 3600.0, PROCESSORS
    )
    assert flat.fastest.count == 8  # within 5 % of the 1,016 s that 32 would take
    assert flat.efficient.count == 2
    assert "no evidence" not in flat.evidence
    assert told.evidence.startswith("20 runs on 5 counts, alike within")


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        (runs_of([4]), "all runs are on 4 processors"),
        (runs_of([1], repeats=5), "all runs are on 1 processor;"),
        (runs_of([2, 4]), "all runs are on 2 and 4 processors"),
        (runs_of([1, 2, 4, 8], noise=1.5), "of different work"),
        (runs_of([1, 2, 4, 8], repeats=1), "hardly any processor count came twice"),
    ],
)
def test_no_evidence_is_said_and_nothing_is_recommended(runs, said):
    told = advice_of("a", runs, None, PROCESSORS)
    assert told.fastest is None
    assert told.efficient is None
    assert said in told.evidence
    assert told.evidence.startswith("no evidence of scaling: ")
    assert f"needs {FEWEST_RUNS} completed runs" in told.evidence
    assert told.recommended.count == told.usual
    assert told.measure_next is not None
    assert told.sbatch == ""


def test_a_walltime_is_longer_than_what_is_asked_where_the_one_advised_is(tmp_path):
    runs = pd.concat([runs_of([4] * 6 + [16]), runs_of([1, 2, 8])]).assign(asked=900.0)
    told = advice_of("a", runs, 1000.0, PROCESSORS)
    assert (told.usual, told.walltime_on(told.recommended) < 900.0 < told.walltime) == (4, True)
    assert not told.asks_for_more
    longer = replace(told, asked=60.0)
    assert longer.asks_for_more
    head, cells = advice_rows([told, longer])
    assert [row[head.index("walltime")].endswith(" +") for row in cells] == [False, True]
    write_log(tmp_path / "log.csv", 30)
    figures = advise(
        read_jobs([str(tmp_path / "log.csv")]), options(["advise.starts=false"])
    ).figures
    for number, words in ((1, "1 advised walltime is"), (2, "2 advised walltimes are")):
        said = advice_sentences({**figures, "longer_than_asked": number})[1]
        assert said.startswith(f"{words} longer than what is asked for now (marked +)")


def test_requests_scale_by_no_count_by_definition(tmp_path):
    words = (write_log(tmp_path / "log.csv"), "workload.identity=user_request")
    figures, plain = (
        advise(read_jobs(words[:k]), options(["advise.starts=false"])).figures for k in (2, 1)
    )
    said = "by definition each has one processor count and none can say how it scales."
    assert any(said in line for line in advice_sentences(figures))
    assert not any(said in line for line in advice_sentences(plain))
    assert "identity" not in plain


def shorter_on_fewer(times):
    """Return many runs on 32 processors, and two each on fewer, so many times as short."""
    few = pd.DataFrame({"nprocs": [4, 4, 8, 8], "runtime": [100.0 / times, 101.0 / times] * 2})
    many = pd.DataFrame({"nprocs": [32] * 9, "runtime": np.linspace(98.0, 102.0, 9)})
    return pd.concat([few, many], ignore_index=True).assign(asked=7200.0)


def test_partitions_tell_applications_of_unknown_users_apart(tmp_path):
    head = "CPUTimeRAW|ReqCPUS|ReqNodes|ResvCPURAW|Submit|TimelimitRaw|Partition|State"
    rows = [f"400|4|1|4|{60 * k}|10|{'long' if k == 5 else 'short'}|COMPLETED" for k in range(6)]
    path = tmp_path / "jobs.txt"
    path.write_text("\n".join([head, *rows]) + "\n")
    (name,) = read_jobs([f"{path}", "cluster.processors=8"]).names.values()
    assert name.startswith("user unknown, 4 processors,")
    assert name.endswith(" in partition long and short, asking for 00:10:00")


def test_runs_that_are_shorter_on_fewer_processors_are_of_other_work():
    told = advice_of("a", shorter_on_fewer(4.0), None, PROCESSORS)
    assert told.fastest is None
    assert (
        "are 3.9 times as fast as those on 32, so that they are of different work" in told.evidence
    )
    assert told.sbatch == ""
    assert advice_of("a", shorter_on_fewer(1.2), None, PROCESSORS).fastest.count < 32


@pytest.mark.parametrize(("seconds", "other"), [(1030.0, True), (1900.0, False)])
def test_runs_that_are_faster_than_their_processors_explain_are_of_other_work(seconds, other):
    runtime = [3120.0, 3090.0, 3100.0, 3110.0, seconds, 1.01 * seconds]
    runs = pd.DataFrame({"nprocs": [112, 128, 128, 128, 176, 176], "runtime": runtime})
    told = advice_of("a", runs.assign(asked=7200.0), None, 176)
    beyond = "times as fast as those on 128, more than processors explain, so perhaps of"
    assert (told.fastest is None, beyond in told.evidence) == (other, other)


@pytest.mark.parametrize(("more", "option"), [(["workload.unit=nodes"], "nodes"), ([], "ntasks")])
def test_the_largest_come_first_and_whole_nodes_are_asked_for_as_such(tmp_path, more, option):
    small = runs_of([1, 2, 4, 8], repeats=9).assign(user="ann")
    large = runs_of([1, 2, 4, 8, 16], serial=1000.0, parallel=320000.0).assign(user="bob")
    began = pd.Timestamp("2026-01-05")
    rows = ["JobID|User|Submit|Start|End|State|NNodes|AllocCPUS|ReqCPUS|Timelimit|JobName"]
    for job, run in enumerate(pd.concat([small, large]).itertuples(), start=1):
        end = (began + pd.Timedelta(seconds=round(run.runtime))).isoformat()
        ran = f"{began.isoformat()}|{began.isoformat()}|{end}|COMPLETED"
        rows.append(f"{job}|{run.user}|{ran}|{run.nprocs}|{run.nprocs}|{run.nprocs}|5-00:00:00|a")
    log = tmp_path / "log.txt"
    log.write_text("\n".join(rows) + "\n")
    asked = [str(log), *more, "cluster.processors=64"]
    first, second = advise(read_jobs(asked), options(["advise.starts=false"])).rows
    assert ("bob" in first.application, "ann" in second.application) == (True, True)
    assert first.jobs < second.jobs
    assert f"--{option}=32" in first.sbatch


def test_walltimes_hold_as_often_as_they_should_though_runtimes_drift():
    rng = np.random.default_rng(3)
    number = 6000
    group = rng.integers(0, 20, number)
    drift = 1 + 0.5 * np.arange(number) / number
    runtime = 600 * (1 + group) * drift * np.exp(0.5 * rng.standard_normal(number))
    runs = pd.DataFrame({"group": group, "runtime": runtime})
    past, later = runs.iloc[: int(0.7 * number)], runs.iloc[int(0.7 * number) :]
    limits, factor = walltimes(past)
    held = (later["runtime"] <= later["group"].map(limits)).mean()
    assert factor >= 1.0
    assert COVERAGE - 0.02 <= held <= COVERAGE + 0.03
    few = walltimes(past.assign(group=np.arange(len(past))))[0]
    assert few.empty


def test_small_parts():
    assert considered([6, 12], 16).tolist() == [6.0, 8.0, 12.0, 16.0]
    assert minutes(61.0) == 120.0
    assert clock_time(90061.0) == "1-01:01:01"
    whole = 3 * 86400.0
    lines = [clock_time(minutes(whole + more)) for more in (-30.0, 0.0, 1.0, 299.0, 301.0)]
    assert lines == ["3-00:00:00"] * 4 + ["3-00:06:00"]


@pytest.mark.parametrize(("completed", "walltime"), [(FEWEST_RUNS - 1, None), (FEWEST_RUNS, 36e3)])
def test_only_completed_runs_say_how_long_to_ask_for(tmp_path, completed, walltime):
    ended = ["COMPLETED"] * completed + ["FAILED"] * 60 + ["CANCELLED"] * 20
    rows = [
        f"{60 * k},{'36000' if how == 'COMPLETED' else '45'},4,ann,{how}"
        for k, how in enumerate(ended)
    ]
    log = tmp_path / "log.csv"
    log.write_text("submit,runtime,cpus,user,state\n" + "\n".join(rows) + "\n")
    told = advise(read_jobs([str(log)]), options(["advise.starts=false"]))
    assert told.figures["not_completed"] == 80
    (only,) = told.rows
    assert (only.jobs, only.usual_runtime, only.walltime) == (completed, 36e3, walltime)
    assert ("--time=10:00:00" in only.sbatch) is (walltime is not None)
    log.write_text("submit,runtime,cpus,user\n" + "\n".join(r.rpartition(",")[0] for r in rows))
    silent = advise(read_jobs([str(log)]), options(["advise.starts=false"]))
    assert silent.figures["not_completed"] == 0  # nobody says how any job ended
    log.write_text(
        log.read_text().replace(",user\n", ",user,state\n").replace(",ann", ",ann,FAILED")
    )
    same = advise(read_jobs([str(log)]), options(["advise.starts=false"]))
    assert same.figures["not_completed"] == 0  # as in a log whose status is 0 in every line


def write_log(path, jobs=400):
    """A log of one application that scales, one that keeps its count, and single jobs."""
    rng = np.random.default_rng(7)
    submit = np.cumsum(rng.exponential(300.0, jobs))
    user = rng.choice([1, 2, 3], jobs, p=[0.45, 0.45, 0.1])
    count = np.where(user == 1, rng.choice([1, 2, 4, 8], jobs), 4)
    runtime = np.where(user == 1, 60 + 2000 / count, 900) * np.exp(0.05 * rng.standard_normal(jobs))
    single = user == 3
    table = pd.DataFrame(
        {
            "id": np.arange(jobs),
            "submit": submit,
            "wait": 0.0,
            "runtime": runtime,
            "cpus": count,
            "walltime": np.where(single, 100 * np.arange(jobs) + 60.0, 7200.0),
            "user": np.where(single, 100 + np.arange(jobs), user),
        }
    )
    table.to_csv(path, index=False)
    return str(path)


def test_advice_from_a_log(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    log = write_log(tmp_path / "log.csv")
    assert main([log, "cluster.processors=64", "advise.until=0.7"]) == 0
    out = capsys.readouterr().out
    assert "2 of" in out
    (usual,) = (tmp_path / "backtests").iterdir()
    folder = usual / "until=0.7"
    table = pd.read_csv(folder / "advice.csv")
    assert list(table)[:12] == [
        "application", "jobs", "counts", "fastest", "efficient", "predicted", "low", "high",
        "walltime", "measure_next", "expected_start", "evidence",
    ]  # fmt: skip
    scaling, fixed = (
        table[table["application"].str.startswith(f"user {u},")].iloc[0] for u in (1, 2)
    )
    assert scaling["fastest"] == 16
    assert scaling["predicted"] == pytest.approx(60 + 2000 / 16, rel=0.2)
    assert scaling["low"] < scaling["predicted"] < scaling["high"]
    assert np.isnan(fixed["fastest"])
    assert "all runs are on 4 processors" in fixed["evidence"]
    assert fixed["walltime"] == pytest.approx(1020.0, abs=60.0)
    assert fixed["expected_start"] >= 0
    assert fixed["sbatch"] == f"sbatch --time={clock_time(fixed['walltime'])} job.sh"
    figures = json.loads((folder / "advice.json").read_text())
    assert figures["repeating"] == 2
    assert figures["with_scaling"] == 1
    assert 0.85 <= figures["judged"]["share_held"] <= 1.0
    assert figures["judged"]["median_walltime_over_request"] < 0.4
    assert figures["rows"][0]["choices"]
    page = (folder / "advice.html").read_text()
    assert figures["backtest"].startswith("No backtest of log.csv in backtests/")
    assert figures["backtest"] in " ".join(out.split())
    assert "no evidence" in page
    assert "sbatch --ntasks" in page
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main([log, "cluster.processors=64", "advise.until=0.7"]) == 0
    assert main([log, "cluster.processors=64", "advise.starts=false"]) == 0
    assert first == {path.name: path.read_bytes() for path in folder.iterdir()}
    assert (usual / "advice.csv").read_bytes() != first["advice.csv"]


def test_a_count_that_never_ran_is_called_inferred():
    for counts, most, said in (
        ([1, 2, 4, 8], 64, "16 (inferred, never run)"),
        ([1, 2, 4, 8], 8, "8"),
        ([4, 4, 4, 4], 64, "4 (as now)"),
    ):
        told = advice_of("app", runs_of(counts), None, most)
        assert advice_rows([told])[1][0][2] == said
    told = replace(advice_of("app", runs_of([1, 2, 4, 8]), None, 64), counts_of_all=(1, 16))
    assert advice_rows([told])[1][0][2] == "16 (inferred, not run in this class)"


def test_counts_of_other_classes_are_known(tmp_path):
    rows = [f"{60 * k},600,{2 + 2 * (k % 2)},ann,{3000 + 600 * (k == 0)}" for k in range(12)]
    rows += [f"{900 + 60 * k},60,16,ann,60" for k in range(12)]
    log = tmp_path / "log.csv"
    log.write_text("submit,runtime,cpus,user,walltime\n" + "\n".join(rows) + "\n")
    told = advise(read_jobs([str(log)]), options(["advise.starts=false"])).rows
    assert {one.counts_of_all for one in told} == {(2, 4, 16)}
    classes = {one.application.partition(", ")[2] for one in told}
    assert classes == {"asking for 00:01:00", "asking for 00:50:00 to 01:00:00"}


def test_advice_where_nothing_repeats(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("submit,wait,runtime,cpus\n0,1,10,2\n5,1,10,2\n9,0,3,1\n")
    assert main(["log.csv"]) == 0
    assert "0 of 3 applications came three times" in capsys.readouterr().out


def test_applications_with_something_to_say_come_first_and_the_others_wait(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    few = [(k, 1, 100 + k, 2) for k in range(4)]
    many = [(10 + k, 2, 100 + k % 3, 4) for k in range(25)]
    jobs = pd.DataFrame(few + many, columns=["submit", "user", "runtime", "cpus"])
    jobs.assign(wait=0, walltime=3600).to_csv("log.csv", index=False)
    assert main(["log.csv", "cluster.processors=8", "advise.starts=false"]) == 0
    shown = capsys.readouterr().out
    assert "user 2" in shown
    assert "user 1" not in shown
    assert "Further repeating applications, in the files only: 1" in shown
    page = next(Path("backtests").glob("*/advice.html")).read_text()
    first, _, rest = page.partition("<details><summary>1 applications</summary>")
    assert "user 2" in first
    assert "user 1" in rest
    heads = re.findall('<th scope="col">([^<]*)', first)
    assert heads[:6] == [
        "application", "jobs", "recommended", "predicted (range)", "walltime", "sbatch",
    ]  # fmt: skip


def test_advice_from_a_run(tmp_path):
    jobs = runs_of([1, 2, 4, 8]).rename(columns={"nprocs": "allocated_processors"})
    jobs = jobs.assign(application=3, status="completed", size=1.0, requested_time=7200.0)
    jobs = jobs.assign(submit_time=np.arange(len(jobs), dtype=float))
    jobs.loc[::2, "size"] = 2.0
    jobs.loc[::2, "runtime"] *= 2.0
    jobs["end_time"] = jobs["runtime"].cumsum()
    jobs.to_parquet(tmp_path / "jobs.parquet")
    row = advice_frame(advise(read_jobs([str(tmp_path)]), options([])).rows).iloc[0]
    assert row["application"] == "application 3"
    assert row["efficient"] == 8  # no more than the widest, as no more is ever held
    median_size = 1.5
    assert row["predicted"] == pytest.approx(median_size * (100 + 3200 / 8), rel=0.15)


def test_runs_of_one_name_in_two_folders_keep_their_advice(tmp_path, monkeypatch):
    """A replication's folder has an equals sign in its name, as a key has."""
    monkeypatch.chdir(tmp_path)
    for place, serial in (("a", 100.0), ("b", 500.0)):
        jobs = runs_of([1, 2, 4, 8], serial).rename(columns={"nprocs": "allocated_processors"})
        jobs = jobs.assign(application=3, status="completed", size=1.0, requested_time=7200.0)
        jobs = jobs.assign(submit_time=np.arange(len(jobs), dtype=float))
        jobs["end_time"] = jobs["runtime"].cumsum()
        folder = tmp_path / place / "policy=sa,seed=1"
        folder.mkdir(parents=True)
        jobs.to_parquet(folder / "jobs.parquet")
        assert main([f"{place}/policy=sa,seed=1"]) == 0
    assert len(list((tmp_path / "backtests").iterdir())) == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["nowhere.csv"], "nowhere.csv: no such file"),
        ([], "no jobs are given"),
        (["nowhere.parquet"], "nowhere.parquet: no such file"),
        (["log.csv", "advise.until=0"], "advise.until=0: must be above 0"),
        (["log.csv", "advise.start=true"], "keys are advise.until"),
        (["log.csv", "workload.identity=users"], "workload.identity=users"),
        (["workload=lublin"], "give a log"),
    ],
)
def test_bad_input_is_refused_in_a_line(tmp_path, monkeypatch, capsys, given, said):
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "log.csv", 30)
    assert main(given) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert not (tmp_path / "backtests").exists()


def test_the_time_left_of_advice_is_from_groups_and_starts(tmp_path):
    told = []

    class Told(Display):
        def show(self, text, done=None):
            told.append((text, done is not None, self._part[0] + self._part[1] * (done or 0.0)))

        def is_due(self):
            return True

    write_log(tmp_path / "log.csv", 30)
    asked = [str(tmp_path / "log.csv")]
    with Told(Console(quiet=True)) as shown:
        assert advise(read_jobs(asked), options([]), shown) == advise(read_jobs(asked), options([]))
    texts, known, shares = zip(*told, strict=True)
    assert list(dict.fromkeys(text.rpartition(", ")[0] for text in texts)) == [
        "learns from the jobs, and predicts",
        "replays starts",
    ]
    assert list(shares) == sorted(shares)
    assert (shares[0], 0.5 in shares, max(shares) > 0.5, any(known)) == (0.0, True, True, True)


def test_the_usual_count_competes_where_starts_are_known():
    told = advice_of("a", runs_of([2, 2, 4, 8, 16]), None, 256)
    asked = {one.count: asked_on(told, one) for one in told.choices}
    assert (told.usual, list(asked)) == (2, [2, told.recommended.count])

    def row(advice):
        head, cells = advice_rows([advice])
        cell = dict(zip(head, cells[0], strict=True))
        return cell["recommended"], cell["predicted (range)"], cell["ends after"], advice.sbatch

    def started(**waits):
        usual, other = asked.items()
        return with_starts(told, {usual: waits["usual"], other: waits["other"]})

    assert row(told)[2] == "–"
    late = started(usual=3600.0, other=36000.0)
    assert row(late) == (
        "keep 2", "28.6 min (median of its runs)", "88.6 min", "sbatch --ntasks=2 job.sh",
    )  # fmt: skip
    soon = row(started(usual=3600.0, other=3600.0))
    assert soon[0].startswith("32 (inferred")
    assert soon[2].endswith("(now 2: 88.6 min)")
    unknown = with_starts(told, {next(iter(asked.items())): 3600.0})
    assert (unknown.recommended.count, row(unknown)[2]) == (32, "–")


def test_what_costs_less_may_end_a_little_later_and_says_so():
    told = advice_of("a", runs_of([2, 4, 8, 32, 32], serial=1000.0, parallel=500.0), None, 32)
    assert (told.usual, told.recommended.count) == (32, 8)
    waits = {(one.count, asked_on(told, one)): 60.0 for one in told.choices}
    near = with_starts(told, waits)
    assert near.recommended.ends > near.choices[0].ends
    assert advice_rows([near])[1][0][2] == "8 (ends later, costs less)"
    far = with_starts(told, {key: wait * (1 + 20 * (key[0] < 32)) for key, wait in waits.items()})
    assert advice_rows([far])[1][0][2] == "keep 32"
