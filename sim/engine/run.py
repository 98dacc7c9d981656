"""A run, by the engine in Python or in compiled steps of which Python sees what it needs."""

import numpy as np

from predictors.in_loop.oracle import foresees
from predictors.in_loop.wrapper import has_curves, setting
from sim.engine.clock import collect_after, collection_deferred
from sim.engine.compiled_passes import CompiledPasses
from sim.engine.engine import Engine
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.rigid import Request
from sim.policies.base import OPEN, SHARING, QueueKeeper
from sim.policies.passes.sharing import BLOCK, MOST_PAGES
from sim.policies.reallocation.rule import ReallocatingScheduler
from sim.state.records import Records


def simulate(setup: Setup) -> Records:
    """Replay a trace and return what happened.

    Raises
    ------
    SimError
        If a job can never run on the machine.
    PolicyError
        If the policy decides what cannot be done, or leaves jobs waiting for ever.

    Examples
    --------
    >>> import sim, workloads
    >>> from predictors.in_loop.user_estimate import UserEstimate
    >>> from workloads.shapes.family import NoMoldability
    >>> streams = workloads.Streams(seed=1, replication=0)
    >>> trace = workloads.Lublin(jobs=20).trace(streams, 64)
    >>> truth = workloads.build_truth(trace, NoMoldability(), streams, 64)
    >>> policy = sim.Policy(sim.FirstComeFirstServed(), sim.Easy(), sim.Request())
    >>> setup = sim.Setup(trace, truth, policy, UserEstimate(), sim.Dedicated(64))
    >>> records = sim.simulate(setup)
    >>> bool((records.start_time >= trace.jobs["submit_time"]).all())
    True
    """
    with collection_deferred():
        engine = Engine(setup)
        engine.compiled = compiled_passes(engine)
        records = engine.run()
        del engine
    collect_after(len(setup.trace.jobs))
    return records


def compiled_passes(engine: Engine) -> CompiledPasses | None:
    """Return the compiled passes of an engine that is about to begin.

    None if its scheduler's passes are not compiled, or something in the run needs Python.
    """
    scheduler = engine.scheduler
    if not isinstance(scheduler, QueueKeeper | ReallocatingScheduler) or scheduler.compiled is None:
        return None
    rule = scheduler.compiled
    needs_python = (
        type(engine.machine) is not Dedicated
        or engine.trace.feedback
        or engine.preferences.past_errors is not None
        or not setting(engine.predictor, "curve_is_belief", True)
        or (rule in (OPEN, SHARING) and not foresees(engine.predictor))
        or (rule == SHARING and not _shares_all_counts(engine))
        or any(watcher.checks for watcher in engine.watchers)
    )
    may_kill = type(scheduler.allocation) is Request and rule != SHARING
    if needs_python or (engine.kills and not may_kill):
        return None
    return CompiledPasses(engine, scheduler)


def _shares_all_counts(engine: Engine) -> bool:
    """Say whether malleable jobs may have every count up to their largest, and tables room.

    Without curves some are kept to their request while others wait, unless nobody waits
    while a processor is free.
    """
    malleable, counts = np.flatnonzero(engine.malleable).tolist(), engine.counts
    pages = len(engine.submit) * (engine.view.processors // BLOCK + 1)
    everybody = len(malleable) == len(engine.submit)
    fills = everybody and all(counts.extremes(job)[0] == 1 for job in malleable)
    has_room = pages <= MOST_PAGES and all(counts.special(job) is None for job in malleable)
    return has_room and (has_curves(engine.predictor) or fills)
