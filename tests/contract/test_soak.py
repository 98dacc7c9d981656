"""A small part of ``make soak``: every kind of trial, none of which finds anything."""

import sys
from unittest.mock import patch

import pytest

from tests.soak.__main__ import KINDS, main
from tests.soak.trials import dice_of, series


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_trials_find_nothing(kind, capsys):
    asked = ["soak", "--only", kind, "--share", "0.01", "--seconds", "12"]
    with patch.object(sys, "argv", asked):
        assert main() == 0, capsys.readouterr().out
    assert f"{kind}: " in capsys.readouterr().out


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
