"""Jobs of a model belong to users, by whose last runtimes a predictor learns."""

import numpy as np
import pandas as pd
import pytest

import sim
import sim.simulation.scene as scene
from sim.sweeps.configurations import OWN_PREDICTOR, Configuration, shared_names
from workloads.__main__ import main
from workloads.logs.swf import read_swf
from workloads.models.lublin import Lublin
from workloads.shapes.analytic import Downey
from workloads.streams import Streams
from workloads.truth.build import GROUPS, build_truth, with_users

pytestmark = pytest.mark.fast
SEEDS = (1, 2, 3)


def default_jobs(seed, jobs=5000):
    streams = Streams(seed)
    trace = Lublin(jobs=jobs).trace(streams, 256)
    application = build_truth(trace, Downey(), streams, 256).application
    return trace, application, with_users(trace, application, streams)


def errors(who, jobs):
    """Return |predicted - runtime| / runtime by the mean of the last two runtimes of each."""
    runs = jobs["reference_runtime"]
    last = runs.groupby(who).transform(lambda own: own.rolling(2).mean().shift())
    predicted = np.minimum(last, jobs["requested_time"])
    return ((predicted - runs).abs() / runs).dropna()


@pytest.mark.parametrize("seed", SEEDS)
def test_users_are_as_in_logs_and_nothing_else_of_the_jobs_changes(seed):
    trace, application, owned = default_jobs(seed)
    drawn = ["user", "executable"]
    assert owned.jobs.drop(columns=drawn).equals(trace.jobs.drop(columns=drawn))
    assert (owned.jobs["executable"] == application + 1).all()
    group = pd.Series(owned.models["group"])
    assert set(group) == set(range(1, GROUPS + 1))
    assert group.groupby(application).nunique().max() == 1  # whose applications are nobody else's
    assert group.groupby(owned.jobs["user"]).nunique().max() == 1
    shares = owned.jobs["user"].value_counts(normalize=True)
    assert len(shares) == 100
    assert 0.45 <= shares.iloc[:10].sum() <= 0.59  # as on SDSC-SP2, LLNL-Atlas and NASA-iPSC


@pytest.mark.parametrize("seed", SEEDS)
def test_the_last_two_runtimes_tell_more_by_user_than_over_all(seed):
    trace, application, owned = default_jobs(seed)
    by_user = errors(owned.jobs["user"], owned.jobs).median()
    by_application = errors(application, trace.jobs).median()
    over_all = errors(np.zeros(len(application)), trace.jobs).median()
    assert by_user < 0.8 * min(by_application, over_all)
    assert 0.27 <= by_user <= 0.56  # as on these logs


def test_only_figures_of_users_change_where_no_predictor_reads_users(monkeypatch):
    asked = {"policy": "sa_easy", "predictor": "adept", "baseline": None}
    run = sim.run("workload.jobs=300", **asked)
    monkeypatch.setattr(scene, "with_users", lambda trace, application, streams: trace)
    former = sim.run("workload.jobs=300", **asked)
    assert run.jobs.drop(columns="user").equals(former.jobs.drop(columns="user"))
    assert (former.jobs["user"] == -1).all()
    assert run.jobs["user"].min() > 0
    changed = {name for name in run.summary if run.summary[name] != former.summary[name]}
    assert changed == {"users", "jain_users"}


def test_easy_plus_learns_by_user_on_the_default_model(monkeypatch):
    asked = {"policy": "easy", "predictor": "last_two", "baseline": None}
    run = sim.run("workload.jobs=1000", **asked).summary
    monkeypatch.setattr(scene, "with_users", lambda trace, application, streams: trace)
    former = sim.run("workload.jobs=1000", **asked).summary
    assert run["prediction_median_error"] < 0.85 * former["prediction_median_error"]
    assert run["share_own_predictions"] > 0.8


def test_generated_logs_have_the_users_and_applications_of_a_run(tmp_path):
    file = tmp_path / "a.swf"
    assert main(["generate", "lublin", str(file), "--jobs", "300"]) == 0
    log = read_swf(file).jobs
    jobs = sim.run("workload.jobs=300", policy="easy", baseline=None).jobs
    assert log["user"].tolist() == jobs["user"].tolist()
    assert np.allclose(np.diff(log["submit_time"]), np.diff(jobs["submit_time"]), atol=1)
    assert log["executable"].tolist() == (jobs["application"] + 1).tolist()
    assert log.groupby("user")["group"].nunique().max() == 1


def test_a_policy_that_asks_a_predictor_of_its_own_is_named_with_it():
    assert sim.run("workload.jobs=20", policy="easy_plus").names.predictor == "last_two"
    runs = [
        Configuration(choices={"policy": "easy", "predictor": "adept"}),
        Configuration(choices={"policy": "easy_plus", "predictor": "adept", OWN_PREDICTOR: "x"}),
    ]
    assert shared_names(runs[:1], ["policy"]) == {"predictor": "adept"}
    assert shared_names(runs, ["policy"]) == {}
