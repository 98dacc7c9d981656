"""Background load of a shared machine, and what it does to the jobs on it.

The load does not depend on the jobs, so the end of a job is found by
integrating its rate over the load of its own processors and links, at once,
without an event for each change of load.

Time is cut into chunks, over which compiled functions go. Loaded links are intervals in order of
start.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import BoolArray, FloatArray, IntArray
from predictors.compiling import compiled, direct
from sim.background.models import ConstantLoad, CpuChunk, LinkRows, LoadModel, RoundLoad
from sim.errors import AT_LEAST_1, POSITIVE, ConfigError
from workloads.streams import Streams

START, END, SOURCE, DESTINATION, AVAILABLE = range(5)
"""Rows of loaded links, a column an interval; all other links are free."""
ROOM = 16
"""Links that there is room for at first."""


class LoadedLinks(NamedTuple):
    """Loaded links at some looks, look after look; all others are free.

    Attributes
    ----------
    counts : numpy.ndarray of int, shape (looks,)
        How many links each look found.
    source, destination : numpy.ndarray of int, shape (readings,)
        Their nodes.
    available : numpy.ndarray of float, shape (readings,)
    """

    counts: IntArray
    source: IntArray
    destination: IntArray
    available: FloatArray

    def keys(self, nodes: int) -> IntArray:
        """Return a number of each link, by its nodes and how many of them there are."""
        return self.source * nodes + self.destination

    def looks(self) -> IntArray:
        """Return by which look each was found."""
        return np.arange(len(self.counts)).repeat(self.counts)

    def lost(self, least: int = 0) -> FloatArray:
        """Return what links lack of their bandwidth, those that lack most first.

        Parameters
        ----------
        least : int
            Columns, at least.

        Returns
        -------
        numpy.ndarray, shape (looks, links)
        """
        most = max(int(self.counts.max(initial=0)), least)
        lost = np.zeros((len(self.counts), most))
        lost[np.arange(most) < self.counts[:, None]] = 1.0 - self.available
        return np.sort(lost, axis=1)[:, ::-1]

    def least(self, inside: BoolArray) -> float:
        """Return the least bandwidth among links between nodes that are inside, at any look."""
        own = inside[self.source] & inside[self.destination]
        return float(self.available[own].min(initial=1.0))


@compiled
def _segment(times, row, time) -> int:  # type: ignore[no-untyped-def]
    """Return which segment of a row holds `time`."""
    after = np.searchsorted(times[row], time, "right")
    return int(min(max(after, 1), times.shape[1] - 1)) - 1


@compiled
def _speed(times, values, own, k, leaf) -> float:  # type: ignore[no-untyped-def]
    """Return the CPU of an own processor in segment k, or where all change together the least."""
    if len(times) > 1:
        return float(values[k, own[leaf]])
    row, least = values[k], 1.0
    for i in range(len(own)):
        least = row[own[i]] if row[own[i]] < least else least
    return least


@compiled
def _raise(tree, node, value):  # type: ignore[no-untyped-def]
    """Set a leaf of a tournament tree and the minima above it."""
    tree[node] = value
    node //= 2
    while node >= 1:
        tree[node] = min(tree[2 * node], tree[2 * node + 1])
        node //= 2


@compiled
def _turn(cpu, time, course):  # type: ignore[no-untyped-def]
    """Move to its segment at `time` each own processor, or all of them, that changes by then.

    Segments are kept in `at`; when they end and the CPU in them in tournament trees.
    """
    (times, values, own), (at, changes, speeds) = cpu, course
    width = len(changes) // 2
    while changes[1] <= time:
        node = 1
        while node < width:
            node = 2 * node if changes[2 * node] <= time else 2 * node + 1
        leaf = node - width
        row, at[leaf] = min(own[leaf], len(times) - 1), at[leaf] + 1
        _raise(changes, node, times[row, at[leaf] + 1])
        _raise(speeds, node, _speed(times, values, own, at[leaf], leaf))


@compiled
def advance(times, values, links, own, nodes, span, task):  # type: ignore[no-untyped-def]
    """Run a job within one chunk; return when it stops and the work then left.

    Work falls at the rate 1 / (computation / slowest CPU + communication / most loaded own
    link), until some time or until none is left.

    Parameters
    ----------
    times, values : numpy.ndarray
        As in `CpuChunk`.
    links : numpy.ndarray, shape (5, intervals)
    own : numpy.ndarray of int
        The processors it holds.
    nodes : tuple of int
        How many processors a node has, and how many nodes there are.
    span : tuple of float
        From when until when, and the length of the longest interval of `links`.
    task : tuple of float
        Work, computation and communication.

    Returns
    -------
    float
    float
    """
    (time, until, longest), leaves, width = span, min(len(times), len(own)), 1
    work, computation, communication = task
    while width < leaves:
        width *= 2
    at, trees = np.empty(leaves, np.int64), np.full((2, 2 * width), np.inf)
    for leaf in range(leaves):
        at[leaf] = _segment(times, min(own[leaf], len(times) - 1), time) - 1
        trees[0, width + leaf] = -np.inf
    for node in range(width - 1, 0, -1):
        trees[0, node] = min(trees[0, 2 * node], trees[0, 2 * node + 1])
    following, inside = links.shape[1], np.zeros(nodes[1], np.bool_)
    if communication > 0.0:
        following = np.searchsorted(links[START], time - longest)
        for p in own:
            inside[p // nodes[0]] = True
    number, (ends, frees) = 0, np.empty((2, links.shape[1] - following))
    starts, stops, available = links[START], links[END], links[AVAILABLE]
    cpu, course, (changes, speeds) = (times, values, own), (at, trees[0], trees[1]), trees
    while True:
        _turn(cpu, time, course)
        while following < len(starts) and starts[following] <= time:
            if stops[following] > time and _joins(links, following, inside):
                ends[number], frees[number] = stops[following], available[following]
                number += 1
            following += 1
        change, free, i = np.inf, 1.0, 0
        while i < number:
            if ends[i] <= time:
                number -= 1
                ends[i], frees[i] = ends[number], frees[number]
            else:
                change, free = min(change, ends[i]), min(free, frees[i])
                i += 1
        seconds = computation / speeds[1] + communication / free
        change = min(min(change, changes[1]), min(until, time + work * seconds + 1.0))
        while following < len(starts) and starts[following] < change:
            if _joins(links, following, inside):
                change = starts[following]
            else:
                following += 1
        if work * seconds <= change - time:
            return time + work * seconds, 0.0
        work -= (change - time) / seconds
        time = change
        if time >= until:
            return until, max(work, 0.0)


@compiled
def _joins(links, k, inside) -> bool:  # type: ignore[no-untyped-def]
    """Return whether a link joins two nodes that the job is on."""
    return bool(inside[int(links[SOURCE, k])] and inside[int(links[DESTINATION, k])])


@compiled
def add_integrals(times, values, own, start, end, totals):  # type: ignore[no-untyped-def]
    """Add to `totals` the integral of each processor's CPU over [start, end) in this chunk."""
    for i in range(len(own)):
        row = own[i] if len(times) > 1 else 0
        k, time = _segment(times, row, start), start
        while time < end:
            change = min(end, times[row, k + 1])
            totals[i] += (change - time) * values[k, own[i]]
            time = change
            k += 1


@compiled
def read_cpu(times, values, own, moments, out):  # type: ignore[no-untyped-def]
    """Write the CPU of each processor at each of the ascending times to out[time, processor]."""
    for i in range(len(own)):
        row = own[i] if len(times) > 1 else 0
        k = _segment(times, row, moments[0])
        for j in range(len(moments)):
            while times[row, k + 1] <= moments[j]:
                k += 1
            out[j, i] = values[k, own[i]]


@compiled
def links_during(links, longest, inside, starts, ends):  # type: ignore[no-untyped-def]
    """Return how many links among nodes are loaded in each [start, end], and these in turn."""
    counts, picked, number = np.zeros(len(starts), np.int64), np.empty(ROOM, np.int64), 0
    for j in range(len(starts)):
        k = np.searchsorted(links[START], starts[j] - longest)
        while k < links.shape[1] and links[START, k] <= ends[j]:
            if links[END, k] > starts[j] and _joins(links, k, inside):
                if number == len(picked):
                    picked = np.append(picked, picked)
                picked[number] = k
                number += 1
                counts[j] += 1
            k += 1
    return counts, links[:, picked[:number]]


_advance, _links_during = direct(advance), direct(links_during)
CPU_ROUNDS = RoundLoad(available=(0.065, 0.72), duration=(180.0, 480.0), at_once=(1, None))
NETWORK_ROUNDS = RoundLoad(available=(0.02, 0.80), duration=(180.0, 480.0), at_once=(1, 8))


KEPT_CHUNKS = 8
"""Chunks that are kept at least; twice as many whenever one is asked for that is gone."""
KEPT_NUMBERS = 2**21
"""Numbers in chunks that are kept, 16 MB, where these are more chunks than that."""

MOMENTS, KEPT_SUMS = 64, 16
"""Instants at which the load of a time to come is read; times for which it is kept."""
LONGEST = 2.0**20
"""Seconds beyond which no load is read, twelve days: on average the rest is the same."""


@dataclass(frozen=True)
class LoadChunk:
    """The load of processors and links from `start` until `end`.

    Attributes
    ----------
    start, end : float
    cpu : CpuChunk
    links : numpy.ndarray, shape (5, intervals)
        As `LinkRows` has them.
    longest : float
        How long the longest of them is, seconds.
    """

    start: float
    end: float
    cpu: CpuChunk
    links: FloatArray
    longest: float


@dataclass(eq=False)
class BackgroundLoad:
    """Available CPU of every processor and available bandwidth of every link, over time.

    Piecewise constant, drawn as far as it is asked for, and the same whatever is asked
    in which order; what lies long back is forgotten, and drawn again for who asks for it.
    Processor p sits on node p // processors_per_node; links join ordered pairs of nodes, and
    a job's own links are those among its nodes. Processors of one node share no link.

    Parameters
    ----------
    processors : int
        Processors of the machine.
    streams : Streams
        Gives the streams ``load.cpu`` and ``load.network``.
    cpu, network : LoadModel or None
        Kinds of load; None: always free. By default the paper's.
    processors_per_node : int
    origin : float
        When the load begins, seconds; before it the load is not defined.
    chunk : float
        Seconds drawn at a time.

    Raises
    ------
    ConfigError
        If a figure is out of range.

    Examples
    --------
    >>> from sim.background.models import ConstantLoad
    >>> load = BackgroundLoad(4, Streams(1), cpu=ConstantLoad(0.5), network=ConstantLoad(0.25))
    >>> load.advance(np.array([0, 1]), 100.0, np.inf, 1.0, 60.0, 10.0)
    (260.0, 0.0)
    >>> load.advance(np.array([0, 1]), 100.0, 180.0, 1.0, 60.0, 10.0)
    (180.0, 0.5)
    """

    processors: int
    streams: Streams
    cpu: LoadModel | None = CPU_ROUNDS
    network: LoadModel | None = NETWORK_ROUNDS
    processors_per_node: int = 1
    origin: float = 0.0
    chunk: float = 86400.0

    def __post_init__(self) -> None:
        width = self.processors_per_node
        AT_LEAST_1.check(processors=self.processors, processors_per_node=width)
        POSITIVE.check(chunk=self.chunk)
        self.nodes = -(-self.processors // width)
        self._chunks: dict[int, LoadChunk] = {}
        self._kept = KEPT_CHUNKS
        self._size = (width, self.nodes)
        self._begin()

    def _begin(self) -> None:
        """Draw from the origin on."""
        cpu, network = self.cpu or ConstantLoad(), self.network or ConstantLoad()
        size = (self.processors, self.processors_per_node)
        self._cpu = cpu.cpu(*size, self.streams("load.cpu"), self.origin)
        rows = network.links(self.nodes, self.streams("load.network"), self.origin)
        self._links = LinkRows(rows)
        self._next = 0

    def _chunk(self, time: float) -> LoadChunk:
        """Return the chunk that holds `time`, drawing up to it."""
        index = int((time - self.origin) // self.chunk)
        if index < 0:
            raise ConfigError(f"the load begins at {self.origin:g} s; {time:g} s is before it")
        chunk = self._drawn(index)
        # The quotient of a time at a border may round down.
        return chunk if time < chunk.end else self._drawn(index + 1)

    def _drawn(self, index: int) -> LoadChunk:
        """Return the chunk of that number, drawing those before it.

        Only the latest are kept, or memory would grow with the days of a simulation. Who
        asks for one that is gone has it drawn again, and will find more of them next time.
        """
        if index < self._next and index not in self._chunks:
            self._kept = 2 * max(self._kept, len(self._chunks))
            self._chunks.clear()
            self._begin()
        while self._next <= index:
            start = self.origin + self.chunk * self._next
            end = self.origin + self.chunk * (self._next + 1)
            cpu, links = self._cpu.chunk(start, end), self._links.chunk(start, end)
            longest = float((links[END] - links[START]).max(initial=0.0))
            self._chunks[self._next] = LoadChunk(start, end, cpu, links, longest)
            self._next += 1
            numbers = cpu.times.size + cpu.values.size + links.size
            while len(self._chunks) > max(self._kept, KEPT_NUMBERS // numbers):
                del self._chunks[next(iter(self._chunks))]
        return self._chunks[index]

    def inside(self, processors: ArrayLike) -> BoolArray:
        """Return for each node whether one of the processors is on it."""
        inside = np.zeros(self.nodes, bool)
        inside[np.asarray(processors, np.int64) // self.processors_per_node] = True
        return inside

    def advance(
        self,
        own: IntArray,
        start: float,
        until: float,
        work: float,
        computation: float,
        communication: float,
    ) -> tuple[float, float]:
        """Run a job until it is done or `until`; nothing is checked.

        Its rate is 1 / (computation / slowest own CPU + communication / most
        loaded own link) of the job per second.

        Parameters
        ----------
        own : numpy.ndarray of int
            The processors it holds.
        start, until : float
            Seconds.
        work : float
            The share of the job that is left at `start`.
        computation, communication : float
            Seconds of the whole job on an idle machine.

        Returns
        -------
        float
            When it stops, seconds.
        float
            The share that is left then.
        """
        own, time = np.ascontiguousarray(own, np.int64), start
        while work > 0 and time < until:
            chunk = self._chunk(time)
            span = time, until if until < chunk.end else chunk.end, chunk.longest
            task = work, computation, communication
            time, work = _advance(*chunk.cpu, chunk.links, own, self._size, span, task)
        return time, work

    def cpu_at(self, times: ArrayLike, processors: ArrayLike | None = None) -> FloatArray:
        """Return the available CPU at ascending times, shape (times, processors)."""
        moments = np.atleast_1d(np.asarray(times, float))
        own = np.arange(self.processors) if processors is None else np.asarray(processors, np.int64)
        out = np.empty((len(moments), len(own)))
        for chunk, here in self._chunks_of(moments):
            read_cpu(*chunk.cpu, own, moments[here], out[here])
        return out

    def _chunks_of(self, times: FloatArray) -> Iterator[tuple[LoadChunk, slice]]:
        """Yield the chunks that hold ascending times, and which of these each holds."""
        done = 0
        while done < len(times):
            chunk = self._chunk(float(times[done]))
            following = done + int(np.searchsorted(times[done:], chunk.end))
            yield chunk, slice(done, following)
            done = following

    def average_cpu(self, processors: ArrayLike, start: float, end: float) -> FloatArray:
        """Return the time average of each processor's available CPU over [start, end)."""
        own = np.asarray(processors, np.int64)
        if end <= start:
            return np.asarray(self.cpu_at(start, own)[0], float)
        totals, time = np.zeros(len(own)), float(start)
        while time < end:
            chunk = self._chunk(time)
            add_integrals(*chunk.cpu, own, time, min(end, chunk.end), totals)
            time = chunk.end
        return np.asarray(totals / (end - start), float)

    def effective(self, processors: ArrayLike, start: float, end: float) -> tuple[float, float]:
        """Return the time averages of the slowest CPU and of the most loaded link.

        A job moves at the pace of its slowest processor at each instant: all
        computation, it lasts its seconds on an idle machine over the first; all
        communication, over the second.

        Parameters
        ----------
        processors : array_like of int
            The job's own.
        start, end : float
            Seconds.
        """
        own = np.asarray(processors, np.int64)
        if end <= start:
            bandwidth = self.loaded_links(own, start, start)[:, AVAILABLE].min(initial=1.0)
            return float(self.cpu_at(start, own).min()), float(bandwidth)
        span = float(end) - float(start)
        work = float(start), float(end), span
        cpu, bandwidth = (
            1.0 - self.advance(own, *work, *part)[1] / span for part in ((1.0, 0.0), (0.0, 1.0))
        )
        return cpu, bandwidth

    def loaded_links(self, processors: ArrayLike, start: float, end: float) -> FloatArray:
        """Return when the job's own links are loaded, and how much bandwidth is left then.

        Returns
        -------
        numpy.ndarray, shape (intervals, 5)
            Start, end (clipped to chunks), source and destination node, and
            available fraction; at all other times a link is free. An interval
            that runs over a chunk's border is listed in two parts.
        """
        inside = self.inside(processors)
        rows, time = [], float(start)
        while True:
            chunk = self._chunk(time)
            span = np.array([time]), np.array([min(end, chunk.end)])
            _, found = _links_during(chunk.links, chunk.longest, inside, *span)
            found[:SOURCE] = found[:SOURCE].clip(chunk.start, chunk.end)
            rows.append(found.T)
            time = chunk.end
            if time >= end:
                return np.concatenate(rows)

    def links_at(self, times: FloatArray, inside: BoolArray) -> LoadedLinks:
        """Return the links that are loaded at ascending times between nodes that are inside."""
        looks = [
            _links_during(chunk.links, chunk.longest, inside, times[here], times[here])
            for chunk, here in self._chunks_of(times)
        ]
        counts, found = (np.concatenate(each, axis=-1) for each in zip(*looks, strict=True))
        source, destination = found[[SOURCE, DESTINATION]].astype(np.int64)
        return LoadedLinks(counts, source, destination, found[AVAILABLE])


class LoadAhead:
    """True load from now on, in order, averaged over any time to come.

    Times are doubled from one second on, and each is read at 64 instants: all counts and
    jobs asked about in a pass share them.

    Parameters
    ----------
    load : BackgroundLoad

    Examples
    --------
    >>> from sim.background.models import ConstantLoad
    >>> ahead = LoadAhead(BackgroundLoad(2, Streams(1), ConstantLoad(0.5), ConstantLoad(0.25)))
    >>> [values.tolist() for values in ahead.average(0.0, 100.0)]
    [[0.5, 0.5], [0.75, 0.75]]
    """

    def __init__(self, load: BackgroundLoad) -> None:
        self._load = load
        self._sums = lru_cache(KEPT_SUMS)(self._read)

    def average(self, now: float, horizon: float) -> tuple[FloatArray, FloatArray]:
        """Return the averages over `horizon` seconds from now on.

        Returns
        -------
        cpu : numpy.ndarray, shape (processors,)
            Available CPU of the slowest processor, of the next, and so on.
        lost : numpy.ndarray, shape (links,)
            What the most loaded link lacks of its bandwidth, the next, and so on; all others
            lack nothing.
        """
        horizon = min(max(horizon, 1e-3), LONGEST)
        span = 2.0 ** max(int(np.ceil(np.log2(horizon))), 0)
        cpu, lost = self._sums(now, span)
        steps = horizon * MOMENTS / span
        return _upto(cpu, steps) / steps, _upto(lost, steps) / steps

    def _read(self, now: float, span: float) -> tuple[FloatArray, FloatArray]:
        """Return sums over the instants in the middle of equal parts of a time, before each."""
        times = now + span * (np.arange(MOMENTS) + 0.5) / MOMENTS
        cpu = np.sort(self._load.cpu_at(times), axis=1)
        lost = self._load.links_at(times, np.ones(self._load.nodes, bool)).lost()
        cpu, lost = (np.pad(each, ((1, 0), (0, 0))) for each in (cpu, lost))
        return np.cumsum(cpu, axis=0), np.cumsum(lost, axis=0)


def _upto(sums: FloatArray, steps: float) -> FloatArray:
    """Return a running sum after so many steps, the last of them a part of one."""
    before, after = sums[int(steps)], sums[min(int(steps) + 1, MOMENTS)]
    return np.asarray(before + (after - before) * (steps % 1.0))
