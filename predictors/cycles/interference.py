"""Is the machine ill? Measured against offline cycle times.

Each cycle gives a ratio of measured to offline-predicted time. The offline
model is used because an online one follows a disturbance and hides it
(Mathis & Kerbyson, section 4). The detector keeps a state, raised or clear,
and takes cycles one by one or many at once with the same result.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import BoolArray
from predictors.errors import PredictorError

Health = Literal["clear", "warning", "interference"]


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
        self.raised_ = False
        self.health_: Health = "clear"
        self._last: list[float] = []

    def update(self, ratios: ArrayLike) -> BoolArray:
        """Take in measured/offline ratios; return whether interference stands after each."""
        row = np.atleast_1d(np.asarray(ratios, dtype=float)).ravel()
        bad = ~(np.isfinite(row) & (row > 0.0))
        if bad.any():
            raise PredictorError(
                f"a ratio of measured to offline time must be positive, got {row[bad].item(0)}"
            )
        states = np.empty(row.size, bool)
        for cycle, ratio in enumerate(row.tolist()):
            self._last = [*self._last[-2:], ratio]
            if len(self._last) == 3:
                median = sorted(self._last)[1]
                kept = self.raised_ and median >= self.warn_at
                self.raised_ = median > self.raise_at or kept
                self.health_ = "warning" if median > self.warn_at else "clear"
            states[cycle] = self.raised_
        if self.raised_:
            self.health_ = "interference"
        return states
