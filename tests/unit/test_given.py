"""What predictors were given: nothing for nothing, said with every figure, and as it was before."""

from collections.abc import Mapping

import numpy as np
import pytest
from swf_samples import job_line, write_log

from predictors.in_loop.learned import CurvePerApplication
from predictors.in_loop.oracle import NeedsTruth
from scripts.composing import composed
from sim.config import CONFIG_FOLDER, GIVEN
from sim.results.metrics import summarise
from sim.results.sentences import given_line
from sim.simulation.replay import given_figures
from sim.simulation.scene import Played, charge, plan_calibration, play, set_scene
from tests.former import WORLD

TOY = ("workload.jobs=40", "workload.applications=4", "cluster.processors=64", *WORLD)
LEARNED = sorted(
    path.stem
    for path in (CONFIG_FOLDER / "predictor").glob("*.yaml")
    if "\ncharge:" in path.read_text(encoding="utf-8")
)

MIXED = "requested times recorded in some simulations, modelled or filled in others"


@pytest.fixture
def log(tmp_path):
    """Return the overrides that replay a log of 12 jobs with recorded requested times."""
    lines = [
        job_line(job_number=k, submit_time=60 * k, executable=k % 3, run_time=50 + k)
        for k in range(1, 13)
    ]
    return ["workload=swf", f"workload.path={write_log(tmp_path, '; MaxProcs: 64', *lines)}"]


def played(*overrides: str) -> tuple[Played, Mapping]:
    config = composed(*overrides)
    scene = set_scene(config, 0)
    run = play(config, config, scene)
    return run, given_figures(config, scene, run)


@pytest.mark.parametrize("name", LEARNED)
def test_no_learned_preset_gives_runs_away(name):
    predictor = composed(f"predictor={name}", "given=default")["predictor"]
    assert predictor["charge"] is True
    assert predictor.get("before", predictor)["calibration"] is None


def test_of_a_log_without_work_no_share_is_given(tmp_path):
    lines = [job_line(job_number=k, run_time=0) for k in range(1, 5)]
    asked = "workload=swf", f"workload.path={write_log(tmp_path, '; MaxProcs: 4', *lines)}"
    given = played(*asked, "workload.cleaning.zero_runtime=keep", "policy=easy")[1]
    assert given["given_work_share"] == 0.0


@pytest.mark.parametrize("name", LEARNED)
def test_by_default_nothing_learned_runs_before_the_start(name):
    predictor = composed(f"predictor={name}")["predictor"]
    assert predictor.get("before", predictor)["calibration"] == 0


def test_runs_before_the_start_are_three_on_models_and_charged():
    run, given = played(*TOY, "given=default")
    assert given["given_runs"] == 12
    assert given["given_charged"] is True
    assert run.known == []
    rows = run.outcome.tables.jobs
    charged = rows[rows["job_id"] < 0]
    assert len(charged) == 12
    own = rows[rows["job_id"] >= 0]
    work = (own["requested_processors"] * own["reference_runtime"]).sum()
    assert given["given_work_share"] == pytest.approx(charged["held_area"].sum() / work)


def test_there_are_none_on_a_log(log):
    run, given = played(*log)
    assert (given["given_runs"], given["given_work_share"]) == (0, 0.0)
    assert given["given_charged"] is None
    assert (run.outcome.tables.jobs["job_id"] > 0).all()


def test_what_is_asked_for_stands_on_models_and_on_logs(log, tmp_path):
    assert played(*TOY, "predictor.calibration=0")[1]["given_runs"] == 0
    asked = ("workload.identity=executable", "predictor.calibration=2")
    given = played(*log, *asked, "predictor.charge=false")[1]
    assert (given["given_runs"], given["given_charged"]) == (6, False)
    assert (given["given_applications"], given["given_identity"]) == ("recorded", "executable")
    assert given["given_sizes"] == "class"
    line = given_line(given | {"applications": 3, "sizes_per_application": 0})
    assert "3 recorded applications (by executable)" in line
    for user, identity in ((7, "user_request"), (-1, "request")):
        lines = [job_line(job_number=k, user=user) for k in range(1, 5)]
        path = write_log(tmp_path, "; MaxProcs: 4", *lines)
        of_user = played("workload=swf", f"workload.path={path}", "workload.identity=user_request")
        assert of_user[1]["given_identity"] == identity
        words = identity.replace("_", " and ")
        assert f"recorded applications (by {words}) among" in given_line(of_user[1])
    none = given_line(given | {"given_requested_times": "modelled"})
    assert none.endswith("requested times modelled, as none is recorded")
    assert "requested times as the only hint of input sizes" in line
    assert given["given_work_share"] > 0


@pytest.mark.parametrize(
    ("overrides", "key", "value"),
    [
        ((), "given_sizes", "known"),
        ((), "given_size_noise", 0.1),
        (("workload.size=hidden",), "given_sizes", "hidden"),
        (("workload.size=hidden", "workload.sizes=2"), "given_sizes", "class"),
        ((), "given_applications", "invented"),
        ((), "given_curves", "invented"),
        ((), "given_requests", "independent"),
        (("moldability.requests=efficiency",), "given_requests", "efficiency"),
        (("moldability=none",), "given_requests", None),
        (("moldability=none",), "given_curves", "none"),
        ((), "given_requested_times", "tsafrir"),
        (("workload.estimates=exact",), "given_requested_times", "exact"),
        ((), "given_truth", False),
        (("predictor=noisy_oracle",), "given_truth", True),
        (("predictor=oracle",), "given_runs", 0),
    ],
)
def test_the_summary_says_what_was_known(overrides, key, value):
    assert played(*TOY, *overrides)[1][key] == value


def test_filled_requested_times_are_said(tmp_path):
    lines = [job_line(job_number=k, submit_time=k, requested_time=-1) for k in (1, 2)]
    path = f"workload.path={write_log(tmp_path, *lines)}"
    filled = ("workload=swf", path, "workload.cleaning.missing_requested_time=repair")
    assert played(*filled)[1]["given_requested_times"] == "exact"
    path = f"workload.path={write_log(tmp_path, *lines, job_line(job_number=3, submit_time=3))}"
    filled = ("workload=swf", path, "workload.cleaning.missing_requested_time=repair")
    assert played(*filled)[1]["given_requested_times"] == "recorded and exact"


def test_the_line_names_the_truth_and_says_nothing_of_old_summaries():
    assert given_line({"jobs": 3}) is None
    said = given_line(
        {"given_truth": True, "given_runs": 0, "given_sizes": "hidden", "given_curves": "measured",
         "given_applications": "recorded", "given_requested_times": "recorded and exact"}
    )  # fmt: skip
    assert said == (
        "the true runtimes; no runs before the start; no job's size; recorded applications "
        "among the simulated jobs; "
        "measured curves; recorded requested times, missing ones filled with the true runtime"
    )


# Charged runs


@pytest.fixture(scope="module")
def charged():
    config = composed(*TOY)
    scene = set_scene(config, 0)
    plan = plan_calibration(scene.truth, 3, 64, scene.streams)
    return scene, plan, charge(scene.trace, scene.truth, plan)[1]


def test_a_truth_with_charged_runs_tells_all_that_it_told_without(charged):
    scene, plan, truth = charged
    assert truth.shared_shape
    counts = np.array([1, 3, 8])
    for job in (0, 17):
        for count in counts.tolist():
            own = scene.truth.runtime_on(job, count)
            assert truth.runtime_on(len(plan) + job, count) == own
        charged_share, share = (
            each.communication_shares(np.full(3, own), counts)
            for each, own in ((truth, len(plan) + job), (scene.truth, job))
        )
        np.testing.assert_array_equal(charged_share, share)


def test_a_charged_run_splits_like_a_job_of_its_application(charged):
    scene, plan, truth = charged
    for k, run in enumerate(plan):
        job = int(np.flatnonzero(scene.truth.application == run.application)[0])
        count = np.array([run.nprocs])
        like = scene.truth.communication_shares(np.array([job]), count)
        assert truth.runtime_on(k, run.nprocs) == run.runtime
        np.testing.assert_array_equal(truth.communication_shares(np.array([k]), count), like)


def test_bounds_and_regressions_stay_what_they_were_when_runs_are_charged():
    bounds = "bound_mean_response_time"
    free, paid = (summarise(played(*TOY, f"given={how}")[0].outcome) for how in ("free", "charged"))
    assert paid[bounds] == pytest.approx(free[bounds])


def test_mended_beliefs_are_those_of_the_job_itself_when_runs_are_charged():
    run, given = played(*TOY, "predictor=repaired", "policy=easy", "given=charged")
    assert given["given_charged"] is True
    said = run.outcome.tables.predictions
    said = said[said["job_id"] >= 0]
    assert len(said) == 40
    np.testing.assert_allclose(said["predicted"], said["actual"])


@pytest.mark.parametrize("name", LEARNED)
@pytest.mark.parametrize("given", GIVEN)
def test_given_reaches_every_learned_predictor(name, given):
    predictor = composed(f"predictor={name}", f"given={given}")["predictor"]
    runs, paid = GIVEN[given]
    assert predictor["charge"] is paid
    assert predictor.get("before", predictor)["calibration"] == runs


@pytest.mark.parametrize("name", ["user_estimate", "oracle", "noisy_oracle_10", "dynamic"])
def test_given_leaves_other_predictors_alone(name):
    plain = composed(f"predictor={name}")["predictor"]
    assert composed(f"predictor={name}", "given=free")["predictor"] == plain


def test_constructors_charge_too():
    predictor = CurvePerApplication(model=None, method="x")
    assert (predictor.calibration, predictor.charge) == (None, True)
    assert not isinstance(predictor, NeedsTruth)


def test_the_default_is_what_a_site_can_have_on_day_one():
    found = composed()
    assert (found["predictor"]["calibration"], found["predictor"]["charge"]) == (0, True)
    assert composed("predictor.calibration=2")["predictor"]["calibration"] == 2
    assert composed("policy=sa_easy")["policy"] == found["policy"]
    assert (found["policy"]["allocation"]["margin"], found["policy"]["backfill"]["anew"]) == (
        0.1,
        1,
    )
    world = {key: found["workload"][key] for key in ("load", "widest", "time_limit", "at_limit")}
    assert world == {"load": 0.7, "widest": 0.7, "time_limit": 64800.0, "at_limit": 0.1}


def test_the_line_says_how_jobs_ask_and_that_requested_times_are_of_several_kinds():
    figures = {"given_runs": 0, "given_curves": "invented", "given_requests": "efficiency",
               "given_requested_times": None}  # fmt: skip
    said = given_line(figures)
    assert said.endswith(f"curves, requests that know them; {MIXED}")
    apart = given_line(figures | {"given_requests": "independent"})
    assert "requests independent of them (moldability.requests=independent)" in apart


@pytest.mark.parametrize(
    ("group", "name", "preset"),
    [
        ("allocation", "efficiency", "efficiency"),
        ("allocation", "request", "easy"),
        ("backfill", "conservative", "sa"),
    ],
)
def test_parts_of_the_default_policy_are_swapped_by_name(group, name, preset):
    swapped = composed(f"policy/{group}={name}")["policy"]
    assert swapped[group] == composed(f"policy={preset}")["policy"][group]


def test_a_summary_without_requested_times_claims_no_model_of_them():
    known = {"given_runs": 0, "given_requested_times": None}
    assert given_line(known).endswith(MIXED)
    del known["given_requested_times"]
    assert given_line(known).endswith("requested times of which the summary says nothing")
