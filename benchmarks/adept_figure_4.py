"""Figure 4 and Table 2 of ADEPT's paper: its curves, and the methods it compares."""

import time
from collections.abc import Callable, Mapping

import numpy as np

from predictors import Adept, LevenbergMarquardt
from predictors.base import FloatArray
from predictors.downey import normalised_time

COUNTS = np.geomspace(4, 2048, 10)
"""Ten observations of every curve; the paper does not print its own."""
GIVEN = [1, 3, 5, 7]
"""Which four of them are the input."""
SETS: Mapping[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "A 400 to 1000, sigma 0 to 1": ((400.0, 1000.0), (0.0, 1.0)),
    "A 400 to 2000, sigma 1.1 to 12": ((400.0, 2000.0), (1.1, 12.0)),
}
"""Table 2: the ranges of A and sigma of its two sets of four experiments."""
MOST = 3000.0
"""A from 1 and sigma from 0 to here, for all methods of Table 2 but ADEPT."""

Predict = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


def exhaustive(sigmas: FloatArray, instances: int = 1000) -> Predict:
    """Return the search of every A of an even grid with every sigma given."""
    grid = np.linspace(1.0, MOST, instances)

    def predict(n: FloatArray, t: FloatArray, targets: FloatArray) -> FloatArray:
        best, found = np.inf, (1.0, 0.0)
        for A in grid.tolist():
            times = normalised_time(n[:, None], A, sigmas)
            errors = ((times / t[:, None] - 1.0) ** 2).sum(axis=0)
            k = int(errors.argmin())
            if errors[k] < best:
                best, found = float(errors[k]), (A, float(sigmas[k]))
        return normalised_time(targets, *found)

    return predict


def descent(A: float, sigma: float) -> Predict:
    """Return local descent from a start, in the units of the normalised model."""
    return lambda n, t, targets: (
        LevenbergMarquardt(start=(A, sigma), scale="unit").fit_arrays(n, t).predict(targets)
    )


METHODS: Mapping[str, Predict] = {
    "Levenberg-Marquardt from A = 50, sigma = 0.5": descent(50.0, 0.5),
    "Levenberg-Marquardt from A = 1500, sigma = 1500": descent(1500.0, 1500.0),
    "exhaustive, sigma in 1000 even steps": exhaustive(np.linspace(0.0, MOST, 1000)),
    "exhaustive, sigma in 1000 steps even in ln(1 + sigma)": exhaustive(
        np.expm1(np.linspace(0.0, np.log1p(MOST), 1000))
    ),
    "ADEPT, the paper's two passes": lambda n, t, targets: (
        Adept(search="grid", scale="unit").fit_arrays(n, t).predict(targets)
    ),
    "ADEPT, exact search, unit of time known": lambda n, t, targets: (
        Adept(scale="unit").fit_arrays(n, t).predict(targets)
    ),
    "ADEPT, exact search, unit of time unknown": lambda n, t, targets: (
        Adept().fit_arrays(n, t).predict(targets)
    ),
}


def experiments(name: str) -> list[tuple[float, float]]:
    """Return A and sigma of the four experiments of a set, from corner to corner."""
    return [(a, s) for a, s in np.linspace(*np.array(SETS[name]).T, 4).tolist()]


def largest_errors(name: str, predict: Predict) -> tuple[FloatArray, float]:
    """Return each experiment's largest relative error at the six counts not given, and its time.

    Returns
    -------
    errors : numpy.ndarray of float, shape (4,)
    seconds : float
        Mean over the experiments.
    """
    others = np.setdiff1d(np.arange(COUNTS.size), GIVEN)
    errors, began = [], time.perf_counter()
    for A, sigma in experiments(name):
        t = normalised_time(COUNTS, A, sigma)
        said = predict(COUNTS[GIVEN], t[GIVEN], COUNTS[others])
        errors.append(float(np.abs(said / t[others] - 1.0).max()))
    return np.array(errors), (time.perf_counter() - began) / len(errors)
