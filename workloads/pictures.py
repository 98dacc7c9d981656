"""Pictures of a log: sizes, runtimes, load over time, arrivals by hour, users, repetition."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workloads.base import FloatArray
from workloads.description import ALIKE, DAY_SECONDS, Description, daily_load

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
"""Of Okabe & Ito's palette, which the colour-blind can tell apart."""


def _cumulative(axes: "Axes", values: FloatArray, colour: str, label: str) -> None:
    ordered = np.sort(values)
    share = np.arange(1, len(ordered) + 1) / len(ordered)
    axes.step(ordered, share, where="post", color=colour, label=label)
    axes.set_ylim(0.0, 1.0)
    axes.set_ylabel("share of jobs")


def _sizes(axes: "Axes", of: Description) -> None:
    _cumulative(axes, of.jobs["requested_processors"].to_numpy(float), BLUE, "jobs")
    axes.set_xscale("log", base=2)
    axes.set_xlabel("processors")


def _runtimes(axes: "Axes", of: Description) -> None:
    _cumulative(axes, of.jobs["reference_runtime"].to_numpy(float), BLUE, "runtime")
    asked = of.jobs["requested_time"].dropna().to_numpy(float)
    if len(asked):
        _cumulative(axes, asked, ORANGE, "requested time")
    axes.set_xscale("log")
    axes.set_xlabel("time (s)")
    axes.legend(frameon=False)


def _load(axes: "Axes", of: Description) -> None:
    _, load = daily_load(of.jobs, of.processors)
    axes.plot(np.arange(len(load)), load, color=BLUE, linewidth=0.7, label="day")
    if len(load) >= 14:
        week = np.convolve(load, np.ones(7) / 7, mode="valid")
        axes.plot(np.arange(3, 3 + len(week)), week, color=ORANGE, label="week around it")
    axes.axhline(1.0, color="#777777", linewidth=0.8, linestyle="--")
    axes.set(xlabel="day since the first submit", ylabel="offered load")
    axes.set_ylim(0.0, max(float(np.percentile(load, 98)) * 1.3, 1.1))
    axes.legend(frameon=False)


def _arrivals(axes: "Axes", of: Description) -> None:
    hour = (of.jobs["submit_time"].to_numpy(float) % DAY_SECONDS) // 3600
    count = np.bincount(hour.astype(np.int64), minlength=24)
    axes.bar(np.arange(24), count / count.sum(), color=GREEN)
    axes.set(xlabel="hour of the trace's day", ylabel="share of jobs")


def _users(axes: "Axes", of: Description) -> None:
    jobs = of.jobs[of.jobs["user"] >= 0]
    if jobs.empty:
        axes.text(0.5, 0.5, "the log names no users", ha="center", transform=axes.transAxes)
        return
    area = jobs["requested_processors"] * jobs["reference_runtime"]
    for values, colour, label in (
        (jobs["user"].value_counts(), BLUE, "jobs"),
        (area.groupby(jobs["user"]).sum(), ORANGE, "processor-seconds"),
    ):
        share = np.cumsum(np.sort(values.to_numpy(float))[::-1]) / max(float(values.sum()), 1e-9)
        axes.step(np.arange(1, len(share) + 1), share, where="post", color=colour, label=label)
    axes.set(xlabel="users, busiest first", ylabel="share of the whole", ylim=(0.0, 1.02))
    axes.set_xscale("log")
    axes.legend(frameon=False)


def _repetition(axes: "Axes", of: Description) -> None:
    classes = of.jobs.groupby(list(ALIKE), dropna=False)
    count = classes.size().sort_values(ascending=False).to_numpy(float)
    share = np.cumsum(count) / count.sum()
    axes.step(np.arange(1, len(share) + 1), share, where="post", color=GREEN)
    axes.set(xlabel="classes of similar jobs, largest first", ylabel="share of jobs")
    axes.set_xscale("log")
    axes.set_ylim(0.0, 1.02)


PICTURES: dict[str, tuple[str, Callable[["Axes", Description], None]]] = {
    "sizes": ("How wide jobs are", _sizes),
    "runtimes": ("How long jobs run, and how long their users ask for", _runtimes),
    "load": ("Load over time", _load),
    "arrivals": ("When jobs arrive", _arrivals),
    "users": ("Who uses the machine", _users),
    "repetition": ("How often similar jobs come back", _repetition),
}
"""Title and drawing of each picture."""


def draw_pictures(of: Description, folder: Path) -> list[Path]:
    """Draw all pictures of a log as PNG and SVG, and return the files.

    Parameters
    ----------
    of : Description
    folder : pathlib.Path
        Made if missing.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams["svg.hashsalt"] = "moldsim"
        for name, (title, draw) in PICTURES.items():
            figure = Figure(figsize=(6.4, 3.8), dpi=120, layout="constrained")
            FigureCanvasAgg(figure)
            axes = figure.add_subplot()
            draw(axes, of)
            axes.set_title(f"{title} ({of.source})", loc="left", fontsize=10)
            axes.grid(visible=True, color="#E8E8E8", linewidth=0.7)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
            for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
                path = folder / f"{name}.{kind}"
                figure.savefig(path, metadata=metadata)
                written.append(path)
    return written
