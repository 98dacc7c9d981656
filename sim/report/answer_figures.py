"""Plots of what a comparison answers: changes, shares of the oracle's gain, load curves."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sim.report.answers import Curve, Difference
from sim.report.figures import (
    LINE_COLOURS,
    MARKERS,
    MOST_BARS,
    MOST_LINES,
    Plot,
    legend,
    line,
    tidy,
)
from sim.statistics.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Labelled = Sequence[tuple[str, Interval]]


def interval_bars(
    rows: Labelled, label: str, scale: float = 0.01, mark: float = 0.0
) -> Callable[["Figure"], None]:
    """Return what draws means with whiskers, the first at the top, and a line at `mark`.

    Parameters
    ----------
    rows : sequence of (str, Interval)
    label : str
        Of the axis.
    scale : float
        One unit of the axis, in units of the intervals.
    mark : float
        In units of the axis.
    """

    def draw(figure: "Figure") -> None:
        axes = figure.add_subplot()
        places = np.arange(len(rows))
        means = np.array([interval.mean for _, interval in rows]) / scale
        low = np.nan_to_num(means - [i.low / scale for _, i in rows], posinf=0.0)
        high = np.nan_to_num([i.high / scale for _, i in rows] - means, posinf=0.0)
        low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)  # no width, but for rounding
        axes.errorbar(
            means, places, xerr=[low, high], fmt="o", markersize=5, color=LINE_COLOURS[0],
            elinewidth=1.4, capsize=3,
        )  # fmt: skip
        axes.axvline(mark, color="#555555", linewidth=1.0, linestyle="--")
        axes.set_yticks(places, [name for name, _ in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(label)
        tidy(axes)

    return draw


def load_lines(curves: Sequence[Curve], label: str, scale: float) -> Callable[["Figure"], None]:
    """Return what draws figures over load, each up to saturation."""

    def draw(figure: "Figure") -> None:
        axes = figure.add_subplot()
        for number, one in enumerate(curves):
            points = one.curve.points
            loads = [point.load for point in points]
            means = [point.interval.mean / scale for point in points]
            halves = np.nan_to_num([point.interval.half / scale for point in points])
            stop = one.curve.saturates_at
            name = one.label if stop is None else f"{one.label} (saturated from {stop:g} on)"
            axes.errorbar(
                loads, means, yerr=halves, marker=MARKERS[number % len(MARKERS)], markersize=5,
                capsize=2.5, label=name, **line(number),
            )  # fmt: skip
            if stop is not None and points:
                axes.plot(loads[-1], means[-1], marker="|", markersize=18, **line(number))
        axes.set(xlabel="offered load", ylabel=label)
        axes.set_ylim(bottom=0)
        legend(axes)
        tidy(axes)

    return draw


def answer_plots(
    found: Sequence[Difference], curves: Sequence[Curve], unit: tuple[str, float]
) -> list[Plot]:
    """Return the plots of the answers that a comparison has.

    Parameters
    ----------
    found : sequence of Difference
    curves : sequence of Curve
    unit : (str, float)
        Name of the figure that is compared with its unit, and one of that in
        the figure's own.
    """
    plots = []
    paired = "On the same jobs, replication by replication; whiskers are 95 % intervals."
    changes = [(one.group.label, one.comparison.change) for one in found]
    changes = [row for row in changes if np.isfinite(row[1].mean)][:MOST_BARS]
    if changes:
        against = " or ".join(dict.fromkeys(one.reference.label for one in found))
        draw = interval_bars(changes, f"change of {unit[0].partition(' (')[0]} (%)")
        plots.append(Plot("change", f"Change against {against}", paired, draw))
    kept = [(one.group.label, one.kept) for one in found if one.kept is not None]
    rows = [(label, share) for label, share in kept if np.isfinite(share.mean)][:MOST_BARS]
    if rows:
        draw = interval_bars(rows, "share of the oracle's gain (%)", mark=100.0)
        title = "How much of the oracle's gain is kept"
        plots.append(Plot("gain_kept", title, f"{paired} 100 % is the oracle.", draw))
    if curves:
        some = curves[:MOST_LINES]
        title = f"{unit[0].partition(' (')[0].capitalize()} over load"
        caption = "Up to saturation, beyond which means depend on the run's length."
        plots.append(Plot("load_curves", title, caption, load_lines(some, *unit)))
    return plots
