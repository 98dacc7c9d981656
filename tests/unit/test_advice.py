"""How predicted curves are read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from moldable_toys import truth_of
from toys import rigid

from predictors.base import Explanation
from sim.engine.engine import Engine
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.advice import Advice, JobCurve, raised, tried
from sim.policies.allocation.local import RATIO, Fair, LocalAllocation
from sim.policies.allocation.sa import SmallestTurnaround
from sim.state.view import FeasibleCounts, place_up_to


class Fitted:
    """A predictor that claims to learn, with one curve for all jobs."""

    learns = True
    grade = ""
    code = ""

    def __init__(self, curve):
        self._curve = curve

    def attach(self, jobs):
        pass

    def curve(self, job, counts):
        return np.array([self._curve(n) for n in counts.tolist()], float)

    def observe(self, observation):
        return False

    def explain(self, job, nprocs):
        return Explanation("fitted", 3, self.grade, self.code)


def view_of(curve, learns=True, seen=(1, 2, 4)):
    """A view of one job that asks for 3 of 16 processors."""
    trace, truth = truth_of([(0, 3, 10)], [curve], 16)
    predictor = Fitted(curve)
    predictor.learns = learns
    engine = Engine(Setup(trace, truth, rigid("easy"), predictor, Dedicated(16)))
    engine.shown.arrive([0])
    view = engine.view
    for count in seen:
        view._beliefs.note(0, count)
    return view, predictor


def bent(n):
    """Superlinear up to 2, slower again from 6 on."""
    return {1: 20.0, 2: 8.0}.get(n, 24 / n if n <= 6 else 4.0 + n - 6)


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=12), st.integers(1, 3), st.floats(1, 9))
def test_a_raised_curve_is_monotone_in_time_and_area(times, first, more):
    counts = np.arange(first, first + len(times))
    serial = times[0] if first == 1 else more * times[0]
    reading = raised(JobCurve(counts, np.array(times), serial))
    assert (np.diff(reading.runtimes) <= 1e-12 * reading.runtimes[:-1]).all()
    assert (np.diff(counts * reading.runtimes) >= -1e-9 * reading.runtimes[:-1]).all()
    assert (reading.runtimes <= serial * (1 + 1e-12)).all()
    assert (counts * reading.runtimes >= serial * (1 - 1e-12)).all()
    assert np.allclose(raised(reading).runtimes, reading.runtimes, rtol=1e-12)


@given(st.lists(st.floats(0.1, 100), min_size=16, max_size=16))
def test_repair_lowers_times_and_raises_none(times):
    view, _ = view_of(lambda n: times[n - 1], learns=False, seen=())
    reading = Advice(repair="always").read(0, view, view.counts(0))
    last = (
        int(np.flatnonzero(np.array(times) <= min(times) * (1 + 1e-9))[0]) + 1
    )  # of equals the first
    assert reading.counts.tolist() == list(range(1, last + 1))
    assert reading.runtimes.tolist() == np.minimum.accumulate(times)[:last].tolist()
    assert reading.serial_time == times[0]


def superlinear(n):
    """Half of the work falls away from 5 processors on; the area rises from there."""
    return 16 / n if n < 5 else 5 / n + 0.5


def test_a_superlinear_step_is_believed_as_it_is_with_and_without_an_oracle():
    for learns, repair in ((True, "fitted"), (False, "always")):
        view, _ = view_of(superlinear, learns=learns, seen=(1, 4, 8))
        reading = Advice(repair=repair).read(0, view, view.counts(0))
        assert reading.runtimes.tolist() == [superlinear(n) for n in range(1, 17)]


def test_rules_that_need_areas_that_do_not_fall_raise_them_under_an_oracle_too():
    """Area 16 up to 4 processors, 7.5 to 13 beyond: raised to 16 it falls nowhere."""
    view, _ = view_of(superlinear, learns=False, seen=())
    lean = LocalAllocation("roofline", "topc24")  # largest count with the least area
    assert lean.choose(0, view, None) == 7  # ceil(0.38 * 16); 5 as long as the area may fall
    assert view.belief(0, 7) == superlinear(7)
    candidates = Fair().open(view)
    menu = candidates.of(0)
    assert menu.runtimes.tolist() == [superlinear(n) for n in range(1, 17)]
    ratio = candidates.keeps.job_columns[0, RATIO]
    assert ratio == pytest.approx(1.0)  # raised: area 16 on 16 processors, fastest there


def test_an_oracles_curve_is_left_as_it_is():
    view, _ = view_of(bent, learns=False)
    reading = Advice().read(0, view, view.counts(0))
    assert reading.counts.tolist() == list(range(1, 17))
    assert reading.runtimes.tolist() == [bent(n) for n in range(1, 17)]


def test_a_fitted_curve_is_repaired_and_cut_to_what_was_seen():
    view, _ = view_of(bent)
    reading = Advice().read(0, view, view.counts(0))
    assert reading.counts[-1] == 6  # 8 is within twice of 4, but slower than 6
    assert reading.runtimes[:3].tolist() == [20.0, 8.0, 8.0]  # the area falls: 20, 16, 24
    near = Advice(reach=1.0).read(0, view, view.counts(0))
    assert near.counts.tolist() == [1, 2, 3, 4]


def test_outside_of_what_was_seen_only_the_request_is_left():
    view, _ = view_of(lambda n: 24 / n, seen=(12, 12, 12))
    reading = Advice(reach=1.25).read(0, view, view.counts(0))
    assert reading.counts.tolist() == [3, *range(10, 16)]


def test_too_few_runs_or_an_unusable_belief_leave_the_request():
    view, predictor = view_of(bent, seen=(1, 2))
    assert Advice().read(0, view, view.counts(0)) is None
    assert Advice(observations=2).read(0, view, view.counts(0)) is not None
    predictor.grade = "unusable"
    assert Advice(observations=2).read(0, view, view.counts(0)) is None
    assert Advice(observations=2, distrust=False).read(0, view, view.counts(0)) is not None


def rising(n):
    """Fastest on 2 of the 3 processors that the job asks for."""
    return {1: 20.0, 2: 11.0}.get(n, 12.0 + n)


def test_a_job_whose_request_declines_is_molded_down_to_the_fastest_count():
    view, predictor = view_of(rising)
    predictor.grade, predictor.code = "unusable", "declining"
    reading = Advice().read(0, view, view.counts(0))
    assert reading.counts.tolist() == [1, 2]
    assert view.requested_processors[0] == 3
    predictor.code = "undetermined"
    assert Advice().read(0, view, view.counts(0)) is None


def test_the_curve_decides_unless_the_request_stands_whatever_it_says():
    view, predictor = view_of(bent)
    counts = view.counts(0)
    for grade, decided in (("unusable", False), ("warning", True), ("unusable", False)):
        predictor.grade = grade
        assert (Advice().offer(0, view, counts)[1] is not None) == decided
        assert (0 not in view.predictor._preferences.kept_requests) == decided
    predictor.grade = ""
    assert SmallestTurnaround(adopters=0.0).choose(0, view, None) == 3
    assert 0 in view.predictor._preferences.kept_requests


def test_counts_are_rounded_down_but_not_below_the_first():
    counts = np.array([2, 4, 8])
    assert [place_up_to(counts, x) for x in (1, 2, 3, 4, 100)] == [0, 0, 0, 1, 2]
    view, _ = view_of(bent)
    assert tried(0, view, "powers_of_two").tolist() == [1, 2, 3, 4, 8, 16]


@pytest.mark.parametrize("special", [None, np.array([3, 4, 6, 7, 8, 12])])
def test_powers_of_two_and_the_request_are_those_of_each_job(special):
    least, largest = np.array([1, 1, 3, 7, 1]), np.array([16, 16, 16, 8, 8])
    inside = {
        job: special[(special >= least[job]) & (special <= largest[job])]
        for job in (() if special is None else (2, 3, 4))
    }
    feasible = FeasibleCounts(least, largest, inside, 16)
    for job, request in ((0, 3), (1, 5), (2, 6), (3, 7), (4, 3), (0, 3), (2, 12), (2, 6)):
        counts = feasible.counts(job).tolist()
        expected = [n for n in counts if n == request or n & (n - 1) == 0]
        chosen = feasible.powers_of_two(job, request).tolist()
        assert chosen == (counts if len(counts) <= 2 else expected)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Advice(repair="often"), "often"),
        (lambda: Advice(reach=0.5), "0.5"),
        (lambda: Advice(observations=-1), "-1"),
    ],
)
def test_values_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
