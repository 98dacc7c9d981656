"""What only the tables of runs tell, and the plots of a comparison: with units, in one style."""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from predictors.base import FloatArray
from sim.report.answers import Difference, LoadCurve
from sim.report.gathering import Group, Sample, estimate, grouped
from sim.report.tables import changed
from sim.results.artefacts import read_table
from sim.results.metrics import FALLBACK, waiting, with_errors
from sim.results.outcome import Levels
from sim.results.plots import style
from sim.results.plots.pictures import HISTORY
from sim.results.plots.style import COLOURS, LINE_COLOURS, line
from sim.results.rows import POINTS, unit_of
from sim.results.steady_state import listed
from sim.statistics import LEAST_PAIRS, Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_LINES = 8
MOST_BARS = 24
MARKERS = "osD^vPX*"
MANY = "for want of room"
NOBODY = "no prediction of a completed run"
"""Why a group is not drawn."""
NOTE_WIDTH = 130
"""Characters of a line below a picture."""
LOSSES = (
    ("useful", "useful work, Σ T(1)", "#009E73", ""),
    ("inefficiency", "inefficiency", "#E69F00", "//"),
    ("unknown", "held, T(1) unknown", "#56B4E9", ".."),
    ("held_back", "idle, a waiting job would fit as requested", "#D55E00", "xx"),
    ("fragmentation", "idle, no waiting job fits as requested", "#CC79A7", "\\\\"),
    ("no_demand", "idle, nothing waits", "#E8E8E8", ""),
)
CURVE_POINTS = 240
COUNT_BINS = tuple(2**power for power in range(18))
QUANTILES = np.linspace(0.0, 1.0, 201)


class Details(NamedTuple):
    """What the tables of a group's samples say.

    Attributes
    ----------
    hours : numpy.ndarray of float, shape (k,)
        Time since the first submit, of the first sample.
    busy, queued : numpy.ndarray of float, shape (k,)
        Share of busy processors, and waiting jobs, of the first sample.
    slowdown : numpy.ndarray of float, shape (201,)
        Quantiles of bounded slowdown over all samples read.
    by_count, by_history : pandas.Series
        Median relative error of the predictor's own predictions by bin.
    losses : pandas.Series
        Where the machine's time went, as shares of processors x makespan, means over the
        samples read: ``useful``, what the work takes without any parallelism, and
        ``inefficiency``, what is held beyond that; ``unknown``, what is held where T(1) is
        unknown, and the first two are NaN; ``held_back``, idle while a waiting job could have
        started as requested; ``fragmentation``, idle while jobs wait, but too few processors
        for any request; ``no_demand``, idle while nothing waits; and, a part of no other,
        ``misprediction``, by which beliefs were wrong.
    """

    hours: FloatArray
    busy: FloatArray
    queued: FloatArray
    slowdown: FloatArray
    by_count: pd.Series
    by_history: pd.Series
    losses: pd.Series


def details(group: Group, most: int) -> Details | None:
    """Return what the tables of the first samples of a group say; None without any."""
    chosen = [s for s in group.samples if (s.folder / "jobs.parquet").exists()][:most]
    if not chosen:
        return None
    slowdowns, errors, losses = [], [], []
    names = "jobs", "timeline", "predictions"
    for sample in chosen:
        jobs, timeline, predictions = (read_table(sample.folder / f"{n}.parquet") for n in names)
        slowdowns.append(jobs.loc[jobs["job_id"] >= 0, "bounded_slowdown"].to_numpy())
        own = with_errors(predictions[predictions["method"] != FALLBACK])
        errors.append(own[["nprocs", "observations", "error"]])
        losses.append(_lost(sample, timeline, predictions))
        if len(losses) == 1:
            curve = _curve(sample, timeline, jobs)
    every = pd.concat(errors)
    return Details(
        *curve,
        np.quantile(np.concatenate(slowdowns), QUANTILES),
        _binned(every, "nprocs", COUNT_BINS),
        _binned(every, "observations", HISTORY),
        pd.DataFrame(losses).mean(),  # of those that are known
    )


def _binned(errors: pd.DataFrame, column: str, bins: tuple[int, ...]) -> pd.Series:
    """Return the median error by lower end of a bin, of bins with at least 5 predictions."""
    place = np.searchsorted(bins, errors[column].to_numpy(), side="right") - 1
    found = errors.groupby(np.asarray(bins)[np.maximum(place, 0)])["error"]
    return found.median()[found.size() >= 5]


OverTime = tuple[FloatArray, FloatArray, FloatArray]
"""Instants in hours, the share of busy processors from then on, and how many jobs wait."""


def _curve(sample: Sample, timeline: pd.DataFrame, jobs: pd.DataFrame) -> OverTime:
    """Return use and queue of a simulation over time, at evenly spaced instants."""
    times = timeline["time"].to_numpy(float)
    processors = float(sample.summary.get("processors") or 1)
    if len(times) < 2 or times[-1] <= times[0]:
        return np.zeros(1), np.zeros(1), np.zeros(1)
    edges = np.linspace(times[0], times[-1], CURVE_POINTS + 1)
    busy = Levels(times, timeline["busy_processors"].to_numpy(float)).means(edges)
    queued = Levels(times, waiting(timeline, jobs)).means(edges)
    return (edges[:-1] - edges[0]) / 3600.0, busy / processors, queued


def _lost(sample: Sample, timeline: pd.DataFrame, predictions: pd.DataFrame) -> dict[str, float]:
    figures = sample.summary
    processors = float(figures.get("processors") or 1)
    times = timeline["time"].to_numpy(float)
    total = processors * float(figures.get("makespan") or np.nan)
    lasting = np.diff(times, append=times[-1:])
    idle = (processors - timeline["busy_processors"].to_numpy(float)) * lasting
    waiting = timeline["queued_jobs"].to_numpy() > 0
    used = float(figures.get("utilization") or np.nan)
    useful = figures.get("useful_utilization")
    known = useful if isinstance(useful, float) else np.nan
    lost = float(figures.get("loss_of_capacity_requested") or 0.0)
    wrong = (predictions["predicted"] - predictions["actual"]).abs() * predictions["nprocs"]
    return {
        "useful": known,
        "inefficiency": used - known,
        "unknown": used if np.isnan(known) else 0.0,
        "held_back": lost,
        "fragmentation": max(float(idle[waiting].sum()) / total - lost, 0.0),
        "no_demand": float(idle[~waiting].sum()) / total,
        "misprediction": float(wrong.sum()) / total,
    }


Drawn = Sequence[tuple[Group, Details]]


class Plot(NamedTuple):
    """One plot by the name of its files, and what it says without a picture.

    `left_out`, which groups are not drawn and why, stands on the picture.
    """

    name: str
    title: str
    caption: str
    draw: Callable[["Figure"], None]
    left_out: str = ""


def not_drawn(groups: Iterable[tuple[str, str]]) -> str:
    """Return in a sentence which groups are not drawn, given the label of each and why.

    Examples
    --------
    >>> not_drawn([("sa", "does not settle"), ("fcfs", "does not settle")])
    'Not drawn: sa; fcfs (does not settle).'
    """
    by_reason = grouped(groups, lambda one: one[1])
    parts = [f"{listed([name for name, _ in some])} ({why})" for why, some in by_reason.items()]
    return f"Not drawn: {', '.join(parts)}." if parts else ""


def axis_of(key: str, groups: Sequence[Group]) -> tuple[str, float]:
    """Return the label of a figure's axis, and one of its unit in the figure's own."""
    unit, scale = unit_of(key, [group.interval(key).mean for group in groups])
    name = key.replace("_", " ")
    return (f"{name} ({unit})" if unit else name), scale


def _bars(groups: Sequence[Group], key: str, figure: "Figure") -> None:
    """Draw a figure by policy (place) and predictor (colour), with intervals."""
    runs = {(group.policy, group.predictor) for group in groups if group.role == "run"}
    groups = [g for g in groups if g.role == "run" or (g.policy, g.predictor) not in runs]
    label, scale = axis_of(key, groups)

    axes = figure.add_subplot()
    policies = list(dict.fromkeys(group.policy for group in groups))
    predictors = list(dict.fromkeys(group.predictor for group in groups))
    width = 0.8 / max(len(predictors), 1)
    for number, predictor in enumerate(predictors):
        where = [group for group in groups if group.predictor == predictor]
        found = {
            policy: estimate(np.concatenate([group.values(key) for group in same]))
            for policy, same in grouped(where, lambda group: group.policy).items()
        }
        x = [policies.index(policy) + (number + 0.5) * width - 0.4 for policy in found]
        axes.bar(
            x,
            [value.mean / scale for value in found.values()],
            width * 0.94,
            yerr=[value.half / scale for value in found.values()],  # NaN draws none
            color=COLOURS[number % len(COLOURS)],
            edgecolor="#333333",
            linewidth=0.5,
            hatch=("", "//", "..", "xx")[number // len(COLOURS) % 4],
            error_kw={"elinewidth": 1.0, "capsize": 2.5},
            label=predictor or None,
        )
    axes.set_xticks(range(len(policies)), policies)
    axes.set(ylabel=label, ylim=(0, None))
    if any(predictors):
        style.legend(axes, "predictor")


def _load(drawn: Drawn, figure: "Figure") -> None:
    busy, queued = figure.subplots(2, 1, sharex=True)
    at = style.clock(0.0, max(float(found.hours[-1]) for _, found in drawn) * 3600)
    for number, (group, found) in enumerate(drawn):
        busy.plot(at.show(3600 * found.hours), 100 * found.busy, label=group.label, **line(number))
        queued.plot(at.show(3600 * found.hours), found.queued, **line(number))
    busy.set(ylabel="busy processors (%)", ylim=(0, 105))
    queued.set(ylabel="waiting jobs", xlabel=f"time since the first submit ({at.unit})")
    queued.set_ylim(bottom=0)
    style.legend(busy)


def _slowdowns(drawn: Drawn, figure: "Figure") -> None:
    axes = figure.add_subplot()
    for number, (group, found) in enumerate(drawn):
        axes.plot(found.slowdown, 100 * QUANTILES, label=group.label, **line(number))
    axes.set_xscale("log")
    axes.set(xlabel="bounded slowdown", ylabel="jobs at or below (%)", ylim=(0, 101))
    style.legend(axes)


def _errors(drawn: Drawn, column: str, label: str, figure: "Figure") -> None:
    axes = figure.add_subplot()
    for number, (group, found) in enumerate(drawn):
        series = getattr(found, column)
        axes.plot(
            series.index, 100 * series.to_numpy(),
            marker=MARKERS[number % len(MARKERS)], markersize=4,
            label=group.label, **line(number),
        )  # fmt: skip
    axes.set_xscale("symlog", base=2, linthresh=1)
    known = [float(x) for _, found in drawn for x in getattr(found, column).index]
    axes.set_xlim(min(known, default=0.0) - 0.5, 2.0 * max(known, default=1.0) or 2.0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_yscale("symlog", linthresh=1.0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set(xlabel=label, ylabel="median error of prediction (%)", ylim=(0, None))
    style.legend(axes)


def losses_of(found: Iterable[Details]) -> list[tuple[str, str, str, str]]:
    """Return the places where time is lost, what is unknown only where something is."""
    unknown = any(each.losses["unknown"] > 0 for each in found)
    return [place for place in LOSSES if unknown or place[0] != "unknown"]


def _losses(drawn: Drawn, figure: "Figure") -> None:
    axes, wrong = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1))
    places = np.arange(len(drawn))
    left = np.zeros(len(drawn))
    for name, label, colour, hatch in losses_of(found for _, found in drawn):
        share = 100 * np.nan_to_num([found.losses[name] for _, found in drawn])
        axes.barh(places, share, left=left, color=colour, hatch=hatch,
                  edgecolor="white", linewidth=0.5, label=label)  # fmt: skip
        left += share
    axes.set_yticks(places, [group.label for group, _ in drawn])
    axes.invert_yaxis()
    axes.set(xlabel="share of processors x makespan (%)", xlim=(0, 100))
    error = [100 * found.losses["misprediction"] for _, found in drawn]
    wrong.barh(places, np.nan_to_num(error), color="#0072B2")
    wrong.set(xlabel="planned wrongly (%)", xlim=(0, None))
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=8)


def _waits(groups: Sequence[Group], figure: "Figure") -> None:
    axes = figure.add_subplot()
    places = np.arange(len(groups))
    wait = np.array([group.interval("mean_wait_time").mean for group in groups])
    whole = np.array([group.interval("mean_response_time").mean for group in groups])
    label, scale = axis_of("mean_response_time", groups)
    axes.barh(places, wait / scale, color="#D55E00", hatch="//", edgecolor="white",
              label="waiting")  # fmt: skip
    axes.barh(places, (whole - wait) / scale, left=wait / scale, color="#56B4E9",
              label="running")  # fmt: skip
    axes.set_yticks(places, [group.label for group in groups])
    axes.invert_yaxis()
    axes.set_xlabel(label)
    style.legend(axes)


def in_turn(groups: Sequence[Group], most: int) -> list[Group]:
    """Return at most so many groups, one of each policy in turn, in their own order."""
    if len(groups) <= most:
        return list(groups)
    queues = grouped(groups, lambda group: (group.role, group.policy)).values()
    turns = [group for turn in zip_longest(*queues) for group in turn if group]
    return [group for group in groups if group in turns[:most]]


def plots_of(groups: Sequence[Group], found: Mapping[str, Details]) -> list[Plot]:
    """Return the plots of a comparison, given what tables say of groups by their labels."""
    chosen = in_turn([group for group in groups if group.label in found], MOST_LINES)
    drawn = [(group, found[group.label]) for group in chosen]
    no_line = {
        group: MANY if group.label in found else "no tables of its jobs"
        for group in groups
        if group not in chosen
    }
    some = not_drawn((group.label, why) for group, why in no_line.items())
    bars_of = in_turn(groups, MOST_BARS)
    no_bar = not_drawn((one.label, MANY) for one in groups if one not in bars_of)
    bars = "Means over all repetitions and all other settings; whiskers are 95 % intervals."
    plots = [
        Plot("response_time", "Response time", bars,
             partial(_bars, groups, "mean_response_time")),
        Plot("efficiency", "System efficiency", f"Σ T(1) over held processor-seconds. {bars}",
             partial(_bars, groups, "system_efficiency")),
        Plot("waiting", "Waiting and running", "Parts of the mean response time.",
             partial(_waits, bars_of), no_bar),
    ]  # fmt: skip
    if not drawn:
        return plots
    reads = "Of the first repetition of each group."
    some_of = "Of the first repetitions, whose tables are read (--detail)."
    medians = f"Median of |predicted − actual| / actual over completed runs. {some_of}"
    asked = [pair for pair in drawn if len(pair[1].by_count)]
    why = no_line | {group: NOBODY for group, details in drawn if not len(details.by_count)}
    bare = not_drawn((group.label, why[group]) for group in groups if group in why)
    return [
        *plots,
        Plot("load", "Load over time", reads, partial(_load, drawn), some),
        Plot("slowdown", "Bounded slowdown", f"Distribution over jobs. {some_of}",
             partial(_slowdowns, drawn), some),
        Plot("error_by_count", "Prediction error by processor count", medians,
             partial(_errors, asked, "by_count", "processors (from this power of two on)"), bare),
        Plot("error_by_history", "Prediction error by history", medians,
             partial(_errors, asked, "by_history",
                     "observations behind the prediction (from this many on)"), bare),
        Plot("losses", "Where time was lost",
             f"Left: the machine's time. Right: processor-seconds of wrong estimates. {some_of}",
             partial(_losses, drawn), some),
    ]  # fmt: skip


Labelled = Sequence[tuple[str, Interval]]


def interval_bars(rows: Labelled, label: str, figure: "Figure", mark: float = 0.0) -> None:
    """Draw means with whiskers in percent, the first at the top, and a line at `mark`."""
    axes = figure.add_subplot()
    places = np.arange(len(rows))
    means, low, high = np.array([(i.mean, i.low, i.high) for _, i in rows]).T / 0.01
    ends = np.nan_to_num([means - low, high - means], posinf=0.0)
    axes.errorbar(
        means, places, xerr=np.maximum(ends, 0.0), fmt="o", markersize=5, color=LINE_COLOURS[0],
        elinewidth=1.4, capsize=3,
    )  # fmt: skip
    axes.axvline(mark, color="#555555", linewidth=1.0, linestyle="--")
    axes.set_yticks(places, [name for name, _ in rows])
    axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel=label)


def load_lines(curves: Sequence[LoadCurve], label: str, scale: float, figure: "Figure") -> None:
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
    style.legend(axes)


def answer_plots(
    found: Sequence[Difference], curves: Sequence[LoadCurve], groups: Sequence[Group], key: str
) -> list[Plot]:
    """Return the plots of the answers that a comparison of groups by a figure has."""
    plots, name = [], key.replace("_", " ")
    paired = "On the same jobs, pair by pair; whiskers are 95 % intervals"
    paired += f", or, of fewer than {LEAST_PAIRS} pairs, their range."
    known = [one for one in found if np.isfinite(one.change.mean)]
    changes = [(one.group.label, one.span) for one in known[:MOST_BARS]]
    if changes:
        missing = not_drawn(
            (one.group.label, MANY if one in known else changed(one))
            for one in found
            if one not in known[:MOST_BARS]
        )
        against = " or ".join(dict.fromkeys(one.reference.label for one in found))
        points = "percentage points" if found[0].unit == POINTS else "%"
        draw = partial(interval_bars, changes, f"change of {name} ({points})")
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
        bare = [(one.label, one.says()) for one in curves if not one.points]
        missing = not_drawn([*bare, *((one.label, MANY) for one in told[MOST_LINES:])])
        draw = partial(load_lines, told[:MOST_LINES], *axis_of(key, groups))
        title = f"{name.capitalize()} over load"
        caption = "As far as the queue settles: beyond, means depend on the run's length."
        plots.append(Plot("load_curves", title, caption, draw, missing))
    return plots


def save(plot: Plot, folder: Path) -> str:
    """Write a plot as SVG, light and dark, and return the light one's text."""
    with style.new_figure((7.4, 4.4), 150, {"font.size": 9}) as figure:
        plot.draw(figure)
        style.tidy(*figure.axes)
        if plot.left_out:
            said = textwrap.fill(plot.left_out, NOTE_WIDTH)
            figure.supxlabel(said, x=0.01, ha="left", fontsize=7)
        light = style.write_svg(figure, folder / plot.name)
    (folder / f"{plot.name}.png").unlink(missing_ok=True)  # of former versions
    return light
