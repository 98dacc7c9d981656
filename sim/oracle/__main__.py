"""For people who write schedulers: ``moldsim oracle write FOLDER`` and ``check``.

``write`` makes workloads with the schedules that the rules give them; ``check``
says of any schedule which job breaks which rule.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from predictors.cli.terminal import SILENT, Display, PlainConsole
from predictors.plain import shown_plainly
from sim.errors import SimError
from sim.library.simulations import Result, run
from sim.oracle.rules import RULES, RigidJob, Violation, check_schedule
from sim.results.artefacts import read_table
from sim.results.durable import answering
from sim.results.formats import batsim_table
from workloads.base import Trace
from workloads.frame import FrameWorkload
from workloads.logs.batsim import write_batsim
from workloads.logs.formats import FORMATS, guess_format
from workloads.logs.swf import log_of_trace, read_swf, write_swf
from workloads.models.lublin import Lublin
from workloads.streams import Streams

COLUMNS = ["submit_time", "requested_processors", "runtime", "requested_time"]
TINY = (
    # submit, processors, runtime, estimate: the head waits, one may pass, one may not
    *((0, 3, 10, 12), (1, 2, 5, 5), (2, 1, 9, 10), (3, 1, 20, 20)),
    *((4, 4, 3, 3), (5, 1, 2, 8), (6, 2, 4, 2), (6, 1, 1, 1)),
)
PAGE = """# Schedules by the rules

Each workload comes as SWF and as Batsim JSON, each schedule as a table in the columns of
Batsim's jobs.csv. index.csv lists them. All times are whole seconds. Jobs are rigid; a job that
outlives its estimate runs on, and the estimate doubles (to at least the elapsed time plus 1 s).

{rules}

At one instant ends come first, then expired estimates, then arrivals; then the
scheduling pass.

Check a schedule of your own (Batsim's jobs.csv, or SWF with wait times):

    moldsim oracle check --rule easy --workload crowded-1.swf --schedule mine.csv
"""


def rigid_trace(
    rows: Sequence[Sequence[float]] | np.ndarray, processors: int, source: str
) -> Trace:
    """Return a trace of (submit, processors, runtime, estimate) rows."""
    frame = pd.DataFrame(np.asarray(rows, float), columns=COLUMNS)
    return replace(FrameWorkload(frame=frame).trace(Streams(1), processors), source=source)


def crowded_rows(rng: np.random.Generator, jobs: int, processors: int) -> np.ndarray:
    """Draw jobs of few instants and short estimates, so that much happens at once."""
    submit = np.cumsum(rng.integers(0, 5, jobs))
    runtime = rng.integers(1, 13, jobs)
    estimate = np.where(rng.random(jobs) < 0.4, runtime, rng.integers(1, 31, jobs))
    return np.column_stack([submit, rng.integers(1, processors + 1, jobs), runtime, estimate])


def modelled(streams: Streams, estimates: str) -> Trace:
    """Return 400 modelled jobs on 64 processors, all times whole seconds."""
    trace = Lublin(jobs=400, load=0.9, estimates=estimates, types="all").trace(streams, 64)
    times = ["submit_time", "reference_runtime", "requested_time"]
    jobs = trace.jobs.assign(**{name: np.ceil(trace.jobs[name]) for name in times})
    return Trace(jobs, 64, f"modelled-{estimates}")


def pack_traces(seed: int) -> list[Trace]:
    """Return the workloads of a pack."""
    streams = Streams(seed)
    traces = [rigid_trace(TINY, 4, "tiny")]
    for number in range(1, 6):
        rows = crowded_rows(streams(f"crowded {number}"), 60, 8)
        traces.append(rigid_trace(rows, 8, f"crowded-{number}"))
    return traces + [modelled(streams, estimates) for estimates in ("exact", "tsafrir")]


def schedule(trace: Trace, rule: str) -> Result:
    """Run a rigid trace under one of `RULES`.

    Raises
    ------
    SimError
        If there is no such rule, or the trace names no machine.

    Examples
    --------
    >>> trace = rigid_trace(TINY, 4, "tiny")
    >>> schedule(trace, "easy").jobs["start_time"].tolist()[:4]
    [0.0, 10.0, 2.0, 10.0]
    """
    if rule not in RULES or trace.processors is None:
        told = f"rule={rule}, processors={trace.processors}"
        raise SimError(f"{told}: rule must be one of {', '.join(RULES)}, processors a number")
    replan = ["policy=conservative", "policy.backfill.replan=true"]
    policy = replan if rule == "replan" else [f"policy={rule}"]
    jobs = trace.jobs.rename(columns={"reference_runtime": "runtime"})
    rigid = {"predictor": "user_estimate", "moldability": "none", "baseline": None}
    return run(*policy, "sim.progress=false", jobs=jobs, processors=trace.processors, **rigid)


def write_pack(folder: Path, seed: int = 1, shown: Display = SILENT) -> pd.DataFrame:
    """Write a pack of workloads with their schedules, and return its index."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for trace in shown.each(pack_traces(seed), "writes schedules"):
        write_swf(folder / f"{trace.source}.swf", log_of_trace(trace))
        write_batsim(folder / f"{trace.source}.json", trace)
        for rule in RULES:
            done = schedule(trace, rule)
            name = f"{trace.source}.{rule}.csv"
            table = batsim_table(done.jobs, done.allocations)
            table.to_csv(folder / name, index=False, lineterminator="\n")
            row = {"workload": f"{trace.source}.swf", "rule": rule, "schedule": name}
            size = {"jobs": len(trace.jobs), "processors": trace.processors}
            rows.append({**row, **size, "mean_wait_time": float(done.jobs["wait_time"].mean())})
    index = pd.DataFrame(rows)
    index.to_csv(folder / "index.csv", index=False, lineterminator="\n")
    rules = "\n".join(f"- `{name}`: {text}" for name, text in RULES.items())
    (folder / "README.md").write_text(PAGE.format(rules=rules), encoding="utf-8")
    return index


def read_schedule(path: Path) -> dict[int, tuple[float, float]]:
    """Return start and end of each job in a schedule.

    Parameters
    ----------
    path : pathlib.Path
        ``jobs.parquet`` of a run, Batsim's ``jobs.csv``, or SWF with wait times.

    Raises
    ------
    SimError
        If the file has no starts and ends by job number.
    """
    if not path.is_file():
        raise SimError(f"{path}: there is no such file; give a schedule")
    is_csv = path.name.removesuffix(".gz").endswith(".csv")
    if is_csv or path.suffix == ".parquet":
        columns = ("starting_time", "finish_time") if is_csv else ("start_time", "end_time")
        try:
            table = pd.read_csv(path, dtype=str) if is_csv else read_table(path)
        except ValueError as error:  # pandas, its parsers, Arrow and decoding alike
            raise SimError(f"{path}: not a table of jobs: {error}") from None
        table = table.rename(columns={"jobID": "job_id"} if is_csv else {})
        needed = ["job_id", *columns]
        if lacking := [column for column in needed if column not in table.columns]:
            told = f"{', '.join(lacking)}; a schedule needs the columns {', '.join(needed)}"
            raise SimError(f"{path}: lacks {told}")
        spans = table[needed]
        if is_csv:
            spans = spans.assign(job_id=spans["job_id"].str.rpartition("!")[2])
    else:
        jobs = read_swf(path).jobs
        start = jobs["submit_time"] + jobs["wait_time"]
        end = start + jobs["run_time"]
        spans = pd.DataFrame({"job_id": jobs["job_number"], "a": start, "b": end})
        spans = spans[jobs["wait_time"] >= 0]
    return _by_job(spans, path)


def _by_job(spans: pd.DataFrame, path: Path) -> dict[int, tuple[float, float]]:
    found = spans.apply(pd.to_numeric, errors="coerce")
    found.iloc[:, 0] = found.iloc[:, 0].where(found.iloc[:, 0] % 1 == 0)
    wrong = ~np.isfinite(found.to_numpy(float))
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        wanted = "a number" if column else "a job number"
        raise SimError(
            f"{path}, job row {row + 1}, column {spans.columns[column]}: "
            f"{spans.iat[row, column]!r} is not {wanted}"
        )
    numbers = found.iloc[:, 0].astype(int)
    if numbers.duplicated().any():
        raise SimError(f"{path}: job {numbers[numbers.duplicated()].iloc[0]} appears twice")
    times = map(tuple, found.iloc[:, 1:].to_numpy(float).tolist())
    return dict(zip(numbers.tolist(), times, strict=True))


def check_files(
    workload: Path,
    schedule_file: Path,
    rule: str,
    processors: int | None = None,
    shown: Display = SILENT,
) -> list[Violation]:
    """Return every violation of a rule by another scheduler's schedule; see `read_schedule`.

    The workload is SWF or Batsim JSON, and may leave it to `processors` how large the machine is.

    Raises
    ------
    SimError, WorkloadError
        If a file cannot be read.
    """
    if processors is not None and processors < 1:
        raise SimError(f"--processors={processors}: must be at least 1")
    exact = {"missing_requested_time": "exact"}  # whatever the other scheduler believed
    source = FORMATS[guess_format(workload)](workload, cleaning=exact)
    trace = source.trace(Streams(1), processors)
    columns = ["job_id", "submit_time", "requested_processors", "reference_runtime"]
    rows = trace.jobs[[*columns, "requested_time"]].itertuples(index=False, name=None)
    jobs = [RigidJob(*row) for row in rows]
    machine = processors or trace.processors or 1
    return check_schedule(jobs, read_schedule(schedule_file), machine, rule, shown)


def _told(found: Sequence[Violation], asked: argparse.Namespace) -> int:
    """Print violations, as many as asked for, and how many there are; return the exit status."""
    for one in found[: asked.most]:
        sys.stdout.write(
            f"job {one.job_id} at {one.time:.12g}: {one.rule}: {shown_plainly(one.text)}\n"
        )
    if len(found) > asked.most:
        sys.stdout.write(f"and {len(found) - asked.most} more\n")
    jobs = len({one.job_id for one in found})
    number = f"{len(found)} violation{'s' * (len(found) > 1)} by {jobs} job{'s' * (jobs > 1)}"
    end = number if found else "keeps the rule"
    sys.stdout.write(f"{asked.schedule} under {asked.rule}: {end}\n")
    return 1 if found else 0


@answering
def main(given: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    rules = "\n".join(f"  {name}: {text}" for name, text in RULES.items())
    parser = argparse.ArgumentParser(
        prog="moldsim oracle",
        description=f"Schedules by exact rules; check your own by them.\n\n{rules}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    write = commands.add_parser("write", help="workloads with their schedules under every rule")
    write.add_argument("folder", type=Path)
    write.add_argument("--seed", type=int, default=1)
    check = commands.add_parser("check", help="which job breaks which rule; status 1 if one does")
    check.add_argument("--rule", required=True, choices=tuple(RULES))
    check.add_argument("--workload", type=Path, required=True, help="SWF or Batsim JSON")
    check.add_argument(
        "--schedule", type=Path, required=True, help="Batsim's jobs.csv, jobs.parquet or SWF"
    )
    check.add_argument("--processors", type=int, help="size of the machine")
    check.add_argument("--most", type=int, default=50, help="violations to print (default 50)")
    asked = parser.parse_args(given)
    with Display(PlainConsole(stderr=True), "oracle") as shown:
        if asked.command == "write":
            index = write_pack(asked.folder, asked.seed, shown)
        else:
            found = check_files(asked.workload, asked.schedule, asked.rule, asked.processors, shown)
    if asked.command == "check":
        return _told(found, asked)
    sys.stdout.write(f"{len(index)} schedules in {asked.folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
