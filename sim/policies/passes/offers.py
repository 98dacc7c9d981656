"""What jobs may choose from, put down where compiled passes look it up."""

from collections.abc import Callable

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, direct
from sim.engine.engine import Engine
from sim.engine.work import Work
from sim.policies.allocation.sa import offers_of
from sim.policies.base import Allocation
from sim.policies.molding.base import Candidates
from sim.policies.passes.plan import Plan, menu_of, set_menu
from sim.state.calendar import Calendar, offer, offered_in

_AHEAD, BATCH = 256, 65_536
"""Jobs, and runtimes, that are worked out at once."""


class TrueRuntimes:
    """True runtimes at the counts that jobs are likely to choose from, many jobs at a time.

    Parameters
    ----------
    work : Work
    menu : callable
        Job index to these counts, ascending.
    jobs : int
        How many there are; they are asked for in the order of their index.
    """

    def __init__(self, work: Work, menu: Callable[[int], IntArray], jobs: int) -> None:
        self._work, self._menu, self._jobs = work, menu, jobs
        self._first, self._ends = 0, [0]

    def of(self, job: int) -> tuple[IntArray, FloatArray]:
        """Return these counts of a job, and its runtimes there."""
        place = job - self._first
        if not 0 <= place < len(self._ends) - 1:
            self._look(job)
            place = 0
        begin, end = self._ends[place], self._ends[place + 1]
        return self._counts[begin:end], self._runtimes[begin:end]

    def _look(self, job: int) -> None:
        """Work out the runtimes of this job and the next ones, and forget the former."""
        menus, ends = [], [0]
        for one in range(job, min(job + _AHEAD, self._jobs)):
            menus.append(self._menu(one))
            ends.append(ends[-1] + menus[-1].size)
            if ends[-1] > BATCH:
                break
        self._first, self._ends = job, ends
        self._counts = np.concatenate(menus)
        jobs = np.repeat(np.arange(job, job + len(menus)), np.diff(ends))
        self._runtimes = self._work.runtimes_at(jobs, self._counts)


@compiled
def put_offer(
    plan: Plan,
    calendar: Calendar,
    job: int,
    offered: tuple[IntArray, FloatArray, bool, FloatArray],
    ahead: tuple[IntArray, FloatArray],
) -> bool:
    """Put down what one job may choose from; nothing else is to be chosen now.

    Parameters
    ----------
    plan : Plan
    calendar : Calendar
    job : int
    offered : tuple
        Counts, ascending, what is believed of them, whether only a start at once counts, and
        the processor time on them over that of the request.
    ahead : tuple
        Counts, ascending, and the true runtimes there.

    Returns
    -------
    bool
        False where a count is not among these: its true runtime is missing then.
    """
    counts, believed, at_once, areas = offered
    if plan.counts.size < counts.size:
        plan.counts = np.zeros(2 * counts.size, np.int64)
        plan.runtimes, plan.areas = np.zeros(2 * counts.size), np.zeros(2 * counts.size)
        calendar.offered = np.zeros(2 * counts.size)
    own, known, k = plan.offers[job], True, 0
    own.begin, own.number, own.at_once = 0, counts.size, at_once
    for i in range(counts.size):
        while k < ahead[0].size and ahead[0][k] < counts[i]:
            k += 1
        plan.counts[i], plan.runtimes[i], plan.areas[i] = counts[i], believed[i], areas[i]
        if k < ahead[0].size and ahead[0][k] == counts[i]:
            calendar.offered[i] = ahead[1][k]
        else:
            known = False
    return known


_put_offer = direct(put_offer)


class OfferedCounts:
    """Reads off the rule what jobs may choose from, and puts it down in a plan.

    Parameters
    ----------
    engine : Engine
        What its jobs will choose from is worked out ahead.
    allocation : Allocation
    candidates : Candidates or None
        Of counts that stay open.
    calendar : Calendar
    """

    def __init__(
        self,
        engine: Engine,
        allocation: Allocation,
        candidates: Candidates | None,
        calendar: Calendar,
    ) -> None:
        self._calendar = calendar
        self._view, self._truth, self._allocation = engine.view, engine.work, allocation
        self._open = None if candidates is None else candidates.of
        tries_all = getattr(allocation, "counts", None) == "all"
        asked, counts = engine.jobs.requested_processors, engine.counts

        def menu(job: int) -> IntArray:
            return counts.counts(job) if tries_all else counts.powers_of_two(job, asked.item(job))

        self._ahead = TrueRuntimes(engine.work, menu, asked.size)

    def put(self, plan: Plan, jobs: IntArray, keep: bool = False) -> None:
        """Put down in a plan what jobs choose from.

        Open counts of others stay, and settled ones where they are to be kept.
        """
        spans, open_counts = plan.offers, self._open
        former = menu_of(plan)
        first = end = former[0].size if keep or open_counts is not None else 0
        offered = [tuple(known[:first] for known in former)]
        for job in jobs.tolist():
            if open_counts is None:
                counts, believed, at_once, areas = self._settled(job)
            else:
                counts, believed, plan.open.serial[job] = open_counts(job)
                at_once, areas = False, believed
            spans[job] = end, 0, 0, counts.size, 0, at_once
            end += counts.size
            offered.append((counts, believed, areas))
        menu = [np.concatenate(column) for column in zip(*offered, strict=True)]
        set_menu(plan, *menu)
        each = np.repeat(jobs, spans["number"][jobs])
        runtimes = self._truth.runtimes_at(each, menu[0][first:])
        offer(self._calendar, np.concatenate([offered_in(self._calendar)[:first], runtimes]))

    def put_one(self, plan: Plan, job: int) -> None:
        """Put down in a plan what a job chooses from, where one chooses after the other."""
        offered = self._settled(job)
        counts, ahead = offered[0], self._ahead.of(job)
        if not _put_offer(plan, self._calendar, job, offered, ahead):
            each = np.full(counts.size, job)
            offered_in(self._calendar)[: counts.size] = self._truth.runtimes_at(each, counts)

    def _settled(self, job: int) -> tuple[IntArray, FloatArray, bool, FloatArray]:
        """Return counts of a rule that settles them at submit, as `put_offer` takes them."""
        counts, believed, at_once, areas = offers_of(self._allocation, job, self._view)
        if believed is None:
            believed = np.array([self._view.belief(job, counts.item(0))])
        return counts, believed, at_once, np.ones(counts.size) if areas is None else areas
