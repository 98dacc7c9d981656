"""Building parts from configuration: types, targets, and errors with the full key."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal

import pytest

from predictors.in_loop.oracle import NoisyOracle
from sim.errors import ConfigError
from sim.simulation.build import allowed, build, fits

pytestmark = pytest.mark.fast

NOISY = {"_target_": "predictors.in_loop.oracle.NoisyOracle", "bias": 1.0, "spread": 0.2}


def test_a_target_becomes_an_object_with_its_arguments():
    noisy = build(NOISY | {"bias": 2, "spread": 0.5}, "predictor")
    assert isinstance(noisy, NoisyOracle)
    assert (noisy.bias, noisy.spread) == (2, 0.5)


def test_inner_parts_are_built_first_and_plain_values_stay():
    built = build({"inner": [NOISY], "number": 3}, "x")
    assert isinstance(built["inner"][0], NoisyOracle)
    assert built["number"] == 3


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (NOISY | {"spread": "wide"}, "predictor.spread=wide: must be a number"),
        (NOISY | {"spread": None}, "predictor.spread=null: must be a number"),
        (NOISY | {"bias": True}, "predictor.bias=True: must be a number"),
        (NOISY | {"spread": -1.0}, "predictor.spread must lie between 0 and 10, got -1.0"),
        (NOISY | {"width": 1}, "predictor.width: not a setting here; allowed: bias, spread"),
        (
            {"_target_": "os.system"},
            "must be a class with attach, curve, explain, observe; it is a",
        ),
        ({"_target_": "subprocess.Popen"}, "it lacks attach, curve, explain, observe"),
        ({"_target_": "simple_.Thing"}, "there is no such class; its package must be installed"),
        ({"_target_": "sim.nowhere.Thing"}, "predictor._target_=sim.nowhere.Thing: there is no"),
        ({"_target_": "predictors.in_loop.oracle.Pythia"}, "there is no such class"),
        ({"_target_": "workloads.streams.Streams"}, "predictor.seed: a value is needed"),
        (
            {
                "_target_": "sim.policies.base.Policy",
                "order": "x",
                "backfill": NOISY,
                "allocation": {},
            },
            "predictor.order=x: is made of several keys; choose with predictor/order=x",
        ),
    ],
)
def test_what_cannot_be_built_is_refused_with_its_full_key(node, message):
    with pytest.raises(ConfigError) as error:
        build(node, "predictor")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (1, int, True),
        (True, int, False),
        (1.0, int, False),
        (1, float, True),
        (True, float, False),
        ("1", float, False),
        (None, float | None, True),
        (None, float, False),
        ("log", int | Literal["log"], True),
        ("other", int | Literal["log"], False),
        (7, int | Literal["log"], True),
        ([1, 2], Sequence[int], True),
        ("ab", Sequence[int], False),
        ([1, "b"], Sequence[int], False),
        ([1.5, 4], Sequence[int], False),
        ([1, 4], Sequence[float], True),
        ([1, None], tuple[int, int | None], True),
        ([1, "b"], tuple[int, int | None], False),
        (["a", "b"], str | Sequence[str], True),
        ("x", Any, True),
        (True, bool, True),
        (1, bool, False),
    ],
)
def test_values_against_type_hints(value, hint, expected):
    assert fits(value, hint) is expected


def test_what_is_allowed_is_said_in_words():
    assert allowed(int | Literal["log"] | None) == "a whole number, log or null"
    assert allowed(Sequence[int]) == "a list of whole numbers"
    assert allowed(Sequence[Any]) == "a list"
    assert allowed(Mapping[str, float] | None) == "keys and values or null"
    assert allowed(str | PathLike[str] | None) == "text, a path or null"


def test_what_a_list_holds_is_checked_too():
    repaired = {"_target_": "predictors.in_loop.oracle.PartialOracle", "before": NOISY}
    assert build(repaired | {"counts": [4, 8]}, "predictor").counts == (4, 8)
    for counts in (["a", "b"], [1.5, 4], 8):
        with pytest.raises(ConfigError, match=r"predictor\.counts=.*a list of whole numbers$"):
            build(repaired | {"counts": counts}, "predictor")
