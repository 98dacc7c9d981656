"""Whatever evolving jobs ask for and get, no work is lost and no processor held twice."""

import numpy as np
import pytest
from asking_toys import linear, play
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.policies.grants import Grants
from sim.policies.reallocation.costs import Constant, NoCost

ROWS = st.lists(
    st.tuples(st.floats(0.0, 900.0), st.integers(1, 6), st.floats(50.0, 2000.0)),
    min_size=1,
    max_size=6,
)
GRANTS = st.none() | st.builds(
    Grants,
    wait=st.booleans(),
    harmless=st.booleans(),
    longest=st.none() | st.floats(100.0, 3000.0),
    cost=st.sampled_from([NoCost(), Constant(5.0)]),
)


@settings(max_examples=40)
@given(
    ROWS,
    GRANTS,
    st.sampled_from(["none", "easy", "conservative", "replan"]),
    st.floats(150.0, 2000.0),
    st.none() | st.floats(0.1, 1.0),
    st.booleans(),
    st.floats(0.2, 1.5),
)
def test_no_work_is_lost_and_no_processor_held_twice(
    rows, grants, rule, memory, efficiency, kills, estimate
):
    """The engine's checker watches the processors; here the books are balanced."""
    rows = sorted((submit, n, t, max(estimate * t, 100.0)) for submit, n, t in rows)
    asks = {"memory": True, "efficiency": efficiency, "walltime": kills}
    records = play(
        rows, asks, grants, rule=rule, machine=12, memory=memory, paging=1.0,
        overrun="kill" if kills else "extend",
    )  # fmt: skip
    assert records.status == ["completed"] * len(rows)
    held, paid = records.allocations, records.failure_costs
    area = (held.end_time - held.start_time) * held.processors
    whole = np.bincount(held.job, area, minlength=len(rows))
    useful = whole - paid.lost_work - paid.checkpoint_overhead - paid.restart_overhead
    assert paid.lost_work == pytest.approx(0.0, abs=1e-3)
    assert useful.sum() == pytest.approx(
        sum(n * t for _, n, t, _ in rows) + records.counters["reallocation_area"], rel=1e-4
    )
    for asked in records.requests.asked:
        assert asked.outcome in ("granted", "refused", "withdrawn")
        assert asked.answered >= asked.time
        assert 0.0 <= asked.denied_time <= records.end_time[asked.job]
        if grants is None:
            assert asked.outcome == "refused"


@settings(max_examples=20)
@given(ROWS, st.booleans(), st.sampled_from(["easy", "conservative"]))
def test_harmless_grants_keep_every_promise(rows, wait, rule):
    """With exact beliefs a reservation once made is kept: the checker sees to it."""
    rows = sorted(rows)
    work = [n * t for _, n, t in rows]
    truth = linear(work)
    truth.reference = np.array([n for _, n, _ in rows])
    records = play(
        rows, {"memory": True}, Grants(wait=wait), rule=rule, machine=12, memory=400.0,
        paging=1.0, truth=truth,
    )  # fmt: skip
    assert records.status == ["completed"] * len(rows)
