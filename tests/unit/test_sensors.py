"""Measurements of running jobs."""

from types import SimpleNamespace

import numpy as np
import pytest

from sim.engine.work import EfficiencySensor, SensorNoise
from sim.state.machine_state import Run

pytestmark = pytest.mark.fast
RUN = Run(3, 0, ((0, 3),), 4, 0.0, 100.0)


def sensor(noise=0.05, runtime=150.0):
    state = SimpleNamespace(
        efficiency={}, read_efficiencies=set(), running={3: RUN}, sync_runs=lambda: None
    )
    work = SimpleNamespace(serial_time=np.full(5, 120.0), runtime=lambda job, n: runtime / n)
    return EfficiencySensor(work, state, SensorNoise(9, noise)), state


def test_a_running_job_is_measured_on_what_it_holds():
    measuring, state = sensor(0.0)
    measuring.begin(RUN)
    assert state.efficiency == {3: 0.8}


def test_a_job_of_no_time_is_measured_to_waste_nothing():
    measuring, state = sensor(0.0, runtime=0.0)
    measuring.begin(RUN)
    assert state.efficiency == {3: 1.0}


def test_asking_again_does_not_average_the_noise_away():
    measuring, state = sensor()
    measuring.begin(RUN)
    first = state.efficiency[3]
    measuring.renew()  # nobody has read it
    assert state.efficiency[3] == first != 0.8
    state.read_efficiencies.add(3)
    measuring.renew()
    assert state.efficiency[3] != first
    assert state.read_efficiencies == set()


def test_each_measurement_has_a_draw_of_its_own():
    measuring, state = sensor(0.1)
    measuring.begin(RUN)
    found = []
    for _ in range(400):
        found.append(np.log(state.efficiency[3] / 0.8))
        state.read_efficiencies.add(3)
        measuring.renew()
    assert abs(np.mean(found)) < 0.02
    assert 0.085 < np.std(found) < 0.115
