"""The queue of waiting jobs, in the policy's order, as arrays that compiled code can scan."""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, direct, record
from sim.errors import PolicyError
from sim.state.run_state import kinds_in, maker, rank_in, struct_type, structure

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
WHOLE, AHEAD = 0, 1
BY_PLACE = "job", "processors", "runtime", "start", "key", "found"
"""Tables with an entry a place."""


class Queue(structref.StructRefProxy):
    """Waiting jobs by place; there are as many places as there are jobs.

    Attributes
    ----------
    at : numpy.ndarray of AT, shape (1,)
    too_long : numpy.ndarray of float, shape (2, 32), seconds
        Room for what is too long for jobs of `2 ** i` processors or more: of the `WHOLE` queue, and
        of those `AHEAD` of a job.
    hold_end : numpy.ndarray of float, shape (h,), seconds
    hold_processors : numpy.ndarray of int, shape (h,)
        Room for who holds processors until when, once others have started, and reserved.
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
    too_long: FloatArray
    hold_end: FloatArray
    hold_processors: IntArray
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


@compiled(forceinline=True)
def drop_stale(queue: Queue) -> None:
    """Forget the summaries of blocks whose jobs are others than at the last search."""
    at = queue.at[0]
    if at.searched_layout != at.layout:
        at.searched, at.searched_layout = 0, at.layout
    for block in range(at.searched // BLOCK, (at.last + BLOCK - 1) // BLOCK):
        queue.summarised[block] = False
    at.searched = at.last


@compiled
def forget_all(queue: Queue) -> None:
    """Forget all summaries: runtimes have changed."""
    queue.at[0].searched_layout = -1


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
    if queue.at[0].last > 2 * queue.at[0].waiting + 64:
        close_up(queue)


@compiled(forceinline=True)
def push(queue: Queue, job: int, processors: int, runtime: float, key: float) -> int:
    """Add a job behind all of its key or less; return its place."""
    at = queue.at[0]
    if at.last == queue.job.size:
        close_up(queue)
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
    waiting = slice(*queue.at[["first", "last"]].item())
    jobs: IntArray = queue.job[waiting][queue.processors[waiting] > 0]
    return jobs


class WaitingQueue:
    """Waiting jobs by rank, for rules in Python.

    Places are positions in the arrays from ``first`` to ``last``. They stay valid until
    a job is pushed or the last one dropped, and the next `rank` or `tidy`.

    Parameters
    ----------
    jobs : int
        How many may wait at once.
    holders : int
        How many may hold processors, and reserve them, at once, under EASY.

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

    def __init__(self, jobs: int, holders: int = 0) -> None:
        blocks = jobs // BLOCK + 1
        sizes = {"at": 1, "hold_end": holders, "hold_processors": holders, "soonest": blocks}
        shapes = {
            **sizes,
            "summarised": blocks,
            "shortest": (blocks, SIZES),
            "too_long": (2, SIZES),
        }
        kinds: Any = kinds_in(Queue) | {"at": AT}
        tables = {name: np.zeros(shapes.get(name, jobs), kind) for name, kind in kinds.items()}
        tables["at"]["layout"] = 1  # of which nothing is known yet
        self.__dict__ |= {name: tables[name] for name in BY_PLACE}
        self.tables = cast(Queue, structure(maker(Queue), tables))
        self._waiting = tables["at"]["waiting"]

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
        places: IntArray = first + np.flatnonzero(self.processors[first:last])
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
