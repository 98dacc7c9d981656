"""What trying the counts that ADEPT asks for buys, from the preset ``experiment=explore``.

Usage: python -m scripts.study_explore [--replications 10] [KEY=VALUE ...]

All rows of a load replay the same jobs (common random numbers). A change is the
mean over replications of log ratios to never exploring and never calibrating,
with its 95 % t interval. Writes Markdown.
"""

import argparse
from collections.abc import Mapping, Sequence

from scripts.composing import composed, settings
from scripts.study_moldable import change, column
from sim.metrics import summarise
from sim.run import Scene, play, set_scene
from sim.statistics.intervals import t_interval

NAMES = {
    ("sa", "0"): "never",
    ("explore", "0"): "trying counts when idle",
    ("sa", "3"): "three calibration runs, charged",
    ("explore", "3"): "both",
}
"""What a row is called, by policy and calibration runs; the first is the reference."""
ORACLE = "oracle"
Runs = dict[tuple[str, str], list]


def study(more: Sequence[str], replications: int) -> Runs:
    """Return the summaries of all replications by (row, load)."""
    found: Runs = {}
    scenes: dict[tuple[str, int], Scene] = {}
    for setting in settings("explore", more):
        name = NAMES[setting["policy"], setting["predictor.calibration"]]
        runs = _played(more, setting, scenes, replications)
        found[name, setting["workload.load"]] = runs
        if name == NAMES["sa", "0"]:
            best = {"policy": "sa", "workload.load": setting["workload.load"]}
            truth = {**best, "predictor": "oracle", "~predictor.charge": None}
            runs = _played(more, truth, scenes, replications)
            found[ORACLE, setting["workload.load"]] = runs
    return found


def _played(
    more: Sequence[str],
    setting: Mapping[str, str | None],
    scenes: dict[tuple[str, int], Scene],
    replications: int,
) -> list:
    keys = [key if value is None else f"{key}={value}" for key, value in setting.items()]
    config = composed("experiment=explore", *more, *keys)
    load = str(setting["workload.load"])
    summaries = []
    for k in range(replications):
        if (load, k) not in scenes:
            scenes[load, k] = set_scene(config, k)
        summaries.append(summarise(play(config, config, scenes[load, k]).outcome))
    return summaries


def table(found: Runs, load: str) -> list[str]:
    """Return a table of one load, a row a way to learn."""
    reference = column(found[NAMES["sa", "0"], load], "mean_response_time")
    lines = [
        f"| load {load} | mean response, change | median error | starts on a fitted curve |",
        "| --- | --- | --- | --- |",
    ]
    for name in (*NAMES.values(), ORACLE):
        runs = found[name, load]
        own = column(runs, "mean_response_time")
        is_reference = name == NAMES["sa", "0"]
        cells = [f"{own.mean():,.0f} s" if is_reference else change(own / reference)]
        for key in ("prediction_median_error", "share_fitted_starts"):
            share = t_interval(100 * column(runs, key))
            known = f"{share.mean:.1f} % [{share.low:.1f}, {share.high:.1f}]"
            cells.append("–" if name == ORACLE else known)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    """Play, and print a table a load."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=10)
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    chosen = parser.parse_args()
    found = study(chosen.overrides, chosen.replications)
    for load in dict.fromkeys(load for _, load in found):
        print("\n".join(table(found, load)), end="\n\n")


if __name__ == "__main__":
    main()
