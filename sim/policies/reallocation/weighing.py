"""Whether changes of running jobs are worth what they cost, to those who change and to all."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from predictors.base import IntArray
from sim.policies.reallocation.beliefs import BelievedCurves, Members
from sim.policies.reallocation.costs import CostModel
from sim.policies.ties import is_less
from sim.state.availability import shadow_time
from sim.state.machine_state import Run


@dataclass(frozen=True)
class Weighing:
    """Weighs what changes are believed to save against κ times what they cost, in seconds.

    A job that grows must itself save more than κ times its pause. Whoever shrinks
    loses his pause and the time that the job then takes longer: room is made for
    a waiting job only if the time that it would have to wait otherwise, by the
    believed ends, is more than κ times what the cheapest victims lose; and what a
    rule shares out beyond that is taken only if those who get more save more than
    κ times what those who get less lose.

    Parameters
    ----------
    beliefs : BelievedCurves
    cost : CostModel
    gain_factor : float
        κ.
    """

    beliefs: BelievedCurves
    cost: CostModel
    gain_factor: float

    def pays(self, run: Run, processors: int) -> bool:
        """Say whether a growth is believed to save more than κ times its pause."""
        seconds = self.beliefs.view.seconds_left(run)
        saved = seconds - self.beliefs.seconds_left(run, processors)
        return self._is_more(saved, self.cost.change(run.processors, processors))

    def _is_more(self, gain: float, loss: float) -> bool:
        return bool(is_less(self.gain_factor * loss, gain))

    def _seconds(self, job: int, run: Run | None, processors: int) -> float:
        """Return the believed seconds until a job ends that holds so many from now on."""
        if run is None:
            seconds = self.beliefs.serial(job) * self.beliefs.relative(job, processors)
            return seconds + self.cost.start(processors)
        seconds = self.beliefs.seconds_left(run, processors)
        if processors != run.processors:
            seconds += self.cost.change(run.processors, processors)
        return seconds

    # Room for those who wait

    def kept(self, running: Members, wanted: Iterable[int]) -> IntArray:
        """Return what runs keep that may give up processors for waiting jobs.

        Parameters
        ----------
        running : Members
        wanted : iterable of int
            Processors for which jobs wait, in the order in which they may start.
        """
        view, free, kept = self.beliefs.view, self.beliefs.view.free, running.held
        for count in wanted:
            if count > free:
                left = self._lowered(running, kept, count - free)
                if left is None:
                    break
                start, _ = shadow_time(view._ends.rows(), free, count, view.now)
                losses = self._losses(running, kept, left)
                if not self._is_more(max(start - view.now, 0.0), sum(losses)):
                    break
                free, kept = free + int((kept - left).sum()), left
            free -= count
        return kept

    def _loss(self, job: int, run: Run | None, have: int, left: int) -> float:
        """Return the seconds that a job loses that gets a count in place of another."""
        if left == have:
            return 0.0
        return self._seconds(job, run, left) - self._seconds(job, run, have)

    def _losses(self, members: Members, have: IntArray, left: IntArray) -> list[float]:
        rows = members.job, members.run, have.tolist(), left.tolist()
        return [*map(self._loss, *rows)]

    def _lowered(self, members: Members, counts: IntArray, needed: int) -> IntArray | None:
        """Return counts of members where runs give up processors; None if too few can.

        Those who lose least come first, each giving what is needed of what it can.
        """
        options = []
        for place, run in enumerate(members.run):
            have = counts.item(place)
            left = have if run is None else self._down_to(members, place, have - needed)
            if left < have:
                options.append((self._loss(members.job[place], run, have, left), place))
        lowered = counts.copy()
        for _, place in sorted(options):
            lowered[place] = self._down_to(members, place, counts.item(place) - needed)
            needed -= int(counts[place] - lowered[place])
            if needed <= 0:
                return lowered
        return None

    def _down_to(self, members: Members, place: int, wanted: int) -> int:
        """Return the largest count up to `wanted` to which a job may fall, else its least."""
        least = members.least.item(place)
        if wanted <= least:
            return least
        return max(self.beliefs.view._feasible.up_to(members.job[place], wanted), least)

    # What a rule shares out

    def weighed(self, members: Members, shares: IntArray, total: int) -> IntArray:
        """Return the shares if what they save is worth it, else the least change there can be.

        Parameters
        ----------
        members : Members
        shares : numpy.ndarray of int, shape (n,)
            What the rule would give.
        total : int
            What may be handed out.
        """
        if not (shares < members.held).any():
            return shares
        least = self._least_change(members, shares, total)
        if least is None:
            return shares
        saved = self._losses(members, shares, least)
        gain, loss = sum(max(one, 0.0) for one in saved), sum(max(-one, 0.0) for one in saved)
        return shares if self._is_more(gain, loss) else least

    def _least_change(self, members: Members, shares: IntArray, total: int) -> IntArray | None:
        """Return shares in which only those shrink who must: for the starts, the cheapest.

        What is free goes to those who would get more. None where there is no room.
        """
        found: IntArray = np.where(members.held > 0, members.held, members.least)
        over = int(found.sum()) - total
        if over > 0:
            lowered = self._lowered(members, found, over)
            if lowered is None:
                return None
            found = lowered
        left_over = total - int(found.sum())
        for k, job in enumerate(members.job):
            if shares[k] > found[k] and left_over > 0:
                most = self.beliefs.view._feasible.up_to(
                    job, min(int(shares[k]), int(found[k]) + left_over)
                )
                left_over -= max(most - int(found[k]), 0)
                found[k] = max(most, int(found[k]))
        return found
