"""Record what simulations give, byte for byte, and compare with an earlier recording.

Usage: python -m scripts.record_results OUT [--against EARLIER] [--log SDSC-SP2.swf.gz] [--jobs N]

At toy size: every experiment with each value of its axes, every policy preset with three
predictors, the three kinds of cluster, evolving and malleable jobs; with ``--log`` that log
under EASY, conservative and SA. OUT is JSON: for each setting the SHA-256 of its summary and
of each of its tables. With ``--against`` the settings that differ are named, and the status
is 1 where there are any: what a change that must not change results is judged by.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

from scripts.composing import axes, composed
from sim.config import CONFIG_FOLDER
from sim.errors import SimError
from sim.results.artefacts import write_table
from sim.results.metrics import summarise
from sim.results.outcome import TABLES
from sim.simulation.scene import play, set_scene

PREDICTORS = ("user_estimate", "oracle", "adept")
LONG = {"checkpoints": ["workload.cycles=60"], "cycles": ["workload.cycles=60"]}
LONG["interference"] = LONG["cycles"]
LONG["shared_load"] = ["workload.jobs=10", "cluster.processors=16", "cluster.history=1200"]


def names(group: str) -> list[str]:
    """Return the options of a group."""
    return sorted(path.stem for path in (CONFIG_FOLDER / group).glob("*.yaml"))


def settings(jobs: int) -> Iterator[tuple[str, ...]]:
    """Yield the overrides of every toy."""
    toy = f"workload.jobs={jobs}"
    for experiment in names("experiment"):
        swept = [[f"{key}={value}" for value in values] for key, values in axes(experiment).items()]
        longest = max(map(len, swept), default=1)
        small = LONG.get(experiment, [toy])
        for k in range(longest):
            chosen = [values[min(k, len(values) - 1)] for values in swept]
            yield (f"experiment={experiment}", *small, *chosen)
    for policy in names("policy"):
        for predictor in PREDICTORS:
            yield (f"policy={policy}", f"predictor={predictor}", toy)
    for predictor in names("predictor"):
        yield ("policy=sa_easy", f"predictor={predictor}", toy)
    for policy in ("easy", "sa_easy", "load_aware"):
        shared = ("cluster=shared", "cluster.processors=16", "cluster.history=1200")
        yield (f"policy={policy}", "predictor=rational", *shared, "workload.jobs=10")
    for policy in ("easy", "sa", "equi"):
        yield (f"policy={policy}", "cluster=failing", "cluster.mtbf=1000000", toy)
    for policy in ("easy", "expand"):
        evolving = ("workload=decks", "workload.cycles=60", "evolving=adaptive")
        yield (f"policy={policy}", "predictor=dynamic", *evolving)


def replays(log: str) -> Iterator[tuple[str, ...]]:
    """Yield the overrides of the replays of a real log."""
    for policy in ("easy", "conservative", "sa"):
        yield ("workload=swf", f"workload.path={log}", f"policy={policy}", "predictor=oracle")


def digests(overrides: tuple[str, ...]) -> dict[str, str]:
    """Return the SHA-256 of the summary and of the tables of a run, or why it is refused."""
    config = composed(*overrides)
    try:
        scene = set_scene(config, 0)
        outcome = play(config, config, scene).outcome
    except SimError as refused:
        return {"refused": str(refused)}
    summary = json.dumps(summarise(outcome), sort_keys=True)
    found = {"summary": hashlib.sha256(summary.encode()).hexdigest()}
    with tempfile.TemporaryDirectory() as folder:
        for name in TABLES:
            path = Path(folder) / f"{name}.parquet"
            write_table(outcome.tables.columns(name), path)
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--log")
    parser.add_argument("--jobs", type=int, default=40)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    wanted = [*settings(asked.jobs), *(replays(asked.log) if asked.log else ())]
    found = {}
    for overrides in wanted:
        key = " ".join(one for one in overrides if not one.startswith("workload.path="))
        found[key] = digests(overrides)
    asked.out.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{len(found)} settings")
    if asked.against is None:
        return
    earlier = json.loads(asked.against.read_text(encoding="utf-8"))
    differing = [key for key in earlier if found.get(key) != earlier[key]]
    for key in differing:
        parts = [p for p in earlier[key] if found.get(key, {}).get(p) != earlier[key][p]]
        print(f"differs: {key}: {', '.join(parts)}")
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
