"""Pictures of one run, for papers and slides: ``python -m sim.plot RUN KIND``."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rich.console import Console

from predictors.base import FloatArray
from sim.config import BASELINE_PREDICTOR
from sim.errors import SimError
from sim.report.answers import count_bin, job_class
from sim.results.artefacts import BASELINE, STEP, is_finished, read_summary
from sim.results.frames import Tables, read_tables
from sim.results.job_metrics import Figures
from sim.results.plots.explorer import Explored, explorer_page
from sim.results.plots.panels import BUSY, QUEUE, Panel, curve, rectangles
from sim.results.plots.schedule import schedule_figure
from sim.results.plots.style import INK, clock, legend, line, tidy
from sim.sweeps.configurations import read_configuration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTHS = {1: 3.5, 2: 7.2}
"""Inches of one and two columns of a paper."""
HEIGHT = 0.68
"""Of a picture, as a share of its width; a tenth more where it is in one column."""
MOST_RESIZED = 8
HISTORY = (0, 1, 2, 3, 5, 10, 20, 50, 100)
"""Observations behind a belief: lower ends of the bins."""
LEAST = 5
"""Runs of which a median is shown."""


@dataclass(frozen=True)
class RunFolder:
    """A finished simulation as its artefacts tell it.

    Attributes
    ----------
    tables : Tables
    summary : dict
    title : str
    """

    tables: Tables
    summary: Figures
    title: str

    @property
    def jobs(self) -> pd.DataFrame:
        """The jobs without calibration runs."""
        return self.tables.jobs[self.tables.jobs["job_id"] >= 0]

    @property
    def processors(self) -> int:
        """Processors of the machine."""
        return int(self.summary["processors"] or 1)


def read_run(folder: Path) -> RunFolder:
    """Return a finished simulation; of several replications the first.

    Raises
    ------
    SimError
        If the folder holds no finished run.
    """
    place = folder / "replication=0" if (folder / "replication=0").is_dir() else folder
    if not is_finished(place) or not (place / "jobs.parquet").is_file():
        raise SimError(f"{folder}: there is no finished run with its tables")
    summary = read_summary(place)
    return RunFolder(read_tables(place), summary, _title(place, summary))


def _title(folder: Path, summary: Figures) -> str:
    """Return policy, predictor, workload, jobs and processors of a simulation."""
    role = folder.name if folder.name in (BASELINE, STEP) else ""
    above = folder.parent if role else folder
    run = above if (above / ".hydra").is_dir() else above.parent
    chosen = read_configuration(run)
    policy = chosen.value("baseline" if role else "policy")
    predictor = BASELINE_PREDICTOR if role == BASELINE else chosen.value("predictor")
    of = ", ".join(f"{one}" for one in (f"{policy} by {predictor}", chosen.value("workload")))
    return f"{of}: {summary['jobs']:,} jobs on {summary['processors']:,} processors"


def _load(figure: "Figure", run: RunFolder) -> None:
    busy, queue = figure.subplots(2, 1, sharex=True)
    jobs, timeline = run.tables.jobs, run.tables.timeline
    at = clock(float(jobs["submit_time"].min()), float(jobs["end_time"].max()))
    none = rectangles(np.zeros(0), np.zeros(0), [])
    panel = Panel(none, at.begin, at.end, at, run.processors)
    times = timeline["time"].to_numpy()
    used = 100 * timeline["busy_processors"].to_numpy(np.float64) / run.processors
    curve(busy, times, used, panel, BUSY)
    curve(queue, times, timeline["queued_jobs"].to_numpy(np.float64), panel, QUEUE)
    busy.set(ylabel="busy (%)", ylim=(0, 105))
    queue.set(ylabel="jobs waiting", xlabel=f"time since the first submit ({at.unit})")
    queue.set_ylim(bottom=0)
    for axes in (busy, queue):
        tidy(axes)


def _map(
    axes: "Axes", x: FloatArray, y: FloatArray, names: tuple[str, str], bins: "list[FloatArray]"
) -> None:
    """Draw how many jobs lie where on two logarithmic axes, and where both are the same."""
    from matplotlib.colors import LogNorm

    drawn = axes.hist2d(x, y, bins=bins, norm=LogNorm(vmin=1.0), cmap="cividis_r")
    ends = [min(bins[0][0], bins[1][0]), max(bins[0][-1], bins[1][-1])]
    axes.plot(ends, ends, color=INK, linewidth=0.8, linestyle="--")
    axes.set(xscale="log", yscale="log", xlabel=names[0], ylabel=names[1])
    axes.set_xlim(bins[0][0], bins[0][-1])
    axes.set_ylim(bins[1][0], bins[1][-1])
    assert axes.figure is not None
    axes.figure.colorbar(drawn[3], ax=axes, label="jobs")
    tidy(axes)


def _processors(figure: "Figure", run: RunFolder) -> None:
    asked = run.jobs["requested_processors"].to_numpy(np.float64)
    given = run.jobs["allocated_processors"].to_numpy(np.float64)
    powers = int(np.ceil(np.log2(max(asked.max(initial=1), given.max(initial=1))))) + 1
    bins = np.exp2(np.arange(powers + 1, dtype=np.float64) - 0.5)
    axes = figure.add_subplot()
    _map(axes, asked, given, ("requested processors", "given processors"), [bins, bins])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")


def _done(run: RunFolder) -> pd.DataFrame:
    """Return the predictions of completed runs of jobs with their errors; never empty."""
    every = run.tables.predictions
    known: pd.DataFrame = every[np.isfinite(every["actual"]) & (every["job_id"] >= 0)]
    if not len(known):
        raise SimError("nothing was predicted in this run that was completed")
    return known.assign(error=(known["predicted"] - known["actual"]).abs() / known["actual"])


def _runtimes(figure: "Figure", run: RunFolder) -> None:
    done = _done(run)
    true, believed = done["actual"].to_numpy(), done["predicted"].to_numpy()
    both = np.concatenate([true, believed])
    bins = np.geomspace(both.min() / 1.1, both.max() * 1.1, 49)
    _map(figure.add_subplot(), true, believed,
         ("true runtime (s)", "believed at the start (s)"), [bins, bins])  # fmt: skip


def _waits(figure: "Figure", run: RunFolder) -> None:
    axes = figure.add_subplot()
    classes = job_class(run.jobs)
    for place, name in enumerate(("narrow_short", "narrow_long", "wide_short", "wide_long")):
        wait = np.sort(run.jobs.loc[classes == name, "wait_time"].to_numpy() / 60)
        if len(wait):
            share = 100 * np.arange(1, len(wait) + 1) / len(wait)
            label = f"{name.replace('_', ', ')} ({len(wait):,})"
            axes.step(wait, share, where="post", label=label, **line(place))
    axes.set_xscale("symlog", linthresh=1.0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set(xlabel="wait (min)", ylabel="jobs at or below (%)", ylim=(0, 101))
    axes.set_xlim(left=0)
    axes.legend(frameon=False, fontsize="small", loc="lower right")
    tidy(axes)


def _errors(figure: "Figure", run: RunFolder) -> None:
    done = _done(run)
    place = np.searchsorted(HISTORY, done["observations"].to_numpy(), side="right") - 1
    parts = done.assign(history=place, count=count_bin(done["nprocs"])).groupby(
        ["history", "count"]
    )
    median, size = parts["error"].median().unstack(), parts.size().unstack()
    counts = sorted(median.columns, key=lambda name: int(str(name).split("-")[0].split()[0]))
    shown = (100 * median.where(size >= LEAST))[counts]
    axes = figure.add_subplot()
    drawn = axes.imshow(shown.to_numpy(), origin="lower", aspect="auto", cmap="cividis_r",
                        vmin=0.0, vmax=100.0)  # fmt: skip
    axes.set_xticks(range(len(counts)), counts, rotation=30)
    axes.set_yticks(range(len(shown)), [str(HISTORY[k]) for k in shown.index])
    axes.set(xlabel="processors", ylabel="runs seen (from this many on)")
    assert axes.figure is not None
    axes.figure.colorbar(drawn, ax=axes, label="median error (%)", extend="max")
    for (row, column), value in np.ndenumerate(shown.to_numpy()):
        if np.isfinite(value):
            colour = "white" if value > 55 else "black"
            axes.text(column, row, f"{value:.0f}", ha="center", va="center", color=colour,
                      fontsize="small")  # fmt: skip


def _resized(figure: "Figure", run: RunFolder) -> None:
    held = run.tables.allocations
    changes = held.groupby(["job_id", "run"]).size().sort_values(ascending=False, kind="stable")
    often: list[Any] = [key for key, number in changes.items() if number > 1][:MOST_RESIZED]
    if not often:
        raise SimError("no job was resized in this run")
    axes = figure.add_subplot()
    origin = float(run.tables.jobs["submit_time"].min())
    for place, (job, number) in enumerate(often):
        own = held[(held["job_id"] == job) & (held["run"] == number)]
        time = np.append(own["start_time"], own["end_time"].iloc[-1]) - origin
        count = np.append(own["processors"], own["processors"].iloc[-1])
        axes.step(time / 3600, count, where="post", label=f"job {job}", **line(place))
    axes.set(xlabel="time since the first submit (h)", ylabel="processors")
    axes.set_ylim(bottom=0)
    legend(axes)
    tidy(axes)


@dataclass(frozen=True)
class Kind:
    """A kind of picture: what it shows, and what draws it."""

    text: str
    draw: Callable[[Any, RunFolder], None]


KINDS = {
    "load": Kind("utilisation and queue over time", _load),
    "processors": Kind("given against requested processors", _processors),
    "runtimes": Kind("runtimes believed at the start against true ones", _runtimes),
    "waits": Kind("distribution of waits by class of job", _waits),
    "errors": Kind("median error of prediction by processors and history", _errors),
    "resized": Kind("processors over time of the jobs that were resized most often", _resized),
}
SCHEDULE = "schedule"
"""The kind that has a size of its own."""
EXPLORER = "explorer"
"""The kind that is a page to look into."""


def figure_of(run: RunFolder, kind: str, columns: int = 1, title: bool = True) -> "Figure":
    """Return a picture of a run.

    Parameters
    ----------
    run : RunFolder
    kind : str
        ``schedule`` or one of `KINDS`.
    columns : {1, 2}
        Of a paper, for the size; a schedule has its own.
    title : bool
        Whether it names policy, predictor and workload.

    Raises
    ------
    SimError
        If the kind is unknown, or the run has nothing of it.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    name = run.title if title else ""
    if kind == SCHEDULE:
        return schedule_figure(run.tables, run.processors, name)
    if kind not in KINDS:
        raise SimError(f"KIND {kind}: must be one of {', '.join([SCHEDULE, EXPLORER, *KINDS])}")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"font.size": 8, "svg.hashsalt": kind})
        size = (WIDTHS[columns], WIDTHS[columns] * (HEIGHT if columns == 1 else HEIGHT - 0.2))
        figure = Figure(figsize=size, dpi=300, layout="constrained")
        FigureCanvasAgg(figure)
        KINDS[kind].draw(figure, run)
        if name:
            figure.suptitle(name, fontsize=7, color=INK)
        figure.draw_without_rendering()
    return figure


def write_explorer(runs: Sequence[RunFolder], path: Path) -> list[Path]:
    """Write the page to look into one run, or two on one time axis; return the file."""
    page = explorer_page([Explored(run.title, run.tables, run.processors) for run in runs])
    path.write_text(page, encoding="utf-8")
    return [path]


def write_figure(figure: "Figure", stem: Path) -> list[Path]:
    """Write a picture as SVG and PNG, the same bytes each time; return the files."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": stem.name}):
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(stem.with_suffix(".png"), metadata={"Software": None})
    return [stem.with_suffix(".svg"), stem.with_suffix(".png")]


def _written(asked: argparse.Namespace) -> list[Path]:
    """Draw what is asked for; return the files."""
    if asked.beside is not None and asked.kind != EXPLORER:
        raise SimError(f"--beside {asked.beside}: only {EXPLORER} shows two runs")
    folder: Path = asked.out or asked.run / "plots"
    if asked.kind == EXPLORER:
        places = [asked.run, *([] if asked.beside is None else [asked.beside])]
        runs = list(map(read_run, places))
        folder.mkdir(parents=True, exist_ok=True)
        return write_explorer(runs, folder / f"{EXPLORER}.html")
    figure = figure_of(read_run(asked.run), asked.kind, asked.columns, not asked.no_title)
    folder.mkdir(parents=True, exist_ok=True)
    return write_figure(figure, folder / asked.kind)


def main(given: Sequence[str] | None = None) -> int:
    """Draw a picture of a run; return the exit status."""
    kinds = [f"{SCHEDULE}: the whole and its busiest week"]
    kinds += [f"{EXPLORER}: a page to zoom into, hover over jobs and lay two runs side by side"]
    kinds += [f"{name}: {kind.text}" for name, kind in KINDS.items()]
    parser = argparse.ArgumentParser(
        prog="python -m sim.plot",
        description="A picture of a finished run as SVG and PNG.",
        epilog="kinds: " + "; ".join(kinds),
    )
    parser.add_argument("run", type=Path, help="folder of a run, a replication or a baseline")
    parser.add_argument("kind", help="what it shows")
    parser.add_argument("--columns", type=int, choices=(1, 2), default=1,
                        help="columns of a paper that it fills (default 1)")  # fmt: skip
    parser.add_argument("--no-title", action="store_true", help="without policy and workload")
    parser.add_argument("--out", type=Path, metavar="FOLDER",
                        help="where to write KIND.svg and KIND.png (RUN/plots)")  # fmt: skip
    parser.add_argument("--beside", type=Path, metavar="RUN",
                        help="explorer: another run, on the same time axis")  # fmt: skip
    asked = parser.parse_args(given)
    try:
        written = _written(asked)
    except (SimError, OSError) as error:
        Console(stderr=True).print(f"error: {error}", markup=False, soft_wrap=True)
        return 2
    for path in written:
        Console().print(f"wrote {path}", highlight=False, soft_wrap=True, markup=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
