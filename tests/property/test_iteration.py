"""Iterative molding, compiled with plans that are kept, against plans made anew each time."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import Profile

from sim.policies.allocation.iterative import iterate
from sim.policies.passes.memory import SPAN
from sim.state.availability import BelievedEnds, reserve_earliest

MACHINE = 8


@st.composite
def queues(draw):
    """Draw running jobs, and waiting ones with menus; whole seconds, so that sums are exact."""
    ends, free = [], MACHINE
    for job in range(draw(st.integers(0, 4))):
        count = draw(st.integers(1, max(free - 1, 1)))
        if count < free:
            free -= count
            ends.append((float(draw(st.integers(6, 40))), -job, count))
    menus = []
    for _ in range(draw(st.integers(1, 6))):
        counts = sorted(draw(st.sets(st.integers(1, MACHINE), min_size=1, max_size=4)))
        times = draw(st.lists(st.integers(1, 60), min_size=len(counts), max_size=len(counts)))
        serial = draw(st.sampled_from([12, 60]) | st.integers(1, 200))
        menus.append((counts, [float(t) for t in times], float(serial)))
    return sorted(ends), menus


def planned(ends, menus, steps):
    """Return the sum of the ends where each job is placed in turn, at its earliest hole."""
    profile = Profile(MACHINE)
    profile.grow(len(menus) + len(ends))
    profile.lay(5.0, BelievedEnds.of(ends))
    total = 0.0
    for (counts, times, _), step in zip(menus, steps, strict=True):
        total += reserve_earliest(profile.holes, 5.0, counts[step], times[step]) + times[step]
    return total


def loss(menu, step, by_time):
    """Return what a step loses, exactly."""
    counts, times, serial = menu
    if by_time:
        return times[step + 1] - times[step]
    areas = [Fraction(counts[k]) * Fraction(times[k]) for k in (step, step + 1)]
    return Fraction(serial) / areas[0] - Fraction(serial) / areas[1]


def stepwise(ends, menus, by_time):
    steps, best = [0] * len(menus), planned(ends, menus, [0] * len(menus))
    growing = {i for i, (counts, _, _) in enumerate(menus) if len(counts) > 1}
    while growing:
        i = min(
            growing,
            key=lambda i: (loss(menus[i], steps[i], by_time), menus[i][0][steps[i] + 1], i),
        )
        steps[i] += 1
        total = planned(ends, menus, steps)
        if total < best:
            best = total
            if steps[i] + 1 == len(menus[i][0]):
                growing.remove(i)
        else:
            steps[i] -= 1
            growing.remove(i)
    return steps


@settings(max_examples=300)
@given(queue=queues(), by_time=st.booleans())
def test_kept_plans_lead_to_the_same_counts(queue, by_time):
    ends, menus = queue
    profile = Profile(MACHINE)
    profile.lay(5.0, BelievedEnds.of(ends))
    sizes = np.array([len(counts) for counts, _, _ in menus])
    low = np.cumsum(sizes) - sizes
    spans = np.zeros(len(low), SPAN)
    spans["begin"], spans["number"], spans["low"], spans["high"] = low, sizes, low, low + sizes
    dish = iterate(
        profile.holes,
        np.concatenate([counts for counts, _, _ in menus]),
        np.concatenate([times for _, times, _ in menus]),
        spans,
        np.array([serial for *_, serial in menus]),
        by_time,
    )
    assert (dish - low).tolist() == stepwise(ends, menus, by_time)
