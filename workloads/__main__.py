"""``moldsim describe``, ``convert``, ``generate`` and ``fetch``."""

import argparse
import json
import logging
import re
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from predictors.cli.terminal import Display, PlainConsole
from predictors.plain import shown_plainly
from workloads.errors import WorkloadError, check_count

if TYPE_CHECKING:
    from workloads.base import Trace
    from workloads.logs.log import FileWorkload

KINDS = ("swf", "sacct", "batsim", "table")
SECONDS = ("median_interarrival", "longest_gap", "median_requested_time", "longest_requested_time",
           "first_submit")  # fmt: skip


def _source(asked: argparse.Namespace) -> "FileWorkload":
    from workloads.logs.formats import FORMATS, guess_format

    reader = FORMATS[asked.format or guess_format(asked.file)]
    takes = [option.name for option in fields(reader) if hasattr(asked, option.name)]
    return reader(asked.file, **{name: getattr(asked, name) for name in takes})


class _Pairs(argparse.Action):
    """Gather NAME=VALUE pairs into a mapping."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace,
                 values: Any, option_string: str | None = None) -> None:  # fmt: skip
        name, equals, value = str(values).partition("=")
        if not equals:
            parser.error(f"{option_string} {values}: must be NAME=VALUE")
        setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), name: value})


def _describe(asked: argparse.Namespace, shown: Display) -> str:
    from workloads.logs.description import describe
    from workloads.logs.log import tell_remarks
    from workloads.logs.swf import log_file

    source = _source(asked)
    shown.show(f"reads {asked.file.name}", 0.0)
    log = source.read_part()
    tell_remarks(log)
    shown.show("counts", 0.6)
    found = describe(log, asked.processors, source.usual)
    if asked.json is not None:
        text = json.dumps(found, indent=2, allow_nan=False) + "\n"
        asked.json.write_text(text, encoding="utf-8")
    packed = log_file(asked.file)
    where = "" if packed == asked.file else f" ({packed})"
    lines = [shown_plainly(log.source + where)]
    for section, figures in found.items():
        lines += ["", section]
        for name, value in figures.items():
            if name == "first_submit" and figures.get("first_submit_date") is not None:
                continue
            unit = "s" if name in SECONDS or (section == "runtimes" and name in _SPREAD) else ""
            one = name == "user_request: share seen at three counts before"
            said = "- (by definition: each has one count)" if one else _shown(value)
            lines.append(f"  {name.replace('_', ' '):<58} {shown_plainly(said)} {unit}".rstrip())
    return "\n".join([*lines, ""])


_SPREAD = ("mean", "least", "lower_quartile", "median", "upper_quartile", "p95", "greatest")


def _shown(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, float) and abs(value) < 1e4:
        return f"{value:,.4g}"
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)


def _convert(asked: argparse.Namespace, shown: Display) -> str:
    from workloads.logs.cleaning import screen
    from workloads.logs.log import tell_machine
    from workloads.logs.swf import write_swf
    from workloads.streams import Streams

    is_json, source = _is_json(asked.output), _source(asked)
    shown.show(f"reads {asked.file.name}", 0.0)
    if is_json or asked.jobs is not None or asked.processors is not None:
        return _write(source.trace(Streams(1), asked.processors), asked.output, shown)
    log = source.read_part()
    tell_machine(screen(log))
    shown.show(f"writes {asked.output.name}", 0.5)
    write_swf(asked.output, log)  # every value as recorded, defects included
    return ""


def _is_json(path: Path) -> bool:
    """Say whether a file to write is JSON, else SWF; refuse other names."""
    kind = Path(path.name.removesuffix(".gz")).suffix
    if kind not in (".json", ".swf"):
        raise WorkloadError(f"{path}: unknown format; must end in .swf, .json, .swf.gz or .json.gz")
    return kind == ".json"


def _write(trace: "Trace", path: Path, shown: Display) -> str:
    from workloads.logs.batsim import write_batsim
    from workloads.logs.swf import log_of_trace, write_swf

    shown.show(f"writes {path.name}", 0.5)
    if _is_json(path):
        write_batsim(path, trace)
    else:
        write_swf(path, log_of_trace(trace, (f"made from {trace.source} by moldsim",)))
    return ""


def _generate(asked: argparse.Namespace, shown: Display) -> str:
    _is_json(asked.output)
    from workloads import Downey, Lublin, Streams
    from workloads.truth.build import with_applications

    model = {"lublin": Lublin, "downey": Downey}[asked.model]
    keys = ("jobs", "load", "estimates", "processors")
    streams = Streams(asked.seed)
    shown.show("draws jobs", 0.0)
    trace = model(**{key: getattr(asked, key) for key in keys if key in asked}).trace(streams)
    return _write(with_applications(trace, streams), asked.output, shown)


def _fetch(asked: argparse.Namespace, shown: Display) -> str:
    from workloads.logs.archive import LOGS, fetch_log, terminal_progress

    if asked.name is None:
        return "".join(f"{log.name:<20} {log.file}\n" for log in LOGS)
    with terminal_progress(f"fetching {asked.name}") as progress:
        return f"{fetch_log(asked.name, asked.cache, asked.url, progress)}\n"


def _reader(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=Path, help="SWF, sacct --parsable2, Batsim JSON or a table, or .gz"
    )
    parser.add_argument("--format", choices=KINDS, help="guessed without it")
    parser.add_argument("--timezone", default="UTC", help="of times that name no zone (UTC)")
    parser.add_argument("--partition", help="only the jobs for this partition, or queue")
    parser.add_argument("--unit", default="cpus", help="sacct: what a processor is: cpus or nodes")
    parser.add_argument(
        "--column", dest="columns", action=_Pairs, metavar="ROLE=NAME",
        help="table: which column says submit, start, end, processors, …; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--unit-of", dest="units", action=_Pairs, metavar="ROLE=UNIT",
        help="table: unit of a column of plain numbers: ms, s, min, h or d; may be repeated",
    )  # fmt: skip
    parser.add_argument("--time-format", help="table: format of times, as %%d.%%m.%%Y %%H:%%M")
    parser.add_argument("--delimiter", help="table: one character (default: guessed)")
    parser.add_argument("--header", type=int, default=1, help="table: lines above the first job")
    parser.add_argument("--speed", type=float, help="Batsim: operations per second of a processor")
    parser.add_argument(
        "--communication", default="error", help="Batsim: profiles that send bytes: error or ignore"
    )
    parser.add_argument("--processors", type=int, help="size of the machine")


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="moldsim", description="Describe, convert, generate and fetch logs."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    describe = commands.add_parser("describe", help="what a log holds")
    _reader(describe)
    describe.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    describe.set_defaults(act=_describe)
    convert = commands.add_parser("convert", help="one format into another")
    _reader(convert)
    convert.add_argument("output", type=Path, help="NAME.swf or NAME.json, or .gz")
    convert.add_argument("--jobs", type=int, help="only the first jobs that can run")
    convert.set_defaults(act=_convert)
    generate = commands.add_parser(
        "generate", help="jobs from a model", argument_default=argparse.SUPPRESS,
        epilog="What is not given is as moldsim help workload lublin (or downey) says.",
    )  # fmt: skip
    generate.add_argument("model", choices=("lublin", "downey"))
    generate.add_argument("output", type=Path, help="NAME.swf or NAME.json, or .gz")
    generate.add_argument("--jobs", type=int)
    generate.add_argument("--load", type=float, help="offered load")
    generate.add_argument("--processors", type=int)
    generate.add_argument("--estimates", help="requested times")
    generate.add_argument("--seed", type=int, default=1)
    generate.set_defaults(act=_generate)
    fetch = commands.add_parser("fetch", help="a log of the Parallel Workloads Archive")
    fetch.add_argument("name", nargs="?", help="such as SDSC-SP2; without it the names are listed")
    fetch.add_argument("--cache", type=Path, help="folder where logs are kept")
    fetch.add_argument("--url", help="the archive's address")
    fetch.set_defaults(act=_fetch)
    return parser


def main(given: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    # overrides of a run do here what options of their names do
    words = [re.sub(r"^(workload|cluster)[.](?=\w+=)", "--", one) for one in given or sys.argv[1:]]
    asked = arguments().parse_args(words)
    try:
        for name, least in (("processors", 1), ("jobs", 1), ("seed", 0)):
            if (value := getattr(asked, name, None)) is not None:
                check_count(f"--{name}", value, least)
        with Display(PlainConsole(stderr=True), "moldsim") as shown:
            text = asked.act(asked, shown)
        sys.stdout.write(text)
    except BrokenPipeError:  # a reader such as ``head`` has gone away
        sys.stderr.close()
    except (WorkloadError, OSError) as error:
        sys.stderr.write(f"error: {shown_plainly(' '.join(str(error).split()))}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
