"""A run, by the engine in Python or in compiled steps of which Python sees what it needs."""

import gc

from predictors.base import setting
from sim.engine.clock import gc_paused
from sim.engine.engine import Engine
from sim.engine.event_manager import CompiledRun
from sim.engine.protocols import is_exactly
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.state.records import Records

LARGE = 100_000
"""Jobs of a run from which on its engine is freed at once."""


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
    with gc_paused():
        engine = Engine(setup)
        engine.compiled = compiled_passes(engine)
        records = engine.run()
        del engine
    if len(setup.trace.jobs) >= LARGE:
        gc.collect()  # parts of an engine know each other, so they do not go by themselves
    return records


def compiled_passes(engine: Engine) -> CompiledRun | None:
    """Return the compiled passes of an engine that is about to begin.

    None if its scheduler's passes are not compiled, or something in the run needs Python.
    """
    needs_python = (
        not is_exactly(engine.machine, Dedicated)
        or engine.trace.feedback
        or engine.preferences.past_errors is not None
        or not setting(engine.predictor, "curve_is_belief", True)
    )
    begin = getattr(engine.scheduler, "compiled_rule", None)
    rule = None if needs_python or begin is None else begin(engine)
    return None if rule is None else CompiledRun(engine, rule)
