"""Learning in the loop with the problem size as an input: regressions per application."""

from copy import copy
from functools import partial
from math import isnan, log2

import numpy as np

from predictors.base import Explanation, FloatArray, IntArray, Observation, Remark, VisibleJobs
from predictors.errors import PredictorError
from predictors.focused import FocusedRegression
from predictors.loglog_remarks import is_far
from predictors.pools import Pools
from predictors.regression import LogLogRegression
from predictors.remarks import worse, worst_grade
from predictors.training_runs import TrainingRuns, runs_from_arrays

_KEPT_RUNS = 400
_FOCI = 4.0
"""Focal times are told apart by this many steps in a doubling."""

_SPREAD = 4.0
"""Sizes must differ by this factor before an exponent is fitted to them."""

Regression = LogLogRegression | FocusedRegression


def _seconds(model: Regression, counts: IntArray, inputs: dict[str, float]) -> FloatArray:
    """Return predictions at counts and inputs known to be good, without checking them again."""
    log_q = np.log2(counts)
    log_inputs = np.empty((len(log_q), len(model.model_.inputs)))
    for column, name in enumerate(model.model_.inputs):
        log_inputs[:, column] = log2(inputs[name])
    return model.model_.seconds(log_q, log_inputs)


def _remarks_inside(model: Regression) -> list[Remark]:
    """Return what is said of any target among the training runs."""
    runs = model.runs_
    middle = np.exp2(np.median(runs.log_inputs, axis=0)).tolist()
    first = np.exp2(runs.log_q[:1])
    return model.reliability(first, **dict(zip(runs.inputs, middle, strict=True)))


class SizedHistory:
    """The runs of one application with their sizes, and the regressions fitted to them.

    Parameters
    ----------
    model : LogLogRegression or FocusedRegression
        Where a fit begins; it is copied, never fitted itself.
    growth : float
        By which share the runs must have grown before a new fit.
    """

    def __init__(self, model: Regression, growth: float) -> None:
        self._prototype = model
        self._growth = growth
        self._rows: list[tuple[float, float, float, float, float]] = []
        self._counts: set[int] = set()
        self._fitted_at = 0
        self._runs: TrainingRuns | None = None
        self._sizes = (1.0, 1.0)
        self._by_proportion = False
        self._models: dict[int | None, Regression] = {}
        self._general: str | None = None
        self.number = 0

    def add(self, seen: Observation) -> bool:
        """Add a run; True if what was last predicted no longer stands."""
        parts = (seen.more.get(name, np.nan) for name in ("computation", "communication"))
        self._rows.append((seen.nprocs, seen.runtime, seen.size, *parts))
        del self._rows[:-_KEPT_RUNS]
        self.number += 1
        is_new = seen.nprocs not in self._counts
        self._counts.add(seen.nprocs)
        if not is_new and self.number < self._fitted_at * (1.0 + self._growth):
            return False
        was_asked = self._runs is not None
        self._runs = None
        return is_new or was_asked

    def predict(self, counts: IntArray, size: float, reference: int) -> FloatArray | None:
        """Return the runtimes of a job of that size at each count, None if nothing can be fitted.

        `reference` is the count at whose complete prediction a focused
        regression puts its focal time.
        """
        found = self.model(size, reference)
        if found is None:
            return None
        inputs, factor = self._inputs(size)
        return _seconds(found, counts, inputs) * factor

    @property
    def can_predict(self) -> bool:
        """Whether anything could be fitted."""
        try:
            return self._model(None) is not None
        except PredictorError:
            return False

    def model(self, size: float, reference: int) -> Regression | None:
        """Return what predicts a job, None if nothing can be fitted."""
        try:
            model = self._model(None)
            if isinstance(model, FocusedRegression):
                inputs, _ = self._inputs(size)
                centre = _seconds(model, np.array([reference]), inputs)
                model = self._model(round(log2(float(centre[0])) * _FOCI))
        except PredictorError:
            return None
        return model

    def grade(self, nprocs: int, size: float) -> str:
        """Return the worst grade of the remarks about a count at that size.

        What is said of the fit is found once; only the distance to the runs is
        a count's own.
        """
        model = self._model(None)
        if self._general is None:
            self._general = worst_grade(_remarks_inside(model))
        inputs, _ = self._inputs(size)
        log_inputs = [log2(inputs[name]) for name in model.model_.inputs]
        far = is_far(model.model_, log2(nprocs), log_inputs)
        return worse(self._general, "warning" if far else "")

    def _inputs(self, size: float) -> tuple[dict[str, float], float]:
        """Return the inputs to ask for, and the factor that is left to proportion."""
        if isnan(size):
            return {}, 1.0
        low, high = self._sizes
        if self._by_proportion:
            return {}, size
        inside = min(max(size, low), high)
        return {"size": inside}, size / inside

    def _model(self, focus: int | None) -> Regression:
        if self._runs is None:
            self._runs = self._training_runs()
            self._fitted_at = self.number
            self._models.clear()
            self._general = None
        if focus not in self._models:
            model = copy(self._prototype)
            if focus is not None and isinstance(model, FocusedRegression):
                model.focal_time = 2.0 ** (focus / _FOCI)
            self._models[focus] = model.fit_runs(self._runs)
        return self._models[focus]

    def _training_runs(self) -> TrainingRuns:
        nprocs, runtime, size, computation, communication = np.array(self._rows).T
        known = not np.isnan(size).any()
        self._sizes = (float(size.min()), float(size.max()))
        self._by_proportion = known and self._sizes[1] < _SPREAD * self._sizes[0]
        if self._by_proportion:
            runtime, computation, communication = (
                part / size for part in (runtime, computation, communication)
            )
        names = ("size",) if known and not self._by_proportion else ()
        split = {}
        if np.isfinite(computation).all() and (communication > 0).any():
            split = {"max": (computation, communication)}
        columns = [size] if names else []
        return runs_from_arrays(names, nprocs, runtime, columns, splits=split)


class RegressionPerApplication:
    """Learn one log-log regression per application, with the size where it is known.

    Where sizes are hidden there is one per size class, or, without classes, one
    for all runs of the application, on the processor count alone. With a
    focused regression, T0 is the complete fit's prediction at the job's size and
    reference count. A new fit is made when a new count appears or the runs have
    grown by a tenth, and not before somebody asks. The last 400 runs are kept.
    Where the sizes seen differ by less than a factor of 4, and beyond those seen,
    time is taken to be in proportion to the size.
    Where a regression cannot be fitted yet, the request stands.

    Parameters
    ----------
    model : LogLogRegression or FocusedRegression
    method : str
        Its name in ``predictions.parquet``.
    calibration : int
        Runs per application before the start; 0 learns online alone.
    charge : bool
        Whether calibration runs are submitted as jobs.
    growth : float
        By which share the runs must have grown before a new fit.

    Examples
    --------
    >>> predictor = RegressionPerApplication(LogLogRegression(), "regression")
    >>> zero, unknown = np.array([0]), np.array([np.nan])
    >>> predictor.attach(VisibleJobs(zero, zero - 1, unknown, zero, zero + 4, unknown))
    >>> for n in (1, 2, 4, 8):
    ...     changed = predictor.observe(Observation(0, -1, np.nan, n, 80.0 / n, 0.0))
    >>> predictor.curve(0, np.array([1, 16])).round(6).tolist()
    [80.0, 5.0]
    """

    learns = True
    wants_split = True

    def __init__(
        self,
        model: Regression,
        method: str,
        calibration: int = 3,
        charge: bool = False,
        growth: float = 0.1,
    ) -> None:
        if calibration < 0:
            raise PredictorError(f"calibration must be at least 0, got {calibration}")
        if not growth >= 0:
            raise PredictorError(f"growth must be at least 0, got {growth}")
        self.model = model
        self.method = method
        self.calibration = calibration
        self.charge = charge
        self.growth = growth
        self._pools = Pools(partial(SizedHistory, model, growth))

    def attach(self, jobs: VisibleJobs) -> None:
        """Begin a run with these jobs; forget all observations."""
        self._pools.attach(jobs)
        self._reference: list[int] = jobs.requested_processors.tolist()

    def observe(self, observation: Observation) -> bool:
        """Take in a finished run; True if beliefs about its application changed."""
        return self._pools.observed(observation).add(observation)

    def curve(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return the believed runtimes of a job at each count, None if too little was seen."""
        history = self._pools.of(job)
        if history is None:
            return None
        return history.predict(counts, self._pools.size[job], self._reference[job])

    def explain(self, job: int, nprocs: int) -> Explanation:
        """Say on how many runs a belief rests, and how the model grades it."""
        history = self._pools.of(job)
        size = self._pools.size[job]
        if history is None or not history.can_predict:
            return Explanation("requested_time", 0, "")
        return Explanation(self.method, history.number, history.grade(nprocs, size))
