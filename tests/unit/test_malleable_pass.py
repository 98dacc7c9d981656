"""The order of steps of a pass of malleable jobs, by hand: who is asked about, and who is not."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba import njit

from sim.policies.passes.malleable import JOB, TALLY, pass_of
from sim.policies.reallocation.beliefs import SEARCH
from sim.state.run_state import idle_machine

TOTAL, RIGID = 8, 9


def tables_of(held: list[int], waiting: tuple[int, ...] = ()) -> tuple[Any, Any]:
    """Return tables in which the first jobs run on so many, and these are deferred."""
    state = idle_machine(TOTAL, 10, 10)
    state.processors[: len(held)] = held
    state.scalars["free"] = TOTAL - sum(held)
    jobs, tally = np.zeros(10, JOB), np.zeros(1, TALLY)
    jobs["most"][:RIGID] = TOTAL
    tally["running"], tally["deferred"] = len(held), len(waiting)
    running, deferred = np.arange(10), np.array([*waiting, *[0] * 10])
    sharing = SimpleNamespace(jobs=jobs, tally=tally, running=running, deferred=deferred)
    sharing.defers = True
    return state, sharing


@njit
def wakes_of(state: Any) -> Any:
    return state.wakes[: state.scalars[0].wakes].copy()


def play(share: Callable[[list[int]], list[int]], start: list[int]) -> SimpleNamespace:
    """Make a pass in which 0 runs on all, 1 was deferred, 2, 3 and 9, which is rigid, arrive."""
    told, tables = SimpleNamespace(asked=[], beside=[]), tables_of([TOTAL], (1,))

    def claim(at: Any, jobs: Any, guaranteed: int, total: int, others_wait: bool) -> Any:
        least = np.array([int(k < guaranteed) for k in range(jobs.size)])
        largest = np.full(jobs.size, total)
        told.beside.append(others_wait)
        limits = {"held": np.where(jobs == 0, TOTAL, 0), "least": least, "largest": largest}
        return SimpleNamespace(jobs=jobs.tolist(), searches=np.zeros(0), **limits)

    def ask(at: Any, claims: Any, total: int) -> Any:
        assert total == TOTAL
        told.asked.append(claims.jobs)
        return np.array(share(claims.jobs))

    def find_starts(at: Any, arrived: Any, queueing: Any) -> tuple[Any, ...]:
        sharing, told.queuing = at[1], queueing.tolist()
        told.deferred = sharing.deferred[: sharing.tally["deferred"].item()].tolist()
        assert sorted(told.deferred + told.queuing) == sorted(arrived.tolist())
        return "starts", np.array(start), 0

    def approve(at: Any, jobs: Any, claims: Any, shares: Any, total: int) -> Any:
        assert (claims.jobs, total) == (jobs.tolist(), TOTAL)
        told.held = dict(zip(jobs.tolist(), shares.tolist(), strict=True))
        return shares, np.inf

    def begin(at: Any, starts: Any, jobs: Any, counts: Any) -> None:
        assert (starts, jobs.tolist()) == ("starts", start)

    arriving = np.array([RIGID, 2, 3])
    pass_of(lambda at: arriving, claim, ask, find_starts, approve, lambda *_: None, begin)(tables)
    return told


def shares_of(jobs: list[int]) -> list[int]:
    """Give 3 to each but the last of four, and to the last of them nothing."""
    return {4: [3, 3, 2, 0], 3: [4, 4, 0], 2: [5, 3], 1: [8]}[len(jobs)]


def test_what_was_shared_out_stands_if_all_start_that_it_counted_with() -> None:
    told = play(shares_of, [1, 2])
    assert told.asked == [[0, 1, 2, 3]]
    assert (told.queuing, told.deferred) == ([1, 9, 2], [3])
    assert told.held == {0: 3, 1: 3, 2: 2}


def test_deferred_jobs_have_a_say_as_long_as_they_get_nothing() -> None:
    """2 stays in the queue; of 0, 1 and 3 the last gets nothing again."""
    told = play(shares_of, [1])
    assert told.asked == [[0, 1, 2, 3], [0, 1, 3]]
    assert told.held == {0: 4, 1: 4}


def test_where_deferred_jobs_would_get_something_it_is_shared_out_without_them() -> None:
    told = play(lambda jobs: [3, 3, 2] if len(jobs) == 3 else shares_of(jobs), [1])
    assert told.asked == [[0, 1, 2, 3], [0, 1, 3], [0, 1]]
    assert told.held == {0: 5, 1: 3}


def test_without_deferred_jobs_it_is_shared_out_among_who_is_there() -> None:
    told = play(lambda jobs: [2] * len(jobs), [1])
    assert (told.queuing, told.deferred) == ([1, 9, 2, 3], [])
    assert told.asked == [[0, 1, 2, 3], [0, 1]]
    assert told.held == {0: 2, 1: 2}


@pytest.mark.parametrize("start", [[1, 2], [1]])
def test_room_is_left_for_deferred_jobs(start: list[int]) -> None:
    assert all(play(shares_of, start).beside)


@pytest.mark.parametrize("start", [[RIGID], [1, RIGID, 2]])
def test_what_rigid_jobs_start_on_is_not_shared_out(start: list[int]) -> None:
    """A total of 8 less 3: what is shared out before they start does not stand."""
    tables, told = tables_of([2]), []
    tables[0].processors[RIGID] = 3
    claims = SimpleNamespace(searches=np.zeros(0))
    claims.held = claims.least = claims.largest = np.ones(len(start), int)

    def claim(at: Any, jobs: Any, guaranteed: int, total: int, others_wait: bool) -> Any:
        told.append((jobs.tolist(), total))
        return claims

    pass_of(
        lambda at: np.zeros(0, int),
        claim,
        lambda *_: claims.held,
        lambda *_: ("starts", np.array(start), 0),
        lambda *_: (claims.held, np.inf),
        lambda *_: None,
        lambda *_: None,
    )(tables)
    assert told == [([0, *(job for job in start if job != RIGID)], TOTAL - 3)]


def test_shares_do_not_stand_if_a_rigid_job_starts_on_processors_that_they_counted_with() -> None:
    """Of 8 processors 1 gets something with 0, which runs; then 9 starts on 3 of them."""
    tables, totals = tables_of([2]), []
    tables[0].processors[RIGID] = 3
    limits = {"held": np.array([2, 0]), "least": np.ones(2, int), "largest": np.full(2, 4)}

    def share(at: Any, claims: Any, total: int) -> Any:
        totals.append(total)
        return np.array([2, 2])

    pass_of(
        lambda at: np.array([1, RIGID]),
        lambda *_: SimpleNamespace(searches=np.zeros(0), **limits),
        share,
        lambda *_: ("starts", np.array([1, RIGID]), 0),
        lambda at, jobs, claims, shares, total: (shares, np.inf),
        lambda *_: None,
        lambda *_: None,
    )(tables)
    assert totals == [TOTAL, TOTAL - 3]


@pytest.mark.parametrize(
    ("due", "asked"), [([30.0, 20.0], [20.0]), ([20.0, 10.0], []), ([20.0, 12.0], [])]
)
@pytest.mark.parametrize("later", [np.inf, 40.0])
def test_a_pass_is_asked_for_when_the_first_measurement_is_due(
    due: list[float], asked: list[float], later: float
) -> None:
    """Not for now, at 10, and not once more for 12; the searches have moved on."""
    state, sharing = tables_of([1, 1])
    state.scalars["now"], sharing.tally["wake_time"] = 10.0, 12.0
    sharing.searches, searches = np.zeros(2, SEARCH), np.zeros(2, SEARCH)
    searches["due"] = due
    ones = np.ones(2, int)
    claims = SimpleNamespace(searches=searches, held=ones, least=ones, largest=ones)
    pass_of(
        lambda at: np.zeros(0, int),
        lambda *_: claims,
        lambda *_: ones,
        lambda *_: ("starts", np.zeros(0, int), 0),
        lambda *_: (ones, later),
        lambda *_: None,
        lambda *_: None,
    )((state, sharing))
    assert wakes_of(state).tolist() == asked
    assert sharing.searches["due"].tolist() == due


@pytest.mark.parametrize("approved", [[3, 3, 1, 1], [5, 2, 1, 1], [5, 3, 1, 1]])
def test_runs_shrink_before_jobs_start_and_grow_after(approved: list[int]) -> None:
    """Of what was shared out that is carried out which was approved."""
    done: list[tuple[Any, ...]] = []
    held = np.array([5, 2, 1, 0])
    claims = SimpleNamespace(held=held, least=np.minimum(held, 1), largest=np.full(4, TOTAL))
    claims.searches = np.zeros(0)
    pass_of(
        lambda at: np.zeros(0, int),
        lambda at, *_: claims,
        lambda at, *_: np.array([3, 3, 1, 1]),
        lambda at, *_: ("starts", np.array([3]), 0),
        lambda at, *_: (np.array(approved), np.inf),
        lambda at, job, count: done.append((job, count)),
        lambda at, *told: done.append((told[0], told[1].tolist(), told[2].tolist())),
    )(tables_of([5, 2, 1]))
    shrinks = [(0, 3)] if approved[0] < 5 else []
    grows = [(1, 3)] if approved[1] > 2 else []
    assert done == [*shrinks, ("starts", [3], [1]), *grows]
