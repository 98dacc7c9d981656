"""Runs and targets with inputs beside the processor count, and what all answer alike on them."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from predictors.base import FloatArray, asked_of
from predictors.curves.estimator import RuntimeEstimator
from predictors.errors import PredictorError
from predictors.observations import checked_column, dropped_of

OPTIONAL_INPUT = ("size",)  # the default input: used where the observations have it
SPLITS = {"max": ("computation", "communication"), "cp": ("computation_cp", "communication_cp")}
SPLIT_COLUMNS = tuple(name for pair in SPLITS.values() for name in pair)
KNOWN_COLUMNS = ("nprocs", "runtime", *SPLIT_COLUMNS)
BEYOND_TOTAL = 0.01
NO_SPLITS: Mapping[str, tuple[FloatArray, FloatArray]] = {}


@dataclass(frozen=True)
class TrainingRuns:
    """Finished runs for a log-log fit.

    Attributes
    ----------
    known : numpy.ndarray, shape (1 + k, rows)
        log2 of the processor counts, then of each input that varies.
    runtime : numpy.ndarray, shape (rows,), seconds
    splits : numpy.ndarray, shape (ways, 2, rows)
        Seconds of computation and communication.
    inputs : tuple of str, length k
        Names of the inputs.
    ways : tuple of str
        Of splitting: ``max`` (slowest process) or ``cp`` (critical path).
    constants : mapping of str to float
        Inputs with one value in all rows, and that value: no part of the model.
    ignored : tuple of str
        Columns that no regression reads, and splits that were incomplete.
    dropped : tuple of (float, float)
        Count and seconds of runs left out, obvious outliers among three or more alike.
    """

    known: FloatArray
    runtime: FloatArray
    splits: FloatArray
    inputs: tuple[str, ...]
    ways: tuple[str, ...] = ()
    constants: Mapping[str, float] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    dropped: tuple[tuple[float, float], ...] = ()

    @property
    def rows(self) -> int:
        """Number of runs."""
        return int(self.runtime.size)

    @cached_property
    def levels(self) -> FloatArray:
        """log2 of the distinct processor counts, ascending."""
        return np.unique(self.known[0])

    def take(self, rows: np.ndarray | slice) -> "TrainingRuns":
        """Return the runs at these rows (a mask, indices or a slice), inputs as they are."""
        tables = (self.known, self.runtime, self.splits)
        known, runtime, splits = (np.ascontiguousarray(table[..., rows]) for table in tables)
        return replace(self, known=known, runtime=runtime, splits=splits)


def counts_of(log_q: FloatArray) -> FloatArray:
    """Return processor counts from their log2, to twelve digits, so without rounding error.

    Examples
    --------
    >>> counts_of(np.log2([3.0, 5.5, 100.0])).tolist()
    [3.0, 5.5, 100.0]
    """
    counts = np.exp2(log_q)
    digits = 10.0 ** (11.0 - np.floor(np.log10(counts)))
    return np.asarray(np.rint(counts * digits) / digits, float)


def runs_from_arrays(
    names: Sequence[str],
    nprocs: ArrayLike,
    runtime: ArrayLike,
    inputs: Sequence[ArrayLike] = (),
    splits: Mapping[str, tuple[FloatArray, FloatArray]] = NO_SPLITS,
    ignored: tuple[str, ...] = (),
) -> TrainingRuns:
    """Check arrays and take logarithms; inputs with one value throughout are set apart."""
    counts = checked_column("nprocs", nprocs)
    times = checked_column("runtime", runtime)
    columns: dict[str, FloatArray] = {}
    constants: dict[str, float] = {}
    for name, values in zip(names, inputs, strict=True):
        column = checked_column(name, values)
        if column.size != counts.size:
            raise PredictorError(f"{name} has {column.size} values, nprocs {counts.size}")
        if (column == column[0]).all():
            constants[name] = float(column[0])
        else:
            columns[name] = column
    if times.size != counts.size:
        raise PredictorError(f"runtime has {times.size} values, nprocs {counts.size}")
    known = np.log2(np.array([counts, *columns.values()]))
    parts = np.array([*splits.values()]).reshape(len(splits), 2, times.size)
    return TrainingRuns(known, times, parts, (*columns,), (*splits,), constants, ignored)


def _frame_splits(
    frame: pd.DataFrame, runtime: FloatArray
) -> tuple[dict[str, tuple[FloatArray, FloatArray]], list[str]]:
    """Read the split times, a missing part as the runtime minus the other; name incomplete ones."""
    splits: dict[str, tuple[FloatArray, FloatArray]] = {}
    incomplete: list[str] = []
    for way, names in SPLITS.items():
        columns = {name: frame[name].to_numpy(dtype=np.float64) for name in names if name in frame}
        unknown = {name: np.isnan(column) for name, column in columns.items()}
        incomplete += [name for name, one in unknown.items() if one.any() and not one.all()]
        known = {name: columns[name] for name, one in unknown.items() if not one.any()}
        for part in known.values() if len(known) == 1 else ():
            short = runtime - part < -BEYOND_TOTAL * runtime
            if short.any():
                row = int(np.argmax(short))
                raise PredictorError(
                    f"row {row}: a part of {part[row]:g} s exceeds the runtime {runtime[row]:g} s"
                )
            rest = np.maximum(runtime - part, 0.0)
            known = {name: known.get(name, rest) for name in names}
        for name, part in zip(SPLITS["max"], known.values(), strict=False):
            if (part < 0.0).any():
                row = int(np.argmax(part < 0.0))
                raise PredictorError(f"{name} in row {row} is {part[row]:g}: expected at least 0")
        if known:
            splits[way] = known[names[0]], known[names[1]]
    return splits, incomplete


def runs_from_frame(observations: pd.DataFrame, inputs: tuple[str, ...]) -> TrainingRuns:
    """Read a table of observations, a row a run.

    Its columns are ``nprocs``, ``runtime``, the inputs (the default, ``("size",)``, where the
    table has it), and split times where known.
    """
    needed = ["nprocs", "runtime"]
    if inputs != OPTIONAL_INPUT:
        needed += inputs
    missing = [name for name in needed if name not in observations]
    if missing:
        raise PredictorError(
            f"observations lack the columns {missing}; they have {list(observations.columns)}"
        )
    present = tuple(name for name in inputs if name in observations)
    if inputs == OPTIONAL_INPUT and present and observations["size"].isna().all():
        present = ()
    checked_column("runtime", observations["runtime"].to_numpy(dtype=np.float64))
    observations, dropped = _without_errant(observations, ["nprocs", *present])
    runtime = observations["runtime"].to_numpy(dtype=np.float64)
    splits, incomplete = _frame_splits(observations, runtime)
    unread = [str(n) for n in observations.columns if n not in (*KNOWN_COLUMNS, *inputs)]
    runs = runs_from_arrays(
        present,
        observations["nprocs"].to_numpy(dtype=np.float64),
        runtime,
        [observations[name].to_numpy(dtype=np.float64) for name in present],
        splits,
        tuple(unread + incomplete),
    )
    return replace(runs, dropped=dropped)


def _without_errant(
    frame: pd.DataFrame, alike: list[str]
) -> tuple[pd.DataFrame, tuple[tuple[float, float], ...]]:
    """Leave out obvious outliers among three or more runs alike (GARREN section 4.1)."""
    if not frame.duplicated(alike).any():
        return frame, ()
    kept, dropped = np.ones(len(frame), dtype=bool), []
    seconds, counts = frame["runtime"].to_numpy(float), frame["nprocs"].to_numpy(float)
    for places in frame.groupby(alike, sort=False).indices.values():
        errant = set(dropped_of(seconds[places]))
        for place in (int(one) for one in places if seconds[one] in errant):
            kept[place] = False
            dropped.append((float(counts[place]), float(seconds[place])))
    return frame[kept], tuple(dropped)


def without_constants(runs: TrainingRuns) -> TrainingRuns:
    """Set apart inputs that have become constant in a subset of runs."""
    named = dict(zip(runs.inputs, runs.known[1:], strict=True))
    still = {name: float(2.0 ** row[0]) for name, row in named.items() if (row == row[0]).all()}
    if not still:
        return runs
    moving = {name: row for name, row in named.items() if name not in still}
    known = np.array([runs.known[0], *moving.values()])
    return replace(runs, known=known, inputs=(*moving,), constants={**runs.constants, **still})


def target_rows(
    wanted: tuple[str, ...],
    constants: Mapping[str, float],
    nprocs: ArrayLike | pd.DataFrame,
    inputs: Mapping[str, ArrayLike],
) -> tuple[FloatArray, tuple[int, ...]]:
    """Return log2 counts and inputs in the order `wanted`, and the shape to answer in.

    Inputs missing or unknown, shapes that do not match, and values that are not finite and
    positive (a count: at least 1) are refused.
    """
    nprocs, inputs = asked_of(nprocs, inputs, (*wanted, *constants))
    missing = [name for name in wanted if name not in inputs]
    unknown = [name for name in inputs if name not in wanted and name not in constants]
    if missing or unknown:
        raise PredictorError(
            f"inputs of this model are {list(wanted)} (with nprocs): "
            f"missing {missing}, unknown {unknown}"
        )
    values = [np.asarray(nprocs, dtype=np.float64)]
    values += [np.asarray(inputs[name], dtype=np.float64) for name in wanted]
    try:
        values = list(np.broadcast_arrays(*values))
    except ValueError as error:
        shapes = [value.shape for value in values]
        raise PredictorError(f"nprocs and inputs of shapes {shapes} do not match") from error
    for name, value in zip(("nprocs", *wanted), values, strict=True):
        good = (value >= 1.0 if name == "nprocs" else value > 0.0) & (value < np.inf)
        if not good.all():
            least = "of at least 1" if name == "nprocs" else "above 0"
            raise PredictorError(
                f"{name}: expected finite values {least}, got {value[~good].flat[0]:g}"
            )
    return np.array([np.log2(value.ravel()) for value in values]), values[0].shape


class InputEstimator(RuntimeEstimator):
    """Answer for processor counts and inputs; subclasses fit and bring the model.

    Targets are a table of log2 counts and inputs, shape (1 + k, t). With inputs that vary the
    model is the answer, without them answers keep to what was measured.
    """

    inputs: Sequence[str]

    def check_parameters(self) -> None:
        """Refuse names of inputs that cannot be; see `Estimator`."""
        inputs = self.inputs
        if isinstance(inputs, str):
            raise PredictorError(f"inputs must be a sequence of names, got the string {inputs!r}")
        names = tuple(str(name) for name in inputs)
        if len(set(names)) != len(names) or {"nprocs", "runtime"} & set(names):
            raise PredictorError(
                f"inputs must be distinct names other than nprocs and runtime: {names}"
            )

    def _fit_table(self, table: pd.DataFrame) -> Self:
        return self._fit_given(runs_from_frame(table, tuple(self.inputs)))

    def fit_arrays(
        self, nprocs: ArrayLike, runtime: ArrayLike, inputs: Sequence[ArrayLike] = ()
    ) -> Self:
        """Fit to arrays: the fast entry, without a table or condition.

        Parameters
        ----------
        nprocs, runtime : array_like, shape (rows,)
        inputs : sequence of array_like, each of shape (rows,)
            One for each name in ``inputs``, or none.
        """
        self.check_parameters()
        names = self.inputs if len(inputs) else ()
        return self._fit_given(runs_from_arrays(names, nprocs, runtime, inputs))

    @abstractmethod
    def _fit_given(self, runs: TrainingRuns) -> Self:
        """Fit to all runs that were given."""

    def _counts(self, rows: FloatArray) -> FloatArray:
        return counts_of(rows[0])

    def _at(self, counts: FloatArray) -> FloatArray:
        return np.log2(counts)[None]
