"""A larger machine, and the sizes that keep the jobs' times on it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from predictors.regression.barnes import LogLogRegression
from predictors.regression.garren import FocusedRegression
from sim.errors import ConfigError
from sim.simulation.growth import KeepTime
from sim.simulation.site_size import (
    GREW,
    INFEASIBLE,
    NO_FIT,
    NO_GAIN,
    NoGrowth,
    Site,
    size_figures,
    sizes_table,
)
from tests.former import build_truth
from workloads.base import Trace
from workloads.shapes.analytic import Downey, PowerLaw
from workloads.shapes.family import NoMoldability
from workloads.streams import Streams

pytestmark = pytest.mark.fast

PROCESSORS = 64
TOTAL = LogLogRegression(form="linear", split="total")
EXACT = {"noise": 0.0, "size_noise": 0.0}


def site_of(family, jobs=60, applications=2, **options):
    """Return a site of a job a day, each on 1 to 64 processors for a minute to a day."""
    rng = np.random.default_rng(5)
    runtime = np.exp(rng.uniform(np.log(60), np.log(86400), jobs))
    table = pd.DataFrame(
        {
            "job_id": np.arange(jobs),
            "submit_time": 86400.0 * np.arange(jobs),
            "requested_processors": 2 ** rng.integers(0, 7, jobs),
            "reference_runtime": runtime,
            "requested_time": runtime,
            "executable": -1,
        }
    )
    trace = Trace(table, PROCESSORS, "toy")
    truth = build_truth(
        trace, family, Streams(1), PROCESSORS, applications=applications, **(EXACT | options)
    )
    return Site(PROCESSORS, trace, truth)


@pytest.mark.parametrize("model", [FocusedRegression(), TOTAL])
def test_sizes_on_a_power_law_keep_the_time_exactly(model):
    # T = w / n^p, so on twice the processors the size that keeps T is 2^p times as large.
    family = PowerLaw(exponent_min=0.95, exponent_max=0.95)
    grown = KeepTime(model=model).grow(site_of(family), Streams(1))
    assert (grown.sizes["outcome"][15:] == GREW).all()
    assert grown.sizes["outcome"][0] == NO_FIT
    sizes = grown.sizes[grown.sizes["outcome"] == GREW]
    growth, kept = sizes["grown_size"] / sizes["size"], sizes["runtime"] / sizes["wanted_time"]
    assert growth.tolist() == pytest.approx([2**0.95] * len(sizes), rel=1e-6)
    assert kept.tolist() == pytest.approx([1.0] * len(sizes), rel=1e-6)
    figures = size_figures(sizes)
    assert figures["sizes_grew"] == len(sizes)
    assert figures["size_growth_median"] == pytest.approx(2**0.95, rel=1e-6)
    assert figures["kept_time_median_error"] == pytest.approx(0.0, abs=1e-6)
    assert figures["weak_scaling_median_error"] == pytest.approx(2**0.05 - 1.0, rel=1e-6)


def test_machine_jobs_and_truth_grow_together():
    before = site_of(PowerLaw(exponent_min=0.95, exponent_max=0.95))
    grown = KeepTime(factor=4).grow(before, Streams(1))
    counts = grown.trace.jobs["requested_processors"].to_numpy()
    assert grown.processors == grown.trace.processors == 256
    grew = (grown.sizes["outcome"] == GREW).to_numpy()
    assert grew[15:].all()
    old = before.trace.jobs["requested_processors"].to_numpy()
    assert (counts == np.where(grew, 4 * old, old)).all()
    assert (grown.truth.size == grown.sizes["grown_size"]).all()
    rows = np.arange(len(counts))
    expected = before.truth.runtimes_at(rows, np.ones_like(counts)) * np.where(grew, 4**0.95, 1.0)
    assert grown.truth.runtimes_at(rows, np.ones_like(counts)) == pytest.approx(expected, rel=1e-6)
    assert (grown.truth.runtimes_at(rows, counts) == grown.trace.jobs["reference_runtime"]).all()
    assert grown.truth.max_processors.max() == 256


@pytest.mark.slow
def test_sizes_rest_on_the_runs_that_had_ended():
    family = Downey(sigma_max=1.0)
    early, whole = (site_of(family, jobs=60) for _ in range(2))
    later = whole.trace.jobs.assign(
        reference_runtime=whole.trace.jobs["reference_runtime"].where(np.arange(60) < 40, 1.0)
    )
    changed = Site(PROCESSORS, replace(whole.trace, jobs=later), whole.truth)
    first, second = (KeepTime().grow(site, Streams(1)).sizes[:40] for site in (early, changed))
    assert first["grown_size"].tolist() == second["grown_size"].tolist()
    assert (first["outcome"] == GREW).any()


def test_parallelism_that_grows_with_the_size_is_that_of_the_old_median():
    before = site_of(Downey(sigma_max=1.0), applications=1, size_exponent=0.5)
    grown = KeepTime().grow(before, Streams(1))
    chosen = grown.sizes.index[grown.sizes["outcome"] == GREW][0]
    ratio = grown.sizes["grown_size"][chosen] / grown.sizes["size"][chosen]
    one = np.array([1])
    assert grown.truth.runtimes(chosen, one) / before.truth.runtimes(chosen, one) == pytest.approx(
        ratio
    )
    efficiency = [
        site.truth.runtimes(chosen, one) / 32 / site.truth.runtimes(chosen, np.array([32]))
        for site in (before, grown)
    ]
    assert ratio > 1
    assert efficiency[1] > efficiency[0]


def test_jobs_that_do_not_grow_stay_as_they_were():
    family = PowerLaw(exponent_min=0.95, exponent_max=0.95, counts=["powers_of_two", "squares"])
    before = site_of(family, applications=4)
    grown = KeepTime().grow(before, Streams(1))
    stayed = grown.sizes["outcome"] == INFEASIBLE  # twice a square is none
    assert 0 < stayed.sum() < 60
    for column in ("requested_processors", "reference_runtime"):
        assert (grown.trace.jobs[column][stayed] == before.trace.jobs[column][stayed]).all()
    assert (grown.truth.size[stayed] == before.truth.size[stayed]).all()
    assert grown.sizes["size_low"][stayed].isna().all()


def test_nobody_grows_where_processors_do_not_help_or_runs_are_too_few():
    flat = KeepTime(model=TOTAL).grow(site_of(Downey(parallelism_max=1.0)), Streams(1)).sizes
    assert set(flat["outcome"]) <= {NO_GAIN, NO_FIT, INFEASIBLE}
    assert set(flat["outcome"][20:]) <= {NO_GAIN, INFEASIBLE}
    few = KeepTime().grow(site_of(Downey(), jobs=3, applications=3), Streams(1)).sizes
    assert set(few["outcome"]) == {NO_FIT}
    assert np.isnan(size_figures(few)["kept_time_median_error"])


@pytest.mark.slow
def test_grown_runs_have_noise_of_their_own():
    family, noisy = PowerLaw(exponent_min=0.95, exponent_max=0.95), {"noise": 0.1}
    before = site_of(family, **noisy)
    grown = KeepTime().grow(before, Streams(1))
    grew = (grown.sizes["outcome"] == GREW).to_numpy()
    assert (grown.truth.noise != before.truth.noise)[grew].all()
    assert np.std(np.log(grown.truth.noise[grew])) == pytest.approx(0.1, rel=0.3)
    again = KeepTime().grow(site_of(family, **noisy), Streams(1))
    assert again.sizes.equals(grown.sizes)


def test_the_table_by_application_has_medians_of_its_grown_jobs():
    sizes = (
        KeepTime().grow(site_of(PowerLaw(exponent_min=0.95, exponent_max=0.95)), Streams(1)).sizes
    )
    _, jobs, _, size, _, kept = (list(column.cells) for column in sizes_table(sizes).columns)
    assert jobs == [str(number) for number in sizes["application"].value_counts()]
    assert size == [f"x {2**0.95:.2f}"] * 2
    assert kept == ["x 1.00"] * 2
    assert list(sizes_table(sizes, most=1).columns[1].cells) == jobs[:1]


def test_no_growth_changes_nothing():
    site = site_of(Downey())
    assert NoGrowth().grow(site, Streams(1)) is site
    assert size_figures(None) == {}


def test_refuses_what_cannot_be_solved():
    with pytest.raises(ConfigError, match=r"needs workload\.size=known"):
        KeepTime().grow(site_of(Downey(), size="hidden"), Streams(1))
    with pytest.raises(ConfigError, match="needs a moldability other than none"):
        KeepTime().grow(site_of(NoMoldability()), Streams(1))


@pytest.mark.parametrize("bad", [{"factor": 1}, {"level": 0.0}, {"level": 1.0}])
def test_refuses_values_out_of_range(bad):
    (name, value), *_ = bad.items()
    with pytest.raises(ConfigError, match=rf"growth\.{name}={value:g}: must be"):
        KeepTime(**bad)
