"""Zipf shares, quotas, and the assignment of jobs to repeated inputs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.errors import WorkloadError
from workloads.truth.assignment import assign_classes, class_quotas, pick_applications, zipf_shares
from workloads.truth.scales import choose_counts, spread_powers

pytestmark = pytest.mark.fast


def test_zipf_shares():
    np.testing.assert_allclose(zipf_shares(4, 1.0), np.array([12, 6, 4, 3]) / 25)
    np.testing.assert_allclose(zipf_shares(4, 2.0), np.array([144, 36, 16, 9]) / 205)
    np.testing.assert_allclose(zipf_shares(4, 0.0), 0.25)


def test_picked_applications_have_their_shares():
    uniforms = np.random.default_rng(1).random(200_000)
    picked = pick_applications(uniforms, zipf_shares(50, 1.0))
    found = np.bincount(picked, minlength=50) / 200_000
    np.testing.assert_allclose(found, zipf_shares(50, 1.0), atol=4 * np.sqrt(0.22 * 0.78 / 2e5))
    assert pick_applications(np.array([0.0, np.nextafter(1, 0)]), np.ones(3) / 3).tolist() == [0, 2]


@given(st.integers(0, 5000), st.integers(1, 40), st.integers(1, 9), st.floats(0, 3))
def test_quotas_add_up_and_stay_next_to_their_share(jobs, applications, sizes, popularity):
    shares = zipf_shares(applications, popularity)
    quotas = class_quotas(jobs, shares, sizes)
    assert quotas.sum() == jobs
    assert (np.abs(quotas - np.repeat(jobs * shares / sizes, sizes)) < 1 + 1e-6).all()


@given(st.integers(0, 10_000))
def test_each_job_goes_to_the_nearest_class_with_free_quota(seed):
    rng = np.random.default_rng(seed)
    classes, counts, jobs = rng.integers(1, 12), rng.integers(1, 4), rng.integers(1, 60)
    predicted = rng.normal(size=(counts, classes))
    log_runtime, index = rng.normal(size=jobs), rng.integers(0, counts, jobs)
    quotas = class_quotas(int(jobs), zipf_shares(int(classes), 1.0), 1)
    assigned = assign_classes(log_runtime, index, predicted, quotas)
    free = quotas.copy()
    for job in range(jobs):
        distance = np.abs(predicted[index[job]] - log_runtime[job])
        distance[free == 0] = np.inf
        assert distance[assigned[job]] == distance.min()
        free[assigned[job]] -= 1
    assert (free == 0).all()


@pytest.mark.parametrize(
    ("k", "largest", "processors", "expected"),
    [
        (3, 64, 128, [1, 8, 64]),
        (3, 100, 128, [1, 8, 64]),
        (4, 100, 128, [1, 4, 16, 64]),
        (3, 2, 128, [1, 4, 8]),  # at least 8
        (3, 2, 4, [1, 2, 4]),  # at most the machine
        (1, 64, 128, [8]),
        (2, 64, 128, [1, 64]),
        (0, 64, 128, []),
        (5, 8, 128, [1, 2, 4, 5, 8]),  # four powers only: the nearest other count
        (3, 1, 1, [1]),
    ],
)
def test_calibration_counts(k, largest, processors, expected):
    feasible = np.arange(1, processors + 1)
    assert choose_counts(k, largest, processors, feasible).tolist() == expected


def test_calibration_takes_the_nearest_feasible_counts():
    assert choose_counts(3, 64, 128, np.array([1, 4, 9, 16, 25, 36, 49])).tolist() == [1, 9, 49]
    assert choose_counts(3, 3, 128, np.array([1, 2, 3])).tolist() == [1, 2, 3]
    with pytest.raises(WorkloadError, match=r"predictor\.calibration"):
        choose_counts(-1, 8, 8, np.array([1]))


@given(st.integers(2, 12), st.integers(1, 100_000))
def test_powers_reach_from_one_to_the_top(k, top):
    powers = spread_powers(k, top)
    assert powers[0] == 1
    assert top / 2 < powers[-1] <= top
    assert (np.diff(powers) >= 0).all()
