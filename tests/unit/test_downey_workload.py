import numpy as np
import pytest

from predictors.downey import relative_time
from workloads.arrivals import offered_load
from workloads.errors import WorkloadError
from workloads.models.downey import Downey
from workloads.streams import Streams

pytestmark = pytest.mark.fast


def test_jobs_ask_for_their_applications_rounded_parallelism():
    trace = Downey(jobs=2000).trace(Streams(seed=1), 64)
    A, sizes = trace.models["A"], trace.jobs["requested_processors"].to_numpy()
    assert (sizes == np.floor(A + 0.5)).all()
    assert A.min() >= 1
    assert sizes.max() <= 64
    application = trace.models["application"]
    for number in np.unique(application):
        mine = application == number
        assert len(set(A[mine])) == 1
        assert len(set(trace.models["sigma"][mine])) == 1


def test_recorded_runtimes_are_lifetimes_sped_up():
    trace = Downey(jobs=5000, lifetime=(100.0, 1e5)).trace(Streams(seed=2), 128)
    sizes = trace.jobs["requested_processors"].to_numpy()
    relative = relative_time(sizes, trace.models["A"], trace.models["sigma"])
    lifetime = trace.jobs["reference_runtime"].to_numpy() / relative
    assert lifetime.min() >= 100.0 * (1 - 1e-12)
    assert lifetime.max() <= 1e5 * (1 + 1e-12)
    quartiles = np.quantile(np.log10(lifetime), [0.25, 0.5, 0.75])
    assert quartiles == pytest.approx([2.75, 3.5, 4.25], abs=0.06)
    # The mean of a log-uniform law on [a, b] is (b - a) / log(b / a).
    assert lifetime.mean() == pytest.approx((1e5 - 100) / np.log(1000), rel=0.06)


def test_applications_are_drawn_from_the_whole_range_with_zipf_popularity():
    trace = Downey(jobs=60_000, applications=400, load=None).trace(Streams(seed=3), 256)
    _, first, counts = np.unique(trace.models["application"], return_index=True, return_counts=True)
    A, sigma = trace.models["A"][first], trace.models["sigma"][first]
    assert np.log(A).mean() == pytest.approx(np.log(256) / 2, abs=0.3)
    assert sigma.mean() == pytest.approx(1.0, abs=0.1)
    assert (sigma > 1).any()
    assert sigma.max() <= 2
    assert counts[0] / counts[1] == pytest.approx(2.0, rel=0.1)


def test_popularity_zero_makes_all_alike():
    trace = Downey(jobs=20_000, applications=4, popularity=0.0).trace(Streams(seed=3))
    assert np.bincount(trace.models["application"]) / 20_000 == pytest.approx(0.25, abs=0.02)


def test_load_is_exact_and_days_keep_their_length():
    asked = Downey(jobs=20_000, load=0.75, day_ratio=3.0, widest=None)
    trace = asked.trace(Streams(seed=5), 256)
    assert offered_load(trace.jobs, 256) == pytest.approx(0.75, rel=1e-12)
    submit = trace.jobs["submit_time"].to_numpy()
    assert (submit % 86_400 < 43_200).mean() == pytest.approx(0.75, abs=0.06)


def test_without_load_the_mean_interarrival_time_is_as_asked():
    trace = Downey(jobs=20_000, load=None, interarrival=120.0).trace(Streams(seed=5))
    assert np.diff(trace.jobs["submit_time"]).mean() == pytest.approx(120.0, rel=0.03)
    assert trace.processors == 256


def test_the_same_seed_gives_the_same_jobs():
    first, second = (Downey(jobs=50).trace(Streams(seed=9), 32) for _ in range(2))
    assert first.jobs.equals(second.jobs)
    assert (first.models["sigma"] == second.models["sigma"]).all()


def test_one_processor_machines_run_serial_jobs():
    trace = Downey(jobs=20).trace(Streams(seed=1), 1)
    assert (trace.jobs["requested_processors"] == 1).all()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        (
            {"applications": 0},
            "workload.applications=0: "
            "must be a whole number of at least 1 and at most 1,000,000,000",
        ),
        (
            {"applications": "log"},
            "workload.applications=log: "
            "must be a whole number of at least 1 and at most 1,000,000,000",
        ),
        ({"popularity": -1.0}, "workload.popularity=-1.0: must be finite and at least 0"),
        ({"sigma": -0.1}, "workload.sigma=-0.1: must be finite and at least 0"),
        ({"day_ratio": 0.0}, "workload.day_ratio=0.0: must be finite and positive"),
        ({"sigma": "x"}, "workload.sigma=x: must be finite and at least 0"),
        (
            {"lifetime": 5.0},
            "workload.lifetime=5.0: must be two positive numbers of seconds, the shorter first",
        ),
        ({"interarrival": 0}, "workload.interarrival=0: must be finite and positive"),
        (
            {"lifetime": [5.0, 1.0]},
            "workload.lifetime=[5.0, 1.0]: must be two positive numbers of seconds, "
            "the shorter first",
        ),
    ],
)
def test_impossible_arguments_are_refused(keywords, message):
    with pytest.raises(WorkloadError) as refusal:
        Downey(**keywords)
    assert str(refusal.value) == message


def test_no_application_is_wider_than_allowed():
    trace = Downey(jobs=2000, widest=0.5).trace(Streams(seed=4), 64)
    assert trace.jobs["requested_processors"].max() <= 32
    assert trace.models["A"].max() <= 32
