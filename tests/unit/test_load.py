import numpy as np
import pandas as pd
import pytest

from workloads.arrivals import offered_load, scale_load
from workloads.errors import WorkloadError

pytestmark = pytest.mark.fast


def table(submit, sizes=(2, 3, 1), runtimes=(10.0, 20.0, 30.0)):
    return pd.DataFrame(
        {"submit_time": submit, "requested_processors": sizes, "reference_runtime": runtimes}
    )


def test_offered_load_is_area_over_processors_times_span_of_submits():
    assert offered_load(table([100.0, 150.0, 300.0]), 4) == (20 + 60 + 30) / (4 * 200)


@pytest.mark.parametrize("target", [0.1, 0.8, 1.5])
def test_scaling_is_exact_and_keeps_the_first_submit_and_the_proportions(target):
    jobs = table([100.0, 150.0, 300.0])
    scaled = scale_load(jobs, 4, target)
    assert offered_load(scaled, 4) == pytest.approx(target, rel=1e-14)
    submit = scaled["submit_time"].to_numpy()
    assert submit[0] == 100.0
    assert (submit[1] - submit[0]) / (submit[2] - submit[0]) == pytest.approx(0.25)
    assert jobs["submit_time"].tolist() == [100.0, 150.0, 300.0]
    assert scaled.drop(columns="submit_time").equals(jobs.drop(columns="submit_time"))


def test_jobs_of_one_instant_cannot_be_scaled_but_one_job_needs_none():
    with pytest.raises(WorkloadError, match=r"workload.load=0.5: 3 jobs submitted at one instant"):
        scale_load(table([7.0, 7.0, 7.0]), 4, 0.5)
    assert scale_load(table([7.0], [1], [5.0]), 4, 0.5)["submit_time"].tolist() == [7.0]


@pytest.mark.parametrize("target", [0.0, -1.0, np.inf, np.nan])
def test_impossible_loads_are_refused(target):
    with pytest.raises(WorkloadError, match=r"workload.load=.*must be positive and finite"):
        scale_load(table([0.0, 1.0, 2.0]), 4, target)
