"""What learned predictors keep of the oracle's gain: the table of `scripts.study_impact`.

Usage: python -m scripts.kept_table FILE.jsonl [FILE.jsonl ...] [--json FILE]

A row is a setting, a policy and a predictor. Kept is the share of the gain of the same
policy's oracle over rigid EASY by users' requested times, in the means over windows, with
its interval (Fieller's, by windows). The worst window is the largest mean response against
EASY's, against the oracle's, and against whichever of the two is more.
"""

import argparse
import datetime
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scripts.impact_page import RESPONSE, hours, markdown
from scripts.study_impact import PARTS
from sim.statistics.paired import share_of_gain

SETTING = ["place", "part", "truth"]
AVERAGED = {
    "median_error": "prediction_median_error",
    "share_beliefs_off": "share_beliefs_off",
    "area_share_beliefs_off": "area_share_beliefs_off",
    "fitted_starts": "share_fitted_starts",
}
BARS = {"adept": 0.85, "consensus": 0.85}
"""Least share of the gain kept under every policy; of other predictors 0.5 in the mean."""
LASTING = 1.10
"""How many times EASY's or the oracle's response a window may have."""
WORTH = 0.05
"""Least gain, of EASY's response, of which a share is asked."""


def whole_windows(setting: pd.DataFrame, part: str, truth: str) -> pd.DataFrame:
    """Return the replications of a setting that have all of its cases that any has."""
    cases = {case.key for case in PARTS[part](truth)} & set(setting["case"])
    found = setting.groupby("replication")["case"].agg(lambda done: cases <= set(done))
    return setting[setting["replication"].isin(found.index[found])]


def times(frame: pd.DataFrame, policy: str, predictor: str, key: str = RESPONSE) -> np.ndarray:
    """Return a figure of a policy and predictor by replication, NaN where undefined."""
    mine = frame[(frame["policy"] == policy) & (frame["predictor"] == predictor)]
    return mine.sort_values("replication")[key].to_numpy(float)


def rows_of(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a row for every learned predictor of every setting."""
    for (place, part, truth), setting in frame.groupby(SETTING, sort=False):
        done = whole_windows(setting, part, truth)
        easy = times(done, "easy", "user_estimate")
        cases = done[["policy", "predictor"]].drop_duplicates()
        for policy, predictor in cases.itertuples(index=False):
            if predictor not in ("user_estimate", "oracle"):
                given = {"place": place, "part": part, "truth": truth, "policy": policy}
                best = times(done, policy, "oracle")
                yield {**given, "predictor": predictor, **row(done, given, predictor, easy, best)}


def row(
    done: pd.DataFrame, given: dict[str, str], predictor: str, easy: np.ndarray, best: np.ndarray
) -> dict[str, Any]:
    """Return the figures of a predictor in a setting, under one policy."""
    own = times(done, given["policy"], predictor)
    kept = share_of_gain(own, best, easy)
    averaged = {}
    for name, key in AVERAGED.items():
        values = times(done, given["policy"], predictor, key)
        averaged[name] = float(np.nanmean(values)) if np.isfinite(values).any() else None
    return {
        "windows": len(own),
        "response": [float(value) for value in own],
        "easy": [float(value) for value in easy],
        "oracle": [float(value) for value in best],
        "gain": float(1 - best.mean() / easy.mean()),
        "kept": [kept.mean, kept.low, kept.high],
        "worst_of_easy": float((own / easy).max()),
        "worst_of_oracle": float((own / best).max()),
        "worst": float((own / np.maximum(easy, best)).max()),
        **averaged,
    }


def missed(row: dict[str, Any]) -> str:
    """Say which bars a row misses, empty where it holds."""
    share, found = row["kept"][0], []
    least = BARS.get(row["predictor"], 0.0)
    if row["part"] == "kept" and row["gain"] > WORTH and share < least:
        found.append("kept")
    if row["predictor"] in BARS and row["worst"] > LASTING:
        found.append("worst window")
    return ", ".join(found)


def cells(row: dict[str, Any]) -> list[str]:
    """Return a row of the table."""
    low, high = (100 * value for value in row["kept"][1:])
    shown = [
        "" if row[name] is None else f"{100 * row[name]:.1f} %"
        for name in ("median_error", "share_beliefs_off", "area_share_beliefs_off")
    ]
    return [
        f"{row['place']}; {row['truth']}", row["part"], row["policy"], row["predictor"],
        str(row["windows"]), hours(np.array(row["easy"])).split(" ")[0],
        hours(np.array(row["oracle"])).split(" ")[0], hours(np.array(row["response"])),
        f"{100 * row['kept'][0]:.0f} % [{low:.0f}, {high:.0f}]", f"{row['worst_of_easy']:.2f}",
        f"{row['worst_of_oracle']:.2f}", *shown, missed(row),
    ]  # fmt: skip


def plain(value: Any) -> Any:
    """Return a figure as JSON has it: four digits, null for what is not finite."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.4g}") if np.isfinite(value) else None
    return value


HEAD = (
    *("setting", "part", "policy", "predictor", "windows", "EASY (h)", "oracle (h)"),
    *("mean response (h)", "kept [95 %]", "worst / EASY", "worst / oracle", "median error"),
    *("beliefs off", "of the area", "misses"),
)


def means_over_settings(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Return the mean and the least share kept over the settings, by policy and predictor."""
    frame = pd.DataFrame(
        [
            {"policy": r["policy"], "predictor": r["predictor"], "kept": r["kept"][0]}
            for r in rows
            if r["part"] == "kept" and r["gain"] > WORTH
        ],
        columns=["policy", "predictor", "kept"],
    )
    found = []
    for (policy, predictor), mine in frame.groupby(["policy", "predictor"], sort=False):
        shares = mine["kept"]
        found.append(
            [policy, predictor, str(len(mine)), f"{100 * shares.mean():.0f} %",
             f"{100 * shares.min():.0f} %"]
        )  # fmt: skip
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and write its figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--json", type=Path, help="write the figures there")
    asked = parser.parse_args(arguments)
    frame = pd.concat([pd.read_json(path, lines=True) for path in asked.files])
    rows = list(rows_of(frame))
    print(markdown(HEAD, [cells(one) for one in rows]))
    print(markdown(("policy", "predictor", "settings", "kept, mean", "least"),
                   means_over_settings(rows)))  # fmt: skip
    if asked.json:
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        head = json.dumps({"date": date, "commits": sorted(set(frame["commit"]))})
        lines = ",\n".join(json.dumps(plain(one)) for one in rows)
        asked.json.write_text(f'{head[:-1]}, "rows": [\n{lines}\n]}}\n', "utf-8")


if __name__ == "__main__":
    main()
