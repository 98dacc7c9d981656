"""Complexities of single applications."""

import numpy as np
import pytest

from predictors.base import Observation, VisibleJobs
from predictors.errors import PredictorError
from predictors.in_loop.learned_rational import RationalPerApplication, measured_load

pytestmark = pytest.mark.fast


def taught(**settings):
    """Teach two applications whose time grows with the square of the size; ask for size 40."""
    predictor = RationalPerApplication(min_counts=1, **settings)
    application, size = np.array([0, 1]), np.array([40.0, 40.0])
    none = np.full(2, -1)
    predictor.attach(VisibleJobs(application, none, size, none, none + 5, np.full(2, np.nan)))
    for number in (0, 1):
        for seen in (5.0, 10.0, 15.0, 20.0):
            for cpu in (0.5, 0.8, 1.0):
                load = {"available_cpu": cpu, "available_bandwidth": 1.0}
                seconds = seen**2 / cpu
                predictor.observe(Observation(number, -1, seen, 1, seconds, 0.0, 0, load))
    return [float(predictor.curve(job, np.array([1]))[0]) for job in (0, 1)]


def test_an_application_of_its_own_complexity_is_predicted_by_it():
    usual, own = taught(applications={1: {"computation": ["n^2"]}})
    assert own == pytest.approx(1600.0)
    assert usual < 900.0  # a line through the squares


def test_parts_that_are_not_given_stay_the_usual_ones():
    both = taught(computation=["n^2"], applications={1: {"init": [1]}})
    assert both == pytest.approx([1600.0, 1600.0])


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"one": {"init": [1]}}, "whole numbers from 0 on, got 'one'"),
        ({-1: {"init": [1]}}, "whole numbers from 0 on, got -1"),
        ({2: {"network": [1]}}, "applications, 2: must give complexities for some of init"),
        ({2: {}}, "applications, 2: must give"),
        ({2: [1]}, "applications, 2: must give"),
        ({2: {"init": ["sin n"]}}, "sin n"),
    ],
)
def test_what_is_no_complexity_of_an_application_is_refused(wrong, named):
    with pytest.raises(PredictorError, match=named):
        RationalPerApplication(applications=wrong)


def test_each_figure_of_load_reads_its_own_measurement():
    more = {"effective_cpu": 0.2, "available_cpu": 0.5, "available_cpu_at_start": 0.4}
    found = [measured_load(more, form)[0] for form in ("effective", "min_avg_avail", "min_avail")]
    assert found == [0.2, 0.5, 0.4]
    assert measured_load({"available_bandwidth": 0.3}, "effective") == (1.0, 0.3)
