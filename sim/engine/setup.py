"""What one simulation is made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from predictors.base import FloatArray, Observation, RuntimePredictor
from sim.engine.protocols import SchedulingPolicy
from sim.engine.watcher import Watcher
from sim.engine.work import USUAL_NOISE, SensorNoise
from sim.machine.base import Machine
from workloads.base import GroundTruth, Trace

Overrun = Literal["extend", "kill"]


@dataclass(frozen=True)
class Setup:
    """All that one simulation is made of.

    Attributes
    ----------
    trace : Trace
        Jobs that fit the machine, in submit order.
    truth : GroundTruth
        How long they really run; seen by the engine alone.
    policy : SchedulingPolicy
        Such as `sim.Policy`.
    predictor : RuntimePredictor
    machine : Machine
    overrun : {"extend", "kill"}
        What happens to a job that runs past its requested time.
    adopter_draws : numpy.ndarray of float, shape (n,), or None
        One uniform draw a job, for shares such as that of adopters; None: all 0.
    known : sequence of Observation
        Runs that the predictor learns from before the start.
    watchers : sequence of Watcher
    sensor_noise : SensorNoise
        Errors of what is measured of running jobs.

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
    >>> len(setup.trace.jobs), setup.machine.processors
    (20, 64)
    """

    trace: Trace
    truth: GroundTruth
    policy: SchedulingPolicy
    predictor: RuntimePredictor
    machine: Machine
    overrun: Overrun = "extend"
    adopter_draws: FloatArray | None = None
    known: Sequence[Observation] = ()
    watchers: Sequence[Watcher] = ()
    sensor_noise: SensorNoise = USUAL_NOISE
