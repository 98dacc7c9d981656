"""Put figures of `scripts.study_beliefs` into a record, and print the tables made of it.

Usage: python -m scripts.beliefs_table beliefs.json [FIGURES.jsonl ...]

A row of the record is a setting, a policy and a predictor; kept is the share of the gain of the
same policy's oracle over rigid EASY, in the means over windows, with its interval.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sim.statistics.paired import share_of_gain

RESPONSE = "mean_response_time"
AVERAGED = {
    "median_error": "prediction_median_error",
    "share_beliefs_off": "share_beliefs_off",
    "area_share_beliefs_off": "area_share_beliefs_off",
    "fitted_starts": "share_fitted_starts",
}
SETTING = ["log", "load", "setting", "truth", "set"]
NAME = ("place", "part", "truth", "policy", "predictor")


def rounded(value: Any) -> Any:
    """Return a figure as the record has it: four digits, null for what is not finite."""
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.4g}") if np.isfinite(value) else None


def rows_of(files: Sequence[Path]) -> list[dict[str, Any]]:
    """Return a row for every learned predictor of every setting."""
    lines = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    frame = pd.DataFrame(lines)
    frame["set"] = frame["set"].map(", ".join)
    found = []
    for (log, load, part, truth, more), setting in frame.groupby(SETTING, sort=False):
        windows = "" if log == "lublin" else "8 windows of "
        named = [log, f"load {load}", f"{windows}2000 jobs", *filter(None, [more])]
        for (policy, predictor), mine in setting.groupby(["policy", "predictor"], sort=False):
            if predictor in ("user_estimate", "oracle"):
                continue
            own, best, easy = (
                setting[(setting["policy"] == p) & (setting["predictor"] == q)]
                .set_index("window")[RESPONSE].sort_index().to_numpy()
                for p, q in ((policy, predictor), (policy, "oracle"), ("easy", "user_estimate"))
            )  # fmt: skip
            if not len(own) == len(best) == len(easy) == 8:
                raise SystemExit(f"{named} {part} {truth} {policy} {predictor}: not 8 windows")
            kept = share_of_gain(own, best, easy)
            figures = {
                "windows": len(own), "response": list(own), "easy": list(easy),
                "oracle": list(best), "gain": 1 - best.mean() / easy.mean(),
                "kept": [kept.mean, kept.low, kept.high],
                "worst_of_easy": (own / easy).max(), "worst_of_oracle": (own / best).max(),
                "worst": (own / np.maximum(easy, best)).max(),
            }  # fmt: skip
            for name, key in AVERAGED.items():
                figures[name] = pd.to_numeric(mine[key]).mean()
            key = (", ".join(named), part, truth, policy, predictor)
            row = dict(zip(NAME, key, strict=True))
            row |= {name: rounded(value) for name, value in figures.items()}
            row |= {"careful": True} if policy == "sa_easy" else {}
            commits = sorted(set(mine["commit"]))
            found.append(row | {"date": "2026-11-22", "commits": commits})
    return found


def line(rows: Sequence[dict[str, Any]]) -> str:
    """Return the means and extremes of some settings as cells."""
    shares = [row["kept"][0] for row in rows]
    least = min(rows, key=lambda row: row["kept"][0])
    log, load = least["place"].split(", ")[:2]
    where = f"{log.split('-')[0]}, {least['truth']}, {load.split(' ')[1]}"
    worst = max(row["worst"] for row in rows)
    kept = f"{len(rows)} | {np.mean(shares):.0%} | {min(shares):.0%}"
    return f"{kept} | {where} | {worst:.2f}".replace("%", " %")


def main(arguments: Sequence[str] | None = None) -> None:
    """Put in what is given, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("record", type=Path)
    parser.add_argument("figures", nargs="*", type=Path)
    asked = parser.parse_args(arguments)
    whole = json.loads(asked.record.read_text("utf-8"))
    found = {tuple(row[name] for name in NAME): row for row in whole["rows"]}
    if asked.figures:
        found |= {tuple(row[name] for name in NAME): row for row in rows_of(asked.figures)}
        lines = ",\n".join(json.dumps(row) for row in found.values())
        head = json.dumps({"date": whole["date"]})
        asked.record.write_text(f'{head[:-1]}, "rows": [\n{lines}\n]}}\n', "utf-8")
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in found.values():
        groups.setdefault((row["part"], row["policy"], row["predictor"]), []).append(row)
    for name, rows in groups.items():
        worth = [row for row in rows if row["gain"] > 0.05]
        print(f"| {' | '.join(name)} | {line(worth)} |")


if __name__ == "__main__":
    main()
