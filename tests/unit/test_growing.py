"""A larger machine, and the sizes that keep the jobs' times on it, prepared before a run."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.growth_study import main, sized
from sim.machine.base import Dedicated
from sim.simulation.scene import Scene
from tests.former import build_truth
from workloads import read_swf
from workloads.base import Trace
from workloads.shapes.analytic import Downey, PowerLaw
from workloads.streams import Streams

pytestmark = pytest.mark.fast

PROCESSORS = 64
EXACT = {"noise": 0.0, "size_noise": 0.0}
STEEP = PowerLaw(exponent_min=0.95, exponent_max=0.95)


def scene_of(family, jobs=60, applications=2, **options):
    """Return a scene of a job a day, each on 1 to 64 processors for a minute to a day."""
    rng = np.random.default_rng(5)
    runtime = np.exp(rng.uniform(np.log(60), np.log(86400), jobs))
    table = pd.DataFrame(
        {
            "job_id": np.arange(jobs),
            "submit_time": 86400.0 * np.arange(jobs),
            "requested_processors": 2 ** rng.integers(0, 7, jobs),
            "reference_runtime": runtime,
            "requested_time": runtime,
            "executable": -1,
        }
    )
    trace = Trace(table, PROCESSORS, "toy")
    truth = build_truth(
        trace, family, Streams(1), PROCESSORS, applications=applications, **(EXACT | options)
    )
    return Scene(trace, truth, Dedicated(PROCESSORS), Streams(1))


@pytest.mark.parametrize("factor", [2, 4])
def test_sizes_on_a_power_law_keep_the_time_exactly(factor):
    # T = w / n^p, so on f times the processors the size that keeps T is f^p times as large.
    before = scene_of(STEEP)
    trace, sizes = sized(before, factor)
    assert (sizes["outcome"][15:] == "grew").all()
    assert sizes["outcome"][0] == "no fit"
    grew = sizes["outcome"] == "grew"
    old = before.trace.jobs["requested_processors"]
    assert trace.processors == PROCESSORS * factor
    assert (trace.jobs["requested_processors"] == np.where(grew, factor * old, old)).all()
    assert (trace.jobs["reference_runtime"] == sizes["runtime"]).all()
    grown = sizes[grew]
    ratios = grown["grown_size"] / grown["size"], grown["runtime"] / grown["wanted_time"]
    assert ratios[0].tolist() == pytest.approx([factor**0.95] * len(grown), rel=1e-6)
    assert ratios[1].tolist() == pytest.approx([1.0] * len(grown), rel=1e-6)
    weak = grown["weak_runtime"] / grown["wanted_time"]
    assert weak.tolist() == pytest.approx([factor**0.05] * len(grown), rel=1e-6)


def test_sizes_rest_on_the_runs_that_had_ended():
    whole = scene_of(Downey(sigma_max=1.0))
    later = whole.trace.jobs.assign(
        reference_runtime=whole.trace.jobs["reference_runtime"].where(np.arange(60) < 40, 1.0)
    )
    changed = replace(whole, trace=replace(whole.trace, jobs=later))
    first, second = (sized(scene, 2)[1][:40] for scene in (whole, changed))
    assert first["grown_size"].tolist() == second["grown_size"].tolist()
    assert (first["outcome"] == "grew").any()


def test_jobs_that_do_not_grow_stay_as_they_were():
    family = replace(STEEP, counts=["powers_of_two", "squares"])
    before = scene_of(family, applications=4)
    trace, sizes = sized(before, 2)
    stayed = sizes["outcome"] == "infeasible"  # twice a square is none
    assert 0 < stayed.sum() < 60
    for column in ("requested_processors", "reference_runtime"):
        assert (trace.jobs[column][stayed] == before.trace.jobs[column][stayed]).all()
    assert (sizes["grown_size"] == sizes["size"])[stayed].all()


def test_nobody_grows_where_runs_are_too_few():
    few = sized(scene_of(Downey(), jobs=3, applications=3), 2)[1]
    assert set(few["outcome"]) == {"no fit"}


def test_grown_runs_have_noise_of_their_own_and_repeat():
    sizes, again = (sized(scene_of(STEEP, noise=0.1), 2)[1] for _ in range(2))
    grown = sizes[sizes["outcome"] == "grew"]
    assert np.std(np.log(grown["weak_runtime"] / grown["runtime"])) > 0.0
    assert sizes.equals(again)


def test_the_prepared_workload_is_written_and_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["growth_study", str(tmp_path / "x"), "workload.jobs=40"])
    main()
    sizes = pd.read_csv(tmp_path / "x/sizes.csv")
    log = read_swf(tmp_path / "x/sized.swf")
    assert log.jobs["allocated_processors"].tolist() == sizes["grown_processors"].tolist()
    jobs = pd.read_parquet(tmp_path / "x/run/jobs.parquet")
    assert jobs["runtime"].tolist() == pytest.approx(sizes["runtime"].tolist())
    assert "on 512 processors" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--factor", "1"], "--factor 1: must be at least 2"),
        (["workload.size=hidden"], "needs workload.size=known"),
        (["moldability=none"], "a moldability other than none"),
    ],
)
def test_refuses_what_cannot_be_solved(more, said, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["growth_study", str(tmp_path / "x"), "workload.jobs=9", *more])
    with pytest.raises(SystemExit):
        main()
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
