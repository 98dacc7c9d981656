"""What dynamic prediction is worth to a whole machine: limits, reservations, ill nodes.

Prints, for each way of running the same jobs through the same failures and
disturbances, how response times compare with those of the first way: the change
of the mean, and that of a typical job (geometric mean over jobs), in percent with
95 % intervals over seeds; and what was lost.

    python -m scripts.study_evolving walltime better_ends ill_nodes --seeds 10
"""

import argparse
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scripts.composing import composed
from scripts.study_shared import changes, interval
from sim.run import play, set_scene

FloatArray = NDArray[np.float64]

WAYS: Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]] = {
    "walltime": {
        "limit of two hours": {
            "killed, from its last checkpoint": ["evolving.stop_in_time=false"],
            "stops in time": [],
            "killed for good": ["evolving.stop_in_time=false", "evolving.resubmit=false"],
        }
    },
    "better_ends": {
        policy: {
            f"{policy}, user estimates": [f"policy={policy}", "predictor=user_estimate"],
            f"{policy}, dynamic": [f"policy={policy}", "predictor=dynamic"],
            f"{policy}, true runtimes": [f"policy={policy}", "predictor=oracle"],
        }
        for policy in ("easy", "conservative")
    },
    "ill_nodes": {
        f"phases of {hours} h": {
            f"blind, phases of {hours} h": ["policy=easy", *phases],
            f"avoids, phases of {hours} h": ["policy.react=avoid", *phases],
            f"moves, phases of {hours} h": ["policy.react=restart", *phases],
        }
        for hours, phases in {
            hours: [f"cluster.disturbed={3600 * hours}", f"cluster.quiet={3 * 3600 * hours}"]
            for hours in (2, 8, 32)
        }.items()
    },
}
"""For each preset: groups of ways to run the same jobs, the first being the yardstick."""


class Seen(NamedTuple):
    """What one run showed: response times, share of area lost, restarts, unfinished jobs."""

    response: FloatArray
    lost: float
    restarts: float
    unfinished: float


def run(preset: str, overrides: Sequence[str]) -> Seen:
    """Return what one run showed."""
    config = composed(f"experiment={preset}", *overrides)
    records = play(config, config, set_scene(config, 0)).outcome.records
    held, paid = records.stretches, records.recoveries
    assert paid is not None
    area = float(((held.end_time - held.start_time) * held.processors).sum())
    lost = paid.lost_work + paid.checkpoint_overhead + paid.restart_overhead
    unfinished = sum(status != "completed" for status in records.status)
    return Seen(
        np.asarray(records.end_time - records.submit_time, float),
        float(lost.sum()) / area,
        float(records.restarts.sum()) / len(records.restarts),
        unfinished / len(records.status),
    )


def rows(
    preset: str, ways: Mapping[str, Sequence[str]], seeds: int, more: Sequence[str]
) -> list[tuple[str, ...]]:
    """Return a row a way."""
    found, first = [], None
    for way, overrides in ways.items():
        seen = [run(preset, [*overrides, *more, f"seed={k}"]) for k in range(1, seeds + 1)]
        response = [each.response for each in seen]
        first = first or response
        means = [float(np.mean([each[at] for each in seen])) for at in (1, 2, 3)]
        gained = ("", "") if response is first else changes(response, first)
        minutes = interval(np.array([each.mean() / 60 for each in response]))
        lost, restarts, unfinished = means
        figures = (f"{100 * lost:.1f}", f"{restarts:.2f}", f"{100 * unfinished:.1f}")
        found.append((way, minutes, *gained, *figures))
    return found


def main() -> None:
    """Print the tables of the presets asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("presets", nargs="+", choices=list(WAYS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--more", nargs="*", default=[], help="overrides, as workload.jobs=100")
    arguments = parser.parse_args()
    heading = (
        "way", "response, minutes", "mean, %", "typical job, %", "area lost, %",
        "restarts a job", "unfinished, %",
    )  # fmt: skip
    for preset in arguments.presets:
        print("| " + " | ".join(heading) + " |\n" + "| --- " * len(heading) + "|")
        for ways in WAYS[preset].values():
            for row in rows(preset, ways, arguments.seeds, arguments.more):
                print("| " + " | ".join(row) + " |", flush=True)
        print()


if __name__ == "__main__":
    main()
