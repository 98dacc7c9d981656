"""Guarantees of two-phase scheduling, against optima found by brute force."""

import by_name  # noqa: F401 (names of rules)
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from published_rules.batch import Batches, BatchScheduler
from published_rules.deadlines import lean_candidate
from published_rules.shelves import Curve, dual_step
from test_advice import superlinear, view_of
from test_moldable_guarantees import JOBS, TOPC24, best_makespan, larger_batches, length

from sim.policies.allocation.turnaround import BestTurnaround
from sim.policies.order import FirstComeFirstServed


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


def test_two_shelves_plan_with_raised_areas_and_believe_the_curve(monkeypatch):
    planned = []

    def look_at(curves, *rest):
        planned.extend(curves)

    monkeypatch.setattr("published_rules.batch.two_shelves", look_at)
    view, _ = view_of(superlinear, learns=False, seen=())
    rule = Batches("mounie_rapine_trystram")
    scheduler = BatchScheduler(view, FirstComeFirstServed(), BestTurnaround(counts="all"), rule)
    view._state.arrived.append(0)
    (start,) = scheduler.decide()
    assert (np.diff(planned[0].counts * planned[0].runtimes) >= -1e-9).all()
    assert view.belief(0, start.processors) == superlinear(start.processors)


def test_of_equal_areas_the_smaller_count_is_the_leanest():
    assert lean_candidate(np.array([2, 4]), np.array([10.0, 5.0 - 1e-12]), 0, 2, 20.0) == 0
