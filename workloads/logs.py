"""Jobs from a recorded log: cleaned, cut, scaled and given requested times."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from workloads.base import Trace, check_jobs
from workloads.cleaning import RULES, Cleaned, check_actions, screen
from workloads.errors import WorkloadError
from workloads.estimates import Estimates
from workloads.identity import Identity, check_identity, identify, request_classes
from workloads.limits import check_count, check_load
from workloads.load import scale_load
from workloads.streams import Streams
from workloads.swf import SwfLog, read_swf
from workloads.tsafrir import HOUR, site_limit, tsafrir_estimates
from workloads.windows import resample, window_of

_log = logging.getLogger(__name__)

_MISSING = "missing_requested_time"


class LogReplay:
    """What is done to a log between reading it and replaying it.

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
        Action for a rule of `workloads.cleaning.RULES`, where not its default.
    estimate_factor, estimate_limit
        Of `Estimates`.
    identity : str
        What jobs of one application have in common, of
        `workloads.identity.IDENTITIES`.

    Raises
    ------
    WorkloadError
        If a value is out of range, or `load` meets `feedback`.

    Examples
    --------
    >>> LogReplay(load=0.8, feedback=True)
    Traceback (most recent call last):
    ...
    workloads.errors.WorkloadError: workload.load=0.8: refused with workload.feedback=true, \
under which submit times follow the schedule; set one of them to null or false
    """

    def __init__(
        self,
        jobs: int | None = None,
        load: float | None = None,
        estimates: str = "recorded",
        feedback: bool = False,
        cleaning: Mapping[str, str] | None = None,
        estimate_factor: float = 5.0,
        estimate_limit: float | None = None,
        identity: Identity = "auto",
    ) -> None:
        if jobs is not None:
            check_count("jobs", jobs)
        check_load(load)
        if not isinstance(feedback, bool):
            raise WorkloadError(f"workload.feedback={feedback}: must be true or false")
        if feedback and load is not None:
            raise WorkloadError(
                f"workload.load={load}: refused with workload.feedback=true, under which submit "
                "times follow the schedule; set one of them to null or false"
            )
        self.jobs = jobs
        self.load = load
        self.feedback = feedback
        check_identity(identity)
        self.identity = identity
        self.cleaning = check_actions(cleaning)
        self.estimates = Estimates(estimates, estimate_factor, estimate_limit)

    def apply(self, log: SwfLog, streams: Streams, processors: int | None) -> Trace:
        """Return the jobs of one replication, naming in a warning what was left out.

        A log that holds so many times as many jobs as are asked for is cut into
        windows, and each replication takes another; when none is left, weeks of
        the log are drawn again.

        Raises
        ------
        WorkloadError
            If no job can run, a rule says ``error``, or the log does not tell what
            the identity asks for.
        """
        screened = screen(log, processors, self.cleaning)
        usable = len(screened.usable)
        size = usable if self.jobs is None else min(self.jobs, usable)
        place = window_of(streams.replication, usable // size if size else 1)
        first = size * (place or 0)
        cleaned = screened.take(first, None if place is None else self.jobs)
        self._report(log, cleaned)
        said = screened.said()
        identity, labels = identify(said, self.identity, log.source)
        taken = slice(first, first + len(cleaned.jobs))
        classes = request_classes(said["requested_time"].to_numpy())
        jobs = cleaned.jobs.assign(application=labels[taken], request_class=classes[taken])
        altered = self._altered
        if place is None:
            jobs, altered = _drawn_again(jobs, size, streams, log.source)
        machine = cleaned.processors if processors is None else processors
        if self.load is not None and machine is not None:
            jobs = scale_load(jobs, machine, self.load)
        jobs = self._requested(jobs, said, streams)
        return Trace(
            check_jobs(jobs, log.source),
            cleaned.processors,
            log.source,
            log.checksum,
            cleaned.dropped,
            self._counted(cleaned.repaired),
            feedback=self.feedback,
            epoch=log.epoch(),
            identity=identity,
            altered=altered,
        )

    @property
    def _altered(self) -> str | None:
        """Why submit times are not the log's own."""
        if self.load is not None:
            return f"workload.load={self.load:g} scales the distances between them"
        return "workload.feedback=true lets them follow the schedule" if self.feedback else None

    def _counted(self, repaired: Mapping[str, int]) -> dict[str, int]:
        """Return what was repaired; requested times that are drawn anew were not."""
        anew = self.estimates.method != "recorded"
        return {name: n for name, n in repaired.items() if not (anew and name == _MISSING)}

    def _requested(self, jobs: pd.DataFrame, said: pd.DataFrame, streams: Streams) -> pd.DataFrame:
        """Return the jobs with a requested time each.

        Missing ones are Tsafrir's, whose longest estimate is the longest of the
        log, or, where it has none, the usual round limit above its longest
        runtime. Sizes are classed by recorded ones alone.
        """
        runtimes = jobs["reference_runtime"].to_numpy(float)
        if self.estimates.method != "recorded":
            drawn = self.estimates.draw(runtimes, streams("estimates"))
            return jobs.assign(requested_time=drawn, request_class=-1)
        asked = jobs["requested_time"].to_numpy(float).copy()
        missing = np.isnan(asked)
        if missing.any():
            longest = said["requested_time"].max() if said["requested_time"].notna().any() else 0
            limit = max(longest, HOUR) if longest else site_limit(said["run_time"].max())
            rng = streams("estimates.missing")
            asked[missing] = tsafrir_estimates(runtimes[missing], rng, float(limit))
        if self.estimates.limit is not None:
            asked = np.minimum(asked, self.estimates.limit)
        return jobs.assign(requested_time=asked)

    def _report(self, log: SwfLog, cleaned: Cleaned) -> None:
        counts = ", ".join(
            f"{count} {name} ({RULES[name].meaning})" for name, count in cleaned.dropped.items()
        )
        if cleaned.jobs.empty:
            raise WorkloadError(
                f"{log.source}: none of {len(log.jobs)} jobs can run"
                + (f"; left out: {counts}" if counts else "")
            )
        if counts:
            total = sum(cleaned.dropped.values()) + len(cleaned.jobs)
            _log.warning(
                "%s: %d of %d jobs left out: %s",
                log.source,
                total - len(cleaned.jobs),
                total,
                counts,
            )
        if self.jobs is not None and len(cleaned.jobs) < self.jobs:
            _log.warning(
                "%s: workload.jobs=%d, but only %d jobs can run; all are taken",
                log.source,
                self.jobs,
                len(cleaned.jobs),
            )


def _drawn_again(
    jobs: pd.DataFrame, wanted: int, streams: Streams, source: str
) -> tuple[pd.DataFrame, str]:
    """Return jobs of a replication that no window is left for, and why times are not the log's."""
    drawn, period = resample(jobs, wanted, streams("resampling"))
    what = f"draws {period} of the log again" if period else "repeats the log, too short to cut"
    why = f"replication {streams.replication} {what}, as no window is left"
    _log.warning("%s: %s; recorded waits do not apply", source, why)
    return drawn.assign(recorded_wait_time=-1.0), why


class SwfWorkload:
    """Jobs from a file in the Standard Workload Format.

    Parameters
    ----------
    path : path-like
        The file, plain or gzip-compressed.
    jobs, load, estimates, feedback, cleaning, estimate_factor, estimate_limit, identity
        As for `LogReplay`.

    Raises
    ------
    WorkloadError
        If a value is out of range; the file is read by `trace`.

    Examples
    --------
    >>> SwfWorkload("no_such_log.swf").trace(Streams(seed=1))
    Traceback (most recent call last):
    ...
    workloads.errors.WorkloadError: no_such_log.swf: no such file; give the path of an SWF log
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        jobs: int | None = None,
        load: float | None = None,
        estimates: str = "recorded",
        feedback: bool = False,
        cleaning: Mapping[str, str] | None = None,
        estimate_factor: float = 5.0,
        estimate_limit: float | None = None,
        identity: Identity = "auto",
    ) -> None:
        if path is None or not str(path):
            raise WorkloadError(
                "workload.path is not set; give an SWF file, such as workload.path=log.swf.gz"
            )
        self.path = Path(str(path))
        self.replay = LogReplay(
            jobs, load, estimates, feedback, cleaning, estimate_factor, estimate_limit, identity
        )

    def trace(self, streams: Streams, processors: int | None = None) -> Trace:
        """Read the file and return its jobs.

        Raises
        ------
        WorkloadError
            If the file cannot be read, is malformed, or holds no job that can run.
        """
        return self.replay.apply(read_swf(self.path), streams, processors)
