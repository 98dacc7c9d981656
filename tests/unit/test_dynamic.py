"""Beliefs about running adaptive jobs in the loop."""

import numpy as np
import pytest
from toys import ToyEstimate

from predictors.errors import PredictorError
from predictors.in_loop.dynamic import Dynamic

pytestmark = pytest.mark.fast


def test_before_the_start_the_other_predictor_answers():
    dynamic = Dynamic(ToyEstimate())
    assert dynamic.curve(0, np.array([1, 2])) is None
    assert dynamic.explain(0, 4).method == "user_estimate"
    assert dynamic.learns is False


def test_progress_follows_a_run():
    dynamic = Dynamic(ToyEstimate())
    assert dynamic.progress(0, 0, 8, [10.0, 10.0], [2.0, 2.0], left=98) is None
    remaining = dynamic.progress(0, 0, 8, [10.0], [2.0], left=97)
    assert remaining.seconds == pytest.approx(194.0)
    assert dynamic.progress(0, 0, 8, [], [], left=97) == remaining
    assert dynamic.believed_seconds(remaining) == remaining.seconds
    cautious = Dynamic(ToyEstimate(), believe="high")
    assert cautious.believed_seconds(remaining) == remaining.high > remaining.seconds


def test_cycles_done_twice_count_as_left_says():
    dynamic = Dynamic(ToyEstimate())
    dynamic.progress(0, 0, 8, np.full(50, 10.0), np.full(50, 2.0), left=50)
    remaining = dynamic.progress(0, 0, 8, np.full(10, 10.0), np.full(10, 2.0), left=60)
    assert remaining.seconds == pytest.approx(120.0)


@pytest.mark.parametrize("changed", [(0, 1, 8), (0, 0, 16)])
def test_a_new_run_or_count_begins_afresh(changed):
    dynamic = Dynamic(ToyEstimate())
    dynamic.progress(0, 0, 8, np.full(50, 10.0), np.full(50, 2.0), left=50)
    assert dynamic.progress(*changed, [10.0], [9.0], left=50) is None


def test_forgotten_jobs_begin_afresh_and_others_stay():
    dynamic = Dynamic(ToyEstimate())
    for job in (0, 1):
        dynamic.progress(job, 0, 8, np.full(5, 10.0), np.full(5, 2.0), left=5)
    dynamic.forget(0)
    assert dynamic.progress(0, 0, 8, [10.0], [2.0], left=4) is None
    assert dynamic.progress(1, 0, 8, [10.0], [2.0], left=4).seconds == pytest.approx(8.0)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"believe": "low"}, "believe must be one of median, high"),
        ({"level": 1.0}, "level must be between"),
        ({"window": 0}, "window must be at least 1"),
        ({"min_cycles": 0}, "min_cycles must be at least 1"),
    ],
)
def test_bad_values_are_named(options, named):
    with pytest.raises(PredictorError, match=named):
        Dynamic(ToyEstimate(), **options)
