import logging

import numpy as np
import pandas as pd
import pytest

from workloads.errors import WorkloadError
from workloads.logs.table import TableWorkload
from workloads.models.estimates import (
    HOUR,
    Estimates,
    bins_for,
    generate_histogram,
    head_ranks,
    head_times,
    site_limit,
    tsafrir_estimates,
)
from workloads.streams import Streams


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_head_times_of_eighteen_hours():
    hours = (head_times(18 * HOUR) / HOUR).tolist()
    common = [5 / 60, 10 / 60, 15 / 60, 20 / 60, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12]
    assert hours[0] == 18
    assert set(common) <= set(hours)
    assert sorted(set(hours) - set(common) - {18}) == [13, 14, 15, 16, 17]


def test_head_times_complete_with_round_numbers_from_the_limit_down():
    hours = set((head_times(160 * HOUR) / HOUR).tolist())
    assert {100, 50, 150, 160} <= hours
    assert len(hours) == 20
    assert hours - {100.0, 50.0, 150.0, 160.0} == {
        *(minutes / 60 for minutes in (5, 10, 15, 20, 30)),
        *(1, 2, 3, 4, 5, 6, 8, 10, 12, 18, 140),
    }


def test_a_limit_below_two_hours_has_fewer_popular_times():
    assert len(head_times(HOUR)) == 12
    assert len(head_times(2 * HOUR)) == 20


def test_the_limit_is_most_popular_and_every_rank_is_used_once():
    first = np.zeros(21)
    for seed in range(300):
        ranks = head_ranks(rng(seed))
        assert sorted(ranks) == list(range(1, 21))
        assert ranks[0] == 1
        first[np.argmin(np.where(ranks == 2, 0, 1))] += 1
    # Rank 2 is taken at the latest where the table has it last (time index 8).
    assert first[9:].sum() == 0
    assert (first[[3, 4, 5, 6, 7]] > 0).all()


def test_number_of_bins_is_piecewise_linear():
    counts = [bins_for(jobs) for jobs in (200, 600, 1000, 5500, 10_000, 70_000, 250_000, 10**6)]
    assert counts == [20, 28, 35, 62, 90, 340, 565, 565]


@pytest.mark.parametrize(("jobs", "limit"), [(10_000, 18 * HOUR), (70_000, 48 * HOUR)])
def test_histogram_has_the_papers_shape(jobs, limit):
    histogram = generate_histogram(jobs, limit, rng())
    assert histogram.counts.sum() == jobs
    assert len(histogram.times) == len(set(histogram.times.tolist()))
    assert bins_for(jobs) - 5 <= len(histogram.times) <= bins_for(jobs)
    assert histogram.times.max() == limit
    assert histogram.head.sum() == 20
    head = np.sort(histogram.counts[histogram.head])[::-1] / jobs
    assert head.sum() == pytest.approx(0.89, abs=2e-3)
    ranks = np.arange(2, 21)
    expected = (14.0491 * np.exp(-0.177531 * ranks) + 0.462513) / 100
    assert head[1:] == pytest.approx(expected, abs=2e-4)
    assert head[0] == pytest.approx(0.89 - expected.sum(), abs=2e-4)
    assert histogram.counts[histogram.times == limit][0] == histogram.counts.max()
    tail = np.sort(histogram.counts[~histogram.head])[::-1]
    assert tail[1] / tail[0] == pytest.approx((22 / 21) ** -2.267, abs=0.02)


def test_most_tail_times_are_short_whole_minutes():
    histogram = generate_histogram(250_000, 100 * HOUR, rng())
    tail = histogram.times[~histogram.head]
    assert (tail % 60 == 0).mean() > 0.8
    assert np.median(tail) < 0.4 * 100 * HOUR


def test_estimates_cover_runtimes_and_keep_the_histogram():
    runtimes = np.floor(rng().lognormal(6.0, 2.2, 20_000)).clip(1, 18 * HOUR)
    estimates = tsafrir_estimates(runtimes, rng(2), 18 * HOUR)
    histogram = generate_histogram(20_000, 18 * HOUR, rng(2))
    assert (estimates >= runtimes).all()
    times, counts = np.unique(estimates, return_counts=True)
    assert times.tolist() == histogram.times.tolist()
    assert counts.tolist() == histogram.counts.tolist()


def test_short_jobs_get_long_estimates_too():
    runtimes = np.concatenate([np.full(5000, 10.0), np.full(5000, 7000.0)])
    estimates = tsafrir_estimates(runtimes, rng(), 18 * HOUR)
    assert (estimates[:5000] >= 18 * HOUR).mean() > 0.05
    assert (estimates[:5000] < 7000).mean() > 0.5


def test_the_default_limit_covers_the_longest_runtime():
    assert [site_limit(seconds) / HOUR for seconds in (1.0, 3600.0, 3601.0, 162_754.0)] == [
        1,
        1,
        2,
        48,
    ]
    assert site_limit(721 * HOUR) == 800 * HOUR
    assert tsafrir_estimates(np.array([3601.0] * 300), rng()).max() == 2 * HOUR


def test_too_many_long_jobs_take_the_limit_with_a_warning(caplog):
    runtimes = np.full(1000, 17.5 * HOUR)
    with caplog.at_level(logging.WARNING):
        estimates = tsafrir_estimates(runtimes, rng(), 18 * HOUR)
    assert (estimates >= runtimes).all()
    assert (estimates == 18 * HOUR).mean() > 0.95
    assert "of the 1,000 requested times that the model has drawn are too short" in caplog.text


@pytest.mark.parametrize("jobs", [1, 2, 10, 199, 200, 201, 230])
def test_few_jobs_have_estimates_too(jobs):
    runtimes = rng(3).lognormal(6.0, 2.0, jobs)
    estimates = tsafrir_estimates(runtimes, rng())
    assert (estimates >= runtimes).all()
    assert (estimates <= site_limit(runtimes.max())).all()


def test_few_jobs_draw_from_the_histogram_at_or_above_the_runtime():
    estimates = tsafrir_estimates(np.full(199, 17 * HOUR + 1.0), rng(), 18 * HOUR)
    assert (estimates > 17 * HOUR).all()
    assert (estimates == 18 * HOUR).mean() > 0.9
    short = np.concatenate([tsafrir_estimates(np.ones(150), rng(k), 18 * HOUR) for k in range(40)])
    assert (short == 18 * HOUR).mean() == pytest.approx(0.217, abs=0.03)


def test_no_jobs_and_impossible_limits():
    assert tsafrir_estimates(np.zeros(0), rng()).tolist() == []
    with pytest.raises(
        WorkloadError, match=r"limit of 600 s \(workload.time_limit, .*: tsafrir needs at"
    ):
        tsafrir_estimates(np.ones(500), rng(), 600)
    with pytest.raises(WorkloadError, match=r"limit of 1e\+308 s .* at most 1e\+12"):
        tsafrir_estimates(np.ones(500), rng(), 1e308)
    with pytest.raises(WorkloadError, match="at least 200 jobs, got 10"):
        generate_histogram(10, HOUR, rng())


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3])
def test_the_share_of_jobs_at_the_limit_is_given(share):
    histogram = generate_histogram(10_000, 18 * HOUR, rng(), share)
    assert histogram.counts[-1] == pytest.approx(share * 10_000, rel=0.02)
    assert histogram.counts[histogram.head].sum() == pytest.approx(8_900, rel=0.02)
    usual = generate_histogram(10_000, 18 * HOUR, rng())
    assert usual.counts[-1] == pytest.approx(2_171, rel=0.02)


def test_a_site_says_its_limit_and_the_share_of_jobs_at_it():
    runtimes = np.exp(rng().normal(7.0, 2.0, 4000)).clip(1, 200_000)
    drawn = Estimates("tsafrir").draw(runtimes, rng())
    assert drawn.max() == 64_800
    assert (drawn == 64_800).mean() == pytest.approx(0.1, abs=0.02)
    assert Estimates("tsafrir", time_limit=None, at_limit=None).draw(runtimes, rng()).max() > 64_800
    assert Estimates("tsafrir", limit=7200.0).draw(runtimes, rng()).max() == 7200
    for key, value in (("time_limit", -1), ("at_limit", 0.0), ("at_limit", 0.89)):
        with pytest.raises(WorkloadError, match=f"workload.{key}={value}: must be"):
            Estimates("tsafrir", **{key: value})


@pytest.mark.parametrize(
    ("asked", "limit"),
    [
        ([7200.0] * 30 + [40_000.0], 40_000),
        ([7200.0] * 300 + [738_738_720.0], 7200),  # which stands for no limit
        ([738_738_720.0] * 300, 738_738_720),
        ([-1.0], 18 * HOUR),
    ],
)
def test_what_stands_for_no_limit_is_none_for_missing_requests(asked, limit, tmp_path):
    rows = [(k, 1, 3600, 2, asked[k % len(asked)]) for k in range(len(asked))]
    rows += [(1000 + k, 1, 60_000 if asked == [-1.0] else 5000, 2, -1) for k in range(200)]
    table = pd.DataFrame(rows, columns=["submit", "wait", "runtime", "cpus", "walltime"])
    table.to_csv(tmp_path / "log.csv", index=False)
    jobs = TableWorkload(tmp_path / "log.csv").trace(Streams(3)).jobs
    assert jobs["requested_time"].iloc[len(asked) :].max() == limit
