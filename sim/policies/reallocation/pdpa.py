"""PDPA: performance-driven processor allocation (Corbalan, Martorell & Labarta, TPDS 2005)."""

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.errors import AT_LEAST_0, AT_LEAST_1, between
from sim.policies.passes.malleable import Claims, SharingMemory, prepare
from sim.policies.reallocation.beliefs import BelievedCurves
from sim.policies.reallocation.rule import Reallocation
from sim.policies.reallocation.shares import hand_out, shrink_to_fit
from sim.state.run_state import RunState

NO_REF, INCREASE, DECREASE, STABLE = range(4)
"""Phases of a search: before the first measurement, growing, shrinking, and at its end."""
HIGH, LOW, STEP, INTERVAL, STABLE_INTERVAL, TOLERANCE = range(6)
"""Where the parameters of the rule stand."""


@compiled
def _tick(now: float, delay: float, interval: float) -> float:
    """Return the first common instant of measurement after a delay, less one interval.

    All measurements fall on multiples of the interval, so that one pass takes many.
    """
    due = (np.floor((now + delay - interval) / interval) + 1.0) * interval
    return float(due if due > now else due + interval)


@compiled
def no_start_before(searches: NDArray[Any], now: float, low: float) -> float:
    """Return when the search goes on, -infinity if all are stable or one performs badly."""
    until = inf
    for search in searches:
        if search.measured_on > 0 and search.last_efficiency < low:
            return -inf
        if search.phase != STABLE and search.wanted == 0:
            until = min(until, search.due)
    return until if now < until < inf else -inf


@compiled
def _measure(search: Any, held: int, own: FloatArray) -> int:
    """Take in a measurement, move on to the next state, and return the wanted count."""
    efficiency, before = search.new_efficiency, search.last_efficiency
    processors = search.measured_on
    search.last_efficiency, search.measured_on = efficiency, held
    changed = before > 0 and abs(efficiency - before) > own[TOLERANCE] * before
    if search.phase == STABLE and not (changed and processors == held):
        return held
    has_grown = search.phase == INCREASE and held > processors > 0
    if has_grown and efficiency < own[HIGH] * max(1.0, before):
        search.phase = STABLE
        return int(processors)
    if efficiency >= own[HIGH] and search.phase != DECREASE:
        search.phase = INCREASE
        return held + int(own[STEP])
    if efficiency < own[LOW] and held > 1:
        search.phase = DECREASE
        return held - int(own[STEP])
    search.phase = STABLE
    return held


@compiled
def shares_by_search(claims: Claims) -> IntArray:
    """Return each job's count by its own measurements, as far as there is room.

    Parameters
    ----------
    claims : Claims
        A job's curve values are its request and its largest count. The searches of jobs that start
        are all 0.

    Returns
    -------
    numpy.ndarray of int, shape (n,)
    """
    held, least, own = claims.held, claims.least, claims.parameters
    searches, now = claims.searches, claims.now
    asked = np.maximum(held, least)
    for k, search in enumerate(searches):
        if held[k] == 0:
            search.due = _tick(now, own[INTERVAL], own[INTERVAL])
            asked[k] = int(claims.curve_values[k, 0])
        elif now >= search.due:
            asked[k] = _measure(search, held[k], own)
        elif search.wanted > 0:
            asked[k] = search.wanted
    wanted = np.minimum(np.maximum(asked, least), claims.largest)
    shares = np.minimum(np.maximum(held, least), wanted)
    worst = np.argsort(searches["last_efficiency"].copy(), kind="mergesort")
    shrink_to_fit(shares, least, claims.total, worst)
    hand_out(shares, wanted, claims.total, np.arange(held.size)[::-1])
    for k, search in enumerate(searches):
        if shares[k] != held[k] > 0:
            search.wanted, search.due = 0, _tick(now, own[INTERVAL], own[INTERVAL])
        elif search.due <= now:
            most = int(min(asked[k], claims.curve_values[k, 1]))
            search.wanted = most if most > shares[k] else 0
            search.phase = INCREASE if search.wanted > 0 else STABLE
            search.due = _tick(now, own[STABLE_INTERVAL], own[INTERVAL])
    return shares


@compiled
def prepare_pass(state: RunState, sharing: SharingMemory) -> None:
    """Let nobody start while a search goes on."""
    prepare(state, sharing)
    tally = sharing.tally[0]
    searches = sharing.searches[sharing.running[: tally.running]]
    tally.no_start_before = no_start_before(searches, state.scalars[0].now, sharing.parameters[LOW])


@dataclass(frozen=True)
class PerformanceDriven(Reallocation):
    """PDPA: search each job's count by the efficiency that is measured while it runs.

    A job starts on its request or on what is free. As long as it is measured to
    be efficient, it grows by steps, unless the last step brought too little; as
    long as it is inefficient, it shrinks; then it is stable until its efficiency
    changes. A job that finds no room to grow does so when there is some. Nobody
    starts while a running job is being searched that has room, unless one performs
    badly. States, defaults and this coordination are our reading.
    No prediction is consulted.

    Parameters
    ----------
    cost, gain_factor, distance, reclaim
        See `Reallocation`; without `reclaim`, which is the default here, jobs
        shrink by measurement alone.
    high_efficiency, low_efficiency : float
        Bounds of the target efficiency.
    step : int
        Processors by which a count changes.
    interval, stable_interval : float
        Seconds between measurements, which fall on multiples of the interval for
        all jobs, and those between two of a stable job.
    tolerance : float
        Relative change of efficiency that restarts the search.
    """

    shares, prepare = staticmethod(shares_by_search), staticmethod(prepare_pass)
    shrinks_unasked = measures = True

    reclaim: bool = False
    high_efficiency: float = 0.7
    low_efficiency: float = 0.5
    step: int = 4
    interval: float = 300.0
    stable_interval: float = 14400.0
    tolerance: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        AT_LEAST_0.check(high_efficiency=self.high_efficiency, tolerance=self.tolerance)
        between(0.0, self.high_efficiency).check(low_efficiency=self.low_efficiency)
        AT_LEAST_1.check(step=self.step, interval=self.interval)
        AT_LEAST_1.check(stable_interval=self.stable_interval)

    @property
    def parameters(self) -> tuple[float, ...]:
        """Those that `shares_by_search` reads."""
        bounds = self.high_efficiency, self.low_efficiency, self.step
        return (*bounds, self.interval, self.stable_interval, self.tolerance)

    def read_off(self, beliefs: BelievedCurves, job: int) -> FloatArray:
        """Return a job's request and its largest count, shape (2,)."""
        view = beliefs.view
        return np.array([view.requested_processors[job], view.extremes(job)[1]], float)
