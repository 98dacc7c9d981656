"""What a run with checkpoints takes where nodes fail, in closed form (Daly 2006)."""

import numpy as np


def expected_walltime(work, interval, cost, mtbf, restart=0.0):
    """Return M·exp(R/M)·(exp((τ + δ)/M) − 1)·W/τ, seconds: failures are exponential.

    Each stretch of computation and its checkpoint is repeated until it passes without a
    failure; a failure during a restart starts the restart again.
    """
    return mtbf * np.exp(restart / mtbf) * np.expm1((interval + cost) / mtbf) * work / interval
