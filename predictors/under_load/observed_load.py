"""Reading observations of runs under load, and what a run's samples of load come to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from predictors.base import FloatArray, IntArray, numbers
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
    if column.dtype != object:
        return numbers(column, str(column.name)), np.zeros(len(column), np.int64)
    if all(np.ndim(cell) == 0 for cell in column):
        return numbers(column, str(column.name)), np.zeros(len(column), np.int64)
    cells = [np.asarray(cell, float) for cell in column]
    sign = -1.0 if largest else 1.0
    figures = [sign * available(sign * x, form) if x.ndim and x.size else x for x in cells]
    samples = np.array([len(x) if x.ndim else 0 for x in cells], np.int64)
    return np.array([float(x) if np.size(x) else 1.0 for x in figures]), samples


def _positive(values: FloatArray, name: str, limit: float = np.inf, least: float = 0.0) -> None:
    good = np.isfinite(values) & (values > 0) & (values >= least) & (values <= limit)
    if not good.all():
        row = int(np.argmin(good))
        wanted = f"in (0, {limit:g}]" if np.isfinite(limit) else "finite and positive"
        wanted = f"at least {least:g}" if least else wanted
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
    _positive(nprocs, "nprocs", least=1.0)
    _positive(runtime, "runtime")
    _positive(size, "size")
    _positive(cpu, "available_cpu", limit=1.0)
    _positive(bandwidth, "available_bandwidth", limit=1.0)
    _positive(slower, "latency")
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
    for name, values in zip(("nprocs", *known), flat, strict=True):
        limit = 1.0 if name.startswith("available") else np.inf
        _positive(values, name, limit, least=1.0 if name == "nprocs" else 0.0)
    given = known[1] in inputs and known[2] in inputs
    return Targets(flat[0], flat[1], flat[2], flat[3], flat[4], arrays[0].shape, given)
