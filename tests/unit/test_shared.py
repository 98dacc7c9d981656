"""A shared machine in the engine: books balance, closed forms, what observers are told."""

import numpy as np
import pytest

from predictors.base import Explanation, Observation, VisibleJobs
from predictors.in_loop.learned_rational import RationalPerApplication
from sim.background.models import BurstyLoad, ConstantLoad, PeriodicLoad, RoundLoad
from sim.engine.engine import Engine
from sim.engine.invariants import Checker
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.errors import ConfigError
from sim.machine.base import Dedicated
from sim.machine.shared import Shared
from sim.policies.allocation.rigid import Request
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from sim.policies.placement import Fastest
from sim.state.decisions import Resize, Start, WakeAt
from tests.toys import BACKFILLS, ToyEstimate, ToyTruth, rigid, rigid_truth, trace_of
from workloads.streams import Streams

KINDS = {
    "rounds": (RoundLoad(), RoundLoad((0.02, 0.8), (180.0, 480.0), (1, 8))),
    "bursts": (BurstyLoad(), BurstyLoad()),
    "cycle": (PeriodicLoad(period=3600.0, step=60.0), PeriodicLoad(period=3600.0, step=60.0)),
}


def shared(processors, kind, **more):
    return Shared(processors, 1, *KINDS[kind], streams=Streams(7), **more)


def run_of(rows, machine, policy, predictor=None, share=np.nan, watchers=()):
    trace = trace_of(rows)
    truth = rigid_truth(trace)
    truth.share = share
    return simulate(
        Setup(trace, truth, policy, predictor or ToyEstimate(), machine, watchers=watchers)
    )


def rows(number=60, processors=8, seed=3):
    rng = np.random.default_rng(seed)
    submit = np.cumsum(rng.exponential(300.0, number))
    width = rng.integers(1, processors + 1, number)
    runtime = rng.exponential(400.0, number) + 1.0
    return list(zip(submit.tolist(), width.tolist(), runtime.tolist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_work_done_integrates_to_the_work_of_every_job(kind, backfill):
    machine, jobs = shared(8, kind), rows()
    records = run_of(jobs, machine, rigid(backfill), share=0.3, watchers=(Checker(),))
    allocations = records.allocations
    done = np.zeros(len(jobs))
    for place, job in enumerate(allocations.job.tolist()):
        start, end = allocations.start_time[place], allocations.end_time[place]
        done[job] += machine.progress(start, end, allocations.nodes[place], 0.3)
    np.testing.assert_allclose(done, [row[2] for row in jobs], rtol=1e-9)
    assert (records.end_time - records.start_time >= [row[2] * (1 - 1e-12) for row in jobs]).all()


def test_constant_load_stretches_both_parts_by_the_closed_form():
    machine = Shared(8, cpu=ConstantLoad(0.5), network=ConstantLoad(0.25), streams=Streams(1))
    records = run_of([(0.0, 2, 100.0), (0.0, 1, 100.0)], machine, rigid("none"), share=0.2)
    lasted = records.end_time - records.start_time
    np.testing.assert_allclose(lasted, [80 / 0.5 + 20 / 0.25, 80 / 0.5 + 20], rtol=1e-12)


def test_unknown_split_counts_as_computation():
    machine = Shared(4, cpu=ConstantLoad(0.5), network=ConstantLoad(0.01), streams=Streams(1))
    records = run_of([(0.0, 4, 100.0)], machine, rigid("none"), share=np.nan)
    assert records.end_time[0] == pytest.approx(200.0, rel=1e-12)


@pytest.mark.parametrize("backfill", BACKFILLS)
def test_without_load_it_is_the_dedicated_machine(backfill):
    jobs = rows(200)
    plain = run_of(jobs, Dedicated(8), rigid(backfill))
    idle = run_of(jobs, Shared(8, cpu=None, network=None), rigid(backfill), share=0.3)
    assert (plain.start_time == idle.start_time).all()
    assert (plain.end_time == idle.end_time).all()


def test_load_of_nothing_takes_no_time_through_the_integration_either():
    machine = Shared(8, cpu=RoundLoad(available=(1.0, 1.0)), network=None, streams=Streams(1))
    assert machine.completion(1e6, 54321.0, ((0, 3),), 0.3) == pytest.approx(1054321.0, rel=1e-12)


class Doubling:
    """Starts the only job on half the machine, doubles it later, and halves it again."""

    def begin(self, view):
        self.view = view
        return self

    def decide(self):
        if self.view.arrived:
            return [Start(0, 2), WakeAt(50.0), WakeAt(90.0)]
        if self.view.now not in (50.0, 90.0):
            return []
        return [Resize(0, 4 if self.view.now < 60 else 2, None, 5.0)]


@pytest.mark.parametrize("kind", KINDS)
def test_resized_runs_do_their_work_under_load(kind):
    trace = trace_of([(0.0, 2, 300.0)])
    truth = ToyTruth(lambda job, n: 600.0 / n, np.array([2]), np.array([8]), share=0.25)
    machine = shared(8, kind)
    engine = Engine(Setup(trace, truth, Doubling(), ToyEstimate(), machine))
    records = engine.run()
    pieces = records.allocations
    done, pauses = 0.0, (0.0, 5.0, 5.0)
    for at, pause in enumerate(pauses):
        start, end = pieces.start_time[at] + pause, pieces.end_time[at]
        nodes = pieces.nodes[at]
        held = sum(high - low + 1 for low, high in nodes)
        done += machine.progress(start, end, nodes, 0.25) / (600.0 / held)
    assert done == pytest.approx(1.0, abs=1e-9)


class Listener(ToyEstimate):
    """Collects observations."""

    learns = True

    def __init__(self):
        self.seen = []

    def observe(self, observation):
        self.seen.append(observation)
        return False

    def explain(self, job, nprocs):
        return Explanation("listener", 0, "")


def test_predictors_are_told_the_load_that_the_monitor_measured():
    machine, listener = shared(8, "rounds"), Listener()
    records = run_of(rows(10), machine, rigid("none"), listener, share=0.3)
    assert len(listener.seen) == 10
    for seen in listener.seen:
        start, end = records.start_time[seen.job], records.end_time[seen.job]
        place = records.allocations.job.tolist().index(seen.job)
        nodes = records.allocations.nodes[place]
        own = np.concatenate([np.arange(low, high + 1) for low, high in nodes])
        sampled = machine.load.cpu_at(np.arange(start, end, 120.0), own)
        assert seen.more["available_cpu"] == pytest.approx(sampled.mean(axis=0).min())
        assert seen.more["available_cpu_at_start"] == pytest.approx(sampled[0].min())
        assert seen.more["effective_cpu"] == pytest.approx(sampled.min(axis=1).mean())
        assert 0 < seen.more["effective_bandwidth"] <= seen.more["available_bandwidth"]
        assert seen.more["load_samples"] == len(sampled)
        assert 0 < seen.more["available_bandwidth"] <= 1


def test_an_oracle_of_load_is_told_the_load_itself():
    machine, listener = shared(8, "rounds", belief="oracle"), Listener()
    records = run_of(rows(10), machine, rigid("none"), listener, share=0.3)
    for seen in listener.seen:
        start, end = records.start_time[seen.job], records.end_time[seen.job]
        nodes = records.allocations.nodes[records.allocations.job.tolist().index(seen.job)]
        own = np.concatenate([np.arange(low, high + 1) for low, high in nodes])
        told = seen.more["effective_cpu"], seen.more["effective_bandwidth"]
        assert told == pytest.approx(machine.load.effective(own, start, end))


def test_a_dedicated_machine_measures_nothing():
    listener = Listener()
    run_of(rows(5), Dedicated(8), rigid("none"), listener)
    assert [dict(seen.more) for seen in listener.seen] == [{}] * 5


@pytest.mark.parametrize("belief", ["forecast", "last", "oracle", "mean"])
@pytest.mark.parametrize("backfill", ["easy", "conservative"])
def test_rational_predictions_pass_the_checker_under_every_belief(belief, backfill):
    policy = Policy(FirstComeFirstServed(), BACKFILLS[backfill], Request(), placement=Fastest())
    predictor = RationalPerApplication(1, 1, 1, min_counts=2, most_error=None)
    machine = shared(8, "rounds", belief=belief)
    records = run_of(rows(), machine, policy, predictor, 0.3, (Checker(),))
    assert (records.end_time > records.start_time).all()
    told = np.array(records.predictions.method)
    assert (told == "rational").mean() > 0.5


def test_runs_of_like_size_leave_no_constant_to_predict_a_short_job_by():
    """With constants left open these four runs give a job of 10 s some 2,000 s."""
    zero, size = np.zeros(1, int), np.array([10.0])
    predictor = RationalPerApplication()
    predictor.attach(VisibleJobs(zero, zero - 1, size, zero, zero + 4, np.array([60.0])))
    runs = [(1, 14653.3, 18610.5), (4, 15643.8, 6928.5), (8, 19131.0, 4638.8), (4, 15000.0, 6700.0)]
    for count, seen, seconds in runs:
        load = {"available_cpu": 0.85, "available_bandwidth": 1.0}
        predictor.observe(Observation(0, -1, seen, count, seconds, 0.0, 0, load))
    believed = predictor.curve(0, np.array([1, 4]))
    assert believed is not None
    assert believed == pytest.approx([11.0, 4.0], rel=0.4)


def test_the_same_machine_replays_the_same_load():
    machine, jobs = shared(8, "bursts"), rows()
    first = run_of(jobs, machine, rigid("easy"), share=0.3)
    run_of(jobs[:20], machine, rigid("none"), share=0.1)
    again = run_of(jobs, machine, rigid("easy"), share=0.3)
    fresh = run_of(jobs, shared(8, "bursts"), rigid("easy"), share=0.3)
    assert (first.end_time == again.end_time).all()
    assert (first.end_time == fresh.end_time).all()


def test_a_negative_history_is_refused():
    with pytest.raises(ConfigError, match=r"history.*-1"):
        Shared(4, history=-1.0)
