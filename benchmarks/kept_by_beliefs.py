"""What the default moldable rule gains under eight kinds of curves, by who predicts them.

    python -m benchmarks.kept_by_beliefs OUT [--seeds 2001-2010] [--curves FOLDER]

Writes what ``docs/results/eight_curves/data.json`` holds, and prints the table of that page: jobs
of the default model, sizes hidden and known, loads 0.7 and 0.9, the mean response of each run over
that of EASY with requested times on the same jobs. What stands in OUT is not run again. FOLDER
holds tables of measured curves; without it there are seven kinds. The seeds are not those that
constants were chosen on (below 2000). With sizes known those that have a gate run without it, too.
"""

import argparse
import json
import logging
from collections import defaultdict
from collections.abc import Iterator
from math import log
from pathlib import Path
from typing import Any

from scripts.composing import composed
from sim.results.metrics import summarise
from sim.simulation.scene import Scene, play, set_scene

RULE = "sa_easy"
JOBS = 1500
LOADS = (0.7, 0.9)
CURVES = {
    "amdahl": ("moldability=amdahl",),
    "downey": ("moldability=downey",),
    "measured": ("moldability=measured",),
    "stepwise": ("moldability=stepwise",),
    "superlinear": ("moldability=stepwise", "moldability.gain_min=0.3",
                    "moldability.gain_max=0.6", "moldability.steps=3"),
    "power": ("moldability=power",),
    "declining": ("moldability=declining",),
    "cliffs": ("moldability=special",),
}  # fmt: skip
LEARNERS = ("adept", "consensus", "regression", "universal_scalability", "dynamic")
NO_GATE = " without gate"
PREDICTORS = {
    "hidden": (*LEARNERS, "oracle"),
    "known": (*LEARNERS, "oracle", *(name + NO_GATE for name in LEARNERS[:-1])),
}
KEYS = ("curves", "load", "size", "seed", "predictor")
HEADS = (
    "predictor", "sizes", "load", "runs", "best kind", "worst kind", "worst run", "jobs molded",
)  # fmt: skip


def response(scene: Scene, asked: tuple[str, ...], *rule: str) -> tuple[float, int]:
    """Return the mean response under a rule on a scene, and how many jobs were molded."""
    config = composed(*asked, *rule)
    figures = summarise(play(config, config, scene).outcome)
    return float(figures["mean_response_time"]), int(figures["molded_jobs"])


def of_seed(seed: int, more: tuple[str, ...], done: set[tuple[Any, ...]]) -> Iterator[Any]:
    """Yield the rows of a seed that are not done."""
    kinds = [kind for kind in CURVES if kind != "measured" or more]
    for curves, load, size in (
        (c, x, s) for x in LOADS for c in kinds for s in ("hidden", "known")
    ):
        labels = [(curves, load, size, seed, predictor) for predictor in PREDICTORS[size]]
        missing = [label for label in labels if label not in done]
        if not missing:
            continue
        asked = (
            "baseline=null", f"seed={seed}", f"workload.jobs={JOBS}", f"workload.load={load}",
            f"workload.size={size}", *CURVES[curves], *(more if curves == "measured" else ()),
        )  # fmt: skip
        scene = set_scene(composed(*asked), 0)
        easy, _ = response(scene, asked, "policy=easy", "predictor=user_estimate")
        for label in missing:
            name = label[-1].removesuffix(NO_GATE)
            gate = ("predictor.most_error=null",) if name != label[-1] else ()
            rule = (f"policy={RULE}", f"predictor={name}", *gate)
            own, molded = response(scene, asked, *rule)
            row = dict(zip(KEYS, label, strict=True))
            yield row | {"ratio": round(own / easy, 4), "molded": molded}


def shown(rows: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield a line a predictor, size and load: over the kinds of curves, and over all runs."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["predictor"], row["size"], row["load"]].append(row)
    for (predictor, size, load), own in sorted(groups.items()):
        kinds = defaultdict(list)
        for row in own:
            kinds[row["curves"]].append(row["ratio"])
        means = sorted((sum(one) / len(one), name) for name, one in kinds.items())
        molded = sum(row["molded"] for row in own) / len(own)
        least, most = (f"{mean:.3f} ({name})" for mean, name in (means[0], means[-1]))
        worst = max(row["ratio"] for row in own)
        yield predictor, size, load, len(own), least, most, f"{worst:.3f}", f"{molded:.0f}"


def gate(rows: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield a line a learner and load: how much of the gain without the gate it has with it."""
    ratios = {tuple(row[key] for key in KEYS): row["ratio"] for row in rows}
    for load in LOADS:
        for name in LEARNERS[:-1]:
            pairs = [
                (ratios[*one[:-1], name], ratio)
                for one, ratio in ratios.items()
                if one[1] == load and one[-1] == name + NO_GATE
            ]
            own, free = (sum(map(log, each)) for each in zip(*pairs, strict=True))
            yield name, load, len(pairs), f"{100 * own / free:.0f} %"


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", default="2001-2010")
    parser.add_argument("--curves", type=Path)
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    first, last = map(int, asked.seeds.split("-"))
    more = () if asked.curves is None else (f"moldability.path={asked.curves}",)
    rows = json.loads(asked.out.read_text())["rows"] if asked.out.exists() else []
    done = {tuple(row[key] for key in KEYS) for row in rows}
    for seed in range(first, last + 1):
        for row in of_seed(seed, more, done):
            rows.append(row)
            text = ",\n".join(f"  {json.dumps(row)}" for row in rows)
            asked.out.write_text(f'{{\n "rows": [\n{text}\n ]\n}}\n', encoding="utf-8")
    print("\n".join(" | ".join(map(str, line)) for line in (HEADS, *shown(rows))))


if __name__ == "__main__":
    main()
