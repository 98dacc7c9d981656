"""Failures of nodes: laws, independence of the order of questions, time order."""

from itertools import islice, pairwise

import numpy as np
import pytest
from scipy import stats

from sim.errors import ConfigError
from sim.machine.failures import (
    ConstantRepairs,
    ExponentialLifetimes,
    LognormalRepairs,
    NodeFailures,
    WeibullLifetimes,
)

pytestmark = pytest.mark.fast

FIFTY = ConstantRepairs(50.0)
LAWS = [ExponentialLifetimes(1000.0), WeibullLifetimes(1000.0, 0.7), WeibullLifetimes(1000.0, 1.5)]


def failures(law=LAWS[0], repairs=FIFTY, nodes=5, key=3):
    return NodeFailures(nodes, law, repairs, key)


@pytest.mark.parametrize("law", LAWS)
def test_lives_follow_their_law(law):
    lives = law.draw(np.random.default_rng(1), 20_000)
    assert lives.mean() == pytest.approx(1000.0, rel=0.04)
    shape = getattr(law, "shape", 1.0)
    scale = getattr(law, "scale", 1000.0)
    assert stats.kstest(lives, stats.weibull_min(shape, scale=scale).cdf).pvalue > 0.01


@pytest.mark.parametrize("law", LAWS)
def test_first_failures_are_those_of_a_steady_clock(law):
    rng = np.random.default_rng(2)
    firsts = np.array([law.draw_first(rng) for _ in range(5000)])
    shape, scale = getattr(law, "shape", 1.0), getattr(law, "scale", 1000.0)
    grid = np.linspace(0, 60_000, 60_001)
    survival = stats.weibull_min(shape, scale=scale).sf(grid)
    residual = np.cumsum(survival) / survival.sum()
    assert stats.kstest(firsts, lambda x: np.interp(x, grid, residual)).pvalue > 0.01


def test_ages_matter_for_weibull_only():
    # Just after a repair a node with shape below 1 fails more often.
    for law, more in ((LAWS[0], False), (LAWS[1], True)):
        lives = law.draw(np.random.default_rng(3), 50_000)
        young = (lives < 50).mean() / 50
        assert (young > 1.5 / 1000.0) == more


def test_repairs():
    rng = np.random.default_rng(4)
    assert ConstantRepairs(7.0).draw(rng, 2).tolist() == [7.0, 7.0]
    away = LognormalRepairs(mean=200.0, median=100.0).draw(rng, 200_000)
    assert np.median(away) == pytest.approx(100.0, rel=0.02)
    assert away.mean() == pytest.approx(200.0, rel=0.03)


@pytest.mark.parametrize("law", [ExponentialLifetimes(50.0), WeibullLifetimes(50.0)])
def test_first_failures_are_those_of_each_nodes_own_stream(law):
    failures = NodeFailures(40, law, ConstantRepairs(1.0), key=3, start=7.0)
    firsts = {}
    for event in islice(failures.events(), 2000):
        firsts.setdefault(event.node, event.time)
    alone = NodeFailures(40, law, ConstantRepairs(1.0), key=3, start=7.0)
    assert firsts == {node: alone.next_failure([node], 0.0)[0] for node in range(40)}


def test_events_are_in_time_order_and_alternate():
    events = list(islice(failures(repairs=LognormalRepairs(300.0, 100.0)).events(), 500))
    assert all(a.time <= b.time for a, b in pairwise(events))
    for node in range(5):
        kinds = [event.kind for event in events if event.node == node]
        assert kinds == ["failure", "repair"] * (len(kinds) // 2) + ["failure"] * (len(kinds) % 2)


def test_no_failure_while_away():
    clock = failures(repairs=ConstantRepairs(500.0), nodes=1)
    events = list(islice(clock.events(), 200))
    gaps = np.diff([event.time for event in events])
    assert gaps[::2] == pytest.approx(500.0)
    assert (gaps[1::2] > 0).all()


def test_answers_do_not_depend_on_the_order_of_questions():
    asked = failures()
    late = asked.between([3], 50_000.0, 60_000.0)
    asked.next_failure([1, 0], 20_000.0)
    assert asked.is_down(4, 1.0) in (True, False)
    assert list(islice(asked.events(), 300)) == list(islice(failures().events(), 300))
    assert late == failures().between([3], 50_000.0, 60_000.0)


def test_more_nodes_leave_the_first_alone():
    few, many = failures(nodes=2), failures(nodes=50)
    assert few.between([0, 1], 0.0, 1e5) == many.between([0, 1], 0.0, 1e5)
    assert few.between([0], 0.0, 1e5) != failures(key=4).between([0], 0.0, 1e5)


def test_between_agrees_with_events_and_is_open_below():
    events = [e for e in islice(failures().events(), 400) if e.kind == "failure"]
    end = events[-1].time
    assert failures().between(range(5), 0.0, end) == [(e.time, e.node) for e in events]
    at = events[10].time
    assert (at, events[10].node) not in failures().between(range(5), at, end)
    assert (at, events[10].node) in failures().between(range(5), 0.0, at)


def test_next_failure_and_down():
    clock = failures()
    time, node = clock.next_failure(range(5), 0.0)
    assert clock.between(range(5), 0.0, time) == [(time, node)]
    assert not clock.is_down(node, np.nextafter(time, 0))
    assert clock.is_down(node, time)
    assert clock.is_down(node, time + 49.9)
    assert not clock.is_down(node, time + 50.1)


def test_rate_of_many_nodes_adds_up():
    clock = NodeFailures(200, LAWS[0], ConstantRepairs(0.0), key=9)
    count = len(clock.between(range(200), 0.0, 50_000.0))
    assert count == pytest.approx(10_000, abs=4 * 100)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: ExponentialLifetimes(0.0), "mtbf must be positive"),
        (lambda: WeibullLifetimes(1.0, -1.0), "shape must be positive"),
        (lambda: ConstantRepairs(-1.0), "seconds must be at least 0"),
        (lambda: LognormalRepairs(1.0, 2.0), "mean must be above the median"),
        (lambda: failures(nodes=0), "nodes must be at least 1"),
        (lambda: failures(key=-1), "key must be at least 0"),
        (lambda: failures().is_down(5, 0.0), "node must be 0 to 4, got 5"),
        (lambda: failures().next_failure([], 0.0), "at least one node"),
    ],
)
def test_bad_values_are_named(call, named):
    with pytest.raises(ConfigError, match=named):
        call()
