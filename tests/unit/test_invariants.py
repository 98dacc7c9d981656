"""Every invariant is checked after each pass, in runs of compiled passes and of Python.

What is broken is put into the state between two instants, or is a rule of one's own.
"""

import contextlib

import numpy as np
import pytest
from toys import (
    BACKFILLS,
    ToyEstimate,
    ToyOracle,
    ToyTruth,
    in_python,
    replay,
    rigid,
    rigid_truth,
    trace_of,
)

from predictors.compiling import compiled
from scripts.composing import composed
from sim.engine.engine import Engine
from sim.engine.invariants import Checker
from sim.engine.run import compiled_passes, simulate
from sim.engine.setup import Setup
from sim.engine.watcher import Watcher
from sim.errors import InvariantError, PolicyError
from sim.machine.base import Dedicated
from sim.policies.allocation.rigid import Request
from sim.policies.allocation.turnaround import BestTurnaround
from sim.policies.backfill.conservative import Conservative
from sim.policies.backfill.easy import Easy, EasyScheduler
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from sim.policies.reallocation.equi import Equipartition
from sim.simulation.scene import play, set_scene
from sim.state.run_state import believe_end, ranges_of, reallocate

HEAD = [(0.0, 2, 9.0), (0.0, 1, 5.0), (1.0, 4, 5.0), (2.0, 1, 20.0), (3.0, 1, 1.0)]
"""On 4 processors job 2 has to wait for the first two, and job 3 would delay it."""


class Tampering(Watcher):
    """Breaks something after the pass of an instant, or at the end."""

    needs_passes = True

    def __init__(self, spoil, when):
        self._spoil, self._when = spoil, when

    def passed(self, engine):
        if engine.view._tables.scalars["now"] == self._when:
            self._spoil(engine, engine.view._tables)

    def finished(self, engine):
        if self._when == np.inf:
            self._spoil(engine, engine.view._tables)


@pytest.fixture(params=["compiled", "in Python"])
def way(request):
    """Return how runs are made."""
    with contextlib.nullcontext() if request.param == "compiled" else in_python():
        yield request.param


def spoiled(way, spoil, when, policy, rows=HEAD, truth=None, predictor=None):
    """Make a run in which something is broken after the pass of an instant; it is compiled."""
    trace = trace_of(rows)
    truth = truth or rigid_truth(trace)
    told = trace, truth, policy, predictor or ToyEstimate(), Dedicated(4)
    if way == "compiled":
        assert compiled_passes(Engine(Setup(*told, watchers=(Checker(),)))) is not None
    simulate(Setup(*told, watchers=(Tampering(spoil, when), Checker())))


def write(table, column, place, value):
    """Return what adds to a number of a table."""

    def spoil(engine, state):
        found = ranges_of(state) if table == "ranges" else getattr(state, table)
        (found if column is None else found[column])[place] += value

    return spoil


def overlap(engine, state):
    """Let job 1 hold a processor of job 0."""
    ranges_of(state)["low"][state.first_range[1]] -= 1
    ranges_of(state)["high"][state.first_range[1]] -= 1


def resize(job, count):
    """Return what lets a running job go on with other processors."""

    def spoil(engine, state):
        reallocate(state, job, count)
        believe_end(state, job, state.believed_end[job])

    return spoil


def believe_past(engine, state):
    believe_end(state, 0, 0.5)


STATES = {
    "processor 1 is held twice": (overlap, 0.0),
    "processor 3 is neither held nor free": (write("free_ranges", "low", 0, 1), 0.0),
    "free count is wrong": (write("scalars", "free", 0, 1), 0.0),
    "miscounted run": (write("processors", None, 0, 1), 0.0),
    "t=1.0: expected ends are out of step": (write("holder_end", None, 0, 1.0), 1.0),
    "t=2.0: expected ends are out of step": (write("scalars", "running", 0, -1), 2.0),
    "t=1.0: an expected end has passed": (believe_past, 1.0),
    "job 0 is resized but not malleable": (resize(0, 1), 1.0),
    "t=34.0: processor 0 is neither held nor free": (write("free_ranges", "low", 0, 1), np.inf),
    "the run is over but processors are still held": (write("scalars", "holders", 0, 1), np.inf),
    "the machine was busy for": (
        lambda engine, state: np.add.at(engine.records.allocations.end_time, 0, 1.0),
        np.inf,
    ),
}


@pytest.mark.parametrize("message", STATES)
def test_a_broken_state_is_found_at_once(way, message):
    with pytest.raises(InvariantError, match=message):
        spoiled(way, *STATES[message], rigid("easy"))


def later(engine, state):
    engine.scheduler.queue.start[engine.scheduler.queue.places()[0]] += 1.0


def sooner(engine, state):
    engine.scheduler.queue.start[engine.scheduler.queue.places()] -= 1.0


def open_reservation(start):
    """Return what lets the waiting job that holds a reservation begin it then."""

    def spoil(engine, state):
        queue = engine.scheduler.queue
        found = queue.start
        found[np.flatnonzero((found > 2.0) & (found < np.inf))] = start

    return spoil


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (later, "t=2.0: the reservation of job index 2 moved later"),
        (sooner, "t=2.0: reservations do not fit together"),
    ],
)
def test_reservations_that_move_are_found(way, spoil, message):
    with pytest.raises(InvariantError, match=message):
        spoiled(way, spoil, 2.0, rigid("conservative"))


@pytest.mark.parametrize(
    ("start", "message"),
    [(2.5, "reservations do not fit together"), (0.5, "job index 2 is reserved in the past")],
)
def test_reservations_of_open_counts_are_checked(way, start, message):
    trace = trace_of(HEAD)
    truth = rigid_truth(trace)
    policy = Policy(FirstComeFirstServed(), BACKFILLS["easy"], BestTurnaround())
    with pytest.raises(InvariantError, match=message):
        spoiled(way, open_reservation(start), 2.0, policy, HEAD, truth, ToyOracle(truth))


def test_malleable_jobs_keep_to_their_counts(way):
    rows = [(0.0, 1, 8.0), (1.0, 1, 8.0)]
    truth = ToyTruth(lambda job, n: 8.0 / n, np.ones(2, int), np.array([2, 1]))
    policy = Policy(FirstComeFirstServed(), BACKFILLS["easy"], Request(), Equipartition())
    with pytest.raises(InvariantError, match="job 0 goes on with 3 processors, not feasible"):
        spoiled(way, resize(0, 3), 1.0, policy, rows, truth, ToyOracle(truth))


class OneMore(Request):
    """Gives each job a processor more than it can use."""

    def choose(self, job, view, outlook):
        return super().choose(job, view, outlook) + 1


def test_a_rigid_job_on_other_processors_is_found(way):
    rows = [(0.0, 1, 5.0)]
    policy = Policy(FirstComeFirstServed(), BACKFILLS["easy"], OneMore())
    with pytest.raises(InvariantError, match="job 0 starts on 2, outside 1 to 1"):
        spoiled(way, None, -1.0, policy, rows)


def test_a_job_that_starts_before_its_submit_is_found(way):
    trace = trace_of(HEAD)
    told = trace, rigid_truth(trace), rigid("easy"), ToyEstimate(), Dedicated(4)
    engine = Engine(Setup(*told, watchers=(Checker(),)))
    engine.event_manager.calendar.submit_time[4] -= 0.5
    engine.compiled = compiled_passes(engine) if way == "compiled" else None
    with pytest.raises(InvariantError, match=r"t=2\.5: job 4 starts early"):
        engine.run()


class Unreserved:
    """EASY that forgets the reservation of the head, which it promises."""

    def begin(self, view, order, allocation):
        scheduler = EasyScheduler(view, order, allocation)
        scheduler.backfilling["reservations"] = 0
        return scheduler


def test_backfilling_that_delays_the_head_is_found(way):
    policy = Policy(FirstComeFirstServed(), Unreserved(), Request())
    message = "t=2.0: backfilling moves the start of job index 2 from 9.0 to 22.0"
    with pytest.raises(InvariantError, match=message):
        spoiled(way, None, -1.0, policy)


@pytest.mark.parametrize("backfill", [Easy(reservations=2), Conservative(replan=True)])
def test_every_reservation_of_a_pass_is_shown_and_checked(way, backfill):
    policy, shown = Policy(FirstComeFirstServed(), backfill, Request()), {}

    class Reservations(Watcher):
        needs_passes = True

        def passed(self, engine):
            shown[float(engine.view.now)] = engine.scheduler.reserved_starts()

    replay(HEAD, 4, policy, watchers=(Reservations(), Checker()))
    assert shown[2.0] == {2: (9.0, 4, 5.0), 3: (14.0, 1, 20.0)}
    assert (len(shown[0.0]), len(shown[1.0]), shown[14.0]) == (0, 1, {})


def test_a_second_reservation_that_takes_from_the_first_is_found(way):
    def move(engine, state):
        engine.scheduler.backfilling["shadow_time"][1] = 13.0

    policy = Policy(FirstComeFirstServed(), Easy(reservations=2), Request())
    with pytest.raises(InvariantError, match=r"t=2\.0: reservations do not fit together"):
        spoiled(way, move, 2.0, policy)


@compiled
def start_all(state, memory):
    """Find whoever waits, whatever is free."""
    queue, number = memory.queue, 0
    for place in range(queue.at[0].first, queue.at[0].last):
        if queue.processors[place] > 0:
            queue.found[number] = place
            number += 1
    return number


class Greedy:
    """Lets a compiled rule of one's own decide."""

    def begin(self, view, order, allocation):
        return EasyScheduler(view, order, allocation, decides=start_all)


def test_a_compiled_rule_that_starts_more_than_is_free_is_refused():
    policy = Policy(FirstComeFirstServed(), Greedy(), Request())
    with pytest.raises(PolicyError, match="on more processors than are free"):
        spoiled("compiled", None, -1.0, policy)


def test_a_checked_run_returns_to_python_after_each_pass(way):
    seen = []

    class Passes(Watcher):
        needs_passes = True

        def passed(self, engine):
            seen.append(float(engine.view._tables.scalars["now"].item()))

    records = replay(HEAD, 4, rigid("easy"), watchers=(Passes(),))
    assert seen == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 9.0, 14.0, 34.0]
    assert records.counters["looks"] == len(seen)


def test_where_a_run_changes_reservations_move_with_what_a_predictor_has_learned():
    """ADEPT says 0.2 % more of a run than when its neighbours were planned: it ends 3 s later."""
    learned = (
        "predictor=adept",
        "seed=96",
        "workload.jobs=120",
        "workload.load=1.0",
        "sim.check=true",
    )
    malleable = "policy=pools", "policy/backfill=conservative", "cluster.processors=64"
    config = composed(
        *learned, *malleable, "moldability.malleable=0.3", "moldability.counts=powers_of_two"
    )
    tables = play(config, config, set_scene(config, 0)).outcome.tables
    assert set(tables.columns("jobs")["status"]) == {"completed"}
