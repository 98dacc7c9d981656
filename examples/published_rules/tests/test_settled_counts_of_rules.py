"""The short cut for rules that settle every count, against the whole profile."""

import pytest
from by_name import POLICIES, policy, truth_of
from hypothesis import given, settings
from hypothesis import strategies as st
from published_rules.equal_share import AdaptiveEqual, Available
from published_rules.load_efficiency import LoadPredictive
from test_moldable_invariants import MACHINE, moldable_traces
from test_settled_counts import Unsettled, scheduled

SETTLING = {
    **{name: POLICIES[name][1] for name in ("asp", "a_plus", "scojo")},
    "aep": AdaptiveEqual(counts="all"),
    "half": Available(counts="all", share=0.5),
    "scojo_p": LoadPredictive(counts="all"),
}


@pytest.mark.parametrize("backfill", ["none", "skip", "easy", "easy2", "replan"])
@pytest.mark.parametrize("name", SETTLING)
@settings(max_examples=10)
@given(jobs=moldable_traces(), factor=st.sampled_from([0.3, 1.0, 2.5]))
def test_schedules_are_those_of_the_whole_profile(name, backfill, jobs, factor):
    trace, truth = truth_of(*jobs, MACHINE)
    short, whole = (
        scheduled(policy(backfill, rule), trace, truth, factor)
        for rule in (SETTLING[name], Unsettled(SETTLING[name]))
    )
    assert short == whole
