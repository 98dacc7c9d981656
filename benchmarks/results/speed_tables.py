"""Tables of the page of performance, from what was measured."""

from typing import Any

from benchmarks.bench_growth import table as growth_table
from benchmarks.results.regions import data, lines, table

RULES = {
    "fcfs": "FCFS", "easy": "EASY", "easy, 4 reservations": "EASY, 4 reservations",
    "fcfs, each instant an event": "FCFS, each instant an event of SimPy",
    "easy, each instant an event": "EASY, each instant an event of SimPy",
    "sjf": "EASY, shortest first",
    "sa": "SA on conservative, oracle",
    "replan": "conservative, `replan=true`", "iterative": "`iterative`",
    "fair_share": "fair share, oracle", "iterative, depth 32": "iterative, oracle",
    "half, in Python": "the allocation of README, in Python, requested times",
}  # fmt: skip
"""How rules of benchmarks are called on the page, where otherwise."""


def speeds(name: str) -> list[dict[str, Any]]:
    """Return the rows of a measurement of speed, rules by the page's names."""
    rows = data(f"performance_{name}")["rows"]
    return [{**row, "rule": RULES.get(row.get("rule"), row.get("rule"))} for row in rows]


@table("performance/engine")
def performance_engine() -> list[str]:
    """Return times of bare SimPy of rules and of backtests."""
    shown = [(row["trace"], row["rule"], row["ratio"], row["limit"])
             for row in speeds("engine") if "at once" not in row["trace"]]  # fmt: skip
    model = "Lublin's model, load 0.8, 256 processors"
    shown += [(model, row["rule"], row["ratio"], row["limit"])
              for row in speeds("moldable") if row["rule"] in RULES.values()]  # fmt: skip
    shown += [(f"backtest: {row['trace']}, {row['jobs']:,} jobs", f"{row['candidates']} candidates",
               f"{row['ratio']} a candidate", row["limit"])
              for row in speeds("backtests")]  # fmt: skip
    rows = [(*names, ratio, f"{limit:g}") for *names, ratio, limit in shown]
    return lines(("trace", "rule", "ratio", "limit"), rows, 2)


@table("performance/bursts")
def performance_bursts() -> list[str]:
    """Return how the cost of a job grows with the number that arrive at once."""
    rows = []
    for row in speeds("engine"):
        number, at, estimates = row["trace"].partition(" at once against 2,000, ")
        if at:
            cost = row["us_per_job"]
            shown = f"{cost:,.0f}" if cost >= 10 else f"{cost:.1f}"
            rows.append((f"{row['rule']}, {number}", estimates, shown,
                         row["ratio"], f"{row['limit']:g}"))  # fmt: skip
    return lines(("rule", "estimates", "µs a job", "against 2,000 at once", "limit"), rows, 2)


@table("performance/learned")
def performance_learned() -> list[str]:
    """Return the cost of a job under SA by predictor."""
    rows = [(row["rule"], f"{row['us_per_job']:.0f}", f"{row['own_us_per_job']:.0f}", row["ratio"],
             row["limit"] or "–") for row in speeds("learned")]  # fmt: skip
    heads = ("run", "µs a job", "of which the predictor's", "times the first", "limit")
    return lines(heads, rows)


@table("performance/others")
def performance_others() -> list[str]:
    """Return times of bare SimPy on changing machines, and of long runs."""
    rows = [
        (f"{row['trace']}: {row['rule']}", row["ratio"], row["limit"] or "–")
        for name in ("shared", "long")
        for row in speeds(name)
    ]
    rows += [(f"reallocation, {row['rule']}", row["ratio"], row["limit"])
             for row in speeds("malleable")]  # fmt: skip
    rows += [("failing nodes, " * ("us_per_job" in row) + row["rule"], row["ratio"],
              row.get("limit") or "–") for row in speeds("evolving")]  # fmt: skip
    return lines(("what", "measured", "limit"), rows)


@table("performance/sweeps")
def performance_sweeps() -> list[str]:
    """Return what reading many finished runs takes, and a short run beside its simulation."""
    rows = [(f"{row['trace']}: {row['rule']}", row["ratio"], row["limit"])
            for row in speeds("sweeps")]  # fmt: skip
    rows += [(row["rule"], row["ratio"], row["limit"])
             for row in speeds("start") if "against" not in row]  # fmt: skip
    return lines(("what", "measured", "limit"), rows)


@table("performance/start")
def performance_start() -> list[str]:
    """Return how long commands take to begin, against imports."""
    rows = [(row["rule"], f"{row['s']} s", f"{row['against_s']} s ({row['against']})",
             row["ratio"], row["limit"])
            for row in speeds("start") if "against" in row]  # fmt: skip
    return lines(("case", "takes", "against", "times", "limit"), rows, 3)


@table("performance/growth")
def performance_growth() -> list[str]:
    """Return how the cost of a job grows with jobs and machine."""
    return growth_table(data("performance_growth")["rows"]).splitlines()
