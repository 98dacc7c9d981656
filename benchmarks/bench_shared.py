"""Simulation alone on a shared machine against a dedicated one, the same trace on both.

python -m benchmarks.bench_shared
"""

from collections.abc import Callable

from benchmarks.bench_engine import BACKFILLS
from benchmarks.floor import best_of
from predictors.in_loop.oracle import Oracle
from predictors.in_loop.user_estimate import UserEstimate
from sim.background.models import RoundLoad
from sim.engine.engine import Setup, simulate
from sim.machine.base import Dedicated, Machine
from sim.machine.shared import Shared
from sim.policies.allocation.rigid import Request
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.backfill.conservative import Conservative
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from workloads.models.lublin import Lublin
from workloads.shapes.analytic import Downey
from workloads.streams import Streams
from workloads.truth.build import build_truth

PROCESSORS = 256
STREAMS = Streams(1)
TRACE = Lublin(types="all", jobs=5000, load=0.3).trace(STREAMS, PROCESSORS)
TRUTH = build_truth(TRACE, Downey(), STREAMS, PROCESSORS)


def machines() -> dict[str, Machine]:
    """Return the machines: light load keeps queues alike, the paper's does not."""
    origin = float(TRACE.jobs["submit_time"].iloc[0])
    light = RoundLoad((0.8, 1.0), (180.0, 480.0), (1, None))
    links = RoundLoad((0.8, 1.0), (180.0, 480.0), (1, 8))
    return {
        "dedicated": Dedicated(PROCESSORS),
        "shared, light": Shared(
            PROCESSORS, cpu=light, network=links, streams=STREAMS, origin=origin
        ),
        "shared, paper's": Shared(PROCESSORS, streams=STREAMS, origin=origin),
    }


def action(rule: str, machine: Machine) -> Callable[[], object]:
    """Return an action that simulates the trace; load once drawn is kept."""

    def run() -> object:
        if rule == "sa":
            oracle = Oracle()
            oracle.bind_truth(TRUTH.runtimes, 0)
            policy = Policy(FirstComeFirstServed(), Conservative(), SmallestTurnaround())
            return simulate(Setup(TRACE, TRUTH, policy, oracle, machine))
        policy = Policy(FirstComeFirstServed(), BACKFILLS[rule], Request())
        return simulate(Setup(TRACE, TRUTH, policy, UserEstimate(), machine))

    return run


def main() -> None:
    for rule in ("sa", "conservative", "easy", "fcfs"):
        actions = [action(rule, machine) for machine in machines().values()]
        for each in actions:
            each()
        seconds = best_of(3, *actions)
        costs = [1e6 * value / len(TRACE.jobs) for value in seconds]
        for name, cost in zip(machines(), costs, strict=True):
            print(f"{rule}, {name}: {cost:.1f} us a job, {cost / costs[0]:.2f} x dedicated")


if __name__ == "__main__":
    main()
