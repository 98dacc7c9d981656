"""What a comparison answers as pictures: forest plots, load curves."""

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sim.report.answer_tables import changed, reference_names
from sim.report.answers import Curve, Difference
from sim.report.figures import MANY, MARKERS, MOST_BARS, MOST_LINES, Plot, not_drawn
from sim.report.html import Cell, table
from sim.report.samples import Group
from sim.results.plots.style import LINE_COLOURS, legend, line
from sim.statistics import LEAST_PAIRS, Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 200.0, 12.0


def limits(found: Sequence[Difference]) -> tuple[float, float]:
    """Return the ends of the axis: 0, all means, and the ends of intervals within four spans."""
    means = [one.change.mean for one in found if math.isfinite(one.change.mean)]
    low, high = min([0.0, *means]), max([0.0, *means])
    ends = [v for one in found for v in (one.span.low, one.span.high) if math.isfinite(v)]
    room = 3.0 * max(high - low, 1e-9)
    low = max(min([low, *ends]), low - room)
    high = min(max([high, *ends]), high + room)
    return (low, high) if high - low > 1e-9 else (-0.01, 0.01)


def bar(interval: Interval, ends: tuple[float, float]) -> str:
    """Return mean and interval as a picture in a line of text, zero dashed."""
    low, high = ends

    def x(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low)
        return round(2.0 + share * (WIDTH - 4.0), 1)

    middle = HEIGHT / 2
    parts = [f'<line class="zero" x1="{x(0.0)}" x2="{x(0.0)}" y1="0" y2="{HEIGHT:g}"/>']
    if not math.isnan(interval.low):
        left, right = x(interval.low), x(interval.high)
        parts.append(
            f'<line class="span" x1="{left}" x2="{right}" y1="{middle:g}" y2="{middle:g}"/>'
        )
        beyond = [(left, 5.0)] * (interval.low < low) + [(right, -5.0)] * (interval.high > high)
        for at, back in beyond:  # an arrow where the interval goes on
            parts.append(
                f'<path fill="none" d="M{at + back:g} {middle - 4:g} '
                f'L{at:g} {middle:g} L{at + back:g} {middle + 4:g}"/>'
            )
    if math.isfinite(interval.mean):
        at = x(interval.mean)
        parts.append(f'<line class="mean" x1="{at}" x2="{at}" y1="1" y2="{HEIGHT - 1:g}"/>')
    return (
        f'<svg class="bar" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" preserveAspectRatio="none" '
        f'aria-hidden="true">{"".join(parts)}</svg>'
    )


def forest(order: Sequence[Group], found: Sequence[Difference], figure: str) -> str:
    """Return the changes as a table with bars, in the order of the groups.

    Parameters
    ----------
    order : sequence of Group
    found : sequence of Difference
    figure : str
        What is compared, in words.
    """
    by_group = {id(one.group): one for one in found}
    references = {id(one.reference) for one in found}
    ends = limits(found)
    rows = []
    for group in order:
        one = by_group.get(id(group))
        if one is None:
            if id(group) in references:
                nothing = Interval(0.0, math.nan, math.nan, 0)
                rows.append([Cell(group.label), Cell("reference", value="0"),
                             Cell("", html=bar(nothing, ends), value="0")])  # fmt: skip
            continue
        text, _, span = changed(one).partition(" [")
        mark = (f"[{span}" if span else "") + (" *" if one.comparison.certain else "")
        rows.append([Cell(group.label), Cell(text, mark),
                     Cell("", html=bar(one.span, ends), value=str(one.change.mean))])  # fmt: skip
    if not rows:
        return ""
    against = " or ".join(dict.fromkeys(reference_names(found).values()))
    unit = "pp" if found[0].is_share else "%"
    spans = "simultaneous 95 % intervals; * excludes 0"
    if all(math.isnan(one.change.low) for one in found):
        spans = f"ranges of the pairs (intervals need at least {LEAST_PAIRS})"
    caption = f"Change of {figure} against {against}: {spans}"
    axis = f"{100 * ends[0]:.0f} to {100 * ends[1]:.0f} {unit}"
    return table(caption, ["runs", "change", axis], rows, ["runs"], "forest")


Labelled = Sequence[tuple[str, Interval]]


def interval_bars(rows: Labelled, label: str, figure: "Figure", mark: float = 0.0) -> None:
    """Draw means with whiskers in percent, the first at the top, and a line at `mark`.

    Parameters
    ----------
    rows : sequence of (str, Interval)
    label : str
        Of the axis.
    figure : matplotlib.figure.Figure
    mark : float
        In percent.
    """
    axes = figure.add_subplot()
    places = np.arange(len(rows))
    means = np.array([interval.mean for _, interval in rows]) / 0.01
    low = np.nan_to_num(means - [i.low / 0.01 for _, i in rows], posinf=0.0)
    high = np.nan_to_num([i.high / 0.01 for _, i in rows] - means, posinf=0.0)
    low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)  # no width, but for rounding
    axes.errorbar(
        means, places, xerr=[low, high], fmt="o", markersize=5, color=LINE_COLOURS[0],
        elinewidth=1.4, capsize=3,
    )  # fmt: skip
    axes.axvline(mark, color="#555555", linewidth=1.0, linestyle="--")
    axes.set_yticks(places, [name for name, _ in rows])
    axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel=label)


def load_lines(curves: Sequence[Curve], label: str, scale: float, figure: "Figure") -> None:
    """Draw figures over load, each as far as the queue settles."""
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
    axes.set(xlabel="offered load", ylabel=label, ylim=(0, None))
    legend(axes)


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
    paired = "On the same jobs, pair by pair; whiskers are 95 % intervals"
    paired += f", or, of fewer than {LEAST_PAIRS} pairs, their range."
    known = [one for one in found if np.isfinite(one.change.mean)]
    changes = [(one.group.label, one.span) for one in known[:MOST_BARS]]
    if changes:
        why = {id(one): changed(one) for one in found if one not in known}
        why |= {id(one): MANY for one in known[MOST_BARS:]}
        missing = not_drawn((one.group.label, why.get(id(one), "")) for one in found)
        against = " or ".join(dict.fromkeys(one.reference.label for one in found))
        points = "percentage points" if found[0].is_share else "%"
        draw = partial(interval_bars, changes, f"change of {unit[0].partition(' (')[0]} ({points})")
        together = f"{paired} The intervals are simultaneous."
        plots.append(Plot("change", f"Change against {against}", together, draw, missing))
    kept = [(one.group.label, one.kept) for one in found if one.kept]
    shares = [(label, share) for label, share in kept if isinstance(share, Interval)]
    rows = shares[:MOST_BARS]
    if rows:
        why_not = [(label, share) for label, share in kept if isinstance(share, str)]
        missing = not_drawn([*why_not, *((label, MANY) for label, _ in shares[MOST_BARS:])])
        draw = partial(interval_bars, rows, "share of the oracle's gain (%)", mark=100.0)
        title = "Share of the oracle's gain"
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
        plots.append(Plot("load_curves", title, caption, partial(load_lines, some, *unit), missing))
    return plots
