"""The plots of a comparison's answers: changes, shares of the oracle's gain, load curves."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sim.report.answer_tables import changed
from sim.report.answers import Curve, Difference
from sim.report.figures import MANY, MARKERS, MOST_BARS, MOST_LINES, Plot, not_drawn
from sim.results.plots.style import LINE_COLOURS, legend, line, tidy
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
    """Return what draws figures over load, each as far as the queue settles."""

    def draw(figure: "Figure") -> None:
        axes = figure.add_subplot()
        for number, one in enumerate(curves):
            loads = list(one.points)
            means = [interval.mean / scale for interval in one.points.values()]
            halves = np.nan_to_num([interval.half / scale for interval in one.points.values()])
            stop = one.unsteady_at
            name = one.label if stop is None else f"{one.label} (does not settle from {stop:g} on)"
            axes.errorbar(
                loads, means, yerr=halves, marker=MARKERS[number % len(MARKERS)], markersize=5,
                capsize=2.5, label=name, **line(number),
            )  # fmt: skip
            if stop is not None:
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
    paired = "On the same jobs, pair by pair; whiskers are 95 % intervals."
    known = [one for one in found if np.isfinite(one.change.mean)]
    changes = [(one.group.label, one.change) for one in known[:MOST_BARS]]
    if changes:
        why = {id(one): changed(one) for one in found if one not in known}
        why |= {id(one): MANY for one in known[MOST_BARS:]}
        missing = not_drawn((one.group.label, why.get(id(one), "")) for one in found)
        against = " or ".join(dict.fromkeys(one.reference.label for one in found))
        points = "percentage points" if found[0].is_share else "%"
        draw = interval_bars(changes, f"change of {unit[0].partition(' (')[0]} ({points})")
        together = f"{paired} All hold at once."
        plots.append(Plot("change", f"Change against {against}", together, draw, missing))
    kept = [(one.group.label, one.kept) for one in found if one.kept]
    shares = [(label, share) for label, share in kept if isinstance(share, Interval)]
    rows = shares[:MOST_BARS]
    if rows:
        why_not = [(label, share) for label, share in kept if isinstance(share, str)]
        missing = not_drawn([*why_not, *((label, MANY) for label, _ in shares[MOST_BARS:])])
        draw = interval_bars(rows, "share of the oracle's gain (%)", mark=100.0)
        title = "How much of the oracle's gain is kept"
        plots.append(Plot("gain_kept", title, f"{paired} 100 % is the oracle.", draw, missing))
    told = [one for one in curves if one.points]
    if told:
        missing = not_drawn(
            [
                *((one.label, one.says()) for one in curves if not one.points),
                *((one.label, MANY) for one in told[MOST_LINES:]),
            ]
        )
        some = told[:MOST_LINES]
        title = f"{unit[0].partition(' (')[0].capitalize()} over load"
        caption = "As far as the queue settles: beyond, means depend on the run's length."
        plots.append(Plot("load_curves", title, caption, load_lines(some, *unit), missing))
    return plots
