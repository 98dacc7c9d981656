"""What the default moldable rule gains under eight kinds of curves, by who predicts them.

    python -m benchmarks.kept_by_beliefs ROWS [--seeds 2001-2010] [--curves FOLDER]

Jobs are those of the default model, with sizes hidden and known, at loads 0.7 and 0.9. Of each
run the mean response over that of EASY with requested times on the same jobs is written as a line
of JSON to ROWS, with how many jobs were molded; what stands there is not run again. Then the mean
and the worst run are printed for each predictor, whether sizes are known, load and kind of
curves. FOLDER holds tables of measured curves; without it there are seven kinds. The seeds are
not those that constants were chosen on (below 2000).
"""

import argparse
import json
import logging
from collections import defaultdict
from collections.abc import Iterator
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
PREDICTORS = (
    "adept", "consensus", "regression", "universal_scalability", "dynamic", "oracle",
)  # fmt: skip
KEYS = ("curves", "load", "size", "seed", "predictor")


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
        labels = [(curves, load, size, seed, predictor) for predictor in PREDICTORS]
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
            own, molded = response(scene, asked, f"policy={RULE}", f"predictor={label[-1]}")
            row = dict(zip(KEYS, label, strict=True))
            yield row | {"ratio": round(own / easy, 4), "molded": molded}


def shown(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a table of Markdown, a line a predictor, size, load and kind of curves."""
    yield "| predictor | sizes | load | curves | runs | mean | worst | jobs molded |"
    yield "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: |"
    groups = defaultdict(list)
    for row in rows:
        groups[row["predictor"], row["size"], row["load"], row["curves"]].append(row)
    for (predictor, size, load, curves), own in sorted(groups.items()):
        ratios = [row["ratio"] for row in own]
        molded = sum(row["molded"] for row in own) / len(own)
        cells = (len(own), f"{sum(ratios) / len(own):.3f}", f"{max(ratios):.3f}", f"{molded:.0f}")
        yield "| " + " | ".join(map(str, (predictor, size, load, curves, *cells))) + " |"


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--seeds", default="2001-2010")
    parser.add_argument("--curves", type=Path)
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    first, last = map(int, asked.seeds.split("-"))
    more = () if asked.curves is None else (f"moldability.path={asked.curves}",)
    text = asked.rows.read_text(encoding="utf-8") if asked.rows.exists() else ""
    rows = [json.loads(line) for line in text.splitlines()]
    done = {tuple(row[key] for key in KEYS) for row in rows}
    with asked.rows.open("a", encoding="utf-8") as file:
        for seed in range(first, last + 1):
            for row in of_seed(seed, more, done):
                rows.append(row)
                file.write(json.dumps(row) + "\n")
                file.flush()
    print("\n".join(shown(rows)))


if __name__ == "__main__":
    main()
