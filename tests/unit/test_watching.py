"""The progress display hears of the engine's state, now and then, and changes nothing."""

import pytest
from toys import replay, rigid

from sim.policies.passes.instants import INSTANTS
from sim.simulation.progress import ProgressWatcher

pytestmark = pytest.mark.fast

ROWS = [(float(k), 1 + k % 3, 50.0 + 7 * k % 40) for k in range(800)]


class Heard:
    def __init__(self):
        self.states = []

    def update(self, now, done, total, queued):
        self.states.append((now, done, total, queued))


def test_it_hears_every_256th_look_and_jobs_add_up():
    heard = Heard()
    watched = replay(ROWS, 16, rigid("easy"), watchers=(ProgressWatcher(heard, 800),))
    alone = replay(ROWS, 16, rigid("easy"))
    assert (watched.start_time == alone.start_time).all()
    assert len(heard.states) == int(watched.counters["looks"]) // INSTANTS
    for now, done, total, queued in heard.states:
        assert total == 800
        assert done == (watched.end_time <= now).sum()
        assert queued == ((watched.submit_time <= now) & (watched.start_time > now)).sum()
    assert max(queued for *_, queued in heard.states) > 0
