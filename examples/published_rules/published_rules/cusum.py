"""Page's CUSUM on ratios of measured to offline-predicted cycle times.

The offline model is used because an online one follows a disturbance and hides it
(Mathis & Kerbyson, section 4). The detector keeps a state, raised or clear, and takes
cycles one by one or many at once with the same result.

References
----------
.. [1] E. S. Page, "Continuous inspection schemes", Biometrika 41, 1954.
.. [2] D. Brook and D. A. Evans, "An approach to the probability distribution
   of cusum run length", Biometrika 59, 1972.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import ndtr

from predictors.base import BoolArray, FloatArray
from predictors.errors import AT_LEAST_1, BELOW_1, POSITIVE_AND_FINITE, Bounds, PredictorError

LONGEST = 1e13
"""Cycles between false alarms beyond which the chain of `run_length` is not precise."""
STRETCH = 1024
"""Cycles that the sequential detector follows at a time."""


def _log_ratios(ratios: ArrayLike) -> FloatArray:
    """Return logarithms of the ratios as one row, or refuse what is not positive."""
    array = np.atleast_1d(np.asarray(ratios, dtype=float)).ravel()
    bad = ~(np.isfinite(array) & (array > 0.0))
    if bad.any():
        raise PredictorError(
            f"a ratio of measured to offline time must be positive, got {float(array[bad][0])}"
        )
    return np.asarray(np.log(array))


def run_length(reference: float, threshold: float, confirm: float = np.inf) -> float:
    """Return the mean cycles between false alarms of a one-sided CUSUM.

    The sum S = max(0, S + min(z − reference, threshold/confirm)) of standard
    normal z raises an alarm at S ≥ threshold. Brook & Evans [2]_: the sum is
    followed on 128 states between 0 and the threshold as a Markov chain.
    """
    states = 128
    width = 2.0 * threshold / (2 * states - 1)
    largest = threshold / confirm if np.isfinite(confirm) else np.inf
    centres = np.arange(states) * width
    # Probability to end a step at or below each upper edge, from each centre.
    steps = centres[None, :] + width / 2.0 - centres[:, None]
    below = np.where(steps >= largest, 1.0, ndtr(steps + reference))
    chain = np.diff(below, axis=1, prepend=0.0)
    try:
        return float(np.linalg.solve(np.eye(states) - chain, np.ones(states))[0])
    except np.linalg.LinAlgError:
        return np.inf


@lru_cache(maxsize=256)
def cusum_threshold(reference: float, false_alarm: float, confirm: int = 2) -> float:
    """Return the threshold whose false alarms come once in 1/`false_alarm` cycles."""
    target = 1.0 / false_alarm

    def excess(threshold: float) -> float:
        length = run_length(reference, threshold, confirm)
        # Beyond the precision of the chain all lengths are long enough.
        return float(np.log((length if 0.0 < length < LONGEST else LONGEST) / target))

    if excess(reference) >= 0.0:
        return reference
    highest = reference
    while excess(highest) < 0.0:
        highest *= 2.0
    return float(brentq(excess, reference, highest, xtol=1e-6))


class SequentialDetector:
    """Page's CUSUM on the log ratios: a repeated sequential probability-ratio test.

    Healthy ratios are log-normal around `bias` with standard deviation
    `spread`; disturbed ones lie higher by the factor `slowdown`. An alarm is
    raised when the evidence of a disturbance, and cleared when the evidence of
    its end, passes one threshold, chosen so that false alarms come once in
    1/`false_alarm` healthy cycles on average, or more rarely.

    Parameters
    ----------
    false_alarm : float
        Mean false alarms for each healthy cycle, in (0, 1).
    slowdown : float
        Smallest factor worth an alarm, above 1. Half of it (in logarithms) is
        forgiven, which is more than the offline model is usually off.
    spread : float
        Standard deviation of a healthy log ratio; `learned_spread` measures it.
    bias : float
        Mean of a healthy log ratio; 0 if the offline model is right on average.
    confirm : int
        Fewest disturbed cycles that can raise an alarm, at least 1.

    Attributes
    ----------
    raised_ : bool
        Whether an alarm stands after the last cycle.
    threshold_ : float
        Threshold in standard deviations.

    Raises
    ------
    PredictorError
        If a parameter is out of range.

    Examples
    --------
    >>> detector = SequentialDetector(spread=0.05)
    >>> detector.update([1.0, 1.02, 0.97, 2.0, 2.1, 2.0]).tolist()
    [False, False, False, False, True, True]
    >>> detector.update([1.0, 1.0, 1.0]).tolist()
    [True, False, False]
    """

    def __init__(
        self,
        false_alarm: float = 1e-4,
        slowdown: float = 1.5,
        spread: float = 0.08,
        bias: float = 0.0,
        confirm: int = 2,
    ) -> None:
        least = 1.0 / LONGEST
        Bounds(f"between {least:g} and 1", least, BELOW_1).check(false_alarm=false_alarm)
        if not 1.0 < slowdown < np.inf:
            raise PredictorError(f"slowdown must be above 1 and finite, got {slowdown}")
        POSITIVE_AND_FINITE.check(spread=spread)
        if not np.isfinite(bias):
            raise PredictorError(f"bias must be finite, got {bias}")
        AT_LEAST_1.check(confirm=confirm)
        self.false_alarm = false_alarm
        self.slowdown = slowdown
        self.spread = spread
        self.bias = bias
        self.confirm = confirm
        self.reference_ = float(np.log(slowdown) / (2.0 * spread))
        self.threshold_ = cusum_threshold(self.reference_, false_alarm, confirm)
        self.reset()

    def reset(self) -> None:
        """Forget all cycles; the state is clear."""
        self.raised_ = False
        self._sum = 0.0

    def update(self, ratios: ArrayLike) -> BoolArray:
        """Take in measured/offline ratios; return whether an alarm stands after each."""
        excess = (_log_ratios(ratios) - self.bias) / self.spread
        states = np.empty(excess.size, dtype=bool)
        at = 0
        while at < excess.size:
            # Stretches keep the work linear however often the state changes.
            stretch = excess[at : at + STRETCH]
            crossed = self._advance(stretch)
            passed = stretch.size if crossed is None else crossed
            states[at : at + passed] = self.raised_
            at += passed
            if crossed is not None:
                self.raised_, self._sum = not self.raised_, 0.0
                states[at] = self.raised_
                at += 1
        return states

    def _advance(self, excess: FloatArray) -> int | None:
        """Accumulate evidence against the state; return where it crosses, if it does."""
        steps = excess - self.reference_
        # A state of alarm ends by evidence as strong as that which raised it.
        steps = np.minimum(-steps if self.raised_ else steps, self.threshold_ / self.confirm)
        path = np.cumsum(steps)
        sums = path - np.minimum.accumulate(np.minimum(path, -self._sum))
        over = sums >= self.threshold_ * (1.0 - 1e-12)
        if over.any():
            return int(over.argmax())
        self._sum = float(sums[-1])
        return None


def learned_spread(ratios: ArrayLike) -> float:
    """Return the spread of healthy log ratios from a series, robust to a few steps.

    1.4826 times the median absolute difference of neighbours, over sqrt(2).

    Raises
    ------
    PredictorError
        If fewer than 8 ratios are given, or one is not positive.

    Examples
    --------
    >>> learned_spread([1.0, 1.1] * 8) > 0.05
    True
    """
    logs = _log_ratios(ratios)
    if logs.size < 8:
        raise PredictorError(f"a spread needs at least 8 ratios, got {logs.size}")
    return float(1.4826 * np.median(np.abs(np.diff(logs))) / np.sqrt(2.0))
