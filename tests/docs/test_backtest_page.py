"""The page of backtests and advice: its tables are those of its results files."""

import json
import re
from pathlib import Path

import pytest

from sim.results.sentences import ranks, relative

pytestmark = pytest.mark.fast

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
PAGE = (RESULTS / "backtest.md").read_text(encoding="utf-8")
LOGS = json.loads((RESULTS / "backtest.json").read_text(encoding="utf-8"))["logs"]
ADVICE = json.loads((RESULTS / "advice.json").read_text(encoding="utf-8"))
COLUMNS = ("fcfs", "easy", "conservative", "sjf", "wfp3")


def rows(heading):
    """Return the cells of the tables below a heading, by the first cell of their rows."""
    part = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def told(figures):
    far, rank = figures["mean_wait_difference"], figures["spearman_wait"]
    return f"{relative(far)}, {ranks(rank)}"


def hours(seconds):
    return f"{seconds / 3600:.1f} h" if seconds >= 7200 else f"{seconds / 60:.0f} min"


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log["name"])
def test_the_table_of_logs(log):
    mine = next(row for row in rows("Five logs") if row[0].startswith(log["name"]))
    by_name = {one["name"].removesuffix("_modelled"): one for one in log["candidates"]}
    nearest = log["nearest"].removesuffix("_modelled")
    cells = [told(by_name[name]) for name in COLUMNS]
    cells[COLUMNS.index(nearest)] = f"**{cells[COLUMNS.index(nearest)]}**"
    recorded = hours(log["recorded"]["mean_wait_time"])
    assert mine[1:] == [f"{log['jobs']:,}", recorded, *cells, log["verdict"]]


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log["name"])
def test_the_table_of_changes(log):
    found = {row[0]: row[1:] for row in rows("What each distance is made of")}
    shown = [(log["name"], "changes_of_easy")]
    if f"{log['name']}, FCFS" in found:
        shown.append((f"{log['name']}, FCFS", "changes"))
    for name, key in shown:
        cells = [told(one) for one in log[key]]
        assert found[name] == cells + ["–"] * (len(found[name]) - len(cells))


def test_reasons_that_the_page_counts():
    by_name = {log["name"]: {r["code"]: r["evidence"] for r in log["reasons"]} for log in LOGS}
    theta, cirrus = by_name["Theta 2022"], by_name["Cirrus 2024-09"]
    sp2, kabre = by_name["SDSC-SP2"], by_name["Kabré 2024"]
    for said in (
        f"{theta['outages']['gaps']} times, {theta['outages']['gap_hours']:,.0f} h together",
        f"{100 * theta['outages']['lost_share']:.1f} % of the processor time",
        f"{cirrus['waited_beside_free_machine']['jobs']:,} jobs",
        f"hold {100 * cirrus['waited_beside_free_machine']['share_of_waiting']:.0f} % of all",
        f"up to {sp2['machine_too_small']['most_held']} of 128 processors at once in "
        f"{sp2['machine_too_small']['weeks']} of 104 weeks",
        f"{100 * sp2['outages']['lost_share']:.1f} % of the processor time",
        f"{kabre['waited_beside_free_machine']['jobs']} jobs (2.7 %) have "
        f"{100 * kabre['waited_beside_free_machine']['share_of_waiting']:.0f} % of all waiting",
    ):
        assert said in " ".join(PAGE.split()), said


@pytest.mark.parametrize("found", ADVICE["walltimes"], ids=lambda one: one["log"][:5])
def test_the_tables_of_walltimes_and_scaling(found):
    name = found["log"].removesuffix(".swf.gz").split("-1")[0].split("-2")[0]
    name = {"ALCF-Theta": "Theta 2022"}.get(name, name)
    judged = found["judged"]
    walltimes = next(row for row in rows("Walltimes") if row[0] == name)
    share = f"{judged['with_walltime']:,} ({100 * judged['share_with_walltime']:.0f} %)"
    assert walltimes[1:3] == [share, f"{100 * judged['share_held']:.1f} %"]
    if judged["median_walltime_over_request"] is not None:
        assert walltimes[3] == f"{100 * judged['share_held_by_requests']:.1f} %"
        ratios = ("median_walltime_over_request", "total_walltime_over_request")
        assert walltimes[4:6] == [f"{judged[key]:.2f}" for key in ratios]
        assert float(walltimes[6].split(" %")[0]) == pytest.approx(
            100 * judged["share_shorter"], abs=0.5
        )
    scaling = next(row for row in rows("Scaling") if row[0] == name)
    assert scaling[1:] == [f"{found['repeating']:,}", str(found["with_scaling"])]


@pytest.mark.parametrize(("sizes", "first"), [("known", "known within 10 %"), ("hidden", "hidden")])
def test_the_table_of_scaling_by_time(sizes, first):
    seeds = [one for one in ADVICE["scaling"] if one["sizes"] == sizes]
    mine = next(row for row in rows("Scaling") if row[0].startswith(first))
    keys = ("median_error", "within_range", "fastest_median_regret", "fastest_p90_regret",
            "efficient_median_regret")  # fmt: skip
    for cell, key in zip(mine[2:], keys, strict=True):
        low, high = (float(part) for part in re.findall(r"\d+(?:\.\d+)?", cell))
        values = [100 * one[key] for one in seeds]
        assert low == pytest.approx(min(values), abs=0.51 if low > 20 else 0.051), key
        assert high == pytest.approx(max(values), abs=0.51 if high > 20 else 0.051), key
    assert all(one["judged_jobs"] > 500 for one in seeds)
