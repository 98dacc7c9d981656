"""Long-run averages of the sampled load, and how long it remembers."""

import numpy as np

from sim.load_kernels import FloatArray

LEAST_MEMORY = 1e-3


class LoadMoments:
    """Running mean of every place, and the autocorrelation of all from sample to sample.

    Parameters
    ----------
    places : int

    Examples
    --------
    >>> moments = LoadMoments(1)
    >>> moments.update(np.array([[1.0], [1.0], [0.0], [0.0]]))
    >>> moments.mean.tolist(), round(moments.correlation(), 3)
    ([0.5], 0.333)
    """

    def __init__(self, places: int) -> None:
        self._number = 0
        self._sums = np.zeros(places)
        self._last: FloatArray | None = None
        self._squares = 0.0
        self._products = 0.0

    def update(self, readings: FloatArray) -> None:
        """Take in samples, shape (samples, places), the oldest first."""
        self._number += len(readings)
        self._sums += readings.sum(axis=0)
        series = readings if self._last is None else np.vstack((self._last, readings))
        self._last = readings[-1]
        before, after = series[:-1] - self.mean, series[1:] - self.mean
        self._squares += 0.5 * float((before**2).sum() + (after**2).sum())
        self._products += float((before * after).sum())

    @property
    def mean(self) -> FloatArray:
        """Average of each place so far; 1 before any sample."""
        if self._number == 0:
            return np.ones(len(self._sums))
        return np.asarray(self._sums / self._number, float)

    def correlation(self) -> float:
        """Return the correlation from one sample to the next, in [0, 1)."""
        if self._squares <= 0.0:
            return 0.0
        return float(np.clip(self._products / self._squares, 0.0, 0.9999))

    def memory(self, every: float) -> float:
        """Return the time after which a deviation from the mean has fallen to 1/e, seconds."""
        return float(every / -np.log(max(self.correlation(), LEAST_MEMORY)))
