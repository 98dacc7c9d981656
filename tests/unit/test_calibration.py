"""Calibration runs: their counts, free or charged."""

import numpy as np
import pandas as pd
import pytest
from toys import ToyEstimate, rigid

from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.simulation.scene import charge, plan_calibration
from tests.former import build_truth
from workloads.models.lublin import Lublin
from workloads.shapes.analytic import Downey
from workloads.streams import Streams

pytestmark = pytest.mark.fast

MACHINE = 64


@pytest.fixture(scope="module")
def scene():
    streams = Streams(4)
    trace = Lublin(jobs=200).trace(streams, MACHINE)
    return trace, build_truth(trace, Downey(), streams, MACHINE, applications=5), streams


def test_every_application_gets_its_runs_spread_over_counts(scene) -> None:
    _, truth, streams = scene
    plan = plan_calibration(truth, 3, MACHINE, streams)
    runs = pd.DataFrame(plan)
    assert (runs.groupby("application")["nprocs"].nunique() == 3).all()
    assert set(runs["application"]) == set(truth.application.tolist())
    assert (runs["size_class"] == -1).all()
    for run in plan:
        job = int(np.flatnonzero(truth.application == run.application)[0])
        one, many = truth.runtimes(job, np.array([1, run.nprocs]))
        lone = next(
            r for r in plan if r.application == run.application and r.nprocs == plan[0].nprocs
        )
        assert run.runtime > 0
        assert lone.runtime / run.runtime == pytest.approx(
            truth.runtimes(job, np.array([lone.nprocs]))[0] / many, rel=0.2
        )
        assert one >= many
    assert plan_calibration(truth, 0, MACHINE, streams) == []
    assert plan == plan_calibration(truth, 3, MACHINE, Streams(4))


def test_free_runs_are_known_from_the_start(scene) -> None:
    _, truth, streams = scene
    plan = plan_calibration(truth, 3, MACHINE, streams)
    known = plan_calibration(truth, 3, MACHINE, streams, 5.0)
    assert [(k.nprocs, k.runtime, k.time, k.job) for k in known] == [
        (run.nprocs, run.runtime, 5.0, -1) for run in plan
    ]


def test_charged_runs_are_jobs_ahead_of_all_others(scene) -> None:
    trace, truth, streams = scene
    plan = plan_calibration(truth, 3, MACHINE, streams)
    charged, known = charge(trace, truth, plan)
    number = len(plan)
    assert charged.jobs["job_id"].tolist()[:number] == list(range(-1, -number - 1, -1))
    assert charged.jobs.dtypes.equals(trace.jobs.dtypes)
    records = simulate(Setup(charged, known, rigid("easy"), ToyEstimate(), Dedicated(MACHINE)))
    first = trace.jobs["submit_time"][0]
    assert (records.submit_time[:number] == first).all()
    runtime = records.end_time - records.run_start
    np.testing.assert_allclose(runtime[:number], [run.runtime for run in plan])
    assert records.allocated[:number].tolist() == [run.nprocs for run in plan]
    np.testing.assert_allclose(runtime[number:], trace.jobs["reference_runtime"], rtol=1e-9)
    jobs = np.array([0, number, number + 7])
    counts = np.array([plan[0].nprocs, 4, 8])
    np.testing.assert_array_equal(
        known.runtimes_at(jobs, counts),
        [plan[0].runtime, *truth.runtimes_at(np.array([0, 7]), counts[1:])],
    )
