"""Malleable jobs that go on without a failed node (``cluster.shrink_off_failed``)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from malleables import power_truth, stretches_of
from test_reallocation import RULES, mixed_truth
from test_recoveries import assert_failed_nodes_are_left_alone, outages
from toys import BACKFILLS, ToyOracle, ToyTruth, trace_of

from sim.engine.invariants import Checker
from sim.engine.setup import Setup
from sim.evolving.recovery import simulate_recovering
from sim.evolving.settings import Evolving
from sim.machine.failing import Failing
from sim.policies.allocation.rigid import Request
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from sim.policies.reallocation.costs import Constant
from sim.policies.reallocation.equi import Equipartition
from workloads.streams import Streams

HALVES = {"processors_per_node": 4, "mtbf": 400.0, "repair": 30.0}


def play(
    rows: list, truth: ToyTruth, machine: Failing, seed: int = 1, rule: object = None,
    backfill: str = "easy", evolving: Evolving | None = None,
) -> tuple:  # fmt: skip
    """Replay rows on a failing machine of 8 processors, with the checker on."""
    trace, streams = trace_of(rows), Streams(seed)
    bound = machine.bound(streams, 0.0)
    counts = trace.jobs["requested_processors"].to_numpy()
    scene = None if evolving is None else evolving.scene(counts, streams, bound)
    policy = Policy(FirstComeFirstServed(), BACKFILLS[backfill], Request(), rule)
    watchers = (Checker(),)
    predictor = ToyOracle(truth)
    records = simulate_recovering(
        Setup(trace, truth, policy, predictor, bound, watchers=watchers), scene
    )
    return records, bound


def lone(least: int = 1) -> ToyTruth:
    """1600 processor-seconds on any count from `least` to 8."""
    truth = power_truth([1600.0], [1.0], 8)
    truth.reference[:] = 8
    truth.min_processors[:] = least
    return truth


LONE = [(0.0, 8, 200.0)]


def test_a_malleable_job_goes_on_without_a_failed_node_at_its_cost() -> None:
    """It loses half of its processors at the failure, pauses 3 + 2 s, and gets them back."""
    machine = Failing(8, **HALVES, shrink_off_failed=True, shrink_seconds=3.0)
    for seed in range(20):
        records, bound = play(LONE, lone(), machine, seed, Equipartition(Constant(2.0)))
        hits = outages(bound, records.end_time[0])
        if len(hits) == 1 and hits[0][2] < 200.0:
            break
    node, begin, end = hits[0]
    kept = "4-7" if node == 0 else "0-3"
    assert stretches_of(records, 0) == [(0.0, 8), (begin, 4), (end, 8)]
    assert [str(low) + "-" + str(high) for low, high in records.allocations.nodes[1]] == [kept]
    assert records.restarts.tolist() == [0]
    left = 1600.0 - 8 * begin - 4 * (end - begin - 5.0)
    assert records.end_time[0] == pytest.approx(end + 2.0 + left / 8, rel=1e-12)
    assert records.counters["shrunk_runs"] == 1.0
    assert records.counters["interrupted_runs"] == 0.0
    assert records.counters["reallocation_time"] == 7.0
    assert records.counters["reallocation_area"] == 5.0 * 4 + 2.0 * 8
    assert records.failure_costs.lost_work[0] == 0.0


@pytest.mark.parametrize(
    ("least", "malleable", "option"), [(5, True, True), (1, False, True), (1, True, False)]
)
def test_it_dies_where_it_must(least: int, malleable: bool, option: bool) -> None:
    """Below its least count, where it is not malleable, or where nobody asked for it."""
    machine = Failing(8, **HALVES, shrink_off_failed=option)
    truth = lone(least)
    truth.malleable = np.array([malleable])
    for seed in range(20):
        records, bound = play(LONE, truth, machine, seed, Equipartition())
        if outages(bound, 200.0):
            break
    assert records.restarts[0] >= 1
    assert records.counters.get("shrunk_runs", 0.0) == 0.0
    assert records.failure_costs.lost_work[0] > 0.0


def test_who_begins_again_does_all_of_its_work_on_what_it_then_holds() -> None:
    """A run that was resized is lost; the shares that the last run did in its stretches add up."""
    truth = power_truth([800.0, 400.0, 300.0], [0.5, 0.5, 0.5], 8)
    truth.reference[:] = 8
    rows = [(at, 8, truth.runtime(job, 8)) for job, at in enumerate((0.0, 60.0, 180.0))]
    resized_twice = 0
    for seed in range(20):
        records, _ = play(rows, truth, Failing(8, **HALVES), seed, Equipartition())
        held = records.allocations
        for job in range(3):
            runs = [held.run[k] for k in np.flatnonzero(held.job == job)]
            own = np.flatnonzero((held.job == job) & (held.run == records.restarts[job]))
            shares = [
                (held.end_time[k] - held.start_time[k]) / truth.runtime(job, held.processors[k])
                for k in own
            ]
            assert sum(shares) == pytest.approx(1.0)
            resized_twice += len(own) > 1 and any(runs.count(k) > 1 for k in range(runs[-1]))
    assert resized_twice > 0


def test_feasible_counts_are_kept() -> None:
    """Of 8 on nodes of 3 a failure leaves 5 or more; the job goes on with 4."""
    machine = Failing(8, 3, mtbf=400.0, repair=1e6, shrink_off_failed=True)
    truth = lone()
    truth.allowed = np.array([2, 4, 8])
    for seed in range(20):
        records, bound = play(LONE, truth, machine, seed)
        if outages(bound, 200.0):
            break
    assert_failed_nodes_are_left_alone(records, bound)
    assert [n for _, n in stretches_of(records, 0)][:2] == [8, 4]
    assert records.counters["shrunk_runs"] >= 1.0


@settings(max_examples=60)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 100).map(float),
            st.sampled_from([1, 2, 4, 8]),
            st.floats(1.0, 200.0),
        ),
        min_size=1,
        max_size=10,
    ).map(sorted),
    rule=st.sampled_from([None, "equi", "pools", "hesrpt", "pdpa"]),
    backfill=st.sampled_from(["none", "easy", "conservative", "replan"]),
    width=st.sampled_from([1, 3, 4]),
    evolves=st.sampled_from([None, 0.5]),
    seed=st.integers(0, 50),
)
def test_work_is_kept_through_failures(
    rows: list, rule: str | None, backfill: str, width: int, evolves: float | None, seed: int
) -> None:
    """All jobs end; malleable ones die only with all their nodes, and else work once."""
    machine = Failing(8, width, mtbf=300.0, repair=20.0, shrink_off_failed=True)
    truth = mixed_truth(rows, 8, None)
    evolving = None if evolves is None else Evolving(share=evolves, cycles=40)
    reallocation = None if rule is None else RULES[rule]()
    records, bound = play(rows, truth, machine, seed, reallocation, backfill, evolving)
    assert_failed_nodes_are_left_alone(records, bound)
    assert set(records.status) == {"completed"}
    held = records.allocations
    for k in np.flatnonzero(held.run < records.restarts[held.job]).tolist():
        is_last = (held.run[k], held.job[k]) not in zip(
            held.run[k + 1 :], held.job[k + 1 :], strict=True
        )
        if truth.malleable[held.job[k]] and is_last:
            assert held.nodes[k][0][0] // width == held.nodes[k][-1][1] // width
    seconds = held.end_time - held.start_time
    done = np.bincount(held.job, seconds / truth.runtimes_at(held.job, held.processors))
    unharmed = truth.malleable & ~records.failure_costs.evolving & (records.restarts == 0)
    np.testing.assert_allclose(done[unharmed], 1.0, rtol=1e-9)
