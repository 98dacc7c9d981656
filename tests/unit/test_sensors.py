"""Measurements of running jobs."""

import numpy as np
import pytest

from sim.errors import PolicyError
from sim.state.sensors import EfficiencySensor, SensorNoise

pytestmark = pytest.mark.fast


def sensor(noise=0.05, now=None):
    held = {3: 4}
    clock = [0.0] if now is None else now
    serial = np.full(5, 120.0)
    instruments = (lambda job, n: 150.0 / n, lambda job: held.get(job, 0), lambda: clock[0])
    return EfficiencySensor(serial, *instruments, SensorNoise(9, noise)), held, clock


def test_a_running_job_is_measured_on_what_it_holds():
    assert sensor(0.0)[0](3) == 0.8


def test_a_job_that_does_not_run_is_not_measured():
    measure, held, _ = sensor()
    with pytest.raises(PolicyError, match="job index 2 was asked for"):
        measure(2)
    del held[3]
    with pytest.raises(PolicyError, match="job index 3"):
        measure(3)


def test_asking_again_does_not_average_the_noise_away():
    measure, _, clock = sensor()
    assert len({measure(3) for _ in range(50)}) == 1
    clock[0] = 1.0
    assert measure(3) != 0.8


def test_each_instant_has_a_draw_of_its_own():
    measure, _, clock = sensor(0.1)
    found = [np.log(measure(3) / 0.8) for clock[0] in range(400)]
    assert abs(np.mean(found)) < 0.02
    assert 0.085 < np.std(found) < 0.115
