"""Compiled loops over piecewise-constant load: progress of a job, averages, samples.

Time is cut into chunks. Within a chunk the CPU of processor p has breakpoints
``times[time_at[p]:time_at[p] + counts[p]]`` with values likewise; the last value
holds to the chunk's end. Loaded links are intervals sorted by start. Processors
whose breakpoints coincide may share one run of times.
"""

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
BLOCK = 16


class CpuChunk(NamedTuple):
    """Available CPU of every processor over one chunk of time."""

    times: FloatArray
    time_at: IntArray
    values: FloatArray
    value_at: IntArray
    counts: IntArray


class LinkChunk(NamedTuple):
    """Loaded links over one chunk of time, sorted by start; all other links are free.

    ``longest`` holds one value, the length of the longest interval.
    """

    start: FloatArray
    end: FloatArray
    source: IntArray
    destination: IntArray
    available: FloatArray
    longest: FloatArray


@numba.njit(cache=True)
def _place(times, first, count, time):  # type: ignore[no-untyped-def]
    """Return which segment of a run of breakpoints holds `time`."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if times[first + middle] <= time:
            low = middle
        else:
            high = middle
    return low


@numba.njit(cache=True)
def _raise(tree, leaf, value):  # type: ignore[no-untyped-def]
    """Set a leaf of a tournament tree and the minima above it."""
    tree[leaf] = value
    leaf //= 2
    while leaf >= 1:
        tree[leaf] = min(tree[2 * leaf], tree[2 * leaf + 1])
        leaf //= 2


@numba.njit(cache=True)
def _seat(cpu, processors, time, changes, speeds, at):  # type: ignore[no-untyped-def]
    """Fill both tournament trees with the state of the processors at `time`."""
    width = len(changes) // 2
    for i in range(len(processors)):
        p = processors[i]
        k = _place(cpu.times, cpu.time_at[p], cpu.counts[p], time)
        at[i] = k
        speeds[width + i] = cpu.values[cpu.value_at[p] + k]
        if k + 1 < cpu.counts[p]:
            changes[width + i] = cpu.times[cpu.time_at[p] + k + 1]
    for node in range(width - 1, 0, -1):
        changes[node] = min(changes[2 * node], changes[2 * node + 1])
        speeds[node] = min(speeds[2 * node], speeds[2 * node + 1])


@numba.njit(cache=True)
def _together(cpu, processors):  # type: ignore[no-untyped-def]
    """Return whether the processors share their breakpoints."""
    for i in range(1, len(processors)):
        if cpu.time_at[processors[i]] != cpu.time_at[processors[0]]:
            return False
    return True


@numba.njit(cache=True)
def _slowest(cpu, processors, k, least):  # type: ignore[no-untyped-def]
    """Fill `least` with the smallest value of the segments from k on; return how many fit."""
    known = min(len(least), cpu.counts[processors[0]] - k)
    least[:known] = 1.0
    for i in range(len(processors)):
        at = cpu.value_at[processors[i]] + k
        for j in range(known):
            least[j] = min(least[j], cpu.values[at + j])
    return known


@numba.njit(cache=True)
def _turn(cpu, processors, time, changes, speeds, at):  # type: ignore[no-untyped-def]
    """Move every processor that changes by `time` to its segment at `time`."""
    width = len(changes) // 2
    while changes[1] <= time:
        leaf = 1
        while leaf < width:
            leaf = 2 * leaf if changes[2 * leaf] <= time else 2 * leaf + 1
        i = leaf - width
        p = processors[i]
        at[i] += 1
        later = np.inf
        if at[i] + 1 < cpu.counts[p]:
            later = cpu.times[cpu.time_at[p] + at[i] + 1]
        _raise(changes, leaf, later)
        _raise(speeds, leaf, cpu.values[cpu.value_at[p] + at[i]])


@numba.njit(cache=True)
def _step(cpu, processors, time, block, least, changes, speeds):  # type: ignore[no-untyped-def]
    """Move processors that change together on to the segment at `time`.

    `block` holds the segment, where `least` begins and how far it goes.
    """
    first, count = cpu.time_at[processors[0]], cpu.counts[processors[0]]
    while changes[1] <= time:
        block[0] += 1
        if block[0] - block[1] >= block[2]:
            block[1] = block[0]
            block[2] = _slowest(cpu, processors, block[0], least)
        speeds[1] = least[block[0] - block[1]]
        changes[1] = np.inf
        if block[0] + 1 < count:
            changes[1] = cpu.times[first + block[0] + 1]


@numba.njit(cache=True)
def advance(cpu, links, processors, inside, time, until, work, computation, communication):  # type: ignore[no-untyped-def]
    """Run a job within one chunk; return when it stops and the work then left.

    Work falls at the rate 1 / (computation / slowest CPU + communication /
    most loaded own link), from `time` until `until` or until none is left.
    `inside` says for each node whether the job is on it.
    """
    together = _together(cpu, processors)
    width = 1
    while width < len(processors) and not together:
        width *= 2
    changes, speeds = np.full(2 * width, np.inf), np.ones(2 * width)
    at = np.zeros(0 if together else len(processors), np.int64)
    block, least = np.zeros(3, np.int64), np.empty(BLOCK if together else 0)
    if together:
        p = processors[0]
        block[0] = _place(cpu.times, cpu.time_at[p], cpu.counts[p], time) - 1
        changes[1] = time
        _step(cpu, processors, time, block, least, changes, speeds)
    else:
        _seat(cpu, processors, time, changes, speeds, at)
    own_end, own_value, own = np.empty(16), np.empty(16), 0
    following = np.searchsorted(links.start, time - links.longest[0])
    while True:
        while following < len(links.start) and links.start[following] <= time:
            k = following
            if links.end[k] > time and inside[links.source[k]] and inside[links.destination[k]]:
                if own == len(own_end):
                    own_end = np.concatenate((own_end, np.empty(own)))
                    own_value = np.concatenate((own_value, np.empty(own)))
                own_end[own] = links.end[k]
                own_value[own] = links.available[k]
                own += 1
            following += 1
        change, free, i = min(changes[1], until), 1.0, 0
        while i < own:
            if own_end[i] <= time:
                own -= 1
                own_end[i], own_value[i] = own_end[own], own_value[own]
            else:
                change, free = min(change, own_end[i]), min(free, own_value[i])
                i += 1
        seconds = computation / speeds[1] + communication / free
        change = min(change, time + work * seconds + 1.0)
        while following < len(links.start) and links.start[following] < change:
            if inside[links.source[following]] and inside[links.destination[following]]:
                change = links.start[following]
                break
            following += 1
        if work * seconds <= change - time:
            return time + work * seconds, 0.0
        work -= (change - time) / seconds
        time = change
        if time >= until:
            return until, max(work, 0.0)
        if together:
            _step(cpu, processors, time, block, least, changes, speeds)
        else:
            _turn(cpu, processors, time, changes, speeds, at)


@numba.njit(cache=True)
def add_integrals(cpu, processors, start, end, totals):  # type: ignore[no-untyped-def]
    """Add to `totals` the integral of each processor's CPU over [start, end) in this chunk."""
    for i in range(len(processors)):
        p = processors[i]
        k = _place(cpu.times, cpu.time_at[p], cpu.counts[p], start)
        time = start
        while time < end:
            change = end
            if k + 1 < cpu.counts[p]:
                change = min(end, cpu.times[cpu.time_at[p] + k + 1])
            totals[i] += (change - time) * cpu.values[cpu.value_at[p] + k]
            time = change
            k += 1


@numba.njit(cache=True)
def read_cpu(cpu, processors, times, out):  # type: ignore[no-untyped-def]
    """Write the CPU of each processor at each of the ascending times to out[time, processor]."""
    for i in range(len(processors)):
        p = processors[i]
        first, count = cpu.time_at[p], cpu.counts[p]
        k = _place(cpu.times, first, count, times[0])
        for j in range(len(times)):
            while k + 1 < count and cpu.times[first + k + 1] <= times[j]:
                k += 1
            out[j, i] = cpu.values[cpu.value_at[p] + k]


@numba.njit(cache=True)
def own_links(links, inside, start, end):  # type: ignore[no-untyped-def]
    """Return the intervals of the job's own links that touch [start, end]."""
    low = np.searchsorted(links.start, start - links.longest[0])
    high = np.searchsorted(links.start, end, side="right")
    picked = np.empty(high - low, np.int64)
    count = 0
    for k in range(low, high):
        if links.end[k] > start and inside[links.source[k]] and inside[links.destination[k]]:
            picked[count] = k
            count += 1
    return picked[:count]
