"""The books of a run, step by step, against sets of processors and sorted lists."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.engine.event_manager import EventManager
from sim.errors import PolicyError
from sim.state.machine_state import MachineState, Run, rewrite
from sim.state.processors import as_numbers, as_ranges
from sim.state.run_steps import make_calendar, process_instant

pytestmark = pytest.mark.fast
MACHINE, JOBS, NODE = 12, 8, 3
step = st.tuples(
    st.sampled_from(
        ["start", "start named", "resize", "resize named", "plan", "move", "off", "node"]
    ),
    st.integers(0, JOBS - 1),
    st.integers(1, MACHINE),
    st.integers(1, 20),
)


class Model:
    """What the books should say."""

    def __init__(self):
        self.idle = set(range(MACHINE))
        self.held, self.end, self.believed, self.down = {}, {}, {}, {}

    def rows(self):
        """Return believed ends as the books have them."""
        runs = [(self.believed[job], job, len(held)) for job, held in self.held.items()]
        nodes = [(end, -1 - node, NODE) for node, (end, _) in self.down.items()]
        return sorted(runs + nodes)

    def next_event_time(self):
        """Return when something happens next to a running job."""
        ends = [min(self.end[job], self.believed[job]) for job in self.held]
        return min(ends, default=np.inf)


def books_of(state, jobs, submit):
    """Return the books of jobs that are all submitted at an instant."""
    running = state.tables.holder_end.size
    calendar = make_calendar(jobs, running, submit_time=np.full(jobs, submit))
    return EventManager(state, state.tables, calendar)


def lowest(numbers, count):
    return set(sorted(numbers)[:count])


def apply(books, model, kind, job, count, seconds):
    """Do one thing to both, if it can be done."""
    state = books.state
    run = state.running.get(job)
    if kind.startswith("start") and run is None and count <= len(model.idle):
        named = kind.endswith("named")
        own = set(sorted(model.idle)[-count:]) if named else lowest(model.idle, count)
        nodes = as_ranges(np.array(sorted(own)))
        if named:
            state.allocate_named(nodes)
            state.hold(job, nodes)
        else:
            nodes = state.allocate(job, count)
        books.begin(Run(job, 0, nodes, count, 0.0, float(seconds)), float(count))
        model.idle -= own
        model.held[job], model.believed[job], model.end[job] = own, float(seconds), float(count)
    elif kind == "resize" and run is not None and count <= len(model.idle) + len(model.held[job]):
        own, more = model.held[job], count - len(model.held[job])
        kept = own | lowest(model.idle, more) if more > 0 else lowest(own, count)
        rewrite(run, nodes=state.reallocate(job, count))
        books.set_believed_end(run, float(seconds))
        model.idle = (model.idle | own) - kept
        model.held[job], model.believed[job] = kept, float(seconds)
    elif kind == "resize named" and run is not None:
        own = model.held[job] | model.idle
        kept = set(sorted(own)[-min(count, len(own)) :])
        nodes = as_ranges(np.array(sorted(kept)))
        state.release(as_ranges(np.array(sorted(model.held[job]))))
        state.allocate_named(nodes)
        state.hold(job, nodes)
        books.set_believed_end(run, float(seconds))
        rewrite(run, nodes=nodes)
        model.idle = own - kept
        model.held[job], model.believed[job] = kept, float(seconds)
    elif kind == "plan" and run is not None:
        books.set_true_end(job, float(seconds))
        model.end[job] = float(seconds)
    elif kind == "move" and run is not None:
        books.set_believed_end(run, float(seconds))
        model.believed[job] = float(seconds)
    elif kind == "off" and run is not None:
        books.vacate(run)
        model.idle |= model.held.pop(job)
    elif kind == "node":
        node = job % (MACHINE // NODE)
        own = set(range(node * NODE, node * NODE + NODE))
        if node in model.down:
            state.repair(node)
            state.release(as_ranges(np.array(sorted(own))))
            model.idle |= own
            del model.down[node]
        elif own <= model.idle:
            state.allocate_named(as_ranges(np.array(sorted(own))))
            state.fail(node, float(seconds), NODE)
            model.idle -= own
            model.down[node] = (float(seconds), own)


@settings(max_examples=200)
@given(st.lists(step, max_size=40))
def test_books_are_those_of_sets_and_sorted_lists(steps):
    state, model = MachineState(MACHINE, JOBS), Model()
    books = books_of(state, JOBS, np.inf)
    for kind, job, count, seconds in steps:
        apply(books, model, kind, job, count, seconds)
        assert as_numbers(state.idle()).tolist() == sorted(model.idle)
        assert state.free == len(model.idle)
        assert state.believed_ends.rows() == model.rows()
        assert books.next_event_time == model.next_event_time()
        for one, run in state.running.items():
            assert as_numbers(run.nodes).tolist() == sorted(model.held[one])
    while model.held:
        now = books.next_event_time
        over = books.end_runs(now)
        for run in over:
            assert model.end[run.job] == now
            model.idle |= model.held.pop(run.job)
        if not over:  # a belief expires
            process_instant(state.tables, books.calendar, now)
            for run in books.take_in()[1]:
                assert model.believed[run.job] == now < model.end[run.job]
                books.set_believed_end(run, now + 1.0)
                model.believed[run.job] = now + 1.0
        assert state.free == len(model.idle)


def test_ends_at_one_instant_come_in_the_order_in_which_they_were_planned():
    state = MachineState(4, 4)
    books = books_of(state, 4, 0.0)
    for job in (2, 0, 3):
        books.begin(Run(job, 0, state.allocate(job, 1), 1, 0.0, 5.0), 5.0)
    books.set_true_end(2, 5.0)
    assert [run.job for run in books.end_runs(5.0)] == [0, 3, 2]


def test_processors_that_are_not_free_are_not_taken():
    state = MachineState(4, 1)
    state.allocate(0, 2)
    with pytest.raises(PolicyError, match="processors 1-2 are not all free"):
        state.allocate_named(((1, 2),))
    assert state.idle() == ((2, 3),)
