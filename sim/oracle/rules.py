"""Does a schedule keep the rules? FCFS, EASY and both conservatives, written the obvious way.

The validator shares nothing with the engine. It replays a schedule of rigid jobs
as it stands: at every instant it works out, from what the schedule itself did
before, which jobs the rule starts now, and compares. So one mistake is named
once, at the instant at which it was made, and does not spoil what follows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import inf

from predictors.cli.display import SILENT, Display
from sim.errors import SimError

RULES: Mapping[str, str] = {
    "fcfs": "jobs start in the order of their submission, as soon as they fit",
    "easy": "as fcfs, but others may pass if they do not delay the first waiting job",
    "conservative": "every job holds a reservation, made on arrival, that only moves earlier",
    "replan": "all reservations are made anew in queue order at every scheduling pass",
}
"""The rules that a schedule may be checked against."""
RESERVING = ("conservative", "replan")
"""Those under which each waiting job holds a reservation."""
RESOLUTION = 1e-6
"""Seconds to multiples of which times are rounded before anything is compared."""


@dataclass(frozen=True)
class RigidJob:
    """A job of a workload.

    Attributes
    ----------
    job_id : int
    submit, runtime, estimate : float, seconds
        A job that outlives its estimate has it doubled, as often as it takes.
    processors : int
    """

    job_id: int
    submit: float
    processors: int
    runtime: float
    estimate: float


@dataclass(frozen=True)
class Violation:
    """One rule broken by one job.

    Attributes
    ----------
    job_id : int
    time : float, seconds
    rule : str
        ``missing``, ``early``, ``runtime``, ``capacity``, ``order``, ``delay``
        or ``idle``.
    text : str
        What is wrong, in words.
    """

    job_id: int
    time: float
    rule: str
    text: str


def check_schedule(
    jobs: Sequence[RigidJob],
    spans: Mapping[int, tuple[float, float]],
    processors: int,
    rule: str,
    shown: Display = SILENT,
) -> list[Violation]:
    """Return every violation of the rule in a schedule, in order of time.

    Parameters
    ----------
    jobs : sequence of RigidJob
        In queue order: by submit time, ties as in the workload.
    spans : mapping of int to tuple
        Start and end of each job by its number, seconds.
    processors : int
        Size of the machine.
    rule : str
        One of `RULES`.
    shown : Display, optional

    Raises
    ------
    SimError
        If the rule is unknown, or a job needs more than the machine.

    Examples
    --------
    >>> jobs = [RigidJob(1, 0.0, 2, 10.0, 10.0), RigidJob(2, 1.0, 1, 5.0, 5.0)]
    >>> check_schedule(jobs, {1: (0.0, 10.0), 2: (10.0, 15.0)}, 2, "fcfs")
    []
    >>> print(check_schedule(jobs, {1: (5.0, 15.0), 2: (1.0, 6.0)}, 3, "fcfs")[0].text)
    fits at 0 and must start, but does not
    """
    if rule not in RULES:
        raise SimError(f"rule {rule}: must be one of {', '.join(RULES)}")
    wide = [job.job_id for job in jobs if job.processors > processors]
    if wide:
        raise SimError(f"job {wide[0]} needs more than the {processors} processors of the machine")
    return _Validator(jobs, spans, processors, rule).violations(shown)


class _Validator:
    """The state of machine, queue and reservations as the schedule goes on."""

    def __init__(
        self,
        jobs: Sequence[RigidJob],
        spans: Mapping[int, tuple[float, float]],
        processors: int,
        rule: str,
    ) -> None:
        self.processors = processors
        self.rule = rule
        self.found: list[Violation] = []
        self.jobs = {job.job_id: self._rounded(job) for job in jobs}
        self.spans: dict[int, tuple[float, float]] = {
            k: (self._round(a), self._round(b)) for k, (a, b) in spans.items()
        }
        self.waiting: list[RigidJob] = []
        self.running: dict[int, tuple[float, float]] = {}  # end, believed end
        self.reserved: dict[int, float] = {}
        self.late: set[int] = set()

    def _round(self, seconds: float) -> int:
        return round(seconds / RESOLUTION)

    def _rounded(self, job: RigidJob) -> RigidJob:
        submit, runtime, estimate = map(self._round, (job.submit, job.runtime, job.estimate))
        return replace(job, submit=submit, runtime=runtime, estimate=estimate)

    def _say(self, job: int, time: float, rule: str, text: str) -> None:
        self.found.append(Violation(job, time * RESOLUTION, rule, text))

    def _show(self, time: float) -> str:
        return f"{time * RESOLUTION:.12g}"

    # the schedule by itself

    def violations(self, shown: Display) -> list[Violation]:
        """Return all violations."""
        self._check_jobs()
        to_come = [job for job in self.jobs.values() if job.job_id in self.spans]
        to_come.sort(key=lambda job: job.submit)
        now = -inf
        while (now := self._next(now, to_come)) < inf:
            early = self._take_ends(now)
            grown = self._take_expiries(now)
            arrived = []
            while to_come and to_come[0].submit <= now:
                arrived.append(to_come.pop(0))
            self._pass(now, early, grown, arrived)
            if shown.is_due():
                shown.show("checks the jobs", 1 - len(to_come) / len(self.jobs))
        return sorted(self.found, key=lambda violation: violation.time)

    def _check_jobs(self) -> None:
        for number in self.spans.keys() - self.jobs.keys():
            self._say(number, self.spans[number][0], "missing", "is not in the workload")
        self.spans = {k: span for k, span in self.spans.items() if k in self.jobs}
        for job in self.jobs.values():
            if job.job_id not in self.spans:
                self._say(job.job_id, job.submit, "missing", "is not in the schedule")
                continue
            start, end = self.spans[job.job_id]
            if start < job.submit:
                text = f"starts at {self._show(start)}, before its submission"
                self._say(job.job_id, start, "early", f"{text} at {self._show(job.submit)}")
                self.spans[job.job_id] = (job.submit, job.submit + job.runtime)
            elif end - start != job.runtime:
                text = f"runs for {self._show(end - start)} s instead of {self._show(job.runtime)}"
                self._say(job.job_id, start, "runtime", text)

    def _next(self, now: float, to_come: list[RigidJob]) -> float:
        times: list[float] = [job.submit for job in to_come[:1]]
        times += [self.spans[job.job_id][0] for job in self.waiting]
        times += [time for span in self.running.values() for time in span]
        times += [start for start in self.reserved.values() if start > now]
        return min((time for time in times if time > now), default=inf)

    def _take_ends(self, now: float) -> bool:
        ended = [number for number, (end, _) in self.running.items() if end <= now]
        believed = [self.running.pop(number)[1] for number in ended]
        return any(end > now for end in believed)

    def _take_expiries(self, now: float) -> bool:
        expired = [number for number, span in self.running.items() if span[1] <= now]
        for number in expired:
            start = self.spans[number][0]
            believed = self.running[number][1]
            total = max(2 * (believed - start), now - start + self._round(1.0))
            self.running[number] = (self.running[number][0], start + total)
        return bool(expired)

    # what the rule wants, and what the schedule does

    def _pass(self, now: float, early: bool, grown: bool, arrived: list[RigidJob]) -> None:
        if self.rule == "conservative":
            self._keep_reservations(now, early, grown, arrived)
        else:
            self.waiting += arrived
        wanted = self._wanted(now)
        begun = [job for job in self.waiting if self.spans[job.job_id][0] == now]
        names = {job.job_id for job in begun}
        why = "has its reservation" if self.rule in RESERVING else "fits"
        for job in wanted:
            if job.job_id not in names | self.late:
                self.late.add(job.job_id)
                text = f"{why} at {self._show(now)} and must start, but does not"
                self._say(job.job_id, now, "idle", text)
        allowed = {job.job_id for job in wanted}
        reasons = {j.job_id: self._why_not(j, now) for j in begun if j.job_id not in allowed}
        for job in begun:
            if job.job_id in reasons:
                self._say(job.job_id, now, *reasons[job.job_id])
            self.waiting.remove(job)
            self.reserved.pop(job.job_id, None)
            self.running[job.job_id] = (self.spans[job.job_id][1], now + job.estimate)
        held = self.processors - self._free()
        if begun and held > self.processors:
            text = f"starts while {held} processors are needed and {self.processors} are there"
            self._say(begun[-1].job_id, now, "capacity", text)
        if self.rule == "conservative" and (reasons or names != allowed):
            self._reserve_anew(now)

    def _wanted(self, now: float) -> list[RigidJob]:
        """Return the jobs that the rule starts now, in queue order."""
        if self.rule == "replan":
            self.reserved = {}
            for job in self.waiting:
                self.reserved[job.job_id] = self._earliest(job, now)
        if self.rule in RESERVING:
            return [job for job in self.waiting if self.reserved[job.job_id] <= now]
        free = self._free()
        wanted = []
        rest = list(self.waiting)
        while rest and rest[0].processors <= free:
            free -= rest[0].processors
            wanted.append(rest.pop(0))
        return wanted + (self._passing(rest, wanted, free, now) if self.rule == "easy" else [])

    def _passing(
        self, rest: list[RigidJob], begun: list[RigidJob], free: int, now: float
    ) -> list[RigidJob]:
        """Return who may pass the head of the queue under EASY."""
        if not rest:
            return []
        shadow, spare = self._shadow(rest[0], begun, now)
        passing = []
        for job in rest[1:]:
            in_time = now + job.estimate <= shadow
            if job.processors <= free and (in_time or job.processors <= spare):
                free -= job.processors
                spare -= 0 if in_time else job.processors
                passing.append(job)
        return passing

    def _shadow(self, head: RigidJob, begun: list[RigidJob], now: float) -> tuple[float, int]:
        """Return when the head will fit by the believed ends, and what it leaves over then."""
        ends = [(span[1], self.jobs[number].processors) for number, span in self.running.items()]
        ends += [(now + job.estimate, job.processors) for job in begun]
        free = self.processors - sum(width for _, width in ends)
        for end in sorted({end for end, _ in ends}):
            there = free + sum(width for other, width in ends if other <= end)
            if there >= head.processors:
                return end, there - head.processors
        return now, self.processors - head.processors

    # reservations

    def _keep_reservations(
        self, now: float, early: bool, grown: bool, arrived: list[RigidJob]
    ) -> None:
        if grown:
            self._reserve_anew(now)
        if early:
            for job in self.waiting:
                before = self.reserved.pop(job.job_id)
                self.reserved[job.job_id] = min(before, self._earliest(job, now))
        for job in arrived:
            self.waiting.append(job)
            self.reserved[job.job_id] = self._earliest(job, now)

    def _reserve_anew(self, now: float) -> None:
        """Keep the reservations that still fit, in queue order; place the others anew."""
        kept, self.reserved = self.reserved, {}
        displaced = []
        for job in self.waiting:
            start = kept[job.job_id]
            if start >= now and self._earliest(job, now, start) == start:
                self.reserved[job.job_id] = start
            else:
                displaced.append(job)
        for job in displaced:
            self.reserved[job.job_id] = self._earliest(job, now)

    def _changes(self, now: float) -> list[tuple[float, int]]:
        """Return (instant, free processors from then on), from now on."""
        steps: dict[float, int] = {now: self.processors}

        def take(begin: float, end: float, width: int) -> None:
            steps[max(begin, now)] = steps.get(max(begin, now), 0) - width
            steps[end] = steps.get(end, 0) + width

        for number, (_, believed) in self.running.items():
            take(now, believed, self.jobs[number].processors)
        for number, start in self.reserved.items():
            job = self.jobs[number]
            take(start, max(start, now) + job.estimate, job.processors)
        instants = sorted(steps)
        return list(zip(instants, accumulate(steps[one] for one in instants), strict=True))

    def _earliest(self, job: RigidJob, now: float, least: float = -inf) -> float:
        """Return the first instant, at least that, from which a job fits for its estimate."""
        candidate: float | None = None
        for instant, free in self._changes(now):
            if candidate is not None and instant >= candidate + job.estimate:
                break
            if free < job.processors:
                candidate = None
            elif candidate is None:
                candidate = max(instant, least)
        return now if candidate is None else candidate

    def _free(self) -> int:
        return self.processors - sum(self.jobs[number].processors for number in self.running)

    # words

    def _why_not(self, job: RigidJob, now: float) -> tuple[str, str]:
        """Return the rule that a start breaks, and how."""
        if self.rule in RESERVING:
            due = self.reserved[job.job_id]
            text = f"starts at {self._show(now)}, before its reservation at {self._show(due)}"
            return "order", text
        wanted = self._wanted(now)
        first = next((other for other in self.waiting if other not in wanted), job)
        free = self._free()
        needs = f"needs {job.processors} processor{'s' * (job.processors != 1)} where"
        if job.processors > free:
            return "capacity", f"{needs} {free} {'is' if free == 1 else 'are'} free"
        if self.rule == "fcfs" or first is job:
            ahead = next(other for other in self.waiting if other is not job)
            return "order", f"passes job {ahead.job_id}, which was submitted before it"
        begun = [other for other in wanted if self.waiting.index(other) < self.waiting.index(first)]
        shadow, spare = self._shadow(first, begun, now)
        return "delay", (
            f"passes job {first.job_id}, the first that waits, and delays it: it may end at "
            f"{self._show(now + job.estimate)}, after {self._show(shadow)}, "
            f"and {needs} {spare} will be left over"
        )
