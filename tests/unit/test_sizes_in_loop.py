"""Sizes solved as jobs start: exact where the regression is, from what has ended alone."""

import numpy as np
import pandas as pd
import pytest

from predictors.base import Observation
from predictors.in_loop.user_estimate import UserEstimate
from predictors.regression.barnes import LogLogRegression
from sim.simulation.growth import KeepTime
from sim.simulation.site_size import (
    GREW,
    NO_FIT,
    SHRANK,
    KeepsTime,
    Site,
    SizesInLoop,
    size_figures,
)
from tests.former import build_truth
from workloads.base import Trace
from workloads.shapes.analytic import PowerLaw
from workloads.streams import Streams

pytestmark = pytest.mark.fast

EXPONENT, JOBS = 0.95, 60
GROWTH = KeepTime(allotment="policy", model=LogLogRegression(form="linear", split="total"))


@pytest.fixture
def sizes():
    """Jobs of one application, a power law, on 1 to 64 processors; exact and nothing ended yet."""
    rng = np.random.default_rng(5)
    runtime = np.exp(rng.uniform(np.log(60), np.log(86400), JOBS))
    table = pd.DataFrame(
        {
            "job_id": np.arange(JOBS),
            "submit_time": 86400.0 * np.arange(JOBS),
            "requested_processors": 2 ** rng.integers(0, 7, JOBS),
            "reference_runtime": runtime,
            "requested_time": runtime,
            "executable": -1,
        }
    )
    trace = Trace(table, 64, "toy")
    family = PowerLaw(exponent_min=EXPONENT, exponent_max=EXPONENT)
    truth = build_truth(trace, family, Streams(1), 64, applications=1, noise=0.0, size_noise=0.0)
    site = GROWTH.grow(Site(64, trace, truth), Streams(1))
    assert (site.processors, site.sizes) == (128, None)
    assert (site.truth.size == truth.size).all()
    return SizesInLoop(site.truth, site.again, site.trace, GROWTH)


def finished(sizes, job):
    count, size = int(sizes.reference[job]), float(sizes.size[job])
    return Observation(0, -1, size, count, sizes.runtime_on(job, count), 0.0, job, {})


def learnt(sizes):
    for job in range(30):
        sizes.learn(finished(sizes, job))
    return sizes


def test_the_size_for_the_given_count_keeps_the_time(sizes):
    assert sizes.solve(59, 128, 100.0).outcome == NO_FIT
    learnt(sizes)
    wide, narrow = (
        next(job for job in range(30, JOBS) if sizes.reference[job] == n) for n in (16, 64)
    )
    before = sizes.serial_time.copy()
    for job, count, outcome in ((wide, 128, GREW), (narrow, 8, SHRANK)):
        assert sizes.runtime_on(job, count) == pytest.approx(sizes.wanted[job])
        assert sizes.taken[job].outcome == outcome
        ratio = (count / sizes.reference[job]) ** EXPONENT
        assert sizes.size[job] / sizes.truth.size[job] == pytest.approx(ratio)
        assert sizes.serial_time[job] / before[job] == pytest.approx(ratio)
        both = sizes.runtimes_at(np.array([job, 0]), np.array([count, 4]))
        assert both[0] == pytest.approx(sizes.wanted[job])
        assert both[1] == sizes.truth.runtimes(0, np.array([4]))[0]
    table = sizes.sizes()
    assert table["outcome"].value_counts().to_dict() == {"stayed": 58, GREW: 1, SHRANK: 1}
    assert size_figures(table)["kept_time_median_error"] == pytest.approx(0.0, abs=1e-9)
    weak = table.loc[wide, "weak_runtime"] / table.loc[wide, "wanted_time"]
    assert weak == pytest.approx(8 ** (1 - EXPONENT))


def test_a_size_is_taken_once_and_a_reference_count_runs_as_recorded(sizes):
    learnt(sizes)
    count = 2 * int(sizes.reference[40])
    first = sizes.runtime_on(40, count)
    sizes.learn(finished(sizes, 41))
    assert sizes.runtime_on(40, count) == first
    assert sizes.runtime_on(42, int(sizes.reference[42])) == sizes.wanted[42]
    assert 42 not in sizes.taken


def test_beliefs_at_the_given_count_are_those_of_the_reference_count(sizes):
    class Believes(UserEstimate):
        def curve(self, job, counts):
            return sizes.wanted[job] * (sizes.reference[job] / np.asarray(counts)) ** EXPONENT

    predictor = KeepsTime(Believes(), sizes)
    ask = 2 * sizes.reference[40:41]
    assert predictor.curve(40, ask) == pytest.approx(sizes.wanted[40] / 2**EXPONENT)  # no runs yet
    for job in range(30):
        assert predictor.observe(finished(sizes, job))
    assert predictor.curve(40, ask)[0] == sizes.wanted[40]
    several = np.array([1, 2, 4])
    assert (predictor.curve(40, several) == predictor.before.curve(40, several)).all()
