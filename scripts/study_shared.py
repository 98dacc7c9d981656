"""What load-aware allocation gains on a shared machine, over load levels and beliefs of load.

Prints mean response times with 95 % intervals, and paired differences of each
load-aware policy to its load-blind twin on the same jobs and load, in percent.

    python scripts/study_shared.py --seeds 10
"""

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from scipy.stats import t as student

from sim.app import prepare
from sim.config import CONFIG_FOLDER
from sim.run import play, set_scene

LEVELS = {"light": 4, "medium": 16, "heavy": 64}
"""Most of 64 processors loaded at once; an eighth as many links."""
TWINS = {
    "easy_fastest": "easy",
    "easy_patient": "easy_fastest",
    "sa_easy": "sa_easy_usual",
    "load_aware": "sa_easy_usual",
}
BELIEFS = ("oracle", "forecast", "last")


def configuration(policy: str, belief: str, most: int, jobs: int, seed: int) -> Mapping[str, Any]:
    """Return the whole configuration of one run."""
    composed = compose(
        "config",
        overrides=[
            "cluster=shared", "predictor=rational", "baseline=null", f"policy={policy}",
            f"cluster.belief={belief}", f"cluster.cpu.at_once=[1,{most}]",
            f"cluster.network.at_once=[0,{max(most // 8, 1)}]", "cluster.processors=64",
            f"workload.jobs={jobs}", "workload.load=0.3", f"seed={seed}",
        ],
    )  # fmt: skip
    plain: Any = OmegaConf.to_container(composed, resolve=True)
    return dict(plain)


def mean_response(policy: str, belief: str, most: int, jobs: int, seed: int) -> float:
    """Return the mean response time of one run, seconds."""
    config = configuration(policy, belief, most, jobs, seed)
    records = play(config, config, set_scene(config, 0)).outcome.records
    return float(np.mean(records.end_time - records.submit_time))


def interval(values: np.ndarray) -> str:
    """Return mean and half width of the 95 % interval."""
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.1f} ± {half:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=600)
    parser.add_argument("--levels", nargs="+", default=list(LEVELS))
    parser.add_argument("--beliefs", nargs="+", default=list(BELIEFS))
    arguments = parser.parse_args()
    prepare()
    policies = sorted({*TWINS, *TWINS.values()})
    seeds = range(1, arguments.seeds + 1)
    print("| load | belief | policy | mean response, minutes | against its twin, % |")
    print("| --- | --- | --- | --- | --- |")
    with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
        for level in arguments.levels:
            for belief in arguments.beliefs:
                found = {
                    policy: np.array(
                        [
                            mean_response(policy, belief, LEVELS[level], arguments.jobs, seed)
                            for seed in seeds
                        ]
                    )
                    for policy in policies
                }
                for policy, seconds in found.items():
                    twin = TWINS.get(policy)
                    change = "" if twin is None else interval(100 * (seconds / found[twin] - 1))
                    row = (level, belief, policy, interval(seconds / 60), change)
                    print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
