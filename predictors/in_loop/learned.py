"""Learning in the loop: one fitted curve per application, from the runs seen so far."""

from collections.abc import Iterable
from copy import copy
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import BoolArray, Estimator, FloatArray, IntArray, Observation, Remark
from predictors.errors import AT_LEAST_0, AT_LEAST_1, POSITIVE
from predictors.in_loop.per_application import PerApplication, or_unit
from predictors.in_loop.residuals import NEW_COUNT, MeasuredCounts
from predictors.remarks import gravest


class CurveModel(Protocol):
    """A model of runtime over processor counts that takes arrays.

    One that takes merged runs, and grades counts for less than remarks on them cost, has two
    methods besides, as `predictors.Consensus` has them: `fit_kept` and `judgements`. One that
    knows which counts an application is made for says so by `feasible_`, see `predictors.Adept`.
    """

    def fit_arrays(self, nprocs: ArrayLike, runtime: ArrayLike) -> Self:
        """Learn from runs, an entry a run."""

    def predict_model(self, nprocs: ArrayLike) -> FloatArray:
        """Return the plain model's runtimes, finite and positive."""

    def reliability(self, nprocs: ArrayLike) -> list[Remark]:
        """Say how far to trust the predictions."""


class History:
    """The runs of one application (and size class), and the model fitted to them.

    All counts that were ever asked for are predicted, and graded, at once after a fit.
    What is believed is the model's answer as the runs kept correct it, those that came
    after the fit among them; see `predictors.in_loop.residuals`.

    Parameters
    ----------
    model : CurveModel
        It is copied, never fitted itself.
    tolerance : float
        How far the mean at a count may move, relatively, before a new fit.
    """

    def __init__(self, model: CurveModel, tolerance: float) -> None:
        self._own: Any = copy(model)
        self._is_fast = hasattr(model, "fit_kept") and hasattr(model, "judgements")
        self._tolerance = tolerance
        self._model: Any = None
        self._asked: set[int] = set()
        self._targets = np.zeros(0, np.int64)
        self._predicted = np.zeros(0)
        self.measured = MeasuredCounts()
        self._judged: dict[int, tuple[str, str]] = {}
        self._wanted: dict[int, int | None] = {}
        self._family: Any = None
        self.number = 0

    def add(self, run: Observation) -> bool:
        """Add a run; True if what was last predicted no longer stands.

        One that took no time tells nothing.
        """
        nprocs, runtime = run.nprocs, run.runtime / or_unit(run.size)
        if not runtime > 0.0:
            return False
        self.number += 1
        moved = self.measured.add(nprocs, runtime, self._tolerance)
        if not moved:
            return False
        self._asked.add(nprocs)
        was_asked = self._model is not None
        self._model = None
        return moved == NEW_COUNT or was_asked

    def believe(self, counts: IntArray, size: float) -> FloatArray:
        """Return the believed runtimes of a job of that size at each count; fit if need be."""
        model = self._fitted()
        values = self.measured.believed(self._predicted, counts)
        if not values.size:
            targets = self._with(counts.tolist())
            self._note(targets, model.predict_model(targets))
            values = self.measured.believed(self._predicted, counts)
        return values * or_unit(size)

    def _with(self, counts: Iterable[int]) -> IntArray:
        """Return what to ask the model about: these counts, the measured ones, and all before."""
        self._asked.update(counts)
        if len(self._asked) > self._targets.size:
            self._targets = np.array(sorted(self._asked))
        return self._targets

    def _note(self, targets: IntArray, seconds: FloatArray) -> None:
        """Write down what the model says of all counts asked so far, and compare the runs."""
        if targets[-1] >= self._predicted.size:
            self._predicted = np.full(2 * targets.item(-1) + 1, np.nan)
        self._predicted[targets] = seconds
        self.measured.compare(self._predicted)

    def kept_at(self, nprocs: int, size: float) -> tuple[int, float]:
        """Return how many runs are kept at a count, and their mean, brought to that size."""
        runs, mean = self.measured.kept_at(nprocs)
        return runs, mean * or_unit(size)

    def grade(self, nprocs: int, size: float) -> tuple[str, str]:
        """Return the grade and the gravest remark's code; each count is judged once a fit.

        What is said of a count holds for any size.
        """
        found = self._judged.get(nprocs)
        if found is None:
            model = self._fitted()
            if not self._is_fast:
                self._judged[nprocs] = gravest(model.reliability(np.array([nprocs])))
            else:
                targets = self._judged_with(nprocs)
                self._judged.update(zip(targets.tolist(), model.judgements(targets), strict=True))
            found = self._judged[nprocs]
        return found

    def _judged_with(self, nprocs: int) -> IntArray:
        """Return the counts to judge with one: all asked for so far."""
        return self._with((nprocs,))

    def wanted(self, nprocs: int) -> int | None:
        """Return the count that the model would have measured next; None if it is content."""
        if nprocs not in self._wanted:
            remarks = self._fitted().reliability(np.array([nprocs]))
            self._wanted[nprocs] = next((r.measure_at for r in remarks if r.measure_at), None)
        return self._wanted[nprocs]

    def offered(self, counts: IntArray) -> BoolArray | None:
        """Return which counts the application is made for; None if nothing is known of that."""
        self._fitted()
        return None if self._family is None else self._family.holds(counts)

    def _fitted(self) -> Any:
        if self._model is None:
            self._predicted.fill(np.nan)
            self._judged = {}
            self._wanted.clear()
            self._fit(self._own)
            self._model = model = self._own
            family = getattr(model, "feasible_", None)
            self._family = family if family is not None and family.restricts else None
            self.measured.note_fit()
        return self._model

    def _fit(self, model: Any) -> None:
        """Fit; a fast model is asked in the same call, others when somebody asks."""
        if not self._is_fast:
            model.fit_arrays(*self.measured.runs)
            return
        targets = self._with(())
        self._note(targets, model.fit_kept(*self.measured.kept, targets))


class CurvePerApplication(PerApplication[History]):
    """Learn one curve per application from finished runs, and predict with it.

    Where sizes are known, runs are pooled as runtime / size. Where they are
    hidden, there is a curve per size class, or, without classes, one for all
    runs of the application. A curve is fitted anew when a new count appears or
    a count's mean has moved by more than `tolerance`, and not before somebody
    asks for it. Of each count the last 16 runs are kept; every one of them
    corrects the curve at its count and between counts (`predictors.in_loop.residuals`).

    Parameters
    ----------
    model : CurveModel
        Such as `predictors.Adept`.
    method, calibration, charge, most_error
        As `PerApplication` has them.
    min_counts : int
        Distinct counts that must have been seen before there is a prediction.
    tolerance : float
    scatter : float
        Standard deviation of ln runtime between runs at one count, above 0, beyond which
        runs say nothing of the next one: there is no curve then, as with too few counts.

    Examples
    --------
    >>> from predictors.base import VisibleJobs
    >>> from predictors.curves.laws import Amdahl
    >>> predictor = CurvePerApplication(Amdahl(), "amdahl", min_counts=2)
    >>> nothing = np.array([np.nan])
    >>> zero = np.array([0])
    >>> predictor.attach(VisibleJobs(zero, zero - 1, nothing, zero, zero + 4, nothing))
    >>> predictor.curve(0, np.array([4])) is None
    True
    >>> for n, t in ((1, 110.0), (4, 35.0)):
    ...     changed = predictor.observe(Observation(0, -1, np.nan, n, t, 0.0))
    >>> predictor.curve(0, np.array([1, 2, 4])).round(6).tolist()
    [110.0, 60.0, 35.0]
    """

    def __init__(
        self,
        model: CurveModel,
        method: str,
        calibration: int | None = None,
        charge: bool = True,
        min_counts: int = 3,
        tolerance: float = 0.02,
        scatter: float = 0.5,
        most_error: float | None = 0.7,
    ) -> None:
        super().__init__(method, calibration, charge, most_error)
        AT_LEAST_1.check(min_counts=min_counts)
        AT_LEAST_0.check(tolerance=tolerance)
        POSITIVE.check(scatter=scatter)
        if isinstance(model, Estimator):
            model.check_parameters()
        self.model = model
        self.min_counts = min_counts
        self.tolerance = tolerance
        self.scatter = scatter

    def _begin(self, run: Observation) -> History:
        return History(self.model, self.tolerance)

    def _suffices(self, history: History) -> bool:
        measured = history.measured
        return measured.counts >= self.min_counts and measured.scatter <= self.scatter

    def offered(self, job: int, counts: IntArray) -> BoolArray | None:
        """Return which counts the job's application is made for; None if all are alike."""
        history = self._history(job)
        return None if history is None else history.offered(counts)

    def wanted(self, job: int, nprocs: int) -> int | None:
        """Return the count that should be measured next to predict better at a count.

        None where the model is content or knows nothing yet.
        """
        history = self._history(job)
        return None if history is None else history.wanted(nprocs)
