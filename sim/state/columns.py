"""Tables: of rows of unlike length, of runtimes by count, and such as grow as a run goes on."""

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.base import Explanation, FloatArray, IntArray, RuntimePredictor
from predictors.compiling import compiled
from workloads.base import Tabled


def padded(rows: list[FloatArray]) -> FloatArray:
    """Return rows of unlike length as one table, with -1 behind the end of each."""
    table = np.full((len(rows), max((row.size for row in rows), default=0)), -1.0)
    for row, own in zip(table, rows, strict=True) if table.size > 0 else ():
        row[: own.size] = own
    return table


def by_job(runtimes: dict[int, FloatArray], jobs: int) -> Tabled:
    """Return runtimes by count, from no processors on, of some jobs out of so many."""
    row, ones = np.full(jobs, -1), np.ones(jobs)
    row[[*runtimes]] = np.arange(len(runtimes))
    return Tabled(padded([*runtimes.values()]), row, ones, ones)


@compiled
def runtime_on(by_count: Tabled, job: int, processors: int) -> float:
    """Return the runtime of a job on a count, seconds."""
    scale = by_count.g[by_count.row[job], processors] / by_count.reference_g[job]
    return float(by_count.runtimes[job] * scale)


class Columns:
    """A table that grows by rows and keeps numbers alone.

    Parameters
    ----------
    kinds : str
        The type code of each column, as `array.array` has them.
    """

    def __init__(self, kinds: str) -> None:
        self._kinds, self._values = kinds, array("d")

    def add(self, *row: float) -> int:
        """Add a row and return its number; whole numbers are less than 2^53."""
        values = self._values
        number = len(values) // len(row)
        values.extend(row)
        return number

    def item(self, row: int, column: int) -> float:
        """Return a number."""
        return self._values[row * len(self._kinds) + column]

    def arrays(self) -> list[NDArray[Any]]:
        """Return the columns."""
        table = np.array(self._values).reshape(-1, len(self._kinds))
        return [table[:, k].astype(kind) for k, kind in enumerate(self._kinds)]


class Explanations:
    """What beliefs rest on, a row a run in the order of the starts, or one for all runs."""

    def __init__(self) -> None:
        self._methods: list[str] = []
        self._grades: list[str] = []
        self._numbers = Columns("qqd")

    def add(self, found: Explanation) -> None:
        """Add what the next run's belief rests on."""
        self._methods.append(found.method)
        self._grades.append(found.reliability)
        self._numbers.add(found.observations, found.runs_at_count, found.mean_at_count)

    def columns(
        self, job: IntArray, nprocs: IntArray, predictor: RuntimePredictor | None = None
    ) -> dict[str, Any]:
        """Return them as columns of consultations with an entry a run; ask once if nobody did."""
        if predictor is not None and not self._methods:
            self.add(predictor.explain(job.item(0), nprocs.item(0)))
        names = "observations", "runs_at_count", "mean_at_count"
        found = dict(zip(names, self._numbers.arrays(), strict=True))
        found["method"] = np.array(self._methods, object)
        found["reliability"] = np.array(self._grades, object)
        return {name: np.broadcast_to(one, job.size) for name, one in found.items()}
