"""How far simulated schedules are from what a log recorded: ``moldsim backtest LOG``."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

from predictors.cli.terminal import SILENT, Display, PlainConsole, fitting_tables
from sim.composition import options_below
from sim.errors import ConfigError
from sim.help.interrupts import goes_on
from sim.help.pages import CONFIG_FOLDER
from sim.results import durable
from sim.results.sentences import BACKTEST, backtest_folder, distance
from sim.site import site_logs
from sim.site.candidate_schedules import MOST_WORK, Candidate, kept_starts, work_of_conservative
from sim.site.comparison import Backtest, Compared, changes, compare, jobs_frame, reasons
from sim.site.site_logs import Recorded
from sim.site.site_pages import HEAD, candidate_rows, change_lines, write_backtest_page
from sim.sweeps.configurations import folder_name
from workloads.base import Trace

JOBS, PAGE = "backtest_jobs.parquet", "backtest.html"
USUAL = ("fcfs", "easy", "conservative", "sjf", "saf", "wfp3")
CAPACITIES = ("constant", "recorded")
MISSING = "missing_requested_time"
FEW = 0.01
"""Share of jobs without a limit up to which how these are filled does not matter."""
STRICT = "fcfs"
"""Believes in no limit."""
OF_LOG = ("workload=", "workload.path=", "workload.name=", "workload.partition=")
"""Overrides that say which log it is, or which part of it."""


@dataclass
class Options:
    """Keys below ``backtest.``.

    Attributes
    ----------
    candidates : list of str
        Policy presets, and orders, which stand for EASY in that order.
    capacity : str
        ``constant``, or ``recorded``: without what the log shows to have been missing.
    begin : str
        ``steady``: when the machine is first as full as it is half of the time; or
        seconds after the first submit.
    changes : bool
        Whether the nearest candidate is played again with one thing changed at a time.
    folder : str or None
        Where results go; None: ``backtests/NAME-CHECKSUM``, with overrides such as
        ``cluster.processors-128`` behind a comma, and below it ``capacity=recorded`` and the
        like, of which later runs do not speak.
    """

    candidates: list[str]
    capacity: str = "constant"
    begin: str = "steady"
    changes: bool = False
    folder: str | None = None


def options(given: Sequence[str]) -> Options:
    """Return the keys below ``backtest.`` of a command line."""
    names = "backtest.candidates="
    listed = [
        f"{names}[{one.removeprefix(names)}]" if one.startswith(names) and "[" not in one else one
        for one in given
    ]
    found: Options = options_below("backtest.", Options(list(USUAL)), listed)
    if found.capacity not in CAPACITIES:
        raise ConfigError(f"backtest.capacity={found.capacity}: must be constant or recorded")
    if found.begin != "steady" and not 0 <= pd.to_numeric(found.begin, errors="coerce") < np.inf:
        raise ConfigError(
            f"backtest.begin={found.begin}: must be steady or seconds after the first submit"
        )
    if not found.candidates or len(set(found.candidates)) < len(found.candidates):
        raise ConfigError(f"backtest.candidates={found.candidates}: must be schedulers, each once")
    for name in found.candidates:
        _scheduler(name)
    return found


def _scheduler(name: str) -> tuple[str, ...]:
    """Return the overrides of a candidate: a preset, or an order in which EASY takes jobs."""
    presets, orders = (
        {path.stem for path in (CONFIG_FOLDER / group).glob("*.yaml")}
        for group in ("policy", "policy/order")
    )
    if name in presets and name != "recorded":
        return (f"policy={name}",)
    if name in orders:
        return ("policy=easy", f"policy/order={name}")
    raise ConfigError(
        f"backtest.candidates: there is no scheduler {name}; give policy presets such as easy, or "
        f"orders in which EASY takes jobs: {', '.join(sorted(orders))}"
    )


def backtest(
    overrides: Sequence[str], own: Options, shown: Display = SILENT, keep: bool = False
) -> Backtest:
    """Replay a log under candidate schedulers and compare them with what it recorded.

    Parameters
    ----------
    overrides : sequence of str
        Of the workload, the cluster and the seed.
    own : Options
    shown : Display, optional
        Shows which candidate is played, and what time is left.
    keep : bool
        Whether starts by each candidate are kept in the folder of results until these are written.

    Raises
    ------
    SimError, WorkloadError, PredictorError
        If the input is at fault.
    """
    shown.show("reads the log")
    trace, asked = site_logs.read_source(site_logs.composed(overrides), waits=True)
    found = site_logs.recorded_schedule(trace, asked)
    without_limit = trace.repaired.get(MISSING, 0) / len(trace.jobs)
    steady = own.begin == "steady"
    begin = site_logs.steady_begin(found) if steady else found.begin + float(own.begin)
    found = replace(found, begin=begin)
    if not found.judged.any():
        raise ConfigError(f"backtest.begin={own.begin}: no job with a recorded wait starts later")
    given = tuple(one for one in overrides if not one.startswith(OF_LOG))
    folder = folder_of(own, trace, given) if keep else None
    missing = tuple(site_logs.outages_of(found)) if own.capacity == "recorded" else ()
    played: list[Compared] = []
    left: dict[str, str] = {}
    every = _candidates(own.candidates, overrides, found, without_limit >= FEW)
    for place, candidate in enumerate(every):
        shown.show(f"simulates {candidate.name}, {place + 1} of {len(every)}", place / len(every))
        if candidate.is_conservative:
            if missing:
                left[candidate.name] = "its reservations cannot be planned around outages"
                continue
            easy = (one.start for one in played if one.name.startswith("easy"))
            work = work_of_conservative(found, next(easy, found.start))
            if work > MOST_WORK:
                left[candidate.name] = (
                    f"it would check {work:,.0f} reservations per job, more than {MOST_WORK:,.0f}"
                )
                continue
        start = kept_starts(folder, found, candidate, list(missing))
        played.append(compare(found, candidate.name, start))
    if not played:
        said = "; ".join(map(": ".join, left.items()))
        raise ConfigError(f"backtest.candidates: none can be simulated: {said}")
    why = tuple(reasons(found, played, without_limit))
    done = Backtest(found, tuple(played), left, why, missing, given=given)
    if not own.changes:
        return done
    near = next(one for one in every if one.name == done.nearest.name)
    return replace(done, changes=tuple(changes(found, near.name, near.config)))


def _candidates(
    names: Sequence[str], overrides: Sequence[str], found: Recorded, many_missing: bool
) -> list[Candidate]:
    """Return what is to be played; with exact and with modelled limits where many are missing."""
    first = site_logs.beginning(found)
    if many_missing:
        config = site_logs.composed(overrides)
        cleaning = {**(config["workload"].get("cleaning") or {}), MISSING: "exact"}
        workload = {**config["workload"], "cleaning": cleaning}
        twin, _ = site_logs.read_source({**config, "workload": workload}, quiet=True)
        jobs = found.trace.jobs.assign(requested_time=twin.jobs["requested_time"].to_numpy(float))
        known = site_logs.beginning(replace(found, trace=replace(found.trace, jobs=jobs)))
    every = []
    for name in names:
        config = site_logs.composed([*overrides, *_scheduler(name)])
        if not many_missing or name == STRICT:
            every.append(Candidate(name, config, first))
            continue
        every += [Candidate(f"{name}_exact", config, known),
                  Candidate(f"{name}_modelled", config, first)]  # fmt: skip
    return every


def folder_of(own: Options, trace: Trace, given: Sequence[str]) -> Path:
    """Return where results go; those of fewer candidates go below those of more, which stay."""
    if own.folder:
        return Path(own.folder)
    asked = {name: getattr(own, name) for name in ("capacity", "begin")}
    trial = [f"{name}={value}" for name, value in asked.items() if value != getattr(Options, name)]
    usual = backtest_folder(trace.source, trace.checksum)
    words = [usual.name, *(one.replace("=", "-") for one in sorted(given))]  # = is for columns
    place = usual.with_name(folder_name(",".join(words)) if given else usual.name) / ",".join(trial)
    known = durable.known_object(place / BACKTEST) or {}
    there = {one["name"] for one in known.get("candidates", ())}
    if set(own.candidates) < there:
        place /= f"candidates={','.join(own.candidates)}"
    return place


def write(done: Backtest, folder: Path) -> list[Path]:
    """Write the results of a backtest, ``backtest.json`` last; what was kept for them goes."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / BACKTEST).unlink(missing_ok=True)
    with durable.replaced(folder / JOBS) as path:
        jobs_frame(done.found, done.candidates).to_parquet(path, index=False)
    figures = done.figures()
    write_backtest_page(folder / PAGE, figures, done)
    durable.write_whole(folder / BACKTEST, durable.as_json(figures))
    durable.clear_partial(folder)
    return [folder / name for name in (BACKTEST, JOBS, PAGE)]


def main(given: Sequence[str] | None = None) -> int:
    """Backtest a log; return the exit status."""
    about = "How far simulated schedules are from the recorded one of a log."
    keys = (
        "backtest.candidates=[easy,sjf] (policy presets, or orders in which EASY takes jobs), "
        "backtest.capacity=recorded (without what the log shows to have been missing), "
        "backtest.begin=steady or seconds after the first submit, backtest.changes=true (what the "
        "distance is made of: the nearest candidate with one thing changed), backtest.folder=DIR"
    )
    logs = "SWF, sacct, Batsim or a table, plain or .gz"
    return site_logs.answered("moldsim backtest", about, keys, logs, given, _answer)


def _answer(words: Sequence[str]) -> int:
    own = options([one for one in words if one.startswith("backtest.")])
    rest = site_logs.of_log([one for one in words if not one.startswith("backtest.")])
    if not rest:
        raise ConfigError("no log is given: moldsim backtest LOG")
    goes_on(["moldsim", "backtest", *words])
    with Display(PlainConsole(stderr=True), "backtest") as shown:
        done = backtest(rest, own, shown, keep=True)
    written = write(done, folder_of(own, done.found.trace, done.given))
    show(durable.table_console(), done, written)
    return 0


def show(console: Console, done: Backtest, written: Sequence[Path]) -> None:
    """Print the verdict, the candidates, the reasons, and where results lie."""
    figures = done.figures()
    console.print(distance(figures), style="bold", markup=False, highlight=False)
    console.print(fitting_tables(HEAD, candidate_rows(figures), console.width, 2))
    for name, why in done.left_out.items():
        console.print(f"{name} is left out: {why}.", style="dim", markup=False, highlight=False)
    told = [f"- {one.text}" for one in done.reasons]
    for line in [*told, *change_lines(figures), f"Written: {', '.join(map(str, written))}"]:
        console.print(line, markup=False, highlight=False)


if __name__ == "__main__":
    sys.exit(main())
