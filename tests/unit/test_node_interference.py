"""Phases of interference on nodes, and what they do to a job's time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.machine.failing import FailingMachine

pytestmark = pytest.mark.fast


def disturbed(nodes=10, key=0, **more):
    return FailingMachine(nodes, **{"interference": 1.0, **more}, keys=(0, key))


def on(*nodes):
    return tuple((node, node) for node in nodes)


def test_work_and_wall_by_hand(monkeypatch):
    changes = np.array([20.0, 40.0, 1e9])
    monkeypatch.setattr(FailingMachine, "changes", lambda machine, node, until: changes)
    machine = disturbed()
    assert [machine.progress(10.0, end, on(0)) for end in (10.0, 30.0, 50.0)] == [0.0, 15.0, 30.0]
    assert machine.walls(10.0, [0.0, 10.0, 15.0, 20.0, 30.0], on(0)).tolist() == [
        10,
        20,
        30,
        40,
        50,
    ]


@settings(max_examples=60)
@given(st.integers(0, 50), st.floats(0.0, 5000.0), st.lists(st.integers(0, 9), min_size=1))
def test_wall_undoes_work(key, start, nodes):
    machine, held = disturbed(quiet=500.0, disturbed=200.0, key=key), on(*nodes)
    done = np.linspace(0.0, 3000.0, 13)
    wall = machine.walls(start, done, held)
    worked = [machine.progress(start, time, held) for time in wall]
    assert worked == pytest.approx(done.tolist(), abs=1e-6)
    assert (np.diff(wall) >= np.diff(done) - 1e-9).all()
    _, factors = machine.slowdown(held, start, start + 4000)
    assert set(factors) <= {1.0, 2.0}
    assert (np.diff(factors) != 0).all()


def test_a_job_waits_for_its_slowest_node():
    phases = disturbed(quiet=500.0, disturbed=200.0, key=2)
    single = [phases.slowdown(on(node), 0.0, 1e4) for node in range(3)]
    together = phases.slowdown(on(0, 1, 2), 0.0, 1e4)
    at = np.linspace(0.0, 1e4, 997)

    def factor(slowdown):
        times, factors = slowdown
        return factors[np.searchsorted(times, at, side="right") - 1]

    assert factor(together).tolist() == np.max([factor(s) for s in single], axis=0).tolist()


def test_same_phases_whatever_is_asked_first():
    early, late = disturbed(key=5), disturbed(key=5)
    late.changes(3, 1e7)
    first = early.changes(3, 1e5)
    assert late.changes(3, 1e5)[: first.size].tolist() == first.tolist()


def test_share_of_time_and_of_nodes():
    phases = disturbed(400, quiet=300.0, disturbed=100.0, interference=0.5, key=1)
    ever = [phases.changes(node, 1.0).size > 0 for node in range(400)]
    assert np.mean(ever) == pytest.approx(0.5, abs=0.1)
    work = [phases.progress(0.0, 2e5, on(n)) / 2e5 for n in range(400) if ever[n]]
    assert np.mean(work) == pytest.approx(0.75 + 0.25 / 2, abs=0.01)
