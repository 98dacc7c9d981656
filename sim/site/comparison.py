"""What a backtest finds: how far simulated schedules are from the recorded one, and why.

What the log shows, and what a distance is made of: a candidate is played again with one thing
changed.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from sim.results.metrics import spread
from sim.results.outcome import Levels
from sim.results.rows import number_of
from sim.results.steady_state import Figures
from sim.site import site_logs
from sim.site.candidate_schedules import Candidate, starts, with_places
from sim.site.site_logs import FULL, Outage, Recorded, beginning
from workloads.base import FloatArray, IntArray

QUARTERS = 4
VERDICTS = {"trust": (0.2, 0.7), "care": (0.5, 0.4)}
"""Largest relative difference of mean waits and least rank correlation, in every quarter."""
DISTRUST = "distrust"
MOST_CLASSES = 10
"""Users and partitions that are shown, those with most jobs."""
LENGTHS = ((600.0, "up to 10 min"), (3600.0, "up to 1 h"), (28800.0, "up to 8 h"),
           (86400.0, "up to 1 d"), (np.inf, "longer"))  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """A candidate's schedule beside the recorded one.

    Attributes
    ----------
    name : str
    start : numpy.ndarray of float, shape (jobs of the log,), seconds
        NaN for jobs that were over before the begin.
    figures : dict
        Of `compare`.
    quarters : tuple of dict
        ``mean_wait_difference``, relative, and ``spearman_wait`` of each quarter of the jobs.
    """

    name: str
    start: FloatArray
    figures: Figures
    quarters: tuple[Figures, ...]

    @property
    def verdict(self) -> str:
        """``trust``, ``care`` or ``distrust``: what holds in every quarter."""
        for name, (most, least) in VERDICTS.items():
            if all(_within(quarter, most, least) for quarter in self.quarters):
                return name
        return DISTRUST


def _within(quarter: Figures, most: float, least: float) -> bool:
    far, rank = (number_of(quarter, key) for key in ("mean_wait_difference", "spearman_wait"))
    return far is not None and rank is not None and abs(far) <= most and rank >= least


def spearman(first: FloatArray, second: FloatArray) -> float | None:
    """Return the rank correlation of two samples, ties sharing their mean rank.

    None where one of them is constant.

    Examples
    --------
    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0]))
    0.5
    """
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return round(float(np.corrcoef(rankdata(first), rankdata(second))[0, 1]), 12)


def wait_figures(wait: FloatArray) -> Figures:
    """Return mean, median and 95th percentile of waits."""
    figures = spread(wait.copy(), "wait_time")
    return {key: figures[key] for key in ("mean_wait_time", "median_wait_time", "p95_wait_time")}


def utilization(found: Recorded, start: FloatArray) -> float | None:
    """Return the share of the machine that was held from the begin to the last end."""
    there = np.isfinite(start)
    begin, end = np.maximum(start[there], found.begin), (start + found.runtime)[there]
    lasting = end > found.begin
    area = float((found.count[there] * (end - begin))[lasting].sum())
    span = float(end.max(initial=found.begin)) - found.begin
    return area / (found.processors * span) if span > 0 else None


def held_by(found: Recorded, start: FloatArray) -> Levels:
    """Return the processors that a schedule holds over time."""
    there = np.isfinite(start)
    return site_logs.levels(start[there], (start + found.runtime)[there], found.count[there])


def compare(found: Recorded, name: str, start: FloatArray) -> Compared:
    """Compare a candidate's starts with the recorded ones; NaN where it did not play the job."""
    judged = np.flatnonzero(found.judged)
    wait, recorded = (start - found.submit)[judged], found.wait[judged]
    figures: Figures = {
        **wait_figures(wait),
        **distance_figures(wait, recorded),
        "median_absolute_wait_difference": float(np.median(np.abs(wait - recorded))),
        "utilization": utilization(found, start),
    }
    parts = np.array_split(np.arange(len(judged)), QUARTERS)
    quarters = tuple(distance_figures(wait[q], recorded[q]) for q in parts if len(q))
    return Compared(name, start, figures, quarters)


def distance_figures(wait: FloatArray, recorded: FloatArray) -> Figures:
    """Return how far waits are from recorded ones, in the mean and by rank."""
    mean, reference = float(wait.mean()), float(recorded.mean())
    same = 0.0 if mean == 0 else None
    return {
        "mean_wait_difference": mean / reference - 1.0 if reference else same,
        "spearman_wait": spearman(wait, recorded),
    }


def recorded_figures(found: Recorded) -> Figures:
    """Return the figures of the recorded schedule."""
    start = np.where(found.end > found.begin, found.start, np.nan)
    return {**wait_figures(found.wait[found.judged]), "utilization": utilization(found, start)}


def class_labels(found: Recorded) -> Mapping[str, pd.Series]:
    """Return the class of each job: by width, length, user, partition and month."""
    jobs = found.trace.jobs
    width = np.ceil(np.log2(np.maximum(found.count, 1))).astype(int)
    length = np.searchsorted([limit for limit, _ in LENGTHS], found.runtime)
    every = {
        "width": pd.Series([str(2**w) if w < 2 else f"{2 ** (w - 1) + 1}–{2**w}" for w in width]),
        "length": pd.Series([LENGTHS[place][1] for place in length]),
        "month": site_logs.dates(found),
    }
    for name in ("user", "partition"):
        if name in jobs and (jobs[name] >= 0).any() and jobs[name].nunique() > 1:
            names = pd.Series(found.trace.named(name))
            usual = names[found.judged].value_counts().index[:MOST_CLASSES]
            every[name] = names.where(names.isin([*usual, "unknown"]), "others")
    return every


def class_tables(found: Recorded, nearest: Compared) -> dict[str, list[dict[Hashable, Any]]]:
    """Return waits by class, recorded and by the nearest candidate, a list of rows a kind."""
    judged = found.judged
    wait = (nearest.start - found.submit)[judged]
    frame = pd.DataFrame({"recorded": found.wait[judged], "wait": wait})
    frame["difference"] = (frame["wait"] - frame["recorded"]).abs()
    tables = {}
    for kind, labels in class_labels(found).items():
        table = frame.groupby(labels.astype(str).to_numpy()[judged]).agg(
            jobs=("wait", "size"),
            recorded_mean_wait_time=("recorded", "mean"),
            mean_wait_time=("wait", "mean"),
            median_absolute_wait_difference=("difference", "median"),
        )
        rows = table.rename_axis("class").reset_index().to_dict("records")
        tables[kind] = sorted(rows, key=lambda row: _order(kind, row["class"]))
    return tables


def _order(kind: str, name: str) -> tuple[float, str]:
    """Return by what classes of a kind are sorted."""
    if kind == "length":
        return float([label for _, label in LENGTHS].index(name)), ""
    first = "".join(c for c in name.split("–")[0].split(" to ")[0] if c.isdigit())
    return (np.inf if name in ("others", "unknown") else float(first or 0)), name


@dataclass(frozen=True)
class Reason:
    """Something in the log that a simulated scheduler does not do.

    Attributes
    ----------
    code : str
    text : str
        A sentence with figures.
    evidence : dict
        What of the log shows it.
    weight : float
        Share of the recorded waiting, of jobs or of the machine that it concerns.
    """

    code: str
    text: str
    evidence: Mapping[str, object]
    weight: float


HOUR = 3600.0
LONG = 600.0
"""A wait beside a free machine that is no latency, seconds."""
SOME = 0.05
"""Share of jobs, of waiting or of time from which on something is a reason."""
BACK = 1000
"""So many jobs before a job are looked at for those that it passed."""
SHOWN = 3
"""Users and partitions, weeks and gaps that are named."""


def percent(share: float, digits: int = 0) -> str:
    """Return a share in percent.

    Examples
    --------
    >>> percent(0.123), percent(0.123, 1)
    ('12 %', '12.3 %')
    """
    return f"{100 * share:.{digits}f} %"


def reasons(found: Recorded, candidates: Sequence[Compared], missing_limits: float) -> list[Reason]:
    """Return what the log shows, that of most weight first.

    Candidates with other limits have the limits in their names.
    """
    told = (machine_size, outages, beside_free, latency, priorities)
    every = [*(tell(found) for tell in told), limits(candidates, missing_limits)]
    return sorted((r for r in every if r is not None), key=lambda one: -one.weight)


def machine_size(found: Recorded) -> Reason | None:
    """Compare the most processors that were held at once with the machine."""
    weeks, size = found.most_by_week, found.processors
    most, telling = int(weeks.max(initial=0)), weeks[found.telling_weeks]
    evidence: dict[str, object] = {
        "processors": size,
        "most_held": most,
        "most_held_by_week": weeks.tolist(),
    }
    known = found.source_of_size != "recorded"
    if known and most > size:
        over = int((weeks > size).sum())
        text = (
            f"The machine is assumed too small: up to {most:,} processors were held at once, it "
            f"has {size:,}; this was so in {over} of {len(weeks)} weeks."
        )
        return Reason("machine_too_small", text, evidence | {"weeks": over}, most / size - 1)
    if not (known and telling.size) or np.median(telling) >= FULL * size:
        return None
    middle = int(np.median(telling))
    text = (
        f"The machine is assumed too large: it has {size:,} processors, but at most {most:,} were "
        f"ever held at once, {middle:,} in the median week in which jobs waited."
    )
    return Reason("machine_too_large", text, evidence | {"median": middle}, 1 - middle / size)


def outages(found: Recorded) -> Reason | None:
    """Tell of weeks with less of the machine, and of times without a start."""
    low, without = site_logs.low_weeks(found), site_logs.gaps(found)
    span = float(found.weeks[-1] - found.begin)
    lost = sum(o.processors * (o.end - o.begin) for o in (*low, *without))
    share = lost / (span * found.processors)
    if share < SOME / 10:
        return None
    hours = sum(o.end - o.begin for o in without) / HOUR
    text = (
        f"Parts of the machine were missing: in {len(low)} of {len(found.most_by_week)} weeks less "
        f"than {percent(FULL)} of it was ever held though jobs waited, and {len(without)} times "
        f"({hours:,.0f} h together) nothing started though each waiting job would have fitted; "
        f"{percent(share, 1)} of the processor time was lost in all."
    )
    evidence = {
        "low_weeks": len(low),
        "gaps": len(without),
        "gap_hours": hours,
        "lost_share": share,
        "worst_weeks": _largest(low),
        "longest_gaps": _largest(without),
    }
    return Reason("outages", text, evidence, share)


def _largest(every: Sequence[Outage]) -> list[dict[str, float]]:
    """Return the outages that cost most."""
    chosen = sorted(every, key=lambda o: -o.processors * (o.end - o.begin))[:SHOWN]
    return [
        {"begin": o.begin, "hours": (o.end - o.begin) / HOUR, "processors": o.processors}
        for o in chosen
    ]


def beside_free(found: Recorded) -> Reason | None:
    """Tell of jobs that waited while the machine had room for all that did."""
    seconds = found.seconds_beside
    long = seconds > LONG
    total = float(found.wait[found.judged].sum())
    if not long.any() or (share := float(seconds[long].sum()) / total) < SOME:
        return None
    alone = found.met_nobody & (found.wait > LONG)
    alone_share = float(found.wait[alone].sum()) / total
    jobs = int(long.sum())
    text = (
        f"{jobs:,} jobs ({percent(jobs / found.judged.sum(), 1)}) waited more than ten minutes "
        f"while each job that waited would have fitted, {np.median(seconds[long]) / HOUR:,.1f} h "
        f"in the median, {percent(share)} of all waiting: holds, dependencies, limits or other "
        f"resources. {int(alone.sum()):,} of them met no other job ({percent(alone_share)} "
        f"of all waiting)."
    )
    whose = _whose(found, np.where(long, seconds, 0.0))
    evidence = {
        "jobs": jobs,
        "share_of_jobs": jobs / float(found.judged.sum()),
        "share_of_waiting": share,
        "median_hours": float(np.median(seconds[long])) / HOUR,
        "met_nobody": int(alone.sum()),
        "met_nobody_share_of_waiting": alone_share,
        **whose,
    }
    return Reason(
        "waited_beside_free_machine", text + _most_of(whose, "Most of it"), evidence, share
    )


def _whose(found: Recorded, amount: FloatArray) -> dict[str, list[dict[str, float]]]:
    """Return to which users and partitions most of an amount belongs."""
    said: dict[str, list[dict[str, float]]] = {}
    for name in ("user", "partition"):
        codes = found.trace.jobs.get(name)
        if codes is None or codes.nunique() < 2 or amount.sum() <= 0:
            continue
        words = found.trace.words.get(name, {})
        sums = pd.Series(amount).groupby(codes.to_numpy()).sum().nlargest(SHOWN)
        said[f"{name}s"] = [
            {name: words.get(code, code), "share": float(value / amount.sum())}
            for code, value in zip(sums.index.tolist(), sums.to_numpy(), strict=True)
        ]
    return said


def _most_of(whose: Mapping[str, list[dict[str, float]]], lead: str) -> str:
    """Return the users and partitions with most of an amount in words."""
    told = [
        ", ".join(f"{name[:-1]} {one[name[:-1]]} ({percent(one['share'])})" for one in rows)
        for name, rows in whose.items()
    ]
    return f" {lead}: {'; '.join(told)}." if told else ""


def latency(found: Recorded) -> Reason | None:
    """Tell how long jobs wait that no other job and no lack of processors holds up."""
    alone = found.met_nobody
    if alone.sum() < 20:
        return None
    seconds = float(np.median(found.wait[alone]))
    share = float((found.wait[found.judged] <= max(10 * seconds, 60.0)).mean())
    if seconds < 1.0 or share < 0.25:
        return None
    text = (
        f"Starting takes time: {int(alone.sum()):,} jobs met a free machine and no other job and "
        f"waited {seconds:,.0f} s in the median; {percent(share)} of all jobs waited little "
        f"longer, so that ranks of waits say little of them."
    )
    evidence = {"jobs": int(alone.sum()), "median_seconds": seconds, "share_of_jobs": share}
    return Reason("start_latency", text, evidence, share / 10)


def passed_over(found: Recorded) -> tuple[IntArray, IntArray]:
    """Return how many jobs each passed, and how often each was passed, although no harder to start.

    A job passes another that was submitted before it, still waits at its start, needs
    no more processors and asks for no more time. Backfilling in order of arrival never does so.
    """
    start, count = found.start, found.count
    asked = found.trace.jobs["requested_time"].to_numpy(float)
    passed, was = np.zeros(len(start), np.int64), np.zeros(len(start), np.int64)
    latest = np.append(-np.inf, np.maximum.accumulate(np.where(found.known, start, -np.inf))[:-1])
    for job in np.flatnonzero(found.judged & (start < latest)):
        first = max(0, job - BACK)
        before = slice(first, job)
        over = (start[before] > start[job]) & (count[before] <= count[job])
        over &= (asked[before] <= asked[job]) & found.known[before]
        over &= found.submit[before] < found.submit[job]
        passed[job] = over.sum()
        was[before] += over
    return passed, was


def priorities(found: Recorded) -> Reason | None:
    """Tell of starts that no order of arrival explains."""
    passed, was = passed_over(found)
    share = float((passed > 0)[found.judged].mean())
    if share < SOME:
        return None
    text = (
        f"{percent(share)} of the starts passed an earlier job that needed no more processors and "
        f"no more time: priorities, shares of users, or limits decided, not the order of arrival."
    )
    passing, behind = (_whose(found, one.astype(float)) for one in (passed, was))
    evidence = {
        "share_of_starts": share,
        "passed_jobs": int((was > 0).sum()),
        "passing": passing,
        "passed": behind,
    }
    text += _most_of(passing, "Most passed") + _most_of(behind, "Most were passed")
    return Reason("priorities", text, evidence, share)


def limits(candidates: Sequence[Compared], missing: float) -> Reason | None:
    """Tell how much hangs on limits that the log does not have."""
    if missing < 0.01:
        return None
    means = {one.name: number_of(one.figures, "mean_wait_time") or 0.0 for one in candidates}
    names = [name.removesuffix("_exact") for name in means if name.endswith("_exact")]
    pairs = {
        name: (means[f"{name}_exact"], means[f"{name}_modelled"])
        for name in names
        if f"{name}_modelled" in means
    }
    told = ", ".join(
        f"{exact:,.0f} s by {name} with exact and {modelled:,.0f} s with modelled limits"
        for name, (exact, modelled) in pairs.items()
    )
    text = f"{percent(missing)} of the jobs have no time limit; mean waits are {told or 'alike'}."
    evidence = {
        "missing_share": missing,
        "mean_waits": {n: {"exact": e, "modelled": m} for n, (e, m) in pairs.items()},
    }
    spread = [abs(np.log(max(e, 1.0) / max(m, 1.0))) for e, m in pairs.values()]
    return Reason("limits_missing", text, evidence, missing * min(1.0, max(spread, default=0.0)))


TIE = 1e-6
"""Seconds by which submits at one instant are told apart."""
MEANINGS = {
    "nothing": "as it is",
    "capacity": "without what the log shows to have been missing of the machine",
    "estimates": "every limit is the runtime",
    "order": "jobs are taken in the order of their recorded starts",
    "holds": "each job is submitted later by its wait while enough was free",
    "partitions": "each partition or queue is a machine of its own, of the most that it ever held",
}
"""What is changed, by name."""


def changes(found: Recorded, name: str, config: Mapping[str, Any]) -> list[Compared]:
    """Return how far a candidate is as it is and with each thing changed alone, by `MEANINGS`."""
    plain = Candidate(name, config, beginning(found))
    exact = found.trace.jobs.assign(requested_time=np.maximum(found.runtime, 1.0))
    known = beginning(replace(found, trace=replace(found.trace, jobs=exact)))
    played = {
        "nothing": starts(found, plain, []),
        "capacity": starts(found, plain, site_logs.outages_of(found)),
        "estimates": starts(found, replace(plain, first=known), []),
        "order": starts(found, _ordered(found, plain), []),
        "holds": _held(found, plain),
    }
    if found.trace.jobs["partition"].nunique() > 1:
        played["partitions"] = _apart(found, plain)
    return [compare(found, what, start) for what, start in played.items()]


def _ordered(found: Recorded, plain: Candidate) -> Candidate:
    jobs = plain.first.trace.jobs
    submit = jobs["submit_time"].to_numpy() + TIE * np.arange(len(jobs))
    places = np.argsort(np.argsort(found.start[plain.first.index], kind="stable"))
    first_come = {"_target_": "sim.policies.order.FirstComeFirstServed"}
    own = {"submits": submit.tolist(), "places": places.tolist()}
    config = with_places(plain.config, first_come, **own)
    trace = replace(plain.first.trace, jobs=jobs.assign(submit_time=submit))
    return replace(plain, config=config, first=replace(plain.first, trace=trace))


def _held(found: Recorded, plain: Candidate) -> FloatArray:
    """Return the starts where jobs come later by what they waited beside a free machine."""
    beside = found.seconds_beside
    submit = found.submit + np.where(beside > LONG, beside, 0.0)
    order = np.argsort(submit, kind="stable")
    jobs = found.trace.jobs.iloc[order].reset_index(drop=True)
    wait = np.where(found.known, np.maximum(found.start - submit, 0.0), -1.0)
    jobs = jobs.assign(submit_time=submit[order], recorded_wait_time=wait[order])
    later = replace(found, trace=replace(found.trace, jobs=jobs))
    began = np.empty(len(order))
    began[order] = starts(later, replace(plain, first=beginning(later)), [])
    return began


def _apart(found: Recorded, plain: Candidate) -> FloatArray:
    """Return the starts where no partition lends processors to another."""
    began, jobs = np.full(len(found.submit), np.nan), found.trace.jobs
    for rows in jobs.groupby("partition").indices.values():
        own = jobs.iloc[rows].reset_index(drop=True)
        alone = replace(found, trace=replace(found.trace, jobs=own))
        alone = replace(alone, processors=int(max(alone.held.values.max(), alone.count.max())))
        first = beginning(alone)
        if len(first.index):
            began[rows] = starts(alone, replace(plain, first=first), [])
    return began


@dataclass(frozen=True)
class Backtest:
    """What a backtest found.

    Attributes
    ----------
    found : Recorded
    candidates : tuple of Compared
    left_out : dict of str to str
        Candidates that were not played, and why.
    reasons : tuple of Reason
    outages : tuple of Outage
        What replays went without.
    changes : tuple of Compared
        The nearest candidate with one thing changed.
    given : tuple of str
        Overrides that set something otherwise than the log and the defaults say.
    """

    found: Recorded
    candidates: tuple[Compared, ...]
    left_out: Mapping[str, str]
    reasons: tuple[Reason, ...]
    outages: tuple[Outage, ...]
    changes: tuple[Compared, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def nearest(self) -> Compared:
        """The candidate of the best verdict, among these that of the nearest mean wait."""
        order = [*VERDICTS, DISTRUST]

        def distance(one: Compared) -> tuple[int, float]:
            difference = number_of(one.figures, "mean_wait_difference")
            far = 99 if difference is None or difference <= -1 else abs(np.log1p(difference))
            return order.index(one.verdict), float(far)

        return min(self.candidates, key=distance)

    def figures(self) -> dict[str, Any]:
        """Return what ``backtest.json`` holds."""
        found, nearest = self.found, self.nearest
        return {
            "log": found.trace.source,
            **({"given": list(self.given)} if self.given else {}),
            "checksum": found.trace.checksum,
            "jobs": int(found.judged.sum()),
            "jobs_without_wait": int((~found.known).sum()),
            "processors": found.processors,
            "processors_by": found.source_of_size,
            "begin": found.begin,
            "running_at_begin": int(found.running_first.sum()),
            "waiting_at_begin": int(found.waiting_first.sum()),
            "outages": [asdict(one) for one in self.outages],
            "dropped_jobs": dict(found.trace.dropped),
            "recorded": recorded_figures(found),
            "candidates": [
                {"name": one.name, **one.figures, "quarters": list(one.quarters),
                 "verdict": one.verdict}
                for one in self.candidates
            ],
            "left_out": dict(self.left_out),
            "nearest": nearest.name,
            "verdict": nearest.verdict,
            "reasons": [asdict(one) for one in self.reasons],
            "changes": [
                {"name": one.name, **one.figures, "verdict": one.verdict}
                for one in self.changes
            ],
            "classes": class_tables(found, nearest),
        }  # fmt: skip


def jobs_frame(found: Recorded, candidates: Sequence[Compared]) -> pd.DataFrame:
    """Return the table of ``backtest_jobs.parquet``: a row for each job and candidate."""
    judged = found.judged
    jobs = found.trace.jobs.loc[judged, ["job_id", "submit_time"]]
    jobs = jobs.assign(recorded_start_time=found.start[judged])
    parts = [jobs.assign(candidate=one.name, start_time=one.start[judged]) for one in candidates]
    columns = ["job_id", "candidate", "submit_time", "recorded_start_time", "start_time"]
    return pd.concat(parts, ignore_index=True)[columns].astype({"candidate": "str"})
