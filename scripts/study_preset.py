"""Carry out an experiment preset without artefacts, and print its answers as Markdown.

Usage: python -m scripts.study_preset NAME [key=value ...] [--replications K] [--against LABEL]

The same as ``python -m sim.study NAME``, but all settings on the same jobs share
them, which spares most of the time, and nothing is kept but the tables.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from scripts.composing import Config, composed, settings
from sim.given import given_figures
from sim.metrics import summarise
from sim.report.answer_tables import answers, verdict
from sim.report.samples import Group, Sample
from sim.run import Scene, play, set_scene

SEPARATE = ("policy", "predictor")
"""Groups whose keys do not change the jobs."""


def jobs_key(setting: dict[str, str]) -> str:
    """Return what of a setting changes the jobs."""
    own = {k: v for k, v in setting.items() if k.replace("/", ".").split(".")[0] not in SEPARATE}
    return repr(own)


def typed(value: str) -> object:
    """Return a number as such, for the labels and the load curves of a comparison."""
    try:
        return float(value)
    except ValueError:
        return value


def carry_out(name: str, overrides: Sequence[str], replications: int | None) -> list[Group]:
    """Return a group of simulations for each setting of a preset, by replication."""
    every = list(settings(name, overrides))
    differing = [key for key in every[0] if len({one[key] for one in every}) > 1]
    others = [one for one in overrides if one.split("=", 1)[0] not in every[0]]
    configs: list[Config] = [
        composed(f"experiment={name}", *others, *(f"{k}={v}" for k, v in one.items()))
        for one in every
    ]
    groups = [Group({key: typed(one[key]) for key in differing}, "run") for one in every]
    for replication in range(replications or configs[0]["replications"]):
        scenes: dict[str, Scene] = {}
        for setting, config, group in zip(every, configs, groups, strict=True):
            key = jobs_key(setting)
            if key not in scenes:
                scenes[key] = set_scene(config, replication)
            played = play(config, config, scenes[key])
            given = given_figures(config, scenes[key], played)
            summary = summarise(played.outcome, calibration=played.known, more=given)
            label = f"replication={replication}"
            group.samples.append(Sample(Path(), label, summary | {"seed": config["seed"]}))
    return groups


def markdown(table: pd.DataFrame) -> str:
    head = "| " + " | ".join(map(str, table.columns)) + " |"
    rule = "| --- |" + " ---: |" * (len(table.columns) - 1)
    rows = ["| " + " | ".join(row) + " |" for row in table.astype(str).to_numpy().tolist()]
    return "\n".join([head, rule, *rows]) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Carry out a preset and print its answers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("--replications", type=int)
    parser.add_argument("--against")
    parser.add_argument("--figure", default="mean_response_time")
    asked = parser.parse_args(arguments)
    groups = carry_out(asked.name, asked.overrides, asked.replications)
    found = answers(groups, asked.figure, asked.against, 0)
    for title, table in found.tables().items():
        print(f"### {title}\n\n{markdown(table)}")
    for sentence in verdict(found.differences):
        print(sentence)


if __name__ == "__main__":
    main()
