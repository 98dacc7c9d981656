"""Is the machine ill? Measured against offline cycle times.

Each cycle gives a ratio of measured to offline-predicted time. The offline
model is used because an online one follows a disturbance and hides it
(Mathis & Kerbyson, section 4). The detector keeps a state, raised or clear,
and takes cycles one by one or many at once with the same result.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import BoolArray, FloatArray
from predictors.errors import PredictorError

Health = Literal["clear", "warning", "interference"]


def _log_ratios(ratios: ArrayLike) -> FloatArray:
    """Return logarithms of the ratios as one row, or refuse what is not positive."""
    array = np.atleast_1d(np.asarray(ratios, dtype=float)).ravel()
    bad = ~(np.isfinite(array) & (array > 0.0))
    if bad.any():
        raise PredictorError(
            f"a ratio of measured to offline time must be positive, got {float(array[bad][0])}"
        )
    return np.asarray(np.log(array))


class MedianDetector:
    """The median of the last three ratios against fixed bounds.

    Parameters
    ----------
    raise_at : float
        Interference when the median exceeds this.
    warn_at : float
        A warning when it exceeds this; interference is cleared below it.

    Attributes
    ----------
    raised_ : bool
        Whether interference stands after the last cycle.
    health_ : str
        ``clear``, ``warning`` or ``interference``.

    Raises
    ------
    PredictorError
        Unless 1 < warn_at <= raise_at.

    Examples
    --------
    >>> detector = MedianDetector()
    >>> detector.update([1.0, 1.0, 2.0, 2.0, 1.0, 1.0]).tolist()
    [False, False, False, True, True, False]
    """

    def __init__(self, raise_at: float = 1.5, warn_at: float = 1.2) -> None:
        if not 1.0 < warn_at <= raise_at:
            raise PredictorError(
                f"bounds must rise: 1 < warn_at <= raise_at, got {warn_at} and {raise_at}"
            )
        self.raise_at = raise_at
        self.warn_at = warn_at
        self.reset()

    def reset(self) -> None:
        """Forget all cycles; the state is clear."""
        self.raised_ = False
        self.health_: Health = "clear"
        self._last: FloatArray = np.empty(0)

    def update(self, ratios: ArrayLike) -> BoolArray:
        """Take in measured/offline ratios; return whether interference stands after each."""
        fresh = np.exp(_log_ratios(ratios))
        known = np.concatenate((self._last, fresh))
        self._last = known[-2:]
        states = np.full(fresh.size, self.raised_)
        if known.size < 3:
            return states
        windows = np.lib.stride_tricks.sliding_window_view(known, 3)
        medians = np.median(windows, axis=1)
        # +1 raises, -1 clears, 0 keeps what stood before.
        votes = np.where(medians > self.raise_at, 1, np.where(medians < self.warn_at, -1, 0))
        marks = np.where(votes != 0, np.arange(votes.size), -1)
        latest = np.maximum.accumulate(marks)
        held = np.where(latest >= 0, votes[latest] > 0, self.raised_)
        states[fresh.size - held.size :] = held
        self.raised_ = bool(held[-1])
        self.health_ = "clear" if medians[-1] <= self.warn_at else "warning"
        if self.raised_:
            self.health_ = "interference"
        return states
