"""The ground truth, sentence by sentence of what the outside may rely on."""

import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictors import downey
from tests.former import build_truth
from workloads.base import GroundTruth, Trace
from workloads.errors import WorkloadError
from workloads.shapes.analytic import Amdahl, Downey, General, PowerLaw
from workloads.shapes.family import NoMoldability
from workloads.shapes.irregular import Declining, Stepwise
from workloads.shapes.measured import Measured
from workloads.streams import Streams
from workloads.truth.assignment import class_quotas, zipf_shares
from workloads.truth.ground_truth import Truth
from workloads.truth.options import TruthOptions

pytestmark = pytest.mark.fast

P = 128
FAMILIES = [Downey(), Amdahl(), General(), PowerLaw(), Stepwise(), Declining()]


def make_trace(jobs=400, seed=0, processors=P, **models):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "job_id": np.arange(1, jobs + 1),
            "requested_processors": np.floor(2 ** rng.uniform(0, np.log2(processors), jobs)).astype(
                np.int64
            ),
            "reference_runtime": np.exp(rng.normal(6, 2, jobs)),
            "executable": rng.integers(-1, 5, jobs),
        }
    )
    return Trace(frame, processors, "synthetic", models=models)


def build(family=None, jobs=400, seed=1, trace=None, processors=P, **options) -> Truth:
    trace = make_trace(jobs) if trace is None else trace
    return build_truth(trace, family or Downey(), Streams(seed), processors, **options)


def columns(truth):
    return {
        "application": truth.application,
        "size_class": truth.size_class,
        "size": truth.size,
        "moldable": truth.moldable,
        "max": truth.max_processors,
        "serial": truth.serial_time,
        "noise": truth.noise,
        "nominal": truth.nominal_scale,
    }


def changed(one, other):
    first, second = columns(one), columns(other)
    return {name for name in first if not np.array_equal(first[name], second[name])}


def everything(truth, jobs):
    return truth.runtimes_at(np.repeat(np.arange(jobs), P), np.tile(np.arange(1, P + 1), jobs))


def as_protocol(truth: Truth) -> GroundTruth:
    return truth


@settings(max_examples=40)
@given(
    st.sampled_from(FAMILIES),
    st.sampled_from([None, 1, 3]),
    st.floats(0, 0.5),
    st.sampled_from([0.0, 0.6]),
    st.integers(0, 10**6),
    st.sampled_from([1, 7, 50, "log"]),
)
def test_recorded_runtime_at_the_reference_count_to_the_bit(
    family, sizes, noise, exponent, seed, applications
):
    exponent = exponent if isinstance(family, Downey) else 0.0
    sizes = None if applications == "log" else sizes
    trace = make_trace(60, seed)
    truth = build(
        family,
        trace=trace,
        seed=seed,
        sizes=sizes,
        noise=noise,
        size_exponent=exponent,
        applications=applications,
    )
    reference = trace.jobs["requested_processors"].to_numpy()
    recorded = trace.jobs["reference_runtime"].to_numpy()
    at_reference = truth.runtimes_at(np.arange(60), reference)
    assert at_reference.tobytes() == recorded.tobytes()
    assert truth.runtimes(7, reference[7:8])[0] == recorded[7]
    # T(1) = w, so that w = recorded runtime / g(reference count)
    np.testing.assert_allclose(
        truth.runtimes_at(np.arange(60), np.ones(60, int)), truth.serial_time, rtol=1e-9
    )
    np.testing.assert_allclose(truth.nominal_scale * truth.noise, truth.serial_time, rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"size_exponent": 0.5}, {"sizes": 2}])
@pytest.mark.parametrize("family", [Downey(), Stepwise(), Declining(counts="squares")])
def test_one_job_and_many_pairs_agree_to_the_bit(family, options):
    if options.get("size_exponent") and not isinstance(family, Downey):
        options = {}
    truth = build(family, jobs=50, **options)
    whole = everything(truth, 50).reshape(50, P)
    for job in range(50):
        counts = np.arange(1, P + 1)
        assert truth.runtimes(job, counts).tobytes() == whole[job].tobytes()
        assert truth.runtimes(job, counts[4:9]).tobytes() == whole[job, 4:9].tobytes()
        assert [truth.runtime_on(job, n) for n in counts.tolist()] == whole[job].tolist()


@pytest.mark.parametrize("family", FAMILIES)
def test_one_table_has_all_runtimes_to_the_bit(family):
    truth = build(family, jobs=60)
    g, row, reference_g, runtimes = truth.tabled()
    assert g.shape[1] == P + 1
    counts = np.arange(1, P + 1)
    for job in range(60):
        found = runtimes[job] * (g[row[job], counts] / reference_g[job])
        assert np.array_equal(found, truth.runtimes(job, counts), equal_nan=True)


def test_where_each_job_has_a_curve_of_its_own_there_is_no_table():
    assert build(size_exponent=0.3).tabled() is None
    assert build(NoMoldability()).tabled() is None


def test_one_runtime_is_told_whether_or_not_the_curve_was_asked_for_before():
    asked, fresh = build(jobs=50), build(jobs=50)
    expected = everything(asked, 50).reshape(50, P)[:, 4].tolist()
    assert [asked.runtime_on(job, 5) for job in range(50)] == expected
    assert [fresh.runtime_on(job, 5) for job in range(50)] == expected


def test_runtimes_follow_the_shape_of_the_application():
    truth = build(Amdahl(serial_min=0.25, serial_max=0.25))
    counts = np.array([1, 2, 4, 100])
    expected = truth.serial_time[3] * (1 / counts + 0.25) / 1.25
    np.testing.assert_allclose(truth.runtimes(3, counts), expected, rtol=1e-12)


def test_jobs_of_one_application_share_a_shape():
    truth = build()
    ratios = everything(truth, 400).reshape(400, P)
    ratios /= ratios[:, :1]
    for application in range(3):
        rows = ratios[truth.application == application]
        assert len(rows) > 10
        np.testing.assert_allclose(rows, rows[:1].repeat(len(rows), axis=0), rtol=1e-12)


def test_applications_follow_zipf():
    truth = build(jobs=100_000)
    found = np.bincount(truth.application, minlength=50) / 100_000
    np.testing.assert_allclose(found, zipf_shares(50, 1.0), atol=0.005)
    flat = build(jobs=100_000, applications=10, popularity=0.0)
    np.testing.assert_allclose(np.bincount(flat.application) / 100_000, 0.1, atol=0.005)


def test_noise_is_log_normal_and_contained_in_the_scale():
    trace = make_trace(50_000)
    truth = build(trace=trace, noise=0.1)
    logarithms = np.log(truth.noise)
    assert logarithms.mean() == pytest.approx(0, abs=0.002)
    assert logarithms.std() == pytest.approx(0.1, rel=0.02)
    np.testing.assert_array_equal(truth.serial_time, build(trace=trace, noise=0.0).serial_time)
    assert (build(trace=trace, noise=0.0).noise == 1).all()


def test_size_is_the_nominal_scale_with_noise():
    truth = build(jobs=50_000, size_noise=0.3)
    error = np.log(truth.size / truth.nominal_scale)
    assert error.std() == pytest.approx(0.3, rel=0.02)
    assert abs(np.corrcoef(error, np.log(truth.noise))[0, 1]) < 0.02
    np.testing.assert_allclose(build(size_noise=0.0).size, build().nominal_scale, rtol=1e-12)
    assert (build().size_class == -1).all()


def test_hidden_sizes():
    assert np.isnan(build(size="hidden").size).all()
    repeated = build(size="hidden", sizes=3)
    assert np.isnan(repeated.size).all()
    assert set(repeated.size_class.tolist()) == {0, 1, 2}
    assert changed(build(), build(size="hidden")) == {"size"}


def test_repeated_sizes_meet_quotas_and_repeat():
    truth = build(jobs=5000, sizes=4, applications=20)
    classes = truth.application * 4 + truth.size_class
    quotas = class_quotas(5000, zipf_shares(20, 1.0), 4)
    assert np.bincount(classes, minlength=80).tolist() == quotas.tolist()
    for number in np.unique(classes):
        members = classes == number
        nominal = truth.nominal_scale[members]
        assert np.ptp(nominal) <= 1e-9 * nominal[0]
        assert len(np.unique(truth.size[members])) == 1
    error = np.log(truth.size / truth.nominal_scale)
    assert 0.05 < error.std() < 0.2


@pytest.mark.parametrize("exponent", [0.0, 0.5])
def test_jobs_go_to_the_nearest_class_that_is_free(exponent):
    """Replays the assignment from what is public of the truth, class by class."""
    jobs = 300
    trace = make_trace(jobs)
    truth = build(trace=trace, sizes=2, applications=5, size_exponent=exponent, noise=0.0)
    reference = trace.jobs["requested_processors"].to_numpy()
    recorded = trace.jobs["reference_runtime"].to_numpy()
    rng = np.random.default_rng(0)
    predicted = np.array(
        [
            [truth.calibration.run(a, k, int(n), rng)[0] for a in range(5) for k in range(2)]
            for n in reference
        ]
    )
    free = class_quotas(jobs, zipf_shares(5, 1.0), 2)
    for job in Streams(1)("truth.class order").permutation(jobs):
        distance = np.abs(np.log(predicted[job] / recorded[job]))
        distance[free == 0] = np.inf
        chosen = truth.application[job] * 2 + truth.size_class[job]
        assert distance[chosen] <= distance.min() + 1e-9
        free[chosen] -= 1
    if exponent == 0:
        left_over = np.log(
            recorded / predicted[np.arange(jobs), truth.application * 2 + truth.size_class]
        )
        np.testing.assert_allclose(np.log(truth.noise), left_over, atol=1e-9)


def test_class_scales_come_from_jobs():
    trace = make_trace(300)
    truth = build(trace=trace, sizes=3, applications=4)
    reference = trace.jobs["requested_processors"].to_numpy()
    recorded = trace.jobs["reference_runtime"].to_numpy()
    rng = np.random.default_rng(0)
    shapes = Downey().draw(Streams(1)("truth.shapes"), 4, P)
    for application in range(4):
        candidates = recorded / shapes.g(np.full(300, application), reference)
        for size_class in range(3):
            members = (truth.application == application) & (truth.size_class == size_class)
            nominal = truth.nominal_scale[members][0]
            assert np.abs(candidates / nominal - 1).min() < 1e-12
            runtime, size = truth.calibration.run(application, size_class, 1, rng)
            assert runtime == pytest.approx(nominal, rel=0.1)
            assert size == truth.size[members][0]


def test_parallelism_grows_with_size():
    trace = make_trace(400)
    plain, grown = build(trace=trace), build(trace=trace, size_exponent=0.5)
    curve = Downey().draw(Streams(1)("truth.shapes"), 50, P).curve
    median = pd.Series(plain.serial_time).groupby(plain.application).transform("median").to_numpy()
    A = np.maximum(1, curve.A[plain.application] * (grown.serial_time / median) ** 0.5)
    sigma = curve.sigma[plain.application]
    reference = trace.jobs["requested_processors"].to_numpy()
    # the solved w gives back the recorded runtime under its own curve
    solved = grown.serial_time * downey.relative_time(reference, A, sigma)
    np.testing.assert_allclose(solved, trace.jobs["reference_runtime"], rtol=1e-9)
    for job in (0, 5, 99):
        expected = grown.serial_time[job] / downey.speedup([1, 7, 60], A[job], sigma[job])
        np.testing.assert_allclose(grown.runtimes(job, np.array([1, 7, 60])), expected, rtol=1e-9)
    useful = downey.integer_largest_useful(A, sigma, 1, P)
    np.testing.assert_array_equal(grown.max_processors, np.maximum(useful, reference))


def test_parallelism_never_shrinks_below_one():
    family = Downey(parallelism_min=1.5, parallelism_max=1.5)
    truth = build(family, size_exponent=0.9)
    smallest = int(truth.serial_time.argmin())
    assert truth.runtimes(smallest, np.array([1, P])).tolist() == [truth.serial_time[smallest]] * 2


def test_only_downey_supports_the_size_exponent():
    with pytest.raises(WorkloadError, match=r"moldability\.size_exponent must be 0 .*Amdahl"):
        build(Amdahl(), size_exponent=0.3)


def test_maximum_is_the_larger_of_reference_and_useful_and_at_most_the_machine():
    trace = make_trace()
    truth = build(trace=trace)
    reference = trace.jobs["requested_processors"].to_numpy()
    shapes = Downey().draw(Streams(1)("truth.shapes"), 50, P)
    useful = shapes.limits(truth.application)
    np.testing.assert_array_equal(truth.max_processors, np.maximum(reference, useful))
    assert (truth.max_processors <= P).all()
    assert (truth.max_processors > reference).any()
    assert (useful < reference).any()
    assert (truth.min_processors == 1).all()


@pytest.mark.parametrize("counts", ["powers_of_two", "squares", "multiples_of_6"])
def test_restricted_jobs_can_always_run_on_their_reference(counts):
    trace = make_trace()
    truth = build(Downey(counts=counts), trace=trace, min_processors=2)
    for job in range(400):
        reference = trace.jobs["requested_processors"][job]
        feasible = truth.feasible(job)
        assert reference in feasible
        assert (np.diff(feasible) > 0).all()
        assert feasible[0] == truth.min_processors[job]
        assert feasible[-1] == truth.max_processors[job]
        for count in set(feasible.tolist()) - {reference}:
            rule = {
                "powers_of_two": count & (count - 1) == 0,
                "squares": int(count**0.5) ** 2 == count,
                "multiples_of_6": count % 6 == 0,
            }
            assert rule[counts]
    assert build().feasible(0) is None


def test_share_keeps_the_rest_rigid_but_known():
    trace = make_trace(20_000)
    truth = build(trace=trace, share=0.3)
    assert truth.moldable.mean() == pytest.approx(0.3, abs=0.01)
    rigid = ~truth.moldable
    reference = trace.jobs["requested_processors"].to_numpy()
    assert (truth.max_processors[rigid] == reference[rigid]).all()
    assert (truth.min_processors[rigid] == reference[rigid]).all()
    assert np.isfinite(truth.serial_time).all()
    # who is moldable has nothing to do with the application
    assert truth.moldable[truth.application == 0].mean() == pytest.approx(0.3, abs=0.03)
    more = build(trace=trace, share=0.6)
    assert more.moldable[truth.moldable].all()
    assert changed(truth, more) == {"moldable", "max"}
    assert build(Downey(counts="squares"), share=0.0).feasible(0) is None


def test_no_moldability():
    trace = make_trace(50)
    truth = build(NoMoldability(), trace=trace)
    reference = trace.jobs["requested_processors"].to_numpy()
    recorded = trace.jobs["reference_runtime"].to_numpy()
    assert truth.runtimes_at(np.arange(50), reference).tobytes() == recorded.tobytes()
    assert np.isnan(truth.serial_time).all()
    assert not truth.moldable.any()
    assert (truth.max_processors == reference).all()
    assert (truth.min_processors == reference).all()
    other = truth.runtimes(0, np.array([reference[0], reference[0] + 1]))
    assert other[0] == recorded[0]
    assert np.isnan(other[1])
    assert np.isnan(truth.repetition()["noise_spread"])
    with pytest.raises(WorkloadError, match="moldability=none"):
        truth.calibration.run(0, -1, 1, np.random.default_rng(1))
    with pytest.raises(WorkloadError, match=r"workload\.sizes must be null with NoMoldability"):
        build(NoMoldability(), sizes=2)


def test_same_seed_same_arrays_and_another_seed_others():
    for options in ({}, {"sizes": 3}, {"size_exponent": 0.4}):
        one, two = build(**options), build(**options)
        assert not changed(one, two)
        assert everything(one, 400).tobytes() == everything(two, 400).tobytes()
        assert "application" in changed(one, build(seed=2, **options))


@pytest.mark.parametrize(
    ("option", "touched"),
    [
        ({"size_noise": 0.7}, {"size"}),
        ({"noise": 0.3}, {"noise", "nominal", "size"}),
        ({"share": 0.5}, {"moldable", "max"}),
        ({"min_processors": 2}, set()),
        ({"split_noise": 0.9}, set()),
        ({"size_exponent": 0.3}, {"serial", "nominal", "size", "max"}),
    ],
)
def test_one_option_never_shifts_another_draw(option, touched):
    assert changed(build(noise=0.0), build(**({"noise": 0.0} | option))) <= touched


def test_noise_and_size_errors_are_drawn_apart():
    small, large = build(noise=0.01), build(noise=0.02)
    np.testing.assert_allclose(2 * np.log(small.noise), np.log(large.noise), rtol=1e-9)
    error = [np.log(truth.size / truth.nominal_scale) for truth in (small, large)]
    np.testing.assert_allclose(error[0], error[1], atol=1e-12)


def test_size_noise_leaves_repeated_classes_alone():
    assert changed(build(sizes=3), build(sizes=3, size_noise=0.5)) == {"size"}


def test_applications_of_the_log():
    trace = make_trace(500)
    truth = build(trace=trace, applications="log")
    executable = trace.jobs["executable"].to_numpy()
    for number in range(5):
        assert len(np.unique(truth.application[executable == number])) == 1
    unknown = truth.application[executable == -1]
    assert len(np.unique(unknown)) == len(unknown)
    assert len(np.unique(truth.application)) == 5 + len(unknown)
    with pytest.raises(WorkloadError, match=r"workload\.sizes must be null"):
        build(trace=trace, applications="log", sizes=2)


def logged_trace(jobs=400):
    trace = make_trace(jobs)
    rng = np.random.default_rng(9)
    columns = {
        "application": rng.integers(0, 90, jobs) ** 2,  # numbers of the whole log, with gaps
        "request_class": rng.integers(-1, 4, jobs),
    }
    return replace(trace, jobs=trace.jobs.assign(**columns))


def test_applications_are_those_that_the_log_tells():
    trace = logged_trace()
    truth = build(trace=trace, applications="log")
    pairs = {*zip(trace.jobs["application"], truth.application, strict=True)}
    assert len(pairs) == trace.jobs["application"].nunique() == len(np.unique(truth.application))
    assert truth.application.max() == len(pairs) - 1


@pytest.mark.parametrize("applications", ["log", 7])
def test_hidden_sizes_of_a_log_are_classed_by_what_jobs_request(applications):
    trace = logged_trace()
    asked = {"trace": trace, "applications": applications}
    hidden, known = build(size="hidden", **asked), build(size="known", **asked)
    assert hidden.size_class.tolist() == trace.jobs["request_class"].tolist()
    assert np.isnan(hidden.size).all()
    assert (known.size_class == -1).all()
    assert (build(size="hidden").size_class == -1).all()  # a model tells no more
    if applications == 7:
        repeated = build(size="hidden", sizes=3, **asked)
        assert set(repeated.size_class) == {0, 1, 2}


def test_runs_of_a_class_by_request_have_the_median_scale_of_its_jobs():
    truth = build(trace=logged_trace(), applications=3, size="hidden", noise=0.0)
    member = (truth.application == 1) & (truth.size_class == 2)
    runtime, size = truth.calibration.run(1, 2, 1, np.random.default_rng(0))
    assert runtime == pytest.approx(np.median(truth.nominal_scale[member]))
    assert np.isnan(size)
    with pytest.raises(WorkloadError, match=r"there is no size class 9 with workload\.sizes=null"):
        truth.calibration.run(1, 9, 1, np.random.default_rng(0))


def test_tens_of_thousands_of_applications_cost_no_more_than_their_jobs():
    trace = make_trace(30_000)
    trace = replace(trace, jobs=trace.jobs.assign(application=np.arange(30_000)))
    began = time.process_time()
    truth = build(trace=trace, applications="log")
    for job in range(0, 30_000, 10):
        truth.runtimes(job, np.arange(1, 9))
    assert time.process_time() - began < 10


def model_trace():
    application = np.array([2, 0, 2, 3] * 25)
    A = np.array([5.0, 1.0, 40.0, 9.5])[application]
    sigma = np.array([0.5, 0.0, 2.0, 1.0])[application]
    return make_trace(100, application=application, A=A, sigma=sigma)


def test_a_workload_that_brings_its_speedups_keeps_them():
    trace = model_trace()
    truth = build(trace=trace)
    np.testing.assert_array_equal(truth.application, trace.models["application"])
    counts = np.array([1, 6, 50])
    for job in range(4):
        expected = truth.serial_time[job] / downey.speedup(
            counts, trace.models["A"][job], trace.models["sigma"][job]
        )
        np.testing.assert_allclose(truth.runtimes(job, counts), expected, rtol=1e-12)
    with pytest.raises(WorkloadError, match="needs moldability=downey, not Amdahl"):
        build(Amdahl(), trace=trace)
    with pytest.raises(WorkloadError, match=r"workload\.sizes must be null"):
        build(trace=trace, sizes=2)


def test_calibration_runs():
    truth = build(noise=0.1, size_noise=0.2)
    rng = np.random.default_rng(3)
    runs = np.array([truth.calibration.run(0, -1, 4, rng) for _ in range(4000)])
    nominal = np.median(truth.nominal_scale[truth.application == 0])
    job = int(np.flatnonzero(truth.application == 0)[0])
    at_four = truth.runtimes(job, np.array([4]))[0] / truth.serial_time[job] * nominal
    logarithms = np.log(runs / [at_four, nominal])
    np.testing.assert_allclose(logarithms.mean(axis=0), 0, atol=0.015)
    np.testing.assert_allclose(logarithms.std(axis=0), [0.1, 0.2], rtol=0.05)
    assert np.isnan(build(size="hidden").calibration.run(0, -1, 4, rng)[1])


def test_calibration_at_a_size_uses_its_parallelism():
    truth = build(size_exponent=0.5, noise=0.0, size_noise=0.0)
    rng = np.random.default_rng(3)
    counts = np.array([1, 4, 32])
    runs = [truth.calibration.run(0, -1, int(n), rng)[0] for n in counts]
    members = truth.application == 0
    nominal = np.median(truth.serial_time[members])
    plain = np.median(build(noise=0.0).serial_time[members])
    curve = Downey().draw(Streams(1)("truth.shapes"), 50, P).curve
    A = max(1.0, curve.A[0] * (nominal / plain) ** 0.5)
    np.testing.assert_allclose(runs, nominal / downey.speedup(counts, A, curve.sigma[0]))


def test_calibration_errors():
    rng = np.random.default_rng(1)
    with pytest.raises(WorkloadError, match=r"workload\.sizes=null"):
        build().calibration.run(0, 0, 4, rng)
    with pytest.raises(WorkloadError, match=r"workload\.sizes=2, got 2"):
        build(sizes=2).calibration.run(0, 2, 4, rng)
    with pytest.raises(WorkloadError, match="application 77"):
        build().calibration.counts(77, 3, P)


def test_calibration_counts_of_an_application():
    trace = make_trace()
    truth = build(trace=trace)
    reference = trace.jobs["requested_processors"].to_numpy()
    largest = reference[truth.application == 0].max()
    counts = truth.calibration.counts(0, 3, P)
    assert counts[0] == 1
    assert largest / 2 < counts[-1] <= largest
    squares = build(Downey(counts="squares"), trace=trace)
    own = set(reference[squares.application == 1].tolist())
    for count in squares.calibration.counts(1, 4, P).tolist():
        assert int(count**0.5) ** 2 == count or count in own


def test_calibration_counts_reach_beyond_small_references_but_not_below_the_minimum():
    trace = make_trace(30)
    trace.jobs["requested_processors"] = 2
    family = Downey(parallelism_min=40, parallelism_max=40)
    truth = build(family, trace=trace, applications=1)
    assert truth.calibration.counts(0, 3, P).tolist() == [1, 4, 8]
    assert truth.calibration.counts(0, 3, 6).tolist() == [1, 2, 4]
    narrow = build(Downey(parallelism_max=1), trace=trace, applications=1)
    assert narrow.calibration.counts(0, 3, P).tolist() == [1, 2]
    least = build(family, trace=trace, applications=1, min_processors=3)
    assert least.calibration.counts(0, 3, P).tolist() == [2, 4, 8]


def parts_of(truth, job, counts):
    """Return the seconds of computation and of communication at each count."""
    total = truth.runtimes(job, counts)
    share = truth.communication_shares(np.full(len(counts), job), counts)
    return total * (1 - share), total * share


def test_split_noise_is_drawn_once_for_a_job_and_count():
    fixed = {"parallelism_min": P, "parallelism_max": P, "serial_min": 0, "serial_max": 0}
    family = General(communication_min=1e-3, communication_max=1e-3, **fixed)
    counts = np.arange(1, 60)
    truth = build(family, split_noise=0.0)
    computation, communication = parts_of(truth, 3, counts)
    np.testing.assert_allclose(communication / computation, 1e-3 * (counts - 1) * counts)
    noisy = build(family, split_noise=0.2)
    computation, communication = parts_of(noisy, 3, counts)
    again = parts_of(noisy, 3, counts[10:11])
    assert (again[0][0], again[1][0]) == (computation[10], communication[10])
    ratio = communication[1:] / computation[1:] / (1e-3 * (counts[1:] - 1) * counts[1:])
    assert np.log(ratio).std() == pytest.approx(0.2 * np.sqrt(2), rel=0.3)


def test_repetition_says_how_many_sizes_there_are_and_how_noisy_runs_are():
    truth = build(sizes=3, jobs=1000)
    repetition = truth.repetition()
    assert repetition["sizes_per_application"] == 3
    assert repetition["noise_spread"] == np.std(np.log(truth.noise))
    assert repetition["median_noise"] == np.median(np.abs(np.log(truth.noise)))
    assert build(jobs=50).repetition()["sizes_per_application"] == 0


def test_assumed_serial_times_are_counted(scaling):
    truth = build(Measured(path=str(scaling)), jobs=3000)
    assert 0 < truth.serial_time_assumed.mean() < 1


@pytest.mark.parametrize("family", [PowerLaw(), Declining(), Stepwise()])
def test_without_a_table_one_job_and_many_pairs_agree_to_the_bit(family):
    trace = make_trace(301)
    truth = build_truth(trace, family, Streams(1), 3_000_000)
    reference = trace.jobs["requested_processors"].to_numpy()
    recorded = trace.jobs["reference_runtime"].to_numpy()
    assert truth._table is None
    assert truth.runtimes_at(np.arange(301), reference).tobytes() == recorded.tobytes()
    counts = np.arange(1, 12)
    whole = truth.runtimes_at(np.repeat(np.arange(301), 11), np.tile(counts, 301)).reshape(301, 11)
    for job in range(301):
        assert truth.runtimes(job, counts).tobytes() == whole[job].tobytes()
        assert truth.runtimes(job, reference[job : job + 1])[0] == recorded[job]


def test_large_tables_are_not_kept_and_agree():
    trace = make_trace(40)
    trace = replace(trace, jobs=trace.jobs.assign(application=np.arange(40)))
    kept = build(trace=trace, applications="log")
    wide = build_truth(trace, Downey(parallelism_max=P), Streams(1), 400_000, applications="log")
    assert kept._table is not None
    assert wide._table is None
    counts = np.array([1, 5, 100])
    for job in range(40):
        np.testing.assert_array_equal(kept.runtimes(job, counts), wide.runtimes(job, counts))


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"applications": 0}, "workload.applications"),
        ({"applications": "all"}, "workload.applications"),
        ({"applications": 2.5}, "workload.applications"),
        ({"popularity": -1}, "workload.popularity"),
        ({"popularity": float("nan")}, "workload.popularity"),
        ({"popularity": "high"}, "workload.popularity"),
        ({"sizes": 0}, "workload.sizes"),
        ({"sizes": True}, "workload.sizes"),
        ({"size": "visible"}, "workload.size"),
        ({"size_noise": -0.1}, "workload.size_noise"),
        ({"noise": float("inf")}, "moldability.noise"),
        ({"share": 1.5}, "moldability.share"),
        ({"size_exponent": 1.0}, "moldability.size_exponent"),
        ({"min_processors": 0}, "moldability.min_processors"),
        ({"split_noise": -1}, "moldability.split_noise"),
    ],
)
def test_bad_options_name_their_key(options, key):
    with pytest.raises(WorkloadError, match=f"^{key.replace('.', '[.]')}=.+: must be "):
        TruthOptions(**options)


def test_jobs_that_do_not_fit_are_refused():
    with pytest.raises(WorkloadError, match=r"synthetic: job \d+ needs \d+ processors.*=16"):
        build(processors=16)
    with pytest.raises(WorkloadError, match="there are no jobs"):
        build(trace=make_trace(0))
