"""EASY on long queues, where blocks of it are passed over, equals EASY on a profile."""

import numpy as np
import pytest
from toys import ToyEstimate, rigid_truth, trace_of

from predictors.compiling import compiled
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.easy import Easy, EasyScheduler
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed, Order, ShortestFirst
from sim.policies.passes.memory import lay_running
from sim.state.availability import earliest, occupy


@compiled
def decide(state, memory):
    """Let each job start that can; the first that cannot reserve, and nobody moves that."""
    lay_running(state, memory)
    queue, profile, now = memory.queue, memory.profile, state.scalars[0].now
    number, left = 0, memory.backfilling[0].reservations
    for k in range(queue.at[0].first, queue.at[0].last):
        count, seconds = queue.processors[k], queue.runtime[k]
        if count == 0:
            continue
        start = earliest(profile, count, seconds, now, np.inf, np.inf)
        if start == now:
            queue.found[number] = k
            number += 1
        elif left == 0:
            continue
        left -= start > now
        occupy(profile, start, start + seconds, count)
    return number


class OnProfile:
    def __init__(self, reservations):
        self.reservations = reservations

    def begin(self, view, order, allocation) -> EasyScheduler:
        return EasyScheduler(view, order, allocation, self.reservations, decides=decide)


@pytest.mark.parametrize("reservations", [1, 2, 7])
@pytest.mark.parametrize("order", [FirstComeFirstServed(), ShortestFirst()])
@pytest.mark.parametrize("seed", range(6))
def test_both_ways_agree_on_a_backlog(seed: int, order: Order, reservations: int) -> None:
    rng = np.random.default_rng(seed)
    number = 900
    submit = np.sort(rng.integers(0, rng.choice([1, 300, 3000]), number))
    processors = np.minimum(2 ** rng.integers(0, 6, number), 32)
    runtime = np.ceil(rng.lognormal(3, 1.5, number))
    estimate = np.ceil(runtime * rng.choice([0.7, 1.0, 1.0, 3.0], number))
    trace = trace_of(list(zip(submit, processors, runtime, estimate, strict=True)))
    truth = rigid_truth(trace)
    starts = [
        simulate(
            Setup(trace, truth, Policy(order, backfill, Request()), ToyEstimate(), Dedicated(40))
        ).start_time.tolist()
        for backfill in (Easy(reservations), OnProfile(reservations))
    ]
    assert starts[0] == starts[1]
