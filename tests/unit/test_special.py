"""Applications made for certain counts: their shape, how ADEPT finds out, what rules make of it."""

import numpy as np
import pytest

from predictors import Adept
from predictors.adept.layout import Feasible
from predictors.base import Observation, VisibleJobs
from predictors.in_loop.learned import CurvePerApplication
from scripts.composing import composed
from sim.policies.advice import Advice, tried
from sim.simulation.scene import play, set_scene
from sim.state.view import Support
from tests.former import WORLD
from workloads.errors import WorkloadError
from workloads.shapes.family import allowed_counts, is_allowed
from workloads.shapes.irregular import Special

COUNTS = np.arange(1, 65)
RULES = ("any", "powers_of_two", "squares", "even", "multiples_of_8", "multiples_of_3")


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_says_the_same_of_single_counts_as_of_a_machine(rule):
    listed = allowed_counts(rule, 64)
    expected = COUNTS if listed is None else listed
    assert COUNTS[is_allowed(rule, COUNTS)].tolist() == expected.tolist()


def test_off_its_family_an_application_is_slower_by_its_factor():
    family = Special(["squares"], 1.5, 1.5, serial_min=0.1, serial_max=0.1)
    shapes = family.draw(np.random.default_rng(1), 2, processors=64)
    found = shapes.g(np.zeros(4, int), np.array([1, 9, 10, 64]))
    assert found == pytest.approx([1.0, 0.1 + 0.9 / 9, 0.1 + 0.9 * 1.5 / 10, 0.1 + 0.9 / 64])
    share = shapes.communication(np.zeros(1, int), np.array([9]))
    assert share == pytest.approx([0.1 * (1 - 1 / 9) / (0.1 + 0.1)])


def test_each_application_draws_a_family_and_keeps_it():
    shapes = Special().draw(np.random.default_rng(3), 60, processors=64)
    drawn = shapes.curve.family
    assert set(drawn.tolist()) == {0, 1, 2}
    for place, rule in enumerate(shapes.curve.families):
        one = int(np.flatnonzero(drawn == place)[0])
        held = shapes.curve.holds(np.full(64, one), COUNTS)
        assert held.tolist() == ((COUNTS == 1) | is_allowed(rule, COUNTS)).tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"families": []}, "moldability.families must name at least one rule"),
        ({"families": ["primes"]}, "moldability.families must be any, powers_of_two"),
        ({"families": ["any"]}, "must leave some counts out"),
        ({"slowdown_min": 0.9}, "slowdown_min"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(WorkloadError, match=message):
        Special(**options)


def learned(measured):
    """Return ADEPT in the loop, told of runs of one application, and a job that asks for 24."""
    predictor = CurvePerApplication(Adept(), "adept")
    nothing, zero = np.array([np.nan]), np.array([0])
    predictor.attach(VisibleJobs(zero, zero - 1, nothing, zero, zero + 24, nothing + 100))
    for count, seconds in measured.items():
        predictor.observe(Observation(0, -1, np.nan, count, seconds, 0.0))
    return predictor


MEASURED = {
    int(n): 2 + 1000 / n * (1.0 if Feasible("powers of 2").holds(float(n)) else 1.5)
    for n in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
}


def test_a_family_that_adept_found_is_what_the_predictor_offers():
    predictor = learned(MEASURED)
    found = predictor.offered(0, COUNTS)
    assert COUNTS[found].tolist() == [1, 2, 4, 8, 16, 32, 64]
    few = learned(dict(list(MEASURED.items())[:5]))
    assert few.offered(0, COUNTS) is None


class FamilyView:
    """As much of a view as reading a curve takes."""

    requested_processors = np.array([24])

    def __init__(self, learned):
        self._learned = learned
        self.predictor = self._feasible = self._beliefs = self

    def mark(self, job, chosen_by_curve):
        pass

    def caution(self, job):
        return 1.0

    def counts(self, job):
        return COUNTS

    def powers_of_two(self, job, request):
        return np.array([1, 2, 4, 8, 16, 24, 32, 64])

    def offered(self, job, counts):
        return self._learned.offered(job, counts)

    def curve(self, job, counts):
        return self._learned.curve(job, counts)

    def reliability(self, job, processors):
        found = self._learned.explain(job, processors)
        return found.reliability, found.code

    def known_counts(self, job, counts):
        return None

    def support(self, job):
        return Support(2, 64, 11)


def test_a_job_whose_request_is_off_the_family_is_molded_onto_it():
    view = FamilyView(learned(MEASURED))
    assert view.reliability(0, 17) == ("unusable", "infeasible")
    reading = Advice().read(0, view, view.counts(0))
    assert reading.counts.tolist() == [1, 2, 4, 8, 16, 32, 64]
    view.requested_processors = np.array([17])
    assert Advice().read(0, view, view.counts(0)).counts.tolist() == [1, 2, 4, 8, 16, 32, 64]
    assert tried(0, view, "powers_of_two").tolist() == [1, 2, 4, 8, 16, 32, 64]


def test_a_family_stands_in_the_place_of_powers_of_two():
    squares = Feasible("perfect squares")
    measured = {
        n: 1000 / n * (1.0 if squares.holds(n) else 1.6)
        for n in (2, 4, 6, 9, 12, 16, 20, 25, 30, 36, 42, 49, 64)
    }
    view = FamilyView(learned(measured))
    assert tried(0, view, "powers_of_two").tolist() == [1, 4, 9, 16, 25, 36, 49, 64]
    assert tried(0, view, "all").tolist() == COUNTS.tolist()


def test_jobs_with_families_run_in_the_loop_and_their_truth_has_them():
    overrides = (
        *(*WORLD, "moldability=special", "moldability.families=[squares]", "workload.jobs=60"),
        *("cluster.processors=64", "policy=sa", "predictor=oracle", "menu=all", "baseline=null"),
    )
    config = composed(*overrides)
    played = play(config, config, set_scene(config, 0))
    jobs = played.outcome.tables.jobs
    counts = jobs["allocated_processors"].to_numpy()
    square = is_allowed("squares", counts)
    assert square.mean() > 0.9
    assert (square | (counts == jobs["requested_processors"])).all()
