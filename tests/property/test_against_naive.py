"""The engine's schedules equal those of schedulers written the obvious way."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import NaiveScheduler
from toys import replay, rigid

from sim.engine.invariants import Checker

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
