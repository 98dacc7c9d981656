"""A compiled rule of one's own makes the passes of every run, and knows whose jobs wait."""

from dataclasses import replace

import numpy as np
import pytest
from toys import ToyEstimate, in_python, rigid_truth, trace_of

from predictors.compiling import compiled
from sim.engine.invariants import Checker
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.errors import PolicyError
from sim.machine.base import Dedicated
from sim.policies.allocation.rigid import Request
from sim.policies.backfill import easy
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from sim.state.run_steps import holders_in

USERS = 3


@compiled
def decide(state, memory):
    """Find who starts by EASY, but nobody behind a head of the user that `own` names."""
    run, queue, kept = state.scalars[0], memory.queue, memory.backfilling
    number, free, is_blocked = easy.find_heads(queue, run.free, kept)
    if is_blocked and memory.user[queue.job[queue.at[0].first]] != memory.plugin_data[0, 0]:
        number = easy.find_backfills(queue, holders_in(state), free, run.now, kept)
    return int(number)


class BehindOthers:
    """EASY in which nobody passes the jobs of a user."""

    def __init__(self, user):
        self.user = user

    def begin(self, view, order, allocation):
        own = np.array([[float(self.user)]])
        return easy.EasyScheduler(view, order, allocation, decides=decide, plugin_data=own)


def jobs(seed):
    """Return a crowded trace of jobs of few users."""
    rng = np.random.default_rng(seed)
    number = 120
    took = np.ceil(rng.lognormal(3, 1.2, number))
    columns = np.sort(rng.integers(0, 900, number)), 2 ** rng.integers(0, 5, number), took
    trace = trace_of(list(zip(*columns, np.ceil(1.5 * took), strict=True)))
    return replace(trace, jobs=trace.jobs.assign(user=rng.integers(0, USERS, number)))


def starts(trace, backfill, watchers=()):
    policy = Policy(FirstComeFirstServed(), backfill, Request())
    told = trace, rigid_truth(trace), policy, ToyEstimate(), Dedicated(24)
    return simulate(Setup(*told, watchers=watchers)).start_time.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_a_rule_of_ones_own_is_the_rule_of_every_run(seed):
    trace = jobs(seed)
    usual = starts(trace, easy.Easy())
    assert starts(trace, BehindOthers(USERS)) == usual  # nobody's jobs
    for user in range(USERS):
        own = starts(trace, BehindOthers(user))
        assert own != usual
        assert starts(trace, BehindOthers(user), (Checker(),)) == own
        with in_python():
            assert starts(trace, BehindOthers(user)) == own
        assert not passed(trace, own, user)
        assert passed(trace, usual, user)


def passed(trace, starts, user):
    """Return the jobs of a user that stood first in the queue when one behind them started."""
    submit, of = trace.jobs["submit_time"].tolist(), trace.jobs["user"].tolist()
    found = set()
    for job, start in enumerate(starts):
        waiting = [k for k in range(job) if submit[k] <= start < starts[k]]
        if waiting and of[waiting[0]] == user:
            found.add(waiting[0])
    return found


@compiled
def misspelt(state, memory):
    """Ask for what no memory has."""
    return memory.qeue


class DecidedBy:
    """EASY that is decided otherwise."""

    def __init__(self, decides):
        self.decides = decides

    def begin(self, view, order, allocation):
        return easy.EasyScheduler(view, order, allocation, decides=self.decides)


def test_a_rule_that_does_not_compile_is_told_why():
    with pytest.raises(TypeError, match="Unknown attribute 'qeue'"):
        starts(jobs(0), DecidedBy(misspelt))


def test_a_rule_that_is_not_compiled_is_refused_in_a_line():
    with pytest.raises(PolicyError, match=r"^decide=decide of a rule has to be `compiled`$"):
        starts(jobs(0), DecidedBy(decide.py_func))
