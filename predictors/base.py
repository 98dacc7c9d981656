"""What a predictor is: alone (`Predictor`), in the loop (`RuntimePredictor`), around another."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from math import nan
from numbers import Real
from typing import Any, Literal, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from predictors.errors import NotFittedError, PredictorError

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

    A constructor stores its arguments, `fit` checks them (`Estimator`); what it
    learns ends in an underscore and is replaced whole by the next `fit`.
    """

    def fit(self, observations: pd.DataFrame) -> Self:
        """Learn from finished runs, a row a run, with columns ``nprocs`` and ``runtime``."""

    def predict(
        self, nprocs: ArrayLike, *, strict: bool = False, **inputs: ArrayLike
    ) -> FloatArray:
        """Return runtimes in seconds, finite and positive, shape of `nprocs`.

        With ``strict=True`` a target graded ``unusable`` is refused with
        `UndeterminedError`.
        """

    def predict_range(
        self, nprocs: ArrayLike, level: float = 0.8, **inputs: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return the low and high ends of a range around each prediction."""

    def reliability(self, nprocs: ArrayLike, **inputs: ArrayLike) -> list[Remark]:
        """Say how far to trust the predictions, and where to measure next."""


class Estimator:
    """What scikit-learn asks of an estimator, without a need of scikit-learn.

    A constructor stores its arguments under their own names, unchanged and
    unchecked; `check_parameters` refuses them, when it fits or before.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments; with `deep` those of estimators among them too."""
        found: dict[str, Any] = {}
        for name in signature(type(self)).parameters:
            found[name] = getattr(self, name)
            if deep and isinstance(found[name], Estimator):
                inner = found[name].get_params()
                found |= {f"{name}__{key}": value for key, value in inner.items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments; the next `fit` uses them.

        Raises
        ------
        PredictorError
            If there is no argument of a name.
        """
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise PredictorError(
                    f"{type(self).__name__} has no parameter {name}; "
                    f"it has {', '.join(known) or 'none'}"
                )
            outer, inner, last = name.rpartition("__")
            setattr(self.get_params()[outer] if inner else self, last, value)
        return self

    def check_parameters(self) -> None:
        """Refuse constructor arguments out of range, by name, value and what is accepted."""

    def check_fitted(self, attribute: str) -> None:
        """Refuse to answer before `fit`, which sets an attribute."""
        if not hasattr(self, attribute):
            raise NotFittedError(f"{type(self).__name__} was asked before fit")

    def __repr__(self) -> str:
        usual = signature(type(self)).parameters
        changed = (
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if repr(value) != repr(usual[name].default)
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    def score(
        self, observations: pd.DataFrame | ArrayLike, runtime: ArrayLike | None = None
    ) -> float:
        """Return R² of ln runtime: 1 where predictions are exact, 0 as good as one constant.

        Parameters
        ----------
        observations, runtime
            As `fit` takes them. NaN where all runtimes are the same.
        """
        table = run_table(self, observations, runtime)
        model: Any = self
        actual = np.log(table["runtime"].to_numpy(float))
        missed = np.log(model.predict(table.drop(columns="runtime"))) - actual
        spread = actual - actual.mean()
        return float(1.0 - missed @ missed / (spread @ spread)) if spread.any() else nan

    def __sklearn_tags__(self) -> Any:
        tools = import_module("sklearn.utils")
        return tools.Tags(
            estimator_type="regressor",
            target_tags=tools.TargetTags(required=False, positive_only=True),
            regressor_tags=tools.RegressorTags(),
            input_tags=tools.InputTags(positive_only=True),
        )


def run_table(
    model: Estimator, observations: pd.DataFrame | ArrayLike, runtime: ArrayLike | None
) -> pd.DataFrame:
    """Return runs as a table, given as one or as counts (and inputs) with runtimes beside them."""
    if runtime is None and isinstance(observations, pd.DataFrame):
        if "runtime" not in observations:
            return observations
        runtime = observations["runtime"]
    if runtime is None:
        raise PredictorError(
            "a table with columns nprocs and runtime is needed, or counts and their runtimes; "
            f"got a {type(observations).__name__} and no runtimes"
        )
    seconds = pd.Series(np.ravel(np.asarray(runtime)))
    if not isinstance(observations, pd.DataFrame):
        names = ("nprocs", *getattr(model, "inputs", ()))
        values = np.asarray(observations)
        values = values.reshape(-1, 1) if values.ndim < 2 else values
        if values.ndim > 2 or values.shape[1] not in (1, len(names)):
            raise PredictorError(
                f"columns {', '.join(names)} are expected, got an array of shape {values.shape}"
            )
        observations = pd.DataFrame(values, columns=list(names[: values.shape[1]]))
    if len(observations) != len(seconds):
        raise PredictorError(f"{len(observations)} rows of runs, but {len(seconds)} runtimes")
    return observations.assign(runtime=numbers(seconds, "runtime"))


def numbers(column: pd.Series, name: str) -> FloatArray:
    """Return a column as float64, seconds of time spans; numbers as text are refused, by row."""
    if column.dtype.kind == "m":
        return np.asarray(column.dt.total_seconds(), float)
    for row, value in enumerate(() if column.dtype.kind in "iuf" else column):
        if isinstance(value, bool) or not isinstance(value, Real):
            raise PredictorError(f"{name} in row {row} is not a number: {value!r}")
    return np.asarray(column.to_numpy(float, na_value=np.nan), float)


def asked_of(
    nprocs: ArrayLike | pd.DataFrame, inputs: Mapping[str, ArrayLike], names: Iterable[str] = ()
) -> tuple[ArrayLike, dict[str, ArrayLike]]:
    """Return counts and inputs; a table's column nprocs, and its columns of these names.

    An array of one column, as scikit-learn has it, is that column.
    """
    if not isinstance(nprocs, pd.DataFrame):
        is_column = isinstance(nprocs, np.ndarray) and nprocs.ndim == 2 and nprocs.shape[1] == 1
        return (np.ravel(nprocs) if is_column else nprocs), dict(inputs)
    if "nprocs" not in nprocs:
        raise PredictorError(f"no column nprocs; the columns are {', '.join(map(str, nprocs))}")
    found = {name: nprocs[name].to_numpy() for name in names if name in nprocs}
    return nprocs["nprocs"].to_numpy(), {**found, **inputs}


@dataclass(frozen=True)
class VisibleJobs:
    """What a predictor may know of the jobs before they run, by job index.

    In a run everything is 0 until the job arrives, and nothing can be written.

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

    Examples
    --------
    >>> one, two = np.array([0, 0]), np.array([4, 8])
    >>> unknown = np.array([np.nan, np.nan])
    >>> VisibleJobs(one, one, unknown, two, two, np.array([60.0, 90.0])).requested_processors
    array([4, 8])
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

    Examples
    --------
    >>> run = Observation(0, -1, float("nan"), nprocs=8, runtime=60.0, time=100.0)
    >>> run.nprocs * run.runtime
    480.0
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

    Examples
    --------
    >>> Explanation(method="adept", observations=3, reliability="note").runs_at_count
    0
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


@runtime_checkable
class Selective(Protocol):
    """A predictor that knows of applications made for certain processor counts."""

    def offered(self, job: int, counts: IntArray) -> BoolArray | None:
        """Return which counts `job`'s application is made for; None if all are alike."""


class RuntimePredictor(Protocol):
    """A predictor in the loop of the simulator.

    It is attached to the jobs once, told of every finished run, and asked for
    a job's runtimes over candidate counts whenever a policy decides.

    Attributes
    ----------
    learns : bool
        Whether it wants to be told of finished runs.
    has_curves : bool, optional
        False for one that never says anything, so that nobody need ask it; counts for the very
        class that says so, not for those derived from it.

    Examples
    --------
    >>> from predictors.in_loop.user_estimate import UserEstimate
    >>> predictor: RuntimePredictor = UserEstimate()
    >>> predictor.learns, predictor.explain(0, 4).observations
    (False, 0)
    """

    learns: bool

    def attach(self, jobs: VisibleJobs) -> None:
        """Begin a run with these jobs; forget all observations."""

    def curve(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return the believed runtimes of job index `job` at each count, seconds.

        None says that the predictor has nothing for this job: the request
        stands, and the requested time is the belief. NaN says that nothing is
        known of a count, which may not be the request: no rule chooses it, and
        where somebody must believe something of it the request's work in
        processor-seconds counts, as without a curve. Where the request alone is
        known it stands.
        """

    def observe(self, observation: Observation) -> bool:
        """Take in a finished run; True if beliefs about its application changed."""

    def explain(self, job: int, nprocs: int) -> Explanation:
        """Say which method a belief comes from, on how many observations."""


Capability = TypeVar("Capability")


def has_curves(predictor: RuntimePredictor) -> bool:
    """Say whether a predictor ever says anything; see `RuntimePredictor`."""
    return bool(vars(type(predictor)).get("has_curves", True))


@dataclass(eq=False, repr=False)
class Wrapper:
    """Another predictor, to begin with unchanged.

    A wrapper answers in its own name only for what it changes. Whatever else the wrapped
    predictor can do or asks for (to be told of load or of the truth, calibration runs, a
    count to measure next) is found through `provider` and `setting`.

    Parameters
    ----------
    before : RuntimePredictor
        What is wrapped; it may be a wrapper itself.
    """

    before: RuntimePredictor

    @property
    def learns(self) -> bool:
        """Whether the wrapped predictor wants to be told of finished runs."""
        return self.before.learns

    def attach(self, jobs: VisibleJobs) -> None:
        """Begin a run with these jobs; forget all observations."""
        self.before.attach(jobs)

    def curve(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return the believed runtimes of job index `job` at each count, seconds."""
        return self.before.curve(job, counts)

    def observe(self, observation: Observation) -> bool:
        """Pass on a finished run."""
        return self.before.observe(observation)

    def explain(self, job: int, nprocs: int) -> Explanation:
        """Say where a belief comes from."""
        return self.before.explain(job, nprocs)

    def replace(self, change: Callable[[RuntimePredictor], RuntimePredictor]) -> None:
        """Put in the place of each predictor inside what `change` makes of it."""
        self.before = change(self.before)


def layers(predictor: Any) -> list[Any]:
    """Return a predictor and those that it wraps, the outermost first."""
    found = [predictor]
    while isinstance(found[-1], Wrapper):
        found.append(found[-1].before)
    return found


def provider(predictor: Any, capability: type[Capability]) -> Capability | None:
    """Return who of a predictor and those that it wraps has a capability, None if nobody.

    It is a protocol that can be checked at run time, such as
    `predictors.under_load.load_aware.NeedsLoad`.

    Examples
    --------
    >>> from predictors.in_loop.oracle import NeedsTruth, Oracle
    >>> oracle = Oracle()
    >>> provider(Wrapper(Wrapper(oracle)), NeedsTruth) is oracle
    True
    """
    return next((one for one in layers(predictor) if isinstance(one, capability)), None)


def setting(predictor: Any, name: str, default: Any) -> Any:
    """Return an attribute of the outermost of a predictor and those that it wraps that has it."""
    having = (one for one in layers(predictor) if hasattr(one, name))
    return getattr(next(having, None), name, default)
