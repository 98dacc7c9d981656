"""The order of steps of a pass of malleable jobs, by hand: who is asked about, and who is not."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sim.policies.passes.malleable import pass_of

TOTAL = 8


def play(share: Callable[[list[int]], list[int]], start: list[int]) -> SimpleNamespace:
    """Make a pass in which 0 runs on all, 1 to 3 arrive, and 9, which is rigid, too."""
    told = SimpleNamespace(asked=[], beside=[])

    def newcomers(at: Any) -> tuple[Any, ...]:
        arrived, may_wait = np.array([1, 9, 2, 3]), np.array([True, False, True, True])
        return np.array([0]), arrived, may_wait, TOTAL

    def claim(at: Any, jobs: Any, certain: int, total: int, others_wait: bool) -> Any:
        least = np.array([int(k < certain) for k in range(jobs.size)])
        largest = np.full(jobs.size, total)
        told.beside.append(others_wait)
        limits = {"held": np.where(jobs == 0, TOTAL, 0), "least": least, "largest": largest}
        return SimpleNamespace(jobs=jobs.tolist(), **limits)

    def ask(at: Any, claims: Any, total: int) -> Any:
        assert total == TOTAL
        told.asked.append(claims.jobs)
        return np.array(share(claims.jobs))

    def defer(at: Any, arrived: Any, is_deferred: Any) -> None:
        told.deferred, told.queuing = arrived[is_deferred].tolist(), arrived[~is_deferred].tolist()

    def find_starts(at: Any) -> tuple[Any, ...]:
        assert told.queuing is not None
        return "starts", np.array([0, *start]), TOTAL, bool(told.deferred)

    def approve(at: Any, jobs: Any, claims: Any, shares: Any, total: int) -> Any:
        assert (claims.jobs, total) == (jobs.tolist(), TOTAL)
        told.held = dict(zip(jobs.tolist(), shares.tolist(), strict=True))
        return shares

    def begin(at: Any, starts: Any, jobs: Any, counts: Any) -> None:
        assert (starts, jobs.tolist()) == ("starts", start)

    pass_of(newcomers, claim, ask, defer, find_starts, approve, lambda *_: None, begin)(None)
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


@pytest.mark.parametrize("approved", [[3, 3, 1, 1], [5, 2, 1, 1], [5, 3, 1, 1]])
def test_runs_shrink_before_jobs_start_and_grow_after(approved: list[int]) -> None:
    """Of what was shared out that is carried out which was approved."""
    done: list[tuple[Any, ...]] = []
    jobs, held, nobody = np.array([0, 4, 5, 1]), np.array([5, 2, 1, 0]), np.zeros(0, int)
    claims = SimpleNamespace(held=held, least=np.minimum(held, 1), largest=np.full(4, TOTAL))
    pass_of(
        lambda at: (jobs[:3], nobody, nobody > 0, TOTAL),
        lambda at, *_: claims,
        lambda at, *_: np.array([3, 3, 1, 1]),
        lambda at, *_: None,
        lambda at: ("starts", jobs, TOTAL, False),
        lambda at, *_: np.array(approved),
        lambda at, job, count: done.append((job, count)),
        lambda at, *told: done.append((told[0], told[1].tolist(), told[2].tolist())),
    )(None)
    shrinks = [(0, 3)] if approved[0] < 5 else []
    grows = [(4, 3)] if approved[1] > 2 else []
    assert done == [*shrinks, ("starts", [1], [1]), *grows]
