"""Evolving jobs that ask for processors and walltime: schedules worked by hand."""

import numpy as np
import pandas as pd
import pytest
from asking_toys import CYCLES, STEADY, play
from toys import ToyEstimate, ToyOracle, ToyTruth

from predictors.in_loop.dynamic import Dynamic
from sim.background.models import ConstantLoad
from sim.errors import ConfigError, PolicyError
from sim.evolving.settings import Asks, Evolving
from sim.machine.shared import Shared
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.easy import Easy
from sim.policies.base import Policy
from sim.policies.grants import Grants
from sim.policies.order import FirstComeFirstServed
from sim.policies.reallocation.costs import Constant
from sim.policies.reallocation.equi import Equipartition
from sim.results.metrics import asking_figures
from sim.results.outcome import requests_frame
from sim.state.decisions import Refuse
from workloads.base import Trace

pytestmark = pytest.mark.fast

TIME = {"walltime": True}
MEMORY = {"memory": True}
KILLED = {"overrun": "kill", "predictor": ToyEstimate(), "machine": 2}
"""Belief and limit are what the user asked for."""
LATE = (0.0, 2, 1000.0, 500.0)
"""50 cycles of 20 s; its user asked for half of the time."""


def close(value):
    return pytest.approx(value, rel=1e-4)


def outcomes(records):
    return [(a.kind, a.outcome) for a in records.requests.asked]


class TestWalltime:
    def test_without_a_longer_limit_it_stops_in_time_and_goes_on(self):
        records = play([LATE], TIME, **KILLED)
        # 24 cycles and a checkpoint, a restart and 24 cycles and a checkpoint, two cycles.
        assert records.end_time[0] == close((480 + 10) + (3 + 480 + 10) + (3 + 40))
        assert records.restarts[0] == 2
        assert {outcome for _, outcome in outcomes(records)} == {"refused"}

    def test_a_limit_that_is_asked_for_in_time_spares_the_stops(self):
        records = play([LATE], TIME, Grants(), **KILLED)
        assert (records.end_time[0], records.restarts[0]) == (close(1000.0), 0)
        [asked] = records.requests.asked
        assert (asked.time, asked.kind, asked.outcome) == (close(100.0), "walltime", "granted")
        # 45 cycles are left; a cycle is given 1.25 times what it is predicted to take.
        assert asked.wanted_seconds == close(100 + 1.25 * 900 - 500)
        assert records.failure_costs.checkpoint_overhead[0] == 0.0

    def test_it_asks_again_before_it_would_stop(self):
        records = play([LATE], {**TIME, "every": 1000.0}, Grants(), **KILLED)
        [asked] = records.requests.asked
        assert (asked.time, records.end_time[0]) == (close(480.0), close(1000.0))

    def test_a_job_that_is_killed_at_its_limit_asks_before(self):
        more = {**KILLED, "stop_in_time": False, "resubmit": False}
        killed = play([LATE], {**TIME, "every": 1000.0}, **more)
        assert (killed.status, killed.end_time[0]) == (["killed"], close(500.0))
        kept = play([LATE], {**TIME, "every": 1000.0}, Grants(), **more)
        assert (kept.status, kept.end_time[0]) == (["completed"], close(1000.0))

    @pytest.mark.parametrize("rule", ["none", "easy", "conservative", "replan"])
    def test_a_reservation_is_not_delayed(self, rule):
        rows = [LATE, (50.0, 2, 30.0, 30.0)]
        harmless = play(rows, TIME, Grants(wait=False), rule=rule, **KILLED)
        without = play(rows, {}, rule=rule, **KILLED)
        assert outcomes(harmless)[0] == ("walltime", "refused")
        assert harmless.start_time[1] == close(without.start_time[1])

    def test_it_is_delayed_where_the_policy_says_so(self):
        rows = [LATE, (50.0, 2, 30.0, 30.0)]
        first = play(rows, TIME, Grants(harmless=False), rule="conservative", **KILLED)
        assert first.start_time[1] == close(1000.0)
        assert first.restarts[0] == 0

    def test_a_request_stands_until_it_harms_nobody(self):
        # The second job gives up its reservation at 500 by starting on what becomes free at 300.
        rows = [LATE, (0.0, 2, 300.0, 300.0), (50.0, 2, 30.0, 30.0)]
        more = {**KILLED, "machine": 4, "evolves": [True, False, False]}
        records = play(rows, TIME, Grants(), rule="easy", **more)
        assert records.start_time[2] == close(300.0)
        assert (records.end_time[0], records.restarts[0]) == (close(1000.0), 0)

    def test_a_request_that_stands_ends_with_the_run(self):
        rows = [LATE, (50.0, 2, 30.0, 30.0)]
        records = play(rows, TIME, Grants(), **KILLED)
        assert ("walltime", "withdrawn") in outcomes(records)

    def test_the_wait_for_want_of_time_is_counted(self):
        rows = [LATE, (50.0, 2, 30.0, 30.0)]
        records = play(rows, TIME, rule="conservative", evolves=[True, False], **KILLED)
        # It stops at 490, ten seconds before the other's turn, which comes and takes 30.
        assert records.start_time[1] == close(490.0)
        assert records.requests.denied_wait == close(30.0)
        alone = play([LATE], TIME, **KILLED)
        assert (alone.requests.denied_wait, alone.restarts[0]) == (0.0, 2)

    def test_a_longest_run_bounds_what_is_granted(self):
        rows = [(0.0, 2, 1000.0, 900.0)]
        assert play(rows, TIME, Grants(longest=1300.0), **KILLED).restarts[0] == 0
        assert play(rows, TIME, Grants(longest=910.0), **KILLED).restarts[0] == 1


class TestUnderLoad:
    """Processors at half their speed: a job of 1,000 s takes 2,000, a cycle 40."""

    @pytest.fixture
    def halved(self):
        return {**KILLED, "machine": Shared(2, cpu=ConstantLoad(0.5), network=None)}

    def test_it_stops_in_time_by_the_clock(self, halved):
        records = play([(0.0, 2, 1000.0, 600.0)], {}, **halved)
        # 14 cycles and a checkpoint; with a restart twice; the last eight. All at half speed.
        assert records.end_time[0] == close((560 + 20) + 2 * (6 + 560 + 20) + (6 + 320))
        assert (records.status, records.restarts[0]) == (["completed"], 3)

    def test_it_asks_for_what_it_takes_by_the_clock(self, halved):
        records = play([(0.0, 2, 1000.0, 600.0)], TIME, Grants(), **halved)
        assert (records.end_time[0], records.restarts[0]) == (close(2000.0), 0)
        [asked] = records.requests.asked
        assert asked.time == close(120.0)  # the third cycle is the first to end after 100 s
        assert asked.wanted_seconds == close(120 + 1.25 * 47 * 40 - 600)

    def test_a_job_that_never_gets_ahead_is_given_up(self, halved):
        # It would fit its limit unslowed, so nobody stops it; nothing is ever saved.
        records = play([(0.0, 2, 1000.0, 1200.0)], {}, stop_in_time=False, **halved)
        assert records.status == ["killed"]
        assert records.end_time[0] == close(10 * 1200.0)
        assert records.failure_costs.failure_reason == ["no cycle fits its limit"]


class TestMemory:
    def test_on_too_few_processors_its_cycles_take_longer(self):
        records = play([(0.0, 2, 1000.0)], {}, memory=500.0, paging=3.0)
        assert records.end_time[0] == close(3000.0)
        assert records.requests is None
        roomy = play([(0.0, 2, 1000.0)], {}, memory=1000.0, paging=3.0)
        assert roomy.end_time[0] == close(1000.0)

    def test_it_gets_processors_on_which_its_cells_fit(self):
        records = play([(0.0, 2, 1000.0)], MEMORY, Grants(), memory=500.0, paging=3.0)
        # Two cycles of 60 s, then 48 of 10 s on twice the processors.
        assert records.end_time[0] == close(2 * 60.0 + 48 * 10.0)
        assert records.allocations.processors.tolist() == [2, 4]
        assert records.failure_costs.lost_work[0] == pytest.approx(0.0, abs=1e-6)
        figures = asking_figures(records)
        assert (figures["requests_for_more_granted"], figures["granted_processors"]) == (1, 2)

    def test_what_it_costs_to_be_refused(self):
        records = play([(0.0, 2, 1000.0)], MEMORY, memory=500.0, paging=3.0)
        assert records.end_time[0] == close(3000.0)
        # Every second from the first request on could have been a sixth of one.
        assert asking_figures(records)["denied_time"] == close(5 / 6 * (3000.0 - 120.0))

    def test_a_grant_amid_a_cycle_begins_with_the_next(self):
        rows = [(0.0, 2, 1000.0), (0.0, 2, 150.0)]
        more = {"memory": 500.0, "evolves": [True, False]}
        records = play(rows, MEMORY, Grants(), **more)
        held = records.allocations
        mine = held.job == 0
        # The other ends at 150, in the third cycle (120 to 180).
        assert held.start_time[mine].tolist() == [0.0, close(150.0)]
        assert held.processors[mine].tolist() == [2, 4]
        assert records.end_time[0] == close(180.0 + 47 * 10.0)
        assert records.failure_costs.lost_work[0] == pytest.approx(0.0, abs=1e-6)
        [asked] = [a for a in records.requests.asked if a.job == 0]
        assert (asked.time, asked.answered) == (close(120.0), close(150.0))
        assert asked.denied_time == close(5 / 6 * 30.0)
        figures = asking_figures(records)
        assert (figures["requests_granted"], figures["requests_deferred"]) == (1, 1)

    def test_a_refusal_is_final_where_the_policy_does_not_wait(self):
        rows = [(0.0, 2, 1000.0), (0.0, 2, 150.0)]
        more = {"memory": 500.0, "evolves": [True, False]}
        records = play(rows, MEMORY, Grants(wait=False), **more)
        first, second = (a for a in records.requests.asked if a.job == 0)
        assert (first.outcome, second.outcome) == ("refused", "granted")
        assert second.time == close(240.0)  # the first cycle that ends 100 s later
        figures = asking_figures(records)
        assert (figures["requests_refused"], figures["requests_deferred"]) == (1, 0)

    def test_a_change_costs_what_the_policy_says(self):
        records = play([(0.0, 2, 1000.0)], MEMORY, Grants(cost=Constant(7.0)), memory=500.0)
        assert records.end_time[0] == close(2 * 60.0 + 7.0 + 48 * 10.0)
        assert records.counters["reallocation_area"] == close(4 * 7.0)

    def test_it_asks_ahead_for_the_cells_to_come(self):
        growing = STEADY.__class__("growing", 1000, growth=3.0, variation=0.0, adapt_every=1.0)
        records = play([(0.0, 2, 1000.0)], MEMORY, Grants(), deck=growing, memory=2500.0, machine=8)
        assert records.allocations.processors.max() == 3
        first = records.requests.asked[0]
        # 2 x 2,500 cells are reached three quarters through; by then it has the room.
        assert first.outcome == "granted"
        assert first.time < 750.0
        assert records.end_time[0] <= 1000.0

    def test_jobs_that_cannot_change_do_not_ask(self):
        truth = ToyTruth(lambda job, n: 1000.0, np.array([2]), np.array([2]))
        truth.malleable = np.array([False])
        records = play([(0.0, 2, 1000.0)], MEMORY, Grants(), truth=truth, memory=500.0)
        assert records.requests.asked == ()


class TestEfficiency:
    TRUTH = staticmethod(lambda: ToyTruth(
        lambda job, n: 1600.0 * (0.5 + 0.5 / n), np.array([4]), np.array([16])
    ))  # fmt: skip

    def test_it_gives_back_what_it_uses_badly(self):
        # T(1) / (n T(n)) = 2 / (n + 1): half of it is kept up to three processors.
        records = play([(0.0, 4, 1000.0)], {"efficiency": 0.5}, Grants(), truth=self.TRUTH())
        assert records.allocations.processors.tolist() == [4, 3]
        assert outcomes(records) == [("fewer", "granted")]
        assert asking_figures(records)["returned_processors"] == 1
        assert records.failure_costs.lost_work[0] == pytest.approx(0.0, abs=1e-6)
        done = 5 / CYCLES  # cycles of 20 s
        assert records.end_time[0] == close(100.0 + (1 - done) * 1600.0 * (0.5 + 0.5 / 3))

    def test_it_asks_for_what_it_uses_well(self):
        records = play([(0.0, 4, 1000.0)], {"efficiency": 0.3}, Grants(), truth=self.TRUTH(),
                       machine=8)  # fmt: skip
        assert records.allocations.processors.tolist() == [4, 5]

    @pytest.mark.parametrize("asked", [0.3, 0.5])
    def test_predicted_by_cycles_it_asks_whom_these_are_put_around(self, asked):
        truth, more = self.TRUTH(), {"machine": 8}
        plain, around = (
            play([(0.0, 4, 1000.0)], {"efficiency": asked}, Grants(), truth=truth, predictor=one,
                 **more)
            for one in (ToyOracle(truth), Dynamic(ToyOracle(truth)))
        )  # fmt: skip
        assert outcomes(around) == outcomes(plain) != []
        assert around.allocations.processors.tolist() == plain.allocations.processors.tolist()

    def test_whoever_knows_no_other_count_asks_nothing(self):
        records = play([(0.0, 4, 1000.0)], {"efficiency": 0.5}, Grants(), truth=self.TRUTH(),
                       predictor=Dynamic(ToyEstimate()))  # fmt: skip
        assert outcomes(records) == []


def test_a_job_that_was_resized_has_its_whole_limit_again_after_a_stop():
    """What a run used up of the requested time is not held against the next."""
    # Each run reads its checkpoint (3 s), does two cycles of 60 s on 2 processors, which is
    # 123/400 of its limit, and on 4 processors, in the rest of 200 s, four of 30 s.
    rows = [(0.0, 2, 3000.0, 400.0)]
    records = play(rows, MEMORY, Grants(), memory=500.0, paging=1.0, overrun="kill")
    assert records.status == ["completed"]
    held = records.allocations
    lengths = [
        held.end_time[held.run == k].max() - held.start_time[held.run == k].min()
        for k in range(1, int(held.run.max()))
    ]
    assert lengths == [close(3 + 2 * 60 + 4 * 30 + 10)] * 7


def test_the_table_of_requests():
    records = play([(0.0, 2, 1000.0)], MEMORY, Grants(), memory=500.0)
    trace = Trace(pd.DataFrame({"job_id": [7]}), processors=None, source="toy")
    [row] = requests_frame(trace, records.requests).to_dict("records")
    assert (row["job_id"], row["kind"], row["outcome"]) == (7, "more", "granted")
    assert (row["held_processors"], row["wanted_processors"]) == (2, 4)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [({"efficiency": 0.0}, "efficiency"), ({"efficiency": 1.5}, "efficiency"),
     ({"every": 0.0}, "every"), ({"every": np.inf}, "every")],
)  # fmt: skip
def test_bad_values_are_named(wrong, named):
    with pytest.raises(ConfigError, match=named):
        Asks(**wrong)


def test_nobody_asks_for_memory_without_a_limit_of_it():
    with pytest.raises(ConfigError, match=r"evolving\.memory"):
        Evolving(asks=Asks(memory=True))
    with pytest.raises(ConfigError, match=r"evolving\.paging"):
        Evolving(memory=10.0, paging=0.5)
    with pytest.raises(ConfigError, match=r"evolving\.memory"):
        Evolving(memory=0.0)


def test_grants_and_reallocation_do_not_go_together():
    parts = (FirstComeFirstServed(), Easy(), Request(), Equipartition())
    with pytest.raises(PolicyError, match="does not go with"):
        Policy(*parts, grants=Grants())
    Policy(*parts, grants=None)


def test_answers_to_nothing_are_refused():
    class Chatty(Grants):
        def begin(self, view, scheduler):
            class Scheduler:
                def decide(self):
                    return [*scheduler.decide(), Refuse(0, "walltime")]

            return Scheduler()

    with pytest.raises(PolicyError, match="answers a request that is not pending"):
        play([(0.0, 2, 1000.0)], MEMORY, Chatty(), memory=5000.0)
