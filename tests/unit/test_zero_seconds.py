"""Jobs of zero seconds: they start and end at one instant and teach nobody."""

import json

import numpy as np
import pandas as pd
import pytest

from sim.simulation.scene import play, set_scene
from sim.warm import configuration
from workloads.base import Trace, check_jobs

pytestmark = pytest.mark.fast


def trace_of(rows):
    jobs = pd.DataFrame(rows, columns=["submit_time", "requested_processors", "reference_runtime"])
    more = {"job_id": np.arange(len(jobs)), "requested_time": 60.0, "user": 1, "executable": 1,
            "preceding_job": -1, "think_time": -1.0}  # fmt: skip
    return Trace(check_jobs(jobs.assign(**more), "toy"), 4, "toy")


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "sa"])
@pytest.mark.parametrize("check", ["false", "true"])
def test_they_start_and_end_at_one_instant(policy, check):
    """Two on the whole machine, behind one another; the second starts as the first ends."""
    rows = [(0.0, 4, 10.0), (1.0, 4, 0.0), (2.0, 4, 0.0), (3.0, 4, 5.0)]
    config = configuration(
        [f"policy={policy}", "predictor=adept", "given=online", f"sim.check={check}",
         "moldability.share=1", "workload.applications=1"]
    )  # fmt: skip
    scene = set_scene(config, 0, trace_of(rows))
    rigid = np.flatnonzero(~scene.truth.moldable).tolist()
    assert rigid == [1, 2]
    played = play(config, config, scene)
    jobs = played.outcome.tables.jobs
    zero = jobs[jobs["reference_runtime"] == 0]
    assert (zero["end_time"] == zero["start_time"]).all()
    assert zero["efficiency"].isna().all()
    predictions = played.outcome.tables.predictions.set_index("job_id")
    assert predictions.loc[[1, 2], "actual"].isna().all()
    assert predictions["observations"].max() <= 1
    if policy != "sa":
        assert jobs["start_time"].tolist() == [0.0, 10.0, 10.0, 10.0]


def test_figures_of_a_log_with_them(tmp_path, monkeypatch):
    from sim.results.metrics import summarise

    rows = [(0.0, 4, 10.0), (1.0, 4, 0.0), (2.0, 1, 5.0)]
    config = configuration(["policy=easy", "predictor=oracle", "workload.applications=1"])
    played = play(config, config, set_scene(config, 0, trace_of(rows)))
    summary = summarise(played.outcome)
    assert summary["jobs"] == 3
    assert summary["mean_slowdown"] == pytest.approx((1 + (8 + 5) / 5) / 2)
    assert summary["prediction_mape"] == 0.0
    assert "NaN" not in json.dumps(summary)
