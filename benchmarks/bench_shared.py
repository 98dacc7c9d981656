"""Simulation alone on a shared machine, against a dedicated one and bare SimPy.

python -m benchmarks.bench_shared

Load that was once drawn is kept between the rounds, so its drawing does not count.
"""

from collections.abc import Callable

from benchmarks.bench_engine import BACKFILLS
from benchmarks.floor import best_of, replay_bare, show
from predictors.in_loop.oracle import Oracle
from predictors.in_loop.user_estimate import UserEstimate
from scripts.composing import composed
from sim.background.models import RoundLoad
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated, Machine
from sim.machine.shared import Shared
from sim.policies.allocation.rigid import Request
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.backfill.conservative import Conservative
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from sim.simulation.scene import play, set_scene
from workloads.models.lublin import Lublin
from workloads.shapes.analytic import Downey
from workloads.streams import Streams
from workloads.truth.build import build_truth

PROCESSORS = 256
STREAMS = Streams(1)
TRACE = Lublin(types="all", jobs=5000, load=0.3).trace(STREAMS, PROCESSORS)
TRUTH = build_truth(TRACE, Downey(), STREAMS, PROCESSORS)


LEARNING = 278.0
"""Floors: 500 µs where one takes 1.8."""


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


def measure(rule: str, limits: dict[str, float]) -> list[dict]:
    """Return a row a machine: microseconds a job and how many floors these are."""
    submit = TRACE.jobs["submit_time"].tolist()
    runtime = TRACE.jobs["reference_runtime"].tolist()
    actions = [action(rule, machine) for machine in machines().values()]
    for each in actions:
        each()
        each()  # keeps all of the load
    floor, *seconds = best_of(5, lambda: replay_bare(submit, runtime), *actions)
    return [
        {
            "trace": name,
            "rule": rule,
            "floor_us_per_job": round(1e6 * floor / len(submit), 2),
            "us_per_job": round(1e6 * value / len(submit), 1),
            "times_dedicated": round(value / seconds[0], 2),
            "ratio": round(value / floor, 1),
            "limit": limits.get(name, ""),
        }
        for name, value in zip(machines(), seconds, strict=True)
    ]


def measure_learning(jobs: int, limit: float) -> dict:
    """Return a row: rational polynomials under forecasts, on 64 processors at load 0.7."""
    asked = ("policy=load_aware", "predictor=rational", "cluster=shared", "cluster.processors=64")
    config = composed(*asked, "workload.load=0.7", f"workload.jobs={jobs}")
    scene = set_scene(config, 0)
    table = play(config, config, scene).outcome.tables.jobs
    submit, runtime = sorted(table["submit_time"]), table["reference_runtime"].tolist()
    floor, seconds = best_of(
        5, lambda: replay_bare(submit, runtime), lambda: play(config, config, scene)
    )
    return {
        "trace": "64 processors, load 0.7",
        "rule": "load_aware, rational",
        "floor_us_per_job": round(1e6 * floor / len(table), 2),
        "us_per_job": round(1e6 * seconds / len(table), 1),
        "ratio": round(seconds / floor, 1),
        "limit": limit,
    }


def main() -> None:
    rows = []
    for rule in ("sa", "conservative", "easy", "fcfs"):
        rows += measure(rule, {"shared, light": 20.0} if rule == "easy" else {})
    show("On a shared machine, against bare SimPy", rows)
    show("Under forecasts, against bare SimPy", [measure_learning(1000, LEARNING)])


if __name__ == "__main__":
    main()
