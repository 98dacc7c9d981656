"""The formula of ScaLAPACK's authors for the runtime of their eigenvalue solver, under load."""

from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from benchmarks.load_comparators import floored
from predictors.base import FloatArray, Remark
from predictors.errors import BETWEEN_0_AND_1, NotFittedError, PredictorError
from predictors.least_squares import LinearFit, Method, Weights, check_method, fit_linear
from predictors.remarks import refuse_unusable
from predictors.under_load.load_aware import LoadedRuns, Targets, loaded_runs, targets

FLOPS = 22 / 3
"""Floating-point operations over n³: eigenvalues and eigenvectors of a symmetric matrix.

4/3 to make it tridiagonal, 6 for n² plane rotations of the n rows of the eigenvectors.
"""
WORDS = 5.0
"""Words that a processor sends, over n² log2(P) / √P."""
MESSAGES = (17 / 2, 2.0)
"""Messages that a processor sends, over n and over n / NB."""


class AnalyticalModel:
    """The parametrised analytical model of ScaLAPACK's symmetric eigenvalue solver (PDSYEV).

    A matrix of order n on P processors takes

        C_f n³/P · t_f/cpu + C_v n²/√P · t_v/bandwidth + C_m n/NB · t_m · latency

    with C_f = 22/3, C_v = 5 log2 P and C_m = 17/2 NB + 2 (no messages on one
    processor): the processors' speed is scaled down by the available CPU, the
    network's by the available bandwidth, and a message waits for the link of the
    largest latency, as Yagnik et al. put load into it.

    Parameters
    ----------
    times : tuple of float, optional
        Seconds of a floating-point operation, of a word sent and of a message's
        latency on an idle machine. None fits the three to the runs, each at least 0.
    block : int
        Order NB of the blocks in which the matrix is distributed.
    method : {"nnls", "ols"}
        How they are fitted.
    weights : {"absolute", "relative"}

    Attributes
    ----------
    times_ : numpy.ndarray, shape (3,)
        Given or fitted.

    References
    ----------
    Blackford et al., ScaLAPACK Users' Guide, 1997, section 5.3.3: equation 5.1 with the
    machine's times (table 5.5) and the driver's constants (table 5.8). Of the constants
    C_f was checked by counting, within the Guide's "1/3 to approximately 18" (section
    5.2.1); C_v and C_m are not confirmed, since public copies of the Guide show formula
    and tables as pictures without text. At a single processor count each cancels
    against its time, where that is fitted. Yagnik, Sanjay & Vadhiyar, section 2.2,
    name quantities and load (matrix order, processors, latency, bandwidth, speed),
    and print neither formula nor constants.

    Examples
    --------
    >>> runs = pd.DataFrame({"nprocs": [4.0], "size": 300.0, "runtime": 60.0,
    ...     "available_cpu": 1.0, "available_bandwidth": 1.0})
    >>> model = AnalyticalModel(times=(1e-6, 1e-5, 1e-3), block=50).fit(runs)
    >>> float(model.predict(4, size=300.0, available_cpu=0.5).round(3))  # 99 + 4.5 + 2.562
    106.062
    """

    def __init__(
        self,
        times: tuple[float, float, float] | None = None,
        block: int = 64,
        method: Method = "nnls",
        weights: Weights = "absolute",
    ) -> None:
        check_method(method, weights)
        if block < 1:
            raise PredictorError(f"block must be at least 1, got {block}")
        if times is not None and not (len(times) == 3 and all(0 <= t < np.inf for t in times)):
            raise PredictorError(f"times must be three seconds, each at least 0, got {times!r}")
        self.times = times
        self.block = block
        self.method = method
        self.weights = weights

    def _columns(self, at: LoadedRuns | Targets) -> FloatArray:
        """Return what the three times multiply, shape (rows, 3)."""
        P, n = at.nprocs, at.size
        words = WORDS * np.log2(P) * n**2 / np.sqrt(P)
        messages = (P > 1) * (MESSAGES[0] + MESSAGES[1] / self.block) * n
        return np.column_stack(
            (FLOPS * n**3 / P / at.cpu, words / at.bandwidth, messages * at.latency)
        )

    def fit(self, observations: pd.DataFrame) -> Self:
        """Learn from ``nprocs``, ``runtime``, ``size`` and load (``latency`` where there is one).

        ``latency`` is the largest of the links over that of an idle machine.
        """
        latency = "latency" in observations.columns
        self.runs_: LoadedRuns = loaded_runs(observations, "min_avg_avail", latency=latency)
        columns = self._columns(self.runs_)
        self.fit_: LinearFit = fit_linear(columns, self.runs_.runtime, self.method, self.weights)
        given = self.times is not None
        self.times_: FloatArray = np.array(self.times) if given else self.fit_.coefficients
        self._ratios = self.runs_.runtime / floored(columns @ self.times_, self.runs_)
        return self

    def _asked(self, nprocs: ArrayLike, inputs: dict[str, ArrayLike]) -> tuple[Targets, FloatArray]:
        if not hasattr(self, "times_"):
            raise NotFittedError("AnalyticalModel was asked before fit")
        wanted = targets(nprocs, inputs, latency=True)
        return wanted, self._columns(wanted)

    def predict(
        self, nprocs: ArrayLike, *, strict: bool = False, **inputs: ArrayLike
    ) -> FloatArray:
        """Return runtimes in seconds for ``size`` under the load and ``latency`` given."""
        wanted, columns = self._asked(nprocs, inputs)
        if strict:
            refuse_unusable(self.reliability(nprocs, **inputs))
        return floored(columns @ self.times_, self.runs_).reshape(wanted.shape)

    def predict_range(
        self, nprocs: ArrayLike, level: float = 0.8, **inputs: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return a range from the ratios of runtimes to the model's at the runs seen."""
        BETWEEN_0_AND_1.check(level=level)
        answer = self.predict(nprocs, strict=False, **inputs)
        low, high = np.quantile(self._ratios, ((1 - level) / 2, (1 + level) / 2))
        return answer * min(low, 1.0), answer * max(high, 1.0)

    def reliability(self, nprocs: ArrayLike, **inputs: ArrayLike) -> list[Remark]:
        """Say what the data do not determine; times that are given are taken as known."""
        _, columns = self._asked(nprocs, inputs)
        remarks = []
        if self.times is None and not self.fit_.answers(columns).all():
            text = f"{len(self.runs_)} runs do not determine the three times of the model"
            remarks.append(Remark("unusable", "undetermined", text))
        raw = columns @ self.times_
        if not (raw > 0).all():
            remarks.append(Remark("unusable", "negative", f"the model gives {raw.min():.4g} s"))
        return remarks
