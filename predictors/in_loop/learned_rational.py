"""The rational polynomial in the loop: one per application, from runs under measured load."""

from collections.abc import Callable, Mapping
from copy import copy
from math import isnan, nan
from typing import Any

import numpy as np

from predictors.base import FloatArray, IntArray, Observation
from predictors.errors import AT_LEAST_0, AT_LEAST_1, PredictorError
from predictors.in_loop.per_application import PerApplication, or_unit
from predictors.in_loop.residuals import MeasuredCounts
from predictors.least_squares import Method, Weights
from predictors.under_load.load_aware import ExpectedLoad, LoadedRuns, LoadForm, Parts
from predictors.under_load.rational import RationalPolynomial

LEAST_SHARE = 1e-3
MEASURED = {"effective": "effective_{}", "min_avail": "available_{}_at_start"}
PARTS = ("init", "computation", "communication")


def checked_applications(
    applications: Mapping[int, Mapping[str, Any]] | None,
) -> dict[int, dict[str, Any]]:
    """Return the complexities of single applications as plain data.

    Raises
    ------
    PredictorError
        If an application is not a whole number from 0 on, or a part is unknown.
    """
    found: dict[int, dict[str, Any]] = {}
    for application, own in (applications or {}).items():
        if type(application) is not int or application < 0:
            raise PredictorError(
                f"applications must be named by whole numbers from 0 on, got {application!r}"
            )
        if not isinstance(own, Mapping) or not own or set(own) - set(PARTS):
            raise PredictorError(
                f"applications, {application}: must give complexities for some of "
                f"{', '.join(PARTS)}, got {own!r}"
            )
        found[application] = {str(part): terms for part, terms in own.items()}
    return found


def measured_load(more: Mapping[str, Any], form: LoadForm) -> tuple[float, float]:
    """Return a run's available CPU and bandwidth; 1, an idle machine, where nobody measured."""
    name = MEASURED.get(form, "available_{}")
    cpu, bandwidth = (
        float(more.get(name.format(kind), more.get(f"available_{kind}", 1.0)))
        for kind in ("cpu", "bandwidth")
    )
    return cpu, bandwidth


class LoadedHistory:
    """The runs of one application, and the polynomial fitted to them.

    What is believed is the polynomial as the runs correct it at and between their
    counts, each brought to the size and the load that are asked about; see
    `predictors.in_loop.residuals`.

    Parameters
    ----------
    model : RationalPolynomial
        Its settings; it is copied, never fitted itself.
    keep : int
        How many of the latest runs are kept.
    growth : float
        By which share the number of runs grows before a new fit.
    under_load : callable
        Seconds of a job's parts at some counts under the load that is believed to come.
    """

    def __init__(
        self,
        model: RationalPolynomial,
        keep: int,
        growth: float,
        under_load: Callable[[Parts, IntArray], FloatArray],
    ) -> None:
        self._prototype = model
        self._under_load = under_load
        self._keep = keep
        self._growth = growth
        self._runs: list[tuple[float, ...]] = []
        self._fitted_at = 0
        self._least = 0.0
        self._model: RationalPolynomial | None = None
        self._measured = MeasuredCounts()
        self._new: list[tuple[float, ...]] = []
        self.number = 0
        self.counts: set[int] = set()

    def add(self, run: Observation) -> bool:
        """Add a run; True if it is time for a new fit. One that took no time tells nothing."""
        if not run.runtime > 0.0:
            return False
        self.number += 1
        self.counts.add(run.nprocs)
        load = measured_load(run.more, self._prototype.load)
        samples = run.more.get("load_samples", 0.0)
        row = (float(run.nprocs), run.runtime, or_unit(run.size), *load, samples)
        self._new.append(row)
        self._runs.append(row)
        del self._runs[: -self._keep]
        if self.number < self._fitted_at * (1.0 + self._growth):
            return False
        self._model = None
        return True

    def model(self) -> RationalPolynomial:
        """Return the fitted polynomial; fit first if need be."""
        if self._model is None:
            self._model = copy(self._prototype).fit_runs(_as_arrays(self._runs))
            self._fitted_at = self.number
            self._least = LEAST_SHARE * float(self._model.runs_.runtime.min())
            self._measured.fill(self._model.runs_.nprocs, self._ratios(self._model.runs_))
            self._new.clear()
        return self._model

    def parts(self, counts: IntArray, size: float) -> Parts:
        """Return the parts of a job of that size at each count, as the runs correct them."""
        measured, number = self._compared(), counts.size
        plain = self._plain_parts(np.concatenate((counts, measured.known)), size)
        idle = plain.fixed + plain.computation + plain.communication
        own = Parts(*(part[:number] for part in plain))
        return own.scaled(measured.corrected(idle[:number], counts, idle[number:]) / idle[:number])

    def believe(self, counts: IntArray, size: float) -> FloatArray:
        """Return the believed runtimes of a job of that size at each count."""
        return self._under_load(self.parts(counts, or_unit(size)), counts)

    def kept_at(self, nprocs: int, size: float) -> tuple[int, float]:
        """Return how many runs are kept at a count, and their mean, brought to size and load."""
        count, compared = np.array([nprocs]), self._compared()
        runs, mean = compared.kept_at(nprocs)
        parts = self._plain_parts(count, or_unit(size)).scaled(np.array([mean]))
        return runs, self._under_load(parts, count).item() if runs else nan

    def grade(self, nprocs: int, size: float) -> tuple[str, str]:
        """Return how a belief about a count is graded, and the code of why."""
        inside = min(self.counts) <= nprocs <= max(self.counts)
        return ("", "") if inside else ("warning", "outside")

    def _plain_parts(self, counts: IntArray, size: float | FloatArray) -> Parts:
        fixed, computation, communication = self.model().parts_at(counts.astype(float), size)
        total = fixed + computation + communication
        return Parts(fixed + np.maximum(self._least - total, 0.0), computation, communication)

    def _compared(self) -> MeasuredCounts:
        """Return the ratios of all runs to the standing fit."""
        self.model()
        if self._new:
            ratios = self._ratios(_as_arrays(self._new))
            for run, ratio in zip(self._new, ratios.tolist(), strict=True):
                self._measured.add(int(run[0]), ratio)
            self._new.clear()
        return self._measured

    def _ratios(self, runs: LoadedRuns) -> FloatArray:
        """Return what runs took over what the polynomial says of them, under their own load."""
        parts = self._plain_parts(runs.nprocs.astype(np.int64), runs.size)
        seconds = parts.under(runs.cpu, runs.bandwidth)
        return np.asarray(runs.runtime / np.maximum(seconds, self._least))


def _as_arrays(rows: list[tuple[float, ...]]) -> LoadedRuns:
    nprocs, runtime, size, cpu, bandwidth, samples = np.array(rows).T.copy()
    return LoadedRuns(
        nprocs, runtime, size, cpu, bandwidth, np.ones(len(cpu)), samples.astype(np.int64)
    )


class RationalPerApplication(PerApplication[LoadedHistory]):
    """Learn a rational polynomial per application from runs and the load measured in them.

    It predicts under the load that is believed to come. Runs without a measured
    load were on a machine without any. Where sizes are hidden, there is one
    model a size class, or one for all runs of the application.

    Parameters
    ----------
    init, computation, communication : int, str or list
        Complexities in the size, see `RationalPolynomial`. By default every part
        is proportional to it: a constant that rests on a few runs of like size
        is worth nothing, and costs most where a job is short.
    fit : {"nnls", "ols"}
        Non-negative or plain least squares.
    weights : {"absolute", "relative"}
    load : {"effective", "min_avg_avail", "min_avail"}
        Which of the measured figures of load is used: the average over the run
        of the least at each sample, the least average over the run (the paper's),
        or the least value at its start.
    growth : {"auto", "1/n", "1", "log2 n", "n"}
        How communication grows with the processor count.
    calibration, charge, most_error
        As `PerApplication` has them.
    min_counts : int
        Distinct counts that must have been seen before there is a prediction.
    keep : int
        How many runs an application's model rests on at most.
    refit : float
        By which share the runs of an application grow before a new fit.
    applications : mapping of int to mapping, optional
        Complexities of single applications, by number, where they differ: any of
        `init`, `computation` and `communication`.

    Examples
    --------
    >>> from predictors.base import VisibleJobs
    >>> predictor = RationalPerApplication(0, 0, 0, growth="1", min_counts=1)
    >>> nothing, zero = np.array([np.nan]), np.array([0])
    >>> predictor.attach(VisibleJobs(zero, zero - 1, nothing, zero, zero + 4, nothing))
    >>> for cpu in (1.0, 0.8, 0.6, 0.5, 0.4, 0.2):
    ...     load = {"available_cpu": cpu, "available_bandwidth": 1.0}
    ...     seen = Observation(0, -1, np.nan, 4, 5 + 60 / cpu, 0.0, 0, load)
    ...     changed = predictor.observe(seen)
    >>> float(predictor.parts(0, np.array([4])).computation[0].round(6))
    60.0
    >>> float(predictor.curve(0, np.array([4]))[0].round(6))
    65.0
    """

    def __init__(
        self,
        init: Any = ("n",),
        computation: Any = ("n",),
        communication: Any = ("n",),
        fit: Method = "nnls",
        weights: Weights = "relative",
        load: LoadForm = "effective",
        growth: str = "auto",
        calibration: int | None = None,
        charge: bool = True,
        min_counts: int = 3,
        keep: int = 100,
        refit: float = 0.2,
        applications: Mapping[int, Mapping[str, Any]] | None = None,
        most_error: float | None = 0.7,
    ) -> None:
        super().__init__("rational", calibration, charge, most_error)
        AT_LEAST_1.check(min_counts=min_counts, keep=keep)
        AT_LEAST_0.check(refit=refit)
        options: dict[str, Any] = {
            "method": fit,
            "weights": weights,
            "load": load,
            "growth": growth,
        }
        usual = dict(zip(PARTS, (init, computation, communication), strict=True))
        self._known = RationalPolynomial(**usual, **options)
        self._own = {
            application: RationalPolynomial(**{**usual, **own}, **options)
            for application, own in checked_applications(applications).items()
        }
        self._unsized = RationalPolynomial(0, 0, 0, **options)
        for model in (self._known, *self._own.values()):
            model.check_parameters()
        self.min_counts = min_counts
        self.keep = keep
        self.refit = refit
        self.load_form = load
        self._expected: ExpectedLoad | None = None

    def bind_load(self, load: ExpectedLoad) -> None:
        """Take the handle on what is believed of the load."""
        self._expected = load

    def _begin(self, run: Observation) -> LoadedHistory:
        usual = self._own.get(run.application, self._known)
        model = self._unsized if isnan(run.size) else usual
        return LoadedHistory(model, self.keep, self.refit, self._under_expected)

    def _suffices(self, history: LoadedHistory) -> bool:
        return len(history.counts) >= self.min_counts

    def parts(self, job: int, counts: IntArray) -> Parts | None:
        """Return the parts of a job at each count; None if too little was seen."""
        history = self._history(job)
        return None if history is None else history.parts(counts, or_unit(self._size(job)))

    def _under_expected(self, parts: Parts, counts: IntArray) -> FloatArray:
        expected = self._expected
        if expected is None:
            return parts.under(np.ones(len(counts)), np.ones(len(counts)))
        return expected.runtimes(counts, parts, self.load_form)
