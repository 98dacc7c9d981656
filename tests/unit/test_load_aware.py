"""Runtimes under load that depends on how long they are."""

import numpy as np
import pytest

from predictors.under_load.load_aware import ROUNDS, Parts, runtime_under

pytestmark = pytest.mark.fast


def passing(until, before, asked):
    """Load that leaves `before` of the CPU until a time, and all of it afterwards."""

    def conditions(horizon):
        asked.append(horizon.copy())
        worked = np.minimum(horizon, until) * before + np.maximum(horizon - until, 0.0)
        return np.array((worked / horizon, np.ones_like(horizon)))

    return conditions


def test_a_runtime_that_swings_across_the_end_of_a_load_settles():
    """410 s of work, 70 s of which get done in the first 700 s: 1,040 s; plain rounds say 4,840."""
    work = np.array([410.0, 50.0, 410.0])
    parts = Parts(np.zeros(3), work, np.zeros(3))
    seconds = runtime_under(parts, passing(np.array([700.0, 700.0, 0.0]), 0.1, []))
    assert seconds.tolist() == pytest.approx([1040.0, 500.0, 410.0], rel=0.05)
    assert seconds[1:].tolist() == pytest.approx([500.0, 410.0], rel=1e-12)


def test_random_loads_that_pass_are_met_within_a_twentieth():
    rng = np.random.default_rng(1)
    until, before, work = rng.uniform((10, 0.02, 10), (5000, 1.0, 5000), (300, 3)).T
    parts = Parts(np.zeros(300), work, np.zeros(300))
    seconds = runtime_under(parts, passing(until, before, []))
    true = np.where(work <= until * before, work / before, until + work - until * before)
    assert seconds.tolist() == pytest.approx(true.tolist(), rel=0.06)


def test_settled_runtimes_are_asked_for_no_more_than_before():
    asked = []
    runtime_under(Parts(*np.zeros((3, 1)) + 10.0), passing(np.array([1e9]), 0.5, asked))
    assert len(asked) == ROUNDS
