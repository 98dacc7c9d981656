"""The self-generated focal training set, for one who has two runs (GARREN section 3.5).

From a run at the largest processor count and one near half of it, the procedure
asks for a few more runs that all take about the same time, at ever smaller counts,
and fits a regression that can be inverted for the size that keeps the time on a
larger machine. The caller supplies the way to run the application; `recorded`
replays measurements and names the runs that are still missing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from predictors.errors import PredictorError
from predictors.observations import merge_repeats
from predictors.regression.garren import FocusedRegression

STEP = 0.10
OFF_CENTRE = 0.25
DEFAULT_LEVELS = 5


class PlannedRun(NamedTuple):
    """A run to make: processor count, problem size, and what it is for."""

    nprocs: int
    size: float
    purpose: str


class FocalRun(NamedTuple):
    """A run that was made: processor count, problem size, seconds.

    Examples
    --------
    >>> FocalRun(nprocs=64, size=1000.0, runtime=120.0).nprocs
    64
    """

    nprocs: int
    size: float
    runtime: float


Experiment = Callable[[Sequence[PlannedRun]], Sequence[float]]


class RunsNeededError(PredictorError):
    """Measurements that the procedure needs next are missing.

    Attributes
    ----------
    runs : tuple of PlannedRun
        The missing runs, all of which can be made at once.
    """

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        self.runs = tuple(runs)
        listed = "; ".join(f"size {run.size:g} on {run.nprocs} processors" for run in self.runs)
        super().__init__(f"runs needed next ({len(self.runs)}): {listed}")


@dataclass(frozen=True)
class FocalTraining:
    """What the procedure did and learned.

    Attributes
    ----------
    model : FocusedRegression
        The final fit.
    runs : tuple of FocalRun
        What it was fitted to: three a level.
    focal_time : float, seconds
    initial : FocusedRegression
        The fit to the first six runs.
    before : FocusedRegression
        The fit before any level was re-centred.
    recentred : tuple of int
        The levels that were run again.
    """

    model: FocusedRegression
    runs: tuple[FocalRun, ...]
    focal_time: float
    initial: FocusedRegression
    before: FocusedRegression
    recentred: tuple[int, ...]


def round_half_up(size: float) -> float:
    """Return the nearest whole size, halves up, at least 1: any whole size is admissible."""
    return max(float(np.floor(size + 0.5)), 1.0)


def default_levels(largest: int) -> tuple[int, ...]:
    """Return five levels below a quarter of the largest count, each half the one above."""
    levels = [largest // 2 ** (k + 2) for k in range(DEFAULT_LEVELS)]
    return tuple(level for level in levels if level >= 1)


def spread_around(
    nprocs: int, centre: float, admissible: Callable[[float], float], purpose: str
) -> list[PlannedRun]:
    """Plan the runs at 10 % above and below an unrounded centre, and at the centre."""
    sizes = [centre * (1.0 + STEP), centre, centre * (1.0 - STEP)]
    return [PlannedRun(nprocs, admissible(size), purpose) for size in sizes]


def fit_focal(runs: Sequence[FocalRun]) -> FocusedRegression:
    """Fit all runs, as the thesis does: they are focal because they were generated so."""
    counts, sizes, seconds = np.array(runs, dtype=np.float64).T
    model = FocusedRegression(("size",))
    model.fit_arrays(counts, seconds, [sizes])
    return model


def _measure(experiment: Experiment, plan: Sequence[PlannedRun]) -> list[FocalRun]:
    """Have the planned runs made; check what comes back."""
    seconds = [float(value) for value in experiment(plan)]
    if len(seconds) != len(plan):
        raise PredictorError(f"{len(plan)} runs were asked for, {len(seconds)} times came back")
    for run, value in zip(plan, seconds, strict=True):
        if not 0.0 < value < np.inf:
            raise PredictorError(
                f"the run of size {run.size:g} on {run.nprocs} processors returned {value} s: "
                "expected a finite positive time"
            )
    return [FocalRun(r.nprocs, r.size, value) for r, value in zip(plan, seconds, strict=True)]


def _plan_levels(
    model: FocusedRegression,
    levels: Sequence[int],
    focal_time: float,
    admissible: Callable[[float], float],
    purpose: str,
) -> list[PlannedRun]:
    """Plan three runs a level around the size that the model says takes the focal time."""
    centres = model.solve_size(focal_time, np.asarray(levels, dtype=np.float64))
    plans = zip(levels, centres, strict=True)
    return [run for n, c in plans for run in spread_around(n, float(c), admissible, purpose)]


def off_centre_levels(
    runs: Sequence[FocalRun], levels: Sequence[int], focal_time: float
) -> tuple[int, ...]:
    """Return the levels whose middle time misses the focal time by more than 25 %."""
    off = []
    for level in levels:
        middle = float(np.median([run.runtime for run in runs if run.nprocs == level]))
        if abs(middle / focal_time - 1.0) > OFF_CENTRE:
            off.append(level)
    return tuple(off)


def _check_client(first: FocalRun, second: FocalRun, levels: Sequence[int]) -> None:
    if first.nprocs <= second.nprocs:
        raise PredictorError(
            f"the first run must be on more processors than the second: "
            f"{first.nprocs} against {second.nprocs}"
        )
    if not levels or max(levels) >= second.nprocs or min(levels) < 1:
        raise PredictorError(f"levels must lie in 1..{second.nprocs - 1}, got {list(levels)}")
    if len(set(levels)) != len(levels):
        raise PredictorError(f"levels must be distinct, got {list(levels)}")


def train_focal(
    experiment: Experiment,
    first: FocalRun,
    second: FocalRun,
    levels: Sequence[int] | None = None,
    focal_time: float | None = None,
    admissible: Callable[[float], float] = round_half_up,
    recentre: bool = True,
) -> FocalTraining:
    """Generate a focal training set with the caller's experiments, and fit it.

    Two client runs; ± 10 % of size around each: six runs and a first fit; inverted
    for the focal time at every smaller level: three runs each; a fit to all; levels
    off the focal time by more than 25 % are run again around what that fit says.

    Parameters
    ----------
    experiment : callable
        Takes planned runs and returns their seconds, in order.
    first, second : FocalRun
        The client's runs at the largest count and at about half of it.
    levels : sequence of int, optional
        Smaller counts; by default a quarter of the largest, an eighth, and so on, five.
    focal_time : float, optional
        T0 in seconds; by default the first run's.
    admissible : callable
        Rounds a size to one that the application accepts.
    recentre : bool
        Whether off-centre levels are run again, once. The thesis did not, and puts
        its results for CG down to that. Running them again more than once is not
        offered: the fit that re-centres then already leans on re-centred levels,
        and overshoots.

    Raises
    ------
    PredictorError
        If counts or levels do not fit together, or a time is not positive.
    UndeterminedError
        If the first fit says that time does not grow with size.

    Examples
    --------
    >>> def measured(runs):  # an application of which nobody knows the law
    ...     return [2e-6 * run.size**2 / run.nprocs + 1.0 for run in runs]
    >>> ends = FocalRun(64, 8000.0, 3.0), FocalRun(32, 6000.0, 3.25)
    >>> found = train_focal(measured, *ends)
    >>> len(found.runs) > 15
    True
    """
    chosen = tuple(default_levels(first.nprocs) if levels is None else (int(n) for n in levels))
    _check_client(first, second, chosen)
    wanted = first.runtime if focal_time is None else float(focal_time)
    client = []
    for run in (first, second):
        upper, _, lower = spread_around(run.nprocs, run.size, admissible, "around a client run")
        client += [upper, lower]
    six = [first, second, *_measure(experiment, client)]
    initial = fit_focal(six)
    plan = _plan_levels(initial, chosen, wanted, admissible, "a smaller level")
    runs = [*six, *_measure(experiment, plan)]
    before = model = fit_focal(runs)
    off = off_centre_levels(runs, chosen, wanted) if recentre else ()
    if off:
        plan = _plan_levels(before, off, wanted, admissible, "re-centring a level")
        runs = [run for run in runs if run.nprocs not in off] + _measure(experiment, plan)
        model = fit_focal(runs)
    return FocalTraining(model, tuple(runs), wanted, initial, before, off)


def recorded(measurements: pd.DataFrame) -> Experiment:
    """Return an experiment that looks runs up in a table with nprocs, size and runtime.

    Obvious outliers among repeated runs are dropped, the others averaged
    (`predictors.observations.merge_repeats`). It raises `RunsNeededError` with the runs that the
    table lacks, so that they can be made and added.
    """
    repeats = measurements.groupby(["nprocs", "size"])["runtime"]
    known = {run: merge_repeats(seconds.to_numpy(float)).mean for run, seconds in repeats}

    def look_up(plan: Sequence[PlannedRun]) -> Sequence[float]:
        missing = [run for run in plan if (run.nprocs, run.size) not in known]
        if missing:
            raise RunsNeededError(missing)
        return [known[run.nprocs, run.size] for run in plan]

    return look_up


def client_runs(measurements: pd.DataFrame) -> tuple[FocalRun, FocalRun]:
    """Return the client's two runs from a table: the first on each of its two largest counts."""
    counts = sorted({int(n) for n in measurements["nprocs"]}, reverse=True)
    if len(counts) < 2:
        raise PredictorError("the focal procedure needs a run on each of two processor counts")
    rows = [measurements[measurements["nprocs"] == n].iloc[0] for n in counts[:2]]
    first, second = (
        FocalRun(int(r["nprocs"]), float(r["size"]), float(r["runtime"])) for r in rows
    )
    return first, second


def forecast_sizes(training: FocalTraining, nprocs: int) -> pd.DataFrame:
    """Return the sizes for 0.8 to 1.2 of the focal time on a larger count (GARREN section 3.5).

    Columns ``seconds``, ``size``, ``low``, ``high`` (80 % interval of the size).
    """
    seconds = training.focal_time * np.array([0.8, 0.9, 1.0, 1.1, 1.2])
    low, high = training.model.size_range(seconds, nprocs)
    sizes = training.model.solve_size(seconds, nprocs)
    return pd.DataFrame({"seconds": seconds, "size": sizes, "low": low, "high": high})
