"""HELL and KNEE, the competitors in the study of heSRPT (Lin et al. 2018, as described there)."""

import heapq
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.errors import POSITIVE
from sim.policies.reallocation.beliefs import BelievedCurves, Members
from sim.policies.reallocation.rule import Reallocation
from sim.policies.reallocation.shares import hand_out
from sim.policies.ties import TIE, first_least, is_less, ranks


@dataclass(frozen=True)
class Hell(Reallocation):
    """HELL: processors go to the job with the largest efficiency over remaining time.

    With x the remaining work, (S(k)/k)/(x/S(k)) = S(k)²/(k·x) is maximised over jobs and
    counts, of equals the smaller count and then the older job; the winner gets its count,
    and the rest is handed out the same way; who gets nothing waits. What is left when all
    have been served goes to them in the same order, and no job that runs falls below its
    least count. The last two are our reading. The parameters are those of `Reallocation`.
    """

    defers = True

    def share(self, beliefs: BelievedCurves, members: Members, total: int) -> IntArray:
        """Return each winner's best count, in turn."""
        work = np.maximum(beliefs.work_left(members), 1e-12).tolist()
        prices = [beliefs.read_off(job, _price) for job in members.job]
        shares, largest = members.least.copy(), members.largest.tolist()
        least = shares.tolist()
        left = total - sum(least)
        heap = [_best(k, prices[k], work[k], least[k], largest[k], left) for k in range(len(work))]
        heapq.heapify(heap)
        served = []
        while heap:
            for _, count, k in _equals(heap):
                if count - least[k] > left:
                    again = _best(k, prices[k], work[k], least[k], largest[k], left)
                    heapq.heappush(heap, again)
                    continue
                left -= count - least[k]
                shares[k] = count
                served.append(k)
        hand_out(shares, members.largest, total, np.array(served, np.int64))
        return shares


Price = tuple[FloatArray, int]
"""What counts of a job cost, over its remaining work: k/S(k)² by k, infinite at 0, the inverse
of what they are worth; and the first count of the least."""


def _price(beliefs: BelievedCurves, job: int) -> Price:
    table = beliefs.table(job)
    price = np.full(table.size, np.inf)
    price[1:] = table[1:] ** 2 * np.arange(1, table.size)
    return price, int(first_least(price))


def _equals(heap: list[tuple[float, int, int]]) -> list[tuple[float, int, int]]:
    """Take the cheapest entries that are equal off a heap: small counts first, then places."""
    found = [heapq.heappop(heap)]
    while heap and not is_less(found[0][0], heap[0][0]):
        found.append(heapq.heappop(heap))
    return found if len(found) == 1 else sorted(found, key=lambda entry: entry[1:])


def _best(
    place: int, price: Price, work: float, least: int, largest: int, left: int
) -> tuple[float, int, int]:
    """Return price, count and place of the best count that the job can have now."""
    most = min(largest, least + left)
    by_count, count = price
    if not least <= count <= most:
        count = least + int(first_least(by_count[least : most + 1]))
    return by_count.item(count) * work, count, place


@dataclass(frozen=True)
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

    threshold: float = 60.0

    def __post_init__(self) -> None:
        super().__post_init__()
        POSITIVE.check(threshold=self.threshold)

    def share(self, beliefs: BelievedCurves, members: Members, total: int) -> IntArray:
        """Return the knees in order of remaining work; leftovers go to the last."""
        left_over = beliefs.work_left(members)
        order, work = np.argsort(ranks(left_over), kind="stable").tolist(), left_over.tolist()
        shares, largest = members.least.tolist(), members.largest.tolist()
        left = total - sum(shares)
        for place in order:
            if left <= 0:
                break
            knee = self._knee(beliefs.read_off(members.job[place], _losses), work[place])
            wanted = (knee if knee < largest[place] else largest[place]) - shares[place]
            if wanted > 0:
                taken = wanted if wanted < left else left
                shares[place] += taken
                left -= taken
        found: IntArray = np.array(shares)
        hand_out(found, members.largest, total, np.array(order[::-1], np.int64))
        return found

    def _knee(self, losses: list[float], work: float) -> int:
        """Return the largest count whose last processor still saves enough seconds."""
        least = self.threshold * (1 - TIE)
        return bisect_right(losses, -least / work) + 1 if work > 0 else 1


def _losses(beliefs: BelievedCurves, job: int) -> list[float]:
    """Return what T(n)/T(1) gains by the best processor after each, below 0, ascending."""
    gains = -np.diff(beliefs.table(job)[1:])
    falling = np.maximum.accumulate(gains[::-1])[::-1]
    return [-gain for gain in falling.tolist()]
