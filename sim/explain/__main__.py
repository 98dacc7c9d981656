"""Why a job waited: ``moldsim explain RUN JOB``."""

import argparse
import datetime
import json
import logging
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from predictors.cli.terminal import PlainConsole
from predictors.plain import shown_plainly
from sim.errors import SimError
from sim.explain.recorder import KEPT_BACK, ORDER, PROCESSORS, RESERVATION, RULE, Account, explained
from sim.results.durable import answering
from sim.results.rows import BEYOND, MOST_ERROR, PERCENT, duration, texts
from sim.simulation.progress import simulated_date

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


Clock = Callable[[float], str]
"""Says an instant in words."""


def _clock(told: Account) -> Clock:
    """Return what says the instants of an account."""
    start = None
    if told["epoch"] is not None:
        start = datetime.datetime.fromtimestamp(told["epoch"] + told["origin"], datetime.UTC)
    return lambda time: simulated_date(time - told["origin"], start, to_the_second=True)


def _job(number: int | str) -> str:
    """Return what a job is called; negative numbers are calibration runs, nodes have names.

    Examples
    --------
    >>> _job(3), _job(-2), _job("node 3")
    ('job 3', 'calibration run 2', 'node 3')
    """
    if isinstance(number, str):
        return number
    return f"job {number}" if number >= 0 else f"calibration run {-number}"


def _jobs(jobs: Sequence[int | str]) -> str:
    """Return several in a row.

    Examples
    --------
    >>> _jobs([4, 7]), _jobs([4]), _jobs([-1, -2, 4, "node 3"])
    ('jobs 4, 7', 'job 4', 'job 4, calibration runs 1, 2 and node 3')
    """
    named = [_job(one).rsplit(" ", 1) for one in jobs]
    parts = []
    for kind in ("job", "calibration run", "node"):
        names = [name for own, name in named if own == kind]
        if names:
            plural = "s" if len(names) > 1 else ""
            parts.append(f"{kind}{plural} {_first(names, ', ')}")
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
    at = _clock(told)
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


def _answer(told: Account, at: Clock) -> Iterator[str]:
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


def _choice(told: Account, at: Clock) -> Iterator[str]:
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
    yield from _table(last, told, at)


def _table(weighed: Account, told: Account, at: Clock) -> Iterator[str]:
    taken = weighed["chosen"] or told["allocated_processors"]
    rows = list(zip(weighed["counts"], weighed["runtimes"], weighed["starts"], strict=True))
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


def _wait(wait: Account, number: int, at: Clock) -> Iterator[str]:
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
            yield f"Started before it although submitted later: {_jobs(passed)}."
    if wait["start"] is None:
        yield "It never started."
        return
    what = f"It started at {at(wait['start'])} on {_counted(wait['processors'], 'processor')}"
    if refused and wait["ended_at_start"]:
        what += f", when {_jobs(wait['ended_at_start'])} had ended"
    if wait["overtook"]:
        what += f", ahead of jobs that waited before it in the queue: {wait['overtook']:,}"
    yield f"{what}."


def _part(part: Sequence[tuple[Account, str, float]], at: Clock) -> str:
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
            said += f", first {_job(head)} ({_counted(wants, 'processor')})"
    promise, own = last["must_not_move"], last["own_reservation"]
    if promise is not None:
        promised = _counted(promise["processors"], "processor")
        said += f"; {_job(promise['job'])} was promised {promised} from {at(promise['start'])}"
    if own is not None:
        said += f"; its own turn was expected at {at(own)}"
    if reason == PROCESSORS and last["enough_free_at"] is not None:
        said += (
            f"; enough were to be free at {at(last['enough_free_at'])}, once "
            f"{_jobs(last['once_these_end'])} no longer held them"
        )
    return said


def _course(told: Account, at: Clock) -> Iterator[str]:
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


def _folded(line: str, width: int) -> str:
    """Return a sentence in lines that fit, a row of a table as it is."""
    if line.startswith("  ") and not line.startswith(("  from", "  ...")):
        return line
    return textwrap.fill(line, max(width, 40), subsequent_indent="    ", break_on_hyphens=False)


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
        width = PlainConsole().width
        for one in sentences(told):
            sys.stdout.write(f"{_folded(shown_plainly(one), width)}\n")
    return 0 if told["agrees"] else 1


if __name__ == "__main__":
    sys.exit(main())
