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
from sim.asking_metrics import asking_figures
from sim.run import play, set_scene

FloatArray = NDArray[np.float64]

KILLED = ("evolving.stop_in_time=false", "evolving.resubmit=false")
COSTLY = "policy/reallocation/cost@policy.grants.cost=constant"

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
    "longer_limits": {
        "easy": {
            "stops in time, asks nothing": ["evolving.asks.walltime=false"],
            "asks, at once or never": ["policy/grants=now"],
            "asks, at once or later": ["policy/grants=defer"],
            "asks, reservations give way": ["policy/grants=now", "policy.grants.harmless=false"],
        },
        "conservative": {
            f"conservative, {way}": ["policy=conservative", *overrides]
            for way, overrides in {
                "asks nothing": ["evolving.asks.walltime=false"],
                "at once or never": ["policy/grants=now"],
                "at once or later": ["policy/grants=defer"],
                "reservations give way": ["policy/grants=now", "policy.grants.harmless=false"],
            }.items()
        },
        "killed": {
            "killed for good, asks nothing": [*KILLED, "evolving.asks.walltime=false"],
            "killed for good, at once or later": [*KILLED, "policy/grants=defer"],
        },
    },
    "more_processors": {
        policy: {
            f"{policy}, {way}": [f"policy={policy}", *overrides]
            for way, overrides in {
                "refused": ["policy/grants=none"],
                "at once or never": ["policy/grants=now", COSTLY],
                "at once or later": ["policy/grants=defer", COSTLY],
                "reservations give way": [
                    *("policy/grants=defer", COSTLY, "policy.grants.harmless=false"),
                ],
                "later, half efficient": [
                    *("policy/grants=defer", COSTLY, "evolving.asks.efficiency=0.5"),
                ],
            }.items()
        }
        for policy in ("easy", "conservative")
    },
}
"""For each preset: groups of ways to run the same jobs, the first being the yardstick."""

ASKING = ("longer_limits", "more_processors")
"""Presets in which jobs ask."""


class Seen(NamedTuple):
    """What one run showed: response times, and figures a job or as shares.

    Attributes
    ----------
    response : numpy.ndarray of float, seconds
    lost, restarts, unfinished : float
        Share of the area lost, restarts a job, share of the jobs.
    asked, granted, denied : float
        Requests a job, share of them granted, and hours a job that refusals cost;
        NaN where nobody may ask.
    """

    response: FloatArray
    lost: float
    restarts: float
    unfinished: float
    asked: float
    granted: float
    denied: float


def run(preset: str, overrides: Sequence[str]) -> Seen:
    """Return what one run showed."""
    config = composed(f"experiment={preset}", *overrides)
    records = play(config, config, set_scene(config, 0)).outcome.records
    held, paid = records.stretches, records.recoveries
    assert paid is not None
    area = float(((held.end_time - held.start_time) * held.processors).sum())
    lost = paid.lost_work + paid.checkpoint_overhead + paid.restart_overhead
    unfinished = sum(status != "completed" for status in records.status)
    jobs, told = len(records.status), asking_figures(records)
    requests = float(told.get("requests") or np.nan)
    denied = float(told.get("denied_time", np.nan) or 0) + float(told.get("denied_wait") or 0)
    return Seen(
        np.asarray(records.end_time - records.submit_time, float),
        float(lost.sum()) / area,
        float(records.restarts.sum()) / len(records.restarts),
        unfinished / jobs,
        requests / jobs,
        float(told.get("requests_granted") or 0) / requests,
        denied / 3600 / jobs,
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
        means = [float(np.mean([each[at] for each in seen])) for at in range(1, 7)]
        gained = ("", "") if response is first else changes(response, first)
        minutes = interval(np.array([each.mean() / 60 for each in response]))
        lost, restarts, unfinished, asked, granted, denied = means
        figures = (f"{100 * lost:.1f}", f"{restarts:.2f}", f"{100 * unfinished:.1f}")
        told = (f"{asked:.2f}", f"{100 * granted:.0f}", f"{denied:.2f}")
        told = told if np.isfinite(asked) else ("", "", "")
        asks = preset in ASKING
        found.append((way, minutes, *gained, *figures, *(told if asks else ())))
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
    asking = ("requests a job", "granted, %", "hours a job that refusals cost")
    for preset in arguments.presets:
        columns = (*heading, *(asking if preset in ASKING else ()))
        print("| " + " | ".join(columns) + " |\n" + "| --- " * len(columns) + "|")
        for ways in WAYS[preset].values():
            for row in rows(preset, ways, arguments.seeds, arguments.more):
                print("| " + " | ".join(row) + " |", flush=True)
        print()


if __name__ == "__main__":
    main()
