"""Short cuts of rules that settle every count, against the definitions they stand for."""

from math import inf, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.policies.advice import JobCurve
from sim.policies.allocation.curve import average, efficient, knee
from sim.policies.allocation.local import balanced
from sim.policies.allocation.queue_time import preferred


@st.composite
def heads(draw):
    """Draw a menu, what is free, and running jobs with a clock each."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size, runs = draw(st.integers(1, 20)), draw(st.integers(0, 8))
    counts = np.sort(rng.permutation(20)[:size]) + 1
    runtimes = 10 ** rng.uniform(-0.3, 2.7, size)
    if draw(st.booleans()):
        runtimes = np.sort(runtimes)[::-1].copy()
    held, clock = rng.integers(1, 13, runs), 10 ** rng.uniform(-0.5, 2.5, runs)
    return counts, runtimes, draw(st.integers(0, 8)), held, clock


def least_end(counts, runtimes, free, wait):
    """Return the dish of least wait and runtime, by going through all of them."""
    ends = [
        (0.0 if n <= free else wait(n - free)) + runtime
        for n, runtime in zip(counts.tolist(), runtimes.tolist(), strict=True)
    ]
    return ends.index(min(ends))


@settings(max_examples=300)
@given(head=heads())
def test_the_believed_choice_is_the_least_of_all(head):
    counts, runtimes, free, held, left = head
    left.sort()

    def wait(needed):
        freed = [end for end, total in zip(left, held.cumsum(), strict=True) if total >= needed]
        return float(freed[0]) if freed else inf

    if counts[0] <= free + held.sum():
        found = preferred(counts, runtimes, free, held, left, 0, 1.0)
        assert found == least_end(counts, runtimes, free, wait)


@settings(max_examples=300)
@given(head=heads(), median=st.booleans(), longest=st.sampled_from([200.0, 1000.0, 1e5]))
def test_the_predicted_choice_is_the_least_of_all(head, median, longest):
    counts, runtimes, free, held, age = head

    def lasts(k, wait):
        old = max(age[k], 1.0)
        return 0.0 if old + wait >= longest else log(longest / (old + wait)) / log(longest / old)

    def is_over(needed, wait):
        wide = [k for k in range(held.size) if held[k] >= needed]
        if median and wide:
            return np.prod([lasts(k, wait) for k in wide]) <= 0.5
        freed = sum(held[k] * (1.0 - lasts(k, wait)) for k in range(held.size))
        return freed >= needed - 1e-9

    def wait(needed):
        low, high = 0.0, longest
        for _ in range(40):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if is_over(needed, middle) else (middle, high)
        return high

    found = preferred(counts, runtimes, free, held, age, 1 if median else 2, longest)
    best = least_end(counts, runtimes, free, wait)
    ends = [(0.0 if counts[k] <= free else wait(counts[k] - free)) + runtimes[k]
            for k in (found, best)]  # fmt: skip
    assert found == best or ends[0] == pytest.approx(ends[1], rel=1e-12)


@settings(max_examples=200)
@given(head=heads(), serial=st.floats(1.0, 2000.0), least=st.floats(0.1, 1.0))
def test_counts_read_off_a_curve_are_those_of_the_definitions(head, serial, least):
    counts, runtimes, *_ = head
    efficacy = (serial / runtimes) ** 2 / counts
    assert efficacy[knee(counts, runtimes)] == pytest.approx(efficacy.max())
    speedup = np.floor(serial / runtimes.min() + 0.5)
    assert average(counts, runtimes, serial) == max(np.sum(counts <= speedup) - 1, 0)
    enough = np.flatnonzero(serial / (counts * runtimes) >= least)
    place = efficient(JobCurve(counts, runtimes, serial), least)
    assert place == (enough[-1] if enough.size else 0)
    usable = runtimes[: runtimes.argmin() + 1]
    areas = counts[: usable.size] * usable
    ratio = np.maximum(areas / areas.min(), usable / usable.min())
    assert balanced(counts, runtimes) == (ratio.argmin(), ratio.min())
