"""What the pages of results say of presets, at toy size: the signs, not the sizes."""

import numpy as np
import pytest

from benchmarks.results.others import correlation
from scripts.composing import composed
from sim.results.metrics import summarise
from sim.simulation.scene import play, set_scene
from tests.former import WORLD

FORMERLY = WORLD[1:]
"""The world that the pages were made in, at the load that a preset says."""


def played(preset, *overrides, replication=0):
    """Return the outcome of a preset with some values."""
    config = composed(f"experiment={preset}", *FORMERLY, *overrides)
    return play(config, config, set_scene(config, replication)).outcome


def figures(preset, *overrides, replication=0):
    return summarise(played(preset, *overrides, replication=replication))


def response(*asked, replication=0):
    return figures(*asked, replication=replication)["mean_response_time"]


def ratios(preset, policies, load, jobs, replications=5):
    """Return geometric means of mean responses over the first policy's, on the same jobs."""
    toy = [f"workload.jobs={jobs}", f"workload.load={load}", "workload.types=all"]  # as published
    found = np.array(
        [
            [response(preset, f"policy={policy}", *toy, replication=k) for policy in policies]
            for k in range(replications)
        ]
    )
    return np.exp(np.log(found[:, 1:] / found[:, :1]).mean(axis=0)).tolist()


@pytest.mark.parametrize("load", ["0.8", "0.95"])
def test_iterative_before_fair_share_before_sa_on_one_menu(load):
    fair, iterative = ratios("whole_queue", ["sa", "fair_share", "iterative"], load, 500)
    assert fair < 0.95
    assert iterative < 0.95 * fair


def test_sa_beats_fixed_sizes():
    assert max(ratios("molding_by_load", ["easy", "sa"], "0.8", 300)) < 0.7


def test_calibration_is_charged_and_gives_curves_from_the_start():
    toy = ("workload.jobs=120", "workload.applications=4", "workload.load=0.8", "policy=sa",
           "predictor.charge=true")  # fmt: skip
    free, charged = (figures("calibration", *toy, f"predictor.calibration={k}") for k in (0, 3))
    assert charged["calibration_area"] > free["calibration_area"] == 0
    assert charged["share_fitted_starts"] > free["share_fitted_starts"]


BURSTS = ("cluster/cpu=bursty", "cluster.cpu.loaded=[1800,43200]", "cluster.cpu.free=[15756,47268]")


def test_naming_fast_processors_shortens_the_typical_job():
    toy = ("workload.jobs=40", "workload.applications=4", "predictor=oracle", *BURSTS)
    logs = []
    for seed in (1, 2, 3):
        easy, fastest = (
            played("shared_load", *toy, f"policy={policy}", f"cluster.belief={belief}",
                   "cluster.network.at_once=[0,3]", f"seed={seed}").tables.jobs
            for policy, belief in (("easy", "mean"), ("easy_fastest", "oracle"))
        )  # fmt: skip
        assert fastest["believed_runtime"].to_numpy() == pytest.approx(fastest["runtime"])
        logs.append(np.log(fastest["response_time"] / easy["response_time"]).mean())
    assert np.mean(logs) < 0


def test_a_job_that_stops_in_time_loses_less_than_one_that_is_killed():
    lost = {}
    for stop in ("true", "false"):
        asked = ("workload.jobs=40", f"evolving.stop_in_time={stop}")
        runs = [played("walltime", *asked, f"seed={seed}").tables.jobs for seed in (1, 2)]
        parts = ["lost_work", "checkpoint_overhead", "restart_overhead"]
        lost[stop] = sum(float(jobs[parts].to_numpy().sum()) for jobs in runs)
    assert lost["true"] < 0.5 * lost["false"]


def test_jobs_that_outgrow_their_memory_end_sooner_where_they_get_more_processors():
    few = ("workload.jobs=40", "workload.load=0.1")  # so few that hardly one waits for another
    refused, granted = (
        figures("more_processors", *few, f"policy/grants={grants}") for grants in ("none", "defer")
    )
    assert refused["requests_granted"] == 0
    assert granted["requests_granted"] > 0.5 * granted["requests"]
    assert granted["mean_response_time"] < 0.8 * refused["mean_response_time"]


def test_jobs_that_get_a_longer_limit_stop_less_often():
    silent, asking = (
        figures("longer_limits", "workload.jobs=40", *asked)
        for asked in (["evolving.asks.walltime=false"], ["policy/grants=defer"])
    )
    assert asking["restarts"] < silent["restarts"]
    assert asking["requests_granted"] > 0.5 * asking["requests"]


def test_queue_times_predicted_from_ages_correlate_with_actual_ones():
    assert np.mean([correlation("lublin", "0.6", 500, k, *FORMERLY) for k in (0, 1)]) > 0.3
