"""What equal shares keep of a run, and the answers to what their compiled passes ask."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
from numba.experimental import structref

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from predictors.in_loop.oracle import Oracle
from predictors.in_loop.wrapper import has_curves
from sim.engine.engine import Engine
from sim.engine.protocols import acts_as
from sim.policies.passes import by_job
from sim.state.calendar import Calendar
from sim.state.columns import Explanations
from sim.state.processors import held_ranges
from sim.state.records import Stretches
from sim.state.run_state import State, struct_type, structure
from sim.state.waiting_queue import summaries_of
from workloads.base import BoolArray

LEAST, MOST, STRETCH, CURVED, READ, REQUEST, ROW = range(7)
"""Rows of `Sharing.jobs`: the counts between which a malleable job may be, 0 for others; its
present stretch; whether it is believed to have a curve, and that was read; its request; its row
in `Sharing.g`."""
DONE, SINCE, REQUESTED, REFERENCE, REFERENCE_G = range(5)
"""Rows of `Sharing.work`: the share of a job that was done until an instant; its request; its
runtime and g at its reference count."""
OF, COUNT, FIRST = range(3)
"""Rows of `Sharing.stretches`: whose, on how many processors, and where they begin in `ranges`."""
BEGUN, OVER = range(2)
BELIEVED, TRUE = range(2)
MEMBERS, STRETCHES, ASKED, UNUSED, QUERIES, PENDING = range(6)
"""Places in `Sharing.tallies`; `PENDING` are queries of a pass that is not yet made."""
BLOCK = 256
"""Counts whose runtimes are asked for at once."""
MOST_PAGES = 1 << 25
"""So many times `BLOCK` counts of all jobs are kept in tables, and no more."""
AHEAD = 64
"""Jobs behind one that is asked for whose runtimes are asked for with it."""


class Sharing(structref.StructRefProxy):
    """What equal shares keep of a run.

    Attributes
    ----------
    jobs : numpy.ndarray of int, shape (7, n)
    work : numpy.ndarray of float, shape (5, n)
    members : numpy.ndarray of int, shape (r,)
        Malleable jobs that run, in the order of their starts.
    stretches : numpy.ndarray of int, shape (3, s)
    times : numpy.ndarray of float, shape (2, s), seconds
        When stretches begin and end; the last of a job ends with it.
    pages : numpy.ndarray of int, shape (p, n)
        For each `BLOCK` counts of a job the block that holds its runtimes; -1 if none does.
    blocks : numpy.ndarray of float, shape (2, b, BLOCK), seconds
        Believed and true runtimes.
    unused : numpy.ndarray of int, shape (b,)
        Blocks that hold nothing.
    asked : numpy.ndarray of int, shape (2, a)
        Jobs and pages that a pass waits for.
    tallies : numpy.ndarray of int, shape (6,)
    shortest, summarised : numpy.ndarray
        Of `sim.state.waiting_queue.Summaries`, a place being a job.
    calendar : Calendar
        When runs really end.
    g : numpy.ndarray of float, shape (applications, counts)
        All runtimes, as in `workloads.base.Tabled`, where what is believed is what is true or
        without a curve; nothing is asked for then. Else empty.
    """

    jobs: IntArray
    work: FloatArray
    members: IntArray
    stretches: IntArray
    times: FloatArray
    pages: IntArray
    blocks: FloatArray
    unused: IntArray
    asked: IntArray
    tallies: IntArray
    shortest: FloatArray
    summarised: BoolArray
    calendar: Calendar
    g: FloatArray


NO_TABLE: FloatArray = np.zeros((0, 0))
FIELDS = tuple(Sharing.__annotations__)
SharingType = struct_type(Sharing, FIELDS)


@compiled(makes_arrays=True)
def _made(fields: tuple[Any, ...]) -> Sharing:
    return Sharing(*fields)  # type: ignore[no-untyped-call]


@compiled(makes_arrays=True)
def make_room_for_stretches(sharing: Sharing) -> None:
    """Let the tables of stretches grow, if those of a pass might not find room."""
    size = sharing.times.shape[1]
    if size - sharing.tallies[STRETCHES] < sharing.members.size:
        stretches, times = np.zeros((3, 2 * size), np.int64), np.zeros((2, 2 * size))
        stretches[:, :size], times[:, :size] = sharing.stretches, sharing.times
        sharing.stretches, sharing.times = stretches, times


@compiled(makes_arrays=True)
def _stretches_of(sharing: Sharing) -> tuple[IntArray, FloatArray]:
    return sharing.stretches, sharing.times


@compiled(makes_arrays=True)
def _let_know(sharing: Sharing, blocks: FloatArray, unused: IntArray) -> None:
    """Keep runtimes in these blocks from now on."""
    sharing.blocks, sharing.unused = blocks, unused


def sharing_of(
    calendar: Calendar, jobs: int, running: int, pages: int, g: FloatArray = NO_TABLE
) -> Sharing:
    """Return room for so many jobs, of which so many run at once, with so many pages each."""
    room = jobs + 2 * running
    fields = {
        "jobs": np.zeros((7, jobs), np.int64),
        "work": np.zeros((5, jobs)),
        "members": np.zeros(running, np.int64),
        "stretches": np.zeros((3, room), np.int64),
        "times": np.zeros((2, room)),
        "pages": np.full((pages, jobs), -1),
        "blocks": np.zeros((2, 0, BLOCK)),
        "unused": np.zeros(0, np.int64),
        "asked": np.zeros((2, 3 * running), np.int64),
        "tallies": np.zeros(6, np.int64),
        **summaries_of(jobs)._asdict(),
        "calendar": calendar,
        "g": g,
    }
    return cast(Sharing, structure(_made, fields, grows=("stretches", "times")))


class EqualShares:
    """Equal shares as a compiled rule; it answers what passes ask of a run's jobs.

    Parameters
    ----------
    replay : Engine
    decide : callable
        The pass.
    """

    functions: Mapping[str, Any]
    plan: Any

    def __init__(self, replay: Engine, decide: Callable[..., Any]) -> None:
        self._replay, self._view, self._predictor = replay, replay.view, replay.predictor
        self._truth = replay.work
        self._curved = has_curves(replay.predictor)
        known = acts_as(replay.predictor, Oracle) or not self._curved
        self._tabled = replay.work.tabled() if known else None
        self.functions = {**by_job.FUNCTIONS, "decide": decide}
        self.explanations = Explanations()

    @property
    def has_room(self) -> bool:
        """Whether malleable jobs may have every count up to their largest, and tables room.

        Without curves some are kept to their request while others wait, unless nobody waits
        while a processor is free.
        """
        view, counts, jobs = self._view, self._replay.counts, len(self._replay.submit)
        malleable = np.flatnonzero(self._replay.malleable).tolist()
        fills = len(malleable) == jobs and all(counts.extremes(job)[0] == 1 for job in malleable)
        pages = jobs * (view.processors // BLOCK + 1)
        has_room = pages <= MOST_PAGES and all(counts.special(job) is None for job in malleable)
        return has_room and (self._curved or fills)

    def begin(self, state: State, calendar: Calendar) -> None:
        """Begin a run whose jobs stand here, and wait for the least that they can use."""
        self._state, self._calendar = state, calendar
        self._replay.shown.arrive(range(len(self._replay.submit)))
        view, wanted = self._view, state.processors
        jobs = np.arange(wanted.size)
        limits = np.array([view.extremes(job) for job in jobs.tolist()]).T
        limits[:, ~np.array(view.malleable)] = 0
        most = 0 if self._tabled else int(limits[1].max(initial=1))
        g = np.zeros((0, 0)) if self._tabled is None else self._tabled.g
        sharing = sharing_of(calendar, jobs.size, state.found.size, -(-most // BLOCK), g)
        sharing.jobs[[LEAST, MOST]] = limits
        sharing.jobs[REQUEST] = view.jobs.requested_processors
        sharing.work[REQUESTED] = view.jobs.requested_time
        wanted[limits[0] > 0] = limits[0, limits[0] > 0]
        pairs = zip(jobs.tolist(), wanted.tolist(), strict=True)
        state.belief[:] = [view.belief(job, count) for job, count in pairs]
        calendar.runtime[:] = self._truth.runtimes_at(jobs, wanted)
        if (tabled := self._tabled) is not None:
            sharing.jobs[ROW] = tabled.row
            sharing.jobs[CURVED] = self._curved
            sharing.work[REFERENCE] = tabled.runtimes
            sharing.work[REFERENCE_G] = tabled.reference_g
        self.plan = sharing

    def answer(self) -> None:
        """Write down the runtimes that a pass waits for.

        Those of some later jobs come along, which will soon be asked for.
        """
        sharing = self.plan
        tallies, jobs, number = sharing.tallies, sharing.jobs, sharing.tallies.item(ASKED)
        wanted = sharing.asked[:, :number].T.tolist()
        last = max(job for job, _ in wanted) + 1
        coming = (jobs[MOST, last : last + AHEAD] > 0) & (sharing.pages[0, last : last + AHEAD] < 0)
        for job in (coming.nonzero()[0] + last).tolist():
            most = (jobs.item(MOST, job) - 1) // BLOCK
            wanted += [(job, 0), (job, most)] if most > 0 else [(job, 0)]
        tallies[ASKED] = 0
        if tallies[UNUSED] < len(wanted):
            _add_blocks(sharing, max(len(wanted), sharing.unused.size))
        for job, page in wanted:
            tallies[UNUSED] -= 1
            block = sharing.pages[page, job] = sharing.unused[tallies[UNUSED]]
            self._fill(sharing, job, page * BLOCK, block)

    def _fill(self, sharing: Sharing, job: int, low: int, block: int) -> None:
        """Ask for a job's runtimes on the counts above one, and put them into a block."""
        jobs, blocks = sharing.jobs, sharing.blocks
        counts = np.arange(low + 1, min(low + BLOCK, jobs.item(MOST, job)) + 1)
        believed = self._predictor.curve(job, counts)
        jobs[CURVED, job] = believed is not None
        if believed is not None:
            blocks[BELIEVED, block, : counts.size] = believed
        skipped = max(jobs.item(LEAST, job) - 1 - low, 0)
        if skipped < counts.size:
            true = self._truth.runtimes(job, counts[skipped:])
            blocks[TRUE, block, skipped : counts.size] = true

    def answered(self) -> None:
        """Take in nothing: the tables of the pass hold it."""

    def finish(self) -> None:
        """Take in nothing more."""

    def queued(self) -> IntArray:
        """Return nobody beside those whom the state has waiting."""
        return np.zeros(0, np.int64)

    def stretches(self) -> Stretches:
        """Return the stretches of all runs, in the order of their begins, when all have ended."""
        sharing, state, calendar = self.plan, self._state, self._calendar
        self._view._queries += sharing.tallies.item(QUERIES)
        number = sharing.tallies.item(STRETCHES)
        stretches, times = _stretches_of(sharing)
        job, processors, first = stretches[:, :number]
        begun, over = times[:, :number]
        over[sharing.jobs[STRETCH]] = calendar.end_time
        return Stretches(
            job, np.zeros_like(job), begun, over, processors, held_ranges(state, first)
        )


def _add_blocks(sharing: Sharing, more: int) -> None:
    """Make room for the runtimes of so many more blocks."""
    before = sharing.unused.size
    blocks = np.concatenate([sharing.blocks, np.zeros((2, more, BLOCK))], axis=1)
    unused = np.concatenate([sharing.unused, np.zeros(more, np.int64)])
    last = sharing.tallies.item(UNUSED)
    unused[last : last + more] = np.arange(before, before + more)
    sharing.tallies[UNUSED] += more
    _let_know(sharing, blocks, unused)
    sharing.blocks, sharing.unused = blocks, unused
