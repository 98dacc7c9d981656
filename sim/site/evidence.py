"""What the past runs of an application say: how it scales, and how long to ask for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import ndtri

from predictors.advice import measure_next
from predictors.base import Remark
from predictors.consensus.combination import Consensus
from predictors.errors import PredictorError
from workloads.base import FloatArray

COVERAGE = 0.95
"""Share of the jobs that should end within the walltime, and the quantile that it begins with."""
FEWEST_RUNS = 19
"""Runs of which the longest holds in 95 % of cases where nothing drifts: 19 / 20."""
FOLDS = ((0.4, 0.55), (0.55, 0.7), (0.7, 0.85), (0.85, 1.0))
"""Parts of the past that are foretold from what was before them."""
COUNTS = 3
"""Different processor counts from which on something is known of scaling."""
REPEATS = 3
"""Runs at counts that ran before from which on their scatter is known."""
SCATTER = 0.5
"""Spread of ln(runtime) at one count beyond which runs are of different work."""
NEAR = 1.05
"""Counts within this factor of the least time count as fastest; the smallest is taken."""
EFFICIENT = 0.5
"""Least efficiency, against the fewest processors considered, of the efficient count."""
BEYOND = 2
"""Times the widest count that ran up to which counts are considered."""
LEVEL_OF_RANGE = 0.8
WHY = {
    "kept to one or two processor counts": "all runs are on",
    "ran other work on the same processors": "of different work",
    "hardly came twice on a count": "hardly any processor count",
}
"""Why nothing is known of scaling, and the words by which evidence says so."""
USUAL_STEP = 60.0
"""Walltimes are whole minutes."""
DAY, LINGERING = 86400.0, 300.0
"""Seconds; so much more than whole days is what jobs take to end at a limit of whole days."""


@dataclass(frozen=True)
class ExpectedRun:
    """A count that an application may run on, and what is expected there, in seconds.

    Attributes
    ----------
    count : int
    predicted, low, high : float
        Of its runtime, with its 80 % range.
    expected_start : float or None
        Mean time from submit to start in this machine's queue.
    """

    count: int
    predicted: float
    low: float
    high: float
    expected_start: float | None = None

    @property
    def ends(self) -> float:
        """Mean time from submit to end, seconds; the runtime where the start is unknown."""
        return (self.expected_start or 0.0) + self.predicted


@dataclass(frozen=True)
class Proposal:
    """What is advised to one application.

    Attributes
    ----------
    application : str
    jobs : int
        How many ran.
    counts : dict of int to int
        Runs by processor count.
    usual : int
        The count that most of them had.
    usual_runtime : float
        Their median, seconds.
    asked : float or None
        The median of their requested times, seconds; None without any.
    fastest, efficient : ExpectedRun or None
        None without evidence.
    walltime : float or None
        On the usual count, seconds; None with too few runs.
    measure_next : int or None
    evidence : str
        What is known, or why nothing is.
    usual_start : float or None
        Mean time from submit to start on the usual count, seconds.
    in_nodes : bool
        Whether counts are of whole nodes.
    counts_of_all : tuple of int
        Those that ran whatever time was asked for.
    """

    application: str
    jobs: int
    counts: dict[int, int]
    usual: int
    usual_runtime: float
    asked: float | None
    fastest: ExpectedRun | None
    efficient: ExpectedRun | None
    walltime: float | None
    measure_next: int | None
    evidence: str
    usual_start: float | None = None
    in_nodes: bool = False
    counts_of_all: tuple[int, ...] = ()

    @property
    def says_something(self) -> bool:
        """Whether its runs say how it scales, or how long to ask for."""
        return self.fastest is not None or self.walltime is not None

    @property
    def asks_for_more(self) -> bool:
        """Whether the walltime advised, on the count advised, is longer than what is asked now."""
        return bool((self.walltime_on(self.recommended) or 0.0) > (self.asked or np.inf))

    @property
    def choices(self) -> tuple[ExpectedRun, ...]:
        """The counts that are told apart, each once, the usual one first."""
        median = self.usual_runtime
        usual = ExpectedRun(self.usual, median, median, median, self.usual_start)
        every = [one for one in (self.efficient, self.fastest) if one is not None]
        return tuple({one.count: one for one in [usual, *every]}.values())

    @property
    def knows_starts(self) -> bool:
        """Whether the start of each choice is known."""
        return all(one.expected_start is not None for one in self.choices)

    @property
    def recommended(self) -> ExpectedRun:
        """The choice of the earliest expected end; the usual one without evidence.

        Where starts are known, the usual one stays unless another ends no later, or later by
        no more than `NEAR` on fewer processor-seconds.
        """
        known = [one for one in (self.efficient, self.fastest) if one is not None]
        usual = self.choices[0]
        best = min(known or [usual], key=lambda one: one.ends)
        costs_less = best.count * best.predicted < usual.count * usual.predicted
        most = usual.ends * (NEAR if costs_less else 1.0)
        return usual if self.knows_starts and best.ends > most else best

    def walltime_on(self, choice: ExpectedRun) -> float | None:
        """Return the walltime of a choice: as much longer or shorter as the runtime, seconds."""
        if self.walltime is None or choice.count == self.usual:
            return self.walltime
        return minutes(max(self.walltime * choice.predicted / self.usual_runtime, choice.high))

    @property
    def sbatch(self) -> str:
        """A line for Slurm with what evidence advises, count or walltime; empty without any."""
        walltime = self.walltime_on(self.recommended)
        option = "nodes" if self.in_nodes else "ntasks"
        count = [] if self.fastest is None else [f"--{option}={self.recommended.count}"]
        limit = [] if walltime is None else [f"--time={clock_time(walltime)}"]
        return " ".join(["sbatch", *count, *limit, "job.sh"]) if count or limit else ""


def minutes(seconds: float) -> float:
    """Return a time rounded up to whole minutes, or down to whole days just passed, in seconds.

    Examples
    --------
    >>> minutes(61.0), minutes(60.0), minutes(3 * 86400.0 + 7.0) / 86400.0
    (120.0, 60.0, 3.0)
    """
    days = DAY * (seconds // DAY)
    if days and seconds - days <= LINGERING:
        return days
    return float(USUAL_STEP * np.ceil(seconds / USUAL_STEP - 1e-9))


def clock_time(seconds: float) -> str:
    """Return a time as Slurm takes it.

    Examples
    --------
    >>> clock_time(93780.0), clock_time(3600.0)
    ('1-02:03:00', '01:00:00')
    """
    days, rest = divmod(round(seconds), 86400)
    told = f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
    return f"{days}-{told}" if days else told


def quantiles(runs: pd.DataFrame) -> pd.Series:
    """Return a high quantile of the runtimes of each group that has enough of them, seconds."""
    groups = runs.groupby("group")["runtime"]
    high = groups.quantile(COVERAGE, interpolation="higher")
    return high[groups.size() >= FEWEST_RUNS]


def stretch(runs: pd.DataFrame) -> float:
    """Return the factor by which walltimes are stretched so that they hold as logs drift.

    Parts of the past are foretold from what was before; the factor is that with which
    `COVERAGE` of the jobs would have held, at least 1.

    Parameters
    ----------
    runs : pandas.DataFrame
        Columns ``group`` and ``runtime`` (s), by time.
    """
    ratios = []
    for begin, end in FOLDS:
        first, last = int(begin * len(runs)), int(end * len(runs))
        told = runs.iloc[first:last]
        walltime = told["group"].map(quantiles(runs.iloc[:first]))
        ratios.append((told["runtime"] / walltime)[walltime > 0].to_numpy(float))
    every = np.concatenate(ratios)
    if not len(every):
        return 1.0
    return max(1.0, float(np.quantile(every, COVERAGE, method="higher")))


def walltimes(runs: pd.DataFrame) -> tuple[pd.Series, float]:
    """Return a walltime for each group with enough runs, in whole minutes, and its stretch."""
    factor = stretch(runs)
    return (factor * quantiles(runs)).map(minutes), factor


def scaling(runs: pd.DataFrame) -> tuple[Consensus | None, float, str]:
    """Return a model of an application's runtime, or None, its scatter, and what its runs say.

    Parameters
    ----------
    runs : pandas.DataFrame
        Columns ``nprocs`` and ``runtime`` (s).

    Returns
    -------
    model : Consensus or None
    scatter : float
        Spread of ln(runtime) at one count; 0 where that is unknown.
    evidence : str
    """
    runs = runs[runs["runtime"] > 0]
    counts = np.unique(runs["nprocs"])
    logs = np.log(runs["runtime"].to_numpy(float))
    left = logs - pd.Series(logs).groupby(runs["nprocs"].to_numpy()).transform("mean").to_numpy()
    free = len(logs) - len(counts)
    spread = float(np.sqrt((left**2).sum() / max(free, 1)))
    if len(counts) < COUNTS:
        shown = " and ".join(f"{count}" for count in counts) or "none"
        why = f"all runs are on {shown} processor{'' if shown == '1' else 's'}"
    elif free < REPEATS:
        why = (
            "hardly any processor count came twice, so that other work cannot be told apart from "
            "other speed"
        )
    elif spread > SCATTER:
        why = (
            f"runs on the same processors differ by a factor of {np.exp(spread):.1f} either way, "
            "so that they are of different work"
        )
    else:
        try:
            model = Consensus().fit(runs[["nprocs", "runtime"]])
        except PredictorError as error:
            why = str(error)
        else:
            said = f"{len(runs)} runs on {len(counts)} counts, alike within {100 * spread:.0f} %"
            return model, spread, said
    return None, 0.0, f"no evidence of scaling: {why}"


def considered(counts: Sequence[int], processors: int) -> FloatArray:
    """Return the counts that are weighed: those that ran, and powers of two around them.

    Examples
    --------
    >>> considered([6, 12], 64).tolist()
    [6.0, 8.0, 12.0, 16.0]
    """
    least, most = min(counts), min(BEYOND * max(counts), processors)
    powers = [2**k for k in range(31) if least <= 2**k <= most]
    return np.unique(np.array([*counts, *powers], float))


def choose(
    model: Consensus, scatter: float, counts: Sequence[int], usual: int, processors: int
) -> tuple[ExpectedRun | None, ExpectedRun | None, str]:
    """Return the fastest and the efficient count of a model, or why neither can be told.

    Ranges are of a run: those of the model, widened by the scatter of runs.
    """
    weighed = considered(counts, processors)
    remarks: list[list[Remark]] = [list(model.reliability(np.array([n]))) for n in weighed]
    usable = np.array([not any(one.grade == "unusable" for one in mine) for mine in remarks])
    if not usable.any():
        worst = next(one.text for mine in remarks for one in mine if one.grade == "unusable")
        return None, None, f"no evidence of scaling: {worst}"
    weighed = weighed[usable]
    time = model.predict(weighed)
    below, above = np.abs(np.log(np.array(model.predict_range(weighed, LEVEL_OF_RANGE)) / time))
    of_run = float(ndtri(0.5 + LEVEL_OF_RANGE / 2)) * scatter
    low, high = time * np.exp(-np.hypot(below, of_run)), time * np.exp(np.hypot(above, of_run))
    counted = weighed.astype(np.int64)
    every = list(map(ExpectedRun, *(values.tolist() for values in (counted, time, low, high))))
    first = int(np.flatnonzero(time <= NEAR * time.min())[0])
    efficiency = time[0] * weighed[0] / (time * weighed)
    last = int(np.flatnonzero(efficiency >= EFFICIENT)[-1])
    fastest, efficient = every[first], every[min(first, last)]
    one = fastest if fastest.count < usual else efficient
    slower = model.predict(np.array([usual])).item() / one.predicted
    more = max(one.count / usual, 1.0)
    if slower <= np.exp(SCATTER) * more:
        return fastest, efficient, ""
    so = "so that they are" if more == 1 else "more than processors explain, so perhaps"
    problem = (
        f"no evidence of scaling: runs on {one.count} are {slower:.1f} times as fast as those on "
        f"{usual}, {so} of different work"
    )
    return None, None, problem


def advice_of(name: str, runs: pd.DataFrame, walltime: float | None, processors: int) -> Proposal:
    """Return what is advised to an application whose runs these are.

    They have columns ``nprocs``, ``runtime`` and ``asked`` (s, NaN where unknown), by time.
    """
    sizes = runs["nprocs"].value_counts()
    usual = int(sizes.index[0])
    model, scatter, evidence = scaling(runs)
    fastest = efficient = None
    following: int | None = 2 * usual if 2 * usual <= processors else max(1, usual // 2)
    if model is not None:
        counts = sizes.index.tolist()
        fastest, efficient, problem = choose(model, scatter, counts, usual, processors)
        evidence = problem or evidence
        if wanted := [one.count for one in (fastest, efficient) if one is not None]:
            known = runs["nprocs"].to_numpy(float)
            told = measure_next(model, known, wanted, most=processors)
            following = None if told is None else told.nprocs
    asked = float(runs["asked"].median())
    own = runs.loc[runs["nprocs"] == usual, "runtime"]
    if walltime is None:
        evidence += f"; a walltime needs {FEWEST_RUNS} completed runs, not {len(runs)}"
    return Proposal(
        application=name,
        jobs=len(runs),
        counts={int(n): int(k) for n, k in sizes.sort_index().items()},  # type: ignore[call-overload]
        usual=usual,
        usual_runtime=float(own.median()),
        asked=None if np.isnan(asked) else asked,
        fastest=fastest,
        efficient=efficient,
        walltime=walltime,
        measure_next=following,
        evidence=evidence,
    )


def with_starts(advice: Proposal, starts: dict[tuple[int, float], float]) -> Proposal:
    """Return the advice with the expected starts of its choices, by count and seconds asked."""
    waits = {one.count: starts.get((one.count, asked_on(advice, one))) for one in advice.choices}
    fastest, efficient = (
        one and replace(one, expected_start=waits[one.count])
        for one in (advice.fastest, advice.efficient)
    )
    usual = waits[advice.usual]
    return replace(advice, usual_start=usual, fastest=fastest, efficient=efficient)


def asked_on(advice: Proposal, choice: ExpectedRun) -> float:
    """Return what a job would ask for on a count: its walltime, else what is asked now, seconds."""
    return advice.walltime_on(choice) or minutes(advice.asked or 2.0 * choice.high)
