"""The progress display hears of the engine's state, now and then, and changes nothing."""

import logging
import sys

import pytest
from toys import replay, rigid, trace_of

from predictors.cli.terminal import SILENT, warnings_last
from sim.engine.loop import INSTANTS
from sim.simulation.progress import ProgressWatcher

pytestmark = pytest.mark.fast

ROWS = [(float(k), 1 + k % 3, 50.0 + 7 * k % 40) for k in range(800)]


class Heard(ProgressWatcher):
    def __init__(self, trace):
        super().__init__(SILENT, trace)
        self.states = []

    def is_due(self):
        return True

    def progressed(self, now, queued, over):
        self.states.append((now, queued, over, self._work))


def test_it_hears_every_256th_look_and_jobs_add_up():
    heard = Heard(trace_of(ROWS))
    watched = replay(ROWS, 16, rigid("easy"), watchers=(heard,))
    alone = replay(ROWS, 16, rigid("easy"))
    assert (watched.start_time == alone.start_time).all()
    assert len(heard.states) == int(watched.counters["looks"]) // INSTANTS
    for now, queued, over, work in heard.states:
        assert work.tolist() == [processors * runtime for _, processors, runtime in ROWS]
        assert over.tolist() == (watched.end_time <= now).tolist()
        assert queued == ((watched.submit_time <= now) & (watched.start_time > now)).sum()
    assert max(queued for _, queued, *_ in heard.states) > 0


def test_warnings_follow_what_they_are_of_and_stand_there_once(capsys, monkeypatch):
    handler = logging.StreamHandler(sys.stdout)
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    with warnings_last():
        logging.warning("3 jobs are longer than the limit")
        logging.error("an error")
        sys.stdout.write("the verdict\n")
    out = capsys.readouterr().out
    assert out == "an error\nthe verdict\n3 jobs are longer than the limit\n"
