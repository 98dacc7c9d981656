"""What runs say of the load they met, and what a predictor says of load to come."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from predictors.base import FloatArray, IntArray, numbers
from predictors.compiling import compiled, direct
from predictors.errors import PredictorError

LoadForm = Literal["effective", "min_avg_avail", "min_avail"]
LOAD_FORMS: tuple[LoadForm, ...] = ("effective", "min_avg_avail", "min_avail")


@dataclass(frozen=True)
class LoadedRuns:
    """Finished runs under load, as arrays of shape (n,).

    Attributes
    ----------
    nprocs, runtime, size : numpy.ndarray of float
        Processors, seconds, problem size.
    cpu, bandwidth : numpy.ndarray of float
        Available fractions in (0, 1].
    latency : numpy.ndarray of float
        Largest of the links, over that of an idle machine.
    samples : numpy.ndarray of int
        Samples of load taken during the run, 0 where not known.
    ignored : tuple of str
        Columns that were there and not used.
    """

    nprocs: FloatArray
    runtime: FloatArray
    size: FloatArray
    cpu: FloatArray
    bandwidth: FloatArray
    latency: FloatArray
    samples: IntArray
    ignored: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.runtime)


def available(samples: ArrayLike, form: LoadForm = "effective") -> float:
    """Reduce the samples of one run to the one figure that the model uses.

    Parameters
    ----------
    samples : array_like, shape (samples, places) or (samples,)
        Available fractions of each processor (or link) at each sample; NaN where
        a sample is missing.
    form : {"effective", "min_avg_avail", "min_avail"}
        The average over time of the smallest at each sample (what a run feels
        that moves at the pace of its slowest processor), the smallest of the
        averages over time (the paper's), or the smallest of the first samples
        (load stays as it was at the start).

    References
    ----------
    Yagnik, Sanjay & Vadhiyar, sections 2.1 (min_avail) and 3 (min_avg_avail).

    Examples
    --------
    >>> samples = [[1.0, 0.5], [0.2, 0.9]]
    >>> [round(available(samples, form), 2) for form in LOAD_FORMS]
    [0.35, 0.6, 0.5]
    """
    values = np.asarray(samples, float)
    if values.size == 0:
        return 1.0
    values = values.reshape(len(values), -1)
    if form == "min_avail":
        return float(np.nanmin(values[0]))
    if form == "effective":
        seen = values[~np.isnan(values).all(axis=1)]
        return float(np.nanmin(seen, axis=1).mean())
    return float(np.nanmean(values, axis=0).min())


def _figures(
    column: pd.Series, form: LoadForm, largest: bool = False
) -> tuple[FloatArray, IntArray]:
    """Return a column of load, and how many samples stand behind each figure.

    Of several places the smallest counts, or the largest.
    """
    if column.dtype != object or all(np.ndim(cell) == 0 for cell in column):
        return numbers(column, str(column.name)), np.zeros(len(column), np.int64)
    cells = [np.asarray(cell, float) for cell in column]
    sign = -1.0 if largest else 1.0
    figures = [sign * available(sign * x, form) if x.ndim and x.size else x for x in cells]
    samples = np.array([len(x) if x.ndim else 0 for x in cells], np.int64)
    return np.array([float(x) if np.size(x) else 1.0 for x in figures]), samples


WITHIN = {"nprocs": (1.0, np.inf, "at least 1")}
WITHIN |= dict.fromkeys(("available_cpu", "available_bandwidth"), (0.0, 1.0, "in (0, 1]"))
"""Between what the values of a column must lie, and how that is said."""


def _check(columns: Mapping[str, FloatArray]) -> None:
    """Refuse columns with values that are not positive and finite, or not within their range."""
    for name, values in columns.items():
        least, most, wanted = WITHIN.get(name, (0.0, np.inf, "finite and positive"))
        good = np.isfinite(values) & (values > 0) & (values >= least) & (values <= most)
        if not good.all():
            row = int(np.argmin(good))
            raise PredictorError(f"{name} must be {wanted}, got {values.flat[row]:g} in row {row}")


def loaded_runs(
    observations: pd.DataFrame, form: LoadForm, load: bool = True, latency: bool = False
) -> LoadedRuns:
    """Read and check the columns that the models of this method use.

    Parameters
    ----------
    observations : pandas.DataFrame
        Columns ``nprocs``, ``runtime`` (seconds), ``size`` and, with `load`,
        ``available_cpu`` and ``available_bandwidth``: fractions in (0, 1], or
        arrays of samples as `available` takes them; with `latency`, ``latency``: the
        largest of the links over that of an idle machine, or arrays of samples.
    form : {"effective", "min_avg_avail", "min_avail"}
        How samples are reduced.
    load : bool
        Whether the columns of load are needed.
    latency : bool
        Whether that of latency is.

    Raises
    ------
    PredictorError
        If a column is missing, there is no row, or a value is out of range.
    """
    needed = ["nprocs", "runtime", "size"]
    needed += ["available_cpu", "available_bandwidth"] if load else []
    needed += ["latency"] if latency else []
    missing = [name for name in needed if name not in observations.columns]
    if missing:
        raise PredictorError(
            f"observations lack the columns {', '.join(missing)}; this model needs "
            + ", ".join(needed)
        )
    if observations.empty:
        raise PredictorError("there is no observation; a model needs at least one finished run")
    nprocs, runtime, size = (numbers(observations[name], name) for name in needed[:3])
    cpu, samples = np.ones(len(runtime)), np.zeros(len(runtime), np.int64)
    bandwidth, slower = cpu.copy(), cpu.copy()
    if load:
        cpu, samples = _figures(observations["available_cpu"], form)
        bandwidth, _ = _figures(observations["available_bandwidth"], form)
    if latency:
        slower, _ = _figures(observations["latency"], form, largest=True)
    _check({"nprocs": nprocs, "runtime": runtime, "size": size})
    _check({"available_cpu": cpu, "available_bandwidth": bandwidth, "latency": slower})
    ignored = tuple(str(name) for name in observations.columns if name not in needed)
    return LoadedRuns(nprocs, runtime, size, cpu, bandwidth, slower, samples, ignored)


@dataclass(frozen=True)
class Targets:
    """What is asked: arrays of one shape, flattened, with the shape to give back."""

    nprocs: FloatArray
    size: FloatArray
    cpu: FloatArray
    bandwidth: FloatArray
    latency: FloatArray
    shape: tuple[int, ...]
    load_given: bool


def targets(nprocs: ArrayLike, inputs: Mapping[str, ArrayLike], latency: bool = False) -> Targets:
    """Check and broadcast the inputs of a prediction.

    `inputs` holds ``size`` (needed), ``available_cpu``, ``available_bandwidth`` and,
    where the model knows of `latency`, that (1, an idle machine, where not given).
    """
    known = ("size", "available_cpu", "available_bandwidth", "latency")
    usable = known if latency else known[:3]
    unknown = [name for name in inputs if name not in usable]
    if unknown:
        raise PredictorError(f"unknown inputs {', '.join(unknown)}; known are {', '.join(usable)}")
    if "size" not in inputs:
        raise PredictorError("a prediction needs the problem size: predict(nprocs, size=...)")
    columns = [nprocs, inputs["size"], *(inputs.get(name, 1.0) for name in known[1:])]
    try:
        arrays = np.broadcast_arrays(*(np.asarray(column, float) for column in columns))
    except ValueError as error:
        shapes = ", ".join(str(np.shape(column)) for column in columns)
        raise PredictorError(f"inputs of shapes {shapes} do not go together") from error
    flat = [array.ravel() for array in arrays]
    _check(dict(zip(("nprocs", *known), flat, strict=True)))
    given = known[1] in inputs and known[2] in inputs
    return Targets(flat[0], flat[1], flat[2], flat[3], flat[4], arrays[0].shape, given)


ROUNDS = 3
"""Times that the load is looked up again for the runtime it led to."""
SETTLED = 0.05
"""Share by which a runtime and the one it leads to may differ."""
MOST_ROUNDS = 23
"""Times for runtimes that do not settle."""


class Parts(NamedTuple):
    """Seconds of a job on an idle machine, at each count.

    Attributes
    ----------
    fixed, computation, communication : numpy.ndarray of float, shape (n,)
        What no load slows down; what waits for the slowest processor; what
        waits for the most loaded link.
    """

    fixed: FloatArray
    computation: FloatArray
    communication: FloatArray

    def under(self, cpu: FloatArray, bandwidth: FloatArray) -> FloatArray:
        """Return the runtimes with these fractions available, seconds."""
        return np.asarray(self.fixed + self.computation / cpu + self.communication / bandwidth)

    def scaled(self, factors: FloatArray) -> "Parts":
        """Return the parts times a factor a count."""
        return Parts(self.fixed * factors, self.computation * factors, self.communication * factors)


class ExpectedLoad(Protocol):
    """What is believed of the load to come."""

    def runtimes(self, counts: IntArray, parts: Parts, form: LoadForm) -> FloatArray:
        """Return how long a job that has no processors yet will take under it, seconds.

        Parameters
        ----------
        counts : numpy.ndarray of int, shape (n,)
        parts : Parts
            Seconds on an idle machine at each count.
        form : {"effective", "min_avg_avail", "min_avail"}
            What is meant by the load of several processors.
        """


@runtime_checkable
class NeedsLoad(Protocol):
    """A predictor that tells a job's parts apart, and so predicts it under any load.

    Attributes
    ----------
    load_form : {"effective", "min_avg_avail", "min_avail"}
        Which figure of the load of several processors its parts go with.
    """

    load_form: LoadForm

    def bind_load(self, load: ExpectedLoad) -> None:
        """Take the handle on what is believed of the load."""

    def parts(self, job: int, counts: IntArray) -> Parts | None:
        """Return the parts of a job at each count; None if too little was seen."""


ASKED, LOW, HIGH, LOOKED_UP = range(4)
"""Rows of a search: the runtime to ask of, at last the answer; its bounds; how often it was."""


Conditions = Callable[[FloatArray], FloatArray]
"""Runtimes to the CPU and bandwidth believed to be available over them, shape (2, n)."""


@compiled
def _looked_up(search, parts, conditions) -> bool:  # type: ignore[no-untyped-def]
    """Take in which runtimes the load over those asked for leads to; say whether to ask again.

    The load is looked up for the runtime that it led to, and again. Where load is
    about to change that can swing between two answers for ever: one too short, for
    the load of the first moments, and one too long. Such runtimes are halved in
    on (in logarithms) until the load over a runtime leads to that runtime.
    """
    again = False
    for i in range(search.shape[1]):
        if search[LOOKED_UP, i] == np.inf:
            continue
        answer = parts[0, i] + parts[1, i] / conditions[0, i] + parts[2, i] / conditions[1, i]
        asked, times = search[ASKED, i], search[LOOKED_UP, i] + 1.0
        if answer > asked:
            search[LOW, i] = max(search[LOW, i], asked)
        else:
            search[HIGH, i] = min(search[HIGH, i], asked)
        settled = times >= (MOST_ROUNDS if abs(answer / asked - 1.0) > SETTLED else ROUNDS)
        halve = times >= ROUNDS and search[HIGH, i] < np.inf and not settled
        search[ASKED, i] = np.sqrt(search[LOW, i] * search[HIGH, i]) if halve else answer
        search[LOOKED_UP, i] = np.inf if settled else times
        again = again or not settled
    return again


_look_up: Any = direct(_looked_up)


def runtime_under(parts: Parts, conditions: Conditions) -> FloatArray:
    """Return the runtimes of a job under load that depends on how long it runs.

    Examples
    --------
    >>> parts = Parts(np.array([5.0]), np.array([60.0]), np.array([10.0]))
    >>> runtime_under(parts, lambda horizon: np.full((2, 1), 0.5)).tolist()
    [145.0]
    """
    seconds = np.array(parts, float)
    search = np.zeros((4, seconds.shape[1]))
    search[ASKED] = search[LOW] = parts.fixed + parts.computation + parts.communication
    search[HIGH] = np.inf
    while _look_up(search, seconds, conditions(search[ASKED])):
        pass
    return np.asarray(search[ASKED])
