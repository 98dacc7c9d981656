"""Which columns a rational polynomial has."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from predictors.base import FloatArray
from predictors.complexity import Term
from predictors.load_observations import LoadedRuns, Targets

GROWTHS: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "1/n": lambda nprocs: 1.0 / nprocs,
    "1": np.ones_like,
    "log2 n": np.log2,
    "n": lambda nprocs: nprocs + 0.0,
}
"""How communication may grow with the processor count n."""


@dataclass(frozen=True)
class RationalForm:
    """Which columns a rational polynomial has.

    The runtime of size z on n processors is
    init(z) + computation(z) / (n · cpu) + communication(z) · growth(n) / bandwidth;
    with a single count in the data n is left out, as in the paper.

    Attributes
    ----------
    init, computation, communication : tuple of Term
        The largest term first.
    growth : str or None
        Key of `GROWTHS`; None where the processor count plays no part.
    largest : float
        The largest size seen, to which terms are scaled.
    """

    init: tuple[Term, ...]
    computation: tuple[Term, ...]
    communication: tuple[Term, ...]
    growth: str | None
    largest: float

    def __len__(self) -> int:
        return len(self.init) + len(self.computation) + len(self.communication)

    def longest(self) -> int:
        """Return the largest number of terms in a part."""
        return max(len(self.init), len(self.computation), len(self.communication))

    def columns(self, runs: LoadedRuns | Targets) -> FloatArray:
        """Return the design matrix, shape (rows, coefficients)."""
        share, exchange = np.ones_like(runs.nprocs), np.ones_like(runs.nprocs)
        if self.growth is not None:
            share, exchange = 1.0 / runs.nprocs, GROWTHS[self.growth](runs.nprocs)
        parts = (
            (self.init, np.ones_like(runs.nprocs)),
            (self.computation, share / runs.cpu),
            (self.communication, exchange / runs.bandwidth),
        )
        return np.column_stack(
            [self._scaled(term, runs.size) * factor for terms, factor in parts for term in terms]
        )

    def _scaled(self, term: Term, size: FloatArray) -> FloatArray:
        reference = term.values(np.array([self.largest]))[0]
        return term.values(size) / (reference if reference > 0 else 1.0)

    def leading(self) -> "RationalForm":
        """Return the form with the leading terms alone, and its constant if it has one."""
        constant = Term(0.0)
        init = self.init[:1]
        if constant in self.init[1:]:
            init = (*init, constant)
        return RationalForm(
            init, self.computation[:1], self.communication[:1], self.growth, self.largest
        )

    def names(self) -> list[tuple[str, str]]:
        """Return the part and the term of each column."""
        parts = ("init", "computation", "communication")
        return [(part, str(term)) for part in parts for term in getattr(self, part)]
