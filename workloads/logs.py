"""Jobs from a recorded log: cleaned, cut, scaled and given requested times."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from workloads.base import Trace, check_jobs
from workloads.cleaning import RULES, Cleaned, check_actions, clean
from workloads.errors import WorkloadError
from workloads.estimates import Estimates
from workloads.limits import check_count, check_load
from workloads.load import scale_load
from workloads.streams import Streams
from workloads.swf import SwfLog, read_swf

_log = logging.getLogger(__name__)


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
        self.cleaning = check_actions(cleaning)
        self.estimates = Estimates(estimates, estimate_factor, estimate_limit)

    def apply(self, log: SwfLog, streams: Streams, processors: int | None) -> Trace:
        """Return the log's jobs as asked for, naming in a warning what was left out.

        Raises
        ------
        WorkloadError
            If no job can run, or a rule says ``error``.
        """
        cleaned = clean(log, processors, self.cleaning, self.jobs)
        self._report(log, cleaned)
        jobs = cleaned.jobs
        machine = cleaned.processors if processors is None else processors
        if self.load is not None and machine is not None:
            jobs = scale_load(jobs, machine, self.load)
        if self.estimates.method != "recorded":
            runtimes = jobs["reference_runtime"].to_numpy(float)
            drawn = self.estimates.draw(runtimes, streams("estimates"))
            jobs = jobs.assign(requested_time=drawn)
        elif self.estimates.limit is not None:
            capped = np.minimum(jobs["requested_time"], self.estimates.limit)
            jobs = jobs.assign(requested_time=capped)
        return Trace(
            check_jobs(jobs, log.source),
            cleaned.processors,
            log.source,
            log.checksum,
            cleaned.dropped,
            cleaned.repaired,
            feedback=self.feedback,
            epoch=log.epoch(),
        )

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


class SwfWorkload:
    """Jobs from a file in the Standard Workload Format.

    Parameters
    ----------
    path : path-like
        The file, plain or gzip-compressed.
    jobs, load, estimates, feedback, cleaning, estimate_factor, estimate_limit
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
    ) -> None:
        if path is None or not str(path):
            raise WorkloadError(
                "workload.path is not set; give an SWF file, such as workload.path=log.swf.gz"
            )
        self.path = Path(str(path))
        self.replay = LogReplay(
            jobs, load, estimates, feedback, cleaning, estimate_factor, estimate_limit
        )

    def trace(self, streams: Streams, processors: int | None = None) -> Trace:
        """Read the file and return its jobs.

        Raises
        ------
        WorkloadError
            If the file cannot be read, is malformed, or holds no job that can run.
        """
        return self.replay.apply(read_swf(self.path), streams, processors)
