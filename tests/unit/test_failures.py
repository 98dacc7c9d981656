"""Failures of nodes: laws, independence of the order of questions, time order."""

from itertools import islice, pairwise, takewhile

import numpy as np
import pytest
from scipy import stats

from sim.machine.failing import FailingMachine

pytestmark = pytest.mark.fast

EXPONENTIAL = {"mtbf": 1000.0, "lifetimes": "exponential", "shape": 1.0}
WEIBULL = {**EXPONENTIAL, "lifetimes": "weibull", "shape": 0.7}
LAWS = [EXPONENTIAL, WEIBULL, {**WEIBULL, "shape": 1.5}]


def failures(law=EXPONENTIAL, nodes=5, key=3, **more):
    return FailingMachine(nodes, **{"repair": 50.0, **law, **more}, keys=(key, 0))


def until(end, clock):
    """Return time and node of all failures up to an instant."""
    events = takewhile(lambda event: event.time <= end, clock.events())
    return [(event.time, event.node) for event in events if event.kind == "failure"]


@pytest.mark.parametrize("law", LAWS)
def test_lives_follow_their_law(law):
    machine = failures(law)
    lives = machine.lives(np.random.default_rng(1), 20_000)
    assert lives.mean() == pytest.approx(1000.0, rel=0.04)
    expected = stats.weibull_min(machine.shape, scale=machine.scale)
    assert stats.kstest(lives, expected.cdf).pvalue > 0.01


@pytest.mark.parametrize("law", LAWS)
def test_first_failures_are_those_of_a_steady_clock(law):
    rng, machine = np.random.default_rng(2), failures(law)
    firsts = np.array([machine.first_life(rng) for _ in range(5000)])
    grid = np.linspace(0, 60_000, 60_001)
    survival = stats.weibull_min(machine.shape, scale=machine.scale).sf(grid)
    residual = np.cumsum(survival) / survival.sum()
    assert stats.kstest(firsts, lambda x: np.interp(x, grid, residual)).pvalue > 0.01


def test_ages_matter_for_weibull_only():
    # Just after a repair a node with shape below 1 fails more often.
    for law, more in ((LAWS[0], False), (LAWS[1], True)):
        lives = failures(law).lives(np.random.default_rng(3), 50_000)
        young = (lives < 50).mean() / 50
        assert (young > 1.5 / 1000.0) == more


def test_repairs():
    rng = np.random.default_rng(4)
    assert failures(repair=7.0).repairs(rng, 2).tolist() == [7.0, 7.0]
    away = failures(repair=200.0, repair_median=100.0).repairs(rng, 200_000)
    assert np.median(away) == pytest.approx(100.0, rel=0.02)
    assert away.mean() == pytest.approx(200.0, rel=0.03)


@pytest.mark.parametrize("law", [EXPONENTIAL, WEIBULL])
def test_first_failures_are_those_of_each_nodes_own_stream(law):
    machine = failures(law, nodes=40, mtbf=50.0, repair=1.0, start=7.0)
    firsts = {}
    for event in islice(machine.events(), 2000):
        firsts.setdefault(event.node, event.time)
    streams = (
        np.random.Generator(np.random.Philox(key=3, counter=[0, 0, k, 0])) for k in range(40)
    )
    assert firsts == {node: 7.0 + machine.first_life(rng) for node, rng in enumerate(streams)}


def test_events_are_in_time_order_and_alternate():
    events = list(islice(failures(repair=300.0, repair_median=100.0).events(), 500))
    assert all(a.time <= b.time for a, b in pairwise(events))
    for node in range(5):
        kinds = [event.kind for event in events if event.node == node]
        assert kinds == ["failure", "repair"] * (len(kinds) // 2) + ["failure"] * (len(kinds) % 2)


def test_no_failure_while_away():
    clock = failures(repair=500.0, nodes=1)
    events = list(islice(clock.events(), 200))
    gaps = np.diff([event.time for event in events])
    assert gaps[::2] == pytest.approx(500.0)
    assert (gaps[1::2] > 0).all()


def test_answers_do_not_depend_on_the_order_of_questions():
    asked = failures()
    until(60_000.0, asked)
    assert list(islice(asked.events(), 300)) == list(islice(failures().events(), 300))


def test_more_nodes_leave_the_first_alone():
    few, many = failures(nodes=2), failures(nodes=50)
    assert until(1e5, few) == [one for one in until(1e5, many) if one[1] < 2]
    assert until(1e5, few) != until(1e5, failures(nodes=2, key=4))


def test_a_repair_ends_a_failure():
    down, up = islice((event for event in failures().events() if event.node == 0), 2)
    assert (down.kind, up.kind) == ("failure", "repair")
    assert up.time - down.time == pytest.approx(50.0)


def test_rate_of_many_nodes_adds_up():
    clock = failures(nodes=200, repair=0.0, key=9)
    count = len(until(50_000.0, clock))
    assert count == pytest.approx(10_000, abs=4 * 100)
