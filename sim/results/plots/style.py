"""What all plots have alike: colours, lines, the frame and the time axis."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from predictors.base import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#0072B2", "#D55E00", "#999999")
"""Okabe & Ito's palette, which the colour-blind can tell apart."""
INK, PALE = "#333333", "#E8E8E8"
STYLES = ("-", "--", "-.", ":")
LINE_COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#999999",
)
"""Okabe & Ito's palette, those first that stand out from white."""
TIME_UNITS = (("s", 1.0), ("min", 60.0), ("h", 3600.0), ("d", 86400.0))
"""Units of the time axis with their seconds."""


class Clock(NamedTuple):
    """The time axis: seconds from `begin` to `end`, shown as multiples of a unit."""

    begin: float
    end: float
    unit: str
    seconds: float

    def show(self, time: FloatArray) -> FloatArray:
        """Return times as the axis shows them."""
        return (time - self.begin) / self.seconds

    @property
    def length(self) -> float:
        """Length of the axis in its unit."""
        return (self.end - self.begin) / self.seconds


def clock(begin: float, end: float) -> Clock:
    """Return a time axis whose unit suits its length.

    Examples
    --------
    >>> clock(0.0, 7200.0).unit, clock(0.0, 864000.0).unit
    ('min', 'd')
    """
    length = max(end - begin, 1e-9)
    name, seconds = [unit for unit in TIME_UNITS if length >= 4 * unit[1] or unit[0] == "s"][-1]
    return Clock(begin, begin + length, name, seconds)


def resample(times: FloatArray, values: FloatArray, edges: FloatArray) -> FloatArray:
    """Return mean, least and greatest of a step function between edges, shape (3, k - 1).

    Parameters
    ----------
    times, values : numpy.ndarray of float, shape (m,)
        values[i] holds from times[i] on; before times[0] the function is 0.
    edges : numpy.ndarray of float, shape (k,)
        Ascending.
    """
    times = np.append(-np.inf, times)
    values = np.append(0.0, values)
    finite = np.append(min(edges[0], times[1] if len(times) > 1 else edges[0]), times[1:])
    area = np.append(0.0, np.cumsum(values[:-1] * np.diff(finite)))
    at = np.searchsorted(times, edges, side="right") - 1
    whole = area[at] + values[at] * (edges - finite[at])
    first_last = np.stack([at[:-1], at[1:] + 1], axis=1).ravel()
    padded = np.append(values, values[-1])
    low = np.minimum.reduceat(padded, first_last)[::2]
    high = np.maximum.reduceat(padded, first_last)[::2]
    return np.array([np.diff(whole) / np.diff(edges), low, high])


def tidy(axes: "Axes") -> None:
    """Give axes the grid and the frame that all plots have."""
    axes.grid(visible=True, color=PALE, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def legend(axes: "Axes", title: str = "") -> None:
    """Put the legend beside the axes."""
    axes.legend(
        title=title or None, frameon=False, fontsize=8, title_fontsize=8,
        loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0,
    )  # fmt: skip


def line(number: int) -> dict[str, Any]:
    """Return colour and style of the line of this number."""
    return {
        "color": LINE_COLOURS[number % len(LINE_COLOURS)],
        "linestyle": STYLES[number % len(STYLES)],
        "linewidth": 1.3,
    }
