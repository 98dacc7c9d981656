import numpy as np
import pytest

from sim.errors import ConfigError
from sim.results.steady_state import Trim
from sim.results.steps import NOBODY, QueueGrowth, Steps, figures_over, least_over

pytestmark = pytest.mark.fast


def queue(work, times):
    zero = np.zeros(len(times), np.int64)
    none = np.full(len(times), NOBODY)
    steps = Steps(
        np.asarray(times, float), zero, zero, zero, np.asarray(work, float), none, none, zero
    )
    return [steps]


def stability(history, processors, begin, end):
    return figures_over(history, QueueGrowth(processors, begin, end))


def test_slope_is_that_of_a_finely_sampled_fit():
    rng = np.random.default_rng(0)
    times, values = np.sort(rng.uniform(-5, 30, 12)), rng.uniform(0, 9, 12)
    fine = np.linspace(0, 20, 200_001)
    sampled = values[np.searchsorted(times, fine, side="right") - 1]
    growth = QueueGrowth(1, -20.0, 20.0)  # of its last half
    figures_over(queue(values, times), growth)
    assert growth.slope() == pytest.approx(np.polyfit(fine, sampled, 1)[0], rel=1e-3)


def test_queue_that_grows_is_saturated_and_one_that_stays_is_not():
    times = np.linspace(0, 1000, 1001)
    grows = stability(queue(0.2 * times, times), 1, 0.0, 1000.0)
    assert grows["saturated"] is True
    assert grows["queued_work_slope"] == pytest.approx(0.2, rel=1e-2)
    assert stability(queue(200 + 0.02 * times, times), 1, 0.0, 1000.0)["saturated"] is False
    assert stability(queue(0.005 * times, times), 1, 0.0, 1000.0)["saturated"] is False
    assert stability(queue(1000 - times, times), 1, 0.0, 1000.0)["saturated"] is False


def test_least_over_ranges_of_any_length():
    rng = np.random.default_rng(1)
    for _ in range(200):
        length = int(rng.integers(1, 40))
        begin = rng.integers(0, length, 9)
        end = begin + 1 + rng.integers(0, length, 9) % (length - begin)
        value = rng.integers(1, 50, 9)
        naive = np.full(length, NOBODY)
        for b, e, v in zip(begin, end, value, strict=True):
            naive[b:e] = np.minimum(naive[b:e], v)
        assert least_over(begin, end, value, length).tolist() == naive.tolist()


def test_trim_counts_jobs_and_fractions():
    assert Trim(3, 2).window(10) == slice(3, 8)
    assert Trim(0.1, 0.25).window(10) == slice(1, 8)
    assert not Trim().trims


@pytest.mark.parametrize("value", [-1, 1.5, float("nan"), "many", True])
def test_trim_refuses_other_values(value):
    with pytest.raises(ConfigError, match=r"metrics\.cooldown"):
        Trim(0, value)


def test_trim_must_leave_jobs():
    with pytest.raises(ConfigError, match="leave 1 of 10 jobs"):
        Trim(5, 4).window(10)
