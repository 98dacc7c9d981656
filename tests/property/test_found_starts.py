"""Reservations of many jobs begin where those begin that are searched for from now on."""

import numpy as np
import pytest

from sim.policies.backfill.reservations import replan
from sim.state.availability import Profile
from sim.state.waiting_queue import Waiting


@pytest.mark.parametrize("processors", [5, 64, 1000])
@pytest.mark.parametrize("powers", [False, True])
@pytest.mark.parametrize("now", [0.0, 1e9 + 0.123])
def test_many_reservations_equal_those_made_one_by_one(processors, powers, now):
    rng = np.random.default_rng(processors)
    for jobs in (65, 300):
        counts = rng.integers(1, processors + 1, jobs)
        runtimes = np.round(rng.lognormal(4.0, 2.0, jobs), 1) + 1e-3
        if powers:
            counts = np.minimum(2 ** rng.integers(0, 9, jobs), processors)
            runtimes = 2.0 ** rng.integers(-12, 12, jobs)
        singly, together = Profile(processors), Profile(processors)
        for profile in (singly, together):
            profile.grow(jobs)
            profile.lay(now, [])
        starts = np.zeros(jobs)
        holes = together.times, together.free, together.span
        replan(holes, now, Waiting(counts, runtimes, starts), 0, jobs)
        expected = [singly.place(now, *job) for job in zip(counts, runtimes, strict=True)]
        assert starts.tolist() == expected
