"""The engine's schedules equal those of schedulers written the obvious way."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import NaiveScheduler, shortest, unicep
from toys import replay, rigid

from sim.engine.invariants import Checker
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.conservative import Conservative
from sim.policies.base import Policy
from sim.policies.order import ShortestFirst, Unicep

MACHINE = 6


@st.composite
def traces(draw: st.DrawFn) -> list[tuple[float, int, float, float]]:
    """Draw crowded traces: few instants, so that many things happen at once."""
    number = draw(st.integers(1, 18))
    rows = []
    clock = 0
    for _ in range(number):
        clock += draw(st.integers(0, 4))
        runtime = draw(st.integers(1, 12))
        estimate = draw(st.one_of(st.just(runtime), st.integers(1, 30)))
        rows.append((float(clock), draw(st.integers(1, MACHINE)), float(runtime), float(estimate)))
    return rows


@pytest.mark.parametrize("rule", ["none", "skip", "easy", "conservative", "replan"])
@settings(max_examples=400)
@given(rows=traces())
def test_schedule_equals_the_naive_one(rule: str, rows: list[tuple[float, ...]]) -> None:
    expected = NaiveScheduler(rows, MACHINE, rule).run()
    assert replay(rows, MACHINE, rigid(rule), watchers=(Checker(),)).start_time.tolist() == expected


ORDERS = {"shortest": (ShortestFirst(), shortest), "unicep": (Unicep("as_two"), unicep)}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rule", ["conservative", "replan"])
@settings(max_examples=100)
@given(rows=traces())
def test_conservative_schedules_in_another_order_equal_the_naive_ones(
    rule: str, order: str, rows: list[tuple[float, ...]]
) -> None:
    """Newcomers are ranked among themselves; nobody looks when a plan that is no more said so."""
    rule_order, key = ORDERS[order]
    policy = Policy(rule_order, Conservative(replan=rule == "replan"), Request())
    expected = NaiveScheduler(rows, MACHINE, rule, key).run()
    assert replay(rows, MACHINE, policy, watchers=(Checker(),)).start_time.tolist() == expected
