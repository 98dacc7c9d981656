"""Learning one curve per application from finished runs."""

import numpy as np
import pytest

from predictors.adept.model import Adept
from predictors.base import Explanation, Observation, VisibleJobs
from predictors.curves.laws import Amdahl, UniversalScalability
from predictors.errors import PredictorError
from predictors.in_loop.learned import CurvePerApplication

pytestmark = pytest.mark.fast


class CountedFits(Amdahl):
    fits = 0

    def fit_arrays(self, nprocs, runtime):
        CountedFits.fits += 1
        return super().fit_arrays(nprocs, runtime)


def visible(application, size=None, size_class=None) -> VisibleJobs:
    number = len(application)
    return VisibleJobs(
        application=np.array(application),
        size_class=np.array(size_class if size_class is not None else [-1] * number),
        size=np.array(size if size is not None else [np.nan] * number, float),
        user=np.zeros(number, np.int64),
        requested_processors=np.full(number, 4),
        requested_time=np.full(number, 100.0),
    )


def seen(application, nprocs, runtime, size=np.nan, size_class=-1) -> Observation:
    return Observation(application, size_class, size, nprocs, runtime, 0.0)


def test_runs_that_are_nothing_alike_say_nothing_of_the_next_one():
    """At one count ln runtime spreads by 2.3; a job of that application has no curve again."""
    predictor = CurvePerApplication(Amdahl(), "amdahl", min_counts=2)
    predictor.attach(visible([0, 1]))
    for application, spread in ((0, 0.05), (1, 2.3)):
        for nprocs in (1, 2, 4):
            predictor.observe(seen(application, nprocs, 100 / nprocs))
        assert predictor.curve(application, np.array([4])) is not None
        for sign in (1, -1, 1, -1, 1, -1):
            predictor.observe(seen(application, 2, 50 * np.exp(sign * spread)))
    assert predictor.curve(0, np.array([4])) is not None
    assert predictor.curve(1, np.array([4])) is None
    assert predictor.explain(1, 4).method == "requested_time"
    with pytest.raises(PredictorError, match="scatter must be positive, got 0"):
        CurvePerApplication(Amdahl(), "amdahl", scatter=0.0)


def test_a_job_that_asks_for_far_longer_than_the_runs_took_is_not_taken_for_one_of_them():
    """One that the runs put at 22 s asked for hours, was molded from 32 to 1, and took two days."""
    predictor = CurvePerApplication(Amdahl(), "amdahl", min_counts=2)
    jobs = visible([0, 0, 0], size=[np.nan, np.nan, 1.0])
    jobs.requested_time[:] = 100.0, 10_000.0, 10_000.0
    predictor.attach(jobs)
    for size in (np.nan, 1.0):
        for nprocs in (1, 2, 4):
            predictor.observe(seen(0, nprocs, 100 / nprocs, size))
    graded = [(said.reliability, said.code) for said in (predictor.explain(j, 4) for j in range(3))]
    assert graded[1] == ("unusable", "unlike")
    assert graded[0] == graded[2] != graded[1]  # a known size tells what the request cannot
    assert predictor.curve(1, np.array([4])) is not None  # queues are still planned with it


@pytest.fixture
def learned() -> CurvePerApplication:
    CountedFits.fits = 0
    return CurvePerApplication(CountedFits(), "amdahl", min_counts=2)


def test_known_sizes_pool_all_runs_of_an_application(learned) -> None:
    learned.attach(visible([0, 1], size=[10.0, 10.0]))
    assert not learned.observe(seen(0, 1, 40.0, size=4.0))  # nothing to predict from yet
    assert learned.curve(0, np.array([1])) is None
    assert learned.observe(seen(0, 10, 3.8, size=2.0))  # 10 = s + p, 1.9 = s + p / 10
    np.testing.assert_allclose(learned.curve(0, np.array([1, 10, 2])), [100, 19, 55])
    assert learned.curve(1, np.array([1])) is None


def test_hidden_sizes_keep_classes_apart(learned) -> None:
    learned.attach(visible([0, 0], size_class=[0, 1]))
    for nprocs, runtime in ((1, 10.0), (10, 1.9)):
        learned.observe(seen(0, nprocs, runtime, size_class=0))
    assert learned.curve(1, np.array([1])) is None
    np.testing.assert_allclose(learned.curve(0, np.array([1, 10])), [10, 1.9])


def test_refits_only_for_a_new_count_or_a_mean_that_moved(learned) -> None:
    learned.attach(visible([0]))
    counts = np.array([1, 4])
    for nprocs, runtime in ((1, 100.0), (4, 40.0)):
        learned.observe(seen(0, nprocs, runtime))
    learned.curve(0, counts)
    assert CountedFits.fits == 1
    assert not learned.observe(seen(0, 4, 40.8))  # mean 40.4: moved by 1 %
    learned.curve(0, counts)
    assert CountedFits.fits == 1
    assert learned.observe(seen(0, 4, 44.0))  # mean 41.6: moved by 4 %
    assert CountedFits.fits == 1  # not before somebody asks
    np.testing.assert_allclose(learned.curve(0, counts), [100, 124.8 / 3], rtol=1e-3)
    assert CountedFits.fits == 2
    assert learned.observe(seen(0, 8, 30.0))
    learned.curve(0, counts)
    assert CountedFits.fits == 3


def test_runs_correct_the_standing_fit_at_and_between_their_counts(learned) -> None:
    """No application of Amdahl's bends so: 25 s on 4, where the fit to all runs says more."""
    learned.attach(visible([0]))
    counts = np.array([1, 2, 4, 8, 16, 32])
    for nprocs, runtime in ((1, 100.0), (4, 25.0), (16, 30.0)):
        learned.observe(seen(0, nprocs, runtime))
    plain = Amdahl().fit_arrays([1, 4, 16], [100.0, 25.0, 30.0]).predict_model(counts)
    full = np.log(np.array([100.0, np.nan, 25.0, np.nan, 30.0, np.nan]) / plain)
    shares = []
    for runs in (1, 2, 4, 8):
        found = np.log(learned.curve(0, counts) / plain)
        shares.append(found[2] / full[2])
        assert found[2] / full[2] > runs / (runs + 2)
        assert found[4] / full[4] > 1 / 3
        np.testing.assert_allclose(found[1], (found[0] + found[2]) / 2, rtol=1e-9)
        np.testing.assert_allclose(found[3], (found[2] + found[4]) / 2, rtol=1e-9)
        for _ in range(runs):
            assert not learned.observe(seen(0, 4, 25.0))  # no new fit: its mean stands
    assert (np.diff(shares) > 0).all()
    beyond = learned.curve(0, counts)[[2, 4, 5]]  # rising, so that nobody expects a fall
    assert beyond[0] < beyond[1] < beyond[2]
    assert CountedFits.fits == 1


@pytest.mark.parametrize("model", [Adept(q=np.inf), Amdahl(), UniversalScalability()])
def test_a_declining_end_is_believed_as_measured_and_named(model) -> None:
    """Two rising counts at the end were dropped once and extrapolated over: 4.8 s on 32."""
    learned = CurvePerApplication(model, "curve")
    learned.attach(visible([0]))
    runs = {1: 100.0, 2: 52.0, 4: 28.0, 8: 14.0, 16: 8.0, 24: 8.6, 32: 9.4}
    for noise in (0.97, 1.0, 1.03):
        for nprocs, runtime in runs.items():
            learned.observe(seen(0, nprocs, noise * runtime))
    counts = np.array([*runs])
    np.testing.assert_allclose(learned.curve(0, counts), [*runs.values()], rtol=0.08)
    beyond = learned.curve(0, np.array([16, 28, 48, 64]))
    assert (beyond[1:] > beyond[0]).all()
    said = learned.explain(0, 28)
    assert (said.reliability, said.code) == ("unusable", "declining")
    assert learned.explain(0, 32).reliability == "warning"


def test_says_where_a_belief_comes_from(learned) -> None:
    learned.attach(visible([0]))
    assert learned.explain(0, 4) == Explanation("requested_time", 0, "")
    for nprocs, runtime in ((1, 100.0), (4, 40.0)):
        learned.observe(seen(0, nprocs, runtime))
    method, observations, grade, code, runs, mean = learned.explain(0, 64)
    assert (method, observations, grade, code) == ("amdahl", 2, "warning", "few_points")
    assert runs == 0
    assert np.isnan(mean)


def test_says_what_the_runs_at_a_count_took_at_the_size_of_the_job(learned) -> None:
    learned.attach(visible([0], size=[10.0]))
    for nprocs, runtime, size in ((1, 100.0, 10.0), (4, 8.0, 2.0), (4, 36.0, 8.0)):
        learned.observe(seen(0, nprocs, runtime, size=size))
    said = learned.explain(0, 4)
    assert said.runs_at_count == 2
    assert said.mean_at_count == pytest.approx(10 * np.sqrt(4.0 * 4.5))


def test_attach_forgets(learned) -> None:
    for _ in range(2):
        learned.attach(visible([0]))
        assert learned.curve(0, np.array([4])) is None
        for nprocs, runtime in ((1, 100.0), (4, 40.0)):
            learned.observe(seen(0, nprocs, runtime))


@pytest.mark.parametrize("bad", [{"calibration": -1}, {"min_counts": 0}, {"tolerance": -0.1}])
def test_refuses(bad: dict) -> None:
    name, value = next(iter(bad.items()))
    with pytest.raises(ValueError, match=f"{name} must be at least .*, got {value}"):
        CurvePerApplication(Amdahl(), "amdahl", **bad)
