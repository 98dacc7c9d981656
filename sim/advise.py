"""What a site's own accounting says to its users: ``moldsim advise JOBS``."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from predictors.cli.terminal import SILENT, Display, PlainConsole, fitting_tables
from sim.composition import options_below
from sim.errors import ConfigError, SimError
from sim.results.artefacts import read_table
from sim.results.durable import as_json, sha256, table_console, write_csv, write_whole
from sim.results.metrics import mean
from sim.results.sentences import backtest_folder, backtest_sentence
from sim.site.candidate_schedules import expected_wait
from sim.site.evidence import WHY, Proposal, advice_of, asked_on, clock_time, walltimes, with_starts
from sim.site.site_logs import answered, composed, of_log, read_source
from sim.site.site_pages import advice_rows, advice_sentences, write_advice_page
from workloads.base import Trace, most_held

TABLE, FIGURES, PAGE = "advice.csv", "advice.json", "advice.html"
REPEATED = 3
"""Jobs from which on an application repeats."""
MOST_STARTS = 60
"""Replays for expected starts; applications with most jobs come first."""
RUN = "jobs.parquet"
COMPLETED = 1
"""Status of a job that ended well, in the Standard Workload Format."""


@dataclass
class Options:
    """Keys below ``advise.``.

    Attributes
    ----------
    until : float
        Share of the jobs, by submit, that advice is made from; the others judge it.
    starts : bool
        Whether expected starts are replayed.
    folder : str or None
        Where results go; None: ``backtests/NAME-CHECKSUM``, below it ``until=SHARE`` with such.
    """

    until: float = 1.0
    starts: bool = True
    folder: str | None = None


def options(given: Sequence[str]) -> Options:
    """Return the keys below ``advise.`` of a command line."""
    found: Options = options_below("advise.", Options(), given)
    if not 0 < found.until <= 1:
        raise ConfigError(f"advise.until={found.until:g}: must be above 0 and at most 1")
    return found


@dataclass(frozen=True)
class Jobs:
    """The past jobs of a machine.

    Attributes
    ----------
    runs : pandas.DataFrame
        Columns ``group, application, nprocs, runtime, asked, completed``, by submit; times in
        seconds, ``asked`` NaN where unknown; a group is of one application. Where nobody says
        how any job ended, all count as completed.
    names : dict of int to str
        Of the groups.
    source : str
    checksum : str or None
    processors : int
    trace : Trace or None
        For replays.
    config : dict
        Of replays.
    """

    runs: pd.DataFrame
    names: dict[int, str]
    source: str
    checksum: str | None
    processors: int
    trace: Trace | None
    config: dict[str, Any]


def read_jobs(words: Sequence[str]) -> Jobs:
    """Return the jobs of a log, or those of a run's folder or its ``jobs.parquet``."""
    path = Path(*words[:1])
    path = path / RUN if words and path.is_dir() else path
    if path.suffix == ".parquet" and ("=" not in words[0] or path.exists()):
        return _of_run(path)
    given = of_log(words)
    if not given:
        raise ConfigError("no jobs are given: moldsim advise JOBS")
    config = composed([*given, "policy=easy"])
    trace, asked = read_source(config)
    jobs = trace.jobs
    group = jobs.groupby(["application", "request_class"], sort=False).ngroup().to_numpy()
    status = jobs["recorded_status"].to_numpy()
    runs = pd.DataFrame(
        {
            "group": group,
            "application": jobs["application"],
            "nprocs": jobs["requested_processors"],
            "runtime": jobs["reference_runtime"],
            "asked": jobs["requested_time"].where(jobs["request_class"] >= 0),
            "completed": (status == COMPLETED) | (np.unique(status).size < 2),
        }
    )
    processors = asked or trace.processors or 1
    jobs = jobs.assign(group=group, asked=runs["asked"], partition=trace.named("partition"))
    names = _names(jobs, trace.words["application"])
    return Jobs(runs, names, trace.source, trace.checksum, processors, trace, config)


def _names(jobs: pd.DataFrame, words: Mapping[int, str]) -> dict[int, str]:
    """Return the name of each group: what its jobs share, and from what to what they ask for.

    Where their users are unknown, the partitions say who may be told.
    """
    groups = jobs.groupby("group")
    named = jobs["partition"].where(jobs["user"] < 0, "unknown").groupby(jobs["group"])
    parts = named.agg(lambda one: " and ".join(sorted(set(one))))
    columns = groups["application"].first().items(), groups["asked"].min(), groups["asked"].max()
    return {
        int(str(group)): words[application]
        + f" in partition {where}" * (where != "unknown")
        + ("" if np.isnan(least) else f", asking for {clock_time(least)}")
        + (f" to {clock_time(most)}" if most > least else "")
        for (group, application), least, most, where in zip(*columns, parts, strict=True)
    }


def _of_run(path: Path) -> Jobs:
    """Return the completed jobs of a run, by application; runtimes at the median size if told."""
    if not path.is_file():
        raise SimError(f"{path}: no such file; give a log, or the folder of a run")
    try:
        jobs = read_table(path)
        jobs = jobs[(jobs["status"] == "completed") & (jobs["runtime"] > 0)]
        jobs = jobs.sort_values("submit_time", kind="stable")
        size = jobs["size"].groupby(jobs["application"])
        scale = (size.transform("median") / jobs["size"]).fillna(1.0)
        runs = pd.DataFrame(
            {
                "group": jobs["application"].to_numpy(),
                "application": jobs["application"].to_numpy(),
                "nprocs": jobs["allocated_processors"].to_numpy(np.int64),
                "runtime": (jobs["runtime"] * scale).to_numpy(float),
                "asked": jobs["requested_time"].to_numpy(float),
                "completed": True,
            }
        )
        end = jobs["end_time"].to_numpy(float)
        most = most_held(end - jobs["runtime"].to_numpy(float), end, runs["nprocs"].to_numpy()) or 1
    except (OSError, ValueError, KeyError) as error:
        first = " ".join(str(error).split())[:200]
        raise SimError(f"{path}: not a table of a run's jobs: {first}") from error
    names = {int(one): f"application {one}" for one in sorted(runs["group"].unique())}
    return Jobs(runs, names, path.parent.name or "run", sha256(path), most, None, {})


@dataclass(frozen=True)
class Advised:
    """Advice by application, those that scale first, then the largest, and how it was judged.

    Attributes
    ----------
    rows : tuple of Proposal
    figures : dict
        What ``advice.json`` says beside the rows.
    """

    rows: tuple[Proposal, ...]
    figures: dict[str, Any]


def advise(jobs: Jobs, own: Options, shown: Display = SILENT) -> Advised:
    """Return what the past jobs advise, and show how far that is."""
    first = int(np.ceil(own.until * len(jobs.runs)))
    parts = jobs.runs.iloc[:first], jobs.runs.iloc[first:]
    past, later = (part[part["completed"]] for part in parts)
    limits, factor = walltimes(past)
    sizes = past["group"].value_counts()
    area = (past["nprocs"] * past["runtime"]).groupby(past["group"]).sum()
    groups = dict(list(past.groupby("group")))
    ran = past.groupby("application")["nprocs"].unique()
    ranked = area.sort_values(ascending=False, kind="stable").index.tolist()
    ranked = [group for group in ranked if sizes[group] >= REPEATED]
    starts, rows = own.starts and jobs.trace is not None, []
    with shown.part(0, 1 + starts):
        for group in shown.each(ranked, "learns from the jobs, and predicts"):
            one = advice_of(jobs.names[group], groups[group], limits.get(group), jobs.processors)
            in_nodes = jobs.config.get("workload", {}).get("unit") == "nodes"
            every = sorted(ran[groups[group]["application"].iloc[0]].tolist())
            rows.append(replace(one, in_nodes=in_nodes, counts_of_all=tuple(every)))
    if starts:
        with shown.part(1, 2):
            rows = _with_starts(rows, jobs, first, shown)
    rows.sort(key=lambda one: (one.fastest is None, not one.says_something))
    repeated = sizes[sizes >= REPEATED]
    figures = {
        "log": jobs.source,
        "checksum": jobs.checksum,
        "jobs": len(past),
        "not_completed": first - len(past),
        "processors": jobs.processors,
        "applications": len(sizes),
        "repeating": len(repeated),
        "share_of_jobs_repeating": float(repeated.sum() / max(len(past), 1)),
        "with_scaling": sum(one.fastest is not None for one in rows),
        "without_scaling": {
            why: sum(words in one.evidence and one.fastest is None for one in rows)
            for why, words in WHY.items()
        },
        "with_walltime": sum(one.walltime is not None for one in rows),
        "longer_than_asked": sum(one.asks_for_more for one in rows),
        "stretch": factor,
        "judged": _judged(later, limits),
    }
    if jobs.trace is not None and jobs.trace.identity == "user_request":
        figures["identity"] = jobs.trace.identity
    if starts and jobs.trace is not None and jobs.checksum:
        figures["backtest"] = backtest_sentence(jobs.source, jobs.checksum, jobs.processors)
    return Advised(tuple(rows), figures)


def _judged(later: pd.DataFrame, limits: pd.Series) -> dict[str, Any] | None:
    """Return how walltimes hold for jobs that came later, against what their users asked for."""
    if later.empty:
        return None
    walltime = later["group"].map(limits).to_numpy(float)
    known = np.isfinite(walltime)
    told, runtime = later[known], later["runtime"].to_numpy(float)[known]
    asked = told["asked"].to_numpy(float)
    both = np.isfinite(asked)
    given, wanted = walltime[known][both], asked[both]
    ratio = given / wanted
    shorter = ratio < 1
    return {
        "jobs": len(later),
        "with_walltime": int(known.sum()),
        "share_with_walltime": float(known.mean()),
        "share_held": mean(runtime <= walltime[known]),
        "share_held_by_requests": mean(runtime[both] <= wanted),
        "median_walltime_over_request": float(np.median(ratio)) if len(ratio) else None,
        "total_walltime_over_request": float(given.sum() / wanted.sum()) if len(ratio) else None,
        "share_shorter": mean(shorter),
        "median_of_shorter": float(np.median(ratio[shorter])) if shorter.any() else None,
    }


def _with_starts(rows: list[Proposal], jobs: Jobs, first: int, shown: Display) -> list[Proposal]:
    """Return the rows with expected starts, replaying each count and time asked for once."""
    assert jobs.trace is not None
    trace = replace(jobs.trace, jobs=jobs.trace.jobs.iloc[:first])
    asked = dict.fromkeys((one.count, asked_on(row, one)) for row in rows for one in row.choices)
    starts: dict[tuple[int, float], float] = {}
    for count, seconds in shown.each([*asked][:MOST_STARTS], "replays starts"):
        starts[count, seconds] = expected_wait(jobs.config, trace, jobs.processors, count, seconds)
    return [with_starts(advice, starts) for advice in rows]


def advice_frame(rows: Sequence[Proposal]) -> pd.DataFrame:
    """Return the table of ``advice.csv``: a row an application, times in seconds.

    ``predicted``, ``low``, ``high``, ``walltime`` and ``expected_start`` (from submit to
    start) are those of ``recommended``, the one of the fastest, the efficient and the usual
    count that is expected to end first; of the usual one, the first three are its median.
    """
    recommended = [one.recommended for one in rows]
    known = [own if one.fastest else None for one, own in zip(rows, recommended, strict=True)]
    columns = {
        "application": [one.application for one in rows],
        "jobs": [one.jobs for one in rows],
        "counts": [" ".join(f"{n}:{k}" for n, k in one.counts.items()) for one in rows],
        "fastest": [one.fastest.count if one.fastest else None for one in rows],
        "efficient": [one.efficient.count if one.efficient else None for one in rows],
        "predicted": [own.predicted if own else None for own in known],
        "low": [own.low if own else None for own in known],
        "high": [own.high if own else None for own in known],
        "walltime": [one.walltime_on(one.recommended) for one in rows],
        "measure_next": [one.measure_next for one in rows],
        "expected_start": [own.expected_start for own in recommended],
        "evidence": [one.evidence for one in rows],
        "recommended": [own.count for own in recommended],
        "asked": [one.asked for one in rows],
        "sbatch": [one.sbatch for one in rows],
    }
    whole = dict.fromkeys(("jobs", "fastest", "efficient", "measure_next", "recommended"), "Int64")
    return pd.DataFrame(columns).astype(whole)


def write(done: Advised, folder: Path) -> list[Path]:
    """Write table, figures and page."""
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(advice_frame(done.rows), folder / TABLE)
    rows = [
        {**asdict(one), "recommended": one.recommended.count, "sbatch": one.sbatch,
         "choices": [asdict(choice) for choice in one.choices]}
        for one in done.rows
    ]  # fmt: skip
    write_advice_page(folder / PAGE, done.figures, done.rows)
    write_whole(folder / FIGURES, as_json({**done.figures, "rows": rows}))
    return [folder / name for name in (TABLE, FIGURES, PAGE)]


def main(given: Sequence[str] | None = None) -> int:
    """Advise; return the exit status."""
    about = "What past jobs advise: processors, walltimes, what to measure next."
    keys = (
        "advise.until=0.7 (advice from the first 70 % of the jobs, judged by the others), "
        "advise.starts=false (without expected starts), advise.folder=DIR"
    )
    logs = "a log, plain or .gz, or a run's folder"
    return answered("moldsim advise", about, keys, logs, given, _answer)


def _answer(words: Sequence[str]) -> int:
    own = options([one for one in words if one.startswith("advise.")])
    with Display(PlainConsole(stderr=True), "advise") as shown:
        shown.show("reads the jobs")
        jobs = read_jobs([one for one in words if not one.startswith("advise.")])
        done = advise(jobs, own, shown)
    part = "" if own.until == 1 else f"until={own.until:g}"
    usual = backtest_folder(jobs.source, jobs.checksum) / part
    written = write(done, Path(own.folder) if own.folder else usual)
    show(table_console(), done, written)
    return 0


SHOWN = 20
"""Applications that the terminal shows."""


def show(console: Console, done: Advised, written: Sequence[Path]) -> None:
    """Print what is known of how many applications, and the first rows."""
    for sentence in advice_sentences(done.figures):
        console.print(sentence, markup=False, highlight=False)
    known = [one for one in done.rows if one.says_something]
    if known:
        console.print(fitting_tables(*advice_rows(known[:SHOWN]), console.width))
    if left := len(done.rows) - len(known[:SHOWN]):
        console.print(f"Further repeating applications, in the files only: {left:,}", style="dim")
    console.print(f"Written: {', '.join(map(str, written))}", markup=False, highlight=False)


if __name__ == "__main__":
    sys.exit(main())
