import numpy as np
import pandas as pd
import pytest

from workloads.arrivals import resample, window_of

pytestmark = pytest.mark.fast

WEEK = 604800.0


def test_every_window_comes_once_and_none_depends_on_how_many_follow():
    for windows in (1, 2, 5, 8, 37):
        order = [window_of(k, windows) for k in range(windows)]
        assert sorted(order) == list(range(windows))
        assert order[0] == 0
        assert window_of(windows, windows) is None
    assert [window_of(k, 8) for k in range(8)] == [0, 4, 2, 6, 1, 5, 3, 7]


def jobs_at(submit, **more):
    ids = np.arange(1, len(submit) + 1)
    table = {"job_id": ids, "submit_time": np.asarray(submit, float), "preceding_job": -1}
    return pd.DataFrame(table | more)


def test_weeks_drawn_again_keep_their_jobs_instants_and_order():
    rng = np.random.default_rng(3)
    submit = 1e9 + np.sort(rng.uniform(0, 5.4 * WEEK, 300))
    submit[0] = 1e9
    drawn, period = resample(jobs_at(submit, mark=np.arange(300)), 400, rng)
    assert period == "weeks"
    assert len(drawn) == 400
    assert drawn["job_id"].tolist() == list(range(1, 401))
    assert (np.diff(drawn["submit_time"]) >= 0).all()
    since = drawn["submit_time"] - 1e9
    original = submit[drawn["mark"]] - 1e9
    assert np.allclose(since % WEEK, original % WEEK, atol=1e-5)
    copies = pd.DataFrame({"week": since // WEEK, "of": original // WEEK}).drop_duplicates()
    assert copies["week"].is_unique
    assert copies["of"].duplicated().any()  # with replacement
    assert original.max() < 5 * WEEK  # the last, which is no whole week, is left out


def test_predecessors_are_followed_within_a_week_alone():
    submit = np.concatenate([np.arange(3) * 100.0 + week * WEEK for week in range(4)])
    before = np.tile([-1, 1, 2], 4) + np.repeat(np.arange(4) * 3, 3) * np.tile([0, 1, 1], 4)
    before[3] = 3  # the first of the second week follows a job of the first
    drawn, _ = resample(jobs_at(submit, preceding_job=before), 12, np.random.default_rng(1))
    place = np.arange(12)
    expected = np.where(place % 3 == 0, -1, place)
    assert drawn["preceding_job"].tolist() == expected.tolist()


def test_short_logs_draw_days_or_hours_and_the_shortest_come_as_they_are():
    rng = np.random.default_rng(1)
    for span, period in ((3 * 86400, "days"), (9000, "hours"), (3600, None)):
        jobs = jobs_at(np.linspace(0, span, 50))
        drawn, found = resample(jobs, 50, rng)
        assert found == period
        assert drawn.equals(jobs) == (period is None)
