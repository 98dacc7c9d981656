import numpy as np
import pytest
from moldable_toys import POLICIES, policy, truth_of
from toys import ToyEstimate, ToyOracle, replay, rigid, rigid_truth, trace_of

from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.errors import ConfigError
from sim.machine.base import Dedicated
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.easy import Easy
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from sim.state.decisions import PastErrors


def easy(quantile):
    return Policy(FirstComeFirstServed(), Easy(), Request(), error_quantile=quantile)


def one_application(rows, policy, processors=4):
    trace = trace_of(rows)
    truth = rigid_truth(trace)
    truth.application = np.zeros(len(rows), np.int64)
    return simulate(Setup(trace, truth, policy, ToyEstimate(), Dedicated(processors)))


def test_the_quantile_of_past_ratios_and_never_below_one():
    errors = PastErrors(0.5, least=3, memory=4)
    for runtime in (80.0, 300.0):
        errors.note(1, 100.0, runtime)
    assert errors.factor(1) == 1.0
    errors.note(1, 100.0, 120.0)
    assert errors.factor(1) == 1.2
    for _ in range(4):
        errors.note(1, 100.0, 50.0)
    assert errors.factor(1) == 1.0
    assert errors.factor(2) == 1.0


@pytest.mark.parametrize("quantile", [0.0, -0.1, 1.5, float("nan")])
def test_quantiles_out_of_range_are_refused(quantile):
    with pytest.raises(ConfigError, match=r"policy\.error_quantile must be above 0 and at most 1"):
        easy(quantile)


# Submit, processors, runtime, estimate: three jobs that take twice what was said, then a job of
# 3 processors, one of 4 that waits for it, and one that would fit beside it.
ROWS = [
    *[(0.0, 1, 200.0, 100.0)] * 3,
    (300.0, 3, 200.0, 100.0),
    (310.0, 4, 200.0, 100.0),
    (320.0, 1, 80.0, 80.0),
]


def test_a_stretched_reservation_leaves_room_for_what_would_not_have_fitted():
    plain, stretched = one_application(ROWS, easy(None)), one_application(ROWS, easy(1.0))
    # The head waits for 400, as believed, or for 500, stretched; 80 s fit before either.
    assert plain.start_time.tolist() == [0.0, 0.0, 0.0, 300.0, 500.0, 320.0]
    assert stretched.start_time.tolist() == [0.0, 0.0, 0.0, 300.0, 500.0, 320.0]
    # 90 s do not fit before 400; stretched to 180 s they just fit before 500.
    short = [*ROWS[:5], (320.0, 1, 90.0, 90.0)]
    plain, stretched = one_application(short, easy(None)), one_application(short, easy(1.0))
    assert plain.start_time[5] == 400.0
    assert stretched.start_time[5] == 320.0


class Planned:
    """A policy that notes for how long its runs are planned, by job."""

    def __init__(self, inner):
        self.inner = inner
        self.seconds = {}

    def preferences(self):
        """Return those of the policy."""
        return self.inner.preferences()

    def begin(self, view):
        """Begin a run."""
        self.view, self.scheduler = view, self.inner.begin(view)
        return self

    def decide(self):
        """Look, and note what runs."""
        for run in self.view.running.values():
            self.seconds.setdefault(run.job, run.believed_end - run.start)
        return self.scheduler.decide()


@pytest.mark.parametrize("name", POLICIES)
def test_every_moldable_rule_plans_with_stretched_beliefs(name):
    # All is believed half as long as it takes. After three runs a moldable job comes, and a rigid
    # one; others that come a second later let the policy look while they run.
    rows = [*[(0, 1, 10)] * 3, (100, 2, 100), (101, 1, 1), (1000, 3, 80), (1001, 1, 1)]
    trace, truth = truth_of(rows, [None, None, None, lambda n: 200 / n, None, None, None], 4)
    for quantile, factor in ((None, 1.0), (1.0, 2.0)):
        rule = Planned(policy(*POLICIES[name], quantile))
        records = simulate(Setup(trace, truth, rule, ToyOracle(truth, 0.5), Dedicated(4)))
        half = 0.5 * (records.end_time - records.start_time)
        assert rule.seconds[3] == pytest.approx(factor * half[3])
        assert rule.seconds[5] == pytest.approx(factor * half[5])
        assert records.believed_runtime == pytest.approx(half)


def test_what_was_said_is_recorded_not_what_was_planned():
    records = one_application(ROWS, easy(1.0))
    assert records.believed_runtime.tolist() == [100.0] * 5 + [80.0]


def test_without_errors_nothing_changes():
    rows = [(float(k), 1 + k % 3, 50.0 + 7 * k % 40) for k in range(200)]
    plain, stretched = replay(rows, 8, rigid("easy")), replay(rows, 8, easy(0.9))
    assert (plain.start_time == stretched.start_time).all()
