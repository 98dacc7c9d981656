"""What SA on EASY does where beliefs are vague, wrong or missing, worked through by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moldable_toys import truth_of
from test_advice import view_of
from toys import ToyOracle

from sim.engine.invariants import Checker
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.backfill.easy import Easy
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed, ShortestFirst

MACHINE = 8


class Mistaken(ToyOracle):
    """The truth, times a factor of each job's own."""

    def __init__(self, truth, factors):
        super().__init__(truth)
        self.factors = factors

    def curve(self, job, counts):
        return self.factors[job] * super().curve(job, counts)


def play(rows, curves, factors, anew, order=None, **options):
    """Return the records of SA on EASY when each job is believed to take a multiple."""
    trace, truth = truth_of(rows, curves, MACHINE)
    rule = Policy(order or FirstComeFirstServed(), Easy(anew=anew), SmallestTurnaround(**options))
    machine, watchers = Dedicated(MACHINE), (Checker(),)
    return simulate(Setup(trace, truth, rule, Mistaken(truth, factors), machine, watchers=watchers))


@pytest.mark.parametrize(
    ("anew", "start", "count"), [(None, 100, 8), (1.0, 20, 4), (2.0, 20, 4), (4.0, 40, 4)]
)
def test_a_job_that_waits_for_an_outlived_belief_chooses_anew(anew, start, count):
    """Half of the machine is held for 100 s, not for 10: then 55 s on the other half win.

    At 10 s the end is believed at 20: 8 processors end at 60, 4 at 65. At 20 s it is
    believed at 40: 80 against 75. At 40 s, at 80: 120 against 95.
    """
    runtimes = {1: 400.0, 2: 200.0, 4: 55.0, 8: 40.0}
    found = play([(0, 4, 100), (1, 8, 40)], [None, runtimes.get], [0.1, 1.0], anew)
    assert found.start_time.tolist() == [0, start]
    assert found.allocated.tolist() == [4, count]


def test_jobs_choose_anew_in_queue_order_each_given_those_ahead():
    """The first takes 4 of 6 processors at 20 s; the second sees that, and waits for 4.

    At 20 s it would end at 115 on 8, at 95 on 4 from 40 s on, at 110 on 2 at once. At 40 s the
    outlived job is believed to end at 80: 120, 130 and 130. At 80 s, at 160: 4 win at once.
    """
    runtimes = {1: 400.0, 2: 90.0, 4: 55.0, 8: 40.0}
    rows = [(0, 2, 400), (1, 8, 40), (2, 8, 40)]
    found = play(rows, [None, runtimes.get, runtimes.get], [0.025, 1.0, 1.0], 2.0)
    assert found.start_time.tolist() == [0, 20, 80]
    assert found.allocated.tolist() == [2, 4, 4]


job = st.tuples(
    st.integers(0, 30), st.integers(1, MACHINE), st.integers(1, 60), st.floats(0, 1), st.booleans()
)


def of(jobs):
    """Return rows and Amdahl curves of random jobs, some of them rigid."""
    submits = np.cumsum([one[0] for one in jobs]).tolist()
    curves = [
        None if rigid else (lambda n, work=work, serial=serial: work * (serial + (1 - serial) / n))
        for _, _, work, serial, rigid in jobs
    ]
    rows = [
        (s, one[1], one[2] if curve is None else curve(one[1]))
        for s, one, curve in zip(submits, jobs, curves, strict=True)
    ]
    return rows, curves


@settings(max_examples=80)
@given(jobs=st.lists(job, min_size=1, max_size=14))
def test_with_an_oracle_nothing_changes(jobs):
    rows, curves = of(jobs)
    right = [1.0] * len(jobs)
    plain = play(rows, curves, right, None)
    ours = play(rows, curves, right, 1.0, margin=0.0, without_curve="fewer")
    assert ours.start_time.tolist() == plain.start_time.tolist()
    assert ours.allocated.tolist() == plain.allocated.tolist()


@settings(max_examples=80)
@given(
    jobs=st.lists(job, min_size=1, max_size=14),
    factors=st.lists(st.sampled_from([0.01, 0.3, 1.0, 3.0]), min_size=14, max_size=14),
    shortest=st.booleans(),
)
def test_whatever_is_believed_easy_stays_easy(jobs, factors, shortest):
    """The checker watches reservations and processors; every job runs."""
    rows, curves = of(jobs)
    order = ShortestFirst() if shortest else None
    found = play(rows, curves, factors, 1.0, order)
    assert np.isfinite(found.start_time).all()


def starts(waits):
    """Return an outlook with the seconds until each count could start, 0 unless said."""
    return lambda counts, runtimes: np.array([waits.get(n, 0.0) for n in counts.tolist()])


def flat(n):
    """No faster beyond 3 processors, and hardly so on 3 than on 2."""
    return {1: 8.0, 2: 4.2}.get(n, 4.0)


@pytest.mark.parametrize(
    ("learns", "margin", "waits", "count"),
    [
        (True, 0.0, {}, 3),
        (True, 0.1, {}, 2),
        (True, 0.1, {2: 0.3}, 3),
        (True, 0.1, {2: 10.1, 1: 10.0, 3: 10.0, 4: 10.0, 8: 10.0}, 2),
        (True, 1.0, {}, 1),
        (False, 0.0, {}, 3),
        (False, 0.1, {}, 2),
    ],
)
def test_what_a_margin_does_not_tell_apart_is_not_worth_a_processor(learns, margin, waits, count):
    view, _ = view_of(flat, learns)
    assert SmallestTurnaround(margin=margin).choose(0, view, starts(waits)) == count


@pytest.mark.parametrize(
    ("waits", "count", "believed"),
    [
        ({}, 3, 10.0),
        ({3: 4.0}, 3, 10.0),
        ({3: 8.0}, 2, 15.0),
        ({3: 8.0, 2: 0.5}, 3, 10.0),
        ({3: 21.0, 2: 0.5}, 1, 30.0),
    ],
)
def test_without_a_curve_fewer_processors_are_taken_to_start_at_once_and_end_sooner(
    waits, count, believed
):
    """3 processors for 10 s are asked for: 2 take 15 s at most, 1 takes 30."""
    view, predictor = view_of(flat, seen=(1, 2))
    predictor.curve = lambda job, counts: None
    fewer = SmallestTurnaround(without_curve="fewer", margin=1.0)
    assert fewer.choose(0, view, starts(waits)) == count
    assert view.belief(0, count) == believed
    assert 0 in view.predictor._preferences.kept_requests
    assert SmallestTurnaround().choose(0, view, starts(waits)) == 3
    predictor.learns = False
    assert fewer.choose(0, view, starts(waits)) == count


def test_the_request_stands_though_the_application_is_made_for_other_counts():
    """Nothing could start at once, and an empty menu ended the run."""
    view, predictor = view_of(flat)
    predictor.grade = "unusable"
    vars(view.predictor)["offered"] = lambda job, counts: counts != 3
    fewer = SmallestTurnaround(without_curve="fewer")
    assert fewer.choose(0, view, starts({1: 9.0, 2: 9.0, 3: 9.0})) == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SmallestTurnaround(margin=-0.1), "-0.1"),
        (lambda: SmallestTurnaround(without_curve="less"), "less"),
        (lambda: Easy(anew=0.5), "0.5"),
        (lambda: Easy(reservations=2, anew=2.0), "reservations=1"),
    ],
)
def test_values_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
