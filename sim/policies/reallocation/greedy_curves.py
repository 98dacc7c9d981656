"""HELL and KNEE, the competitors in the study of heSRPT (Lin et al. 2018, as described there)."""

import heapq
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.policies.reallocation.base import Reallocation
from sim.policies.reallocation.beliefs import Beliefs
from sim.policies.reallocation.costs import CostModel
from sim.policies.reallocation.moves import hand_out
from sim.policies.reallocation.sharing import Members, PlainSharing
from sim.policies.ties import TIE, first_least, is_less, ranks


class Hell(Reallocation):
    """HELL: processors go to the job with the largest efficiency over remaining time.

    With x the remaining work, (S(k)/k)/(x/S(k)) = S(k)²/(k·x) is maximised over jobs and
    counts, of equals the smaller count and then the older job; the winner gets its count,
    and the rest is handed out the same way; who gets nothing waits. What is left when all
    have been served goes to them in the same order, and no job that runs falls below its
    least count. The last two are our reading. The other parameters are those of
    `Reallocation`.
    """

    defers = True

    def sharing(self, beliefs: Beliefs) -> "HellSharing":
        """Return the rule at work in a new run."""
        return HellSharing(beliefs)


@dataclass(frozen=True)
class Price:
    """What counts of a job cost, over its remaining work: the inverse of what they are worth.

    Attributes
    ----------
    by_count : numpy.ndarray of float
        k/S(k)² by k, infinite at 0.
    best : int
        The first count of the least.
    """

    by_count: FloatArray
    best: int


class HellSharing(PlainSharing):
    """Hands out processors by efficiency over remaining time."""

    def __init__(self, beliefs: Beliefs) -> None:
        super().__init__(beliefs)
        self._prices: dict[int, tuple[FloatArray, Price]] = {}

    def share(self, members: Members, total: int) -> IntArray:
        """Return each winner's best count, in turn."""
        work = np.maximum(self.work_left(members), 1e-12).tolist()
        prices = [self._price(job) for job in members.job]
        shares, largest = members.least.copy(), members.largest.tolist()
        least = shares.tolist()
        left = total - sum(least)
        heap = [
            self._best(k, prices[k], work[k], least[k], largest[k], left) for k in range(len(work))
        ]
        heapq.heapify(heap)
        served = []
        while heap:
            for _, count, k in self._equals(heap):
                if count - least[k] > left:
                    again = self._best(k, prices[k], work[k], least[k], largest[k], left)
                    heapq.heappush(heap, again)
                    continue
                left -= count - least[k]
                shares[k] = count
                served.append(k)
        hand_out(shares, members.largest, total, served)
        return shares

    def _price(self, job: int) -> Price:
        table = self.beliefs.table(job)
        known = self._prices.get(job)
        if known is None or known[0] is not table:
            price = np.full(table.size, np.inf)
            price[1:] = table[1:] ** 2 * np.arange(1, table.size)
            known = self._prices[job] = (table, Price(price, int(first_least(price))))
        return known[1]

    @staticmethod
    def _equals(heap: list[tuple[float, int, int]]) -> list[tuple[float, int, int]]:
        """Take the cheapest entries that are equal off a heap: small counts first, then places."""
        found = [heapq.heappop(heap)]
        while heap and not is_less(found[0][0], heap[0][0]):
            found.append(heapq.heappop(heap))
        return found if len(found) == 1 else sorted(found, key=lambda entry: entry[1:])

    @staticmethod
    def _best(
        place: int, price: Price, work: float, least: int, largest: int, left: int
    ) -> tuple[float, int, int]:
        """Return price, count and place of the best count that the job can have now."""
        most = min(largest, least + left)
        count = price.best
        if not least <= count <= most:
            count = least + int(first_least(price.by_count[least : most + 1]))
        return price.by_count.item(count) * work, count, place


class KneeSharing(PlainSharing):
    """Hands out knees, the shortest remaining job first.

    Parameters
    ----------
    beliefs : Beliefs
    threshold : float
    """

    def __init__(self, beliefs: Beliefs, threshold: float) -> None:
        super().__init__(beliefs)
        self._threshold = threshold
        self._savings: dict[int, tuple[FloatArray, list[float]]] = {}

    def share(self, members: Members, total: int) -> IntArray:
        """Return the knees in order of remaining work; leftovers go to the last."""
        left_over = self.work_left(members)
        order, work = np.argsort(ranks(left_over), kind="stable").tolist(), left_over.tolist()
        shares, largest = members.least.tolist(), members.largest.tolist()
        left = total - sum(shares)
        jobs = members.job
        for place in order:
            if left <= 0:
                break
            knee = self._knee(jobs[place], work[place])
            wanted = (knee if knee < largest[place] else largest[place]) - shares[place]
            if wanted > 0:
                taken = wanted if wanted < left else left
                shares[place] += taken
                left -= taken
        found: IntArray = np.array(shares)
        hand_out(found, members.largest, total, reversed(order))
        return found

    def _knee(self, job: int, work: float) -> int:
        """Return the largest count whose last processor still saves enough seconds."""
        table = self.beliefs.table(job)
        known = self._savings.get(job)
        if known is None or known[0] is not table:
            # Of the best processor from here on, so that they fall: the last one counts.
            most = np.maximum.accumulate(-np.diff(table[1:])[::-1])[::-1]
            known = self._savings[job] = (table, (-most).tolist())
        least = self._threshold * (1 - TIE)
        return bisect_right(known[1], -least / work) + 1 if work > 0 else 1


class KneeFirst(Reallocation):
    """KNEE: jobs get their knee in order of remaining size, leftovers go to the last.

    Who gets nothing waits; no job that runs falls below its least count.

    A job's knee is the largest count whose last processor shortens what is left
    of it by `threshold` seconds or more.

    Parameters
    ----------
    cost, gain_factor, distance, reclaim
        See `Reallocation`.
    threshold : float
        θ, seconds; the study tunes it for each workload.
    """

    defers = True

    def __init__(
        self,
        cost: CostModel | None = None,
        gain_factor: float = 1.0,
        distance: float = 0.0,
        reclaim: bool = True,
        threshold: float = 60.0,
    ) -> None:
        super().__init__(cost, gain_factor, distance, reclaim)
        if not threshold > 0:
            raise ValueError(f"threshold must be above 0, got {threshold}")
        self.threshold = threshold

    def sharing(self, beliefs: Beliefs) -> KneeSharing:
        """Return the rule at work in a new run."""
        return KneeSharing(beliefs, self.threshold)
