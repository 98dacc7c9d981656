"""What a reader must know beside figures: what predictors were given, a log's own schedule."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sim.results.durable import MANIFEST, SUMMARY, known_object, read_object
from sim.results.rows import SECONDS, molded_text, number_of, numbers_of, texts
from sim.results.steady_state import Figures, Summary, listed

TREATED = ("molded_jobs", "resized_jobs", "decisions_by_belief")
HOUR = 3600.0
_SIZES = {"class": "which of its inputs a job has, not how large it is", "hidden": "no job's size"}
_TIMES = {
    "exact": "requested times are the true runtimes",
    "recorded": "recorded requested times",
    "modelled": "requested times modelled, as none is recorded",
    "recorded and exact": "recorded requested times, missing ones filled with the true runtime",
    "recorded and modelled": "recorded requested times, missing ones modelled",
    "None": "requested times recorded in some simulations, modelled or filled in others",
    "": "requested times of which the summary says nothing",
}
_CURVES = {
    "invented": "invented curves",
    "measured": "measured curves",
    "none": "no curves (jobs are rigid)",
}


_REQUESTS = {
    "efficiency": ", requests that know them",
    "independent": ", requests independent of them (moldability.requests=independent)",
}


def _percent(share: float) -> str:
    """Return a share in percent, two digits of small ones.

    Examples
    --------
    >>> _percent(2.1314), _percent(0.0041)
    ('213.1 %', '0.41 %')
    """
    return f"{100 * share:.1f} %" if share >= 0.01 else f"{100 * share:.2g} %"


def _runs(figures: Figures) -> str:
    runs, share = figures.get("given_runs"), figures.get("given_work_share")
    if not runs:
        return "no runs before the start"
    charged = figures.get("given_charged")
    how = "submitted as jobs ahead of all and charged" if charged else "free of charge"
    part = "" if share is None else f" ({_percent(float(share))} of the work)"
    return f"{float(runs):,.0f} runs before the start{part}, {how}"


def _known_sizes(figures: Figures) -> str:
    sizes, noise = figures.get("given_sizes"), figures.get("given_size_noise")
    if sizes == "class" and not figures.get("sizes_per_application"):
        return "requested times as the only hint of input sizes"
    if sizes != "known":
        return _SIZES.get(str(sizes), "the sizes of some jobs")
    if not isinstance(noise, int | float) or not noise:
        return "every job's serial time"
    return f"every job's serial time with noise of {100 * noise:.2g} %"


def given_line(figures: Figures) -> str | None:
    """Return in one line what predictors were given, None for a summary that does not say.

    Examples
    --------
    >>> figures = {"given_runs": 150, "given_work_share": 0.0123, "given_charged": True,
    ...     "given_sizes": "known", "given_size_noise": 0.1, "given_applications": "invented",
    ...     "applications": 50, "given_curves": "invented", "given_requests": "efficiency",
    ...     "given_requested_times": "tsafrir"}
    >>> for part in given_line(figures).split("; "):
    ...     print(part)
    150 runs before the start (1.2 % of the work), submitted as jobs ahead of all and charged
    every job's serial time with noise of 10 %
    50 invented applications
    invented curves, requests that know them
    requested times modelled (tsafrir)
    """
    if "given_runs" not in figures:
        return None
    number = figures.get("applications")
    count = f"{float(number):,.0f} " if isinstance(number, int | float) else ""
    times = str(figures.get("given_requested_times", ""))
    curves = _CURVES.get(str(figures.get("given_curves")), "curves of several kinds")
    named = _identity(figures.get("given_identity"))
    kind = figures.get("given_applications") or "partly invented"
    where = " among the simulated jobs" if kind == "recorded" else ""
    where += "" if number is None or float(number).is_integer() else " (a mean)"
    parts = [
        *(["the true runtimes"] if figures.get("given_truth") else []),
        _runs(figures),
        _known_sizes(figures),
        f"{count}{kind} applications{named}{where}",
        curves + _REQUESTS.get(str(figures.get("given_requests")), ""),
        _TIMES.get(times, f"requested times modelled ({times})"),
    ]
    return "; ".join(parts)


def total(summaries: Sequence[Summary], key: str) -> float | None:
    """Return the sum of a figure over simulations, None where one lacks it."""
    known = numbers_of(summaries, key)
    return sum(known) if known and len(known) == len(summaries) else None


FLOOR = "which moldability.min_processors can forbid"
"""What can be done about jobs that run on fewer processors than any job requests."""


def treated_sentence(
    own: Sequence[Summary], other: Sequence[Summary] = (), is_read: bool = True
) -> str:
    """Return how many jobs were treated otherwise than they asked, and on what beliefs.

    It is empty where the summaries of a run's simulations do not say it. Others are of what it
    is compared with; `is_read` tells whether predictions change anything, as far as is known.

    Examples
    --------
    >>> run = {"molded_jobs": 18, "resized_jobs": 2, "jobs": 1000, "decisions_by_belief": 40}
    >>> treated_sentence([run | {"reallocations": 7}])
    '18 of 1,000 jobs molded, 2 resized (7 times) at no cost, by predictions read in 40 decisions.'
    >>> treated_sentence([run | {"molded_jobs": 0, "resized_jobs": 0}], [])
    '0 of 1,000 jobs molded, 0 resized: nothing is gained or lost by molding.'
    """
    molded, resized, read = (total(own, key) for key in TREATED)
    if molded is None or resized is None or read is None:
        return ""
    below = total(own, "jobs_below_requests")
    fewer = f" ({below:,.0f} to fewer processors than any job requests, {FLOOR})" if below else ""
    said = f"{molded_text(own)} jobs molded{fewer}, {resized:,.0f} resized"
    if not molded + resized:
        more, theirs = (total(other, key) or 0.0 for key in TREATED[:2])
        if more + theirs:
            return f"{said}; in the other run {more:,.0f} molded, {theirs:,.0f} resized."
        return f"{said}: nothing is gained or lost by molding."
    if resized:
        area = (total(own, "reallocation_area") or 0.0) / HOUR
        often = f" ({times:,.0f} times)" if (times := total(own, "reallocations")) else ""
        said += f"{often} at {f'{area:,.4g} processor-hours' if area else 'no cost'}"
    if not is_read:
        return f"{said}, whatever was predicted."
    unread = "by no prediction" + (", so that no measured run supports it" if not resized else "")
    beliefs = f"by predictions read in {read:,.0f} decisions" if read else unread
    others = ", the others by no prediction" if 0 < read < molded and not resized else ""
    return f"{said}, {beliefs}{others}."


def rests_sentence(figures: Summary) -> str:
    """Return what would have to be true of jobs and predictors; empty where nothing says it.

    Examples
    --------
    >>> print(rests_sentence({"given_runs": 0, "share_moldable": 0.5})[:53])
    This rests on: no runs before the start; the sizes of
    """
    if not (given := given_line(dict(figures))):
        return ""
    kinds = ("moldable", "malleable") if figures.get("resized_jobs") else ("moldable",)
    shares = {kind: number_of(figures, f"share_{kind}") for kind in kinds}
    if len(set(shares.values())) == 1:
        shares = {" and ".join(kinds): shares["moldable"]}
    told = [f"{100 * s:.3g} % of the jobs {kind}" for kind, s in shares.items() if s is not None]
    if told and figures.get("given_requests") == "efficiency":
        told[-1] += " (one-processor jobs are not)"
    return f"This rests on: {'; '.join([given, *told])}.{_decisive(figures)}"


def _decisive(figures: Summary) -> str:
    """Return which other assumption changes the outcome most, where a run has tried them."""
    other, change = figures.get("assumption"), number_of(figures, "assumption_change")
    if other is None:
        return ""
    if change is None:
        return f" Under one other assumption tried ({other}) a queue does not settle."
    return f" Of other assumptions tried, {other} change it most, to {100 * change:+.1f} %."


def _identity(identity: object) -> str:
    """Return in brackets what jobs of one recorded application share."""
    if not isinstance(identity, str):
        return ""
    shared = identity.replace("_", " and ")
    return " (a job each)" if identity == "none" else f" (by {shared})"


FEW = 0.1
"""Share of the starts below which a learning predictor hardly takes part."""


def few_predictions(named: Mapping[str, Sequence[Summary]]) -> list[str]:
    """Return in a sentence whose predictors hardly take part, of the summaries of named groups.

    Examples
    --------
    >>> for line in few_predictions({"sa": [{"share_own_predictions": 0.04}], "easy": [{}]}):
    ...     print(line[:66])
    Predictors answered fewer than 10 % of the starts themselves in sa
    """
    few = []
    for name, own in named.items():
        known = numbers_of(own, "share_own_predictions")
        if known and sum(known) < FEW * len(known):
            few.append(f"{name} ({_percent(sum(known) / len(known))})")
    if not few:
        return []
    return [
        f"Predictors answered fewer than {100 * FEW:g} % of the starts themselves in "
        f"{listed(few)}; requested times were used for the rest. Changes there are hardly due "
        "to these predictors, and their errors are of few jobs."
    ]


def killed_sentence(named: Mapping[str, Sequence[Summary]]) -> list[str]:
    """Return in a sentence under which runs jobs are killed, where that differs between them.

    Examples
    --------
    >>> told = {"sa": [{"killed_jobs": 5, "jobs": 50}], "easy": [{"killed_jobs": 0, "jobs": 50}]}
    >>> print(killed_sentence(told)[0][:57])
    Jobs were killed at their time limits (5 of 50 under sa).
    >>> killed_sentence({"sa": told["sa"]})
    []
    """
    killed = {name: total(own, "killed_jobs") or 0.0 for name, own in named.items()}
    if len(set(killed.values())) < 2:
        return []
    some = [
        f"{number:,.0f} of {total(named[name], 'jobs') or 0.0:,.0f} under {name}"
        for name, number in killed.items()
        if number
    ]
    return [
        f"Jobs were killed at their time limits ({listed(some)}). A killed job counts only up to "
        "its limit, so that a shorter mean is no gain where more are killed."
    ]


NOBODY = "recorded"
"""The policy that decides nothing and asks no predictor."""
EXCESS = "excess_processors"
"""Figure that only summaries of a log's own schedule have."""


def is_recorded(figures: Mapping[str, object]) -> bool:
    """Say whether a summary is of the log's own schedule."""
    return figures.get(EXCESS) is not None


def recorded_sentences(schedules: Sequence[Mapping[str, Any]], in_windows: bool) -> list[str]:
    """Return what sets summaries of the log's own schedule apart, in windows of it or whole."""
    lines = []
    worst = max(schedules, key=lambda one: float(one[EXCESS] or 0), default=None)
    if worst is not None and worst[EXCESS]:
        lines.append(
            f"The recorded schedule holds up to {worst[EXCESS]:,.0f} processors more than "
            f"cluster.processors={worst['processors']:.0f}."
        )
    if in_windows:
        lines.append(
            "Simulated windows of the log start on an empty machine; the recorded waits in them "
            "reflect what was running and queued before."
        )
    return lines


BACKTESTS = Path("backtests")
"""Below the working folder."""
BACKTEST = "backtest.json"
_TRIALS = ("capacity=", "begin=")
"""Beginnings of the names of folders of backtests that no run is like."""
SAMPLE = "sample.swf.gz"
"""The log in the package."""
_GENERATED = "sample is a generated log, which no site ran: for answers about a site take its own."
_NONE = (
    "No backtest of {log} in {folder}/: how far simulated schedules are from the recorded one is "
    "unknown (moldsim backtest, for logs with waits)."
)


def backtest_folder(source: str, checksum: str | None) -> Path:
    """Return where the backtest of a log lies.

    Examples
    --------
    >>> backtest_folder("my log.swf.gz", "0123456789ab").as_posix()
    'backtests/my_log-01234567'
    """
    stem = re.sub(r"[^\w-]+", "_", source.split(".")[0]) or "log"
    return BACKTESTS / f"{stem}-{(checksum or '')[:8]}"


def find_backtest(source: str, checksum: str, size: object = None) -> dict[str, Any] | None:
    """Return the backtest of a log with this text on a machine of this size, where it is known.

    It lies in its usual place or one beside or below it; one of a trial is none.
    """
    below = sorted(BACKTESTS.rglob(BACKTEST), key=lambda path: (len(path.parts), path))
    for path in (backtest_folder(source, checksum) / BACKTEST, *below):
        found = {} if path.parent.name.startswith(_TRIALS) else known_object(path) or {}
        whole = {"nearest", "verdict", "candidates"} <= found.keys()
        if whole and found.get("checksum") == checksum and size in (None, found.get("processors")):
            return found
    return None


def distance(found: Mapping[str, Any]) -> str:
    """Return in a sentence how far the nearest candidate is from the recorded schedule.

    Examples
    --------
    >>> one = {"name": "easy", "mean_wait_difference": -0.11, "spearman_wait": 0.43}
    >>> distance({"nearest": "easy", "verdict": "care", "candidates": [one], "log": "my.swf"})
    "Backtest of my.swf: care. easy comes nearest to the recorded schedule: mean wait -11 %, \
Spearman's rank correlation of waits 0.43."
    """
    own = next(one for one in found["candidates"] if one["name"] == found["nearest"])
    near, log = " comes nearest to", ", with ".join([found["log"], *found.get("given", ())])
    quarters = ""
    if found["verdict"] == "distrust":
        is_alone = len(found["candidates"]) == 1
        tried = "the only candidate" if is_alone else "the closest by the ratio of mean waits"
        near = f", {tried}, is not close to"
        parts = ", ".join(map(quarter_distance, own.get("quarters", ())))
        quarters = f" (in quarters of the jobs {parts})" if parts else ""
    return (
        f"Backtest of {log}: {found['verdict']}. {found['nearest']}{near} the "
        f"recorded schedule: mean wait {relative(own['mean_wait_difference'])}, Spearman's rank "
        f"correlation of waits {ranks(own['spearman_wait'])}{quarters}."
    )


def quarter_distance(quarter: Mapping[str, Any]) -> str:
    """Return how far a quarter of the jobs is from the recorded: mean wait, rank correlation."""
    return f"{relative(quarter['mean_wait_difference'])} and {ranks(quarter['spearman_wait'])}"


def relative(value: float | None) -> str:
    """Return a relative difference in percent, in factors where it is large.

    Examples
    --------
    >>> relative(-0.113), relative(59.6), relative(None)
    ('-11 %', '61 times', 'not comparable')
    """
    if value is None or not math.isfinite(value):
        return "not comparable"
    return f"{100 * value:+.0f} %" if value < 5 else f"{1 + value:,.0f} times"


def ranks(value: float | None) -> str:
    """Return a rank correlation in two digits."""
    return "undefined" if value is None else f"{value:.2f}"


def backtest_sentence(source: str, checksum: str, size: float | None) -> str:
    """Return how far a log's backtest on a machine of this size is, or that there is none."""
    found = find_backtest(source, checksum, size)
    of_other = size and find_backtest(source, checksum)
    log = f"{source} on {size:,.0f} processors" if of_other else source
    return distance(found) if found else _NONE.format(log=log, folder=BACKTESTS)


def backtest_sentences(runs: Iterable[Path]) -> list[str]:
    """Return a line for each log and machine of runs: its backtest, or that there is none.

    Of the folders of simulations those of models say nothing.
    """
    logs: dict[tuple[Any, Any, Any], None] = {}
    for run in runs:
        for folder in (run, run / "replication=0"):
            if (folder / MANIFEST).is_file():
                made = read_object(folder / MANIFEST)
                size = number_of(known_object(folder / SUMMARY) or {}, "processors")
                logs[made.get("source"), made.get("checksum"), size] = None
    said = []
    for source, checksum, size in logs:
        if source and checksum:
            said.append(backtest_sentence(source, checksum, size))
            if source == SAMPLE:
                said.append(_GENERATED)
    return list(dict.fromkeys(said))


def distrusted(said: Iterable[str]) -> list[str]:
    """Return those lines by which a log's simulated schedules are not to be trusted."""
    return [one for one in said if one.startswith("Backtest of ") and ": distrust. " in one]


def precision_reached(run: Figures) -> str:
    """Return how precise a mean has become."""
    reached = run.get("precision_reached")
    return f"{100 * reached:.2g} %" if isinstance(reached, int | float) else "unknown"


def notes(run: Figures) -> list[str]:
    """Return what helps to read a summary, a sentence each.

    Examples
    --------
    >>> notes({"precision_met": True, "precision_reached": 0.0481, "replications": 14})
    ['Precision reached: ± 4.8 % with 14 replications.']
    """
    lines = []
    if run.get("precision_met"):
        reached, count = precision_reached(run), run.get("replications")
        lines.append(f"Precision reached: ± {reached} with {count} replications.")
    mean, half = (run.get(f"steady_mean_response_time{end}") for end in ("", "_half_width"))
    if isinstance(mean, int | float) and isinstance(half, int | float):
        shown = texts([mean, half], SECONDS)
        lines.append(
            f"Mean response in steady state: {shown[0]} ± {shown[1]} (95 %, by "
            f"{run.get('steady_batches')} batches of jobs)."
        )
    return lines
