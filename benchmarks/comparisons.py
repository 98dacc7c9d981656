"""How often intervals of comparisons cover, and how often a queue is rightly said to settle.

    python -m benchmarks.comparisons OUT [--log SWF] [--samples 1000]

Writes what ``docs/results/comparisons/data.json`` holds. LOG is cut into windows of 500 jobs, of
which samples are drawn; without it there are no rows of it. Runs are EASY's on Lublin's model, as
published and without jobs wider than 0.7 of the machine. Its seeds are not those that constants
of `sim.statistics` and `sim.results.outcome` were chosen on.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from scripts.composing import composed
from sim.results.metrics import summarise, whole_figures
from sim.results.rows import changes_of
from sim.results.steady_state import STEADY, in_order
from sim.simulation.build import build
from sim.simulation.scene import Scene, play, set_scene, source_of
from sim.statistics import compare, log_ratios
from workloads.arrivals import scale_load
from workloads.streams import Streams

PAIRS = (10, 20, 40)
SHAPE, SPREAD = 4 / 9, 0.71556
"""Of a gamma and a lognormal law of skewness 3."""
LAWS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t, 3 degrees": lambda rng, n: rng.standard_t(3, n),
    "t, 2 degrees": lambda rng, n: rng.standard_t(2, n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "skewness 3, lognormal": lambda rng, n: rng.lognormal(0.0, SPREAD, n) - np.exp(SPREAD**2 / 2),
    "skewness 3, gamma": lambda rng, n: rng.gamma(SHAPE, size=n) - SHAPE,
}
WINDOW, WINDOWS, RULES = 500, 146, ("sa_easy", "sa")
MACHINE, WIDEST, FIRST_SEED = 256, 0.7, 50_001
RUNS = {1000: 150, 5000: 60}
"""Runs by their jobs."""
FORMER = ("workload.widest=null", "workload.time_limit=null", "workload.at_limit=null",
          "moldability.requests=independent")  # fmt: skip
"""The model as published, and curves drawn apart from requests."""
LOADS = {"narrow": (0.6, 0.7, 0.8, 0.9, 1.0, 1.1), "published": (0.6, 0.7, 0.8, 1.0)}


def covered(draw: Callable[[], np.ndarray], truth: float, samples: int) -> float:
    """Return the share of samples whose interval holds the truth."""
    found = (compare([draw()], shares=[True]).comparisons[0].change for _ in range(samples))
    return float(np.mean([one.contains(truth) for one in found]))


def false_tables(rng: np.random.Generator, pairs: int, samples: int) -> float:
    """Return the share of tables of twelve equals in which any is better or worse."""
    found = []
    for _ in range(samples):
        times = rng.lognormal(9.0, 0.4, (13, pairs))
        table = compare([log_ratios(own, times[0]) for own in times[1:]])
        found.append(any(one.certain for one in table.comparisons))
    return float(np.mean(found))


def windows(log: Path, policy: str, predictor: str) -> list[dict[str, Any]]:
    """Return the summaries of a policy on all windows of a log."""
    asked = (f"policy={policy}", f"predictor={predictor}", f"workload.jobs={WINDOW}", FORMER[-1])
    config = composed("baseline=null", "workload=swf", f"workload.path={log}", *asked)
    scenes = (set_scene(config, k) for k in range(WINDOWS))
    return [dict(summarise(play(config, config, scene).outcome)) for scene in scenes]


def coverage(log: Path | None, samples: int) -> Iterator[dict[str, Any]]:
    """Yield a row a law, and of rules on a log."""
    rng = np.random.default_rng(4242)
    for name, law in LAWS.items():
        row = [covered(lambda n=n, law=law: law(rng, n), 0.0, samples) for n in PAIRS]
        yield {"differences": name, "shares": row}
    base = [] if log is None else windows(log, "easy", "user_estimate")
    places = in_order(base)
    for rule in RULES if log is not None else ():
        own = windows(log, rule, "adept")
        every = changes_of([(own[k], base[k]) for k in places], "mean_response_time")
        row = [
            covered(lambda n=n, every=every: rng.choice(every, n), float(every.mean()), samples)
            for n in PAIRS
        ]
        yield {"differences": f"{rule} on {log.name.partition('-1')[0]}", "shares": row}
    yield {"differences": "false tables", "shares": [false_tables(rng, n, samples) for n in PAIRS]}


def scene_of(world: str, load: float, jobs: int, seed: int) -> tuple[dict[str, Any], Scene]:
    """Return the configuration and the jobs of a run."""
    asked = ("baseline=null", "policy=easy", "predictor=user_estimate", f"seed={seed}")
    config = composed(*asked, f"workload.jobs={2 * jobs}", f"workload.load={load}", *FORMER)
    trace = build(source_of(config["workload"]), "workload").trace(Streams(seed), MACHINE)
    fits = trace.jobs["requested_processors"] <= (WIDEST if world == "narrow" else 1.0) * MACHINE
    kept = trace.jobs[fits].iloc[:jobs].reset_index(drop=True)
    kept = scale_load(kept.assign(job_id=np.arange(1, jobs + 1)), MACHINE, load)
    return config, set_scene(config, 0, replace(trace, jobs=kept))


def steadiness() -> Iterator[dict[str, Any]]:
    """Yield how many runs do not settle, a row a world, load and length."""
    for world, loads in LOADS.items():
        for load in loads:
            for jobs, runs in RUNS.items():
                found = []
                for seed in range(FIRST_SEED, FIRST_SEED + runs):
                    config, scene = scene_of(world, load, jobs, seed)
                    ended = play(config, config, scene).outcome
                    found.append(whole_figures(ended)[STEADY] is False)
                row = {"world": world, "load": load, "jobs": jobs, "runs": runs}
                yield row | {"unsteady": float(np.mean(found))}


def main() -> None:
    """Write the rows of both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--samples", type=int, default=1000)
    asked = parser.parse_args()
    rows = [*coverage(asked.log, asked.samples), *steadiness()]
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    asked.out.write_text(
        f'{{\n "samples": {asked.samples},\n "rows": [\n{lines}\n ]\n}}\n', encoding="utf-8"
    )


if __name__ == "__main__":
    main()
