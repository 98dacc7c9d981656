"""Pictures of one run, for papers and slides: ``moldsim plot RUN KIND``."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from predictors.cli.terminal import SILENT, Display, PlainConsole
from sim.config import BASELINE_PREDICTOR
from sim.errors import SimError
from sim.results.artefacts import BASELINE, place_of, read_summary, read_tables, tables_folder
from sim.results.durable import answering
from sim.results.plots.explorer import explorer_page
from sim.results.plots.pictures import EXPLORER, KINDS, REPLAYED, SCHEDULE, RunFolder, figure_of
from sim.results.plots.style import write_svg
from sim.simulation.progress import Names
from sim.sweeps.configurations import read_configuration

if TYPE_CHECKING:
    from sim.simulation.recorded_run import RecordedRun


def read_run(folder: Path, progress: Display = SILENT) -> RunFolder:
    """Return a finished simulation; of several replications the first.

    Raises
    ------
    SimError
        If the folder holds no finished run.
    """
    place = tables_folder(folder)
    summary = read_summary(place)
    tables = read_tables(place, progress)
    role, _, run = place_of(place)
    chosen = read_configuration(run)
    policy = chosen.value("baseline" if role else "policy")
    predictor = BASELINE_PREDICTOR if role == BASELINE else chosen.value("predictor")
    title = Names(str(policy), str(predictor), str(chosen.value("workload"))).title(summary)
    return RunFolder(tables, summary, title, partial(made_again, folder, progress))


def made_again(folder: Path, progress: Display = SILENT) -> "RecordedRun":
    """Return the run that is to be made again; what that takes is loaded only then."""
    from sim.simulation.recorded_run import recorded_run

    return replace(recorded_run(folder), progress=progress)


def _written(asked: argparse.Namespace, shown: Display) -> list[Path]:
    """Draw what is asked for, the same bytes each time; return the files."""
    doing = f"draws {asked.kind}"
    shown.show(doing, None if asked.kind in REPLAYED else 0.0)
    if asked.beside is not None and asked.kind != EXPLORER:
        raise SimError(f"--beside {asked.beside}: only {EXPLORER} shows two runs")
    folder: Path = asked.out or asked.run / "plots"
    if asked.kind == EXPLORER:
        runs = [read_run(one) for one in (asked.run, asked.beside) if one is not None]
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{EXPLORER}.html"
        path.write_text(explorer_page(runs), encoding="utf-8")
        return [path]
    with shown.part(0, 1.25):  # a fifth of the time goes into files
        run = read_run(asked.run, shown)
        drawn = figure_of(run, asked.kind, asked.columns, not asked.no_title, asked.of)
    shown.show(doing, 0.8)
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / asked.kind
    write_svg(drawn, stem)
    drawn.savefig(stem.with_suffix(".png"), metadata={"Software": None})
    return [stem.with_suffix(ending) for ending in (".svg", ".dark.svg", ".png")]


def numbers(text: str) -> list[int]:
    """Return whole numbers that stand between commas."""
    return [int(one) for one in text.split(",")]


@answering
def main(given: Sequence[str] | None = None) -> int:
    """Draw a picture of a run; return the exit status."""
    kinds = [f"{SCHEDULE}: processors over time, utilisation and queue below"]
    kinds += [f"{EXPLORER}: a page on which to zoom, hover over jobs and lay two runs side by side"]
    kinds += [f"{name}: {text}" for name, (text, _) in KINDS.items()]
    parser = argparse.ArgumentParser(
        prog="moldsim plot",
        description="A picture of a finished run as SVG, light and dark, and as PNG.",
        epilog="kinds: " + "; ".join(kinds),
    )
    parser.add_argument("run", type=Path, help="folder of a run, a replication or a baseline")
    parser.add_argument("kind", help="what it shows")
    parser.add_argument("--columns", type=int, choices=(1, 2), default=1,
                        help="columns of a paper that it fills (default 1)")  # fmt: skip
    parser.add_argument("--no-title", action="store_true", help="without policy and workload")
    parser.add_argument("--of", type=numbers, default=[], metavar="N[,N]",
                        help="which jobs (of resized) or applications (of speedups)")  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="FOLDER",
                        help="where to write KIND.svg, .dark.svg, .png (RUN/plots)")  # fmt: skip
    parser.add_argument("--beside", type=Path, metavar="RUN",
                        help="explorer: another run, on the same time axis")  # fmt: skip
    asked = parser.parse_args(given)
    with Display(PlainConsole(stderr=True), "plot") as shown:
        written = _written(asked, shown)
    for path in written:
        PlainConsole().print(f"wrote {path}", highlight=False, soft_wrap=True, markup=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
