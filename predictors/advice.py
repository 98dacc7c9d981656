"""Which count to measure next, for a purpose: the runtimes at the counts that matter.

How wide a range is beyond the measurements goes with how many counts were measured and
how far away the target is. What a run is worth is how much narrower it makes the ranges
at the targets, for each processor-second that it costs.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from predictors.base import BoolArray, FloatArray, Predictor

FEW = 0.2
"""Share of the half-width in ln T that falls with the root of the number of counts."""
FAR = 0.12
"""Half-width in ln T for each unit of ln(target / nearest count)."""
SURE = 1.25
"""Ranges within this factor either way need no further count."""
LEAST_GAIN = 0.2
"""Share of a range's half-width in ln T that a run must be expected to take off to be worth it."""


class NextRun(NamedTuple):
    """What to measure next.

    Attributes
    ----------
    nprocs : int
    target : float
        The count whose range it narrows most.
    now, then : float
        Half-width of the 80 % range there as a factor either way, and as expected after it.
    processor_seconds : float
        What the run is expected to cost.
    """

    nprocs: int
    target: float
    now: float
    then: float
    processor_seconds: float


def measure_next(
    model: Predictor,
    counts: FloatArray,
    targets: Sequence[float] | FloatArray,
    most: float | None = None,
    free: bool = False,
    candidates: FloatArray | None = None,
) -> NextRun | None:
    """Say which count to measure next; None where it would tell little.

    Parameters
    ----------
    model : Predictor
        Fitted, of the processor count alone.
    counts, targets : numpy.ndarray of float
        The measured counts, and those whose runtimes matter.
    most : float, optional
        The largest count to be had; if None, all `candidates` are, and powers of two below
        the last target. It is itself measured only if it is a target.
    free : bool
        Whether runs cost nothing. Else what one narrows is divided by its processor-seconds.
    candidates : numpy.ndarray of float, optional
        The counts to be had, in place of powers of two from the smallest measured one on.

    Examples
    --------
    >>> import pandas as pd
    >>> from predictors import Consensus
    >>> runs = pd.DataFrame({"nprocs": [1, 2, 4], "runtime": [100.0, 52.0, 29.0]})
    >>> model = Consensus().fit(runs)
    >>> measure_next(model, runs["nprocs"].to_numpy(float), [256], most=64, free=True).nprocs
    64
    """
    known, wanted = np.unique(counts), np.unique(np.asarray(targets, float))
    low, high = model.predict_range(wanted)
    half = 0.5 * np.log(high / low)
    if not wanted.size or half.max() <= np.log(SURE):
        return None
    if candidates is None:
        candidates = _candidates(known, wanted, most)
    candidates = np.setdiff1d(candidates[candidates <= (most or np.inf)], known)
    candidates = candidates[feasible(model, candidates)]
    now = _widths(known, wanted)
    narrowed = np.array(
        [half * (1.0 - _widths(np.union1d(known, [one]), wanted) / now) for one in candidates]
    ).reshape(-1, wanted.size)
    tells = (narrowed >= LEAST_GAIN * half) & (half > np.log(SURE))
    worthwhile = tells.any(axis=1)
    if not worthwhile.any():
        return None
    candidates, narrowed, tells = (each[worthwhile] for each in (candidates, narrowed, tells))
    cost = candidates * model.predict(candidates)
    worth = narrowed.mean(axis=1) / (1.0 if free else cost)
    best = int(len(worth) - 1 - np.argmax(np.round(worth[::-1] / worth.max(), 9)))
    place = int(np.argmax(np.where(tells[best], narrowed[best], 0.0)))
    return NextRun(
        int(candidates[best]),
        float(wanted[place]),
        float(np.exp(min(half[place], 50.0))),
        float(np.exp(min(half[place] - narrowed[best, place], 50.0))),
        float(cost[best]),
    )


def feasible(model: Predictor, counts: FloatArray) -> BoolArray:
    """Say which counts the application runs on."""
    says = getattr(model, "feasible", None)
    return np.ones(len(counts), bool) if says is None else np.asarray(says(counts), bool)


def _candidates(known: FloatArray, wanted: FloatArray, most: float | None) -> FloatArray:
    """Return powers of two from the smallest measured count on, and a target that is the limit."""
    limit = max(known[-1], wanted[-1] - 1.0) if most is None else np.floor(most)
    powers = 2.0 ** np.arange(np.ceil(np.log2(known[0])), np.floor(np.log2(max(limit, 1.0))) + 1)
    return np.append(powers, wanted[wanted == limit])


def _widths(known: FloatArray, targets: FloatArray) -> FloatArray:
    """Return what the counts alone say of the half-width of ln T at each target."""
    away = np.abs(np.log(targets / np.clip(targets, known[0], known[-1])))
    return np.asarray(FEW / np.sqrt(len(known)) + FAR * away, float)
