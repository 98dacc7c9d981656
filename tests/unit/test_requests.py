"""Requests that know the curve, serial programs, and the former world by name."""

import numpy as np
import pytest
from swf_samples import job_line, write_log

from scripts.composing import composed
from sim.simulation.scene import set_scene
from tests.former import WORLD
from workloads.errors import WorkloadError
from workloads.models.lublin import Lublin
from workloads.shapes.analytic import Amdahl, Downey, General, PowerLaw
from workloads.shapes.family import NoMoldability
from workloads.shapes.irregular import Declining, Special, Stepwise
from workloads.streams import Streams
from workloads.truth.assignment import draw_efficiencies, zipf_shares
from workloads.truth.build import build_truth

pytestmark = pytest.mark.fast

FORMER_SUMS = [43411692.04660077, 5938, 15540270.0, 18557086.937863372, 18570112.576702528, 3447]
"""Of submits, processors, requested times, serial times, sizes and applications, before."""
FAMILIES = [Downey(), Amdahl(), General(), PowerLaw(), Stepwise(), Declining(), Special()]


@pytest.fixture(scope="module")
def trace():
    return Lublin(jobs=1500).trace(Streams(seed=2))


def efficiency_of(trace, truth):
    """Return E at the request of each parallel job, and who these are."""
    jobs = trace.jobs
    n, runtime = (jobs[c].to_numpy() for c in ("requested_processors", "reference_runtime"))
    return truth.serial_time / (n * runtime), n > 1


def test_efficiencies_follow_the_law_above_one_over_n():
    rng = np.random.default_rng(3)
    wide = draw_efficiencies(np.full(4000, 10_000), 0.7, 0.75, rng)
    logits = np.log(wide / (1 - wide))
    assert np.median(wide) == pytest.approx(0.7, abs=0.02)
    assert logits.std() == pytest.approx(0.75, abs=0.03)
    two = draw_efficiencies(np.full(4000, 2), 0.5, 0.75, rng)
    assert two.min() >= 0.5  # the upper half of the law
    assert np.median(two) == pytest.approx(1 / (1 + np.exp(-0.75 * 0.6745)), abs=0.02)
    assert draw_efficiencies(np.array([1, 2, 64]), 0.3, 0.0, rng).tolist() == pytest.approx(
        [1.0, 0.5, 0.3]
    )


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: type(family).__name__)
def test_jobs_ask_at_the_efficiency_of_the_law_whatever_the_curves(trace, family):
    at_request, parallel = efficiency_of(trace, build_truth(trace, family, Streams(2), 256))
    assert 0.6 < np.median(at_request[parallel]) < 0.8
    apart = build_truth(trace, family, Streams(2), 256, requests="independent")
    loose, _ = efficiency_of(trace, apart)
    spread = [np.std(np.log(e[parallel])) for e in (at_request, loose)]
    assert spread[0] < 0.75 * spread[1]


def test_the_median_is_a_key(trace):
    medians = []
    for asked in (0.5, 0.8):
        truth = build_truth(trace, Downey(), Streams(2), 256, efficiency=asked)
        at_request, parallel = efficiency_of(trace, truth)
        medians.append(np.median(at_request[parallel]))
    assert medians == pytest.approx([0.55, 0.79], abs=0.06)  # above 1/n: small jobs above 0.5


def test_jobs_of_one_processor_are_serial_programs(trace):
    truth = build_truth(trace, Downey(), Streams(2), 256)
    serial = trace.jobs["requested_processors"].to_numpy() == 1
    job = int(np.flatnonzero(serial)[0])
    assert np.unique(truth.runtimes(job, np.array([1, 2, 16, 256]))).size == 1
    assert not truth.moldable[serial].any()
    assert (truth.max_processors[serial] == 1).all()
    assert truth.moldable[~serial].all()
    assert not set(truth.application[serial]) & set(truth.application[~serial])
    assert truth.calibration.counts(int(truth.application[job]), 3, 256).tolist() == [1]


def test_parallel_applications_keep_their_popularity(trace):
    truth = build_truth(trace, Downey(), Streams(2), 256)
    parallel = trace.jobs["requested_processors"].to_numpy() > 1
    jobs = np.bincount(truth.application[parallel])
    np.testing.assert_allclose(jobs, zipf_shares(len(jobs), 1.0) * parallel.sum(), atol=1)


def test_one_application_has_all_jobs_and_one_processor_is_rigid(trace):
    truth = build_truth(trace, Downey(), Streams(2), 256, applications=1)
    assert set(truth.application) == {0}
    assert not truth.moldable[trace.jobs["requested_processors"] == 1].any()


def test_sizes_that_repeat_keep_requests_and_kinds(trace):
    truth = build_truth(trace, Downey(), Streams(2), 256, sizes=3)
    at_request, parallel = efficiency_of(trace, truth)
    assert 0.55 < np.median(at_request[parallel]) < 0.85
    assert not set(truth.application[parallel]) & set(truth.application[~parallel])
    assert np.median(np.abs(np.log(truth.noise))) < 0.3
    assert set(truth.size_class) == {0, 1, 2}


def test_larger_problems_have_more_parallelism_but_in_serial_programs(trace):
    truth = build_truth(trace, Downey(), Streams(2), 256, size_exponent=0.5)
    one = trace.jobs["requested_processors"].to_numpy() == 1
    assert (truth.max_processors[one] == 1).all()
    with pytest.raises(WorkloadError, match=r"moldability\.size_exponent must be 0"):
        build_truth(trace, Amdahl(), Streams(2), 256, size_exponent=0.5)


def test_a_logs_applications_have_curves_that_fit_what_they_typically_ask_for(tmp_path):
    asked = [(1, 64), (1, 64), (1, 1), (2, 8), (2, 8), (2, 8), (3, 1), (3, 1)]
    lines = [
        job_line(job_number=k, submit_time=60 * k, executable=who, run_time=50 + k,
                 requested_processors=n, allocated_processors=n)
        for k, (who, n) in enumerate(asked, start=1)
    ]  # fmt: skip
    log = write_log(tmp_path, "; MaxProcs: 128", *lines)
    asking = ("workload=swf", f"workload.path={log}", "workload.identity=executable")
    found = []
    for seed in range(1, 31):
        overrides = (*asking, f"seed={seed}")
        scene = set_scene(composed(*overrides), 0)
        at_request, parallel = efficiency_of(scene.trace, scene.truth)
        found.extend(at_request[[0, 3]])
        assert scene.truth.moldable.tolist() == parallel.tolist()
        assert scene.truth.application.tolist() == [0, 0, 0, 1, 1, 1, 2, 2]
    assert np.median(found) == pytest.approx(0.7, abs=0.06)


def test_the_former_world_by_name_is_the_former_world():
    scene = set_scene(composed(*WORLD, "workload.jobs=300"), 0)
    jobs, truth = scene.trace.jobs, scene.truth
    sums = [jobs[c].sum() for c in ("submit_time", "requested_processors", "requested_time")]
    sums += [truth.serial_time.sum(), truth.size.sum(), truth.application.sum()]
    assert sums == pytest.approx(FORMER_SUMS, rel=1e-9)


def test_rigid_jobs_ask_for_nothing(trace):
    assert not build_truth(trace, NoMoldability(), Streams(2), 256).known


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("requests", "known"),
        ("efficiency", 0.0),
        ("efficiency", 1.0),
        ("efficiency_spread", -1.0),
    ],
)
def test_options_are_checked(trace, option, value):
    with pytest.raises(WorkloadError, match=rf"moldability\.{option}=.*: must be"):
        build_truth(trace, Downey(), Streams(2), 256, **{option: value})
