import math

import numpy as np
import pytest

from tests import former
from workloads.arrivals import offered_load
from workloads.base import COLUMNS
from workloads.errors import WorkloadError
from workloads.models.lublin import (
    ALL,
    BATCH,
    INTERACTIVE,
    STEADY,
    TYPES,
    Lublin,
    daily_weights,
    draw_gaps,
    draw_runtimes,
    draw_sizes,
    draw_submits,
    worked_out_weights,
)
from workloads.streams import Streams

pytestmark = pytest.mark.fast

DRAWS = 400_000
# Published reference moments, each from 400,000 draws on 128 processors:
# mean size, mean and median runtime, serial share, power-of-two share, mean rush-hour gap.
MOMENTS = {
    "batch": (BATCH, 13.9, 9.5e3, 819, 0.293, 0.969, 3537),
    "interactive": (INTERACTIVE, 8.1, 238, 13, 0.154, 0.845, 618),
    "all": (ALL, 12.1, 4.35e3, 107, 0.244, 0.869, 911),
}


def within(values: np.ndarray, reference: float, last_digit: float) -> bool:
    """Whether a mean is that of the reference, both samples' errors and its rounding allowed."""
    error = 4 * math.sqrt(2) * values.std() / math.sqrt(len(values)) + last_digit / 2
    return abs(values.mean() - reference) < error


@pytest.mark.parametrize("kind", MOMENTS)
def test_sample_moments_are_the_published_ones(kind):
    table, size, runtime, median, serial, power, gap = MOMENTS[kind]
    rng = np.random.default_rng(11)
    sizes = draw_sizes(table, DRAWS, 128, rng)
    runtimes = draw_runtimes(table, sizes, rng)
    assert within(sizes, size, 0.1)
    assert within(runtimes, runtime, 100 if runtime > 9e3 else 10 if runtime > 1e3 else 1)
    assert np.median(runtimes) == pytest.approx(median, rel=0.03)
    assert within(sizes == 1, serial, 0.001)
    assert within((sizes & (sizes - 1)) == 0, power, 0.001)
    assert within(draw_gaps(table, DRAWS, rng), gap, 1)


def test_runtimes_are_whole_and_bounded_and_grow_with_size():
    rng = np.random.default_rng(2)
    small = draw_runtimes(ALL, np.full(20_000, 1), rng)
    large = draw_runtimes(ALL, np.full(20_000, 128), rng)
    both = np.concatenate([small, large])
    assert (both == np.floor(both)).all()
    assert both.min() >= 1
    assert both.max() <= math.exp(12)
    assert large.mean() > 2 * small.mean()


def test_the_usual_weights_are_those_of_the_gamma_law():
    assert daily_weights(ALL) == pytest.approx(worked_out_weights(ALL), rel=1e-12)
    assert (daily_weights(BATCH) == worked_out_weights(BATCH)).all()


def test_daily_weights_have_mean_one_and_peak_in_the_working_day():
    for table in (BATCH, INTERACTIVE, ALL):
        weights = daily_weights(table)
        assert weights.mean() == pytest.approx(1.0)
        assert (weights > 0).all()
        assert 20 <= int(np.argmax(weights)) <= 32


def test_a_daily_weight_is_its_share_of_the_gamma_law():
    def area(low: float, high: float) -> float:
        x = np.linspace(low, high, 100_001)
        return float(np.trapezoid(x ** (ALL.a_cycle - 1) * np.exp(-x / ALL.b_cycle), x))

    # Bucket 25 is the law between 25.5 and 26.5, of 48 such buckets from 10.5 on.
    assert daily_weights(ALL)[25] == pytest.approx(48 * area(25.5, 26.5) / area(10.5, 58.5))
    # The early hours come last: bucket 3 is the law between 51.5 and 52.5.
    assert daily_weights(ALL)[3] == pytest.approx(48 * area(51.5, 52.5) / area(10.5, 58.5))


def test_arrivals_follow_the_cycle_at_the_mean_rate():
    streams = Streams(seed=4)
    submit, queue = draw_submits({-1: ALL}, 200_000, streams)
    assert (np.diff(submit) >= 0).all()
    assert (queue == -1).all()
    gaps = draw_gaps(ALL, 200_000, streams("lublin.arrivals.-1"))
    assert submit[-1] == pytest.approx(gaps.sum(), abs=2 * 86_400)
    share = np.bincount((submit % 86_400 // 1800).astype(int), minlength=48) / len(submit)
    assert share * 48 == pytest.approx(daily_weights(ALL), abs=0.15)


def test_both_types_are_two_independent_streams_merged():
    streams = Streams(seed=4)
    submit, queue = draw_submits(TYPES["both"], 10_000, streams)
    alone = {
        kind: draw_submits({kind: table}, 10_000, streams)[0]
        for kind, table in TYPES["both"].items()
    }
    for kind in (0, 1):
        mine = submit[queue == kind]
        assert mine.tolist() == alone[kind][: len(mine)].tolist()
    # The later of the two streams' next arrivals comes after all that were taken.
    assert all(alone[kind][(queue == kind).sum()] >= submit[-1] for kind in (0, 1))
    assert (queue == 0).mean() == pytest.approx(3537 / (3537 + 618), abs=0.05)


def test_scaled_parameters_are_the_table_at_128_and_move_with_log_size():
    for table in (BATCH, INTERACTIVE, ALL):
        assert table.scaled(128) == table
    assert ALL.scaled(256).u_high == 8.0
    assert ALL.scaled(256).u_medium == 5.5
    assert ALL.scaled(256).u_low == ALL.u_low


@pytest.mark.parametrize("processors", [1, 2, 3, 4, 7, 100, 1000, 10_000])
def test_sizes_fit_any_machine(processors):
    for table in (BATCH, INTERACTIVE, ALL):
        sizes = draw_sizes(table.scaled(processors), 5000, processors, np.random.default_rng(1))
        assert sizes.min() >= 1
        assert sizes.max() <= processors
    if processors >= 100:
        assert sizes.max() > processors / 2
        powers = (sizes & (sizes - 1)) == 0
        assert powers.mean() > ALL.serial + ALL.power_of_two - 0.03


@pytest.mark.parametrize("seed", range(1, 6))
def test_the_default_leaves_no_gap_above_a_day_and_estimates_of_a_few_times_the_runtime(seed):
    jobs = Lublin().trace(Streams(seed)).jobs
    assert len(jobs) == 5000
    assert np.diff(jobs["submit_time"]).max() < 86_400
    assert 1.8 < (jobs["requested_time"] / jobs["reference_runtime"]).median() < 6
    published = former.Lublin(types="all").trace(Streams(seed)).jobs
    assert np.diff(published["submit_time"]).max() > 86_400
    assert (published["requested_time"] / published["reference_runtime"]).median() > 15


def test_the_default_arrives_as_often_as_the_published_fit():
    gaps = [draw_gaps(table, DRAWS, np.random.default_rng(3)).mean() for table in (STEADY, ALL)]
    assert gaps[0] == pytest.approx(gaps[1], rel=0.25)  # and the load scales what is left


@pytest.mark.parametrize("types", TYPES)
def test_a_trace_is_scaled_numbered_and_reproducible(types):
    trace = Lublin(jobs=400, load=0.7, types=types).trace(Streams(seed=3), 512)
    again = Lublin(jobs=400, load=0.7, types=types).trace(Streams(seed=3), 512)
    other = Lublin(jobs=400, load=0.7, types=types).trace(Streams(seed=3, replication=1), 512)
    assert trace.jobs.equals(again.jobs)
    assert not trace.jobs.equals(other.jobs)
    assert list(trace.jobs.columns) == list(COLUMNS)
    assert trace.jobs["job_id"].tolist() == list(range(1, 401))
    assert offered_load(trace.jobs, 512) == pytest.approx(0.7, rel=1e-12)
    least = trace.jobs["reference_runtime"].clip(upper=64_800)  # longer ones request the limit
    assert (trace.jobs["requested_time"] >= least).all()
    assert trace.jobs["requested_processors"].max() <= 0.7 * 512
    assert (trace.processors, trace.source, trace.checksum) == (512, "lublin", None)
    assert set(trace.models["queue"]) == set(TYPES[types])


def test_estimates_and_load_do_not_change_the_jobs():
    base = Lublin(jobs=300).trace(Streams(seed=3)).jobs
    other = Lublin(jobs=300, load=None, estimates="exact").trace(Streams(seed=3)).jobs
    for column in ("requested_processors", "reference_runtime"):
        assert base[column].equals(other[column])
    assert other["requested_time"].equals(other["reference_runtime"])
    assert (other["submit_time"] % 1 == 0).all()


def test_changed_parameters_take_effect():
    jobs = Lublin(jobs=500, parameters={"serial": 1.0}).trace(Streams(seed=1)).jobs
    assert (jobs["requested_processors"] == 1).all()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        (
            {"jobs": 0},
            "workload.jobs=0: must be a whole number of at least 1 and at most 1,000,000,000",
        ),
        (
            {"jobs": 1.5},
            "workload.jobs=1.5: must be a whole number of at least 1 and at most 1,000,000,000",
        ),
        (
            {"jobs": True},
            "workload.jobs=True: must be a whole number of at least 1 and at most 1,000,000,000",
        ),
        ({"load": 0}, "workload.load=0: must be positive and finite, or null"),
        ({"load": "high"}, "workload.load=high: must be positive and finite, or null"),
        (
            {"types": "serial"},
            "workload.types=serial: allowed are steady, all, batch, interactive, both",
        ),
        (
            {"estimates": "recorded"},
            "workload.estimates=recorded: a model records no requested times; "
            "allowed: exact, tsafrir, f_model, badness, loose",
        ),
        (
            {"processors": 0},
            "workload.processors=0: must be a whole number of at least 1 and at most 1,000,000,000",
        ),
        (
            {"parameters": 3},
            "workload.parameters=3: must be a mapping of names to values",
        ),
        (
            {"types": ["all"]},
            "workload.types=['all']: allowed are steady, all, batch, interactive, both",
        ),
        ({"estimate_factor": "x"}, "workload.estimate_factor=x: must be at least 1"),
        (
            {"estimate_limit": "1h"},
            "workload.estimate_limit=1h: must be positive seconds, or null",
        ),
        ({"parameters": {"a1": 0}}, "workload.parameters.a1=0: must be positive"),
        ({"parameters": {"serial": 2}}, "workload.parameters.serial=2: must be from 0 to 1"),
        ({"parameters": {"a1": "x"}}, "workload.parameters.a1=x: must be a finite number"),
    ],
)
def test_impossible_arguments_are_refused(keywords, message):
    with pytest.raises(WorkloadError) as refusal:
        Lublin(**keywords)
    assert str(refusal.value) == message


def test_unknown_parameters_are_refused():
    with pytest.raises(WorkloadError, match=r"workload.parameters.size: no such parameter"):
        Lublin(parameters={"size": 1.0})


def test_jobs_wider_than_allowed_are_drawn_again_and_the_others_stay():
    table = ALL.scaled(256)
    published = draw_sizes(table, 5000, 256, np.random.default_rng(2))
    narrower = draw_sizes(table, 5000, 256, np.random.default_rng(2), 179)
    wide = published > 179
    assert wide.mean() > 0.01
    assert (narrower[~wide] == published[~wide]).all()
    assert narrower.max() <= 179
    assert draw_sizes(table, 5000, 256, np.random.default_rng(2), 256).tolist() == (
        published.tolist()
    )


@pytest.mark.parametrize("value", [0, 1.5, -1, True, "half"])
def test_the_widest_share_is_checked(value):
    with pytest.raises(WorkloadError, match=r"workload\.widest=.*: must be above 0 and at most 1"):
        Lublin(widest=value)


def test_a_law_without_jobs_so_narrow_is_refused():
    asked = Lublin(widest=0.1, parameters={"serial": 0.0, "u_low": 6.0})
    with pytest.raises(WorkloadError, match=r"workload\.widest allows 25 of 256"):
        asked.trace(Streams(1))
