"""How every rule reads a predicted curve: as far as the doubt in it allows, and repaired.

The advice is ours (policies.md 3.16): a fitted curve may bend in ways that no
application does, and it knows nothing far from the counts that were measured.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, direct
from predictors.remarks import ELSEWHERE, UNUSABLE
from sim.errors import AT_LEAST_0, AT_LEAST_1, check_choice, check_choices
from sim.policies.ties import first_least
from sim.state.view import Support, View

Repair = Literal["fitted", "always", "never"]
Counts = Literal["powers_of_two", "all"]


class JobCurve(NamedTuple):
    """A job's predicted curve over the counts it may be given.

    Attributes
    ----------
    counts : numpy.ndarray of int, shape (n,), ascending
    runtimes : numpy.ndarray of float, shape (n,), seconds
    serial_time : float
        The predicted T(1), seconds.
    """

    counts: IntArray
    runtimes: FloatArray
    serial_time: float


def raised(reading: JobCurve) -> JobCurve:
    """Return a curve whose time does not grow and whose area does not fall with the count.

    It is what rules count with whose guarantees hold for such curves alone; a job
    that is faster than that is still believed to be.

    Parameters
    ----------
    reading : JobCurve

    Examples
    --------
    >>> raised(JobCurve(np.array([1, 2, 4]), np.array([8.0, 3.0, 5.0]), 8.0)).runtimes.tolist()
    [8.0, 4.0, 3.0]

    Notes
    -----
    The running minimum of the times first, then the running maximum of the
    areas; the second keeps what the first made, since an area that is raised to
    its predecessor's still means less time on more processors.
    """
    counts, runtimes, serial_time = reading
    time = np.minimum.accumulate(np.minimum(runtimes, serial_time))
    area = np.maximum.accumulate(np.maximum(counts * time, serial_time))
    return JobCurve(counts, np.asarray(area / counts), serial_time)


@compiled
def last_up_to(counts: IntArray, begin: int, end: int, ceiling: float) -> int:
    """Return the last place from `begin` to before `end` with a count up to a ceiling.

    `begin` where there is none.

    Examples
    --------
    >>> [last_up_to(np.array([2, 4, 8]), 0, 3, ceiling) for ceiling in (1.0, 4.0, 7.9, 9.0)]
    [0, 1, 1, 2]
    """
    fitting = np.searchsorted(counts[begin:end], np.floor(ceiling) + 1.0)
    return begin + max(int(fitting) - 1, 0)


@compiled
def inside(counts: IntArray, least: float, most: float, request: int) -> IntArray:
    """Return 1, then the counts from the least to the most, and the request, each once."""
    kept, number = np.ones(counts.size + 1, np.int64), 1
    for count in counts:
        if count > 1 and (least <= count <= most or count == request):
            kept[number] = count
            number += 1
    return kept[:number]


_inside, _first_least = direct(inside), direct(first_least)


def check_counts(counts: str) -> Counts:
    """Return a name of counts to try, if it is one.

    Raises
    ------
    ValueError
        If it is none.
    """
    check_choice(("powers_of_two", "all"), counts=counts)
    return cast(Counts, counts)


def tried(job: int, view: View, which: Counts) -> IntArray:
    """Return the counts that a rule considers: all, or powers of two and the request.

    Jobs with at most two counts have all of them either way; the largest count is not
    among the powers of two unless it is one. Where the predictor has learned that the
    application is made for certain counts, these stand in the place of powers of two.
    """
    counts = view.counts(job)
    if which == "all":
        return counts
    made_for = view.predictor.offered(job, counts)
    if made_for is None or not made_for.any():
        return view._feasible.powers_of_two(job, view.requested_processors[job])
    return counts[made_for]


@dataclass(frozen=True)
class Advice:
    """How far to trust a predicted curve.

    Parameters
    ----------
    repair : {"fitted", "always", "never"}
        Whether time is made non-increasing, and counts beyond the fastest one are
        left out, the request among them; ``fitted`` does so where the belief rests
        on runs. Area stays as it is.
    reach : float
        A curve that rests on runs is used up to so many times the largest count that
        was seen, and down to the least one divided by it; besides, only the
        request is left. At least 1.
    observations : int
        Runs of the application that such a curve must rest on; with fewer
        the request stands.
    distrust : bool
        Whether the request stands where the predictor itself calls its belief
        at the request unusable; but not where that is because runtimes rise
        beyond a smaller count, or because the application is made for others: such
        a job is molded down to the fastest, or to one that it is made for.
    """

    repair: Repair = "fitted"
    reach: float = 2.0
    observations: int = 3
    distrust: bool = True

    def __post_init__(self) -> None:
        check_choices(self)
        AT_LEAST_1.check(reach=self.reach)
        AT_LEAST_0.check(observations=self.observations)

    def offer(self, job: int, view: View, counts: IntArray) -> tuple[IntArray, JobCurve | None]:
        """Return what is left of the counts that a job tries, and its curve there.

        Where there is but one count, or the request stands, no curve is read.
        """
        if counts.size == 1:
            return counts, None
        reading = self.read(job, view, counts)
        view._beliefs.mark(job, chosen_by_curve=reading is not None)
        if reading is None:
            return np.array([view.requested_processors[job]]), None
        return reading.counts, reading

    def read(self, job: int, view: View, counts: IntArray) -> JobCurve | None:
        """Return the curve of a moldable job, or None where the request stands.

        All of it is stretched by past errors, where the policy wants that.

        Parameters
        ----------
        job : int
            Job index.
        view : View
        counts : numpy.ndarray of int, shape (n,), ascending
            Feasible counts.
        """
        seen = view.predictor.support(job)
        asked, begin = self._within_reach(job, view, counts, seen)
        counts = asked[begin:]
        if counts.size == 0:
            return None
        runtimes = view.curve(job, asked)
        if runtimes is None:
            return None
        if (caution := view.predictor.caution(job)) != 1.0:
            runtimes = runtimes * caution
        if self.distrust:
            grade, code = view.predictor.reliability(job, view.requested_processors[job])
            if grade == UNUSABLE and code not in ELSEWHERE:
                return None
        serial_time = float(runtimes[0])
        known = view.predictor.known_counts(job, asked)
        if known is not None:
            asked, runtimes = asked[known], runtimes[known]
            begin *= int(known[0])
            counts = asked[begin:]
            if not (counts != view.requested_processors[job]).any():
                return None
        own = runtimes[begin:]
        if self.repair == "always" or (self.repair == "fitted" and seen.runs < np.inf):
            lowest = np.minimum.accumulate(runtimes)[begin:]
            own = lowest[: _first_least(lowest) + 1]
            counts = counts[: own.size]
        return JobCurve(counts, own, serial_time)

    def _within_reach(
        self, job: int, view: View, counts: IntArray, seen: Support
    ) -> tuple[IntArray, int]:
        """Return 1 and the counts that may be given, and the place of the first of these."""
        if seen.runs < self.observations:
            return counts[:0], 0
        least, most = float(seen.least / self.reach), float(seen.most * self.reach)
        request = view.requested_processors[job]
        asked: IntArray = _inside(counts, least, most, request)
        begin = 0 if counts[0] == 1 and (least <= 1 or request == 1) else 1
        made_for = view.predictor.offered(job, asked[begin:])
        if made_for is None or not made_for.any():
            return asked, begin
        kept = asked[begin:][made_for]
        return (kept, 0) if kept[0] == 1 else (np.concatenate([[1], kept]), 1)
