"""A policy that notices slowed evolving jobs and keeps away from their nodes."""

import numpy as np
import pytest
from published_rules.careful import NodeHealthAware
from toys import ToyEstimate, rigid_truth, trace_of

from predictors.cycles.checkpointing import NoCheckpoints
from sim.engine.invariants import Checker
from sim.engine.setup import Setup
from sim.evolving.recovery import simulate_recovering
from sim.evolving.settings import Evolving
from sim.machine.failing import FailingMachine
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.easy import Easy
from sim.policies.order import FirstComeFirstServed
from workloads.streams import Streams

PARTS = (FirstComeFirstServed(), Easy(), Request())


class IllNode(FailingMachine):
    """Node 0 is half as fast from a time on."""

    def completion(self, start, runtime, nodes):
        if nodes[0][0] >= 4:
            return start + runtime
        healthy = max(min(runtime, 4000.0 - start), 0.0)
        return start + healthy + 2.0 * (runtime - healthy)

    def progress(self, start, end, nodes):
        if nodes[0][0] >= 4:
            return end - start
        healthy = max(min(end, 4000.0) - start, 0.0)
        return healthy + (end - start - healthy) / 2.0


def play(care, rows, seed=1, **saving):
    trace = trace_of(rows)
    machine = IllNode(12, 4, mtbf=None)
    saving = Evolving(**{"node_mtbf": 1e5, "cycles": 400, **saving})
    scene = saving.scene(trace.jobs["requested_processors"].to_numpy(), Streams(seed), machine)
    return simulate_recovering(
        Setup(trace, rigid_truth(trace), care, ToyEstimate(), machine, watchers=(Checker(),)), scene
    )


class Told(NodeHealthAware):
    """Knows from 5,000 s on that the cycles on node 0 take twice as long."""

    def begin(self, view):
        return ToldScheduler(super().begin(view), view)


class ToldScheduler:
    def __init__(self, inner, view):
        self.inner, self.view = inner, view

    def cycle_time_ratios(self, job, after):
        ill = self.view.running[job].nodes[0][0] < 4 and self.view.now > 5000.0
        return np.full(40, 2.0 if ill else 1.0)

    def decide(self):
        vars(self.view.machine)["cycle_time_ratios"] = self.cycle_time_ratios
        return self.inner.decide()


ROWS = [(0.0, 4, 30_000.0), (40_000.0, 4, 100.0)]


def test_a_slowed_job_goes_on_elsewhere():
    records = play(Told(*PARTS), ROWS)
    held = records.allocations
    assert records.restarts.tolist() == [1, 0]
    assert held.nodes[0] == ((0, 3),)
    assert held.nodes[1] == ((4, 7),)
    assert 5000.0 < held.end_time[0] < 6000.0
    assert records.end_time[0] < 40_000.0
    assert play(Told(*PARTS, react="avoid"), ROWS).end_time[0] > 50_000.0


def test_a_job_that_moves_saves_its_work_first():
    """Nobody expects failures here, so there is no other checkpoint to go on from."""
    records = play(Told(*PARTS), ROWS, interval=NoCheckpoints(), cost=30.0)
    paid, held = records.failure_costs, records.allocations
    assert records.restarts[0] == 1
    assert paid.lost_work[0] == 0.0
    ended = held.end_time[0]
    assert ended < 5000.0 + 2 * (2 * 30_000.0 / 400 + 30.0)
    full_speed = 4000.0 + (ended - 4000.0) / 2.0
    assert paid.checkpoint_overhead[0] == pytest.approx(30.0 / full_speed * 4 * ended)
    again = held.end_time[1] - held.start_time[1]
    assert full_speed - 30.0 + again - 10.0 == pytest.approx(30_000.0)


def test_others_start_away_from_suspected_nodes():
    rows = [(0.0, 4, 5500.0), (13_000.0, 4, 100.0)]
    records = play(Told(*PARTS, react="avoid", distrust=20_000.0), rows)
    assert list(records.allocations.nodes) == [((0, 3),), ((4, 7),)]
    later = play(Told(*PARTS, react="avoid", distrust=400.0), rows)
    assert list(later.allocations.nodes) == [((0, 3),), ((0, 3),)]


def test_suspected_nodes_are_used_where_nothing_else_is_free():
    rows = [(0.0, 4, 5500.0), (7100.0, 12, 100.0)]
    records = play(Told(*PARTS, react="avoid", distrust=20_000.0), rows)
    assert records.allocations.nodes[1] == ((0, 11),)
    assert records.start_time[1] == max(7100.0, records.end_time[0])


def test_healthy_jobs_are_left_alone():
    records = play(NodeHealthAware(*PARTS), [(0.0, 4, 3000.0), (0.0, 4, 3900.0)])
    assert records.restarts.sum() == 0


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"react": "wait"}, "react must be one of restart, avoid"),
        ({"distrust": 0.0}, "distrust must be at least 1 s"),
        ({"worth": -1.0}, "worth must be at least 0"),
        ({"slowdown": 1.0}, "slowdown must be above 1"),
    ],
)
def test_bad_values_are_named(wrong, named):
    with pytest.raises(ValueError, match=named):
        NodeHealthAware(*PARTS, **wrong)
