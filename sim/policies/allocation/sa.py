"""SA: the smallest predicted turnaround, chosen at submit (Cirne & Berman)."""

from sim.policies.advice import Advice, Counts, check_counts, tried
from sim.policies.base import Outlook
from sim.policies.ties import first_least
from sim.view import View


class SmallestTurnaround:
    """SA: each arriving job tries its counts against the queue and takes the best.

    The turnaround of a count is its predicted start, given everything that runs
    and waits, plus the predicted runtime. Then the job is rigid. Cirne & Berman,
    JPDC 2002; TPDS 2003. How starts are predicted is the backfilling rule's
    matter: a conservative one asks its reservations, EASY lays out the queue or
    runs it to the drain.

    Parameters
    ----------
    counts : {"powers_of_two", "all"}
        Which counts to try: powers of two and the request, or all; of jobs with at
        most two counts, all. The largest count is not tried for its own sake.
    adopters : float
        Share of the jobs that choose so; the others keep their request.
    advice : Advice, optional
        How predicted curves are read.
    """

    def __init__(
        self,
        counts: Counts = "powers_of_two",
        adopters: float = 1.0,
        advice: Advice | None = None,
    ) -> None:
        if not 0 <= adopters <= 1:
            raise ValueError(f"adopters must be in [0, 1], got {adopters}")
        self.counts = check_counts(counts)
        self.adopters = adopters
        self.advice = advice or Advice()

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the count with the least turnaround, ties to the smaller one."""
        request = view.requested_processors[job]
        if view.luck[job] >= self.adopters:
            view.undecided.add(job)
            return request
        counts = tried(job, view, self.counts)
        if counts.size == 1:
            return int(counts[0])
        reading = self.advice.read(job, view, counts)
        if reading is None:
            return request
        waits = outlook(reading.counts, reading.runtimes) - view.now
        best = int(first_least(waits + reading.runtimes))
        count = int(reading.counts[best])
        view.believe(job, count, float(reading.runtimes[best]))
        return count
