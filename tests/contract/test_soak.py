"""A small part of ``make soak``: every kind of trial, none of which finds anything."""

import sys
from unittest.mock import patch

import pytest

from sim.results.metrics import summarise
from sim.simulation.scene import play, set_scene
from sim.warm import configuration
from tests.soak.__main__ import KINDS, main
from tests.soak.trials import dice_of, series

FEW = {
    "legal configurations": 0.004,
    "wrong configurations": 0.006,
    "odd values": 0.004,
    "files": 0.003,
    "kills": 0.01,
    "pairs of processes": 0.02,
    "faults of the disk": 0.03,
}
"""The part of each kind that takes a few seconds."""
MENDED = (
    "sim.check=true seed=986 workload.jobs=25 workload=downey workload.load=0.3 policy=expand "
    "+policy/placement=fastest predictor=noisy_oracle_50 moldability=downey cluster=shared "
    "cluster/cpu=constant cluster/network=idle cluster.belief=oracle "
    "cluster.processors_per_node=2 overrun=kill baseline=null",
    "sim.check=true seed=2 workload.jobs=25 cluster.processors=16 policy=conservative "
    "policy/reallocation=pools predictor=noisy_oracle moldability=stepwise baseline=null",
    "sim.check=true workload.jobs=8 cluster.processors=32 policy=sa policy/order=f2 "
    "policy/reallocation=pools predictor=focused moldability=power baseline=null",
)
"""Configurations that ended in a traceback once, though legal."""


@pytest.mark.parametrize("kind", FEW)
def test_a_few_trials_find_nothing(kind, capsys):
    asked = ["soak", "--only", kind, "--share", str(FEW[kind]), "--seconds", "12"]
    with patch.object(sys, "argv", asked):
        assert main() == 0, capsys.readouterr().out
    assert f"{kind}: " in capsys.readouterr().out


def test_all_kinds_but_the_long_ones_are_tried():
    assert KINDS.keys() - FEW.keys() == {"four processes on 200 runs"}


@pytest.mark.parametrize("overrides", MENDED)
def test_what_broke_once_is_played(overrides):
    config = configuration(overrides.split())
    summary = summarise(play(config, config, set_scene(config, 0)).outcome)
    assert summary["jobs"] == config["workload"]["jobs"]


def dies(dice):
    raise SystemExit(dice.randint(3, 3))


def sleeps(dice):
    while True:
        pass


def test_what_dies_or_does_not_end_is_found():
    trials = {"dies": dies, "sleeps": sleeps}
    assert series(trials, "dies", [0], 60.0).findings[0].startswith("dies 0: SystemExit")
    assert series(trials, "sleeps", [0], 60.0, limit=0.3).findings == [
        "sleeps 0: not ended after 0.3 s"
    ]
    assert dice_of("a", 1).random() == dice_of("a", 1).random() != dice_of("a", 2).random()
