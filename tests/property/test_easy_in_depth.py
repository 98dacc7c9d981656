"""EASY on long queues, where blocks of it are passed over, equals EASY(k=1) on the profile."""

import numpy as np
import pytest
from toys import ToyEstimate, rigid_truth, trace_of

from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.easy import Easy, EasyScheduler, decide_deep
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed, Order, ShortestFirst


class OnProfile:
    def begin(self, view, order, allocation) -> EasyScheduler:
        return EasyScheduler(view, order, allocation, decides=decide_deep)


@pytest.mark.parametrize("order", [FirstComeFirstServed(), ShortestFirst()])
@pytest.mark.parametrize("seed", range(6))
def test_both_ways_agree_on_a_backlog(seed: int, order: Order) -> None:
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
        for backfill in (Easy(), OnProfile())
    ]
    assert starts[0] == starts[1]
