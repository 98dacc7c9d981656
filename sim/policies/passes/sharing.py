"""What rules that share out processors keep of a run, and answers to what their passes ask."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, record
from predictors.in_loop.oracle import Oracle
from predictors.in_loop.wrapper import has_curves
from sim.engine.engine import Engine
from sim.engine.protocols import acts_as
from sim.policies.passes import by_job
from sim.policies.reallocation.beliefs import Beliefs
from sim.state.calendar import Calendar
from sim.state.columns import Explanations
from sim.state.processors import held_ranges
from sim.state.records import Stretches
from sim.state.run_state import State, longer, struct_type, structure
from sim.state.waiting_queue import summaries_of
from workloads.base import BoolArray

JOB = record(
    [
        ("least", "i8"),
        ("most", "i8"),
        ("stretch", "i8"),
        ("curved", "i8"),
        ("read", "i8"),
        ("request", "i8"),
        ("requested_time", "f8"),
        ("done", "f8"),
        ("since", "f8"),
        ("row", "i8"),
        ("reference_runtime", "f8"),
        ("reference_g", "f8"),
    ]
)
"""Of a job: the counts between which it may be if it is malleable, else 0; its present stretch;
whether it is believed to have a curve, and that was read; its request; the share that was `done`
until an instant, `since`; its row in `Sharing.g`, and runtime and g at its reference count."""
STRETCH = record(
    [("job", "i8"), ("processors", "i8"), ("first_range", "i8"), ("begun", "f8"), ("over", "f8")]
)
"""Whose, on how many processors, where they begin in `State.ranges`, and from when until when; the
last of a job ends with it."""
ASKED = record([("job", "i8"), ("page", "i8")])
"""Runtimes that a pass waits for."""
TALLY = record(
    [
        ("members", "i8"),
        ("stretches", "i8"),
        ("asked", "i8"),
        ("unused", "i8"),
        ("queries", "i8"),
        ("pending", "i8"),
        ("begun", "i8"),
    ]
)
"""How much of the tables of their names is in use; `pending` are queries of a pass that is not yet
made, in which so many have `begun`."""
BLOCK = 256
"""Counts whose runtimes are asked for at once."""
MOST_PAGES = 1 << 25
"""So many times `BLOCK` counts of all jobs are kept in tables, and no more."""
JOBS_AHEAD = 64
"""Jobs behind one that is asked for whose runtimes are asked for with it."""


class Claims(NamedTuple):
    """Among whom a rule shares out how many processors.

    Attributes
    ----------
    readings : numpy.ndarray of float, shape (n, r)
        What it reads off each job's believed curve.
    held, least, largest : numpy.ndarray of int, shape (n,)
        What each holds, 0 if it starts now, and between which counts it may be; those that run
        come first, oldest first.
    total : int
        What they may hold together; at least the sum of `least`.
    variant : int
        Of the rule.
    """

    readings: FloatArray
    held: IntArray
    least: IntArray
    largest: IntArray
    total: int
    variant: int


class Sharing(structref.StructRefProxy):
    """What a rule that shares out processors keeps of a run.

    Attributes
    ----------
    jobs : numpy.ndarray of JOB, shape (n,)
    members : numpy.ndarray of int, shape (r,)
        Malleable jobs that run, in the order of their starts.
    stretches : numpy.ndarray of STRETCH, shape (s,)
    pages : numpy.ndarray of int, shape (p, n)
        For each `BLOCK` counts of a job the block that holds its runtimes; -1 if none does.
    believed, true : numpy.ndarray of float, shape (b, BLOCK), seconds
    unused : numpy.ndarray of int, shape (b,)
        Blocks that hold nothing.
    asked : numpy.ndarray of ASKED, shape (a,)
    tally : numpy.ndarray of TALLY, shape (1,)
    shortest, summarised : numpy.ndarray
        Of `sim.state.waiting_queue.Summaries`, a place being a job.
    calendar : Calendar
        When runs really end.
    g : numpy.ndarray of float, shape (applications, counts)
        All runtimes, as in `workloads.base.Tabled`, where what is believed is what is true or
        without a curve; nothing is asked for then. Else empty.
    readings : numpy.ndarray of float, shape (n, r)
        Of all jobs, for `Claims`.
    variant : int
        Likewise.
    """

    jobs: NDArray[Any]
    members: IntArray
    stretches: NDArray[Any]
    pages: IntArray
    believed: FloatArray
    true: FloatArray
    unused: IntArray
    asked: NDArray[Any]
    tally: NDArray[Any]
    shortest: FloatArray
    summarised: BoolArray
    calendar: Calendar
    g: FloatArray
    readings: FloatArray
    variant: int


FIELDS = tuple(Sharing.__annotations__)
SharingType = struct_type(Sharing, FIELDS)


@compiled
def _made(fields: tuple[Any, ...]) -> Sharing:
    return Sharing(*fields)  # type: ignore[no-untyped-call]


@compiled
def make_room_for_stretches(sharing: Sharing) -> None:
    """Let the tables of stretches grow, if those of a pass might not find room."""
    size = sharing.stretches.size
    if size - sharing.tally[0].stretches < sharing.members.size:
        sharing.stretches = longer(sharing.stretches, 2 * size)


@compiled
def _stretches_of(sharing: Sharing) -> NDArray[Any]:
    return sharing.stretches


@compiled
def _let_know(sharing: Sharing, believed: FloatArray, true: FloatArray, unused: IntArray) -> None:
    """Keep runtimes in these blocks from now on."""
    sharing.believed, sharing.true, sharing.unused = believed, true, unused


def padded(rows: list[FloatArray]) -> FloatArray:
    """Return rows of unlike length as one table, with -1 behind the end of each."""
    table = np.full((len(rows), max((row.size for row in rows), default=0)), -1.0)
    for row, own in zip(table, rows, strict=True):
        row[: own.size] = own
    return table


class SharingRule:
    """A compiled rule that shares out processors; it answers what its passes ask of jobs.

    Parameters
    ----------
    engine : Engine
    rule : Reallocation
        With a compiled pass.
    beliefs : Beliefs
    """

    functions: Mapping[str, Any]
    plan: Any

    def __init__(self, engine: Engine, rule: Any, beliefs: Beliefs) -> None:
        self._engine, self._view, self._predictor = engine, engine.view, engine.predictor
        self._rule, self._beliefs, self._truth = rule, beliefs, engine.work
        self._curved = has_curves(engine.predictor)
        known = acts_as(engine.predictor, Oracle) or not self._curved
        self._tabled = engine.work.tabled() if known else None
        self.functions = {**by_job.FUNCTIONS, "decide": rule.compiled_pass()}
        self.explanations = Explanations()

    @property
    def is_supported(self) -> bool:
        """Whether malleable jobs may have every count up to their largest, and tables room.

        Without curves some are kept to their request while others wait, unless nobody waits
        while a processor is free.
        """
        processors, counts = self._view.processors, self._engine.counts
        malleable = np.flatnonzero(self._engine.malleable).tolist()
        jobs, wide = len(self._engine.submit), processors if self._rule.reads_curves else 1
        room = jobs * max(processors // BLOCK + 1, wide) <= MOST_PAGES
        if not room or any(counts.special(job) is not None for job in malleable):
            return False
        fills = len(malleable) == jobs and all(counts.extremes(job)[0] == 1 for job in malleable)
        return self._curved or (fills and not self._rule.reads_beliefs)

    def begin(self, state: State, calendar: Calendar) -> None:
        """Begin a run whose jobs stand here, and wait for the least that they can use."""
        self._state, self._calendar = state, calendar
        view, wanted, jobs = self._view, state.processors, len(self._engine.submit)
        self._engine.shown.arrive(range(jobs))
        own, rows = np.zeros(jobs, JOB), [np.zeros(0)] * jobs
        for job in np.flatnonzero(self._engine.malleable).tolist():
            own["least"][job] = self._rule.queue_count(self._beliefs, job)
            own["most"][job] = view.extremes(job)[1]
            rows[job] = self._beliefs.read_off(job, self._rule.read_off)
            own["read"][job] = rows[job].size > 0
            self._beliefs.forget(job)
        own["request"] = view.jobs.requested_processors
        own["requested_time"] = view.jobs.requested_time
        np.copyto(wanted, own["least"], where=own["least"] > 0)
        pairs = zip(range(jobs), wanted.tolist(), strict=True)
        state.belief[:] = [view.belief(job, count) for job, count in pairs]
        calendar.runtime[:] = self._truth.runtimes_at(np.arange(jobs), wanted)
        pages = -(-int(own["most"].max(initial=1)) // BLOCK)
        if (tabled := self._tabled) is not None:
            own["row"], own["curved"], pages = tabled.row, self._curved, 0
            own["reference_runtime"], own["reference_g"] = tabled.runtimes, tabled.reference_g
        running = state.found.size
        fields = {
            "jobs": own,
            "members": np.zeros(running, np.int64),
            "stretches": np.zeros(jobs + 2 * running, STRETCH),
            "pages": np.full((pages, jobs), -1),
            "believed": np.zeros((0, BLOCK)),
            "true": np.zeros((0, BLOCK)),
            "unused": np.zeros(0, np.int64),
            "asked": np.zeros(3 * running, ASKED),
            "tally": np.zeros(1, TALLY),
            **summaries_of(jobs)._asdict(),
            "calendar": calendar,
            "g": np.zeros((0, 0)) if tabled is None else tabled.g,
            "readings": padded(rows),
            "variant": self._rule.variant,
        }
        self.plan = cast(Sharing, structure(_made, fields, grows=("stretches",)))

    def answer(self) -> None:
        """Write down the runtimes that a pass waits for.

        Those of some later jobs come along, which will soon be asked for.
        """
        sharing = self.plan
        tally, jobs = sharing.tally, sharing.jobs
        wanted = sharing.asked[: tally["asked"].item()].tolist()
        last = max(job for job, _ in wanted) + 1
        later = slice(last, last + JOBS_AHEAD)
        coming = (jobs["most"][later] > 0) & (sharing.pages[0, later] < 0)
        for job in (coming.nonzero()[0] + last).tolist():
            most = (jobs["most"].item(job) - 1) // BLOCK
            wanted += [(job, 0), (job, most)] if most > 0 else [(job, 0)]
        tally["asked"] = 0
        if tally["unused"] < len(wanted):
            _add_blocks(sharing, max(len(wanted), sharing.unused.size))
        for job, page in wanted:
            tally["unused"] -= 1
            block = sharing.pages[page, job] = sharing.unused[tally["unused"].item()]
            self._fill(sharing, job, page * BLOCK, block)

    def _fill(self, sharing: Sharing, job: int, low: int, block: int) -> None:
        """Ask for a job's runtimes on the counts above one, and put them into a block."""
        own = sharing.jobs[job]
        counts = np.arange(low + 1, min(low + BLOCK, own["most"]) + 1)
        believed = self._predictor.curve(job, counts)
        own["curved"] = believed is not None
        if believed is not None:
            sharing.believed[block, : counts.size] = believed
        skipped = max(own["least"] - 1 - low, 0)
        if skipped < counts.size:
            true = self._truth.runtimes(job, counts[skipped:])
            sharing.true[block, skipped : counts.size] = true

    def take_in_pass(self) -> None:
        """Take in nothing: the tables of the pass hold it."""

    def finish(self) -> None:
        """Take in nothing more."""

    def queued(self) -> IntArray:
        """Return nobody beside those whom the state has waiting."""
        return np.zeros(0, np.int64)

    def stretches(self) -> Stretches:
        """Return the stretches of all runs, in the order of their begins, when all have ended."""
        sharing, state, calendar = self.plan, self._state, self._calendar
        tally = sharing.tally[0]
        self._engine.beliefs.count(int(tally["queries"]))
        made = _stretches_of(sharing)[: tally["stretches"]]
        made["over"][sharing.jobs["stretch"]] = calendar.end_time
        nodes = held_ranges(state, made["first_range"])
        job, begun, over, processors = (
            made[name].copy() for name in ("job", "begun", "over", "processors")
        )
        return Stretches(job, np.zeros_like(job), begun, over, processors, nodes)


def _add_blocks(sharing: Sharing, more: int) -> None:
    """Make room for the runtimes of so many more blocks."""
    before, tally = sharing.unused.size, sharing.tally
    room = np.zeros((more, BLOCK))
    believed, true = (np.concatenate([old, room]) for old in (sharing.believed, sharing.true))
    unused = np.concatenate([sharing.unused, np.zeros(more, np.int64)])
    last = tally["unused"].item()
    unused[last : last + more] = np.arange(before, before + more)
    tally["unused"] += more
    _let_know(sharing, believed, true, unused)
    sharing.believed, sharing.true, sharing.unused = believed, true, unused
