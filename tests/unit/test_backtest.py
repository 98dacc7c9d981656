"""Backtests: a schedule made by a known scheduler is found again, and what differs is named."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy import stats

from sim.backtest import backtest, main, options, show
from sim.errors import ConfigError
from sim.results.sentences import BACKTESTS, backtest_sentences, distance, find_backtest
from sim.simulation.scene import play, set_scene
from sim.site.candidate_schedules import with_places
from sim.site.comparison import spearman
from sim.site.site_logs import (
    Beginning,
    Outage,
    beginning,
    gaps,
    levels,
    low_weeks,
    of_log,
    outages_of,
    recorded_schedule,
    steady_begin,
    with_outages,
)
from sim.site.site_pages import NEXT, change_lines
from sim.warm import configuration
from tests.former import WORLD
from workloads.base import Trace, check_jobs

pytestmark = pytest.mark.fast

PROCESSORS = 64
EASY = (*WORLD, "policy=easy", "predictor=user_estimate", "moldability=none", "workload.load=0.9",
        "workload.jobs=1200", f"cluster.processors={PROCESSORS}")  # fmt: skip


@pytest.fixture(scope="module")
def easy():
    """A schedule by EASY of a model's jobs."""
    config = configuration([*EASY])
    played = play(config, config, set_scene(config, 0))
    return played.outcome.tables.jobs


def write_log(path, jobs, limits=True, skip=0):
    """Write a schedule as a table that a site might have."""
    table = pd.DataFrame(
        {
            "JobID": jobs["job_id"],
            "Submit": jobs["submit_time"],
            "Start": jobs["start_time"],
            "End": jobs["end_time"],
            "CPUs": jobs["requested_processors"],
            "User": jobs["job_id"] % 7,
        }
    )
    if limits:
        table["Timelimit"] = jobs["requested_time"]
    table.iloc[skip:].to_csv(path, index=False)
    return str(path)


def run(log, *more):
    own = options([one for one in more if one.startswith("backtest.")])
    rest = [one for one in more if not one.startswith("backtest.")]
    return backtest(of_log([log, f"cluster.processors={PROCESSORS}", *rest]), own)


@pytest.mark.slow
def test_the_scheduler_that_made_a_log_is_found(tmp_path, easy):
    done = run(write_log(tmp_path / "log.csv", easy), "backtest.begin=0")
    figures = done.figures()
    assert (figures["nearest"], figures["verdict"]) == ("easy", "trust")
    own = next(one for one in figures["candidates"] if one["name"] == "easy")
    assert own["mean_wait_time"] == pytest.approx(easy["wait_time"].mean())
    assert own["median_absolute_wait_difference"] == 0.0
    assert own["spearman_wait"] == 1.0
    assert own["utilization"] == pytest.approx(figures["recorded"]["utilization"])
    assert figures["jobs"] == len(easy)
    others = {one["name"]: one["verdict"] for one in figures["candidates"]}
    assert others["fcfs"] == "distrust"
    assert done.found.held.values.max() <= PROCESSORS
    codes = {one["code"] for one in figures["reasons"]}
    assert codes <= {"start_latency"}  # a scheduler that does as a candidate gives no reason


def test_a_replay_goes_on_from_the_machine_in_use_and_its_queue(tmp_path, easy):
    """From the middle on the same scheduler does the same again."""
    begin = easy["start_time"].quantile(0.3) - easy["submit_time"][0] + 0.5
    log = write_log(tmp_path / "log.csv", easy)
    done = run(log, "backtest.candidates=[easy]", f"backtest.begin={begin}")
    figures = done.figures()
    assert figures["running_at_begin"] > 0
    assert figures["waiting_at_begin"] > 0
    assert figures["candidates"][0]["spearman_wait"] > 0.99
    assert abs(figures["candidates"][0]["mean_wait_difference"]) < 0.01
    assert figures["verdict"] == "trust"


def test_what_runs_at_the_begin_is_put_there_with_what_is_left(easy):
    found, _ = _recorded(easy)
    begin = float(easy["start_time"].quantile(0.5)) + 0.5
    found = type(found)(found.trace, found.processors, "log", begin)
    first = beginning(found)
    running = easy[(easy["start_time"] < begin) & (easy["end_time"] > begin)]
    jobs = first.trace.jobs.iloc[: len(running)]
    assert (jobs["submit_time"] == begin - 1).all()
    ends = jobs["submit_time"] + jobs["reference_runtime"]
    np.testing.assert_allclose(np.sort(ends), np.sort(running["end_time"]))
    waiting = ((easy["submit_time"] < begin) & (easy["start_time"] >= begin)).sum()
    assert (first.trace.jobs["submit_time"] == begin).sum() == waiting
    assert len(first.index) == (easy["end_time"] > begin).sum()


def _recorded(jobs, processors=PROCESSORS):
    table = pd.DataFrame(
        {
            "job_id": np.arange(len(jobs)),
            "submit_time": jobs["submit_time"].to_numpy(),
            "requested_processors": jobs["requested_processors"].to_numpy(),
            "reference_runtime": (jobs["end_time"] - jobs["start_time"]).to_numpy(),
            "requested_time": jobs["requested_time"].to_numpy(),
            "user": 1,
            "executable": -1,
            "preceding_job": -1,
            "think_time": -1.0,
            "recorded_wait_time": (jobs["start_time"] - jobs["submit_time"]).to_numpy(),
        }
    )
    trace = Trace(check_jobs(table, "toy"), None, "toy", "0" * 64)
    return recorded_schedule(trace, processors), trace


@pytest.mark.slow
def test_missing_limits_are_played_exact_and_modelled(tmp_path, easy):
    done = run(write_log(tmp_path / "log.csv", easy, limits=False), "backtest.begin=0")
    names = [one.name for one in done.candidates]
    assert names[:3] == ["fcfs", "easy_exact", "easy_modelled"]
    reason = next(one for one in done.reasons if one.code == "limits_missing")
    assert reason.evidence["missing_share"] == 1.0
    exact = next(one for one in done.candidates if one.name == "easy_exact")
    assert exact.figures["mean_wait_time"] < easy["wait_time"].mean()


@pytest.mark.slow
def test_a_machine_believed_too_large_is_named(tmp_path, easy, capsys):
    log = write_log(tmp_path / "log.csv", easy)
    done = backtest(of_log([log, "cluster.processors=100"]), options([]))
    reason = next(one for one in done.reasons if one.code == "machine_too_large")
    assert reason.evidence["most_held"] <= PROCESSORS
    smaller = backtest(of_log([log, "cluster.processors=16384"]), options([]))
    assert smaller.nearest.verdict == "distrust"
    show(Console(width=200), smaller, [])
    assert NEXT in " ".join(capsys.readouterr().out.split())
    assert change_lines(done.figures()) == [NEXT] * (done.nearest.verdict == "distrust")
    said = f"{done.nearest.name}, the closest by the ratio of mean waits, is not close to the "
    figures = done.figures()
    told = distance(figures)
    assert said in told
    own = next(one for one in figures["candidates"] if one["name"] == done.nearest.name)
    assert told.count("%") + told.count(" times") >= 1 + len(own["quarters"])
    only = distance({**figures, "candidates": [own]})
    assert f"{own['name']}, the only candidate, is not close to the" in only
    made = {"mean_wait_difference": -0.5, "spearman_wait": 0.1}
    whole = {"changes": [{"name": name, **made} for name in ("nothing", "capacity")]}
    told = change_lines({**done.figures(), **whole, "verdict": "distrust", "outages": [{}]})
    assert "backtest.changes" not in told[0]
    assert "backtest.capacity" not in told[0]
    assert told[0].startswith("What to do: trust no waits simulated on this log. If not given yet")
    assert ", as it is, on the full machine: mean wait -50 %, rank correlation 0.10." in told[1]
    assert told[2].endswith("missing of the machine: mean wait -50 %, rank correlation 0.10.")
    without = backtest(of_log([log, "backtest.begin=0"][:1]), options(["backtest.begin=0"]))
    assert without.found.source_of_size == "recorded"
    assert without.found.processors == PROCESSORS


def test_holds_and_priorities_are_named(tmp_path, easy):
    submit = 1000.0 * np.arange(400)
    wait = np.where(np.arange(400) % 10 == 0, 20 * 3600.0, 0.0)
    held = pd.DataFrame({"job_id": np.arange(400), "submit_time": submit, "user": 1,
                         "start_time": submit + wait, "end_time": submit + wait + 500,
                         "requested_processors": 4, "requested_time": 600.0})  # fmt: skip
    done = run(write_log(tmp_path / "held.csv", held), "backtest.candidates=[easy]")
    reason = next(one for one in done.reasons if one.code == "waited_beside_free_machine")
    assert reason.evidence["jobs"] >= 38
    assert reason.evidence["share_of_waiting"] > 0.9
    assert reason.evidence["median_hours"] == pytest.approx(20.0, rel=0.1)
    assert reason.weight == max(one.weight for one in done.reasons)
    turned = easy.copy()
    turned["start_time"] = turned["submit_time"] + turned["wait_time"].to_numpy()[::-1]
    turned["end_time"] = turned["start_time"] + turned["runtime"]
    done = run(write_log(tmp_path / "log.csv", turned), "backtest.candidates=[easy]")
    assert "priorities" in {one.code for one in done.reasons}


def test_an_outage_is_found_and_a_replay_goes_without(tmp_path, easy):
    """Nothing starts for two days in the middle."""
    config = configuration([*EASY])
    scene = set_scene(config, 0)
    jobs = scene.trace.jobs
    jobs = jobs[jobs["requested_processors"] <= PROCESSORS // 2].reset_index(drop=True)
    narrow = replace(scene.trace, jobs=jobs)
    table = play(config, config, set_scene(config, 0, narrow)).outcome.tables.jobs
    begin = float(table["submit_time"].quantile(0.5))
    late = table["start_time"] >= begin
    table.loc[late, ["start_time", "end_time"]] += 2 * 86400.0
    found, _ = _recorded(table)
    first, begins = with_outages(
        Beginning(narrow, np.arange(len(jobs))), [Outage(begin, begin + 2 * 86400.0, PROCESSORS)]
    )
    assert first.index.tolist().count(-1) == 32
    assert begins == [begin - 1 / 128]
    longest = max(gaps(found), key=lambda one: one.end - one.begin)
    assert begin - 86400 <= longest.begin <= begin + 86400
    assert longest.end - longest.begin >= 1.9 * 86400.0
    log = write_log(tmp_path / "log.csv", table)
    plain, asked = (
        run(log, "backtest.candidates=[easy]", f"backtest.capacity={capacity}").candidates[0]
        for capacity in ("constant", "recorded")
    )
    assert asked.figures["spearman_wait"] > plain.figures["spearman_wait"]
    assert abs(asked.figures["mean_wait_difference"]) < abs(plain.figures["mean_wait_difference"])


def test_weeks_in_which_less_was_held():
    week = 7 * 86400.0
    jobs = pd.DataFrame(
        {
            "submit_time": np.arange(40) * week / 10,
            "requested_processors": [8] * 10 + [4] * 10 + [8] * 20,
            "requested_time": week,
        }
    )
    jobs["start_time"] = jobs["submit_time"] + 0.6 * week / 10
    jobs["end_time"] = jobs["submit_time"] + 1.5 * week / 10
    found, _ = _recorded(jobs, 8)
    assert found.most_by_week.tolist() == [8, 8, 8, 8]  # the second begins with one of eight
    jobs.loc[9, "end_time"] = week
    found, _ = _recorded(jobs, 8)
    assert found.most_by_week.tolist()[:2] == [8, 4]
    assert [one.processors for one in low_weeks(found)] == [4]
    assert len(outages_of(found)) >= 1


def test_the_begin_is_where_the_machine_is_as_full_as_usual():
    stragglers = pd.DataFrame({"submit_time": [0.0, 1e5], "requested_processors": 1,
                               "requested_time": 1e7, "start_time": [0.0, 1e5],
                               "end_time": [3e6, 3e6]})  # fmt: skip
    rest = pd.DataFrame({"submit_time": 1e6 + 1e3 * np.arange(3000), "requested_processors": 4,
                         "requested_time": 1e5})  # fmt: skip
    rest["start_time"] = rest["submit_time"]
    rest["end_time"] = rest["start_time"] + 2e4
    found, _ = _recorded(pd.concat([stragglers, rest], ignore_index=True), 100)
    assert 1e6 < steady_begin(found) < 1.1e6


@pytest.mark.parametrize("seed", range(3))
def test_figures_against_other_tools(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 9, 200).astype(float), rng.integers(0, 9, 200).astype(float)
    assert spearman(first, second) == pytest.approx(stats.spearmanr(first, second)[0], abs=1e-9)
    begin = rng.integers(0, 50, 30).astype(float)
    end = begin + rng.integers(0, 20, 30)
    weight = rng.integers(1, 5, 30)
    held = levels(begin, end, weight)
    for instant in rng.uniform(-5, 80, 20):
        there = (begin <= instant) & (instant < end)
        assert held.at(np.array([instant]))[0] == weight[there].sum()
        area = (weight * np.clip(np.minimum(end, instant) - begin, 0, None)).sum()
        assert held.area(np.array([instant]))[0] == pytest.approx(area)
    (most,) = held.extremes(np.array([10.0, 20.0]), np.maximum)
    inside = np.arange(10, 20)
    assert most == held.at(inside.astype(float)).max()


@pytest.mark.slow
def test_files_line_and_page(tmp_path, easy, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    log = write_log(tmp_path / "log.csv", easy)
    given = [log, f"cluster.processors={PROCESSORS}", "backtest.candidates=[fcfs,easy]"]
    assert main(given) == 0
    assert "easy comes nearest" in capsys.readouterr().out
    (folder,) = BACKTESTS.iterdir()
    assert folder.name.endswith(f",cluster.processors-{PROCESSORS}")
    figures = json.loads((folder / "backtest.json").read_text())
    jobs = pd.read_parquet(folder / "backtest_jobs.parquet")
    assert list(jobs) == ["job_id", "candidate", "submit_time", "recorded_start_time", "start_time"]
    for one in figures["candidates"]:
        mine = jobs[jobs["candidate"] == one["name"]]
        assert len(mine) == figures["jobs"]
        wait = mine["start_time"] - mine["submit_time"]
        assert one["mean_wait_time"] == pytest.approx(wait.mean())
    page = (folder / "backtest.html").read_text()
    assert page.count("<figure>") == 3
    for kind in ("width", "length", "user", "month"):
        assert f"By {kind}" in page
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(given) == 0
    assert first == {path.name: path.read_bytes() for path in folder.iterdir()}
    assert find_backtest("log.csv", figures["checksum"]) == figures
    assert main([*given, "backtest.capacity=recorded"]) == 0  # a trial, of which no run speaks
    assert (folder / "capacity=recorded" / "backtest.json").is_file()
    assert find_backtest("log.csv", figures["checksum"]) == figures
    assert main([*given[:2], "backtest.candidates=easy"]) == 0  # fewer leave the others
    assert (folder / "candidates=easy" / "backtest.json").is_file()
    assert first == {path.name: path.read_bytes() for path in folder.glob("backtest*")}
    made = tmp_path / "run"
    made.mkdir()
    manifest = {"source": "log.csv", "checksum": figures["checksum"]}
    (made / "manifest.json").write_text(json.dumps(manifest))
    told = f"Backtest of log.csv, with cluster.processors={PROCESSORS}: trust. easy comes nearest "
    assert backtest_sentences([made])[0].startswith(told)
    (made / "summary.json").write_text(json.dumps({"processors": PROCESSORS + 1}))
    none = f"No backtest of log.csv on {PROCESSORS + 1} processors in backtests/: how far "
    assert backtest_sentences([made])[0].startswith(none)
    assert main([log, "backtest.candidates=[easy]"]) == 0
    assert json.loads((folder / "backtest.json").read_text()) == figures  # a folder of its own
    (made / "summary.json").write_text(json.dumps({"processors": float(PROCESSORS)}))
    assert backtest_sentences([made])[0].startswith("Backtest of log.csv: trust. easy comes ")
    (made / "manifest.json").write_text(json.dumps(manifest | {"checksum": "0"}))
    assert backtest_sentences([made])[0].startswith("No backtest of log.csv in backtests/")
    (made / "manifest.json").write_text(json.dumps({"source": "lublin", "checksum": None}))
    assert backtest_sentences([made]) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["nowhere.swf"], "nowhere.swf: no such file"),
        ([], "no log is given"),
        (["workload=lublin"], "give a log, or workload=archive"),
        (["log.csv", "backtest.capacity=most"], "backtest.capacity=most: must be"),
        (["log.csv", "backtest.begin=soon"], "backtest.begin=soon: must be"),
        (["log.csv", "backtest.begin=1e12"], "no job with a recorded wait starts later"),
        (["log.csv", "backtest.start=3"], "keys are backtest.candidates"),
        (["log.csv", "backtest.candidates=[easy,eezy]"], "there is no scheduler eezy"),
        (["log.csv", "backtest.candidates=[]"], "each once"),
        (["log.csv", "workload.load=0.8"], "its times are not the log's"),
        (["log.csv", "policy=sa"], "policy=sa: has no effect here"),
        (["log.csv", "workload=null"], "workload=null: must be the name of an option"),
        (["log.csv", "workload.job=3"], "there is no such key"),
        (["bare.csv"], "it records no wait of any job"),
        (["log.csv", "cluster.processors=0"], "cluster.processors=0"),
    ],
)
def test_bad_input_is_refused_in_a_line(tmp_path, easy, monkeypatch, capsys, given, said):
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "log.csv", easy[:50])
    bare = "Submit,Start,End,CPUs\n5,4,6,1\n"
    (tmp_path / "bare.csv").write_text(bare)
    assert main(given) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("error:") == 1
    assert "Traceback" not in error
    assert not (tmp_path / "backtests").exists()


def test_a_log_without_waits_is_refused_in_one_line(tmp_path, monkeypatch, capsys, caplog):
    monkeypatch.chdir(tmp_path)
    swf = " ".join(["{}", "0", "-1", "{}", *["-1"] * 3, "4", *["-1"] * 10])
    (tmp_path / "log.swf").write_text(f"{swf.format(1, 0)}\n{swf.format(2, 60)}\n")
    assert main(["log.swf"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert caplog.text == ""  # no word of what cleaning would have left out


@pytest.mark.slow
def test_partitions_that_are_machines_of_their_own_are_found(tmp_path, easy):
    """Two copies of a schedule on a half of the machine each: only apart it is found again."""
    both = pd.concat([easy.assign(half=1), easy.assign(half=2)], ignore_index=True)
    both["job_id"] = np.arange(len(both)) + 1
    both["submit_time"] += 1e5 * (both["half"] - 1)
    both["start_time"] += 1e5 * (both["half"] - 1)
    both["end_time"] += 1e5 * (both["half"] - 1)
    log = tmp_path / "log.csv"
    write_log(log, both)
    table = pd.read_csv(log).assign(Partition=both["half"])
    table.to_csv(log, index=False)
    more = ["backtest.candidates=[easy]", "backtest.changes=true", "backtest.begin=0"]
    done = backtest(of_log([str(log), f"cluster.processors={2 * PROCESSORS}"]), options(more))
    figures = {one.name: one.figures for one in done.changes}
    assert figures["partitions"]["spearman_wait"] == pytest.approx(1.0)
    assert figures["partitions"]["mean_wait_difference"] == pytest.approx(0.0, abs=1e-9)
    assert figures["nothing"]["spearman_wait"] < 0.9


def test_candidates_are_checked_by_name():
    for given in ("[easy,sjf]", "easy,sjf"):
        assert options([f"backtest.candidates={given}"]).candidates == ["easy", "sjf"]
    with pytest.raises(ConfigError, match="orders in which EASY takes jobs: f1"):
        options(["backtest.candidates=[recorded]"])


def test_what_a_distance_is_made_of_is_found_by_changing_it(tmp_path, easy):
    """A log by EASY that took jobs in the reverse order of their users' numbers."""
    turned = easy.copy()
    rank = np.lexsort([turned["submit_time"], -(turned["job_id"] % 7)])
    config = configuration([*EASY])
    scene = set_scene(config, 0)
    submits, places = scene.trace.jobs["submit_time"].tolist(), np.argsort(rank).tolist()
    config = with_places(config, config["policy"]["order"], submits=submits, places=places)
    table = play(config, config, scene).outcome.tables.jobs
    assert not table["start_time"].equals(easy["start_time"])
    log = write_log(tmp_path / "log.csv", table)
    done = run(log, "backtest.candidates=[easy]", "backtest.changes=true", "backtest.begin=0")
    ranks = {one.name: one.figures["spearman_wait"] for one in done.changes}
    assert list(ranks) == ["nothing", "capacity", "estimates", "order", "holds"]
    assert ranks["nothing"] == done.candidates[0].figures["spearman_wait"]
    assert ranks["order"] > ranks["nothing"]
    assert ranks["order"] == max(ranks[name] for name in ("nothing", "estimates", "order"))
