"""Why a job waited: replays of whole runs, and small schedules worked by hand."""

import contextlib
import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from toys import (
    BACKFILLS,
    ToyEstimate,
    ToyOracle,
    ToyTruth,
    in_python,
    rigid,
    rigid_truth,
    trace_of,
)

from sim.engine.engine import Engine
from sim.engine.run import compiled_passes, simulate
from sim.engine.setup import Setup
from sim.errors import SimError
from sim.explain.__main__ import ORDER, PROCESSORS, RESERVATION, RULE, Recorder, explained, main
from sim.machine.base import Dedicated
from sim.plot import main as main_plot
from sim.policies.allocation.iterative import Iterative
from sim.policies.allocation.rigid import Request
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.allocation.turnaround import BestTurnaround
from sim.policies.backfill.conservative import Conservative
from sim.policies.backfill.easy import Easy
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from sim.policies.reallocation.equi import Equipartition
from sim.policies.reallocation.hesrpt import HeSrpt
from sim.policies.reallocation.pdpa import PerformanceDriven
from sim.simulation.recorded_run import recorded_run

pytestmark = pytest.mark.fast

# Four processors. Job 1 holds three until 10 (believed 12). Job 2 wants all four, job 3 one for
# long, job 4 one for a short time.
ROWS = [(0, 3, 10, 12), (1, 4, 5, 5), (2, 1, 20, 20), (3, 1, 4, 4)]


def recorded(backfill, job, rows=ROWS):
    """Replay toy rows with a recorder on a job (by index), and without; return the recorder.

    The replay is compiled where the run is, and in Python it is told the same.
    """
    trace = trace_of(rows)
    setup = Setup(trace, rigid_truth(trace), rigid(backfill), ToyEstimate(), Dedicated(4))
    recorder, other = (Recorder(trace.jobs["job_id"].tolist()[job]) for _ in range(2))
    is_compiled = compiled_passes(Engine(setup)) is not None
    assert (compiled_passes(Engine(other.around(setup))) is not None) == is_compiled
    watched = simulate(recorder.around(setup))
    assert watched.start_time.tolist() == simulate(setup).start_time.tolist()
    with in_python():
        simulate(other.around(setup))
    assert other.waits == recorder.waits
    return recorder


def reasons(backfill, job):
    (wait,) = recorded(backfill, job).waits
    return [(one["time"], one["reason"]) for one in wait["refused"]], wait["start"]


def test_nobody_passes_a_blocked_job_under_fcfs():
    assert reasons("none", 2) == ([(2, ORDER), (3, ORDER), (10, PROCESSORS)], 15)


def test_easy_refuses_who_would_delay_the_head_and_names_the_promise():
    assert reasons("easy", 2) == (
        [(2, RESERVATION), (3, PROCESSORS), (7, RESERVATION), (10, PROCESSORS)], 15,
    )  # fmt: skip
    first, second, *_ = recorded("easy", 2).waits[0]["refused"]
    assert (first["first_ahead"], first["first_ahead_wants"]) == (2, 4)
    assert (first["free"], first["wanted"]) == (1, 1)
    assert first["must_not_move"] == {"job": 2, "start": 12.0, "processors": 4}
    assert second["passed_by"] == [4]


def test_the_head_waits_for_processors_that_others_are_believed_to_hold():
    (wait,) = recorded("easy", 1).waits
    assert {one["reason"] for one in wait["refused"]} == {PROCESSORS}
    first = wait["refused"][0]
    assert (first["own_reservation"], first["enough_free_at"]) == (12.0, 12.0)
    assert (first["once_these_end"], first["jobs_ahead"]) == ([1], 0)
    assert wait["ended_at_start"] == [1]


def test_conservative_tells_a_jobs_own_turn():
    (wait,) = recorded("conservative", 2).waits
    assert [one["reason"] for one in wait["refused"]][:2] == [RESERVATION, PROCESSORS]
    assert wait["refused"][0]["own_reservation"] == 17.0
    assert wait["start"] == 15.0


@pytest.mark.parametrize("backfill", BACKFILLS)
def test_a_job_that_comes_to_idle_processors_is_never_refused(backfill):
    (wait,) = recorded(backfill, 0).waits
    assert (wait["refused"], wait["start"], wait["processors"]) == ([], 0.0, 3)


def test_who_starts_ahead_of_the_queue_is_told():
    (wait,) = recorded("easy", 3).waits
    assert (wait["start"], wait["overtook"]) == (3.0, 2)


MOLDED = {
    "best": (Conservative(replan=True), BestTurnaround()),
    "first alone": (Conservative(replan=True), Iterative(depth=1)),
    "sa": (Conservative(), SmallestTurnaround()),
    "malleable": (Easy(), Request(), HeSrpt()),
    "equal shares": (Easy(), Request(), Equipartition()),
    "measured": (Easy(), Request(), PerformanceDriven(interval=1.0, stable_interval=2.0, step=1)),
}


@pytest.mark.parametrize("name", MOLDED)
def test_compiled_passes_tell_the_same_as_passes_in_python(name):
    trace = trace_of([(k / 8.0, 1 + k % 3, 7.0) for k in range(12)])
    reference, largest = trace.jobs["requested_processors"].to_numpy(), np.array([3] + 11 * [4])
    truth = ToyTruth(lambda job, n: (4.0 + 30.0 * (job % 3)) / n**0.95, reference, largest)
    policy, told = Policy(FirstComeFirstServed(), *MOLDED[name]), []
    setup = Setup(trace, truth, policy, ToyOracle(truth), Dedicated(4))
    for way, number in product((contextlib.nullcontext, in_python), trace.jobs["job_id"]):
        own, recorded = (
            compiled_passes(Engine(one)) for one in (setup, Recorder(number).around(setup))
        )
        assert own._rule.asks_at_arrivals == recorded._rule.asks_at_arrivals
        recorder = Recorder(number)
        with way():
            simulate(recorder.around(setup))
        told.append((recorder.waits, recorder.weighed, recorder.resized))
    assert told[:12] == told[12:]
    reasons = {one["reason"] for waits, *_ in told for wait in waits for one in wait["refused"]}
    assert RULE in reasons or name != "first alone"
    rows = [row for _, weighed, _ in told for row in weighed]
    assert bool(rows) is (name not in ("equal shares", "measured"))  # which read no curve
    assert all(
        row["chosen"] in ((None, *row["counts"]) if name == "sa" else (None,)) for row in rows
    )
    assert {start is None for row in rows for start in row["starts"]} <= {name != "sa"}


class StartsFirst:
    """Takes the count that is predicted to start first, the fewest of equals."""

    def choose(self, job, view, outlook):
        counts = view.counts(job)
        return int(counts[np.argmin(outlook(counts, view.curve(job, counts)))])


def test_an_allocation_of_ones_own_has_what_it_weighed_written_down():
    trace = trace_of([(k / 8.0, 2, 8.0) for k in range(4)])
    truth = ToyTruth(lambda job, n: 16.0 / n, np.full(4, 2), np.full(4, 3))
    policy = Policy(FirstComeFirstServed(), Easy(), StartsFirst())
    recorder = Recorder(trace.jobs["job_id"].tolist()[3])
    simulate(recorder.around(Setup(trace, truth, policy, ToyOracle(truth), Dedicated(3))))
    (row,) = recorder.weighed
    assert (row["time"], row["chosen"], row["counts"]) == (0.375, 1, [1, 2, 3])
    assert row["runtimes"] == [16.0, 8.0, 16.0 / 3.0]
    assert row["starts"] == [16.0, 16.125, 16.25]


ASKED = ("workload.jobs=50", "workload.load=1.0", "sim.progress=false", "picture=none", "seed=3")
RUNS = {
    "fcfs": ("policy=fcfs", "predictor=user_estimate"),
    "easy": ("policy=easy", "predictor=user_estimate"),
    "conservative": ("policy=conservative", "predictor=user_estimate"),
    "sa": ("policy=sa", "predictor=oracle"),
    "learned": ("policy=sa_easy", "predictor=adept"),
    "iterative": ("policy=iterative", "predictor=oracle"),
    "malleable": ("policy=hesrpt", "predictor=oracle"),
    "shared": ("policy=load_aware", "predictor=rational", "cluster=shared", "cluster.history=1200",
               "cluster.processors=32", "workload.jobs=15"),
    "failing": ("policy=easy", "predictor=user_estimate", "cluster=failing", "cluster.mtbf=4e6",
                "workload.jobs=30"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_the_replay_is_the_recorded_schedule_and_accounts_for_all_of_the_wait(name, command):
    assert command(*ASKED, *RUNS[name], "baseline=null", "hydra.run.dir=run").status == 0
    jobs = pd.read_parquet("run/jobs.parquet")
    longest = jobs[jobs["job_id"] >= 0].sort_values("wait_time", kind="stable").iloc[-1]
    told = explained(Path("run"), int(longest.job_id))
    assert told["agrees"]
    assert told["other_starts"] == 0
    assert told["notes"] == []
    first = told["waits"][0]
    assert (first["begin"], first["start"]) == (longest.submit_time, longest.start_time)
    assert len(told["waits"]) == longest.restarts + 1
    for wait in told["waits"]:
        times = [one["time"] for one in wait["refused"]]
        assert times == sorted(times)
        assert not times or (times[0] == wait["begin"] and times[-1] < wait["start"])
    for one in first["refused"]:
        if one["reason"] == PROCESSORS:
            assert one["enough_free_at"] is None or one["once_these_end"]
        if one["reason"] in (RESERVATION, ORDER):
            assert one["free"] >= 1
            assert one["jobs_ahead"] or one["must_not_move"]
    if name in ("sa", "iterative", "malleable", "shared"):
        last = told["weighed"][-1]
        assert len(last["counts"]) == len(last["runtimes"]) > 1
        assert last["counts"] == sorted(last["counts"])


@pytest.fixture
def study(command):
    """A run of two replications with a baseline."""
    given = ("policy=sa", "predictor=adept", "given=charged", "baseline=easy", "replications=2")
    assert command(*ASKED, *given, "workload.jobs=30", "hydra.run.dir=run").status == 0
    return Path("run")


@pytest.mark.slow
def test_replications_baselines_and_the_step_between_are_replayed_too(study, capsys):
    beliefs = set()
    for place in ("replication=1", "replication=1/baseline", "replication=1/baseline_predictor"):
        told = explained(study / place, 20)
        assert (told["agrees"], told["other_starts"], told["notes"]) == (True, 0, [])
        beliefs.add(told["believed_runtime"])
    assert len(beliefs) > 1
    assert explained(study, 20)["notes"] == ["of several replications the first, replication=0"]
    assert main([str(study / "replication=1"), "20"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Job 20 ")
    assert lines[1] == ("The replay starts it when the run did; all jobs start as in the run.")
    assert main([str(study / "replication=1"), "20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == explained(study / "replication=1", 20)


def test_a_replay_of_another_schedule_says_so(study, capsys):
    place = study / "replication=0"
    jobs = pd.read_parquet(place / "jobs.parquet", partitioning=None)
    jobs.loc[jobs["job_id"] == 20, "start_time"] -= 1.0
    jobs.to_parquet(place / "jobs.parquet")
    manifest = json.loads((place / "manifest.json").read_text())
    del manifest["artefacts"]
    manifest["code"] = "another"
    (place / "manifest.json").write_text(json.dumps(manifest))
    assert main([str(place), "20"]) == 1
    told = capsys.readouterr().out
    assert "The replay DIFFERS" in told
    assert "the code has changed since this run, so the replay may differ" in told


@pytest.mark.slow
def test_what_is_said_of_malleable_jobs_fits_their_run(command, capsys):
    small = ("workload.jobs=150", "workload.load=1.1", "cluster.processors=64")
    asked = ("moldability.malleable=0.6", "policy=equi", "baseline=null", "picture=none")
    command(*small, *asked, "hydra.run.dir=run")
    jobs = pd.read_parquet("run/jobs.parquet").set_index("job_id")
    waited = jobs.index[(jobs["wait_time"] > 0) & (jobs.index > 0)][:8]
    more = jobs.index[(jobs["allocated_processors"] != jobs["requested_processors"])][:1]
    resized = 0
    for job in [*waited, *more]:
        told = explained(Path("run"), int(job))
        for one in (one for wait in told["waits"] for one in wait["refused"]):
            assert 0 <= one["free"] <= 64
            assert (one["reason"] == PROCESSORS) == (one["free"] < one["wanted"])
        resized += len(told["resized"])
        main(["run", str(job)])
        said = capsys.readouterr().out
        got, wanted = (jobs.at[job, f"{name}_processors"] for name in ("allocated", "requested"))
        assert got == wanted or "no other count was weighed" not in said
        assert f"on {got} processor" in " ".join(said.split())
    assert resized


def refused(capsys, *asked):
    assert main([str(one) for one in asked]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    return error


@pytest.mark.parametrize("job", ["4102_3", "-", "1.0", "9" * 5000])
def test_a_job_that_is_no_number_is_told_how_numbers_are_given(job, capsys):
    error = refused(capsys, "run", job)
    assert error.startswith(f"error: job {job}: must be a whole number, job_id in jobs.parquet; ")
    assert "such as 17_3, has the number of its JobIDRaw there" in error


@pytest.mark.slow
def test_what_cannot_be_explained_is_one_line(study, capsys):
    error = refused(capsys, study, 31)
    assert (
        "job 31: run/replication=0 has no such job; its 30 jobs have numbers from 1 to 30" in error
    )
    assert "nowhere: there is no finished run with its tables" in refused(capsys, "nowhere", 1)
    (study / "replication=0/jobs.parquet").write_bytes(b"")
    assert "jobs.parquet is damaged" in refused(capsys, study, 1)


def test_speedup_curves_and_load_come_from_the_run_made_again(command):
    learned = ("policy=sa", "predictor=oracle", "baseline=null", "hydra.run.dir=run")
    assert command(*ASKED, *learned).status == 0
    exact = recorded_run(Path("run")).speedups([], 3)
    assert len(exact) == 3
    for one in exact:
        assert one.true == pytest.approx(one.believed)
        assert one.true[0] == one.counts[0]
        assert (np.diff(one.counts) > 0).all()
    application = exact[1].application
    (again,) = recorded_run(Path("run")).speedups([application], 3)
    assert again.true.tolist() == exact[1].true.tolist()
    with pytest.raises(SimError, match="--of 999: no job of this application could be molded"):
        recorded_run(Path("run")).speedups([999], 3)
    with pytest.raises(SimError, match="no background load: cluster=shared has"):
        recorded_run(Path("run")).background()


@pytest.mark.slow
@pytest.mark.parametrize("belief", ["oracle", "mean"])
def test_an_oracle_of_load_believes_the_load(belief, command):
    shared = (*RUNS["shared"], f"cluster.belief={belief}", "baseline=null", "hydra.run.dir=run")
    assert command(*ASKED, *shared).status == 0
    found = recorded_run(Path("run")).background()
    assert found.true.shape == found.believed.shape == (found.time.size, 32)
    assert (found.believed == pytest.approx(found.true)) is (belief == "oracle")
    assert main_plot(["run", "background"]) == 0
    assert sorted(path.name for path in Path("run/plots").iterdir()) == [
        "background.dark.svg", "background.png", "background.svg"
    ]  # fmt: skip


SWF = "".join(f"{k} {10 * k} -1 {60 + k} 4 -1 -1 4 120 -1 1 {k % 3} 1 {k % 4} 1 -1 -1 -1\n"
              for k in range(1, 31))  # fmt: skip


@pytest.mark.slow
def test_other_input_files_are_refused(command, capsys):
    log = Path("log.swf")
    log.write_text(f"; MaxProcs: 8\n{SWF}")
    given = ("workload=swf", "workload.path=log.swf", "policy=easy", "predictor=user_estimate")
    assert command(*given, "baseline=null", "hydra.run.dir=run").status == 0
    assert explained(Path("run"), 30)["agrees"]
    log.write_text(f"; MaxProcs: 8\n{SWF}\n")
    assert "workload.path is another file than it was" in refused(capsys, "run", 30)
    log.unlink()
    assert "workload.path: its file is not there; the run was made in" in refused(capsys, "run", 30)


def test_a_run_of_parts_that_are_gone_is_refused_in_a_line(study, capsys):
    config = study / ".hydra/config.yaml"
    config.write_text(config.read_text().replace("parts.nothing", "parts.NothingOfTheKind"))
    error = refused(capsys, study / "replication=0", 20)
    assert "it cannot be made again" in error
    assert "NothingOfTheKind: there is no such class" in error
