"""Does a schedule keep the rules? FCFS, EASY and both conservatives, written the obvious way.

The validator shares nothing with the engine. It replays a schedule of rigid jobs
as it stands: at every instant it works out, from what the schedule itself did
before, which jobs the rule starts now, and compares. So one mistake is named
once, at the instant at which it was made, and does not spoil what follows.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from predictors.cli.terminal import SILENT, Display
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
    return _Validator(processors, rule).violations(jobs, spans, shown)


def _ticks(seconds: float) -> int:
    return round(seconds / RESOLUTION)


def _show(ticks: float) -> str:
    return f"{ticks * RESOLUTION:.12g}"


@dataclass(eq=False)
class _Scheduled:
    """A job as the schedule has it, times in multiples of `RESOLUTION`.

    It has a reservation while it waits, where the rule gives one, and a believed end once it runs.
    """

    job_id: int
    submit: float
    processors: int
    runtime: float
    estimate: float
    start: float
    end: float
    reserved: float = inf
    believed: float = inf
    is_late: bool = False


class _Validator:
    """The state of machine, queue and reservations as the schedule goes on."""

    def __init__(self, processors: int, rule: str) -> None:
        self.processors = processors
        self.rule = rule
        self.now = -inf
        self.found: list[Violation] = []
        self.waiting: list[_Scheduled] = []
        self.running: list[_Scheduled] = []

    def _say(self, job: int, time: float, rule: str, text: str) -> None:
        self.found.append(Violation(job, time * RESOLUTION, rule, text))

    # the schedule by itself

    def violations(
        self, jobs: Sequence[RigidJob], spans: Mapping[int, tuple[float, float]], shown: Display
    ) -> list[Violation]:
        """Return all violations."""
        known = {job.job_id: job for job in jobs}
        to_come = sorted(self._scheduled(known, spans), key=lambda job: job.submit)
        while (now := self._next(to_come)) < inf:
            self.now = now
            arrived = []
            while to_come and to_come[0].submit <= now:
                arrived.append(to_come.pop(0))
            self._pass(arrived)
            if shown.is_due():
                shown.show("checks the jobs", 1 - len(to_come) / len(known))
        return sorted(self.found, key=lambda violation: violation.time)

    def _scheduled(
        self, jobs: Mapping[int, RigidJob], spans: Mapping[int, tuple[float, float]]
    ) -> Iterator[_Scheduled]:
        """Yield the jobs that are in the schedule; say what is wrong with any by itself."""
        for number in spans.keys() - jobs.keys():
            self._say(number, _ticks(spans[number][0]), "missing", "is not in the workload")
        for number, job in jobs.items():
            submit, runtime, estimate = map(_ticks, (job.submit, job.runtime, job.estimate))
            if number not in spans:
                self._say(number, submit, "missing", "is not in the schedule")
                continue
            start, end = map(_ticks, spans[number])
            if start < submit:
                text = f"starts at {_show(start)}, before its submission at {_show(submit)}"
                self._say(number, start, "early", text)
                start, end = submit, submit + runtime
            elif end - start != runtime:
                text = f"runs for {_show(end - start)} s instead of {_show(runtime)}"
                self._say(number, start, "runtime", text)
            yield _Scheduled(number, submit, job.processors, runtime, estimate, start, end)

    def _next(self, to_come: list[_Scheduled]) -> float:
        times = [job.submit for job in to_come[:1]]
        times += [time for job in self.waiting for time in (job.start, job.reserved)]
        times += [time for job in self.running for time in (job.end, job.believed)]
        return min((time for time in times if time > self.now), default=inf)

    # what the rule wants, and what the schedule does

    def _pass(self, arrived: list[_Scheduled]) -> None:
        ended = [job for job in self.running if job.end <= self.now]
        self.running = [job for job in self.running if job.end > self.now]
        expired = [job for job in self.running if job.believed <= self.now]
        for job in expired:
            total = max(2 * (job.believed - job.start), self.now - job.start + _ticks(1.0))
            job.believed = job.start + total
        if self.rule == "conservative":
            if expired:
                self._reserve_anew(keep=True)
            for job in self.waiting if any(one.believed > self.now for one in ended) else ():
                before, job.reserved = job.reserved, inf
                job.reserved = min(before, self._earliest(job))
            for job in arrived:
                job.reserved = self._earliest(job)
                self.waiting.append(job)
        else:
            self.waiting += arrived
        wanted = self._wanted()
        begun = [job for job in self.waiting if job.start == self.now]
        why = "has its reservation" if self.rule in RESERVING else "fits"
        for job in wanted:
            if job not in begun and not job.is_late:
                job.is_late = True
                text = f"{why} at {_show(self.now)} and must start, but does not"
                self._say(job.job_id, self.now, "idle", text)
        reasons = {job: self._why_not(job) for job in begun if job not in wanted}
        for job in begun:
            if job in reasons:
                self._say(job.job_id, self.now, *reasons[job])
            self.waiting.remove(job)
            job.believed = self.now + job.estimate
            self.running.append(job)
        if begun and self._free() < 0:
            held = self.processors - self._free()
            text = f"starts while {held} processors are needed and {self.processors} are there"
            self._say(begun[-1].job_id, self.now, "capacity", text)
        if self.rule == "conservative" and begun != wanted:
            self._reserve_anew(keep=True)

    def _wanted(self) -> list[_Scheduled]:
        """Return the jobs that the rule starts now: in queue order, behind those who may pass."""
        if self.rule == "replan":
            self._reserve_anew(keep=False)
        if self.rule in RESERVING:
            return [job for job in self.waiting if job.reserved <= self.now]
        free = self._free()
        wanted = []
        rest = list(self.waiting)
        while rest and rest[0].processors <= free:
            free -= rest[0].processors
            wanted.append(rest.pop(0))
        if self.rule != "easy" or not rest:
            return wanted
        shadow, spare = self._shadow(rest[0], wanted)
        for job in rest[1:]:
            in_time = self.now + job.estimate <= shadow
            if job.processors <= free and (in_time or job.processors <= spare):
                free -= job.processors
                spare -= 0 if in_time else job.processors
                wanted.append(job)
        return wanted

    def _shadow(self, head: _Scheduled, begun: list[_Scheduled]) -> tuple[float, int]:
        """Return when the head will fit by the believed ends, and what it leaves over then."""
        ends = [(job.believed, job.processors) for job in self.running]
        ends += [(self.now + job.estimate, job.processors) for job in begun]
        free = self.processors - sum(width for _, width in ends)
        for end in sorted({end for end, _ in ends}):
            there = free + sum(width for other, width in ends if other <= end)
            if there >= head.processors:
                return end, there - head.processors
        return self.now, self.processors - head.processors

    # reservations

    def _reserve_anew(self, *, keep: bool) -> None:
        """Keep the reservations that still fit, if any are kept, and place the others anew."""
        kept = {job: job.reserved for job in self.waiting if keep and job.reserved >= self.now}
        for job in self.waiting:
            job.reserved = inf
        for job, start in kept.items():
            if self._earliest(job, start) == start:
                job.reserved = start
        for job in self.waiting:
            if job.reserved == inf:
                job.reserved = self._earliest(job)

    def _earliest(self, job: _Scheduled, least: float = -inf) -> float:
        """Return the first instant, at least that, from which a job fits for its estimate."""
        held = [(self.now, one.believed, one.processors) for one in self.running]
        for one in self.waiting:
            if one.reserved < inf:
                begin = max(one.reserved, self.now)
                held.append((begin, begin + one.estimate, one.processors))
        changes: Counter[float] = Counter({self.now: self.processors})
        for begin, end, width in held:
            changes[begin] -= width
            changes[end] += width
        candidate: float | None = None
        free = 0
        for instant in sorted(changes):
            free += changes[instant]
            if candidate is not None and instant >= candidate + job.estimate:
                break
            if free < job.processors:
                candidate = None
            elif candidate is None:
                candidate = max(instant, least)
        return self.now if candidate is None else candidate

    def _free(self) -> int:
        return self.processors - sum(job.processors for job in self.running)

    # words

    def _why_not(self, job: _Scheduled) -> tuple[str, str]:
        """Return the rule that a start breaks, and how."""
        if self.rule in RESERVING:
            due = _show(job.reserved)
            return "order", f"starts at {_show(self.now)}, before its reservation at {due}"
        wanted = self._wanted()
        first = next((other for other in self.waiting if other not in wanted), job)
        free = self._free()
        needs = f"needs {job.processors} processor{'s' * (job.processors != 1)} where"
        if job.processors > free:
            return "capacity", f"{needs} {free} {'is' if free == 1 else 'are'} free"
        if self.rule == "fcfs" or first is job:
            ahead = next(other for other in self.waiting if other is not job)
            return "order", f"passes job {ahead.job_id}, which was submitted before it"
        begun = [other for other in wanted if self.waiting.index(other) < self.waiting.index(first)]
        shadow, spare = self._shadow(first, begun)
        return "delay", (
            f"passes job {first.job_id}, the first that waits, and delays it: it may end at "
            f"{_show(self.now + job.estimate)}, after {_show(shadow)}, "
            f"and {needs} {spare} will be left over"
        )
