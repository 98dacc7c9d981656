"""The queue of waiting jobs, in the policy's order, as arrays that compiled code can scan."""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, direct, record
from sim.errors import PolicyError
from sim.state.run_state import kinds_in, longer, maker, rank_in, struct_type, structure

AT = record(
    first=int,
    last=int,
    waiting=int,
    layout=int,
    searched=int,
    searched_layout=int,
    soonest_layout=int,
)
"""Where a queue begins and ends, and how many wait. `layout` changes whenever jobs have moved to
other places; `searched` is how far the queue was searched when that was `searched_layout`, and
`soonest` is known of places as they were under `soonest_layout`."""
BLOCK = 64
"""Jobs of the queue that share a summary."""
SIZES = 32
"""Sizes of jobs that summaries tell apart: 1, 2 to 3, 4 to 7 processors, ..."""
BY_PLACE = "job", "processors", "runtime", "start", "key", "found"
"""Tables with an entry a place."""


class Queue(structref.StructRefProxy):
    """Waiting jobs by place; every table may grow when a job is added.

    Attributes
    ----------
    at : numpy.ndarray of AT, shape (1,)
    job : numpy.ndarray of int, shape (n,)
    processors : numpy.ndarray of int, shape (n,)
        The count that the allocation rule chose; 0 where a place is empty: its job has started.
    runtime : numpy.ndarray of float, shape (n,), seconds
        The belief at that count.
    start : numpy.ndarray of float, shape (n,), seconds
        The reservation, where the backfilling rule holds one.
    key : numpy.ndarray of float, shape (n,)
        Rank, ascending; ties in order of arrival.
    found : numpy.ndarray of int, shape (n,)
        Room for the places that a search finds.
    shortest : numpy.ndarray of float, shape (b, 32), seconds
        The shortest runtime of each size of job in each block of places.
    summarised : numpy.ndarray of bool, shape (b,)
        Whether that is known.
    soonest : numpy.ndarray of float, shape (b,), seconds
        The earliest start that each block waits for, or less where that is not known.
    """

    at: NDArray[Any]
    job: IntArray
    processors: IntArray
    runtime: FloatArray
    start: FloatArray
    key: FloatArray
    found: IntArray
    shortest: FloatArray
    summarised: NDArray[np.bool_]
    soonest: FloatArray


QueueType = struct_type(Queue)


@compiled
def tables_of(queue: Queue) -> tuple[NDArray[Any], ...]:
    """Return the tables `BY_PLACE`."""
    return queue.job, queue.processors, queue.runtime, queue.start, queue.key, queue.found


@compiled
def unknown_blocks(jobs: int) -> tuple[FloatArray, NDArray[np.bool_], FloatArray]:
    """Return room for what is known of the blocks of so many places: nothing so far."""
    blocks = jobs // BLOCK + 1
    return np.zeros((blocks, SIZES)), np.zeros(blocks, np.bool_), np.full(blocks, -np.inf)


@compiled
def forget(queue: Queue, first: int, last: int) -> None:
    """Forget the summaries of blocks whose jobs have changed, from one place to another."""
    queue.summarised[first // BLOCK : last // BLOCK + 1] = False


@compiled(forceinline=True)
def drop_stale(queue: Queue) -> None:
    """Forget the summaries of blocks whose jobs are others than at the last search."""
    at = queue.at[0]
    if at.searched_layout != at.layout:
        at.searched_layout = at.layout
        queue.summarised[:] = False
    elif at.searched < at.last:
        forget(queue, at.searched, at.last - 1)
    at.searched = at.last


@compiled
def forget_all(queue: Queue) -> None:
    """Forget all summaries: runtimes have changed."""
    queue.at[0].searched_layout = -1


@compiled(inline="always")
def _grow(queue: Queue) -> None:
    """Double the room for jobs."""
    size = 2 * queue.job.size
    queue.job, queue.processors = longer(queue.job, size), longer(queue.processors, size)
    queue.runtime, queue.start = longer(queue.runtime, size), longer(queue.start, size)
    queue.key, queue.found = longer(queue.key, size), np.zeros(size, np.int64)
    queue.shortest, queue.summarised, queue.soonest = unknown_blocks(size)
    queue.at[0].layout += 1


@compiled(inline="always")
def _move(queue: Queue, origin: int, to: int) -> None:
    """Copy the job at one place to another."""
    queue.job[to], queue.processors[to] = queue.job[origin], queue.processors[origin]
    queue.runtime[to], queue.start[to] = queue.runtime[origin], queue.start[origin]
    queue.key[to] = queue.key[origin]


@compiled(inline="always")
def close_up(queue: Queue) -> None:
    """Close the gaps; places change."""
    at, number = queue.at[0], 0
    for place in range(at.first, at.last):
        if queue.processors[place] > 0:
            _move(queue, place, number)
            number += 1
    at.first, at.last = 0, number
    at.layout += 1


@compiled(inline="always")
def tidy(queue: Queue) -> None:
    """Close the gaps, if most places are empty; places change."""
    at = queue.at[0]
    if at.last - at.first > 2 * at.waiting + 64:
        close_up(queue)


@compiled(forceinline=True)
def push(queue: Queue, job: int, processors: int, runtime: float, key: float) -> int:
    """Add a job behind all of its key or less; return its place."""
    at = queue.at[0]
    if at.last == queue.job.size:
        if 2 * at.waiting < queue.job.size:
            close_up(queue)
        else:
            _grow(queue)
    place = int(at.first + rank_in(queue.key[at.first : at.last], key, True))
    if place < at.last:
        at.layout += 1
        for behind in range(at.last, place, -1):
            _move(queue, behind - 1, behind)
    queue.job[place], queue.processors[place] = job, processors
    queue.runtime[place], queue.start[place], queue.key[place] = runtime, np.inf, key
    at.last += 1
    at.waiting += 1
    return place


@compiled(inline="always")
def pop(queue: Queue, place: int) -> int:
    """Take out the job at a place, and return it.

    Raises
    ------
    PolicyError
        If none waits there: a rule has found what it should not.
    """
    at = queue.at[0]
    if not 0 <= place < at.last or queue.processors[place] == 0:
        raise PolicyError("decide found a place at which no job waits, or found one twice")
    queue.processors[place] = 0
    at.waiting -= 1
    if at.waiting == 0:
        at.first = at.last = 0
        at.layout += 1
    return int(queue.job[place])


_tidy = direct(tidy)


def jobs_in(queue: Queue) -> IntArray:
    """Return the waiting jobs, in queue order."""
    job, processors, *_ = tables_of(queue)
    waiting = slice(*queue.at[["first", "last"]].item())
    jobs: IntArray = job[waiting][processors[waiting] > 0]
    return jobs


class WaitingQueue:
    """Waiting jobs by rank, for rules in Python.

    Places are positions in the arrays from ``first`` to ``last``. They stay valid until
    a job is pushed or the last one dropped, and the next `rank` or `tidy`.

    Attributes
    ----------
    tables : Queue
        The same for compiled code.
    job, processors, runtime, start, key, found : numpy.ndarray
        Its tables `BY_PLACE`.
    """

    job: IntArray
    processors: IntArray
    runtime: FloatArray
    start: FloatArray
    key: FloatArray
    found: IntArray

    def __init__(self) -> None:
        kinds: Any = kinds_in(Queue)
        room = {name: np.zeros(64, kinds[name]) for name in BY_PLACE}
        of_blocks = zip(("shortest", "summarised", "soonest"), unknown_blocks(64), strict=True)
        fields = {"at": np.zeros(1, AT), **room, **dict(of_blocks)}
        self.tables = cast(Queue, structure(maker(Queue), fields, grows=fields.keys() - {"at"}))
        self._waiting = fields["at"]["waiting"]
        self.rebind()

    def rebind(self) -> None:
        """Name the tables by which compiled code has replaced others."""
        for name, table in zip(BY_PLACE, tables_of(self.tables), strict=True):
            setattr(self, name, table)

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return int(self._waiting.item())

    def tidy(self) -> None:
        """Close the gaps, if most places are empty; places change."""
        _tidy(self.tables)

    def head(self) -> int:
        """Return the place of the first waiting job; there must be one."""
        return int(self.places()[0])

    def places(self) -> IntArray:
        """Return the places of all waiting jobs, in queue order."""
        first, last = self.tables.at[["first", "last"]].item()
        places: IntArray = first + np.flatnonzero(tables_of(self.tables)[1][first:last])
        return places

    def place_of(self) -> dict[int, int]:
        """Return the place of each waiting job."""
        places = self.places()
        return dict(zip(self.job[places].tolist(), places.tolist(), strict=True))

    def __iter__(self) -> Iterator[int]:
        yield from jobs_in(self.tables).tolist()

    def rank(self, keys: FloatArray, arrival: FloatArray) -> None:
        """Put the waiting jobs in order of new keys, ties in order of arrival.

        Parameters
        ----------
        keys, arrival : numpy.ndarray of shape (waiting,)
            For the jobs in the order of `places`.
        """
        places = self.places()
        self.key[places] = keys
        places = places[np.lexsort((self.job[places], arrival, keys))]
        for table in (self.job, self.processors, self.runtime, self.start, self.key):
            table[: places.size] = table[places]
        at = self.tables.at
        at["first"], at["last"] = 0, places.size
        at["layout"] += 1
