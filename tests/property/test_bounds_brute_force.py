"""Lower bounds against the best of all schedules of a few jobs."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_schedules import feasible_counts, make_trace, moldable_truth, random_run

from sim.results.lower_bounds import (
    Least,
    least_costs,
    makespan_bound,
    preemptive_sums,
    response_bounds,
)
from sim.results.metrics import summarise
from sim.results.outcome import outcome
from tests.former import build_truth
from workloads.shapes.analytic import Downey
from workloads.streams import Streams

MACHINE = 3


def instance(seed, jobs=4, *, together=False, **options):
    rng = np.random.default_rng(seed)
    submit = np.zeros(jobs) if together else np.sort(rng.integers(0, 12, jobs))
    trace = make_trace(
        submit, rng.integers(1, MACHINE + 1, jobs), rng.integers(1, 15, jobs) * rng.uniform(0.5, 1)
    )
    return trace, moldable_truth(trace, rng, MACHINE, **options)


def place(order, counts, submit, runtime):
    """Each job in order at the earliest instant at which its processors are free throughout."""
    placed = []
    ends = np.zeros(len(order))
    for job in order:
        n, length = counts[job], runtime[job][counts[job]]
        starts = sorted({submit[job], *[e for _, e, _ in placed if e > submit[job]]})
        for begin in starts:
            marks = [begin, *[b for b, _, _ in placed if begin < b < begin + length]]
            if all(sum(m for b, e, m in placed if b <= t < e) + n <= MACHINE for t in marks):
                break
        placed.append((begin, begin + length, n))
        ends[job] = begin + length
    return ends


def best(trace, truth):
    """Least mean response and least makespan over all orders and counts."""
    jobs = len(trace.jobs)
    submit = trace.jobs["submit_time"].to_numpy()
    choices = [feasible_counts(truth, job, MACHINE) for job in range(jobs)]
    runtime = [
        {n: float(truth.runtimes(job, np.array([n]))[0]) for n in choices[job]}
        for job in range(jobs)
    ]
    response = makespan = np.inf
    for counts in product(*choices):
        for order in permutations(range(jobs)):
            ends = place(order, counts, submit, runtime)
            response = min(response, (ends - submit).mean())
            makespan = min(makespan, ends.max() - submit[0])
    return response, makespan


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.booleans())
def test_no_schedule_beats_the_bounds(seed, together):
    trace, truth = instance(seed, together=together)
    least = least_costs(trace, truth, MACHINE)
    submit = trace.jobs["submit_time"].to_numpy()
    response, makespan = best(trace, truth)
    bounds = response_bounds(submit, least, MACHINE, fixed_allotment=True)
    assert max(bounds.values()) <= response * (1 + 1e-12)
    assert makespan_bound(submit, least, MACHINE) <= makespan * (1 + 1e-12)


def test_bounds_of_jobs_at_time_zero_are_near_the_best_schedule():
    ratios = []
    for seed in range(25):
        trace, truth = instance(seed, together=True, superlinear=False)
        least = least_costs(trace, truth, MACHINE)
        bounds = response_bounds(np.zeros(4), least, MACHINE, fixed_allotment=True)
        ratios.append(max(bounds.values()) / best(trace, truth)[0])
    assert max(ratios) <= 1 + 1e-12
    assert min(ratios) >= 0.7


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.booleans(),
    st.sampled_from([None, (1, 2, 4), (1, 4, 9), (2,)]),
)
def test_least_costs_are_least_over_feasible_counts(seed, shared, allowed):
    rng = np.random.default_rng(seed)
    machine = 9
    trace = make_trace(np.zeros(8), rng.integers(1, 10, 8), rng.uniform(1, 9, 8))
    truth = moldable_truth(trace, rng, machine, allowed=allowed)
    object.__setattr__(truth, "shared_shape", shared)
    least = least_costs(trace, truth, machine)
    for job in range(8):
        counts = np.array(feasible_counts(truth, job, machine))
        runtime = truth.runtimes(job, counts)
        assert least.area[job] <= (runtime * counts).min() * (1 + 1e-12)
        assert least.time[job] <= runtime.min() * (1 + 1e-12)
        if allowed is None or not shared:  # a stand-in may know one more count
            assert least.area[job] == pytest.approx((runtime * counts).min())
            assert least.time[job] == pytest.approx(runtime.min())


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 9), st.booleans())
def test_any_schedule_lies_above_its_bounds(seed, jobs, processors, plain):
    trace, truth, records = random_run(seed, jobs, processors, plain=plain)
    got = summarise(outcome(trace, truth, records))
    assert got["bound_mean_response_time"] <= got["mean_response_time"] * (1 + 1e-12)
    assert got["bound_makespan"] <= got["makespan"] * (1 + 1e-12)
    for name in ("makespan", "mean_response_time"):
        if got[name] is None or not got[f"bound_{name}"]:
            assert got[f"{name}_over_bound"] is None
        else:
            assert got[f"{name}_over_bound"] == pytest.approx(got[name] / got[f"bound_{name}"])
            assert got[f"{name}_over_bound"] >= 1 - 1e-12
    resized = got["reallocations"] > 0
    assert (got["bound_mean_response_mixed"] is None) == resized


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_sweep_in_small_time_steps(seed):
    rng = np.random.default_rng(seed)
    release = np.sort(rng.integers(0, 12, 6)).astype(float)
    size = rng.integers(1, 6, 6).astype(float)
    for by_remaining in (True, False):
        left, response, busy = size.copy(), 0.0, np.zeros(6)
        for tick in range(100):  # sizes and releases are whole, so are preemptions
            ready = [j for j in range(6) if release[j] <= tick and left[j] > 0]
            if ready:
                job = min(ready, key=lambda j: (left[j] if by_remaining else size[j], j))
                left[job] -= 1
                busy[job] += tick + 0.5
                response += (left[job] == 0) * (tick + 1 - release[job])
        found, mean_busy = preemptive_sums(release, size, by_remaining=by_remaining)
        if by_remaining:
            assert found == pytest.approx(response)
        else:
            assert mean_busy == pytest.approx((busy / size - release).sum())


def test_closed_forms_of_jobs_at_time_zero():
    area, time = np.array([6.0, 2.0, 4.0]), np.array([3.0, 1.0, 1.0])
    bounds = response_bounds(np.zeros(3), Least(area, time), 2, fixed_allotment=True)
    squashed = (3 * 2 + 2 * 4 + 1 * 6) / 2
    assert bounds["height"] == pytest.approx(5 / 3)
    assert bounds["squashed"] == pytest.approx(squashed / 3)
    assert bounds["mixed"] == pytest.approx((squashed - 12 / 4 + 5 / 2) / 3)
    assert makespan_bound(np.zeros(3), Least(area, time), 2) == 6.0


def test_makespan_counts_areas_of_late_jobs():
    least = Least(np.array([2.0, 8.0, 8.0]), np.array([1.0, 1.0, 1.0]))
    assert makespan_bound(np.array([5.0, 10.0, 12.0]), least, 2) == 10 + 16 / 2 - 5


def test_compiled_sweep_gives_the_same_bits(monkeypatch):
    rng = np.random.default_rng(5)
    release, size = np.sort(rng.uniform(0, 900, 1500)), rng.exponential(0.5, 1500)
    for by_remaining in (True, False):
        slow = preemptive_sums(release, size, by_remaining=by_remaining)
        with monkeypatch.context() as patch:
            patch.setattr("sim.results.lower_bounds.COMPILED_JOBS", 1)
            assert preemptive_sums(release, size, by_remaining=by_remaining) == slow


@pytest.mark.parametrize("exponent", [0.0, 0.3])
def test_shapes_of_the_ground_truth_are_shared_unless_they_grow_with_size(exponent):
    rng = np.random.default_rng(3)
    trace = make_trace(np.arange(40.0), rng.integers(1, 33, 40), rng.uniform(1, 999, 40))
    truth = build_truth(trace, Downey(), Streams(seed=1), 64, size_exponent=exponent)
    assert truth.shared_shape == (exponent == 0.0)
    least = least_costs(trace, truth, 64)
    for job in range(40):
        counts = np.arange(truth.min_processors[job], truth.max_processors[job] + 1)
        runtime = truth.runtimes(job, counts)
        assert least.area[job] == pytest.approx((runtime * counts).min())
        assert least.time[job] == pytest.approx(runtime.min())
