"""A table whose columns are worked out where and for the rows that somebody looks at."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictors.base import IntArray

Rows = slice | IntArray
"""Which rows of a table: a slice, or their numbers."""
EVERY = slice(None)
GROUP_ROWS = 65_536
"""Rows of a row group of Parquet."""


class Columns:
    """A table by column, each worked out when it is looked at, and not kept.

    It is looked at as a data frame is: by a column's name, or by which rows are to
    stay.

    Parameters
    ----------
    rows : int
    columns : mapping of str to callable
        Returns the values of a column on the rows that it is handed.
    order : numpy.ndarray of int, optional
        Row numbers, where not all rows or not in their own order.

    Examples
    --------
    >>> numbers = np.arange(4)
    >>> table = Columns(4, {"number": lambda rows: numbers[rows]})
    >>> table[np.array([True, False, False, True])]["number"].tolist()
    [0, 3]
    >>> [len(piece) for piece in table.pieces(3)]
    [3, 1]
    """

    def __init__(
        self,
        rows: int,
        columns: Mapping[str, Callable[[Rows], Any]],
        order: IntArray | None = None,
    ) -> None:
        self._rows, self._columns, self._order = rows, columns, order

    @classmethod
    def of(cls, frame: pd.DataFrame) -> "Columns":
        """Return a data frame as such a table."""
        values = {str(name): frame[name].array for name in frame.columns}
        return cls(len(frame), {name: array.__getitem__ for name, array in values.items()})

    def __len__(self) -> int:
        return self._rows if self._order is None else len(self._order)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    @overload
    def __getitem__(self, key: str) -> "pd.Series[Any]": ...
    @overload
    def __getitem__(self, key: "NDArray[np.bool_] | pd.Series[bool]") -> "Columns": ...
    def __getitem__(
        self, key: "str | NDArray[np.bool_] | pd.Series[bool]"
    ) -> "pd.Series[Any] | Columns":
        if isinstance(key, str):
            rows = EVERY if self._order is None else self._order
            return pd.Series(self._columns[key](rows), copy=False)
        kept = np.flatnonzero(np.asarray(key))
        if kept.size == len(self):
            return self
        order = kept if self._order is None else self._order[kept]
        return Columns(self._rows, self._columns, order)

    def frame(self) -> pd.DataFrame:
        """Return all of it as a data frame."""
        return self._part(EVERY if self._order is None else self._order)

    def pieces(self, rows: int = GROUP_ROWS) -> Iterator[pd.DataFrame]:
        """Return it piece by piece, `rows` rows each and in the last what is left; at least one."""
        for first in range(0, max(len(self), 1), rows):
            here = slice(first, min(first + rows, len(self)))
            yield self._part(here if self._order is None else self._order[here])

    def _part(self, rows: Rows) -> pd.DataFrame:
        return pd.DataFrame({name: column(rows) for name, column in self._columns.items()})
