"""Compiled loops over piecewise-constant load: progress of a job, averages, samples.

Time is cut into chunks. Within a chunk the CPU of processor p has breakpoints
``times[time_at[p]:time_at[p] + counts[p]]`` with values likewise; the last value
holds to the chunk's end. Loaded links are intervals sorted by start. Where the
breakpoints of all processors coincide there is one run of times, and the values lie
segment after segment: a job reads neighbours.
"""

from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled


class CpuChunk(NamedTuple):
    """Available CPU of every processor over one chunk of time."""

    times: FloatArray
    time_at: IntArray
    values: FloatArray
    value_at: IntArray
    counts: IntArray


@compiled(inline="always")
def _shared(cpu) -> bool:  # type: ignore[no-untyped-def]
    """Return whether all processors share their breakpoints."""
    return bool(len(cpu.times) == cpu.counts[0])


@compiled(inline="always")
def _stride(cpu) -> int:  # type: ignore[no-untyped-def]
    """Return how far apart the values of neighbouring segments of a processor lie."""
    return len(cpu.value_at) if _shared(cpu) else 1


class LinkChunk(NamedTuple):
    """Loaded links over one chunk of time, sorted by start; all other links are free.

    ``longest`` holds one value, the length of the longest interval; ``most``
    one, how many are loaded at once at most.
    """

    start: FloatArray
    end: FloatArray
    source: IntArray
    destination: IntArray
    available: FloatArray
    longest: FloatArray
    most: FloatArray


@compiled()
def _place(times, first, count, time) -> int:  # type: ignore[no-untyped-def]
    """Return which segment of a run of breakpoints holds `time`."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if times[first + middle] <= time:
            low = middle
        else:
            high = middle
    return low


@compiled()
def _raise(tree, leaf, value):  # type: ignore[no-untyped-def]
    """Set a leaf of a tournament tree and the minima above it."""
    tree[leaf] = value
    leaf //= 2
    while leaf >= 1:
        tree[leaf] = min(tree[2 * leaf], tree[2 * leaf + 1])
        leaf //= 2


@compiled()
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


@compiled()
def _slowest(values, row, processors) -> float:  # type: ignore[no-untyped-def]
    """Return the least of the processors' values in the row that begins at `row`."""
    least = 1.0
    for i in range(len(processors)):
        value = values[row + processors[i]]
        least = value if value < least else least
    return least


@compiled()
def _turn(cpu, processors, time, trees):  # type: ignore[no-untyped-def]
    """Move every processor that changes by `time` to its segment at `time`."""
    changes, speeds, at = trees
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


class Workspace(NamedTuple):
    """Room for what is noted of a job on its way through a chunk, made once.

    ``numbers`` holds both tournament trees, ends and bandwidths of links; ``whole`` the
    segment of each processor, and of each node whether the job is on it.
    """

    numbers: FloatArray
    whole: IntArray


def workspace(processors: int, nodes: int, links: LinkChunk) -> Workspace:
    """Return room for jobs of up to so many processors under such a chunk's links."""
    width = 1 << max(processors - 1, 0).bit_length()
    loaded = 2 * int(links.most[0])  # those that have just ended are still in
    return Workspace(np.zeros(4 * width + 2 * loaded), np.zeros(processors + nodes, np.int64))


@compiled()
def _mark_nodes(processors, per_node, inside):  # type: ignore[no-untyped-def]
    """Mark each node that one of the processors is on, and no other."""
    inside[:] = 0
    for p in processors:
        inside[p // per_node] = 1


@compiled()
def advance(cpu, links, processors, nodes, span, task, room) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """Run a job within one chunk; return when it stops and the work then left.

    Work falls at the rate 1 / (computation / slowest CPU + communication /
    most loaded own link), over `span`, from a time until another, or until none is left.
    `nodes` holds how many processors a node has and how many nodes there are; `task`
    work, computation and communication; `room` is a `Workspace`.
    """
    width, together = 1, _shared(cpu)
    while width < len(processors) and not together:
        width *= 2
    changes, speeds = room.numbers[: 2 * width], room.numbers[2 * width : 4 * width]
    size = len(room.whole) - nodes[1]
    at, inside = room.whole[:size], room.whole[size:]
    if not together:
        changes[:] = np.inf
        speeds[:] = 1.0
        _seat(cpu, processors, span[0], changes, speeds, at)
    following = len(links.start)
    if task[2] > 0.0 and following > 0:
        following = np.searchsorted(links.start, span[0] - links.longest[0])
        _mark_nodes(processors, nodes[0], inside)
    loaded = room.numbers[4 * width :]
    return _steps(
        cpu, links, processors, (changes, speeds, at), (inside, loaded), following, span, task
    )


@compiled()
def _steps(cpu, links, processors, trees, of_links, following, span, task) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """Go from change to change of the job's own processors and links, as `advance` says."""
    times, values, together, row = cpu.times, cpu.values, _shared(cpu), len(cpu.value_at)
    starts, stops, sources, destinations, available, _, _ = links
    changes, speeds, _ = trees
    (time, until), (work, computation, communication) = span, task
    inside, loaded = of_links
    ends, frees = loaded, loaded[len(loaded) // 2 :]
    segment, own = 0, 0
    if together:
        segment = _place(times, 0, len(times), time)
        speed = _slowest(values, segment * row, processors)
        turn = times[segment + 1] if segment + 1 < len(times) else np.inf
    else:
        speed, turn = speeds[1], changes[1]
    while True:
        while following < len(starts) and starts[following] <= time:
            k = following
            if stops[k] > time and inside[sources[k]] and inside[destinations[k]]:
                ends[own], frees[own] = stops[k], available[k]
                own += 1
            following += 1
        change, free, i = np.inf, 1.0, 0
        while i < own:
            if ends[i] <= time:
                own -= 1
                ends[i], frees[i] = ends[own], frees[own]
            else:
                change, free = min(change, ends[i]), min(free, frees[i])
                i += 1
        seconds = computation / speed + communication / free
        change = min(min(change, turn), min(until, time + work * seconds + 1.0))
        while following < len(starts) and starts[following] < change:
            if inside[sources[following]] and inside[destinations[following]]:
                break
            following += 1
        if following < len(starts):
            change = min(change, starts[following])
        if work * seconds <= change - time:
            return time + work * seconds, 0.0
        work -= (change - time) / seconds
        time = change
        if time >= until:
            return until, max(work, 0.0)
        if not together:
            _turn(cpu, processors, time, trees)
            speed, turn = speeds[1], changes[1]
        while together and turn <= time:
            segment += 1
            speed = _slowest(values, segment * row, processors)
            turn = times[segment + 1] if segment + 1 < len(times) else np.inf


class PackedChunk(NamedTuple):
    """CPU and links of one chunk in two arrays, which cross into compiled code cheaply.

    ``borders`` begins with where each field ends, twelve numbers; the fields
    of whole numbers follow.
    """

    numbers: FloatArray
    borders: IntArray


def pack(cpu: CpuChunk, links: LinkChunk) -> PackedChunk:
    """Return a chunk as `advance_packed` takes it."""
    floats = (
        cpu.times,
        cpu.values,
        links.start,
        links.end,
        links.available,
        links.longest,
        links.most,
    )
    whole = (cpu.time_at, cpu.value_at, cpu.counts, links.source, links.destination)
    float_ends = np.cumsum([len(field) for field in floats])
    whole_ends = len(floats) + len(whole) + np.cumsum([len(field) for field in whole])
    return PackedChunk(
        np.concatenate(floats), np.concatenate((float_ends, whole_ends, *whole)).astype(np.int64)
    )


@compiled(makes_arrays=True, inline="always")
def unpack(numbers, borders):  # type: ignore[no-untyped-def]
    """Return CPU and links of a packed chunk, which they lie in."""
    b = borders
    cpu = CpuChunk(
        numbers[: b[0]], b[12 : b[7]], numbers[b[0] : b[1]], b[b[7] : b[8]], b[b[8] : b[9]]
    )
    links = LinkChunk(
        numbers[b[1] : b[2]],
        numbers[b[2] : b[3]],
        b[b[9] : b[10]],
        b[b[10] : b[11]],
        numbers[b[3] : b[4]],
        numbers[b[4] : b[5]],
        numbers[b[5] : b[6]],
    )
    return cpu, links


@compiled()
def advance_packed(numbers, borders, own, nodes, span, task, room) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """Run a job within one packed chunk, as `advance` does."""
    cpu, links = unpack(numbers, borders)
    return advance(cpu, links, own, nodes, span, task, room)


@compiled()
def add_integrals(cpu, processors, start, end, totals):  # type: ignore[no-untyped-def]
    """Add to `totals` the integral of each processor's CPU over [start, end) in this chunk."""
    stride = _stride(cpu)
    for i in range(len(processors)):
        p = processors[i]
        k = _place(cpu.times, cpu.time_at[p], cpu.counts[p], start)
        time = start
        while time < end:
            change = end
            if k + 1 < cpu.counts[p]:
                change = min(end, cpu.times[cpu.time_at[p] + k + 1])
            totals[i] += (change - time) * cpu.values[cpu.value_at[p] + k * stride]
            time = change
            k += 1


@compiled()
def read_cpu(cpu, processors, times, out):  # type: ignore[no-untyped-def]
    """Write the CPU of each processor at each of the ascending times to out[time, processor]."""
    stride = _stride(cpu)
    for i in range(len(processors)):
        p = processors[i]
        first, count = cpu.time_at[p], cpu.counts[p]
        k = _place(cpu.times, first, count, times[0])
        for j in range(len(times)):
            while k + 1 < count and cpu.times[first + k + 1] <= times[j]:
                k += 1
            out[j, i] = cpu.values[cpu.value_at[p] + k * stride]


@compiled(makes_arrays=True)
def own_links(links, inside, start, end, border):  # type: ignore[no-untyped-def]
    """Return the intervals of the job's own links that touch [start, end], clipped to the chunk.

    A row each: start, end, source, destination, available; `border` is where the chunk
    begins and ends.
    """
    low = np.searchsorted(links.start, start - links.longest[0])
    high = np.searchsorted(links.start, end, side="right")
    rows, count = np.empty((high - low, 5)), 0
    for k in range(low, high):
        if links.end[k] > start and inside[links.source[k]] and inside[links.destination[k]]:
            rows[count, 0] = max(links.start[k], border[0])
            rows[count, 1] = min(links.end[k], border[1])
            rows[count, 2], rows[count, 3] = links.source[k], links.destination[k]
            rows[count, 4] = links.available[k]
            count += 1
    return rows[:count]
