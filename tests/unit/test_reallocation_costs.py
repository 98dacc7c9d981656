"""Cost models of policies.md 4.9, figure by figure."""

import pytest

from sim.policies.reallocation.costs import (
    CheckpointRestart,
    Constant,
    NoCost,
    Phases,
    ProcessManagement,
    Redistribution,
)

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("model", "grow", "shrink"),
    [
        (NoCost(), 0.0, 0.0),
        (Constant(7.0), 7.0, 7.0),
        (ProcessManagement(2.0, 0.5, 0.25), 2.0 + 0.5 * 12, 2.0 + 0.25 * 12),
        (Redistribution(1.0, 64.0, 2.0), 1 + 64 * 0.75 / 8, 1 + 64 * 0.75 / 8),
        (CheckpointRestart(64.0, 8.0, 10.0), 26.0, 26.0),
        (Phases(1.0, 4.0, 5.0), 9.0, 4.0),
    ],
)
def test_seconds_of_a_change(model: NoCost, grow: float, shrink: float) -> None:
    assert model.change(4, 16) == grow
    assert model.change(16, 4) == shrink
    assert model.start(4) == (1.0 if isinstance(model, Phases) else 0.0)
    assert model.free == (grow == 0)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (Constant, {"seconds": -1.0}),
        (ProcessManagement, {"shrink": float("nan")}),
        (Redistribution, {"bandwidth": 0.0}),
        (CheckpointRestart, {"volume": float("inf")}),
        (Phases, {"prepare": -0.5}),
    ],
)
def test_bad_values_are_named(model: type, options: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        model(**options)
