"""The engine where nodes fail and jobs evolve."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from known_walltime import expected_walltime
from toys import ToyEstimate, rigid, rigid_truth, trace_of

from benchmarks.single_job_recovery import recover
from predictors.cycles.checkpointing import FixedRule, NoCheckpoints, daly_interval
from predictors.cycles.online import OnlineCyclePredictor
from predictors.in_loop.dynamic import Dynamic
from sim.engine.invariants import Checker
from sim.engine.setup import Setup
from sim.engine.watcher import Watcher
from sim.errors import ConfigError, PolicyError
from sim.evolving.recovery import simulate_recovering
from sim.evolving.settings import Evolving
from sim.evolving.stages import Attempt
from sim.machine.failing import Failing
from sim.results.outcome import machine_figures, steps_of
from workloads.evolving.cycle_costs import CYCLE_MACHINES
from workloads.evolving.phases import EvolvingApplication
from workloads.streams import Streams


def play(rows, machine, rule="easy", evolving=None, seed=1, predictor=None, **more):
    """Replay rows on a failing machine, with the checker on."""
    trace = trace_of(rows)
    streams = Streams(seed)
    bound = machine.bound(streams, 0.0)
    counts = trace.jobs["requested_processors"].to_numpy()
    scene = None if evolving is None else evolving.scene(counts, streams, bound)
    records = simulate_recovering(
        Setup(
            trace,
            rigid_truth(trace),
            rigid(rule),
            ToyEstimate() if predictor is None else predictor,
            bound,
            watchers=(Checker(),),
            **more,
        ),
        scene,
    )
    return records, bound


def outages(bound, until):
    """Return (node, failure, repair) up to a time."""
    found, open_since = [], {}
    for event in bound.events():
        if event.kind == "failure":
            if event.time > until:
                break
            open_since[event.node] = event.time
        else:
            found.append((event.node, open_since.pop(event.node), event.time))
    found += [(node, begin, np.inf) for node, begin in open_since.items()]
    return found


def assert_failed_nodes_are_left_alone(records, bound):
    held = records.allocations
    for node, begin, end in outages(bound, records.end_time.max()):
        first, last = bound.processors_of(node)
        for k, ranges in enumerate(held.nodes):
            if any(low <= last and high >= first for low, high in ranges):
                assert held.end_time[k] <= begin or held.start_time[k] >= end


def useful_area(records):
    """Return what each job held for work that counts."""
    held = records.allocations
    area = (held.end_time - held.start_time) * held.processors
    whole = np.bincount(held.job, area, minlength=len(records.submit_time))
    paid = records.failure_costs
    return whole - paid.lost_work - paid.checkpoint_overhead - paid.restart_overhead


LONE = [(0.0, 2, 5000.0)]
QUIET = Failing(2, mtbf=None)


class TestWithoutFailures:
    def test_evolving_jobs_take_their_runtime_to_the_bit(self):
        rows = [(0.0, 2, 123.456), (1.0, 2, 77.7)]
        records, _ = play(rows, QUIET, evolving=Evolving())
        assert records.end_time.tolist() == [123.456, 123.456 + 77.7]
        assert records.restarts.tolist() == [0, 0]
        assert records.failure_costs.evolving.all()

    def test_checkpoints_lengthen_a_run_by_their_cost(self):
        saving = Evolving(cost=7.0, node_mtbf=40_000.0)
        records, bound = play(LONE, QUIET, evolving=saving)
        counts = np.array([2])
        scene = saving.scene(counts, Streams(1), bound)
        attempt = Attempt(scene.saving, scene.runs.run(0), 2, 5000.0, 2)
        assert attempt.plan.places.size > 3
        assert records.end_time[0] == 5000.0 + 7.0 * attempt.plan.places.size
        assert records.failure_costs.checkpoint_overhead[0] == 14.0 * attempt.plan.places.size


class TestFailures:
    def test_a_rigid_job_begins_again_from_zero(self):
        machine = Failing(2, mtbf=4000.0, repair=50.0)
        records, bound = play(LONE, machine, seed=3)
        down = outages(bound, records.end_time[0])
        assert records.restarts[0] == len(records.allocations.job) - 1 >= 1
        assert records.end_time[0] - records.allocations.start_time[-1] == 5000.0
        first = min(begin for _, begin, _ in down)
        assert records.allocations.end_time[0] == first
        assert records.allocations.start_time[1] == first + 50.0
        lost = (records.allocations.end_time - records.allocations.start_time)[:-1].sum() * 2
        assert records.failure_costs.lost_work[0] == pytest.approx(lost)

    def test_failures_do_not_depend_on_the_schedule(self):
        machine = Failing(8, mtbf=1500.0, repair=50.0)
        rows = [(0.0, 4, 500.0), (0.0, 8, 300.0), (3.0, 2, 900.0)]
        one, bound = play(rows, machine, "easy")
        other, again = play(rows, machine, "conservative")
        until = min(one.end_time.max(), other.end_time.max())
        assert outages(bound, until) == outages(again, until) != []

    def test_a_job_that_never_gets_through_is_given_up_for_a_reason(self):
        machine = Failing(1, mtbf=50.0, repair=1.0, max_restarts=20)
        records, _ = play([(0.0, 1, 5000.0), (0.0, 1, 5.0)], machine)
        assert records.status == ["failed", "completed"]
        assert (
            records.failure_costs.failure_reason[0]
            == "interrupted more often than cluster.max_restarts"
        )
        assert records.failure_costs.failure_reason[1] == ""
        assert records.restarts[0] == 20
        assert useful_area(records)[0] == pytest.approx(0.0, abs=1e-6)
        records, _ = play([(0.0, 1, 5000.0)], Failing(1, mtbf=50.0, repair=1.0, max_restarts=0))
        assert records.counters["events"] == 2  # the arrival and the failure

    @pytest.mark.parametrize(("requeue", "first"), [("head", 0), ("tail", 1)])
    def test_where_an_interrupted_job_waits(self, requeue, first):
        machine = Failing(4, 4, mtbf=1000.0, repair=10.0, requeue=requeue)
        rows = [(0.0, 4, 900.0), (1.0, 4, 1.0), (2.0, 4, 1.0)]
        records, bound = play(rows, machine, "none", seed=3)
        _, begin, end = outages(bound, 900.0)[0]
        assert begin < 900.0
        order = records.allocations.job[1:].tolist()
        assert records.allocations.start_time[1] == end
        assert order[0] == first

    def test_wide_jobs_wait_until_enough_is_up(self):
        machine = Failing(4, mtbf=300.0, repair=100.0)
        records, bound = play([(0.0, 4, 10.0)] * 20, machine)
        assert_failed_nodes_are_left_alone(records, bound)
        assert set(records.status) == {"completed"}

    def test_endless_failures_do_not_hide_a_policy_that_starts_nobody(self):
        class Idle:
            def begin(self, view):
                return self

            def decide(self):
                return []

        trace = trace_of([(0.0, 1, 1.0)])
        with pytest.raises(PolicyError, match="left jobs waiting for ever: 1"):
            simulate_recovering(
                Setup(
                    trace,
                    rigid_truth(trace),
                    Idle(),
                    ToyEstimate(),
                    Failing(2, mtbf=10.0).bound(Streams(1), 0.0),
                )
            )


def test_failed_nodes_are_no_lost_capacity():
    """A job as wide as the machine waits for the repair: what is left idle is of no use to it."""
    rows = [(0.0, 8, 50_000.0)]
    records, bound = play(rows, Failing(8, 4, mtbf=30_000.0, repair=9000.0))
    end = float(records.end_time[0])
    assert records.restarts[0] > 0
    trace = trace_of(rows)
    state = steps_of(trace, rigid_truth(trace), records, np.ones(1, bool))
    figures = machine_figures(state, 8, 0.0, end)
    assert figures["loss_of_capacity"] == 0.0
    missed = sum(4 * (min(back, end) - begin) for _, begin, back in outages(bound, end))
    assert (state.down * np.diff(state.times, append=end)).sum() == pytest.approx(missed)


class TestAgainstTheLoneJob:
    @pytest.mark.parametrize("seed", [0, 1, 3, 4])
    def test_engine_and_reference_agree(self, seed):
        saving = Evolving(cost=5.0, restart=8.0, cycles=400)
        machine = Failing(2, mtbf=3000.0, repair=0.0)
        records, bound = play(LONE, machine, evolving=saving, seed=seed)
        scene = saving.scene(np.array([2]), Streams(seed), bound)
        run = scene.runs.run(0)
        ends, cells = run.cumulative(2, 5000.0), run.cells_per_processor(2)
        times = (e.time for e in bound.events() if e.kind == "failure")
        expected = recover(
            ends,
            times,
            daly_interval(5.0, 1500.0),
            5.0,
            8.0,
            OnlineCyclePredictor(8).follow(cells, np.diff(ends, prepend=0.0)),
        )
        paid = records.failure_costs
        assert records.restarts[0] == expected.failures >= 1
        assert records.end_time[0] == pytest.approx(expected.wall)
        assert paid.lost_work[0] == pytest.approx(2 * expected.lost)
        assert paid.checkpoint_overhead[0] == pytest.approx(2 * expected.overhead)
        assert paid.restart_overhead[0] == pytest.approx(2 * expected.restarting)


class TestLimits:
    ROWS = ((0.0, 2, 5000.0, 1500.0),)

    def test_jobs_stop_in_time_and_go_on(self):
        records, _ = play(self.ROWS, QUIET, evolving=Evolving(cost=5.0), overrun="kill")
        assert records.status == ["completed"]
        assert records.restarts[0] == 3
        walls = records.allocations.end_time - records.allocations.start_time
        assert walls.max() <= 1500.0
        assert records.failure_costs.lost_work[0] == 0.0
        assert useful_area(records)[0] == pytest.approx(10_000.0)

    def test_being_killed_costs_the_work_since_the_checkpoint(self):
        saving = Evolving(cost=5.0, stop_in_time=False, interval=FixedRule(400.0))
        records, _ = play(self.ROWS, QUIET, evolving=saving, overrun="kill")
        assert records.status == ["completed"]
        walls = records.allocations.end_time - records.allocations.start_time
        assert walls[:-1].tolist() == [1500.0] * (len(walls) - 1)
        assert records.failure_costs.lost_work[0] > 0.0
        assert useful_area(records)[0] == pytest.approx(10_000.0)

    @pytest.mark.parametrize(
        ("saving", "reason"),
        [
            ({"stop_in_time": False, "resubmit": False}, "killed at its limit"),
            ({"stop_in_time": False}, "no cycle fits its limit"),
            ({"cycles": 2}, "no cycle fits its limit"),
            ({"restart": 1600.0, "cost": 5.0}, "its restart does not fit its limit"),
        ],
    )
    def test_what_does_not_get_ahead_is_reported(self, saving, reason):
        records, _ = play(self.ROWS, QUIET, evolving=Evolving(**saving), overrun="kill")
        assert records.status == ["killed"]
        assert records.failure_costs.failure_reason == [reason]


@settings(max_examples=40)
@example(  # an outage outlives its belief when the last job is over
    rows=[(8, 4, 1.0, 59.0), (8, 4, 1.5, 20.0)],
    rule="conservative",
    width=1,
    mtbf=417.0,
    shares=(0.0, 0.0),
    requeue="head",
    overrun="extend",
    seed=0,
)
@example(  # a run is killed when all that it did is saved
    rows=[(0, 1, 1.0, 20.0), (0, 1, 1.0, 20.0), (0, 1, 119.0, 66.0), (0, 2, 1.0, 20.0)],
    rule="none",
    width=1,
    mtbf=300.0,
    shares=(0.5, 0.0),
    requeue="head",
    overrun="kill",
    seed=0,
)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 400),
            st.integers(1, 8),
            st.floats(1.0, 300.0),
            st.floats(20.0, 400.0),
        ),
        min_size=1,
        max_size=12,
    ),
    rule=st.sampled_from(["none", "skip", "easy", "easy2", "conservative", "replan"]),
    width=st.sampled_from([1, 3, 4]),
    mtbf=st.floats(300.0, 5000.0),
    shares=st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.7])),
    requeue=st.sampled_from(["head", "tail"]),
    overrun=st.sampled_from(["extend", "kill"]),
    seed=st.integers(0, 100),
)
def test_nothing_is_lost(rows, rule, width, mtbf, shares, requeue, overrun, seed):
    evolves, interference = shares
    machine = Failing(
        8,
        width,
        mtbf=mtbf,
        lifetimes="weibull",
        repair=60.0,
        repair_median=20.0,
        requeue=requeue,
        max_restarts=60,
        interference=interference,
        quiet=300.0,
        disturbed=100.0,
    )
    evolving = Evolving(share=evolves, cycles=40, cost=1.0, restart=2.0)
    rows = sorted(rows)
    records, bound = play(rows, machine, rule, evolving, seed, overrun=overrun)
    assert_failed_nodes_are_left_alone(records, bound)
    useful, paid = useful_area(records), records.failure_costs
    for job, (_, count, runtime, _) in enumerate(rows):
        assert (records.status[job] == "completed") == (paid.failure_reason[job] == "")
        assert min(paid.lost_work[job], paid.checkpoint_overhead[job]) >= 0.0
        if records.status[job] == "completed" and not interference:
            assert useful[job] == pytest.approx(count * runtime, rel=1e-6)
        elif records.status[job] == "completed":
            assert count * runtime * 0.999 <= useful[job] <= count * runtime * 2.001


def engine_wastes(interval, cost, mtbf, work, jobs, seed=1):
    """Return wall over work, less 1, of equal jobs, one after another on two nodes that fail."""
    steady = Evolving(
        cycles=round(work / 5.0), interval=FixedRule(interval + 1.0), cost=cost, restart=0.0
    )
    machine = Failing(2, mtbf=2 * mtbf, repair=0.0, max_restarts=10**6)
    trace = trace_of([(0.0, 2, work)] * jobs)
    streams = Streams(seed)
    bound = machine.bound(streams, 0.0)
    scene = steady.scene(np.full(jobs, 2), streams, bound)
    scene = replace(scene, runs=replace(scene.runs, applications=(STEADY,) * 3, machine=NOISELESS))
    records = simulate_recovering(
        Setup(trace, rigid_truth(trace), rigid("none"), ToyEstimate(), bound), scene
    )
    held = np.bincount(
        records.allocations.job, records.allocations.end_time - records.allocations.start_time
    )
    return held / work - 1.0


STEADY = EvolvingApplication("steady", cells=1000, growth=1.0, variation=0.0, adapt_every=1e6)
NOISELESS = replace(CYCLE_MACHINES["itanium2"], noise=1e-6, drift=0.0)


class TestClosedForm:
    """Constant cycles under the engine; M is that of both nodes together."""

    @pytest.mark.parametrize(
        ("cost", "mtbf", "interval"), [(10.0, 600.0, 105.0), (60.0, 900.0, 290.0)]
    )
    def test_waste_matches_within_its_confidence_interval(self, cost, mtbf, interval):
        work = 10 * interval
        waste = engine_wastes(interval, cost, mtbf, work, 400)
        before = expected_walltime(work - interval, interval, cost, mtbf)
        closed = float(before + expected_walltime(interval, interval, 0.0, mtbf)) / work - 1.0
        half = 1.96 * waste.std(ddof=1) / np.sqrt(waste.size)
        assert half < 0.12 * closed
        assert abs(waste.mean() - closed) < half

    def test_daly_is_within_one_percent_of_the_best_fixed_interval(self):
        cost, mtbf, work = 30.0, 1800.0, 5000.0
        tried = np.array([150.0, 200.0, 250.0, 310.0, 380.0, 460.0, 550.0])
        daly = round(float(daly_interval(cost, mtbf)) / 5.0) * 5.0
        best = min(engine_wastes(t, cost, mtbf, work, 200).mean() for t in tried)
        assert 1.0 + engine_wastes(daly, cost, mtbf, work, 200).mean() <= 1.01 * (1.0 + best)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (
            {"mtbf": 0.0},
            "cluster.mtbf must be at least 1 and at most 1e\\+15, got 0.0",
        ),
        ({"requeue": "middle"}, "requeue must be one of head, tail; got 'middle'"),
        ({"lifetimes": "normal"}, "lifetimes must be one of exponential, weibull"),
        ({"repair": -1.0}, "cluster.repair must be at least 0"),
        ({"repair_median": 7200.0}, "cluster.repair_median must be above 0 and below the mean"),
        ({"interference": 2.0}, "cluster.interference must be at least 0 and at most 1"),
        ({"factor": 1.0}, "cluster.factor must be above 1"),
        ({"max_restarts": -1}, "cluster.max_restarts must be at least 0"),
    ],
)
def test_bad_machines_are_named(wrong, named):
    with pytest.raises(ConfigError, match=named):
        Failing(8, **wrong)


def test_bad_savings_are_named():
    with pytest.raises(ConfigError, match=r"evolving\.margin must be positive"):
        Evolving(margin=0.0)
    with pytest.raises(ValueError, match="share must lie between"):
        Evolving(share=2.0)


class TestRenewedBeliefs:
    def test_the_waiting_head_learns_when_a_running_job_ends(self):
        """A job asked for ten times its runtime; its cycles say better."""
        rows = [(0.0, 4, 4000.0, 40_000.0), (1.0, 8, 10.0, 10.0), (2.0, 4, 5000.0, 5000.0)]
        rows += [(float(at), 1, 1.0, 1.0) for at in range(3000, 3003)]
        machine = Failing(8, mtbf=None)
        short = {}
        for name, before in (("user", ToyEstimate()), ("dynamic", Dynamic(ToyEstimate()))):
            records, _ = play(
                rows, machine, "easy", Evolving(interval=NoCheckpoints()), predictor=before
            )
            short[name] = records.start_time[2], records.counters.get("renewed_beliefs", 0.0)
        assert short["user"] == (2.0, 0.0)
        assert short["dynamic"][1] > 0

    @pytest.mark.parametrize("rule", ["easy", "conservative", "replan"])
    def test_beliefs_come_close_to_the_end_and_reservations_follow(self, rule):
        moved = []

        class Eavesdropper(Watcher):
            def decided(self, engine, decisions):
                run = engine.view.running.get(0)
                if run is not None:
                    moved.append((engine.view.now, run.believed_end))

            def finished(self, engine):
                pass

        trace = trace_of(
            [(0.0, 4, 4000.0, 40_000.0)] + [(float(at), 1, 1.0, 9.0) for at in range(1, 4000, 100)]
        )
        streams = Streams(1)
        bound = Failing(8, mtbf=None).bound(streams, 0.0)
        scene = Evolving(share=1.0).scene(np.full(41, 4), streams, bound)
        simulate_recovering(
            Setup(
                trace,
                rigid_truth(trace),
                rigid(rule),
                Dynamic(ToyEstimate(), renew_every=200.0),
                bound,
                watchers=(Checker(), Eavesdropper()),
            ),
            scene,
        )
        assert moved[0][1] == 40_000.0
        late = [end for now, end in moved if now > 3000.0]
        assert np.abs(np.array(late) / 4000.0 - 1.0).max() < 0.15
