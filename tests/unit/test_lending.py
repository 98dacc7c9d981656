"""What malleable runs lend to starts, and until when who holds processors, by hand."""

import numpy as np
import pytest

from sim.policies.passes.malleable import free_for_starts, lent_ends_of, make_sharing
from sim.policies.reallocation.equi import Equipartition
from sim.state.run_state import idle_machine


@pytest.fixture
def tables():
    """At 10 s job 0 holds 4 processors and keeps 1, job 1 keeps its 2, a node of 2 has failed.

    Job 0 makes progress from 14 s on and would end at 20; two of ten processors are free.
    """
    state = idle_machine(10, 3, 13)
    sharing = make_sharing(Equipartition(), state, strict=False)
    state.scalars[["now", "free", "holders"]] = 10.0, 2, 3
    state.holder_end[:3], state.holder_job[:3] = [20.0, 30.0, 40.0], [0, 1, -3]
    state.holder_processors[:3], state.processors[:2] = [4, 2, 2], [4, 2]
    sharing.jobs["keeps"][0], sharing.jobs["resumes"][0] = 1, 14.0
    sharing.running[0], sharing.tally["running"] = 0, 1
    return state, sharing


def ends(tables):
    """Return who holds how many until when, at perfect speedup, where a change costs 3 s."""
    lent_ends = lent_ends_of(lambda at, job, count: 1.0 / count, lambda before, after: 3.0)
    return lent_ends(tables).rows()


def test_a_run_that_gives_up_what_is_lent_to_it_goes_on_with_the_rest(tables):
    """6 s are left on 4 processors, 24 on 1, from 14 s and the change on."""
    assert free_for_starts(tables) == 2 + 3
    assert ends(tables) == [(30.0, 1, 2), (40.0, -3, 2), (14.0 + 3.0 + 24.0, 0, 1)]


def test_nobody_holds_what_nobody_may_start_on_yet(tables):
    state, sharing = tables
    sharing.tally["no_start_before"] = 35.0
    assert free_for_starts(tables) == 0
    assert ends(tables) == [(30.0, 1, 2), (35.0, -1, 5), (40.0, -3, 2), (41.0, 0, 1)]
    state.scalars["now"] = 35.0
    assert free_for_starts(tables) == 5
    assert np.all(np.array(ends(tables))[:, 1] != -1)
