"""What the pictures of evolving jobs show."""

import numpy as np
import pytest
from toys import ToyEstimate, rigid, rigid_truth

from sim.engine.setup import Setup
from sim.evolving.cycle_plots import chosen_jobs, cycle_series, evolving_figures
from sim.evolving.recovery import simulate_recovering
from sim.evolving.settings import Evolving
from sim.machine.failing import Failing
from workloads.models.decks import Decks
from workloads.streams import Streams

pytestmark = pytest.mark.fast


def drawn(counts, machine, evolving, decks=("timing_a", "timing_b", "timing_c")):
    streams = Streams(1)
    trace = Decks(decks=decks, counts=counts).trace(streams)
    truth, bound = rigid_truth(trace), machine.bound(streams, 0.0)
    scene = evolving.scene(trace.jobs["requested_processors"].to_numpy(), streams, bound)
    records = simulate_recovering(Setup(trace, truth, rigid("easy"), ToyEstimate(), bound), scene)
    jobs = chosen_jobs(records, scene)
    series = [cycle_series(job, records, truth, scene, bound) for job in jobs]
    return series, evolving_figures(records, truth, scene, bound)


def test_errors_are_of_the_size_of_the_papers():
    series, figures = drawn([1, 16], Failing(64, mtbf=None), Evolving(deal="in_turn", window=None))
    assert [one.name for one in series] == ["timing_a", "timing_b", "timing_c"] * 2
    assert [one.processors for one in series] == [1, 1, 1, 16, 16, 16]
    for one in series:
        assert 0.03 < one.online_error < 0.11
        assert 0.03 < one.offline_error < 0.11
        assert one.ends[-1] == pytest.approx(one.measured.sum())
    assert set(figures) == {"cycles"}


def test_checkpoints_come_closer_in_cycles_as_cycles_grow():
    saving = Evolving(deal="in_turn", decks=("timing_a",), node_mtbf=600.0, cost=10.0)
    (one,), figures = drawn([16], Failing(16, 16, mtbf=None), saving, ("timing_a",))
    gaps = np.diff(one.places, prepend=0)
    assert gaps[:3].mean() > 3 * gaps[-3:].mean()
    assert set(figures) == {"cycles", "checkpoints"}


def test_interference_raises_alarms_that_the_last_cycle_alone_hides():
    ill = Failing(16, 16, mtbf=None, interference=1.0, quiet=900.0, disturbed=600.0)
    found = {}
    for window in (None, 1):
        evolving = Evolving(deal="in_turn", decks=("timing_a",), window=window, node_mtbf=1e9)
        (found[window],), _ = drawn([16], ill, evolving, ("timing_a",))
    assert found[None].alarms.size > 20
    assert found[1].alarms.tolist() == found[None].alarms.tolist()
    assert found[1].online_error < found[None].online_error
    slowed = found[None].measured / found[None].offline > 1.5
    assert slowed.sum() > 20
