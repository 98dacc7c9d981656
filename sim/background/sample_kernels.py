"""Compiled loops over samples of load: which links were loaded at each, what they lacked in all."""

import numpy as np

from predictors.compiling import compiled


@compiled(makes_arrays=True)
def _disturbed(value, place, time, noise) -> float:  # type: ignore[no-untyped-def]
    """Return a reading with log-normal noise addressed by place and time, bit by bit."""
    mask = np.uint64(0xFFFFFFFFFFFFFFFF)
    key, spread, floor = noise
    state = np.uint64(key) ^ (np.uint64(place) * np.uint64(0x9E3779B97F4A7C15))
    state ^= np.uint64(time) * np.uint64(0xD1B54A32D192ED03)
    draws = np.empty(2)
    for part in range(2):
        state = (state + np.uint64(0x9E3779B97F4A7C15)) & mask
        z = state
        z = ((z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)) & mask
        z = ((z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)) & mask
        z ^= z >> np.uint64(31)
        draws[part] = (np.float64(z >> np.uint64(11)) + 0.5) / 9007199254740992.0
    normal = np.sqrt(-2 * np.log(draws[0])) * np.cos(2 * np.pi * draws[1])
    return float(min(1.0, max(floor, value * np.exp(spread * normal))))


@compiled()
def add_noise(values, places, times, noise):  # type: ignore[no-untyped-def]
    """Disturb values[time, place]; `noise` holds key, spread and the least reading."""
    for j in range(values.shape[0]):
        for i in range(values.shape[1]):
            values[j, i] = _disturbed(values[j, i], places[i], times[j], noise)


@compiled(makes_arrays=True)
def least_of(read, believed, kept, oldest, places):  # type: ignore[no-untyped-def]
    """Return the least of some places in each sample, and on average in `believed`.

    Of shape (places, samples) both; so many samples are there. They go round: the oldest
    comes first in the answer.
    """
    low, below, found = np.full(kept, np.inf), np.full(kept, np.inf), np.empty(kept)
    for place in places:
        for at in range(kept):
            low[at] = min(low[at], read[place, at])
            below[at] = min(below[at], believed[place, at])
    for at in range(kept):
        found[at - oldest if at >= oldest else at - oldest + kept] = low[at]
    return found, _sum(below) / kept


@compiled(makes_arrays=True)
def least_of_first(values, kept, ranked):  # type: ignore[no-untyped-def]
    """Return the least of the first place, the first two, ..., on average over so many samples."""
    found, least = np.empty(len(ranked)), np.full(kept, np.inf)
    for k in range(len(ranked)):
        for at in range(kept):
            least[at] = min(least[at], values[ranked[k], at])
        found[k] = _sum(least) / kept
    return found


@compiled()
def least_own(source, destination, available, inside) -> float:  # type: ignore[no-untyped-def]
    """Return the least bandwidth among links between nodes that are inside; 1 without any."""
    least = 1.0
    for k in range(len(available)):
        if inside[source[k]] and inside[destination[k]]:
            least = min(least, available[k])
    return least


@compiled(makes_arrays=True)
def lowest_own_link(counts, source, destination, available, inside):  # type: ignore[no-untyped-def]
    """Return the least bandwidth among own links at every sample."""
    least, k = np.ones(len(counts)), 0
    for sample in range(len(counts)):
        for _ in range(counts[sample]):
            if inside[source[k]] and inside[destination[k]]:
                least[sample] = min(least[sample], available[k])
            k += 1
    return least


@compiled()
def add_rows(sums, rows):  # type: ignore[no-untyped-def]
    """Add rows to sums, one after the other."""
    for row in range(rows.shape[0]):
        for place in range(rows.shape[1]):
            sums[place] += rows[row, place]


@compiled(makes_arrays=True)
def add_lost(counts, available, lost):  # type: ignore[no-untyped-def]
    """Add what the links of each sample lack to sums, from the link that lacks most on."""
    last = 0
    for count in counts:
        lacking = np.sort(1.0 - available[last : last + count])
        last += count
        for k in range(count):
            lost[k] += lacking[count - 1 - k]


@compiled()
def _sum(values) -> float:  # type: ignore[no-untyped-def]
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
    a, b, c, d = values[0], values[1], values[2], values[3]
    e, f, g, h = values[4], values[5], values[6], values[7]
    done = 8
    while done + 8 <= number:
        a, b, c, d = (
            a + values[done],
            b + values[done + 1],
            c + values[done + 2],
            d + values[done + 3],
        )
        e, f, g, h = (
            e + values[done + 4],
            f + values[done + 5],
            g + values[done + 6],
            h + values[done + 7],
        )
        done += 8
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for k in range(done, number):
        total += values[k]
    return float(total)


@compiled(makes_arrays=True)
def squares_of(series, mean):  # type: ignore[no-untyped-def]
    """Return the sums of squared deviations of all rows but one end, and of products of neighbours.

    Parameters
    ----------
    series : numpy.ndarray, shape (samples, places)
    mean : numpy.ndarray, shape (places,)

    Returns
    -------
    float
        Of all but the last, plus of all but the first.
    float
    """
    rows, places = series.shape
    number, k = max(rows - 1, 0) * places, 0
    before, after, both = np.empty(number), np.empty(number), np.empty(number)
    for row in range(rows - 1):
        for place in range(places):
            early, late = series[row, place] - mean[place], series[row + 1, place] - mean[place]
            before[k], after[k], both[k] = early * early, late * late, early * late
            k += 1
    return _sum(before) + _sum(after), _sum(both)


@compiled(makes_arrays=True)
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


@compiled(makes_arrays=True)
def sample_links(rows, times, size, noise):  # type: ignore[no-untyped-def]
    """Return the least that samples find of some links, and what each was on average.

    Parameters
    ----------
    rows : numpy.ndarray, shape (intervals, 5)
        As `BackgroundLoad.loaded_links` has them.
    times : numpy.ndarray of float, shape (samples,), ascending
    size : tuple of int
        How many nodes and processors there are.
    noise : tuple
        Key, spread and the least reading, as for `add_noise`.

    Returns
    -------
    numpy.ndarray, shape (samples,)
    numpy.ndarray, shape (links,)
        Of the links that any sample finds loaded.
    """
    first, last = np.searchsorted(times, rows[:, 0]), np.searchsorted(times, rows[:, 1])
    seen = np.flatnonzero(last > first)
    keys = (rows[seen, 2] * size[0] + rows[seen, 3]).astype(np.int64)
    order, bits = np.argsort(keys, kind="mergesort"), times.view(np.uint64)
    least, average = np.ones(len(times)), np.empty(len(seen))
    line, links = np.ones(len(times)), 0
    for k in range(len(order)):
        row, key = seen[order[k]], keys[order[k]]
        for at in range(first[row], last[row]):
            line[at] = rows[row, 4]
            if noise[1] > 0.0 and line[at] < 1.0:
                line[at] = _disturbed(line[at], key + size[0] + size[1], bits[at], noise)
            least[at] = min(least[at], line[at])
        if k + 1 == len(order) or keys[order[k + 1]] != key:
            average[links] = _total(line, links == 0 and k + 1 == len(order)) / len(times)
            line[:] = 1.0
            links += 1
    return least, average[:links]


@compiled()
def _total(values, in_pairs) -> float:  # type: ignore[no-untyped-def]
    """Return the sum of values, as NumPy adds up a matrix of one column, or of several."""
    if in_pairs:
        return _sum(values)
    total = 0.0
    for value in values:
        total += value
    return total
