"""Rational polynomials in the loop, as the runs at their counts correct them."""

import numpy as np
import pytest

from predictors.base import Observation, VisibleJobs
from predictors.in_loop.learned_rational import RationalPerApplication
from predictors.under_load.load_aware import Parts

SERIAL, STEP = 64.0, 0.6
COUNTS = np.array([1, 2, 4, 8, 16, 32])


def bent(nprocs, size=1.0):
    """A step at 8 processors that no polynomial of 1/n and n has."""
    return size * SERIAL / nprocs * np.where(np.asarray(nprocs) >= 8, STEP, 1.0)


class HalfLoaded:
    """Half of every processor is taken, for ever."""

    def runtimes(self, counts, parts, form):
        return parts.under(np.full(len(counts), 0.5), np.ones(len(counts)))


def taught(rounds=6, loads=(1.0,), **settings):
    """A predictor told of runs of sizes 1 to 4, computation slowed by load; asked about size 2."""
    predictor = RationalPerApplication(**settings)
    zero = np.array([0])
    predictor.attach(VisibleJobs(zero, zero - 1, zero + 2.0, zero, zero + 4, zero + 9.0))
    for size in np.linspace(1.0, 4.0, rounds).tolist():
        for cpu in loads:
            for n in (1, 4, 8, 16):
                more = {"available_cpu": cpu, "available_bandwidth": 1.0}
                seconds = float(bent(n, size)) / cpu
                predictor.observe(Observation(0, -1, size, n, seconds, 0.0, 0, more))
    return predictor


def test_what_was_measured_is_believed_at_the_asked_size():
    found = taught().curve(0, COUNTS) / bent(COUNTS, 2.0)
    np.testing.assert_allclose(found[[0, 2, 3, 4]], 1.0, atol=0.03)  # six of 6.5 parts are the runs
    said = taught().explain(0, 8)
    assert said.runs_at_count == 6
    assert said.mean_at_count == pytest.approx(float(bent(8, 2.0)), rel=1e-6)
    assert np.isnan(taught().explain(0, 2).mean_at_count)


def test_runs_are_brought_to_the_load_that_is_asked_about():
    predictor = taught(loads=(1.0, 0.8, 0.25), growth="n")
    idle = predictor.curve(0, COUNTS)
    predictor.bind_load(HalfLoaded())
    np.testing.assert_allclose(predictor.curve(0, COUNTS), 2.0 * idle, rtol=0.02)
    said = predictor.explain(0, 16)
    assert said.runs_at_count == 16  # of 18, the latest
    assert said.mean_at_count == pytest.approx(2.0 * float(bent(16, 2.0)), rel=0.02)


def test_runs_between_two_fits_correct_the_standing_one():
    predictor = taught()
    before = predictor.curve(0, COUNTS)
    assert not predictor.observe(Observation(0, -1, 2.0, 16, 2.0 * bent(16, 2.0), 0.0))
    share = np.log(predictor.curve(0, COUNTS) / before) / np.log(2.0)
    np.testing.assert_allclose(share[:4], 0.0, atol=0.03)
    assert share[4] == pytest.approx(1 / 7, abs=0.03)
    assert share[5] > 0.1


def test_parts_grow_and_shrink_with_the_whole():
    parts = Parts(*(np.array([one, 2 * one]) for one in (1.0, 2.0, 3.0)))
    scaled = parts.scaled(np.array([2.0, 0.5]))
    whole = np.ones(2)
    np.testing.assert_allclose(scaled.under(whole, whole), [12.0, 6.0])
    np.testing.assert_allclose(scaled.computation, [4.0, 2.0])


def test_a_run_that_took_no_time_tells_nothing():
    predictor = taught()
    before = predictor.curve(0, COUNTS)
    assert not predictor.observe(Observation(0, -1, 2.0, 16, 0.0, 0.0))
    np.testing.assert_array_equal(predictor.curve(0, COUNTS), before)
