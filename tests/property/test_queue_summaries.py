"""A search of the queue that passes over summarised blocks finds what a plain one does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from sim.errors import PolicyError
from sim.policies.backfill.easy import fill_window
from sim.policies.passes.memory import BACKFILLING
from sim.state.run_state import allocate, idle_machine
from sim.state.waiting_queue import BLOCK, WaitingQueue, pop, push

pytestmark = pytest.mark.fast
JOBS = 48 * BLOCK
summarised_in = njit(lambda queue: queue.summarised)
popped = njit(lambda queue, place: pop(queue, place))


def plainly(processors, runtime, first, last, free, spare, now, shadow):
    found = []
    for job in range(first, last):
        wanted = processors[job]
        is_late = now + runtime[job] > shadow
        if 0 < wanted <= free and (not is_late or wanted <= spare):
            spare -= wanted if is_late else 0
            free -= wanted
            found.append(job)
    return found


@pytest.mark.parametrize("place", [-1, 1, 10**9])
def test_a_place_at_which_nobody_waits_is_refused(place):
    queue = WaitingQueue(2).tables
    push(queue, 0, 4, 10.0, 0.0)
    push(queue, 1, 4, 10.0, 0.0)
    assert popped(queue, 1) == 1
    with pytest.raises(PolicyError, match="a place at which no job waits, or found one twice"):
        popped(queue, place)


def test_more_processors_than_are_free_are_not_allocated():
    state = idle_machine(processors=8, jobs=2, holders=2)
    state.processors[:] = 6, 3
    allocate(state, 0)
    with pytest.raises(PolicyError, match="on more processors than are free"):
        allocate(state, 1)


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 21]))
def test_summaries_of_blocks_hide_nobody(seed, least):
    rng = np.random.default_rng(seed)
    processors = rng.integers(least, 65, JOBS)
    runtime = rng.exponential(100.0, JOBS).round() + 1.0
    tables = WaitingQueue(JOBS)
    for job in range(JOBS):
        push(tables.tables, job, processors[job], runtime[job], 0.0)
    queue, processors, found = tables.tables, tables.processors, tables.found
    backfilling = np.zeros(1, BACKFILLING)
    backfilling["reserved"] = 1
    first, last, seen, passes = 0, JOBS - 16 * BLOCK, [], 0
    while last < JOBS:
        first += rng.integers(0, 3 * BLOCK) if passes % 4 == 3 else 0
        arrivals = int(rng.integers(0, BLOCK)) if passes % 2 else 0
        last += arrivals
        free, now = int(rng.integers(1, 40)), float(passes)
        spare, shadow = int(rng.integers(0, free + 1)), now + float(rng.integers(0, 60))
        state = (first, min(last, JOBS), free, spare, now, shadow)
        expected = plainly(processors, runtime, *state)
        backfilling["extra_nodes"], backfilling["shadow_time"] = spare, shadow
        queue.at["first"], queue.at["last"] = first - 1, min(last, JOBS)
        number = fill_window(queue, first, 0, free, now, backfilling)
        assert found[:number].tolist() == expected
        processors[found[:number]] = 0
        seen.append((number, summarised_in(queue).sum()))
        passes += 1
    assert np.max(seen, axis=0).all()  # somebody was found, and a block was passed over
