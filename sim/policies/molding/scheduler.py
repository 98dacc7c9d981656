"""Backfilling with open counts: the count is settled when a job could start."""

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import direct
from sim.engine.protocols import Promise
from sim.policies.base import OpenAllocation
from sim.policies.molding.base import Candidates, decide
from sim.policies.order import Order
from sim.policies.passes.memory import set_menu
from sim.policies.passes.queue_rule import QUEUE_FUNCTIONS, QueueScheduler
from sim.state.decisions import Start
from sim.state.run_state import longer
from sim.state.view import View, place_up_to

_set_menu = direct(set_menu)
UNLIMITED = np.iinfo(np.int64).max
"""As many reservations as there are jobs."""


class OpenQueueScheduler(QueueScheduler):
    """What schedulers of open counts share: arrivals get candidates in place of a count.

    Parameters
    ----------
    view : View
    order : Order
    allocation : OpenAllocation
    reservations : int
        Of those that plan anew in every pass: 0 is first fit, 1 EASY, `UNLIMITED` conservative.
    strict : bool
        Likewise, whether nobody passes a blocked job.

    Attributes
    ----------
    counts : numpy.ndarray of int
    runtimes : numpy.ndarray of float, seconds
        Candidates of all who wait, as of `RuleMemory`.
    always_narrows : bool
        Whether it matters what is allowed even while nobody can start.
    """

    always_narrows = False

    def __init__(
        self,
        view: View,
        order: Order,
        allocation: OpenAllocation,
        reservations: int = 0,
        strict: bool = False,
    ) -> None:
        self.candidates: Candidates = allocation.open(view)
        self.functions = self.functions | {"narrow": self.candidates.allows}
        self.counts: IntArray = np.zeros(1024, np.int64)
        self.runtimes: FloatArray = np.zeros(1024)
        self._used, serial_time = 0, np.zeros(len(view.submit_time))
        known = {"menu_counts": self.counts, "menu_runtimes": self.runtimes}
        keeps = self.candidates.keeps
        always = keeps.keeps_shares or self.always_narrows
        known["molding"] = keeps._replace(serial_time=serial_time, always_narrows=always)
        super().__init__(view, order, allocation, reservations, strict, **known)

    def admit(self, job: int) -> None:
        """Queue a job that has just arrived, with its candidates."""
        count, seconds = self._offer(job, self.view.requested_processors[job])
        self.view._beliefs.keep(job, count, seconds)
        self.enqueue(job, count, seconds)

    def believe_anew(self, place: int, job: int) -> float:
        """Write the candidates of the waiting job at a place anew."""
        count, seconds = self._offer(job, self.queue.processors.item(place))
        self.queue.processors[place] = count
        return seconds

    def _offer(self, job: int, wanted: int) -> tuple[int, float]:
        """Put down what a job may choose from, all of it allowed, in place of as many before.

        Returns the largest of its counts up to what is wanted, and its believed runtime there.
        """
        counts, runtimes, serial_time = self.candidates.of(job)
        memory, number, begin = self.memory, counts.size, self._used
        if memory.menu_spans["number"][job] == number:
            begin = memory.menu_spans["begin"].item(job)
        end = begin + number
        self._used = max(self._used, end)
        if end > self.counts.size:
            self.counts = longer(self.counts, 2 * end)
            self.runtimes = longer(self.runtimes, 2 * end)
            _set_menu(memory, self.counts, self.runtimes)
        self.counts[begin:end], self.runtimes[begin:end] = counts, runtimes
        memory.menu_spans[job] = begin, begin, end, number, 0
        memory.molding.serial_time[job] = serial_time
        pick = place_up_to(counts, wanted)
        return counts.item(pick), runtimes.item(pick)

    def allowed(self, place: int) -> tuple[IntArray, FloatArray]:
        """Return the candidates at a place that are allowed in this pass, and their runtimes."""
        own = self.memory.menu_spans[self.queue.job[place]]
        candidates = slice(own["low"], own["high"])
        return self.counts[candidates], self.runtimes[candidates]

    def find_starts(self) -> int:
        """Let the rule narrow the candidates, then find who starts."""
        if self.memory.molding.always_narrows or self.view.free > 0:
            self.memory.kept["search_end"] = self.candidates.narrow(self.memory)
        return super().find_starts()

    def start(self, place: int) -> Start:
        """Start the job at a place on the count chosen for it."""
        start = super().start(place)
        self.view._beliefs.keep(*start[:2], self.queue.runtime.item(place))
        return start


class OpenScheduler(OpenQueueScheduler):
    """Plans anew in every pass: a number of reservations, and who may overtake a blocked job."""

    is_compiled_kind = True
    promise: Promise = "fit"
    functions = QUEUE_FUNCTIONS | {"decide": decide}

    def find_starts(self) -> int:
        """Find whoever can and should start, where nobody holds a reservation yet."""
        self.rank()
        self.queue.start[self.queue.places()] = np.inf
        return super().find_starts()
