"""No policy can tell two runtimes apart before one of them is over."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_against_naive import traces
from toys import BACKFILLS, replay, rigid

from sim.policies.order import FirstComeFirstServed, ShortestFirst, Wfp3

ORDERS = {"fcfs": FirstComeFirstServed(), "sjf": ShortestFirst(), "wfp3": Wfp3()}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rule", BACKFILLS)
@settings(max_examples=60)
@given(rows=traces(), data=st.data())
def test_decisions_before_an_end_do_not_depend_on_it(
    rule: str, order: str, rows: list, data: st.DataObject
) -> None:
    job = data.draw(st.integers(0, len(rows) - 1))
    other = data.draw(st.integers(1, 40))
    submit, processors, runtime, estimate = rows[job]
    changed = [*rows]
    changed[job] = (submit, processors, float(other), estimate)
    policy = rigid(rule, ORDERS[order])
    one, two = replay(rows, 6, policy), replay(changed, 6, policy)
    known = one.start_time[job] + min(runtime, other)
    for before, after in zip(one.start_time, two.start_time, strict=True):
        if min(before, after) < known:
            assert before == after
