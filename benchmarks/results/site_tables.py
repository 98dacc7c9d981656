"""Tables of backtests, advice and accuracy on real logs and curves, and of what was tried."""

import json
from collections import Counter
from typing import Any

from benchmarks.accuracy import Row as Accuracy
from benchmarks.accuracy import table as accuracy_table
from benchmarks.results.regions import RESULTS, data, lines, table
from sim.results.sentences import ranks, relative

CANDIDATES = ("fcfs", "easy", "conservative", "sjf", "wfp3")
CHANGES = ("capacity", "estimates", "order", "holds", "partitions")


def name_of(log: dict[str, Any]) -> str:
    """Return the name of a log's machine."""
    return "-".join(log["log"].split("-")[:2])


def told(found: dict[str, Any]) -> str:
    """Return how far a mean wait is from the recorded one, and the rank correlation of waits."""
    return f"{relative(found['mean_wait_difference'])}, {ranks(found['spearman_wait'])}"


def hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 7200 else f"{seconds / 60:.0f} min"


@table("backtest/logs")
def backtest_logs() -> list[str]:
    shown = []
    for log in data("backtest")["logs"]:
        by_name = {one["name"].removesuffix("_modelled"): one for one in log["candidates"]}
        nearest = log["nearest"].removesuffix("_modelled")
        cells = [told(by_name[name]) for name in CANDIDATES]
        place = CANDIDATES.index(nearest)
        cells[place] = f"**{cells[place]}**"
        waited = hours(log["recorded"]["mean_wait_time"])
        shown.append([log["name"], f"{log['jobs']:,}", waited, *cells, log["verdict"]])
    head = ["log", "jobs", "recorded mean wait", "FCFS", "EASY", "conservative",
            "EASY, shortest first", "EASY, WFP3", "verdict"]  # fmt: skip
    return lines(head, shown)


@table("backtest/changes")
def backtest_changes() -> list[str]:
    shown = []
    for log in data("backtest")["logs"]:
        nearest = f"{log['name']}, {log['nearest'].removesuffix('_modelled')}"
        for name, key in ((log["name"], "changes_of_easy"), (nearest, "changes")):
            cells = [told(one) for one in log[key]]
            if key == "changes" and log["changes"] == log["changes_of_easy"]:
                continue
            shown.append([name, *cells, *["–"] * (len(CHANGES) + 1 - len(cells))])
    return lines(["log", "as it is", *CHANGES], shown)


@table("advice/walltimes")
def advice_walltimes() -> list[str]:
    shown = []
    for log in data("advice")["walltimes"]:
        judged = log["judged"]
        later = f"{judged['with_walltime']:,} ({100 * judged['share_with_walltime']:.0f} %)"
        cells = [later, f"{100 * judged['share_held']:.1f} %"]
        if judged["median_walltime_over_request"] is None:
            cells += ["no limits", "–", "–", "–"]
        else:
            cells += [
                f"{100 * judged['share_held_by_requests']:.1f} %",
                f"{judged['median_walltime_over_request']:.2f}",
                f"{judged['total_walltime_over_request']:.2f}",
                f"{100 * judged['share_shorter']:.0f} %",
            ]
        shown.append([name_of(log), *cells])
    head = ["log", "later jobs with a walltime", "held", "held by the users' limits",
            "median walltime / limit", "sum / sum of limits", "shorter for"]  # fmt: skip
    return lines(head, shown)


@table("advice/scaling")
def advice_scaling() -> list[str]:
    shown = [[name_of(log), f"{log['repeating']:,}", log["with_scaling"]]
             for log in data("advice")["walltimes"]]  # fmt: skip
    return lines(["log", "applications that came three times", "say how they scale"], shown)


@table("advice/judged")
def advice_judged() -> list[str]:
    keys = ("median_error", "within_range", "fastest_median_regret", "fastest_p90_regret",
            "efficient_median_regret")  # fmt: skip
    shown = []
    for sizes, name in (
        ("known", "known, with noise of 10 %"),
        ("hidden", "hidden, three an application"),
    ):
        seeds = [one for one in data("advice")["scaling"] if one["sizes"] == sizes]
        cells = []
        for key in keys:
            values = [100 * one[key] for one in seeds]
            cells.append(f"{min(values):.1f} to {max(values):.1f} %")
        shown.append([name, *cells])
    head = ["sizes", "median error at the recommended counts", "within the 80 % range",
            "fastest: regret, median", "90th percentile", "efficient: regret, median"]  # fmt: skip
    return lines(head, shown)


def accuracy_rows(inside: bool) -> list[str]:
    """Return errors between the counts or beyond them, Extra-P's among them where it was run."""
    kept = [*data("accuracy")["rows"]]
    if (RESULTS / "accuracy_extrap" / "data.json").is_file():
        kept += data("accuracy_extrap")["rows"]
    kept.sort(key=lambda row: len(row["counts"]), reverse=True)  # "3 and 4" before "5"
    rows = [Accuracy(**row) for row in kept if (row["distance"] == "inside") == inside]
    return accuracy_table(rows).splitlines()


table("accuracy/methods")(lambda: accuracy_rows(inside=False))
table("accuracy/inside")(lambda: accuracy_rows(inside=True))


@table("accuracy/chosen")
def accuracy_chosen() -> list[str]:
    """Return errors of the consensus with methods chosen on the other files."""
    rows = [(row["distance"], f"{row['median']:.1f} %", f"{row['tail']:.0f} %")
            for row in data("accuracy")["chosen"]]  # fmt: skip
    return lines(["targets", "median error", "90th percentile"], rows)


def soak() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / "soak.json").read_text(encoding="utf-8"))
    return found


LONG = "long runs"
FILE_LINES = 5000
"""Lines of a file that the soak tries."""


@table("soak/trials")
def soak_trials() -> list[str]:
    shown = []
    report = soak()
    for kind in sorted(report.keys() - {LONG}):
        pieces, ends = report[kind], Counter[str]()
        for piece in pieces:
            ends.update(piece["ends"])
        tried = sum(piece["tried"] for piece in pieces)
        number = f"{tried:,}" + (f" ({tried * FILE_LINES:,} lines)" if kind == "files" else "")
        said = ", ".join(f"{end} {ends[end]:,}" for end in sorted(ends) if end != "FOUND")
        commits = " ".join(sorted({piece["commit"] for piece in pieces}))
        shown.append([kind, number, sum(len(piece["found"]) for piece in pieces), said, commits])
    rows = lines(["trials", "tried", "found", "how they ended", "commits"], shown)
    return [rows[0], "| --- | ---: | ---: | --- | --- |", *rows[2:]]


@table("soak/memory")
def soak_memory() -> list[str]:
    shown = []
    for run in soak()[LONG]:
        mb = [f"{run['memory_mb_by_tenth'][tenth]:.0f} MB" for tenth in (0, 1, 5, 9)]
        ended = ", ".join(f"{number:,} {state}" for state, number in run["ends"].items())
        shown.append([run["run"], ended, *mb, run["commit"]])
    rows = lines(
        ["machine", "jobs ended", "at the start", "a tenth", "a half", "nine tenths", "commit"],
        shown,
    )
    return [rows[0], "| --- |" + " ---: |" * 5 + " --- |", *rows[2:]]


@table("backtest/reasons")
def backtest_reasons() -> list[str]:
    shown = []
    for log in data("backtest")["logs"]:
        found = {reason["code"]: reason["evidence"] for reason in log["reasons"]}
        held, passed = found.get("waited_beside_free_machine"), found.get("priorities")
        size = found.get("machine_too_small", found.get("machine_too_large"))
        outages = found.get("outages")
        shown.append([
            log["name"],
            "–" if passed is None else f"{100 * passed['share_of_starts']:.0f} %",
            "–" if held is None else f"{100 * held['share_of_jobs']:.1f} % with "
                                     f"{100 * held['share_of_waiting']:.0f} % of all waiting",
            "–" if outages is None else f"{100 * outages['lost_share']:.1f} %",
            "–" if size is None else f"{size['most_held']:,} of {size['processors']:,}",
        ])  # fmt: skip
    head = ["log", "starts that passed an earlier job", "jobs that waited beside a free machine",
            "processor time missing", "most held at once"]  # fmt: skip
    return lines(head, shown)
