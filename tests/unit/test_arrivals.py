import numpy as np
import pytest

from workloads.arrivals import DAY, arrivals_in_cycle

pytestmark = pytest.mark.fast


def test_a_flat_cycle_passes_evenly():
    points = np.array([0.0, 1.0, 3.0, 4.0, 9.0])
    assert arrivals_in_cycle(points, np.ones(4)) == pytest.approx(points * DAY / 4)


def test_arrivals_crowd_in_heavy_buckets():
    points = np.linspace(0, 400, 40_001)[1:]
    times = arrivals_in_cycle(points, np.array([3.0, 1.0]))
    assert (times % DAY <= DAY / 2).mean() == pytest.approx(0.75, abs=0.01)
    assert (np.diff(times) > 0).all()
    assert times[-1] == pytest.approx(100 * DAY)
