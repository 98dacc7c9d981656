import numpy as np
import pytest

from sim.errors import ConfigError
from sim.results.outcome import NOBODY, Steps, least_over, settling_figures
from sim.results.steady_state import Trim

pytestmark = pytest.mark.fast


def settles(work, begin=0.0, end=1000.0, jobs=100):
    """Say whether a queue settles whose work waits so from second to second, of jobs of 100."""
    times, zero = np.arange(len(work), dtype=float), np.zeros(len(work), np.int64)
    none, waiting = np.full(len(work), NOBODY), np.asarray(work, float)
    steps = Steps(times, zero, (waiting > 0).astype(int), zero, waiting, none, none, zero)
    return settling_figures(steps, begin, end, np.full(jobs, 100.0))["steady"]


def test_a_queue_settles_that_was_empty_late_and_ends_with_little_work():
    calm = np.zeros(1001)
    assert settles(calm) is True
    busy = np.where(np.arange(1001) > 501, 600.0, 0.0)  # 0.6 of 100 x sqrt(100)
    assert settles(busy) is True
    assert settles(np.where(busy > 0, 800.0, 0.0)) is False  # more is left waiting
    early = np.where(np.arange(1001) > 490, 1.0, 0.0)  # little, but never empty since
    assert settles(early) is False
    assert settles(np.where(np.arange(1001) == 800, 0.0, early)) is True


def test_of_few_jobs_or_none_in_time_nothing_is_said():
    assert settles(np.ones(1001), jobs=99) is None
    assert settles(np.ones(2), end=0.0) is None


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


@pytest.mark.parametrize("value", [-1, 1.5, float("nan"), "many", True])
def test_trim_refuses_other_values(value):
    with pytest.raises(ConfigError, match=r"metrics\.cooldown"):
        Trim(0, value)


def test_trim_must_leave_jobs():
    with pytest.raises(ConfigError, match="leave 1 of 10 jobs"):
        Trim(5, 4).window(10)
