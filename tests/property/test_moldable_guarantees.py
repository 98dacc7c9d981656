"""Guarantees of LPA, FAIR and two-phase scheduling, against optima found by brute force."""

from itertools import product
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moldable_toys import mold

from sim.policies.advice import Reading
from sim.policies.allocation.local import (
    RATIO_ICPP22,
    RATIO_TOPC24,
    TOPC24,
    Fair,
    LocalAllocation,
    fair_mu,
    fair_place,
)
from sim.policies.allocation.turnaround import BestTurnaround
from sim.policies.molding.shelves import Curve, dual_step

JOBS = 4


def best_makespan(times, processors):
    """Return the least makespan of jobs at time 0; times[j][n - 1] is T_j(n)."""
    bound = max(min(row) for row in times)
    best = np.inf
    for counts in product(range(1, processors + 1), repeat=len(times)):
        runtimes = [row[n - 1] for row, n in zip(times, counts, strict=True)]
        area = sum(n * t for n, t in zip(counts, runtimes, strict=True)) / processors
        if max(area, max(runtimes), bound) < best:
            best = min(best, _shortest(counts, runtimes, processors, best))
    return best


def _shortest(counts, runtimes, processors, best):
    """Return the least makespan at fixed counts, by trying every order of starts."""

    def extend(waiting, running, now, last):
        nonlocal best
        if last >= best:
            return
        if not waiting:
            best = last
            return
        free = processors - sum(n for _, n in running)
        for job in waiting:
            if counts[job] <= free:
                end = now + runtimes[job]
                rest = tuple(j for j in waiting if j != job)
                extend(rest, [*running, (end, counts[job])], now, max(last, end))
        if running:
            following = min(end for end, _ in running)
            left = [(end, n) for end, n in running if end > following]
            extend(waiting, left, following, last)

    extend(tuple(range(len(counts))), [], 0.0, 0.0)
    return best


def general(draw, kind, processors):
    """Draw T(n) = w / min(n, n̄) + d + c(n - 1) with the terms of a kind."""
    w = draw(st.integers(1, 40))
    widest = draw(st.integers(1, processors)) if kind in ("roofline", "general") else processors
    d = draw(st.integers(0, 10)) if kind in ("amdahl", "general") else 0
    c = draw(st.integers(0, 8)) / 4 if kind in ("communication", "general") else 0.0
    return [w / min(n, widest) + d + c * (n - 1) for n in range(1, processors + 1)]


@st.composite
def batches(draw, kind, processors):
    number = draw(st.integers(1, JOBS))
    return [general(draw, kind, processors) for _ in range(number)]


def length(backfill, rule, times, processors):
    rows = [(0, 1, row[0]) for row in times]
    curves = [lambda n, row=row: row[n - 1] for row in times]
    return mold(backfill, rule, rows, curves, processors).end_time.max()


@pytest.mark.parametrize("kind", TOPC24)
@pytest.mark.parametrize("version", ["topc24", "icpp22"])
@settings(max_examples=25)
@given(data=st.data())
def test_lpa_is_within_its_ratio(kind, version, data):
    processors = data.draw(st.sampled_from([3, 4]))
    times = data.draw(batches(kind, processors))
    ratio = (RATIO_TOPC24 if version == "topc24" else RATIO_ICPP22)[kind]
    found = length("skip", LocalAllocation(kind, version), times, processors)
    assert found <= ratio * best_makespan(times, processors) * (1 + 1e-9)


@settings(max_examples=60)
@given(data=st.data())
def test_fair_is_within_its_ratio(data):
    processors = data.draw(st.sampled_from([3, 4]))
    kind = data.draw(st.sampled_from(sorted(TOPC24)))
    times = data.draw(batches(kind, processors))
    counts = np.arange(1, processors + 1)
    ratio = max(balance(row) for row in times)
    for row in times:
        assert fair_place(Reading(counts, np.array(row), row[0]))[1] == pytest.approx(balance(row))
    found = length("skip", Fair(), times, processors)
    assert found <= best_makespan(times, processors) / fair_mu(ratio) * (1 + 1e-9)


def balance(row):
    """Return the least over counts of the worse of area and time over their least."""
    areas = [n * seconds for n, seconds in enumerate(row, 1)]
    return min(max(a / min(areas), t / min(row)) for a, t in zip(areas, row, strict=True))


def good_makespan(times, processors):
    """Return the makespan of the best of several plans: no less than the least."""
    rule = BestTurnaround(counts="all")
    lengths = [length(kind, rule, times, processors) for kind in ("batches", "shelves")]
    sequential = [[row[0]] * processors for row in sorted(times, reverse=True)]
    return min(*lengths, length("skip", LocalAllocation("roofline"), sequential, processors))


@st.composite
def larger_batches(draw, kind):
    """Draw as many jobs as processors, or fewer, of which many are alike."""
    processors = draw(st.sampled_from([8, 12, 16]))
    sorts = [general(draw, kind, processors) for _ in range(draw(st.integers(1, 2)))]
    number = draw(st.integers(processors // 2, processors))
    return processors, [draw(st.sampled_from(sorts)) for _ in range(number)]


@pytest.mark.parametrize("kind", TOPC24)
@settings(max_examples=20)
@given(data=st.data())
def test_lpa_and_fair_are_within_their_ratios_of_a_good_plan_of_many_jobs(kind, data):
    processors, times = data.draw(larger_batches(kind))
    good = good_makespan(times, processors) * (1 + 1e-9)
    for version, ratios in (("topc24", RATIO_TOPC24), ("icpp22", RATIO_ICPP22)):
        found = length("skip", LocalAllocation(kind, version), times, processors)
        assert found <= ratios[kind] * good
    ratio = max(balance(row) for row in times)
    assert length("skip", Fair(), times, processors) <= good / fair_mu(ratio)


def monotone_times(row):
    """Return a curve whose time does not grow and whose area does not fall."""
    time = np.minimum.accumulate(row)
    counts = np.arange(1, len(row) + 1)
    return (np.maximum.accumulate(time * counts) / counts).tolist()


@st.composite
def monotone_batches(draw, processors):
    row = st.lists(st.integers(1, 30), min_size=processors, max_size=processors)
    number = draw(st.integers(1, JOBS))
    return [monotone_times(draw(row)) for _ in range(number)]


def omega(times, processors):
    """Return min over d of max(d, least area of counts that end within d, over P)."""
    found = []
    for d in sorted({seconds for row in times for seconds in row}):
        counts = [next((n for n, t in enumerate(row, 1) if t <= d), None) for row in times]
        if None not in counts:
            area = sum(n * row[n - 1] for n, row in zip(counts, times, strict=True))
            found.append(max(d, area / processors))
    return min(found)


@settings(max_examples=80)
@given(data=st.data())
def test_two_phase_is_within_twice_its_bound_and_the_optimum(data):
    processors = data.draw(st.sampled_from([3, 4]))
    times = data.draw(monotone_batches(processors))
    bound, best = omega(times, processors), best_makespan(times, processors)
    found = length("batches", BestTurnaround(counts="all"), times, processors)
    assert bound <= best * (1 + 1e-9)
    assert found <= 2 * bound * (1 + 1e-9)


@settings(max_examples=80)
@given(data=st.data())
def test_two_phase_is_within_twice_the_optimum_of_any_curves(data):
    processors = data.draw(st.sampled_from([3, 4]))
    row = st.lists(st.integers(1, 30), min_size=processors, max_size=processors)
    times = data.draw(st.lists(row, min_size=1, max_size=JOBS))
    found = length("batches", BestTurnaround(counts="all"), times, processors)
    assert found <= 2 * best_makespan(times, processors) * (1 + 1e-9)


@settings(max_examples=40)
@given(data=st.data())
def test_two_phase_is_within_twice_its_bound_for_many_jobs(data):
    processors, times = data.draw(larger_batches(data.draw(st.sampled_from(sorted(TOPC24)))))
    times = [monotone_times(row) for row in times]
    found = length("batches", BestTurnaround(counts="all"), times, processors)
    assert found <= 2 * omega(times, processors) * (1 + 1e-9)


@settings(max_examples=150)
@given(data=st.data())
def test_two_shelves_are_within_three_halves_of_the_optimum(data):
    processors = data.draw(st.sampled_from([2, 3, 4]))
    times = data.draw(monotone_batches(processors))
    found = length("shelves", BestTurnaround(counts="all"), times, processors)
    best = best_makespan(times, processors)
    assert found <= 1.5 * 1.01 * best * (1 + 1e-6)


@settings(max_examples=150)
@given(data=st.data())
def test_the_dual_step_rejects_only_what_is_shorter_than_the_optimum(data):
    processors = data.draw(st.sampled_from([2, 3, 4]))
    times = data.draw(monotone_batches(processors))
    counts = np.arange(1, processors + 1)
    curves = [Curve(counts, np.array(row)) for row in times]
    best = best_makespan(times, processors)
    deadline = best * data.draw(st.floats(0.4, 1.6))
    slots = dual_step(curves, processors, deadline)
    if slots is None:
        assert deadline < best
        return
    assert sorted(slot.job for slot in slots) == list(range(len(times)))
    placed = [
        (slot.start, slot.start + times[slot.job][slot.pick], int(counts[slot.pick]))
        for slot in slots
    ]
    assert max(end for _, end, _ in placed) <= 1.5 * deadline * (1 + 1e-6)
    for instant, _, _ in placed:
        held = [n for start, end, n in placed if start <= instant + 1e-9 < end - 1e-9]
        assert sum(held) <= processors


def test_published_constants_of_fair_and_lpa():
    for ratio, model in ((1, "roofline"), (np.sqrt(2), "communication"), (2, "amdahl")):
        published = {"roofline": 2.62, "communication": 3.41, "amdahl": 4.56}[model]
        assert ceil(100 / fair_mu(ratio) - 1e-9) / 100 == pytest.approx(published, abs=0.011)
    assert TOPC24["communication"][1] == pytest.approx(0.29490, abs=1e-5)
    assert TOPC24["amdahl"] == pytest.approx((1.883, 0.21995), abs=1e-3)
    assert TOPC24["general"][1] == pytest.approx(0.21607, abs=1e-5)
