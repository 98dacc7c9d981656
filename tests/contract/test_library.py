"""Simulations from Python: the same bytes as the command, and its refusals."""

import hashlib
import importlib
import pickle
import pkgutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import predictors
import sim
import workloads
from predictors.in_loop.user_estimate import UserEstimate
from sim.library import simulations
from sim.library.call import literal, part
from sim.library.simulations import COMPARED
from sim.report.gathering import gather

pytestmark = pytest.mark.fast

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("workload.jobs=30", "picture=none")
TABLES = ("jobs", "allocations", "timeline", "predictions")


def frame(jobs=40, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "submit_time": np.sort(rng.uniform(0, 4000, jobs)),
            "runtime": rng.uniform(10, 900, jobs),
            "requested_processors": 2 ** rng.integers(0, 4, jobs),
            "requested_time": 3600.0,
            "user": rng.choice(["ann", "bob"], jobs),
            "application": rng.choice(["cfd", "md", "qcd"], jobs),
        }
    )


def checksums(folder):
    """Return what may not differ between two runs."""
    files = (path for path in folder.rglob("*") if path.suffix in (".json", ".parquet", ".png"))
    kept = [one for one in files if ".hydra" not in one.parts and one.name != "manifest.json"]
    return {
        one.relative_to(folder).as_posix(): hashlib.sha256(one.read_bytes()).hexdigest()
        for one in kept
    }


class HalfOfIt:
    """An allocation of somebody's own."""

    def choose(self, job, view, outlook):
        counts = view.counts(job)
        half = view.requested_processors[job] // 2
        return int(counts[counts <= max(half, counts[0])][-1])


class Guess(UserEstimate):
    """A predictor of somebody's own."""


def own_policy():
    return sim.Policy(sim.FirstComeFirstServed(), sim.Easy(), HalfOfIt())


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        ("policy=sa", "predictor=adept", "seed=3"),
        ("policy=easy", "replications=2", "baseline=fcfs"),
    ],
)
def test_a_call_writes_what_the_command_writes(command, tmp_path, asked):
    assert command(*SMALL, *asked, "hydra.run.dir=by_command").status == 0
    result = sim.run(*SMALL, *asked, folder=tmp_path / "by_call")
    assert checksums(tmp_path / "by_call") == checksums(tmp_path / "by_command") != {}
    assert result.folder == tmp_path / "by_call"
    described = [gather(tmp_path / name)[0] for name in ("by_call", "by_command")]
    pd.testing.assert_frame_equal(*described)


@pytest.mark.slow
def test_the_tables_are_those_of_the_files_and_nothing_is_written_unasked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = sim.run(*SMALL, policy="sa", seed=4)
    assert list(tmp_path.iterdir()) == []
    again = sim.run(*SMALL, policy="sa", seed=4, folder="out")
    assert again.summary == result.summary
    for name in TABLES:
        read = pd.read_parquet(tmp_path / "out" / f"{name}.parquet")
        pd.testing.assert_frame_equal(getattr(result, name), read, check_dtype=False)
    assert result.baseline.summary == again.baseline.summary
    assert result.baseline.names.policy == "easy"
    assert result.baseline_predictor.names.predictor == "adept"


def test_replications_are_results_and_their_tables_one():
    result = sim.run(*SMALL, policy="easy", predictor="user_estimate", replications=2)
    assert [len(one.jobs) for one in result.replications] == [30, 30]
    assert result.jobs["replication"].tolist() == [0] * 30 + [1] * 30
    mean = np.mean([one.summary["mean_wait_time"] for one in result.replications])
    assert result.summary["mean_wait_time"] == pytest.approx(mean)
    assert len(result.baseline.replications) == 2


def test_a_frame_runs_as_the_same_log_does(tmp_path):
    given = frame()
    lines = [
        f"{k} {row.submit_time:.0f} -1 {row.runtime:.0f} {row.requested_processors} -1 -1 "
        f"{row.requested_processors} 3600 -1 1 {row.user} -1 {row.application} -1 -1 -1 -1"
        for k, row in enumerate(
            given.assign(
                user=pd.factorize(given["user"])[0] + 1,
                application=pd.factorize(given["application"])[0] + 1,
            ).itertuples(),
            start=1,
        )
    ]
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 16\n" + "\n".join(lines) + "\n")
    whole = given.round({"submit_time": 0, "runtime": 0})
    settings = {"policy": "easy", "predictor": "user_estimate", "baseline": None}
    by_frame = sim.run(jobs=whole, processors=16, **settings)
    by_path = sim.run("workload.identity=executable", jobs=log, **settings)
    assert by_frame.jobs["user_name"].tolist() == given["user"].tolist()  # a log in SWF has none
    for name in TABLES:
        own = getattr(by_frame, name).drop(
            columns=["user_name", "application_name"], errors="ignore"
        )
        pd.testing.assert_frame_equal(own, getattr(by_path, name))
    assert by_frame.summary["given_applications"] == "recorded"
    assert by_frame.names.workload == "DataFrame"
    assert by_path.names.workload == "swf"


def test_times_of_a_frame_may_be_dates():
    given = frame()
    dated = given.assign(
        submit_time=pd.Timestamp("2024-05-01", tz="Europe/Berlin")
        + pd.to_timedelta(given["submit_time"], unit="s"),
        runtime=pd.to_timedelta(given["runtime"], unit="s"),
    )
    plain, other = (
        sim.run(jobs=one, processors=16, policy="easy", baseline=None) for one in (given, dated)
    )
    waits = [one.summary["mean_wait_time"] for one in (plain, other)]
    assert waits[0] == pytest.approx(waits[1], abs=1e-3)


@pytest.mark.slow
def test_objects_and_classes_stand_for_names(tmp_path):
    result = sim.run(
        jobs=frame(), processors=16, policy=own_policy(), predictor=Guess, folder=tmp_path / "own"
    )
    jobs = result.jobs
    expected = np.maximum(jobs["requested_processors"] // 2, 1)
    moldable = jobs["allocated_processors"] != jobs["requested_processors"]
    assert moldable.any()
    assert (jobs["allocated_processors"][moldable] <= expected[moldable]).all()
    assert (result.names.policy, result.names.predictor) == ("HalfOfIt", "Guess")
    table, *_ = gather(tmp_path / "own")
    own = table[table["role"] == "run"].iloc[0]
    assert own["status"] == "finished"
    dotted = sim.run(*SMALL, predictor="predictors.in_loop.user_estimate.UserEstimate")
    named = sim.run(*SMALL, predictor="user_estimate")
    assert dotted.jobs.equals(named.jobs)


def test_a_model_of_curves_learns_one_for_each_application():
    given = sim.run(*SMALL, policy="sa", predictor=predictors.Adept(q=np.inf), baseline=None)
    named = sim.run(*SMALL, policy="sa", predictor="adept", baseline=None)
    assert given.jobs.equals(named.jobs)
    assert given.names.predictor == "Adept"
    assert given.summary["given_runs"] == 0


@pytest.mark.parametrize(
    ("told", "runs"), [("charged", True), ("default", True), ("online", False)]
)
def test_an_estimator_gets_the_runs_that_given_says(told, runs):
    asked = {"policy": "easy", "baseline": None, "given": told}
    found = sim.run(*SMALL, predictor=predictors.Adept(q=np.inf), **asked)
    assert (found.summary["given_runs"] > 0) == runs
    assert found.jobs.equals(sim.run(*SMALL, predictor="adept", **asked).jobs)


def test_a_sweep_without_values_and_a_comparison_with_nothing_are_refused():
    for settings in ({"policy": []}, {"seed": []}):
        with pytest.raises(sim.ConfigError, match="needs at least one value"):
            sim.sweep(*SMALL, **settings)
    with pytest.raises(sim.SimError, match="other=3: must be a Result"):
        sim.run(*SMALL, policy="easy", baseline=None).compare(3)


def test_a_sweep_into_a_folder_that_cannot_be_made_is_refused():
    with pytest.raises(sim.ConfigError, match="folder='/dev/null/runs': cannot be made: Not a dir"):
        sim.sweep("workload.jobs=5", seed=[1, 2], folder="/dev/null/runs")


def test_a_path_that_no_file_has_is_refused():
    with pytest.raises(ValueError, match=r"^a\0b: cannot be read: embedded null byte$"):
        sim.run(jobs="a\0b")


def test_a_workload_object_is_replayed():
    given = workloads.Lublin(jobs=25, load=0.7)
    result = sim.run(jobs=given, policy="easy", baseline=None)
    named = sim.run("workload.jobs=25", "workload.load=0.7", policy="easy", baseline=None)
    assert result.jobs.equals(named.jobs)


@pytest.mark.slow
def test_a_sweep_is_a_row_a_run_and_goes_on_past_failures(tmp_path):
    table = sim.sweep("policy=easy,sa", *SMALL, seed=[1, 2], folder=tmp_path)
    assert table[["policy", "seed"]].to_numpy().tolist() == [
        ["easy", 1],
        ["easy", 2],
        ["sa", 1],
        ["sa", 2],
    ]
    alone = sim.run(*SMALL, policy="sa", seed=2, baseline=None)
    row = table.iloc[3]
    assert row["mean_response_time"] == alone.summary["mean_response_time"]
    gathered, keys, _ = gather(tmp_path)
    assert sorted(keys) == ["policy", "seed"]
    assert (gathered["status"] == "finished").all()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("summary.json")}
    again = sim.sweep("policy=easy,sa", *SMALL, seed=[1, 2], folder=tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("summary.json")} == before
    assert again["mean_response_time"].tolist() == table["mean_response_time"].tolist()
    with pytest.warns(sim.SweepWarning, match=r"2 of 4 runs failed, first .*: workload.load=-1"):
        mixed = sim.sweep(*SMALL, "workload.load=0.7,-1", policy=["easy", own_policy()])
    assert mixed["status"].tolist() == ["finished", "failed"] * 2
    assert mixed["policy"].tolist() == ["easy", "easy", "HalfOfIt", "HalfOfIt"]
    assert "workload.load" in mixed["message"][1]


@pytest.mark.parametrize(
    ("policy", "kept", "said"),
    [
        ("easy", False, "no run is kept without a folder; folder=PATH would keep finished ones"),
        ("easy", True, "repeat the same call to continue; finished runs in .*x are kept$"),
        (own_policy(), True, "finished runs in .*x are kept, but those of objects are done again"),
    ],
)
def test_an_interrupted_sweep_says_what_is_kept(monkeypatch, tmp_path, policy, kept, said):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(simulations, "_row", interrupted)
    with pytest.raises(KeyboardInterrupt, match=said):
        sim.sweep(*SMALL, policy=policy, seed=[1, 2], folder=tmp_path / "x" if kept else None)


def test_a_sweep_of_which_all_runs_fail_raises():
    with pytest.raises(sim.SimError, match=r"2 of 2 runs failed, first seed=1.*: must be"):
        sim.sweep(*SMALL, "workload.load=-1", seed=[1, 2])


def test_a_rule_of_ones_own_names_its_runs():
    class Widest:
        """Takes what a job asks for."""

    parts = (sim.FirstComeFirstServed(), sim.Easy())
    assert part("policy", sim.Policy(*parts, Widest())).name == "Widest"
    assert part("policy", sim.Policy(*parts, sim.Request())).name == "Policy"
    assert part("policy", sim.Policy(*parts, Widest(), name="mine")).name == "mine"


def test_changes_of_a_sweep_are_those_of_the_comparison(tmp_path):
    asked = {"seed": list(range(1, 9)), "baseline": "easy", "folder": tmp_path}
    table = sim.sweep("policy=sa_easy", *SMALL, **asked)
    found = sim.changes(table, ["mean_response_time", "utilization"])
    assert list(found.columns) == COMPARED
    assert found["group"].tolist() == ["sa_easy", "sa_easy"]
    assert found["against"].tolist() == ["easy (baseline)"] * 2
    assert found.notna().all().all()
    assert (found["low"] <= found["change"]).all()
    told = sim.changes(tmp_path).set_index("group").loc["sa_easy, adept"]
    figures = ["change", "low", "high", "pairs", "text"]
    assert found.iloc[0][figures].tolist() == told[figures].tolist()
    with pytest.raises(sim.SimError, match="metrics=nothing: no run has such a figure"):
        sim.changes(table, "nothing")
    with pytest.raises(sim.SimError, match=r"must be what sim\.sweep returned"):
        sim.changes(pd.DataFrame({"a": [1]}))
    with pytest.raises(sim.SimError, match="means of 2 replications, which are one pair"):
        sim.changes(table.assign(replications=2))


@pytest.mark.slow
def test_changes_of_replications_are_those_of_their_folder(tmp_path):
    asked = {"replications": 8, "predictor": ["user_estimate", "oracle"]}
    table = sim.sweep("policy=sa_easy,efficiency", *SMALL, **asked)
    written = sim.sweep("policy=sa_easy,efficiency", *SMALL, **asked, folder=tmp_path / "runs")
    table.to_parquet(tmp_path / "table.parquet")
    read, found = pd.read_parquet(tmp_path / "table.parquet"), []
    for runs in (table, written, tmp_path / "runs", read, table[table["replications"] == 8].copy()):
        one = sim.changes(runs, ["mean_response_time", "utilization"], "policy=sa_easy")
        found.append(one.sort_values(["group", "metric"], ignore_index=True))
    assert found[0]["pairs"].tolist() == [8] * 4
    assert all(found[0].equals(one) for one in found[1:])


@pytest.mark.slow
def test_baselines_of_a_sweep_are_played_if_asked_for():
    table = sim.sweep("policy=sa,efficiency", *SMALL, baseline="easy")
    assert table["baseline_mean_response_time"].nunique() == 1
    assert "baseline_jobs" not in sim.sweep("policy=sa", *SMALL).columns


@pytest.mark.slow
def test_paired_differences_of_two_results():
    asked = {"predictor": "oracle", "replications": 8, "baseline": None}
    a, b = (sim.run(*SMALL, policy=name, **asked) for name in ("sa", "easy"))
    found = a.compare(b).loc["mean_response_time"]
    times = [[one.summary["mean_response_time"] for one in each.replications] for each in (a, b)]
    mean = np.mean(np.log(np.divide(*times)))
    assert found["change"] == pytest.approx(np.exp(mean) - 1)
    assert found["change_low"] < found["change"] < found["change_high"]
    assert found["pairs"] == 8
    assert found["set"].endswith("figures")
    alone = a.compare(b, figures=["mean_response_time"]).loc["mean_response_time"]
    assert found["change_low"] < alone["change_low"]
    single = a.replications[0].compare(b.replications[0]).loc["mean_wait_time"]
    assert np.isnan(single["change_low"])
    assert single["pairs"] == 1
    other = sim.run(*SMALL, policy="sa", seed=9, baseline=None)
    with pytest.raises(sim.SimError, match="not of the same jobs"):
        other.compare(a.replications[0])


@pytest.mark.slow
def test_a_result_shows_itself_and_draws_itself():
    result = sim.run(*SMALL, policy="sa")
    assert "mean response" in str(result)
    assert "<span" in result._repr_html_()
    assert "easy" in result._repr_html_()
    assert repr(result).startswith("Result(policy='sa', predictor='adept', jobs=30")
    assert len(result.plot().axes) > 1
    assert result.plot("waits")._repr_png_().startswith(b"\x89PNG")  # as a notebook shows it
    assert result.plot("load", title=False).get_suptitle() == ""
    with pytest.raises(sim.SimError, match="KIND pie: must be one of"):
        result.plot("pie")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "settings", "message"),
    [
        (["polcy=sa"], {}, "polcy=sa: there is no such key; did you mean policy?"),
        ([], {"polcy": "sa"}, "polcy=sa: there is no such key; did you mean policy?"),
        ([], {"policy": "esy"}, "policy=esy: there is no such option; did you mean easy?"),
        ([], {"seed": "one"}, "seed=one: "),
        ([], {"seed": {1}}, "seed={1}: must be a number, text"),
        ([], {"replications": 0}, "replications=0: must be a whole number, at least 1"),
        ([], {"baseline": "nobody"}, "baseline=nobody: must be one of"),
        ([], {"processors": 0}, "cluster.processors=0: must be a whole number"),
        ([], {"policy": HalfOfIt()}, "policy=HalfOfIt: needs begin; it lacks begin"),
        ([], {"predictor": "os.getcwd"}, "predictor._target_=os.getcwd: must be a class with"),
        ([], {"predictor": "nowhere.Guess"}, "there is no such class; its package must be"),
        ([], {"jobs": 3}, "jobs=3: must be a DataFrame, a path or a workload"),
        ([], {"predictor": 3}, "predictor=int: needs attach, curve, explain, observe, learns"),
        ([3], {}, "3: must be an override such as 'policy=easy'"),
        (["hydra.run.dir=x"], {}, "hydra.run.dir=x: is for the command; folder= says where"),
        (["policy.error_quantile=0.5"], {"policy": own_policy()}, "has no effect, as policy is"),
        (["policy=null"], {}, "policy=null: must be the name of an option"),
        ([], {"given": 3}, "given=3: must be the name of an option"),
        ([], {"jobs": [frame(), frame()]}, "must be a DataFrame, a path or a workload"),
        ([], {"folder": "/dev/null/run"}, "folder='/dev/null/run': cannot be made: Not a dir"),
        ([], {"folder": 5}, "folder=5: cannot be made"),
        (["workload=swf"], {"jobs": frame()}, "jobs= says already where jobs come from"),
    ],
)
def test_what_is_wrong_is_refused_in_the_words_of_the_command(asked, settings, message):
    with pytest.raises(sim.ConfigError) as error:
        sim.run(*asked, **settings)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"runtime": None}, "the DataFrame has no column runtime"),
        ({"runtime": 1j}, "jobs: row 0, column runtime"),
        ({"runtime": "long"}, "jobs: row 0, column runtime: 'long' is not a number"),
        ({"runtime": 10**400}, "jobs: row 0, column runtime: '1000000"),
        ({"submit_time": np.inf}, "jobs: row 0, column submit_time: 'inf' is not a number"),
        ({"requested_processors": 0}, "none of 40 jobs can run"),
        ({"user": [[1]] * 40}, "jobs: column user: its values must be names or numbers"),
    ],
)
def test_a_frame_that_is_no_log_is_refused(changed, message):
    given = frame().assign(**changed).dropna(axis="columns")
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        sim.run(jobs=given, processors=16, policy="easy")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5"),
        ("easy", "easy"),
        ("it's", "'it\\'s'"),
        ("True", "'True'"),
        ([1, None], "[1,null]"),
    ],
)
def test_values_are_spelt_as_overrides(value, text):
    assert literal(value) == text


def mean_wait(seed):
    return sim.run(*SMALL, policy="easy", seed=seed, baseline=None)


@pytest.mark.slow
def test_threads_and_processes_give_what_one_after_the_other_gives():
    expected = [mean_wait(seed).summary for seed in (1, 2, 3)]
    with ThreadPoolExecutor(3) as pool:
        assert [one.summary for one in pool.map(mean_wait, (1, 2, 3))] == expected
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert [one.summary for one in pool.map(mean_wait, (1,))] == expected[:1]
    kept = pickle.loads(pickle.dumps(mean_wait(1)))
    assert kept.jobs.equals(mean_wait(1).jobs)


@pytest.mark.slow
def test_public_names_are_what_they_are_after_every_module_is_imported():
    """Modules must not take the place of functions: ``sim.run`` stays callable."""
    code = (
        "import importlib, inspect, pkgutil, sim, predictors, workloads\n"
        "for package in (sim, predictors, workloads):\n"
        "    for one in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        if not one.name.endswith('__main__'): importlib.import_module(one.name)\n"
        "for package in (sim, predictors, workloads):\n"
        "    for name in package.__all__:\n"
        "        assert callable(getattr(package, name)), name\n"
        "        assert inspect.getdoc(getattr(package, name)), name\n"
        "    assert set(package.__all__) <= set(dir(package))\n"
        "result = sim.run('workload.jobs=5', policy='easy', baseline=None)\n"
        "assert len(sim.sweep('workload.jobs=5', policy='easy')) == 1\n"
    )
    subprocess.run([sys.executable, "-W", "error::SyntaxWarning", "-c", code], cwd=ROOT, check=True)


@pytest.mark.parametrize("package", [sim, predictors, workloads])
def test_unknown_names_are_no_attributes(package):
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing
    assert importlib.import_module(package.__name__) is package
    assert pkgutil.resolve_name(f"{package.__name__}:{package.__all__[0]}")


@pytest.mark.slow
def test_a_result_in_a_folder_is_made_again_for_pictures_that_need_it(tmp_path):
    small = ("workload.jobs=40", "policy=sa", "predictor=oracle", "baseline=null")
    kept = sim.run(*small, folder=tmp_path / "run")
    application = int(kept.jobs["application"].mode()[0])
    (axes,) = kept.plot("speedups", of=[application]).axes
    true, believed, _ = axes.lines
    assert true.get_ydata() == pytest.approx(believed.get_ydata())
    with pytest.raises(sim.SimError, match="needs the run's folder"):
        sim.run(*small).plot("speedups")
