"""Why a job waited: ``moldsim explain RUN JOB``.

Its run is replayed, with somebody who looks on in each scheduling pass.
"""

import argparse
import datetime
import json
import logging
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from predictors.cli.terminal import Display, PlainConsole
from predictors.plain import shown_plainly
from sim.engine.setup import Setup
from sim.engine.watcher import RunSoFar, Watcher
from sim.errors import SimError
from sim.policies.backfill.easy import EasyScheduler
from sim.policies.base import OpenAllocation, Policy
from sim.policies.molding.scheduler import OpenQueueScheduler
from sim.policies.passes.memory import choices_in
from sim.policies.passes.queue_rule import QueueScheduler
from sim.results.artefacts import read_table
from sim.results.durable import answering
from sim.results.metrics import plain
from sim.results.rows import BEYOND, MOST_ERROR, PERCENT, duration, texts
from sim.simulation.progress import beginning, simulated_date
from sim.simulation.recorded_run import recorded_run
from sim.state.availability import shadow_time
from sim.state.view import View

PROCESSORS, RESERVATION, ORDER, RULE, KEPT_BACK = (
    "processors", "reservation", "order", "rule", "kept back",
)  # fmt: skip
"""Why a job does not start in a pass.

So many are not free as it waits for; they are, and others are promised them; nobody
passes a blocked job; the rule has it wait for a better start; the rule keeps it out of
the queue.
"""
Account = dict[str, Any]
"""Plain values by name; times in seconds, jobs by their numbers, node k as ``node k``."""

TOLD = (
    *("submit_time", "start_time", "end_time", "wait_time", "requested_processors"),
    *("requested_time", "allocated_processors", "believed_runtime", "runtime", "status"),
    *("restarts", "application"),
)
"""Columns of the table of jobs that an account has."""


class Recorder(Watcher):
    """Notes what becomes of one job. It asks nobody anything that was not asked without it.

    Attributes
    ----------
    explained : int
        Its index among `names`, the numbers of all jobs.
    waits : list of dict
        One for each time that it queued: its ``begin`` and ``start`` (None where it never
        started), the ``processors``, how many jobs ahead of it in the queue did not start then
        (``overtook``), jobs whose ends were taken in then (``ended_at_start``), and a row for
        each pass that left it waiting (``refused``); see `_refusal`.
    weighed : list of dict
        What was believed of its ``counts`` when it chose (``chosen``), or, where counts stay
        open (None), from when on: ``runtimes``, and ``starts`` where they were predicted.
    resized : list of dict
        When its processors changed while it ran, seconds, and from how many to how many.
    """

    needs_passes = True

    def __init__(self, job_id: int) -> None:
        self._job_id = job_id
        self.names: list[int] = []
        self.waits: list[Account] = []
        self.weighed: list[Account] = []
        self.resized: list[dict[str, float]] = []
        self._known, self._held = np.zeros((3, 0)), 0

    def around(self, setup: Setup) -> Setup:
        """Return a setup of which this is told.

        Raises
        ------
        SimError
            If there is no such job, or the policy is not made of the usual parts.
        """
        self.names = setup.trace.jobs["job_id"].tolist()
        if self._job_id not in self.names:
            said = f"job {self._job_id}: the replay has no such job"
            raise SimError(f"{said}; the run is of another version")
        self.explained = self.names.index(self._job_id)
        policy = setup.policy
        if not isinstance(policy, Policy):
            raise SimError(
                f"policy={type(policy).__name__}: only policies of order, backfill and allocation "
                "(sim.policies.base.Policy) can be explained"
            )
        self._is_open = isinstance(policy.allocation, OpenAllocation)
        self._shares = not getattr(policy.reallocation, "grows_only", policy.reallocation is None)
        return replace(setup, watchers=(*setup.watchers, self))

    def passed(self, seen: RunSoFar) -> None:
        """Note what a pass did to the job."""
        view, job, before = seen.view, self.explained, self._held
        held = {holder: count for _, holder, count in view.believed_ends.rows()}
        self._held = held.get(job, 0)
        if job in view.arrived:
            begun: Account = {"begin": view.now, "start": None, "processors": 0, "overtook": 0}
            self.waits.append({**begun, "ended_at_start": [], "refused": []})
        if not self.waits or self.waits[-1]["start"] is not None:
            if self._held and before not in (0, self._held):
                self.resized.append({"time": view.now, "before": before, "after": self._held})
            return
        wait, scheduler = self.waits[-1], _queue_scheduler(seen.scheduler)
        self._note_weighed(view, scheduler)
        if not self._held:
            wait["refused"].append(self._refusal(view, scheduler))
            return
        wait |= {"start": view.now, "processors": self._held}
        wait["overtook"] = len(_ahead(scheduler, view, job))
        wait["ended_at_start"] = self._named(run.job for run in view.ended)

    def _note_weighed(self, view: View, scheduler: QueueScheduler | None) -> None:
        """Note what passes have written down of the job since: by which beliefs it chose."""
        weighed, job = view.predictor._asked.weighed, self.explained
        if scheduler is not None and (with_starts := choices_in(scheduler.memory)[1]).size:
            weighed = with_starts
        weighed = weighed[:, np.unique(weighed[0], return_index=True)[1]]
        if not weighed.size or np.array_equal(weighed, self._known, equal_nan=True):
            return
        self._known, (counts, runtimes, starts) = weighed, weighed.tolist()
        is_settled = not (self._is_open or (self._shares and view.malleable[job]))
        self.weighed.append(
            {
                "time": view.now,
                "chosen": view._tables.processors.item(job) if is_settled else None,
                "counts": [*map(int, counts)],
                "runtimes": runtimes,
                "starts": [*map(plain, starts)],
            }
        )

    def _refusal(self, view: View, scheduler: QueueScheduler | None) -> Account:
        """Return why a job did not start in this pass.

        Returns
        -------
        dict
            ``time``; ``reason``; ``wanted``, the processors that it waits for, 0 where nothing is
            settled; ``free``, those left by all that starts or is resized in this pass;
            ``out_of_service``, processors; ``jobs_ahead``, how many wait ahead of it;
            ``first_ahead`` of them, with ``first_ahead_wants``; ``own_reservation``, where the rule
            gives it one; ``must_not_move``, the first reservation that it must not move;
            ``enough_free_at``, when so many are believed to be free, nobody else asking, None where
            they are; ``once_these_end``, who is believed to end until then; ``passed_by``, who is
            behind it and starts in this pass.
        """
        free, ahead, job = view.free, _ahead(scheduler, view, self.explained), self.explained
        place_of = {} if scheduler is None else scheduler.queue.place_of()
        reason, wanted, own, room = KEPT_BACK, 0, None, view.now
        promises: list[tuple[float, int, int]] = []
        taken: list[tuple[Any, ...]] = []
        if scheduler is not None and job in place_of:
            queue, place = scheduler.queue, place_of[job]
            wanted = least = queue.processors.item(place)
            reserved, is_held = scheduler.reserved_starts(), False
            if isinstance(scheduler, OpenQueueScheduler):
                memory = scheduler.memory
                spans, considered = memory.menu_spans[job], memory.kept["search_end"].item()
                first = spans["low"] if spans["high"] else spans["begin"]
                least = choices_in(memory)[0].item(first)
                reserved, is_held = reserved if considered else {}, place >= considered
            own, until = reserved.get(job), view.now + queue.runtime.item(place)
            others = set(reserved) - {job} if own is not None else set(ahead) & set(reserved)
            starts = [(reserved[one][0], one, reserved[one][1]) for one in others]
            promises = [each for each in starts if each[1] in ahead or each[0] < until]
            room, taken = shadow_time(view.believed_ends.rows(), free, least, view.now)
            reason = PROCESSORS
            if least <= free:
                reason = RULE if is_held or not promises else RESERVATION
                is_strict = isinstance(scheduler, EasyScheduler) and scheduler.strict
                reason = ORDER if is_strict and ahead else reason
        row: Account = {
            "time": view.now,
            "reason": reason,
            "wanted": wanted,
            "free": free,
            "out_of_service": sum(width for _, width in view.machine.outages.values()),
            "jobs_ahead": len(ahead),
            "first_ahead": None,
            "first_ahead_wants": 0,
            "own_reservation": own and plain(own[0]),
            "must_not_move": None,
            "enough_free_at": plain(room) if taken else None,
            "once_these_end": self._named(holder[1] for holder in taken),
            "passed_by": self._named(_started_behind(view, job)),
        }
        if ahead and reason != KEPT_BACK:
            row["first_ahead"] = self._named(ahead)[0]
            row["first_ahead_wants"] = queue.processors.item(place_of[ahead[0]])
        if promises:
            start, first, processors = min(promises)
            promise = {"job": self._named([first])[0], "start": plain(start)}
            row["must_not_move"] = {**promise, "processors": processors}
        return row

    def _named(self, jobs: Iterable[int]) -> list[int | str]:
        """Return what jobs are called; those below 0 are nodes."""
        return [self.names[one] if one >= 0 else f"node {-1 - one}" for one in jobs]


def _queue_scheduler(scheduler: Any) -> QueueScheduler | None:
    """Return who keeps the queue, behind all that add to what it decides."""
    while scheduler is not None and not isinstance(scheduler, QueueScheduler):
        scheduler = getattr(scheduler, "inner", None)
    return scheduler


def _ahead(scheduler: QueueScheduler | None, view: View, job: int) -> list[int]:
    """Return the waiting jobs that stand before a job, or came before one that is not queued."""
    queued = [] if scheduler is None else list(scheduler.queue)
    if job in queued:
        return queued[: queued.index(job)]
    submit = view.submit_time
    return [one for one in queued if (submit[one], one) < (submit[job], job)]


def _started_behind(view: View, job: int) -> list[int]:
    """Return who started now and was submitted after a job, in the order of the starts."""
    state, submit, holders = view._tables, view.submit_time, view.believed_ends.job
    jobs = holders[holders >= 0]
    started = jobs[state.start_time[jobs] == view.now].tolist()
    behind = [one for one in started if (submit[one], one) > (submit[job], job)]
    return sorted(behind, key=state.end_sequence.item)


def explained(folder: Path, job: int, console: Console | None = None) -> Account:
    """Replay a run, of several replications the first, and return what became of a job.

    Returns
    -------
    dict
        Of plain values, as ``--json`` prints it; times in seconds on the trace's clock.

    Raises
    ------
    SimError
        If there is no such run or job, or the run cannot be replayed.
    """
    run = recorded_run(folder)
    jobs = read_table(run.place / "jobs.parquet")
    own = jobs[jobs["job_id"] == job]
    if not len(own):
        known = jobs["job_id"][jobs["job_id"] >= 0]
        raise SimError(
            f"job {job}: {run.place} has no such job; its {len(known):,} jobs have numbers from "
            f"{known.min()} to {known.max()}"
        )
    scene = run.scene()
    origin, start = beginning(scene.trace)
    recorder = Recorder(job)
    with Display(console or Console(quiet=True), "replay") as shown:
        records = scene.replay(recorder.around(run.setup(scene, shown)))
    place, recorded = recorder.explained, jobs["start_time"].to_numpy()
    same = recorded.size == records.start_time.size
    other = int((recorded != records.start_time).sum()) if same else max(recorded.size, 1)
    return {
        "job": job,
        "run": run.place.as_posix(),
        "notes": list(run.notes),
        "origin": origin,
        "epoch": None if start is None else scene.trace.epoch,
        **{key: plain(own.iloc[0][key]) for key in TOLD},
        "replayed_start_time": plain(records.start_time[place]),
        "agrees": bool(same and recorded[place] == records.start_time[place]),
        "other_starts": other,
        "weighed": recorder.weighed,
        "waits": recorder.waits,
        "resized": recorder.resized,
    }


MOST_TOLD = 12
"""Parts of a wait that are told; all are in ``--json``."""
MOST_NAMED = 6
"""Jobs that a sentence names."""
MOST_COUNTS = 24
"""Counts that a table shows; of more, powers of two and the chosen one."""
BECAUSE = {
    PROCESSORS: "too few processors were free",
    RESERVATION: "others were promised the processors that were free",
    ORDER: "the policy lets no job pass a blocked one",
    RULE: "the rule had it wait for a better start",
    KEPT_BACK: "the rule held it out of the queue",
}
ClockFormat = Callable[[float], str]
"""Says an instant in words."""


def _jobs(*jobs: int | str) -> str:
    """Return what jobs are called; negative numbers are calibration runs, nodes have names.

    Examples
    --------
    >>> _jobs(4, 7), _jobs(4), _jobs(-1, -2, 4, "node 3")
    ('jobs 4, 7', 'job 4', 'job 4, calibration runs 1, 2 and node 3')
    """
    named = {
        "job": [str(one) for one in jobs if isinstance(one, int) and one >= 0],
        "calibration run": [str(-one) for one in jobs if isinstance(one, int) and one < 0],
        "node": [one.removeprefix("node ") for one in jobs if isinstance(one, str)],
    }
    parts = [
        f"{kind}{'s' * (len(names) > 1)} {_first(names, ', ')}"
        for kind, names in named.items()
        if names
    ]
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]


def _first(names: Sequence[str], between: str) -> str:
    """Return the first of some names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return between.join(names[:MOST_NAMED]) + more


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _counted(number: int, what: str, plural: str = "s") -> str:
    return f"{number:,} {what}{'' if number == 1 else plural}"


def sentences(told: Account) -> Iterator[str]:
    """Yield what is to be said of a job, the answer first."""
    origin, start = told["origin"], None
    if told["epoch"] is not None:
        start = datetime.datetime.fromtimestamp(told["epoch"] + origin, datetime.UTC)

    def at(time: float) -> str:
        return simulated_date(time - origin, start, to_the_second=True)

    yield from _answer(told, at)
    if told["agrees"]:
        others = told["other_starts"]
        all_of_it = "all jobs start as in the run" if not others else (
            f"other jobs that start otherwise than in the run: {others:,}")  # fmt: skip
        yield f"The replay starts it when the run did; {all_of_it}."
    else:
        yield (
            f"The replay DIFFERS: it starts the job at {at(told['replayed_start_time'])}, "
            f"the run did at {at(told['start_time'])}; what follows is true of the replay "
            "alone."
        )
    for note in told["notes"]:
        yield f"Note: {note}."
    yield from _choice(told, at)
    waits = told["waits"]
    for number, wait in enumerate(waits[:MOST_TOLD]):
        yield from _wait(wait, number, at)
    if len(waits) > MOST_TOLD:
        yield f"Further waits: {len(waits) - MOST_TOLD:,} (--json has every wait)."
    yield from _course(told, at)


def _answer(told: Account, at: ClockFormat) -> Iterator[str]:
    submit, waited = at(told["submit_time"]), told["wait_time"]
    if not waited:
        yield f"Job {told['job']} did not wait: it started at {submit}, when it came."
        return
    lost: dict[str, float] = {}
    for wait in told["waits"]:
        for _, reason, seconds in _spans(wait):
            lost[reason] = lost.get(reason, 0.0) + seconds
    whole = sum(lost.values()) or 1.0
    parts = [
        f"{duration(seconds)} ({texts([seconds / whole], PERCENT)[0]}) because {BECAUSE[reason]}"
        for reason, seconds in sorted(lost.items(), key=lambda item: -item[1])
        if seconds > 0
    ]
    again = len(told["waits"]) > 1
    yield (
        f"Job {told['job']} came at {submit} and waited {duration(waited)}"
        f"{' before its first start' if again else ''}: {'; '.join(parts)}"
        f"{', counting the waits after it was interrupted' if again else ''}."
    )


def _spans(wait: Account) -> Iterator[tuple[Account, str, float]]:
    """Yield each pass, its reason, and the seconds until the next."""
    refused = wait["refused"]
    ends = [*(one["time"] for one in refused[1:]), wait["start"]][: len(refused)]
    for one, end in zip(refused, ends, strict=True):
        yield one, one["reason"], (0.0 if end is None else end - one["time"])


def _choice(told: Account, at: ClockFormat) -> Iterator[str]:
    wanted = _counted(told["requested_processors"], "processor")
    asked = f"It asked for {wanted} for {duration(told['requested_time'])}"
    weighed = told["weighed"]
    if not weighed:
        got = told["allocated_processors"]
        more = f"it got {got}, and no expected runtimes of its counts were compared"
        is_asked = got in (None, told["requested_processors"])
        yield f"{asked}; {'no other count was weighed' if is_asked else more}."
        return
    yield f"{asked}."
    changes = "" if len(weighed) == 1 else f", the last of {len(weighed)} times"
    last = weighed[-1]
    yield f"Expected runtimes of its counts at {at(last['time'])}{changes}:"
    taken = last["chosen"] or told["allocated_processors"]
    rows = list(zip(last["counts"], last["runtimes"], last["starts"], strict=True))
    if len(rows) > MOST_COUNTS:
        kept = (taken, told["requested_processors"])
        rows = [row for row in rows if row[0] & (row[0] - 1) == 0 or row[0] in kept]
    starts = any(start is not None for _, _, start in rows)
    yield "  processors  expected runtime" + ("  would start          would end" if starts else "")
    for count, runtime, start in rows:
        line = f"  {count:10,}  {duration(runtime):>16}"
        if start is not None:
            line += f"  {at(start):<19}  {at(start + runtime)}"
        yield line + ("  <- chosen" if count == taken else "")


def _wait(wait: Account, number: int, at: ClockFormat) -> Iterator[str]:
    refused = wait["refused"]
    if number:
        yield f"It came back to the queue at {at(wait['begin'])}."
    if refused:
        yield f"It was refused in {_counted(len(refused), 'scheduling pass', 'es')}:"
        alike = groupby(_spans(wait), lambda s: (s[1], s[0]["wanted"], s[0]["first_ahead"]))
        parts = [list(part) for _, part in alike]
        longest = sorted(parts, key=lambda part: -sum(span[2] for span in part))[:MOST_TOLD]
        for part in parts:
            if part in longest:
                yield f"  {_part(part, at)}"
        if len(parts) > MOST_TOLD:
            yield f"  ... and {len(parts) - MOST_TOLD:,} shorter parts (--json has every pass)"
        passed = list(dict.fromkeys(job for one in refused for job in one["passed_by"]))
        if passed:
            yield f"Started before it although submitted later: {_jobs(*passed)}."
    if wait["start"] is None:
        yield "It never started."
        return
    what = f"It started at {at(wait['start'])} on {_counted(wait['processors'], 'processor')}"
    if refused and wait["ended_at_start"]:
        what += f", when {_jobs(*wait['ended_at_start'])} had ended"
    if wait["overtook"]:
        what += f", ahead of jobs that waited before it in the queue: {wait['overtook']:,}"
    yield f"{what}."


def _part(part: Sequence[tuple[Account, str, float]], at: ClockFormat) -> str:
    """Return what a part of a wait was for, of passes of one reason behind the same job."""
    first, last = part[0][0], part[-1][0]
    reason, seconds = part[0][1], sum(span[2] for span in part)
    free = [span[0]["free"] for span in part]
    few = f"{min(free):,}" if min(free) == max(free) else f"{min(free):,} to {max(free):,}"
    said = (
        f"from {at(first['time'])} for {duration(seconds)}, {_counted(len(part), 'pass', 'es')}: "
    )
    if reason == PROCESSORS:
        said += f"it needed {_counted(first['wanted'], 'processor')} (free: {few})"
    else:
        said += f"free processors: {few}, but {BECAUSE[reason]}"
    down = max(span[0]["out_of_service"] for span in part)
    if down:
        said += f"; up to {down:,} were out of service"
    if first["jobs_ahead"]:
        most = max(span[0]["jobs_ahead"] for span in part)
        head, wants = first["first_ahead"], first["first_ahead_wants"]
        said += f"; behind {_counted(most, 'waiting job')}"
        if head is not None:
            said += f", first {_jobs(head)} ({_counted(wants, 'processor')})"
    promise, own = last["must_not_move"], last["own_reservation"]
    if promise is not None:
        promised = _counted(promise["processors"], "processor")
        said += f"; {_jobs(promise['job'])} was promised {promised} from {at(promise['start'])}"
    if own is not None:
        said += f"; its own turn was expected at {at(own)}"
    if reason == PROCESSORS and last["enough_free_at"] is not None:
        said += (
            f"; enough were to be free at {at(last['enough_free_at'])}, once "
            f"{_jobs(*last['once_these_end'])} no longer held them"
        )
    return said


def _course(told: Account, at: ClockFormat) -> Iterator[str]:
    believed, took = told["believed_runtime"], told["runtime"]
    if believed is not None:
        off = (believed - took) / took if took else 0.0
        far = BEYOND if off > MOST_ERROR else f"{round(100 * off):+d} %"
        yield (
            f"It was expected to run {duration(believed)} and ran {duration(took)} ({far}), "
            f"until {at(told['end_time'])}: {told['status']}."
        )
    if told["restarts"]:
        times = _times(told["restarts"])
        yield f"It was started again {times}; these are figures of its last run."
    if told["resized"]:
        changes = [
            f"{one['before']:,} to {one['after']:,} at {at(one['time'])}" for one in told["resized"]
        ]
        yield f"Its processors changed {_times(len(changes))}: {_first(changes, '; ')}."


@answering
def main(given: Sequence[str] | None = None) -> int:
    """Explain why a job waited.

    Returns
    -------
    int
        0, 1 if the replay does not start the job when the run did, 2 if nothing can be said.
    """
    parser = argparse.ArgumentParser(
        prog="moldsim explain",
        description="Why a job waited: replays its run and shows each scheduling pass.",
    )
    parser.add_argument("run", type=Path, help="folder of a run, a replication or a baseline")
    parser.add_argument("job", help="its number, job_id in jobs.parquet")
    parser.add_argument("--json", action="store_true", help="every pass, for programs")
    asked = parser.parse_args(given)
    if not re.fullmatch(r"-?\d{1,18}", asked.job):
        raise SimError(
            f"job {asked.job}: must be a whole number, job_id in jobs.parquet; a task of an array, "
            "such as 17_3, has the number of its JobIDRaw there; if the accounting has none, the "
            "first task is 17 and the others are numbered from above the log's highest job: find "
            "yours by submit_time"
        )
    messages = PlainConsole(stderr=True)
    logging.basicConfig(level=logging.ERROR)  # what the run was warned of it has said itself
    told = explained(asked.run, int(asked.job), messages)
    if asked.json:
        sys.stdout.write(json.dumps(told, indent=1) + "\n")
    else:
        folds = textwrap.TextWrapper(
            max(PlainConsole().width, 40), subsequent_indent="    ", break_on_hyphens=False
        )
        for line in map(shown_plainly, sentences(told)):
            is_row = line.startswith("  ") and not line.startswith(("  from", "  ..."))
            sys.stdout.write(f"{line if is_row else folds.fill(line)}\n")
    return 0 if told["agrees"] else 1


if __name__ == "__main__":
    sys.exit(main())
