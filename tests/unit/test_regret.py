"""Regret adds up, falls on the right jobs, and its causes are found by mending errors."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from toys import ToyEstimate

from predictors.base import Observation, VisibleJobs, setting
from predictors.errors import NotFittedError, PredictorError
from predictors.in_loop.oracle import CLASSES, NoisyOracle, PartialOracle
from sim.errors import StatisticsError
from sim.report.answers import regret_by, regret_of_jobs, winners

pytestmark = pytest.mark.fast


def jobs(waits, runs, counts, believed=None, first=1):
    return pd.DataFrame(
        {
            "job_id": np.arange(first, first + len(waits)),
            "wait_time": waits,
            "response_time": np.add(waits, runs),
            "requested_processors": [4, 4, 64, 64],
            "reference_runtime": [60.0, 7200.0, 60.0, 7200.0],
            "allocated_processors": counts,
            "believed_runtime": runs if believed is None else believed,
            "runtime": runs,
        }
    )


ORACLE = jobs([0.0, 0.0, 10.0, 10.0], [10.0, 20.0, 30.0, 40.0], [4, 4, 8, 8])
OWN = jobs([0.0, 40.0, 10.0, 0.0], [10.0, 10.0, 60.0, 40.0], [4, 8, 2, 8], [10.0, 20.0, 30.0, 60.0])


def test_regret_adds_up_to_the_difference_of_mean_responses():
    regret = regret_of_jobs(OWN.iloc[::-1], ORACLE)
    whole = OWN["response_time"].mean() - ORACLE["response_time"].mean()
    for key in ("class", "count"):
        table = regret_by([regret], key)
        assert table["regret"].sum() == pytest.approx(whole) == 12.5
        np.testing.assert_allclose(table["waiting"] + table["running"], table["regret"])


def test_users_that_lose_are_counted_by_simulation_where_each_draws_its_own():
    pairs = [
        (table.assign(user=users), ORACLE)
        for table, users in ((OWN, [1, 1, 2, 2]), (ORACLE, [1, 2, 3, 4]), (OWN, [1, 2, 3, 4]))
    ]
    who = winners("sa", "easy", pairs, anew=True)
    assert who.losing == (2, 0, 2)
    assert "; in each simulation 0 to 2 users do (simulations: 3 of 3)." in who.sentence()
    assert "in each simulation" not in replace(who, steady=False).sentence()
    alike = winners("sa", "easy", pairs)
    assert "in each simulation" not in alike.sentence()
    assert "so do 3 of 4 users in the mean, most in total user 2" in alike.sentence()
    assert "names no users" not in alike.sentence() + winners("sa", "easy", pairs[1:2]).sentence()
    unnamed = winners("sa", "easy", [(OWN.assign(user=-1), ORACLE)])
    assert unnamed.sentence().endswith("(simulations: 1 of 1). The log names no users.")


def test_regret_names_jobs_and_counts():
    regret = regret_of_jobs(OWN, ORACLE)
    assert regret["class"].tolist() == list(CLASSES)
    by_count = regret_by([regret], "count")
    assert by_count.index.tolist() == ["2-4", "5-8"]  # dearest first
    assert by_count.loc["2-4", "running"] == 7.5
    by_class = regret_by([regret], "class")
    assert by_class.loc["narrow_long", ["waiting", "running"]].tolist() == [10.0, -2.5]
    assert by_class.loc["wide_long", "median_error"] == 0.5


def test_calibration_jobs_do_not_count_and_other_jobs_are_refused():
    charged = pd.concat([OWN.assign(job_id=-OWN["job_id"]), OWN])
    pd.testing.assert_frame_equal(regret_of_jobs(charged, ORACLE), regret_of_jobs(OWN, ORACLE))
    with pytest.raises(StatisticsError, match="same jobs"):
        regret_of_jobs(OWN, ORACLE.assign(job_id=[5, 6, 7, 8]))
    with pytest.raises(StatisticsError, match="oracle: column runtime is missing"):
        regret_of_jobs(OWN, ORACLE.drop(columns="runtime"))


def visible(requested):
    number = len(requested)
    return VisibleJobs(
        *[np.zeros(number, np.int64)] * 2, np.ones(number), np.zeros(number, np.int64),
        np.array(requested), np.ones(number),
    )  # fmt: skip


def repaired(**options):
    mended = PartialOracle(NoisyOracle(bias=2.0, spread=0.0), **options)
    mended.bind_truth(lambda job, counts: (job + 1) * 4000.0 / counts, key=1)
    mended.attach(visible([2, 1, 16]))
    return mended


COUNTS = np.array([1, 4, 16])


@pytest.mark.parametrize(
    ("options", "factors"),
    [
        ({}, [1, 1, 1]),
        ({"invert": True}, [2, 2, 2]),
        ({"counts": [4, 8]}, [2, 1, 2]),
        ({"counts": [4, 8], "invert": True}, [1, 2, 1]),
        ({"classes": ["narrow_short"]}, [1, 1, 1]),
        ({"classes": ["wide_short"]}, [2, 2, 2]),
        ({"classes": ["narrow_short"], "narrow": 1}, [2, 2, 2]),
    ],
)
def test_beliefs_are_true_where_mended_and_nowhere_else(options, factors):
    found = repaired(**options).curve(0, COUNTS)
    np.testing.assert_allclose(found, np.array(factors) * 4000.0 / COUNTS)


def test_classes_go_by_request_and_true_runtime_there():
    mended = repaired(classes=["narrow_long"])
    true = [(mended.curve(job, COUNTS) == (job + 1) * 4000.0 / COUNTS).all() for job in range(3)]
    assert true == [False, True, False]  # 2000 s, 8000 s, and 16 processors
    assert mended.explain(1, 4).method == "oracle"
    assert mended.explain(0, 4).method == "noisy_oracle"


class Silent(ToyEstimate):
    learns = True
    calibration = 5

    def observe(self, observation):
        return observation.runtime > 1


def test_the_wrapped_predictor_learns_as_it_would_alone():
    mended = PartialOracle(Silent(), counts=[4, 8])
    assert (mended.learns, setting(mended, "calibration", 0)) == (True, 5)
    with pytest.raises(NotFittedError, match="before bind_truth"):
        mended.curve(0, COUNTS)
    mended.bind_truth(lambda job, counts: 1.0 / counts, key=1)
    mended.attach(visible([1]))
    assert mended.curve(0, COUNTS) is None  # it has nothing, so the request stands
    assert mended.curve(0, np.array([4])).tolist() == [0.25]
    assert mended.observe(Observation(0, -1, 1.0, 1, 2.0, 0.0))
    assert not mended.observe(Observation(0, -1, 1.0, 1, 0.5, 0.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": ["huge"]}, "classes=huge: must be one of narrow_short"),
        ({"counts": [4]}, r"counts=\[4\]: must be the least and the largest"),
        ({"counts": [8, 4]}, r"counts=\[8, 4\]"),
    ],
)
def test_unknown_groups_are_refused(options, message):
    with pytest.raises(PredictorError, match=message):
        PartialOracle(ToyEstimate(), **options)
