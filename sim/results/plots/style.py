"""What all plots have alike: colours, lines, the frame, the time axis, light and dark."""

import base64
import datetime
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from html import escape
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from predictors.base import FloatArray
from sim.results.durable import write_whole
from sim.results.outcome import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#0072B2", "#D55E00", "#999999")
"""Okabe & Ito's palette, which the colour-blind can tell apart."""
INK, PALE = "#333333", "#E8E8E8"
BLACK, WHITE = "#010101", "#FEFEFE"
"""What is written on colours, which are the same in the dark."""
DARK = {
    "#000000": "#e4e8ec",
    "#333333": "#c9d1d9",
    "#555555": "#a9b3bd",
    "#bdbdbd": "#7d8791",
    "#cccccc": "#4a545e",
    "#e8e8e8": "#343d46",
    "#ffffff": "#161b20",
    "#0072b2": "#4093d6",
    "#d55e00": "#ec7a2c",
}
"""Colours of a picture, and what they are on a dark page."""
STYLES = ("-", "--", "-.", ":")
LINE_COLOURS = (*(COLOURS[place] for place in (5, 6, 2, 4, 1, 0)), "#000000", COLOURS[7])
"""Those first that stand out from white; black in place of yellow, which does not."""
MARKS = (
    *((1.0, "1 s"), (10.0, "10 s"), (60.0, "1 min"), (600.0, "10 min"), (3600.0, "1 h")),
    *((36000.0, "10 h"), (345600.0, "4 d"), (2592000.0, "30 d"), (31536000.0, "1 a")),
)
"""Marks of a logarithmic axis of seconds."""
DAY = 86400.0
TIME_UNITS = (("s", 1.0), ("min", 60.0), ("h", 3600.0), ("d", DAY))
"""Units of the time axis with their seconds."""


class Times(NamedTuple):
    """The time axis: seconds from `begin` to `end`, shown as multiples of a unit or as dates.

    `epoch` is 0 of its clock since 1970, where the log has dates.
    """

    begin: float
    end: float
    unit: str
    seconds: float
    epoch: float | None = None

    def show(self, time: FloatArray) -> FloatArray:
        """Return times as the axis shows them."""
        if self.epoch is not None:
            return (time + self.epoch) / DAY
        return (time - self.begin) / self.seconds

    @property
    def shown(self) -> tuple[float, float]:
        """Both ends as the axis shows them."""
        begin, end = self.show(np.array([self.begin, self.end])).tolist()
        return begin, end

    def mark(self, axes: "Axes") -> None:
        """Label the axis of time of a panel, and mark it by date where the log has dates."""
        if self.epoch is None:
            axes.set_xlabel(f"time since the first submit ({self.unit})")
            return
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        marks = AutoDateLocator(tz=datetime.UTC)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(marks)
        shown = ConciseDateFormatter(marks, tz=datetime.UTC)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_formatter(shown)
        axes.set_xlabel("date (UTC)")


def clock(begin: float, end: float, epoch: object = None) -> Times:
    """Return a time axis whose unit suits its length; `epoch` is 0 of its clock since 1970.

    Examples
    --------
    >>> clock(0.0, 7200.0).unit, clock(0.0, 864000.0).unit
    ('min', 'd')
    >>> clock(0.0, 7200.0, 893_462_400.0).shown
    (10341.0, 10341.083333333334)
    """
    length = max(end - begin, 1e-9)
    name, seconds = [unit for unit in TIME_UNITS if length >= 4 * unit[1] or unit[0] == "s"][-1]
    known = None
    if isinstance(epoch, int | float) and name != "s":  # a few seconds have no dates to mark
        with suppress(OverflowError, ValueError, OSError):
            for one in (begin, begin + length):
                datetime.datetime.fromtimestamp(epoch + one, datetime.UTC)
            known = epoch
    return Times(begin, begin + length, name, seconds, known)


@contextmanager
def new_figure(
    size: tuple[float, float], dpi: int, settings: Mapping[Any, Any] = MappingProxyType({})
) -> Iterator["Figure"]:
    """Give an empty figure of a size in inches, drawn by Matplotlib's own settings but for some."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "constrained_layout not applied")  # for long labels
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        figure = Figure(figsize=size, dpi=dpi, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure


def svg_of(figure: "Figure", name: str) -> str:
    """Return a picture as SVG, the same bytes each time; its name tells its parts apart."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": name}):
        drawn = StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return drawn.getvalue()


def in_dark(svg: str) -> str:
    """Return an SVG of Matplotlib in the palette of dark pages.

    Examples
    --------
    >>> in_dark('<svg id="#ffffff"><path style="fill: #ffffff; stroke: #009e73"/></svg>')
    '<svg fill="#e4e8ec" id="#ffffff"><path style="fill: #161b20; stroke: #009e73"/></svg>'
    """
    svg = re.sub(r"(?<=: )#[0-9a-f]{6}", lambda found: DARK.get(found[0], found[0]), svg)
    return svg.replace("<svg ", f'<svg fill="{DARK["#000000"]}" ', 1)  # black is not written


def write_svg(figure: "Figure", stem: Path) -> str:
    """Write a picture as SVG, ``.svg`` and for dark pages ``.dark.svg``; return the light one."""
    light = svg_of(figure, stem.name)
    for ending, text in ((".svg", light), (".dark.svg", in_dark(light))):
        write_whole(stem.with_suffix(ending), text)
    return light


def picture(svg: str, alternative: str) -> str:
    """Return a picture within a page, dark on dark screens."""
    light, dark = (base64.b64encode(one.encode()).decode() for one in (svg, in_dark(svg)))
    media, data = "screen and (prefers-color-scheme: dark)", "data:image/svg+xml;base64,"
    source = f'<source media="{media}" srcset="{data}{dark}">'
    return f'<picture>{source}<img src="{data}{light}" alt="{escape(alternative)}"></picture>'


def calibration_note(figure: "Figure", jobs: Table) -> None:
    """Say on a picture how many calibration runs are in it, if any."""
    runs = int((np.asarray(jobs["job_id"]) < 0).sum())
    if runs:
        said = f"Calibration runs ({runs:,}) are drawn, as in tables; their waits are not."
        figure.supxlabel(said, x=0.01, ha="left", fontsize=7, color=INK)


def time_ticks(axis: "Axis", least: float = 0.0) -> None:
    """Mark a logarithmic axis of seconds, from `least` on, at times that a person reads."""
    shown = [mark for mark in MARKS if mark[0] >= least]
    axis.set_ticks([seconds for seconds, _ in shown], labels=[name for _, name in shown])
    axis.set_minor_formatter(lambda value, _: "")


def tidy(*every: "Axes") -> None:
    """Give axes the grid and the frame that all plots have."""
    for axes in every:
        axes.grid(visible=True, color=PALE, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)


def legend(axes: "Axes", title: str = "") -> None:
    """Put the legend beside the axes, if anything is drawn there."""
    if not axes.get_legend_handles_labels()[0]:
        return
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
