"""How work proceeds under load, what load was read or on average, and is believed, compiled.

Time is cut into chunks. Within a chunk segment k of processor p lasts from ``times[row, k]`` to
``times[row, k + 1]``, with ``values[k, p]`` of its CPU available; there is a row a processor, or
one where all change together. Loaded links are intervals in order of start.
"""

from math import exp, expm1, log2
from typing import NamedTuple

import numpy as np

from predictors.base import BoolArray, FloatArray, IntArray
from predictors.compiling import compiled

START, END, SOURCE, DESTINATION, AVAILABLE = range(5)
"""Rows of loaded links, a column an interval; all other links are free."""
ROOM = 16
"""Links that there is room for at first."""
UNKNOWN = -1
"""Instead of a place among rankings: not reckoned yet."""
DOUBLINGS = 1100
"""More than there are of one second."""


class CpuChunk(NamedTuple):
    """Available CPU of every processor over one chunk of time.

    Attributes
    ----------
    times : numpy.ndarray, shape (1 or processors, segments + 1)
        Ascending; the last is infinite, whatever comes after the chunk.
    values : numpy.ndarray, shape (segments, processors)
    """

    times: FloatArray
    values: FloatArray


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
    (time, _, longest), leaves, width = span, min(len(times), len(own)), 1
    while width < leaves:
        width *= 2
    at, trees = np.empty(leaves, np.int64), np.full((2, 2 * width), np.inf)
    for leaf in range(leaves):
        at[leaf] = _segment(times, min(own[leaf], len(times) - 1), time) - 1
        trees[0, width + leaf] = -np.inf
    for node in range(width - 1, 0, -1):
        trees[0, node] = min(trees[0, 2 * node], trees[0, 2 * node + 1])
    following, inside = links.shape[1], np.zeros(nodes[1], np.bool_)
    if task[2] > 0.0:
        following = np.searchsorted(links[START], time - longest)
        for p in own:
            inside[p // nodes[0]] = True
    loaded, course = np.empty((2, links.shape[1] - following)), (at, trees[0], trees[1])
    return _steps((times, values, own), course, links, inside, loaded, span, task)


@compiled
def _steps(cpu, course, links, inside, loaded, span, task) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """Go from change to change of the job's own processors and links, as `advance` says."""
    (_, changes, speeds), (time, until, _), (work, computation, communication) = course, span, task
    starts, stops, available = links[START], links[END], links[AVAILABLE]
    number, following, ends, frees = 0, len(starts) - loaded.shape[1], loaded[0], loaded[1]
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


@compiled
def share_left(memory: float, horizon: float, delay: float = 0.0) -> float:
    """Return which share of a deviation lasts, averaged over the horizon after a delay.

    Parameters
    ----------
    memory : float
        Seconds after which 1/e of it is left; negative: it lasts.
    horizon, delay : float
        Seconds.
    """
    if memory < 0.0:
        return 1.0
    span = max(horizon / memory, 1e-9)
    return exp(-delay / memory) * -expm1(-span) / span


@compiled
def reverting(horizon, course, counts, usual_and_present, places, rankings):  # type: ignore[no-untyped-def]
    """Return what jobs meet over their horizons, and how many doublings of a second are unknown.

    Parameters
    ----------
    horizon : numpy.ndarray of float, shape (n,)
        Seconds.
    course : tuple of float
        The memory of processors and of links, as `share_left` has it; after how many seconds
        the jobs start; and how many times as long they last as the averages say, where
        nothing is left of the present.
    counts : numpy.ndarray of int, shape (n,)
    usual_and_present : numpy.ndarray, shape (4, n)
        CPU as it usually is and as it is at present, and the same of the bandwidth.
    places : numpy.ndarray of int, shape (DOUBLINGS,)
        Which of the rankings is that over so many doublings of a second; or `UNKNOWN`.
    rankings : numpy.ndarray, shape (rankings, 2, processors + 1)
        What the CPU of the first so many processors of a ranking usually is and is at
        present; NaN where there are fewer, or no ranking.

    Returns
    -------
    numpy.ndarray of float, shape (2, n)
        CPU and bandwidth.
    int
        The doublings of a ranking that is missing, or `UNKNOWN`.
    """
    (memory, link_memory, delay, longer), found = course, np.empty((2, len(counts)))
    for i in range(len(counts)):
        doublings = int(np.rint(log2(max(horizon[i], 1.0))))
        if places[doublings] == UNKNOWN:
            return found, doublings
        usual, present = rankings[places[doublings], :, counts[i]]
        if np.isnan(usual):
            usual, present = usual_and_present[0, i], usual_and_present[1, i]
        own = share_left(memory, horizon[i], delay)
        slower = 1.0 + (longer - 1.0) * (1.0 - own)
        found[0, i] = (usual + (present - usual) * own) / slower
        usual, present = usual_and_present[2, i], usual_and_present[3, i]
        shared = share_left(link_memory, horizon[i], delay)
        found[1, i] = (usual + (present - usual) * shared) / slower
    return found, UNKNOWN
