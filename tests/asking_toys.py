"""Steady evolving jobs that ask, on a machine that does not fail; by hand all is exact."""

from dataclasses import replace

import numpy as np
from toys import BACKFILLS, ToyOracle, ToyTruth, trace_of

from predictors.cycles.checkpointing import NoCheckpoints
from sim.engine.invariants import Checker
from sim.engine.setup import Setup
from sim.evolving.recovery import simulate_recovering
from sim.evolving.settings import Asks, Evolving
from sim.machine.failing import Failing
from sim.policies.allocation.rigid import Request
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from workloads.evolving.cycle_costs import CYCLE_MACHINES
from workloads.evolving.phases import EvolvingApplication
from workloads.streams import Streams

CYCLES = 50
STEADY = EvolvingApplication("steady", cells=1000, growth=1.0, variation=0.0, adapt_every=1e6)
NOISELESS = replace(CYCLE_MACHINES["itanium2"], noise=1e-6, drift=0.0)


def linear(work):
    """Return the truth of jobs whose work is shared out evenly, on any count to 16."""
    counts = np.full(len(work), 2)
    return ToyTruth(lambda job, n: work[job] / n, counts, np.full(len(work), 16))


def play(rows, asks, grants=None, *, machine=4, truth=None, rule="easy", deck=STEADY, **more):
    """Replay (submit, processors, runtime, requested time) of steady jobs that ask.

    A job of 1,000 s has 50 cycles of 20 s on the processors it requests; its mesh
    has 1,000 cells for each of these.
    """
    trace = trace_of(rows)
    wanted = trace.jobs["requested_processors"].to_numpy()
    runtime = trace.jobs["reference_runtime"].to_numpy()
    if truth is None:
        truth = linear((wanted * runtime).tolist())
        truth.reference = wanted
    evolves = more.pop("evolves", np.ones(len(rows), bool))
    overrun, predictor = more.pop("overrun", "extend"), more.pop("predictor", None)
    streams = Streams(1)
    bound = machine
    if isinstance(machine, int):
        bound = Failing(machine, mtbf=None).bound(streams, 0.0)
    evolving = Evolving(
        cycles=CYCLES,
        interval=NoCheckpoints(),
        cost=10.0,
        restart=3.0,
        asks=Asks(**{"every": 100.0, **asks}),
        **more,
    )
    scene = evolving.scene(wanted, streams, bound)
    runs = replace(
        scene.runs, applications=(deck,) * 3, machine=NOISELESS, evolving=np.asarray(evolves)
    )
    policy = Policy(FirstComeFirstServed(), BACKFILLS[rule], Request(), grants=grants)
    return simulate_recovering(
        Setup(
            trace,
            truth,
            policy,
            ToyOracle(truth) if predictor is None else predictor,
            bound,
            overrun,
            watchers=(Checker(),),
        ),
        replace(scene, runs=runs),
    )
