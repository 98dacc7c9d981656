"""Toy sizes of the coverage and precision studies, and the queue whose truth they know."""

import known_queue
import numpy as np
import pytest
from known_queue import Study, draw, expected_waits
from scipy import stats

from sim.simulation.precision import Precision
from sim.statistics import t_interval


def test_the_chain_knows_the_waits_of_a_queue_from_empty():
    waits = expected_waits(0.7, 4000)
    assert waits[0] == 0
    assert waits[1] == pytest.approx(100 * 0.7 / 1.7)  # found in service with chance load/(1+load)
    assert waits[-1] == pytest.approx(100 * 0.7 / 0.3, rel=1e-3)
    drawn = [known_queue.waits_by_recursion(draw(seed, 0, 20), 0.7) for seed in range(4000)]
    assert np.mean(drawn) == pytest.approx(expected_waits(0.7, 20).mean(), rel=0.05)


def test_the_simulator_waits_as_lindleys_recursion():
    drawn = draw(3, 1, 60)
    simulated = known_queue.waits_by_simulation(drawn, 0.6)
    assert simulated.max() > 0
    np.testing.assert_allclose(simulated, known_queue.waits_by_recursion(drawn, 0.6), atol=1e-9)


def test_intervals_cover_a_known_truth():
    recursion = Study(replications=15, jobs=200, waits=known_queue.waits_by_recursion)
    counts = known_queue.replicated(150, recursion)
    assert len(counts) == 3
    shares = {name: count.covered / count.studies for name, count in counts.items()}
    assert all(0.88 <= share <= 0.99 for share in shares.values()), shares
    count, short = known_queue.batched(100, 5000, 250, 0.5)
    assert 0.86 <= count.covered / count.studies <= 0.99
    assert short < 20


def test_precision_reaches_what_was_asked_and_no_earlier():
    asked, spent, covered = Precision(0.05, most=2000), [], 0
    for seed in range(50):
        rng, values = np.random.default_rng([seed, 200_000]), []
        while not asked.enough(values):
            values.append(rng.normal(1000.0, 200.0))
        assert t_interval(values).relative <= 0.05 < t_interval(values[:-1]).relative
        covered += t_interval(values).contains(1000.0)
        spent.append(len(values))
    numbers = np.arange(10, 2001)
    half = stats.t.ppf(0.975, numbers - 1) * 200.0 / np.sqrt(numbers)
    assert np.mean(spent) == pytest.approx(numbers[half <= 50.0][0], rel=0.12)
    assert covered >= 44
