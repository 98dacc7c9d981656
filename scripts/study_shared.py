"""What load-aware allocation gains on a shared machine, over load levels and beliefs of load.

Prints how the response time of each load-aware policy compares with that of its
load-blind twin on the same jobs under the same load: the change of the mean, and
that of a typical job (geometric mean over jobs), in percent, with 95 % intervals
over seeds. The twin knows the long-run average of the load and nothing more.

    python -m scripts.study_shared --seeds 10
"""

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scripts.composing import composed
from sim.run import play, set_scene
from sim.statistics.intervals import t_interval

FloatArray = NDArray[np.float64]

ROUNDS = {"light": 4, "medium": 16, "heavy": 48}
"""Most of 64 processors that the paper's rounds of 3 to 8 minutes load at once."""
BURSTS = {"light": 0.05, "medium": 0.15, "heavy": 0.3}
"""Share of the time for which bursts of hours load each processor."""
BURST = 5561.0
"""Mean seconds of a burst: bounded Pareto, 1,800 to 43,200 s, exponent 1.1."""
TWINS = {
    "easy_fastest": "easy",
    "easy_patient": "easy",
    "sa_easy": "sa_easy_usual",
    "load_aware": "sa_easy_usual",
}
BELIEFS = ("oracle", "forecast", "last")


def load(kind: str, level: str) -> list[str]:
    """Return the overrides that make a kind of load of some level."""
    if kind == "rounds":
        most = ROUNDS[level]
        return [f"cluster.cpu.at_once=[1,{most}]", f"cluster.network.at_once=[0,{most // 8 + 1}]"]
    share = BURSTS[level]
    pause = BURST * (1.0 - share) / share
    return [
        "cluster/cpu=bursty",
        "cluster.cpu.loaded=[1800,43200]",
        f"cluster.cpu.free=[{0.5 * pause:.0f},{1.5 * pause:.0f}]",
        f"cluster.network.at_once=[0,{ROUNDS[level] // 8 + 1}]",
    ]


def responses(policy: str, belief: str, scene: Sequence[str]) -> FloatArray:
    """Return the response time of every job of one run, seconds."""
    overrides = ["experiment=shared_load", f"policy={policy}", f"cluster.belief={belief}", *scene]
    config = composed(*overrides)
    ended = play(config, config, set_scene(config, 0)).outcome
    responses = ended.records.end_time - ended.records.submit_time
    return np.asarray(responses[ended.counted], float)


def interval(values: FloatArray) -> str:
    """Return mean and half width of the 95 % interval; the value alone of a single seed."""
    if len(values) == 1:
        return f"{values[0]:.1f}"
    found = t_interval(values)
    return f"{found.mean:.1f} ± {found.half:.1f}"


def change(ratios: FloatArray) -> str:
    """Return the geometric mean of ratios as a change in percent, with its 95 % interval."""
    logs = t_interval(np.log(ratios))
    mean = np.exp(logs.mean)
    if len(ratios) == 1:
        return f"{100 * (mean - 1):.1f}"
    return f"{100 * (mean - 1):.1f} ± {100 * mean * logs.half:.1f}"


def changes(aware: Sequence[FloatArray], blind: Sequence[FloatArray]) -> tuple[str, str]:
    """Return the change of the mean and that of a typical job, percent, over seeds."""
    pairs = list(zip(aware, blind, strict=True))
    means = np.array([own.mean() / twin.mean() for own, twin in pairs])
    typical = np.array([np.exp(np.log(own / twin).mean()) for own, twin in pairs])
    return change(means), change(typical)


def rows(kind: str, level: str, seeds: int, more: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the table of one kind and level of load, a row a policy and belief."""
    scenes = [[*load(kind, level), *more, f"seed={seed}"] for seed in range(1, seeds + 1)]
    blind = {
        twin: [responses(twin, "mean", scene) for scene in scenes]
        for twin in dict.fromkeys(TWINS.values())
    }
    found = []
    for policy, twin in TWINS.items():
        minutes = interval(np.array([each.mean() / 60 for each in blind[twin]]))
        for belief in BELIEFS:
            aware = [responses(policy, belief, scene) for scene in scenes]
            found.append((kind, level, policy, belief, minutes, *changes(aware, blind[twin])))
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--kinds", nargs="+", default=["rounds", "bursts"])
    parser.add_argument("--levels", nargs="+", default=list(ROUNDS))
    parser.add_argument("overrides", nargs="*", help="further overrides, such as workload.jobs=100")
    arguments = parser.parse_args()
    print("| load | level | policy | belief | twin, minutes | mean, % | typical job, % |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for kind in arguments.kinds:
        for level in arguments.levels:
            for row in rows(kind, level, arguments.seeds, arguments.overrides):
                print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
