"""What a log holds: sizes, runtimes, load over time, users, repetition, anomalies."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from workloads.base import FloatArray, IntArray
from workloads.errors import WorkloadError
from workloads.logs.cleaning import RULES, Cleaned, screen
from workloads.logs.identity import identify, known_share, labels_by, measured_share, offered
from workloads.logs.log import tell_machine
from workloads.logs.swf import SwfLog

DAY_SECONDS = 86400.0
BURST_SHARE, BURST_TIMES = 0.5, 10.0
"""A user's burst: at least so much of a day's jobs, and so many times the mean day's."""

ALIKE = ("user", "requested_processors", "requested_time")
"""What similar jobs have in common."""

Figure = float | int | str | None
Sections = Mapping[str, Mapping[str, Figure]]


def describe(
    log: SwfLog, processors: int | None = None, actions: Mapping[str, str] | None = None
) -> Sections:
    """Return figures of what cleaning left of a log, by section and name.

    Parameters
    ----------
    log : SwfLog
    processors : int, optional
        Size of the machine, where the header does not say.
    actions : mapping of str to str, optional
        Of `workloads.logs.cleaning.screen`.

    Returns
    -------
    mapping
        Figures by section and name; times in seconds, shares plain numbers.

    Examples
    --------
    >>> from workloads.logs.swf import log_of_trace
    >>> from workloads.models.lublin import Lublin
    >>> from workloads.streams import Streams
    >>> log = log_of_trace(Lublin(jobs=100, load=0.8).trace(Streams(seed=1)))
    >>> describe(log)["log"]["jobs"]
    100
    """
    screened = screen(log, processors, actions)
    cleaned = screened.take(0, None)
    jobs = cleaned.jobs
    if jobs.empty:
        raise WorkloadError(f"{log.source}: none of {len(log.jobs):,} jobs can run")
    machine = processors or cleaned.processors or 1
    if processors is None:
        tell_machine(screened)
    return {
        "log": _whole(log, jobs, machine),
        "sizes": _sizes(jobs["requested_processors"].to_numpy(np.int64), machine),
        "runtimes": _runtimes(jobs),
        "load": _load(jobs, machine),
        "users": _users(jobs),
        "repetition": _repetition(jobs),
        "applications": _applications(screened.recorded()),
        "anomalies": _anomalies(log, cleaned, processors),
    }


def _whole(log: SwfLog, jobs: pd.DataFrame, machine: int) -> dict[str, Figure]:
    submit = jobs["submit_time"]
    return {
        "lines": len(log.jobs),
        "jobs": len(jobs),
        "processors": machine,
        "first_submit": float(submit.iloc[0]),
        "first_submit_date": log.date(float(submit.iloc[0])),
        "days": float(submit.iloc[-1] - submit.iloc[0]) / DAY_SECONDS,
        "share_with_recorded_wait": float((jobs["recorded_wait_time"] >= 0).mean()),
    }


def _spread(values: FloatArray) -> dict[str, Figure]:
    points = np.percentile(values, [0, 25, 50, 75, 95, 100])
    names = ("least", "lower_quartile", "median", "upper_quartile", "p95", "greatest")
    return {"mean": float(values.mean())} | dict(zip(names, points.tolist(), strict=True))


def _sizes(width: IntArray, machine: int) -> dict[str, Figure]:
    return {
        **_spread(width.astype(float)),
        "share_serial": float((width == 1).mean()),
        "share_powers_of_two": float(((width & (width - 1)) == 0).mean()),
        "share_half_machine_or_more": float((2 * width >= machine).mean()),
        "distinct": len(np.unique(width)),
    }


def _runtimes(jobs: pd.DataFrame) -> dict[str, Figure]:
    runtime = jobs["reference_runtime"].to_numpy(float)
    asked = jobs["requested_time"].to_numpy(float)
    known, timed = np.isfinite(asked), np.isfinite(asked) & (runtime > 0)
    rank = pd.DataFrame({"width": jobs["requested_processors"], "runtime": runtime}).rank()
    varied = (rank.nunique() > 1).all()
    return {
        **_spread(runtime),
        "median_requested_time": _of(np.median, asked[known]),
        "longest_requested_time": _of(np.max, asked[known]),
        "median_requested_over_runtime": _of(np.median, asked[timed] / runtime[timed]),
        "share_longer_than_requested": _of(np.mean, (runtime > asked)[known]),
        "distinct_requested_times": len(np.unique(asked[known])),
        "rank_correlation_with_size": float(rank.corr().to_numpy()[0, 1]) if varied else None,
    }


def _of(figure: Callable[..., float], values: np.ndarray) -> float | None:
    """Return a figure of some values; None without any."""
    return float(figure(values)) if len(values) else None


def _load(jobs: pd.DataFrame, machine: int) -> dict[str, Figure]:
    submit = jobs["submit_time"].to_numpy(float)
    span = float(submit[-1] - submit[0])
    area = (jobs["requested_processors"] * jobs["reference_runtime"]).to_numpy(float)
    day = ((submit - submit[0]) // DAY_SECONDS).astype(np.int64)
    count, load = np.bincount(day), np.bincount(day, area) / (machine * DAY_SECONDS)
    gaps = np.diff(submit)
    return {
        "offered": float(area.sum()) / (machine * span) if span > 0 else None,
        "busiest_day": float(load.max()),
        "jobs_a_day": float(count.mean()),
        "most_jobs_a_day": int(count.max()),
        "median_interarrival": _of(np.median, gaps),
        "longest_gap": _of(np.max, gaps),
    }


def _users(jobs: pd.DataFrame) -> dict[str, Figure]:
    known = jobs[jobs["user"] >= 0]
    if known.empty:
        return {"known": 0}
    area = known["requested_processors"] * known["reference_runtime"]
    count = known["user"].value_counts(normalize=True)
    share = area.groupby(known["user"]).sum().sort_values(ascending=False) / area.sum()
    return {
        "known": len(count),
        "busiest_share_of_jobs": float(count.iloc[0]),
        "busiest_share_of_area": float(share.iloc[0]),
        "users_with_half_of_the_area": int((share.cumsum() < 0.5).sum()) + 1,
    }


def _repetition(jobs: pd.DataFrame) -> dict[str, Figure]:
    """Return how often a similar job was seen before, and how much its runtime says.

    Similar jobs have one user, size and requested time. Executable numbers stay out:
    in many logs nearly every job has one of its own.
    """
    groups = jobs.groupby(list(ALIKE), sort=False, dropna=False)
    earlier = groups.cumcount().to_numpy()
    before = groups["reference_runtime"].shift(1).to_numpy(float)
    seen = earlier > 0
    own = np.maximum(jobs["reference_runtime"].to_numpy(float), 1.0)  # of zero seconds, a second
    ratio = np.abs(np.log(own[seen] / np.maximum(before[seen], 1.0)))
    return {
        "executables": int(jobs.loc[jobs["executable"] >= 0, "executable"].nunique()),
        "classes_of_similar_jobs": groups.ngroups,
        "share_seen_before": float(seen.mean()),
        "share_seen_three_times_before": float((earlier >= 3).mean()),
        "median_factor_to_the_last_similar": _of(lambda logs: np.exp(np.median(logs)), ratio),
    }


def _applications(recorded: pd.DataFrame) -> dict[str, Figure]:
    """Return what repeats under each identity that the log has anything to say on."""
    counts = recorded["requested_processors"].to_numpy(np.int64)
    found: dict[str, Figure] = {"auto_takes": identify(recorded, "auto", "log")[0]}
    for identity in offered(recorded):
        labels = labels_by(recorded, identity)
        found |= {
            f"{identity}: applications": int(labels.max()) + 1,
            f"{identity}: share seen three times before": known_share(labels),
            f"{identity}: share seen at three counts before": measured_share(labels, counts),
        }
    return found


def _anomalies(log: SwfLog, cleaned: Cleaned, given: int | None) -> dict[str, Figure]:
    found: dict[str, Figure] = {
        f"{what}: {RULES[name].meaning}": count
        for what, counts in (("left out", cleaned.dropped), ("repaired", cleaned.repaired))
        for name, count in counts.items()
    }
    days, jobs = _bursts(cleaned.jobs)
    overfull = _overfull(log, given or log.machine_size())
    return {
        **found,
        "days with a flurry of one user": days,
        "jobs in flurries": jobs,
        "instants with more processors held than there are": overfull,
    }


def _bursts(jobs: pd.DataFrame) -> tuple[int, int]:
    """Return days on which one user submits most jobs, far more than usual, and these jobs."""
    known = jobs[jobs["user"] >= 0]
    if known.empty:
        return 0, 0
    day = (known["submit_time"] - known["submit_time"].iloc[0]) // DAY_SECONDS
    own = known.groupby([day, known["user"]]).size()
    whole = known.groupby(day).size()
    often = BURST_TIMES * len(known) / (float(day.max()) + 1.0)
    most = own >= np.maximum(
        BURST_SHARE * whole.reindex(own.index.get_level_values(0)).to_numpy(float), often
    )
    burst = own[most.to_numpy()]
    return len(burst), int(burst.sum())


def _overfull(log: SwfLog, machine: int | None) -> int | None:
    """Return how often the recorded schedule holds more than the machine; None if unknown."""
    jobs = log.jobs
    ran = (jobs["wait_time"] >= 0) & (jobs["run_time"] > 0) & (jobs["allocated_processors"] > 0)
    if not ran.any() or machine is None:
        return None
    jobs = jobs[ran]
    begin = (jobs["submit_time"] + jobs["wait_time"]).to_numpy(float)
    end = begin + jobs["run_time"].to_numpy(float)
    held = jobs["allocated_processors"].to_numpy(float)
    times, index = np.unique(np.concatenate([begin, end]), return_inverse=True)
    change = np.bincount(index, np.concatenate([held, -held]), len(times))
    return int((np.cumsum(change) > machine + 1e-6).sum())
