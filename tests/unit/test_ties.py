"""Ties between counts, jobs and plans are ties whatever rounding makes of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from malleables import beliefs_of, members_of
from moldable_toys import POLICIES, policy, truth_of
from profiles import Profile
from toys import ToyOracle, ToyTruth

from predictors.in_loop.oracle import normal_draw
from sim.engine.invariants import Checker
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.curve import AverageParallelism, EfficiencyAtLeast, Maximum
from sim.policies.allocation.iterative import Iterative, iterate
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.molding.base import best_candidate
from sim.policies.passes.memory import SPAN
from sim.policies.reallocation.equi import DynamicEquipartition
from sim.policies.reallocation.hesrpt import HeSrpt
from sim.policies.reallocation.marginal import MarginalEfficiency
from sim.policies.reallocation.pools import Pools
from sim.policies.ties import TIE, first_least, is_less, is_less_on, ranks
from sim.state.availability import BelievedEnds

FIGURES = st.floats(1e-6, 1e9)


@given(value=FIGURES, ripple=st.floats(-0.9, 0.9))
def test_figures_within_the_tolerance_are_equal(value, ripple):
    near = value * (1 + ripple * TIE)
    assert not is_less(value, near)
    assert not is_less(near, value)
    assert is_less(value, value * (1 + 3 * TIE))
    assert is_less(-value * (1 + 3 * TIE), -value)
    assert is_less(value, np.inf)
    assert not is_less(np.inf, np.inf)


def test_differences_are_compared_on_a_scale():
    assert is_less(1e-17, 2e-17)
    assert not is_less_on(1e-17, 2e-17, 1.0)
    assert is_less_on(-1e-3, 1e-3, 1.0)
    assert is_less_on(1.0, np.inf, 1.0)


@given(values=st.lists(st.integers(1, 9), min_size=1, max_size=12), seed=st.integers(0, 99))
def test_ranks_and_the_first_least_do_not_see_ripples(values, seed):
    exact = np.array(values, float)
    rippled = exact * (1 + 0.4 * TIE * np.random.default_rng(seed).uniform(-1, 1, exact.size))
    assert first_least(rippled) == values.index(min(values))
    assert ranks(rippled).tolist() == [sorted(set(values)).index(v) for v in values]


CHOICES = POLICIES | {
    "maximum": ("easy", Maximum()),
    "a": ("easy", AverageParallelism()),
    "efficiency": ("easy", EfficiencyAtLeast(0.5)),
    "iterative_time": ("replan", Iterative(step="time")),
    "sa_all": ("conservative", SmallestTurnaround(counts="all")),
}


@pytest.mark.parametrize("name", CHOICES)
def test_no_choice_of_a_count_is_decided_by_rounding(name):
    # Work that divides evenly, up to 4 processors: ends, areas and gains are equal in many ways.
    # Jobs run the recorded 24 s on their request; elsewhere the last digits are drawn.
    rows = [(0, 2, 24)] * 5 + [(50, 2, 24)] * 4

    def curve(job, key):
        def seconds(n):
            ripple = 1e-13 * normal_draw(key, job, n) if key and n != 2 else 0.0
            return 48.0 / min(n, 4) * (1 + ripple)

        return seconds

    def counts(key):
        trace, truth = truth_of(rows, [curve(job, key) for job in range(len(rows))], 8)
        rule, oracle = policy(*CHOICES[name]), ToyOracle(truth)
        records = simulate(Setup(trace, truth, rule, oracle, Dedicated(8), watchers=(Checker(),)))
        return records.allocated.tolist()

    assert all(counts(key) == counts(0) for key in range(1, 6))


RULES = {
    "hesrpt": HeSrpt(exponent=0.5),
    "marginal": MarginalEfficiency(),
    "marginal_work": MarginalEfficiency(weight="work"),
    "deq": DynamicEquipartition(),
    "useful": DynamicEquipartition(parallelism="useful"),
    "pools": Pools(min_efficiency=1.0, preferred_efficiency=0.75, max_efficiency=0.5),
}


def shares(rule, curve, jobs, total, key=0, least=1):
    def runtime(job, n):
        return curve(job, n) * (1 + (1e-13 * normal_draw(key, job, n) if key else 0.0))

    truth = ToyTruth(runtime, np.ones(jobs, np.int64), np.full(jobs, 16))
    beliefs = beliefs_of(truth, 64)
    members = members_of(beliefs, [1] * jobs, least)
    return rule.share(beliefs, members, total).tolist()


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("power", [0.5, 1.0])
def test_no_share_is_decided_by_rounding(name, power):
    def curve(job, n):
        return 60.0 / min(n, 9) ** power

    exact = shares(RULES[name], curve, 5, 17)
    for key in range(1, 6):
        assert shares(RULES[name], curve, 5, 17, key) == exact


def test_equal_curves_share_alike_under_marginal_gains():
    def curve(job, n):
        return 60.0 / n**0.5

    for key in range(6):
        assert shares(MarginalEfficiency(), curve, 4, 16, key) == [4, 4, 4, 4]
        assert shares(MarginalEfficiency(), curve, 3, 16, key) == [6, 5, 5]


def planned(counts, runtimes, serial, jobs, processors=8, now=7e8):
    """Return what each of several jobs with the same menu takes of it."""
    size = len(counts)
    profile = Profile(processors)
    profile.lay(now, BelievedEnds.of([]))
    low = size * np.arange(jobs)
    sizes = np.full(jobs, size)
    spans = np.zeros(len(low), SPAN)
    spans["begin"], spans["number"], spans["low"], spans["high"] = low, sizes, low, low + sizes
    dish = iterate(
        profile.holes, np.tile(counts, jobs),
        np.tile(np.array(runtimes, float), jobs), spans, np.full(jobs, float(serial)), False,
    )  # fmt: skip
    return (dish - low).tolist()


def test_iteration_takes_no_step_that_gains_nothing_but_rounding():
    for now in (0.0, 7e8):
        assert planned([1, 2], [10.0, 10.0 * (1 - 1e-13)], 10.0, 1, now=now) == [0]
    assert planned([1, 2], [10.0, 10.0 * (1 - 1e-6)], 10.0, 1) == [1]


def test_iteration_gives_equal_jobs_equal_steps():
    # Perfect speedup: each step loses nothing, and 8 processors are 2 each for 4 jobs.
    for ripple in (0.0, 1e-13, -1e-13):
        times = [48.0, 24.0 * (1 + ripple), 12.0, 6.0]
        assert planned([1, 2, 4, 8], times, 48.0, 4) == [1, 1, 1, 1]


def test_of_equal_ends_the_smaller_count_starts():
    profile = Profile(8)
    profile.lay(7e8, BelievedEnds.of([]))
    counts, runtimes = np.array([2, 4]), np.array([10.0 + 1e-12, 10.0])
    arrays = (profile.holes, 7e8, counts, runtimes, 0, 2)
    assert best_candidate(*arrays, np.inf) == (0, 7e8)
