"""Jobs from a recorded log: cleaned, cut, scaled and given requested times."""

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from predictors.plain import told_plainly
from workloads.arrivals import resample, scale_load, window_of
from workloads.base import Trace, check_jobs
from workloads.errors import Limits, WorkloadError, check_choice, check_count, check_load
from workloads.logs.archive import fetch_log, find_log, terminal_progress
from workloads.logs.cleaning import RULES, Cleaned, Screened, check_actions, screen
from workloads.logs.identity import (
    IDENTITIES,
    Identity,
    application_words,
    identify,
    request_classes,
)
from workloads.logs.swf import SwfLog, log_file, read_swf
from workloads.models.estimates import (
    HEAD_SHARE,
    HOUR,
    Estimates,
    estimates_of,
    site_limit,
    tsafrir_estimates,
)
from workloads.streams import Streams

_log = logging.getLogger(__name__)
_log.addFilter(told_plainly)

_MISSING = "missing_requested_time"
POPULAR, BEYOND = 0.01, 10
"""Share of the jobs that ask for a site's limit, and how many times the longest runtime none is."""


@dataclass(kw_only=True)
class LogWorkload(ABC):
    """What is done to a log between reading it and replaying it, whatever its format.

    Parameters
    ----------
    jobs : int or None
        Take the first so many jobs that can run; None takes all.
    load : float or None
        Offered load to scale to; None leaves interarrival times alone.
    estimates : str
        Requested times, see `Estimates`; ``recorded`` takes the log's.
    feedback : bool
        Whether jobs that follow another wait for its end and their think time.
    cleaning : mapping of str to str, optional
        Action for a rule of `workloads.logs.cleaning.RULES`, where not its default; what
        is usual in a format stands in ``usual``.
    estimate_factor, estimate_limit, time_limit, at_limit
        Of `Estimates`; a limit of None is the log's own, the longest that one job in a
        hundred requests, and so is its share.
    identity : str
        What jobs of one application have in common, of
        `workloads.logs.identity.IDENTITIES`.
    partition : str, int or None
        Take the jobs for one partition, or queue, alone; None takes all.
    limits : mapping of str to int, optional
        Of `workloads.errors.Limits`, where not its default.

    Raises
    ------
    WorkloadError
        If a value is out of range, or `load` meets `feedback`; the log is read by `trace`.
    """

    jobs: int | None = None
    load: float | None = None
    estimates: str = "recorded"
    feedback: bool = False
    cleaning: Mapping[str, str] | None = None
    estimate_factor: float = 5.0
    estimate_limit: float | None = None
    time_limit: float | None = None
    at_limit: float | None = None
    identity: Identity = "auto"
    partition: str | int | None = None
    limits: Mapping[str, int] | None = None
    usual: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        if self.jobs is not None:
            check_count("workload.jobs", self.jobs)
        check_load(self.load)
        if not isinstance(self.feedback, bool):
            raise WorkloadError(f"workload.feedback={self.feedback}: must be true or false")
        if self.feedback and self.load is not None:
            raise WorkloadError(
                f"workload.load={self.load}: refused with workload.feedback=true, under which "
                "submits follow the schedule; set workload.load=null or workload.feedback=false"
            )
        check_choice("workload.identity", self.identity, *IDENTITIES)
        self._actions = check_actions(self.cleaning, self.usual)
        self._limits = Limits.of(self.limits)
        self._estimates = estimates_of(self)

    @abstractmethod
    def read(self) -> SwfLog:
        """Return the log as it stands; a `WorkloadError` says why it cannot be had."""

    def read_part(self) -> SwfLog:
        """Return the log, or what of it was for the partition that is asked for."""
        log = self.read()
        return log if self.partition is None else log.of_part(str(self.partition))

    def trace(self, streams: Streams, processors: int | None = None) -> Trace:
        """Return the jobs of one replication, naming in a warning what was left out.

        A log that holds so many times as many jobs as are asked for is cut into
        windows, and each replication takes another; when none is left, weeks of
        the log are drawn again.

        Raises
        ------
        WorkloadError
            If the log cannot be read, no job can run, a rule says ``error``, or
            the log does not tell what the identity asks for.
        """
        return self.trace_of(self.read_part(), streams, processors)

    def trace_of(self, log: SwfLog, streams: Streams, processors: int | None = None) -> Trace:
        """Return the jobs of one replication of a log that was read before, as `trace` does."""
        screened = screen(log, processors, self._actions)
        usable = len(screened.usable)
        size = usable if self.jobs is None else min(self.jobs, usable)
        place = window_of(streams.replication, usable // size if size else 1)
        first = size * (place or 0)
        cleaned = screened.take(first, None if place is None else self.jobs)
        self._report(log, cleaned)
        by_use = processors is None and tell_machine(screened)
        recorded = screened.recorded()
        recorded_times = self._estimates.method == "recorded"
        identity, labels = identify(recorded, self.identity, log.source)
        taken = slice(first, first + len(cleaned.jobs))
        classes = request_classes(recorded["requested_time"].to_numpy())
        jobs = cleaned.jobs.assign(application=labels[taken], request_class=classes[taken])
        altered = self._altered
        if place is None:
            jobs, period = resample(jobs, size, streams("resampling"))
            jobs = jobs.assign(recorded_wait_time=-1.0)
            what = (
                f"draws {period} of the log again"
                if period
                else "repeats the log, too short to cut"
            )
            altered = f"replication {streams.replication} {what}, as no window is left"
            _log.warning("%s: %s; recorded waits do not apply", log.source, altered)
        machine = cleaned.processors if processors is None else processors
        if self.load is not None and machine is not None:
            jobs = scale_load(jobs, machine, self.load)
        jobs = self._requested(jobs, recorded, streams)
        words = {**log.words, "partition": log.words.get(log.parts, {})}
        return Trace(
            check_jobs(jobs, log.source),
            cleaned.processors,
            log.source,
            log.checksum,
            cleaned.dropped,
            # requested times that are drawn anew were not repaired
            {name: n for name, n in cleaned.repaired.items() if recorded_times or name != _MISSING},
            feedback=self.feedback,
            epoch=log.epoch(),
            identity=identity,
            altered=altered,
            size_by_use=by_use,
            words={**words, "application": application_words(jobs, identity, words)},
        )

    @property
    def _altered(self) -> str | None:
        """Why submit times are not the log's own."""
        if self.load is not None:
            return f"workload.load={self.load:g} scales the distances between them"
        return "workload.feedback=true lets them follow the schedule" if self.feedback else None

    def _requested(
        self, jobs: pd.DataFrame, recorded: pd.DataFrame, streams: Streams
    ) -> pd.DataFrame:
        """Return the jobs with a requested time each.

        Missing ones are Tsafrir's, whose longest estimate is `_limit`. Sizes are classed by
        recorded ones alone.
        """
        runtimes = jobs["reference_runtime"].to_numpy(float)
        runtimes = np.where(runtimes > 0, runtimes, 1.0)  # nobody asks for no time
        if self._estimates.method != "recorded":
            drawn = self._estimates_of(recorded).draw(runtimes, streams("estimates"))
            return jobs.assign(requested_time=drawn, request_class=-1)
        asked = jobs["requested_time"].to_numpy(float).copy()
        missing = np.isnan(asked)
        if missing.any():
            limit = _limit(recorded)
            rng = streams("estimates.missing")
            asked[missing] = tsafrir_estimates(runtimes[missing], rng, float(limit))
        if self._estimates.limit is not None:
            asked = np.minimum(asked, self._estimates.limit)
        return jobs.assign(requested_time=asked)

    def _estimates_of(self, recorded: pd.DataFrame) -> Estimates:
        """Return how users estimate, told the limit that the log shows where none is given."""
        longest, share = _popular(recorded["requested_time"])
        if self.time_limit is not None or not (longest >= HOUR and share < HEAD_SHARE):
            return self._estimates
        at_limit = share if self.at_limit is None else self.at_limit
        return replace(self._estimates, time_limit=longest, at_limit=at_limit)

    def _report(self, log: SwfLog, cleaned: Cleaned) -> None:
        tell_remarks(log)
        counts = ", ".join(
            f"{count:,} {name} ({RULES[name].meaning})" for name, count in cleaned.dropped.items()
        )
        if cleaned.jobs.empty:
            raise WorkloadError(
                f"{log.source}: none of {len(log.jobs):,} jobs can run"
                + (f"; left out: {counts}" if counts else "")
            )
        if counts:
            total = sum(cleaned.dropped.values()) + len(cleaned.jobs)
            _log.warning(
                "%s: %s of %s jobs left out: %s",
                log.source,
                f"{total - len(cleaned.jobs):,}",
                f"{total:,}",
                counts,
            )
        if self.jobs is not None and len(cleaned.jobs) < self.jobs:
            _log.warning(
                "%s: workload.jobs=%d: fewer jobs can run; all of them are taken: %d",
                log.source,
                self.jobs,
                len(cleaned.jobs),
            )


def tell_remarks(log: SwfLog) -> None:
    """Say in warnings what a reader had to infer."""
    for remark in log.remarks:
        _log.warning("%s: %s", log.source, remark)


def tell_machine(screened: Screened) -> bool:
    """Say in a warning what is taken for a machine that a log does not state; False if it does."""
    log, machine = screened.log, screened.machine
    if log.machine_size() is not None or machine is None:
        return False
    waits = screened.records["wait_time"].iloc[screened.usable]
    unknown = int((waits < 0).sum())
    apart = f"; {unknown:,} of {len(waits):,} jobs have no recorded wait, and each counts by itself"
    _log.warning(
        "%s: it states no size of its machine, which is taken to be the most processors that it "
        "holds at once, %d (cluster.processors=N says otherwise%s)",
        log.source,
        machine,
        apart if unknown else "",
    )
    return True


@dataclass
class FileWorkload(LogWorkload):
    """Jobs from one file.

    Parameters
    ----------
    path : path-like
        The file, plain or gzip-compressed, or ``sample``: a generated log in this package.
    """

    path: str | os.PathLike[str] | None
    wanted: ClassVar[str]

    def __post_init__(self) -> None:
        if self.path is None or not str(self.path):
            raise WorkloadError(f"workload.path is not set; give {self.wanted}")
        self.file = log_file(str(self.path))
        super().__post_init__()


@dataclass
class SwfWorkload(FileWorkload):
    """Jobs from a file in the Standard Workload Format.

    Parameters
    ----------
    path
        As for `FileWorkload`; the others as for `LogWorkload`.

    Examples
    --------
    >>> from workloads.streams import Streams
    >>> SwfWorkload("no_such_log.swf").trace(Streams(seed=1))
    Traceback (most recent call last):
    ...
    workloads.errors.WorkloadError: no_such_log.swf: no such file; give the path of an SWF log
    """

    wanted = "an SWF file, such as workload.path=log.swf.gz"

    def read(self) -> SwfLog:
        """Read the file."""
        return read_swf(self.file, self._limits)


@dataclass
class ArchiveWorkload(LogWorkload):
    """Jobs from a log of the Parallel Workloads Archive.

    Parameters
    ----------
    name : str
        One of `workloads.logs.archive.LOGS`, such as ``SDSC-SP2``.
    cache, url
        As for `workloads.logs.archive.fetch_log`; others as for `LogWorkload`.

    Examples
    --------
    >>> ArchiveWorkload("SDSC-SP2", jobs=100).log.file
    'SDSC-SP2-1998-4.2-cln.swf.gz'
    """

    name: str | None
    cache: str | os.PathLike[str] | None = None
    url: str | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise WorkloadError(
                "workload.name is not set; give a log of the archive, such as "
                "workload.name=SDSC-SP2"
            )
        self.log = find_log(self.name)
        super().__post_init__()

    def read(self) -> SwfLog:
        """Fetch the log where it is not cached, and read it."""
        with terminal_progress(f"fetching {self.log.file}") as progress:
            path = fetch_log(self.log.name, self.cache, self.url, progress, most=self._limits.size)
        return read_swf(path, self._limits)


def _popular(asked: pd.Series) -> tuple[float, float]:
    """Return the longest time that a hundredth of the jobs request, and the share of no less."""
    shares = asked[asked > 0].value_counts(normalize=True)
    longest = shares.index[shares >= POPULAR].max()
    return float(longest), float(shares[shares.index >= longest].sum())


def _limit(recorded: pd.DataFrame) -> float:
    """Return the longest time that users of a log ask for, seconds.

    Where that is beyond ten times its longest runtime, as what stands for *unlimited* is, it is
    the longest that a hundredth of the jobs ask for; without any, the usual round limit above
    the longest runtime.
    """
    asked, runtime = recorded["requested_time"], recorded["run_time"].max()
    longest = asked.max()  # NaN without any
    if longest > BEYOND * runtime:
        longest, _ = _popular(asked)
    return float(max(longest, HOUR) if longest > 0 else site_limit(runtime))
