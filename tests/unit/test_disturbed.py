"""The machine with interference, alone and under the engine."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import ToyEstimate, rigid, rigid_truth, trace_of

from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.machine.failing import FailingMachine
from sim.state.processors import nodes_of


def machine(processors=8, width=2, key=0, interference=1.0):
    phases = {"interference": interference, "quiet": 100.0, "disturbed": 50.0}
    return FailingMachine(processors, width, **phases, keys=(0, key))


def test_nodes_of_processors():
    assert nodes_of(((0, 0), (3, 4), (7, 7)), 2) == {0, 1, 2, 3}
    assert nodes_of(((2, 3),), 2) == {1}


@settings(max_examples=60)
@given(st.integers(0, 30), st.floats(0.0, 2000.0), st.floats(0.1, 3000.0))
def test_progress_undoes_completion(key, start, runtime):
    disturbed = machine(key=key)
    end = disturbed.completion(start, runtime, ((0, 7),))
    assert start + runtime - 1e-6 <= end <= start + 2 * runtime + 1e-6
    assert disturbed.progress(start, end, ((0, 7),)) == pytest.approx(runtime)


def test_walls_of_cycles_end_with_the_completion():
    disturbed = machine(key=3)
    walls = disturbed.walls(10.0, np.arange(1.0, 501.0), ((0, 7),))
    assert walls[-1] == disturbed.completion(10.0, 500.0, ((0, 7),))
    assert set(np.round(np.diff(walls), 6)) >= {1.0, 2.0}


def test_without_interference_it_is_the_dedicated_machine_to_the_bit():
    quiet = machine(interference=0.0)
    for start, runtime in ((0.1, 0.2), (1e9, 1 / 3)):
        plain = Dedicated(8).completion(start, runtime, ((0, 1),))
        assert quiet.completion(start, runtime, ((0, 1),)) == plain
        assert quiet.progress(start, plain, ((0, 1),)) == plain - start


def test_under_the_engine_jobs_take_as_long_as_the_machine_says():
    trace = trace_of([(0.0, 4, 300.0), (10.0, 8, 200.0), (20.0, 2, 50.0)])
    disturbed = machine(key=6)
    records = simulate(Setup(trace, rigid_truth(trace), rigid("easy"), ToyEstimate(), disturbed))
    first = records.start_time[0]
    assert records.end_time[0] == disturbed.completion(first, 300.0, ((0, 3),))
    plain = simulate(
        Setup(trace, rigid_truth(trace), rigid("easy"), ToyEstimate(), Dedicated(8, 2))
    )
    assert records.end_time.max() > plain.end_time.max()
