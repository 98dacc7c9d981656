"""The consensus in the loop: each method weighs by its past errors, here and elsewhere."""

import numpy as np

from predictors.base import IntArray, Observation, VisibleJobs
from predictors.consensus.combination import Consensus, ErrorMemory
from predictors.in_loop.learned import CurveModel, CurvePerApplication, History
from predictors.in_loop.per_application import or_unit


class RememberingHistory(History):
    """The runs of one application, and the consensus fitted to them, which knows past errors.

    Parameters
    ----------
    model : Consensus
        It is copied, never fitted itself.
    tolerance : float
        How far the mean at a count may move, relatively, before a new fit.
    memory : ErrorMemory
        Of all applications.
    """

    def __init__(self, model: Consensus, tolerance: float, memory: ErrorMemory) -> None:
        super().__init__(model, tolerance)
        self._memory = memory

    def add(self, run: Observation) -> bool:
        """Add a run, and the errors of the standing fit, which has not seen it."""
        self._application = run.application
        if isinstance(self._model, Consensus):
            self._model.record(run.nprocs, run.runtime / or_unit(run.size))
        return super().add(run)

    def _judged_with(self, nprocs: int) -> IntArray:
        """Return the count alone: the others are judged by what is remembered when asked."""
        return np.array([nprocs])

    def _fit(self, model: CurveModel) -> None:
        assert isinstance(model, Consensus)
        model.memory, model.application = self._memory, self._application
        super()._fit(model)


class ConsensusPerApplication(CurvePerApplication):
    """Learn one consensus per application, and how far its methods have been off.

    Before a finished run joins the runs of its application, every method of the
    standing fit is compared with it. Weights follow these errors (`ErrorMemory` in
    `predictors.consensus.combination`), those of other applications counting where there
    are few of this one's.

    Parameters
    ----------
    model : Consensus
    method, calibration, charge, min_counts, tolerance, scatter, most_error
        As `CurvePerApplication` has them.
    memory : bool
        Whether past errors count.

    Examples
    --------
    >>> import numpy as np
    >>> predictor = ConsensusPerApplication(Consensus(), "consensus")
    >>> nothing, zero = np.array([np.nan]), np.array([0])
    >>> predictor.attach(VisibleJobs(zero, zero - 1, nothing, zero, zero + 4, nothing))
    >>> for n, t in ((1, 100.0), (2, 51.0), (4, 26.5)):
    ...     changed = predictor.observe(Observation(0, -1, np.nan, n, t, 0.0))
    >>> bool(12.5 < predictor.curve(0, np.array([8]))[0] < 15.0)
    True
    """

    def __init__(
        self,
        model: Consensus,
        method: str,
        calibration: int | None = None,
        charge: bool = True,
        min_counts: int = 1,
        tolerance: float = 0.02,
        scatter: float = 0.5,
        memory: bool = True,
        most_error: float | None = 0.7,
    ) -> None:
        rest = min_counts, tolerance, scatter, most_error
        super().__init__(model, method, calibration, charge, *rest)
        self.memory, self._consensus = memory, model

    def attach(self, jobs: VisibleJobs) -> None:
        """Begin a run with these jobs; forget all observations and errors."""
        self.errors_ = ErrorMemory()
        super().attach(jobs)

    def _begin(self, run: Observation) -> History:
        if not self.memory:
            return super()._begin(run)
        return RememberingHistory(self._consensus, self.tolerance, self.errors_)
