import numpy as np
import pytest

from predictors.observations import observed_curve

pytestmark = pytest.mark.fast


def test_outliers_among_three_or_more_are_dropped_and_the_rest_averaged():
    curve = observed_curve([8, 4, 4, 4, 4], [30, 50, 51, 49, 500])
    assert curve.nprocs.tolist() == [4, 8]
    assert curve.runtime.tolist() == [50, 30]
    assert curve.repeats.tolist() == [3, 1]
    assert curve.dropped == ((4, 500),)
    assert curve.scatter == pytest.approx(np.sqrt(2 * 0.02**2 / 2))
    assert curve.scatter_degrees_of_freedom == 2


def test_two_runs_are_averaged_however_far_apart():
    curve = observed_curve([4, 4], [10, 30])
    assert (curve.runtime.tolist(), curve.dropped) == ([20], ())


def test_equal_runs_with_one_that_differs_by_rounding_stay():
    curve = observed_curve([4, 4, 4], [10, 10, 10 * (1 + 1e-12)])
    assert curve.repeats.tolist() == [3]


@pytest.mark.parametrize("bad", [([1, 2], [1]), ([[1, 2]], [[3, 4]])])
def test_shapes_must_agree(bad):
    with pytest.raises(ValueError, match="a runtime for each processor count"):
        observed_curve(*bad)
