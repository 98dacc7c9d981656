"""Run the experiments on malleable jobs and print their tables.

Usage: python -m scripts.study_malleable [share batch rules curves] [--replications K]
                                         [--jobs N] [--json FILE]

Each table compares variants of one preset of conf/experiment with a reference on
the same jobs, noise and curves (common random numbers). Per replication the ratio
of the mean response times is taken; the table has the geometric mean of the ratios
and its 95 % t interval, as a change in percent.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scripts.composing import Config, composed
from sim.run import Scene, play, set_scene
from sim.statistics.paired import relative_change

Figures = dict[str, float]


@dataclass(frozen=True)
class Study:
    """A preset, settings of it, and variants that are compared on each setting.

    Attributes
    ----------
    preset : str
    settings : mapping of str to sequence of str
        Name to overrides that change the jobs.
    variants : mapping of str to sequence of str
        Name to overrides that change the policy or the predictor alone.
    reference : str
        The variant that the others are compared with.
    """

    preset: str
    settings: Mapping[str, Sequence[str]]
    variants: Mapping[str, Sequence[str]]
    reference: str


SRPT = "SRPT (heSRPT, p = 0.9999)"
EXPONENTS = {f"p = {p}": [f"moldability.exponent_min={p}"] for p in (0.3, 0.5, 0.8, 0.9)}
SHARES = {f"{share:.0%} malleable": [f"moldability.share={share}"] for share in (0.2, 0.4, 0.6, 1)}
STUDIES = {
    "share": Study(
        "malleable_share",
        SHARES,
        {
            "EASY": ["policy=easy"],
            "pools, min": ["policy.reallocation.strategy=min"],
            "pools, pref": ["policy.reallocation.strategy=pref"],
            "pools, average": [],
            "pools, average, no reclaim": ["policy.reallocation.reclaim=false"],
            "pools, average, 60 s a change": [
                "policy/reallocation/cost=constant",
                "policy.reallocation.cost.seconds=60",
            ],
        },
        "EASY",
    ),
    "batch": Study(
        "malleable_batch",
        EXPONENTS,
        {
            "heSRPT": [],
            "EQUI": ["policy=equi"],
            SRPT: ["policy.reallocation.exponent=0.9999"],
            "HELL": ["policy=hell"],
            **{
                f"KNEE, θ = {seconds} s": [
                    "policy=knee_first",
                    f"policy.reallocation.threshold={seconds}",
                ]
                for seconds in (6, 20, 60, 120, 600)
            },
        },
        "heSRPT",
    ),
    "rules": Study(
        "malleable_rules",
        {"Downey curves, load 0.8": []},
        {
            "EASY": ["policy=easy"],
            "EQUI": ["policy=equi"],
            "DEQ": ["policy=deq"],
            "heSRPT": [],
            SRPT: ["policy.reallocation.exponent=0.9999"],
            "HELL": ["policy=hell"],
            "KNEE": ["policy=knee_first"],
            "pools, average": ["policy=pools"],
            "greedy expansion": ["policy=expand"],
            "marginal efficiency": ["policy=marginal"],
            "marginal efficiency over work": ["policy=marginal", "policy.reallocation.weight=work"],
            "PDPA": ["policy=pdpa"],
        },
        "EQUI",
    ),
    "curves": Study(
        "malleable_curves",
        {"downey": [], "general": ["moldability=general"]},
        {
            "oracle": ["predictor=oracle"],
            "adept": [],
            "consensus": ["predictor=consensus"],
            "amdahl": ["predictor=amdahl"],
            "none (user estimates)": ["predictor=user_estimate"],
            "no curve needed (EQUI)": ["policy=equi", "policy/reallocation/cost=constant"],
            "no reallocation (EASY)": ["policy=easy"],
        },
        "oracle",
    ),
}


def variant(study: Study, overrides: Sequence[str]) -> Config:
    """Return the configuration of a variant.

    A variant that changes the policy leaves the preset's own policy keys behind.
    """
    preset = f"experiment={study.preset}"
    if not any(one.startswith("policy=") for one in overrides):
        return composed(preset, *overrides)
    other = composed(*(one for one in overrides if one.startswith("policy")))
    whole = composed(preset, *(one for one in overrides if not one.startswith("policy")))
    return {**whole, "policy": other["policy"]}


def measure(config: Mapping[str, Any], scene: Scene) -> Figures:
    """Return the figures of one run."""
    played = play(config, config, scene).outcome
    every, records = played.tables.jobs, played.records
    jobs = every[every["job_id"] >= 0]
    serial = played.truth.serial_time[played.counted]
    return {
        "response": float(jobs["response_time"].mean()),
        "slowdown": float(jobs["bounded_slowdown"].mean()),
        "makespan": float(records.end_time.max() - records.submit_time.min()),
        "efficiency": float(serial.sum() / jobs["held_area"].sum()),
        "changes": (len(records.stretches.job) - len(every)) / len(jobs),
        "lost": float(records.counters["reallocation_area"] / jobs["held_area"].sum()),
    }


def run(study: Study, replications: int, jobs: int | None) -> dict[str, dict[str, list[Figures]]]:
    """Return figures by setting, variant and replication."""
    size = [] if jobs is None else [f"workload.jobs={jobs}"]
    found: dict[str, dict[str, list[Figures]]] = {}
    for setting, changed in study.settings.items():
        variants = {
            name: variant(study, [*changed, *overrides, *size])
            for name, overrides in study.variants.items()
        }
        rows: dict[str, list[Figures]] = {name: [] for name in variants}
        for k in range(replications):
            scene = set_scene(next(iter(variants.values())), k)
            for name, config in variants.items():
                rows[name].append(measure(config, scene))
        found[setting] = rows
    return found


def change(ours: Sequence[float], reference: Sequence[float]) -> str:
    """Return the mean relative change and its 95 % interval, in percent."""
    found = relative_change(ours, reference)
    return f"{100 * found.mean:+.1f} % ({100 * found.low:+.1f} to {100 * found.high:+.1f})"


def table(study: Study, found: Mapping[str, Mapping[str, list[Figures]]]) -> str:
    """Return the results as a table in Markdown."""
    lines = [
        f"| setting | variant | mean response | against {study.reference} | makespan against it "
        "| system efficiency | changes a job | time lost |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for setting, rows in found.items():
        base = rows[study.reference]
        for name, figures in rows.items():
            mean = {key: np.mean([row[key] for row in figures]) for key in figures[0]}
            against = [
                "–"
                if name == study.reference
                else change([row[key] for row in figures], [row[key] for row in base])
                for key in ("response", "makespan")
            ]
            lines.append(
                f"| {setting} | {name} | {mean['response']:,.0f} s | {against[0]} | {against[1]} "
                f"| {mean['efficiency']:.2f} | {mean['changes']:.1f} | {mean['lost']:.2%} |"
            )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the studies that are named and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("studies", nargs="*", help=", ".join(STUDIES))
    parser.add_argument("--replications", type=int, default=10)
    parser.add_argument("--jobs", type=int, help="jobs of each run; the preset's by default")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args(arguments)
    everything = {}
    for name in options.studies or STUDIES:
        study = STUDIES[name]
        everything[name] = run(study, options.replications, options.jobs)
        print(f"\n## {study.preset}\n\n{table(study, everything[name])}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
