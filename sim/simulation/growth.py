"""A larger machine, and the sizes that keep the jobs' times on it (``growth``).

Time-constrained scaling (Garren 2010): the site's finished runs train a
regression for each application, and each user solves it for the problem size
that takes the same time on `factor` times the processors.
"""

from copy import copy
from dataclasses import dataclass, field, replace
from math import log2

import numpy as np
import pandas as pd

from predictors.base import FloatArray, IntArray, Observation
from predictors.errors import PredictorError
from predictors.regression.barnes import LogLogRegression
from predictors.regression.garren import FocusedRegression
from predictors.regression.training_runs import TrainingRuns, runs_from_arrays, without_constants
from predictors.remarks import worst_grade
from sim.errors import ConfigError
from sim.simulation.site_size import GREW, INFEASIBLE, NO_FIT, Site, outcome_of
from workloads.base import Trace
from workloads.streams import Streams
from workloads.truth.ground_truth import Truth

SizeModel = FocusedRegression | LogLogRegression

_FOCI = 4.0
"""Focal times are told apart by this many steps in a doubling."""

_NEW_RUNS = 1.1
"""Share by which an application's finished runs must have grown before a new fit."""


@dataclass(frozen=True)
class KeepTime:
    """The machine grows, and each job's size with it, so that its runtime stays.

    Parameters
    ----------
    factor : int
        How many times the processors of the machine and of each job, at least 2.
    model : FocusedRegression or LogLogRegression
        Fitted to the runs of each application that had ended on the old machine when a
        job is submitted, taken to start when they were submitted; a focused one is put
        at the time of each job (to a quarter of a doubling).
    level : float
        Of the interval around each size, above 0 and below 1.
    allotment : {"request", "policy"}
        Whose processors: `factor` times the request, its size solved before the run; or
        what the policy gives, the size solved in the run as each job starts.

    Raises
    ------
    ConfigError
        If a value is out of range.

    Notes
    -----
    A job keeps its size and its processors where its application cannot run on
    so many, where no regression can be fitted, where it is graded `unusable`,
    and where the size would not grow by 1 %. The others run once more, with noise of
    their own.

    Examples
    --------
    >>> KeepTime(factor=4).factor
    4
    """

    factor: int = 2
    model: SizeModel = field(default_factory=FocusedRegression)
    level: float = 0.8
    allotment: str = "request"

    def __post_init__(self) -> None:
        if self.factor < 2:
            raise ConfigError(f"growth.factor={self.factor}: must be at least 2")
        if not 0.0 < self.level < 1.0:
            raise ConfigError(f"growth.level={self.level:g}: must be above 0 and below 1")
        if self.allotment not in ("request", "policy"):
            raise ConfigError(f"growth.allotment={self.allotment}: must be request or policy")

    def grow(self, site: Site, streams: Streams) -> Site:
        """Return the larger site, its jobs at the sizes that should keep their times.

        Returns
        -------
        Site
            `sizes` has a row a job: ``job_id``, ``application``, ``outcome``,
            ``grade``; ``processors``, ``size`` before and ``grown_processors``,
            ``grown_size`` with ``size_low``, ``size_high`` after;
            ``wanted_time`` (s, the job's runtime before), ``time_low``,
            ``time_high`` (the range predicted for the grown size), ``runtime``
            (s, what the grown run takes on its processors) and ``weak_runtime``
            (s, what it would take at `factor` times the size: weak scaling).

        Raises
        ------
        ConfigError
            If sizes are hidden or runtimes at other counts unknown.
        """
        truth = site.truth
        if not truth.known:
            raise ConfigError("growth=keep_time: needs a moldability other than none")
        if np.isnan(truth.size).any():
            raise ConfigError("growth=keep_time: needs workload.size=known")
        if self.allotment == "policy":
            return self._larger(site, streams)
        sizes = self._solved(site)
        grew = (sizes["outcome"] == GREW).to_numpy()
        counts = sizes["grown_processors"].to_numpy()
        noise = streams("growth.noise").standard_normal(len(grew))
        ratio = np.where(grew, sizes["grown_size"] / sizes["size"], 1.0)
        processors = site.processors * self.factor
        grown = truth.resized(ratio, counts, grew, noise, processors)
        runtime = grown.runtimes_at(np.arange(len(grew)), counts)
        jobs = site.trace.jobs.assign(requested_processors=counts, reference_runtime=runtime)
        trace = _traced(site.trace, jobs, processors)
        in_proportion = np.where(grew, float(self.factor), 1.0)
        weak = truth.resized(in_proportion, counts, grew, noise, processors)
        sizes = sizes.assign(
            runtime=runtime,
            grown_size=grown.size,
            weak_runtime=weak.runtimes_at(np.arange(len(grew)), counts),
        )
        return Site(processors, trace, grown, sizes)

    def history(self) -> "_Finished":
        """Return where the runs of an application are learnt, and its sizes solved."""
        return _Finished(self.model)

    def _larger(self, site: Site, streams: Streams) -> Site:
        """Return the larger machine with the jobs as they were, and as they would run again."""
        truth, jobs = site.truth, site.trace.jobs
        if not truth.shared_shape:
            raise ConfigError("growth.allotment=policy: needs moldability.size_exponent=0")
        counts, processors = jobs["requested_processors"].to_numpy(), site.processors * self.factor
        one, noise = np.ones(len(jobs)), streams("growth.noise").standard_normal(len(jobs))
        larger, again = (
            truth.resized(one, counts, np.full(len(jobs), new), noise, processors)
            for new in (False, True)
        )
        return Site(processors, _traced(site.trace, jobs, processors), larger, again=again)

    def _solved(self, site: Site) -> pd.DataFrame:
        """Return the table but for the runtimes of the grown jobs."""
        jobs, truth = site.trace.jobs, site.truth
        before = jobs["requested_processors"].to_numpy()
        wanted = jobs["reference_runtime"].to_numpy()
        submitted = jobs["submit_time"].to_numpy()
        ends = submitted + wanted
        counts = before * self.factor
        possible = truth.could_run(counts, site.processors * self.factor)
        size = truth.size
        solved = np.full((5, len(jobs)), np.nan)
        outcome = np.where(possible, NO_FIT, INFEASIBLE).astype(object)
        grade = np.full(len(jobs), "", object)
        for application in np.unique(truth.application):
            member = truth.application == application
            rows = np.flatnonzero(member & possible)
            past = np.flatnonzero(member)[np.argsort(ends[member], kind="stable")]
            history = _Ended(self.model, _runs(truth, past, before, wanted), ends[past])
            for row in rows[np.argsort(submitted[rows], kind="stable")].tolist():
                history.look_back(submitted.item(row))
                answer = history.solve(wanted.item(row), counts.item(row), self.level)
                if answer is not None:
                    solved[:, row], grade[row] = answer
                    outcome[row] = outcome_of(answer[1], answer[0][0], size.item(row))
        grew = outcome == GREW
        return pd.DataFrame(
            {
                "job_id": jobs["job_id"].to_numpy(),
                "application": truth.application,
                "outcome": pd.Series(outcome, dtype="str"),
                "grade": pd.Series(grade, dtype="str"),
                "processors": before,
                "grown_processors": np.where(grew, counts, before),
                "size": size,
                "grown_size": np.where(grew, solved[0], size),
                "size_low": np.where(grew, solved[1], np.nan),
                "size_high": np.where(grew, solved[2], np.nan),
                "wanted_time": wanted,
                "time_low": np.where(grew, solved[3], np.nan),
                "time_high": np.where(grew, solved[4], np.nan),
            }
        )


class History:
    """The finished runs of one application, and regressions fitted to them.

    Parameters
    ----------
    model : FocusedRegression or LogLogRegression
    """

    def __init__(self, model: SizeModel) -> None:
        self._prototype, self._known = model, 0
        self._models: dict[int | None, tuple[int, SizeModel | PredictorError]] = {}

    def _past(self) -> TrainingRuns:
        """Return the runs that are known."""
        raise NotImplementedError

    def solve(
        self, seconds: float, nprocs: int, level: float
    ) -> tuple[tuple[float, ...], str] | None:
        """Return size, its range, the range of its time, and the worst grade.

        Where too few runs lie near the wanted time to say anything, all runs
        answer; None if these do not either.
        """
        focused = isinstance(self._prototype, FocusedRegression)
        found = None
        for focus in (round(log2(seconds) * _FOCI), None) if focused else (None,):
            try:
                model = self._fitted(focus)
                size = float(model.solve_size(seconds, nprocs))
                ends = model.size_range(seconds, nprocs, level)
                times = model.predict_range(nprocs, level, size=size)
                grade = worst_grade(model.remarks_on_size(seconds, nprocs))
            except PredictorError:
                continue
            found = (size, *(float(end) for end in (*ends, *times))), grade
            if grade != "unusable":
                break
        return found

    def _fitted(self, focus: int | None) -> SizeModel:
        number, found = self._models.get(focus, (0, None))
        if found is None or self._known >= _NEW_RUNS * number:
            found = self._fit(focus)
            self._models[focus] = self._known, found
        if isinstance(found, PredictorError):
            raise found
        return found

    def _fit(self, focus: int | None) -> SizeModel | PredictorError:
        model = copy(self._prototype)
        if focus is not None and isinstance(model, FocusedRegression):
            model.focal_time = 2.0 ** (focus / _FOCI)
        if not self._known:
            return PredictorError("no run has ended yet")
        try:
            return model.fit_runs(without_constants(self._past()))
        except PredictorError as error:
            return error


class _Finished(History):
    """The runs of one application that have ended in the run itself."""

    def __init__(self, model: SizeModel) -> None:
        super().__init__(model)
        self._rows: list[tuple[int, float, float]] = []

    def add(self, observation: Observation) -> None:
        """Take in a finished run."""
        self._rows.append((observation.nprocs, observation.runtime, observation.size))
        self._known += 1

    def _past(self) -> TrainingRuns:
        count, runtime, size = map(np.array, zip(*self._rows, strict=True))
        return runs_from_arrays(("size",), count.astype(np.int64), runtime, [size])


class _Ended(History):
    """The runs of one application on the old machine, by their ends.

    Parameters
    ----------
    model : FocusedRegression or LogLogRegression
    runs : TrainingRuns
        In the order of their ends.
    ends : numpy.ndarray of float, shape (rows,), seconds
    """

    def __init__(self, model: SizeModel, runs: TrainingRuns, ends: FloatArray) -> None:
        super().__init__(model)
        self._runs, self._ends = runs, ends

    def look_back(self, time: float) -> None:
        """Take into account what had ended at a time."""
        self._known = int(np.searchsorted(self._ends, time, side="right"))

    def _past(self) -> TrainingRuns:
        return self._runs.take(slice(self._known))


def _runs(truth: Truth, rows: IntArray, counts: IntArray, runtimes: FloatArray) -> TrainingRuns:
    """Return the runs of an application as a regression takes them, split where that is known."""
    n, t = counts[rows], runtimes[rows]
    share = truth.communication_shares(rows, n)
    splits = {}
    if np.isfinite(share).all() and (share > 0.0).any():
        splits = {"max": (t * (1.0 - share), t * share)}
    return runs_from_arrays(("size",), n, t, [truth.size[rows]], splits=splits)


def _traced(trace: Trace, jobs: pd.DataFrame, processors: int) -> Trace:
    """Return the trace with other jobs on another machine; models drew the old sizes."""
    why = "growth lets jobs grow with the machine"
    return replace(trace, jobs=jobs, processors=processors, models={}, altered=why)
