"""Machine, jobs and truth of a run as ``growth`` leaves them, and the sizes that jobs take."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pandas as pd
from rich.box import SIMPLE
from rich.table import Table

from predictors.base import BoolArray, FloatArray, IntArray, Observation
from predictors.in_loop.wrapper import Wrapper
from workloads.base import GroundTruth, Trace
from workloads.streams import Streams
from workloads.truth.ground_truth import Truth

GREW, INFEASIBLE, NO_FIT, UNUSABLE, NO_GAIN = "grew", "infeasible", "no fit", "unusable", "no gain"
SHRANK, STAYED = "shrank", "stayed"
"""What became of a job; all but those that grew or shrank keep their size."""
SIZED = (GREW, SHRANK)


@dataclass(frozen=True)
class Site:
    """Machine, jobs and truth of a run, and what growing did.

    Attributes
    ----------
    processors : int
    trace : Trace
    truth : Truth
    sizes : pandas.DataFrame or None
        A row a job, as `KeepTime.grow` describes; None where nothing grew.
    again : Truth or None
        Of jobs that run once more, at sizes that they take as they start.
    """

    processors: int
    trace: Trace
    truth: Truth
    sizes: pd.DataFrame | None = None
    again: Truth | None = None


@dataclass(frozen=True)
class NoGrowth:
    """The machine and the jobs stay as they are."""

    def grow(self, site: Site, streams: Streams) -> Site:
        """Return the site unchanged."""
        return site


def sizes_of(truth: object, known: pd.DataFrame | None) -> pd.DataFrame | None:
    """Return the sizes that jobs took as they started, else those known before."""
    return truth.sizes() if isinstance(truth, SizesInLoop) else known


def size_figures(sizes: pd.DataFrame | None) -> Mapping[str, object]:
    """Return the figures of a table of sizes; NaN where no job grew; none without a table."""
    if sizes is None:
        return {}
    grown = sizes[sizes["outcome"].isin(SIZED)]
    error = np.abs(grown["runtime"] / grown["wanted_time"] - 1.0).to_numpy()
    weak = np.abs(grown["weak_runtime"] / grown["wanted_time"] - 1.0).to_numpy()
    growth = (grown["grown_size"] / grown["size"]).to_numpy()
    inside: BoolArray = grown["runtime"].between(grown["time_low"], grown["time_high"]).to_numpy()
    figures: dict[str, object] = {
        f"sizes_{name.replace(' ', '_')}": int((sizes["outcome"] == name).sum())
        for name in (GREW, SHRANK, STAYED, INFEASIBLE, NO_FIT, UNUSABLE, NO_GAIN)
    }
    return figures | {
        "size_growth_median": _quantile(growth, 0.5),
        "kept_time_median_error": _quantile(error, 0.5),
        "kept_time_p90_error": _quantile(error, 0.9),
        "weak_scaling_median_error": _quantile(weak, 0.5),
        "weak_scaling_p90_error": _quantile(weak, 0.9),
        "kept_time_within_range": float(inside.mean()) if len(inside) else np.nan,
    }


def _quantile(values: FloatArray, share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else np.nan


def sizes_table(sizes: pd.DataFrame, most: int = 10) -> Table:
    """Return what keeps the jobs' times on a larger machine, for the applications with most jobs.

    A row an application: its jobs, how many grow, and medians over these of the size and of its
    interval, both over the size before, and of the runtime over the wanted time.
    """
    table = Table(show_edge=False, pad_edge=False, box=SIMPLE, padding=(0, 1, 0, 0))
    for heading in ("application", "jobs", "that grow", "size", "interval", "time kept"):
        table.add_column(heading, justify="right")
    grew = sizes[sizes["outcome"].isin(SIZED)]
    for application, jobs in sizes["application"].value_counts().head(most).items():
        grown = grew[grew["application"] == application]
        cells = [f"{application}", f"{jobs}", f"{len(grown)}"]
        if len(grown):
            size, low, high = (
                (grown[name] / grown["size"]).median()
                for name in ("grown_size", "size_low", "size_high")
            )
            kept = (grown["runtime"] / grown["wanted_time"]).median()
            cells += [f"x {size:.2f}", f"x {low:.2f} - {high:.2f}", f"x {kept:.2f}"]
        table.add_row(*cells)
    return table


_LEAST_GROWTH = 1.01
"""Size over the size before from which a job grows at all."""


def outcome_of(grade: str, size: float, before: float, more: bool = True) -> str:
    """Return what becomes of a job on more or on fewer processors whose time a size would keep."""
    if grade == "unusable":
        return UNUSABLE
    if more:
        return GREW if size >= _LEAST_GROWTH * before else NO_GAIN
    return SHRANK if size * _LEAST_GROWTH <= before else NO_GAIN


class FinishedRuns(Protocol):
    """The finished runs of one application, and the sizes that they say."""

    def add(self, observation: Observation) -> None:
        """Take in a finished run."""
        ...

    def solve(
        self, seconds: float, nprocs: int, level: float
    ) -> tuple[tuple[float, ...], str] | None:
        """Return size, its range, the range of its time, and the worst grade; None if unknown."""
        ...


class SolvesSizes(Protocol):
    """A growth that sizes jobs as they start."""

    level: float

    def history(self) -> FinishedRuns:
        """Return where the runs of an application are learnt."""
        ...


@dataclass(frozen=True)
class _Sized:
    """What became of a job's size at its start."""

    count: int
    outcome: str
    grade: str = ""
    figures: tuple[float, ...] = (np.nan,) * 5
    ratio: float = 1.0


@dataclass
class SizesInLoop:
    """A ground truth whose jobs take, as they start, the size that keeps their times.

    A job that gets its reference count runs as recorded; on any other count its
    application's regression, fitted to the runs that have ended by then, is solved for the
    size with which it takes as long as recorded. It runs with that size and noise of its
    own; where nothing can be solved, with its own size.

    Parameters
    ----------
    truth : GroundTruth
        Of all jobs of the run, those that are charged first.
    again : Truth
        Of the trace's own jobs, were they run once more.
    trace : Trace
    growth : SolvesSizes
    """

    truth: GroundTruth
    again: Truth
    trace: Trace
    growth: "SolvesSizes"
    taken: dict[int, _Sized] = field(default_factory=dict)

    def __post_init__(self) -> None:
        truth = self.truth
        self.application, self.size_class = truth.application, truth.size_class
        self.moldable, self.serial_time_assumed = truth.moldable, truth.serial_time_assumed
        self.min_processors, self.max_processors = truth.min_processors, truth.max_processors
        self.size, self.serial_time = self.truth.size.copy(), self.truth.serial_time.copy()
        self.malleable = np.zeros_like(self.truth.malleable)
        self.shared_shape = getattr(self.truth, "shared_shape", False)
        jobs = self.trace.jobs
        self.reference = jobs["requested_processors"].to_numpy()
        self.wanted = jobs["reference_runtime"].to_numpy(float)
        self._first = len(jobs) - len(self.again)
        self._finished: dict[int, FinishedRuns] = {}

    def learn(self, observation: Observation) -> None:
        """Take in a finished run."""
        application = observation.application
        if application not in self._finished:
            self._finished[application] = self.growth.history()
        self._finished[application].add(observation)

    def solve(self, job: int, count: int, seconds: float) -> _Sized:
        """Return the size with which a job takes these seconds on a count, as is known now."""
        history = self._finished.get(int(self.application[job]))
        found = None if history is None else history.solve(seconds, count, self.growth.level)
        if found is None:
            return _Sized(count, NO_FIT)
        figures, grade = found
        before, more = float(self.truth.size[job]), bool(count > self.reference[job])
        outcome = outcome_of(grade, figures[0], before, more)
        ratio = figures[0] / before if outcome in SIZED else 1.0
        return _Sized(count, outcome, grade, figures, ratio)

    def runtime_on(self, job: int, count: int) -> float:
        """Return T(count), seconds; a job that is asked for first takes its size now."""
        if job >= self._first and job not in self.taken and count != self.reference[job]:
            taken = self.solve(job, count, float(self.wanted[job]))
            self.taken[job] = taken
            if taken.outcome in SIZED:
                self.size[job] *= taken.ratio
                own = job - self._first
                self.serial_time[job] = self.again.serial_time[own] * taken.ratio
        return float(self.runtimes(job, np.array([count]))[0])

    def runtimes(self, job: int, counts: IntArray) -> FloatArray:
        """Return T(n) at each count at the size that the job has, seconds."""
        taken = self.taken.get(job)
        if taken is None or taken.outcome not in SIZED:
            return self.truth.runtimes(job, counts)
        return self.again.runtimes(job - self._first, counts) * taken.ratio

    def runtimes_at(self, jobs: IntArray, counts: IntArray) -> FloatArray:
        """Return T(counts[i]) of job index jobs[i], elementwise, seconds."""
        found = self.truth.runtimes_at(jobs, counts)
        for place in np.flatnonzero(np.isin(jobs, list(self.taken))):
            found[place] = self.runtimes(int(jobs[place]), counts[place : place + 1])[0]
        return found

    def communication_shares(self, jobs: IntArray, counts: IntArray) -> FloatArray:
        """Return the share of communication, elementwise."""
        return self.truth.communication_shares(jobs, counts)

    def feasible(self, job: int) -> IntArray | None:
        """Return the counts the job can run on; None if all in its range are."""
        return self.truth.feasible(job)

    def sizes(self) -> pd.DataFrame:
        """Return the table of sizes, as `KeepTime.grow` describes, of the trace's own jobs."""
        rows = []
        for job in range(self._first, len(self.reference)):
            one = self.taken.get(job, _Sized(int(self.reference[job]), STAYED))
            sized, own = one.outcome in SIZED, job - self._first
            runtime = self.runtimes(job, np.array([one.count]))[0]
            again = self.again.runtimes(own, np.array([one.count]))[0]
            rows.append(self._row(job, one, runtime, again if sized else np.nan))
        return pd.DataFrame(rows)

    def _row(self, job: int, one: _Sized, runtime: float, again: float) -> dict[str, Any]:
        before = self.reference[job]
        sized = one.outcome in SIZED
        _, low, high, time_low, time_high = one.figures if sized else (np.nan,) * 5
        return {
            "job_id": self.trace.jobs["job_id"].iloc[job],
            "application": self.application[job],
            "outcome": one.outcome,
            "grade": one.grade,
            "processors": before,
            "grown_processors": one.count,
            "size": self.truth.size[job],
            "grown_size": self.size[job],
            "size_low": low,
            "size_high": high,
            "wanted_time": self.wanted[job],
            "time_low": time_low,
            "time_high": time_high,
            "runtime": runtime,
            "weak_runtime": again * one.count / before,
        }


class KeepsTime(Wrapper):
    """A predictor that knows that jobs take the size that keeps their times.

    Asked for the counts among which a rule chooses it is as before; asked for the one count
    that a job gets it believes what it does of the reference count.

    Parameters
    ----------
    before : RuntimePredictor
    sizes : SizesInLoop
    """

    curve_is_belief = False

    def __init__(self, before: Any, sizes: SizesInLoop) -> None:
        super().__init__(before)
        self._sizes = sizes

    @property
    def learns(self) -> bool:
        """Whether it wants to be told of finished runs: always."""
        return True

    def curve(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return the believed runtimes of a job at each count, seconds."""
        reference = int(self._sizes.reference[job])
        if len(counts) == 1 and counts[0] != reference:
            kept = self.before.curve(job, np.array([reference]))
            if kept is not None and job not in self._sizes.taken:
                found = self._sizes.solve(job, int(counts[0]), float(kept[0]))
                if found.outcome in SIZED:
                    return kept
        return self.before.curve(job, counts)

    def observe(self, observation: Observation) -> bool:
        """Learn sizes from a finished run, and pass it on; beliefs of its application change."""
        self._sizes.learn(observation)
        return self.before.observe(observation) or True
