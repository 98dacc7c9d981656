"""The model of rigid jobs by Lublin & Feitelson.

References
----------
Lublin & Feitelson, "The workload on parallel supercomputers: modeling the
characteristics of rigid jobs", JPDC 63(11), 2003, and the authors' program.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
import pandas as pd

from workloads.arrivals import arrivals_in_cycle
from workloads.base import FloatArray, IntArray
from workloads.errors import ABOVE_0, WorkloadError, check_choice, check_mapping, check_number
from workloads.models.model import ModelWorkload, job_table
from workloads.streams import Streams

_BUCKETS = 48
_BUCKET_SECONDS = 1800.0
_CYCLE_START = 11
"""First bucket of the fitted cycle; called an hour in the program, used as a bucket."""
_LONGEST_LOG_RUNTIME = 12.0
_LONGEST_LOG_GAP = 13.0


@dataclass(frozen=True)
class LublinParameters:
    """The model's parameters for one kind of jobs, on a machine of 128 processors.

    Attributes
    ----------
    serial, power_of_two : float
        Shares of jobs of one processor, and of those rounded to a power of two.
    u_low, u_medium, u_high, u_share : float
        Two-stage uniform law of log2 of a parallel job's size: between `u_low`
        and `u_medium` for `u_share` of the jobs, else up to `u_high`.
    a1, b1, a2, b2 : float
        Shapes and scales of the two gamma laws of log runtime.
    slope, intercept : float
        The first of them has probability slope x size + intercept.
    a_gap, b_gap : float
        Gamma law of the log of the interarrival time in rush hours.
    a_cycle, b_cycle : float
        Gamma law of the daily cycle, in half hours.
    rush_ratio : float
        By which `a_gap` is multiplied to stand for all hours.
    """

    serial: float
    power_of_two: float
    u_low: float
    u_medium: float
    u_high: float
    u_share: float
    a1: float
    b1: float
    a2: float
    b2: float
    slope: float
    intercept: float
    a_gap: float
    b_gap: float
    a_cycle: float
    b_cycle: float
    rush_ratio: float

    def scaled(self, processors: int) -> "LublinParameters":
        """Return the parameters for another machine: sizes move by its log2, up to its size."""
        shift = math.log2(processors) - 7.0
        high = max(self.u_high + shift, 0.0)
        low = min(self.u_low, high)
        medium = min(max(self.u_medium + shift, low), high)
        return replace(self, u_low=low, u_medium=medium, u_high=high)


# fmt: off
BATCH = LublinParameters(
    0.2927, 0.6686, 1.2, 5.0, 7.0, 0.875, 6.57, 0.823, 639.1, 0.0156, -0.003, 0.6986,
    6.0415, 0.8531, 6.1271, 5.2740, 1.0519,
)
INTERACTIVE = LublinParameters(
    0.1541, 0.625, 1.0, 3.0, 5.5, 0.705, 3.8351, 0.6605, 7.073, 0.6856, -0.0118, 0.9156,
    6.5510, 0.6621, 8.9186, 3.6680, 0.9797,
)
ALL = LublinParameters(
    0.244, 0.576, 0.8, 4.5, 7.0, 0.86, 4.2, 0.94, 312.0, 0.03, -0.0054, 0.78,
    10.2303, 0.4871, 8.1737, 3.9631, 1.0225,
)
# fmt: on
STEADY = replace(ALL, a1=17.5, b1=0.4, a_gap=53.6, b_gap=0.12)
"""`ALL` at the same mean arrival rate without gaps above a day, which leave the machine empty,
and with shorter jobs of 18 minutes in the middle instead of one, of which the estimates are
a few times the runtime (as in the archive's logs), not twenty times."""

# fmt: off
_USUAL_WEIGHTS = (
    0.5078207247255931, 0.4561218769284873, 0.40851184836677884, 0.3648632283940927,
    0.3250145977063541, 0.2887792984583628, 0.25595309288773593, 0.22632074162929022,
    0.19966155782333772, 0.17575401034527055, 0.16491787324416007, 0.2388954018543229,
    0.3293018290154567, 0.43511123245615885, 0.5543043477825491, 0.6840301888002731,
    0.8208241814445998, 0.9608534105874805, 1.1001629052268203, 1.2349022689074978,
    1.3615181376252667, 1.4769039881821924, 1.5785041251709748, 1.6643729246083088,
    1.733193503530779, 1.7842619654496144, 1.8174443822054265, 1.8331139006296038,
    1.8320750068055822, 1.8154812301274692, 1.7847515878592783, 1.7414899917823925,
    1.6874107629164183, 1.6242723992615828, 1.5538208599076089, 1.4777428901905074,
    1.3976293239142579, 1.3149478551608267, 1.2310244612094288, 1.1470324622399837,
    1.0639881034418932, 0.9827515212931219, 0.9040319896420203, 0.8283964162369187,
    0.7562801622581277, 0.6879993744621571, 0.6237641424150738, 0.5636919148885673
)
# fmt: on
"""Of `ALL`, as `daily_weights` works them out: loading SciPy for them takes longer than a run."""
TYPES: Mapping[str, Mapping[int, LublinParameters]] = {
    "steady": {-1: STEADY},
    "all": {-1: ALL},
    "batch": {1: BATCH},
    "interactive": {0: INTERACTIVE},
    "both": {0: INTERACTIVE, 1: BATCH},
}
"""What ``workload.types`` may say, and the streams of jobs by their SWF queue number."""


@dataclass(kw_only=True)
class Lublin(ModelWorkload):
    """Jobs drawn from the Lublin-Feitelson model, scaled to an offered load.

    Parameters that are not named here are those of `ModelWorkload`.

    Parameters
    ----------
    types : str
        ``all`` for the published fit that makes no difference between types,
        ``steady`` for the same with steadier arrivals and longer short jobs,
        ``batch``, ``interactive``, or ``both`` of these as two independent streams.
    parameters : mapping of str to float, optional
        Model parameters to change, by the names of `LublinParameters`.

    Raises
    ------
    WorkloadError
        If a value is out of range.

    Examples
    --------
    >>> trace = Lublin(jobs=100, load=0.8).trace(Streams(seed=1), processors=None)
    >>> len(trace.jobs), trace.processors
    (100, 256)
    """

    types: str = "steady"
    parameters: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [field.name for field in fields(LublinParameters)]
        check_mapping("parameters", self.parameters, names, "parameter")
        check_choice("workload.types", self.types, *TYPES)
        changes = dict(self.parameters or {})
        self._tables = {
            queue: _changed(table, changes) for queue, table in TYPES[self.types].items()
        }

    def draw(self, streams: Streams, processors: int) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
        """Return the jobs, and their `queue`: 0 for interactive, 1 for batch, else -1."""
        kinds = {queue: table.scaled(processors) for queue, table in self._tables.items()}
        submit, queue = draw_submits(kinds, self.jobs, streams)
        sizes = np.empty(self.jobs, np.int64)
        runtimes = np.empty(self.jobs)
        for kind, table in kinds.items():
            mine = queue == kind if len(kinds) > 1 else slice(None)
            count = len(sizes[mine])
            rng = streams(f"lublin.sizes.{kind}")
            sizes[mine] = draw_sizes(table, count, processors, rng, self.widest_on(processors))
            runtimes[mine] = draw_runtimes(table, sizes[mine], streams(f"lublin.runtimes.{kind}"))
        return job_table(submit, sizes, runtimes), {"queue": queue}


def draw_sizes(
    table: LublinParameters,
    count: int,
    processors: int,
    rng: np.random.Generator,
    widest: int | None = None,
) -> IntArray:
    """Draw job sizes, shape (count,), again where above `widest`; `table` is for that machine."""
    most = processors if widest is None else widest
    rounded = 2 ** math.floor(table.u_low + 0.5) if table.power_of_two > 0 else math.inf
    other = math.floor(2**table.u_low + 0.5) if table.power_of_two < 1 else math.inf
    if table.serial == 0 and min(rounded, other) > most:
        raise WorkloadError(
            f"workload.widest allows {most} of {processors} processors, less than the narrowest "
            "job that workload.parameters allow"
        )
    return _redraw_above(
        most, count, lambda jobs: _law_of_sizes(table, len(jobs), processors, rng)
    ).astype(np.int64)


def _law_of_sizes(
    table: LublinParameters, count: int, processors: int, rng: np.random.Generator
) -> IntArray:
    """Draw from the law of sizes itself, which ends at the machine."""
    kind = rng.random(count)
    low_stage = rng.random(count) <= table.u_share
    low = np.where(low_stage, table.u_low, table.u_medium)
    high = np.where(low_stage, table.u_medium, table.u_high)
    logs = low + (high - low) * rng.random(count)
    rounded = np.minimum(np.floor(logs + 0.5), math.floor(math.log2(processors)))
    logs = np.where(kind <= table.serial + table.power_of_two, rounded, logs)
    sizes = np.floor(2.0**logs + 0.5).astype(np.int64)
    return np.where(kind <= table.serial, 1, np.clip(sizes, 1, processors))


def draw_runtimes(table: LublinParameters, sizes: IntArray, rng: np.random.Generator) -> FloatArray:
    """Draw runtimes in whole seconds, at least 1 as gamma laws are positive, one for each size."""
    first = np.clip(table.slope * sizes + table.intercept, 0.0, 1.0)

    def draw(jobs: IntArray) -> FloatArray:
        short = rng.random(len(jobs)) <= first[jobs]
        shape = np.where(short, table.a1, table.a2)
        return rng.gamma(shape, np.where(short, table.b1, table.b2))

    logs = _redraw_above(_LONGEST_LOG_RUNTIME, len(sizes), draw)
    return np.asarray(np.floor(np.exp(logs)), float)


def draw_submits(
    kinds: Mapping[int, LublinParameters], count: int, streams: Streams
) -> tuple[FloatArray, IntArray]:
    """Draw the first `count` arrivals of all kinds together, in whole seconds, and their kinds."""
    times = {}
    for kind, table in kinds.items():
        points = draw_gaps(table, count, streams(f"lublin.arrivals.{kind}"))
        points /= _BUCKET_SECONDS
        np.cumsum(points, out=points)
        points = arrivals_in_cycle(points, daily_weights(table))
        times[kind] = np.floor(points, out=points)
    if len(times) == 1:
        ((kind, submit),) = times.items()
        return submit, np.broadcast_to(np.int64(kind), count)
    submit = np.concatenate(list(times.values()))
    queue = np.repeat(np.array(list(times), np.int64), count)
    order = np.argsort(submit, kind="stable")[:count]
    return submit[order], queue[order]


def draw_gaps(table: LublinParameters, count: int, rng: np.random.Generator) -> FloatArray:
    """Draw interarrival times before the daily cycle stretches them, seconds."""
    shape = table.a_gap * table.rush_ratio
    logs = _redraw_above(
        _LONGEST_LOG_GAP, count, lambda jobs: rng.gamma(shape, table.b_gap, len(jobs))
    )
    return np.exp(logs, out=logs)


def daily_weights(table: LublinParameters) -> FloatArray:
    """Return the weight of each half hour of the day, shape (48,), mean 1."""
    if (table.a_cycle, table.b_cycle) == (ALL.a_cycle, ALL.b_cycle):
        return np.array(_USUAL_WEIGHTS)
    return worked_out_weights(table)


def worked_out_weights(table: LublinParameters) -> FloatArray:
    """Return the weights from the gamma law of the daily cycle."""
    from scipy.special import gammainc  # late: most runs have the usual cycle

    steps = np.arange(_CYCLE_START, _CYCLE_START + _BUCKETS)
    edges = np.arange(_CYCLE_START, _CYCLE_START + _BUCKETS + 1) - 0.5
    weights = np.empty(_BUCKETS)
    weights[(steps - 1) % _BUCKETS] = np.diff(gammainc(table.a_cycle, edges / table.b_cycle))
    return np.asarray(weights / weights.mean(), float)


def _redraw_above(
    bound: float, count: int, draw: Callable[[IntArray], FloatArray | IntArray]
) -> FloatArray:
    """Draw for the indices 0..count-1, again for those above the bound until none is."""
    values = np.asarray(draw(np.arange(count)), float)
    left = np.flatnonzero(values > bound)
    while len(left):
        values[left] = draw(left)
        left = left[values[left] > bound]
    return values


def _changed(table: LublinParameters, changes: Mapping[str, float]) -> LublinParameters:
    for name, value in changes.items():
        check_number(f"workload.parameters.{name}", value, "a finite number", -math.inf)
    changed = replace(table, **changes)
    for name in ("a1", "b1", "a2", "b2", "a_gap", "b_gap", "a_cycle", "b_cycle", "rush_ratio"):
        check_number(f"workload.parameters.{name}", getattr(changed, name), "positive", ABOVE_0)
    for name in ("serial", "power_of_two", "u_share"):
        key = f"workload.parameters.{name}"
        check_number(key, getattr(changed, name), "from 0 to 1", 0.0, 1.0)
    return changed
