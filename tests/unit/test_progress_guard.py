"""A run in which no job ends any more is given up, and says which job and which key."""

import math
import re

import pytest

from scripts.composing import composed
from sim.errors import SimError
from sim.machine.failing import Failing
from sim.simulation.scene import play, set_scene
from workloads.streams import Streams

pytestmark = [pytest.mark.fast, pytest.mark.filterwarnings("ignore")]
FAILING = ("policy=easy", "predictor=user_estimate", "cluster=failing", "cluster.processors=16",
           "workload.jobs=20", "moldability=none", "baseline=null")  # fmt: skip


def played(*overrides):
    config = composed(*overrides)
    return play(config, config, set_scene(config, 0)).outcome


def test_a_run_that_gets_nowhere_is_given_up_by_its_events():
    endless = ("policy=fcfs", "cluster.mtbf=1", "cluster.repair_median=900")
    with pytest.raises(SimError) as refused:
        played(*FAILING, *endless, "cluster.max_restarts=0", "sim.stall_events=3000")
    said = str(refused.value)
    assert said.startswith("no job was completed for 3,0")
    assert "processors and was restarted 0 times" in said
    assert "cluster.mtbf" in said
    assert said.endswith("or raise sim.stall_events=3000")


def test_and_by_simulated_time():
    endless = ("cluster.mtbf=50", "cluster.repair=1e5", "cluster.max_restarts=1000000000")
    with pytest.raises(SimError, match=r"raise sim\.stall_time=200000$"):
        played(*FAILING, *endless, "sim.stall_time=2e5")


def test_and_where_runs_are_interrupted_far_more_often_than_any_ends():
    every_second = ("cluster.mtbf=1", "cluster.lifetimes=weibull", "cluster.repair=10",
                    "sim.stall_events=30000")  # fmt: skip
    with pytest.raises(SimError) as refused:
        played(*FAILING, *every_second, "cluster.processors=4")
    said = str(refused.value)
    assert said.startswith("jobs were interrupted ")
    interrupted, ended = (int(said.split()[at].replace(",", "")) for at in (3, 6))
    assert interrupted - 100 * ended == 301
    assert "restarted" in said
    assert said.endswith("sim.stall_events=30000")


def test_jobs_that_are_given_up_are_no_progress():
    vain = (
        "cluster.mtbf=1",
        "cluster.lifetimes=weibull",
        "cluster.max_restarts=2",
        "workload.load=100",
    )
    with pytest.raises(SimError, match="jobs were interrupted 31 times and 0 were completed"):
        played(
            *FAILING, *vain, "sim.stall_events=3000", "cluster.repair=10", "cluster.processors=4"
        )


def test_a_job_that_cannot_be_expected_to_end_is_named_with_its_cause():
    rare = ("workload.jobs=60", "seed=5", "cluster.mtbf=300000")
    with pytest.raises(SimError) as refused:
        played("policy=equi", "predictor=user_estimate", "cluster=failing", "baseline=null", *rare)
    said = str(refused.value)
    _, seconds, processors, starts = re.search(
        r"^job (-?\d+) cannot be expected to end: it takes ([\d,]+) s on (\d+) processors without "
        r"checkpoints, where cluster.mtbf=300000 lets it begin ([\de.+]+) times on average \(10 so",
        said,
    ).groups()
    rate = int(processors) / 3e5
    assert float(starts) == pytest.approx(
        math.exp(rate * float(seconds.replace(",", ""))), rel=0.05
    )
    assert float(starts) > 1000
    assert said.endswith(
        "raise cluster.max_restarts=1000, or set it below 1,000 to give such jobs up"
    )


def test_expected_starts_are_those_of_exponential_failures_of_the_nodes_held():
    machine = Failing(16, 4, mtbf=100.0).bound(Streams(seed=1), 0.0)
    assert machine.expected_starts(50.0, 8) == pytest.approx(math.exp(1.0))
    assert machine.expected_starts(50.0, 9) == pytest.approx(math.exp(1.5))
    for other in ({"mtbf": None}, {"mtbf": 100.0, "lifetimes": "weibull"}):
        assert Failing(16, 4, **other).bound(Streams(1), 0.0).expected_starts(1e9, 16) == 1.0


def test_time_in_which_nobody_runs_or_waits_does_not_count():
    quiet = ("workload.load=0.001", "sim.stall_time=2e6")
    jobs = played(*FAILING, "cluster.mtbf=1e9", *quiet).tables.jobs
    gaps = jobs["submit_time"].diff().max()
    assert gaps > 2e6
    assert (jobs["status"] == "completed").all()


def test_resubmissions_are_counted_and_capped():
    toy = ("evolving=adaptive", "overrun=kill", "workload.estimate_limit=7200", "baseline=null",
           "policy=easy", "workload.jobs=30")  # fmt: skip
    free = played(*toy).records
    capped = played(*toy, "evolving.max_resubmits=1").records
    assert free.counters["resubmissions"] > capped.counters["resubmissions"] > 0
    assert (
        "resubmitted more often than evolving.max_resubmits" in capped.failure_costs.failure_reason
    )
    assert capped.restarts.max() == 1 < free.restarts.max()
