"""What a predictor is: on its own (`Predictor`), and in the loop (`RuntimePredictor`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan
from typing import Any, Literal, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Grade = Literal["note", "warning", "unusable"]


class Remark(NamedTuple):
    """One finding of a reliability judgement.

    Attributes
    ----------
    grade : str
        ``note``, ``warning`` or ``unusable``.
    code : str
        Short name of the finding, such as ``linear_section``.
    text : str
        The finding in plain words, with its figures.
    measure_at : int or None
        The processor count to measure next, where one would help.
    target : float or None
        The processor count the remark is about; None if about all of them.
    """

    grade: Grade
    code: str
    text: str
    measure_at: int | None = None
    target: float | None = None


class Predictor(Protocol):
    """A model that is fitted to observations and predicts runtimes.

    Constructor arguments are checked at once and never changed; what `fit`
    learns ends in an underscore and is replaced whole by the next `fit`.
    """

    def fit(self, observations: pd.DataFrame) -> Self:
        """Learn from finished runs, a row a run, with columns ``nprocs`` and ``runtime``."""
        ...

    def predict(
        self, nprocs: ArrayLike, *, strict: bool = False, **inputs: ArrayLike
    ) -> FloatArray:
        """Return runtimes in seconds, finite and positive, shape of `nprocs`.

        With ``strict=True`` a target graded ``unusable`` is refused with
        `UndeterminedError`.
        """
        ...

    def predict_range(
        self, nprocs: ArrayLike, level: float = 0.8, **inputs: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return the low and high ends of a range around each prediction."""
        ...

    def reliability(self, nprocs: ArrayLike, **inputs: ArrayLike) -> list[Remark]:
        """Say how far to trust the predictions, and where to measure next."""
        ...


@dataclass(frozen=True)
class VisibleJobs:
    """What a predictor may know of the jobs before they run, by job index.

    Attributes
    ----------
    application : numpy.ndarray of int, shape (n,)
    size_class : numpy.ndarray of int, shape (n,)
        Label of the input that repeats, -1 where sizes do not repeat.
    size : numpy.ndarray of float, shape (n,)
        Problem size as the user states it; NaN where hidden.
    user : numpy.ndarray of int, shape (n,)
    requested_processors : numpy.ndarray of int, shape (n,)
    requested_time : numpy.ndarray of float, shape (n,), seconds
    """

    application: IntArray
    size_class: IntArray
    size: FloatArray
    user: IntArray
    requested_processors: IntArray
    requested_time: FloatArray


@dataclass(frozen=True, slots=True)
class Observation:
    """One finished run, an open record.

    Attributes
    ----------
    application, size_class : int
    size : float
        NaN where hidden.
    nprocs : int
    runtime : float
        Seconds.
    time : float
        When it ended, on the simulation's clock, seconds.
    job : int
        Job index, -1 for a calibration run.
    more : mapping
        What else is known: ``computation``, ``communication`` (seconds),
        samples of load, cycles.
    """

    application: int
    size_class: int
    size: float
    nprocs: int
    runtime: float
    time: float
    job: int = -1
    more: Mapping[str, Any] = field(default_factory=dict)


class Explanation(NamedTuple):
    """Where a belief came from: a row of ``predictions.parquet``.

    Attributes
    ----------
    method : str
    observations : int
        Runs that it rests on.
    reliability : str
        The predictor's grade of it, empty where nothing is to be said.
    code : str
        Of the remark that makes it unusable; may be empty for milder grades,
        whose remarks nobody reads in the loop.
    runs_at_count : int
        Runs kept at that very count.
    mean_at_count : float, seconds
        Their geometric mean, brought to this job's size and to the load it
        would meet; NaN without runs.
    """

    method: str
    observations: int
    reliability: str
    code: str = ""
    runs_at_count: int = 0
    mean_at_count: float = nan


@runtime_checkable
class Inquisitive(Protocol):
    """A predictor that can say which count should be measured next."""

    def wanted(self, job: int, nprocs: int) -> int | None:
        """Return the count to measure for better predictions of `job` at `nprocs`."""
        ...


@runtime_checkable
class Selective(Protocol):
    """A predictor that knows of applications made for certain processor counts."""

    def offered(self, job: int, counts: IntArray) -> BoolArray | None:
        """Return which counts `job`'s application is made for; None if all are alike."""
        ...


class RuntimePredictor(Protocol):
    """A predictor in the loop of the simulator.

    It is attached to the jobs once, told of every finished run, and asked for
    a job's runtimes over candidate counts whenever a policy decides.

    Attributes
    ----------
    learns : bool
        Whether it wants to be told of finished runs.
    has_curves : bool, optional
        False for one that never says anything, so that nobody need ask it.
    """

    learns: bool

    def attach(self, jobs: VisibleJobs) -> None:
        """Begin a run with these jobs; forget all observations."""
        ...

    def curve(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return the believed runtimes of job index `job` at each count, seconds.

        None says that the predictor has nothing for this job: the request
        stands, and the requested time is the belief.
        """
        ...

    def observe(self, observation: Observation) -> bool:
        """Take in a finished run; True if beliefs about its application changed."""
        ...

    def explain(self, job: int, nprocs: int) -> Explanation:
        """Say which method a belief comes from, on how many observations."""
        ...
