"""Compiled loops over samples of load: which links were loaded at each, what they lacked in all."""

import numpy as np

from predictors.compiling import njit


@njit(cache=True)
def loaded_at(starts, stops, longest, times):  # type: ignore[no-untyped-def]
    """Return how many intervals, sorted by start, hold each time, and which, time after time."""
    counts = np.zeros(len(times), np.int64)
    picked = np.empty(64, np.int64)
    number = 0
    for j in range(len(times)):
        first = np.searchsorted(starts, times[j] - longest)
        while first < len(starts) and starts[first] <= times[j]:
            if stops[first] > times[j]:
                if number == len(picked):
                    picked = np.append(picked, np.empty_like(picked))
                picked[number] = first
                number += 1
                counts[j] += 1
            first += 1
    return counts, picked[:number]


@njit(cache=True)
def least_in_rows(values, places):  # type: ignore[no-untyped-def]
    """Return the least value of some places in every row."""
    found = np.empty(values.shape[0])
    for row in range(values.shape[0]):
        low = np.inf
        for place in places:
            low = min(low, values[row, place])
        found[row] = low
    return found


@njit(cache=True)
def lowest_own_link(counts, source, destination, available, inside):  # type: ignore[no-untyped-def]
    """Return the least bandwidth among own links at every sample."""
    least, k = np.ones(len(counts)), 0
    for sample in range(len(counts)):
        for _ in range(counts[sample]):
            if inside[source[k]] and inside[destination[k]]:
                least[sample] = min(least[sample], available[k])
            k += 1
    return least


@njit(cache=True)
def add_rows(sums, rows):  # type: ignore[no-untyped-def]
    """Add rows to sums, one after the other."""
    for row in range(rows.shape[0]):
        for place in range(rows.shape[1]):
            sums[place] += rows[row, place]


@njit(cache=True)
def add_lost(counts, available, lost):  # type: ignore[no-untyped-def]
    """Add what the links of each sample lack to sums, from the link that lacks most on."""
    last = 0
    for count in counts:
        lacking = np.sort(1.0 - available[last : last + count])
        last += count
        for k in range(count):
            lost[k] += lacking[count - 1 - k]


@njit(cache=True)
def _sum(values):  # type: ignore[no-untyped-def]
    """Return the sum of values, added up in pairs as NumPy does."""
    number, total = len(values), 0.0
    if number < 8:
        for value in values:
            total += value
        return total
    if number > 128:
        half = number // 2
        half -= half % 8
        return _sum(values[:half]) + _sum(values[half:])
    sums, done = values[:8].copy(), 8
    while done + 8 <= number:
        for k in range(8):
            sums[k] += values[done + k]
        done += 8
    total = (sums[0] + sums[1]) + (sums[2] + sums[3])
    total += (sums[4] + sums[5]) + (sums[6] + sums[7])
    for k in range(done, number):
        total += values[k]
    return total


@njit(cache=True)
def tally_links(counts, keys, available, before):  # type: ignore[no-untyped-def]
    """Return what links lacked in samples, in all, and how many the sample before had too.

    `before` holds those of the sample before the first.
    """
    lost, kept, last = np.zeros(len(counts)), 0, 0
    for s in range(len(counts)):
        own = keys[last : last + counts[s]]
        lost[s] = _sum(1.0 - available[last : last + counts[s]])
        last += counts[s]
        if len(before):
            place = 0
            for key in own:
                for _ in range(len(before)):
                    place = (place + 1) % len(before)
                    if before[place] == key:
                        kept += 1
                        break
        before = own
    return lost, kept
