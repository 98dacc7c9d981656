"""Message costs: the paper's Table 2, target S2."""

from dataclasses import replace

import numpy as np
import pytest

from predictors.cycles.messages import ALPHASERVER, ITANIUM2, Exchange, MessageCosts
from predictors.errors import PredictorError
from sim.evolving.settings import exchange_of
from workloads.evolving.cycle_costs import CYCLE_MACHINES

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("costs", "size", "microseconds"),
    [
        (ALPHASERVER, 512, 10.66),
        (ALPHASERVER, 32, 5.60),
        (ALPHASERVER, 256, 10.69),
        (ITANIUM2, 1024, 15.71),
        (ITANIUM2, 33, 7.6 + 33 * 8.9e-3),
        (ITANIUM2, 511, 7.6 + 511 * 8.9e-3),
        (ITANIUM2, 0, 5.0),
    ],
)
def test_targets_s2(costs, size, microseconds):
    assert float(costs.seconds(size)) * 1e6 == pytest.approx(microseconds, abs=0.005)


def test_parts_of_a_byte_count_whole():
    assert ALPHASERVER.seconds([31.2, 32.0]).tolist() == [5.6e-6, 5.6e-6]
    assert float(ALPHASERVER.seconds(511.5)) == float(ALPHASERVER.seconds(512))


@pytest.mark.parametrize(("name", "costs"), [("alphaserver", ALPHASERVER), ("itanium2", ITANIUM2)])
def test_truth_and_predictor_hold_the_same_table(name, costs):
    sizes = np.arange(0, 2000)
    assert CYCLE_MACHINES[name].network.seconds(sizes).tolist() == costs.seconds(sizes).tolist()


@pytest.mark.parametrize(("name", "costs"), [("alphaserver", ALPHASERVER), ("itanium2", ITANIUM2)])
def test_truth_and_default_exchange_agree_on_a_quiet_network(name, costs):
    quiet = replace(
        CYCLE_MACHINES[name],
        messages=300.0,
        bidirectional=1.0,
        nic=0.0,
        distance=0.0,
        placement=0.0,
    )
    cells = np.geomspace(100, 1e5, 20)
    for nprocs in (1, 2, 5, 16):
        true = quiet.communication(cells, nprocs)
        assert Exchange(costs).seconds(nprocs, cells) == pytest.approx(true, rel=1e-12)


@pytest.mark.parametrize("name", ["alphaserver", "itanium2"])
def test_the_benchmarked_exchange_misses_what_more_nodes_cost(name):
    machine = CYCLE_MACHINES[name]
    model, cells = exchange_of(machine), np.geomspace(100, 1e5, 20)
    inside = machine.processors_per_node
    assert model.seconds(inside, cells) == pytest.approx(machine.communication(cells, inside))
    nodes = 16 / inside
    missed = machine.communication(cells, 16) / model.seconds(16, cells)
    assert missed == pytest.approx(1 + machine.distance * np.log2(nodes))
    assert (machine.communication(cells, 16, deviate=2.0) > machine.communication(cells, 16)).all()


def test_exchange_by_hand():
    exchange = Exchange(ITANIUM2, messages=2, bytes_per_face_cell=8, reductions=3)
    # face of 100 cells, 800 bytes; 5 processors: 3 levels
    boundary = 2 * (11.0 + 800 * 4.6e-3)
    assert float(exchange.seconds(5, 1000.0)) * 1e6 == pytest.approx(boundary + 3 * 3 * 5.0)


def test_both_directions_and_a_shared_interface_by_hand():
    exchange = Exchange(
        ITANIUM2, messages=2, reductions=0, bidirectional=1.6, nic=0.4, processors_per_node=4
    )
    for nprocs, sharing in ((2, 2), (3, 3), (16, 4)):
        slower = 1.6 * (1 + 0.4 * (sharing - 1))
        boundary = 2 * (11.0 + 800 * 4.6e-3 * slower)
        assert float(exchange.seconds(nprocs, 1000.0)) * 1e6 == pytest.approx(boundary)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: MessageCosts((0, 33), (1.0,), (1.0,)), "needs a first size"),
        (lambda: MessageCosts((1, 33), (1.0, 1.0), (1.0, 1.0)), "rise from 0"),
        (lambda: MessageCosts((0,), (-1.0,), (1.0,)), "at least 0"),
        (lambda: MessageCosts((0,), (1.0,), (np.nan,)), "per_byte must be at least 0 and finite"),
        (lambda: Exchange(ITANIUM2, messages=np.nan), "messages must be .* got nan"),
        (lambda: Exchange(ITANIUM2).seconds(4, -5.0), "cells must be at least 0, got -5"),
        (lambda: ITANIUM2.seconds(-1), "at least 0 bytes"),
        (lambda: Exchange(ITANIUM2, messages=-1), "at least 0"),
        (lambda: Exchange(ITANIUM2, nic=-1), "nic must be at least 0"),
        (lambda: Exchange(ITANIUM2, bidirectional=0.5), "bidirectional must be at least 1"),
    ],
)
def test_bad_values_are_named(call, named):
    with pytest.raises(PredictorError, match=named):
        call()
