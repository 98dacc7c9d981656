"""ASP against its definition, look by look, also where jobs cannot run on every count."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from moldable_toys import policy, truth_of
from published_rules.equal_share import AdaptiveStatic
from toys import ToyOracle, in_python

from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.engine.watcher import Watcher
from sim.machine.base import Dedicated
from sim.state.decisions import Start

MACHINE = 12


def shared_out(menus, free):
    """Return who starts on what: an equal part each while there is room, then a step each."""
    share = max(free // len(menus), 1)
    starts = []
    for menu in menus:
        count = max([n for n in menu if n <= share], default=menu[0])
        if count > free:
            break
        free -= count
        starts.append(count)
    grew = True
    while grew:
        grew = False
        for k, menu in enumerate(menus[: len(starts)]):
            step = min([n for n in menu if n > starts[k]], default=starts[k]) - starts[k]
            if 0 < step <= free:
                starts[k] += step
                free -= step
                grew = True
    return starts


class Watched(Watcher):
    """Compares every look's starts with the definition."""

    def __init__(self, menus):
        self.menus = menus
        self.waiting = []
        self.passes = 0

    def decided(self, engine, decisions):
        view = engine.view
        self.waiting += view.arrived
        found = [(d.job, d.processors) for d in decisions if isinstance(d, Start)]
        expected = []
        if self.waiting and view.free:
            counts = shared_out([self.menus[job] for job in self.waiting], view.free)
            expected = list(zip(self.waiting, counts, strict=False))
        assert found == expected
        self.waiting = self.waiting[len(expected) :]
        self.passes += 1

    def finished(self, engine):
        assert not self.waiting
        assert self.passes


@settings(max_examples=150)
@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 30), st.integers(1, MACHINE), st.integers(1, 40), st.booleans()),
        min_size=1,
        max_size=9,
    ).map(sorted),
    allowed=st.sets(st.integers(1, MACHINE), min_size=2, max_size=6),
)
def test_nobody_starts_but_those_there_is_room_for(jobs, allowed):
    counts = np.array(sorted(allowed))
    rows, curves, menus = [], [], []
    for submit, wanted, seconds, is_rigid in jobs:
        request = wanted if is_rigid else int(counts[max(np.searchsorted(counts, wanted) - 1, 0)])
        rows.append((submit, request, seconds))
        curves.append(None if is_rigid else lambda n, s=seconds, r=request: s * (r / n) ** 0.9)
        menus.append([request] if is_rigid else counts.tolist())
    trace, truth = truth_of(rows, curves, MACHINE)
    truth.allowed = counts
    rule = policy("none", AdaptiveStatic(counts="all"))
    setup = Setup(trace, truth, rule, ToyOracle(truth), Dedicated(MACHINE))
    with in_python():
        look_by_look = simulate(replace(setup, watchers=(Watched(menus),)))
    assert simulate(setup).end_time.tolist() == look_by_look.end_time.tolist()
