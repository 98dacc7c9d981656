"""A Gaussian process on log runtime over log count, as a reference in the studies."""

import numpy as np
from scipy.optimize import minimize

from predictors.base import FloatArray


def gaussian_process(nprocs: FloatArray, runtime: FloatArray, target: float) -> float:
    """Predict seconds at a target count.

    A constant and a linear trend with wide priors plus a squared exponential
    kernel and noise; length, amplitude and noise by maximum marginal likelihood
    with weak log-normal priors.
    """
    x, y = np.log2(nprocs), np.log(runtime)
    centre = y.mean()
    start = np.log([2.0, 0.3, 0.03])

    def negative(parameters: FloatArray) -> float:
        covariance = _kernel(x, x, parameters) + np.exp(2 * parameters[2]) * np.eye(len(x))
        factor = np.linalg.cholesky(covariance + 1e-9 * np.eye(len(x)))
        scaled = np.linalg.solve(factor, y - centre)
        prior = 0.5 * float(np.sum((parameters - start) ** 2))
        return float(0.5 * scaled @ scaled + np.log(np.diag(factor)).sum() + prior)

    best = minimize(negative, start, method="Nelder-Mead", options={"maxiter": 200}).x
    covariance = _kernel(x, x, best) + (np.exp(2 * best[2]) + 1e-9) * np.eye(len(x))
    across = _kernel(np.array([np.log2(target)]), x, best)
    mean = centre + across @ np.linalg.solve(covariance, y - centre)
    return float(np.exp(np.clip(mean[0], -500.0, 500.0)))


def _kernel(a: FloatArray, b: FloatArray, parameters: FloatArray) -> FloatArray:
    distance = a[:, None] - b
    bend = np.exp(2 * parameters[1] - 0.5 * (distance / np.exp(parameters[0])) ** 2)
    return np.asarray(4.0 + 1.0 * (a[:, None] * b) + bend, float)
