"""Guarantees of LPA and FAIR, against optima found by brute force."""

from itertools import product
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moldable_toys import mold

from sim.policies.allocation.iterative import UtilizationBased
from sim.policies.allocation.local import TOPC24, Fair, LocalAllocation, balanced, fair_mu
from sim.policies.allocation.turnaround import BestTurnaround

JOBS = 4
RATIO_ICPP22 = {"roofline": 2.62, "communication": 3.61, "amdahl": 4.74, "general": 5.72}
RATIO_TOPC24 = {"roofline": 2.62, "communication": 3.40, "amdahl": 4.55, "general": 4.63}


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
        assert balanced(counts, np.array(row))[1] == pytest.approx(balance(row))
    found = length("skip", Fair(), times, processors)
    assert found <= best_makespan(times, processors) / fair_mu(ratio) * (1 + 1e-9)


def balance(row):
    """Return the least over counts of the worse of area and time over their least."""
    areas = [n * seconds for n, seconds in enumerate(row, 1)]
    return min(max(a / min(areas), t / min(row)) for a, t in zip(areas, row, strict=True))


def good_makespan(times, processors):
    """Return the makespan of the best of several plans: no less than the least."""
    rule = BestTurnaround(counts="all")
    lengths = [length(kind, rule, times, processors) for kind in ("easy", "replan")]
    lengths.append(length("replan", UtilizationBased(), times, processors))
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


def test_published_constants_of_fair_and_lpa():
    for ratio, model in ((1, "roofline"), (np.sqrt(2), "communication"), (2, "amdahl")):
        published = {"roofline": 2.62, "communication": 3.41, "amdahl": 4.56}[model]
        assert ceil(100 / fair_mu(ratio) - 1e-9) / 100 == pytest.approx(published, abs=0.011)
    assert TOPC24["communication"][1] == pytest.approx(0.29490, abs=1e-5)
    assert TOPC24["amdahl"] == pytest.approx((1.883, 0.21995), abs=1e-3)
    assert TOPC24["general"][1] == pytest.approx(0.21607, abs=1e-5)
