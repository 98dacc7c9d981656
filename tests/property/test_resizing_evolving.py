"""Evolving jobs that are resized: their cycles are all done once, and held areas balance."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_resizing import Script, truth_of
from toys import ToyOracle, trace_of

from predictors.cycles.checkpointing import FixedRule, NoCheckpoints
from sim.engine.invariants import Checker
from sim.engine.setup import Setup
from sim.evolving.recovery import simulate_recovering
from sim.evolving.settings import Evolving
from sim.machine.failing import Failing
from workloads.evolving.cycle_costs import CYCLE_MACHINES
from workloads.evolving.phases import EvolvingApplication
from workloads.streams import Streams

P = 16
CYCLES = 50
STEADY = EvolvingApplication("steady", cells=1000, growth=1.0, variation=0.0, adapt_every=1e6)
NOISELESS = replace(CYCLE_MACHINES["itanium2"], noise=1e-6, drift=0.0)


def play(work, changes, mtbf, rule, cost):
    """Replay jobs of linear speedup and equal cycles, resized by a script."""
    truth, streams = truth_of(work, 1.0), Streams(1)
    trace = trace_of([(0.0, 2, truth.runtime(job, 2)) for job in range(len(work))])
    machine = Failing(P, mtbf=mtbf, repair=5.0).bound(streams, 0.0)
    evolving = Evolving(cycles=CYCLES, interval=rule, cost=cost, restart=3.0)
    scene = evolving.scene(np.full(len(work), 2), streams, machine)
    scene = replace(scene, runs=replace(scene.runs, applications=(STEADY,) * 3, machine=NOISELESS))
    script = Script(changes)
    records = simulate_recovering(
        Setup(trace, truth, script, ToyOracle(truth), machine, watchers=(Checker(),)), scene
    )
    return records, script


def areas(records):
    """Return what each job held, and what of it counts, processor-seconds."""
    held, paid = records.allocations, records.failure_costs
    area = (held.end_time - held.start_time) * held.processors
    whole = np.bincount(held.job, area, minlength=len(records.submit_time))
    return whole, whole - paid.lost_work - paid.checkpoint_overhead - paid.restart_overhead


CHANGES = st.lists(
    st.tuples(st.floats(1.0, 400.0), st.integers(0, 2), st.integers(1, 5), st.sampled_from([0.0])),
    max_size=6,
)


@settings(max_examples=40)
@given(
    st.lists(st.floats(200.0, 2000.0), min_size=1, max_size=3),
    CHANGES,
    st.sampled_from([None, 3000.0]),
    st.sampled_from([NoCheckpoints(), FixedRule(60.0)]),
)
def test_work_is_conserved_over_resizes_failures_and_checkpoints(work, changes, mtbf, rule):
    records, _ = play(work, changes, mtbf, rule, 2.0)
    assert records.status == ["completed"] * len(work)
    whole, useful = areas(records)
    paid = records.failure_costs
    assert useful == pytest.approx(work, rel=1e-4)
    for part in (paid.lost_work, paid.checkpoint_overhead, paid.restart_overhead):
        assert (part >= -1e-9).all()
        assert (part <= whole).all()


def test_a_resize_costs_the_part_of_a_cycle_that_is_done_again():
    records, script = play([1000.0], [(104.0, 0, 4, 0.0)], None, NoCheckpoints(), 2.0)
    assert len(script.done) == 1
    # A cycle takes 10 s on 2 processors: 4 s of the eleventh are lost.
    assert records.failure_costs.lost_work[0] == pytest.approx(2 * 4.0, rel=1e-3)
    assert records.end_time[0] == pytest.approx(104.0 + 40 * 5.0, rel=1e-4)
