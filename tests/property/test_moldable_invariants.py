"""What holds for every moldable rule on any instance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moldable_toys import IN_SECONDS, POLICIES, Believer, named, policy, truth_of
from naive import NaiveScheduler
from test_against_naive import traces
from toys import ToyEstimate, ToyOracle, replay

from sim.engine.invariants import Checker
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.curve import AverageParallelism, EfficiencyAtLeast, Maximum
from sim.policies.allocation.rigid import Fixed, Request
from sim.policies.allocation.turnaround import BestTurnaround
from sim.results.lower_bounds import least_costs, makespan_bound, response_bounds

MACHINE = 6


@st.composite
def moldable_traces(draw):
    """Draw jobs with random curves, superlinear and declining ones among them, some rigid."""
    number = draw(st.integers(1, 12))
    rows, curves, clock = [], [], 0
    for _ in range(number):
        clock += draw(st.integers(0, 5))
        count = draw(st.integers(1, MACHINE))
        times = draw(st.lists(st.integers(1, 20), min_size=MACHINE, max_size=MACHINE))
        curve = None if draw(st.booleans()) else (lambda n, times=times: float(times[n - 1]))
        rows.append((float(clock), count, float(times[count - 1]), draw(st.integers(1, 30))))
        curves.append(curve)
    return rows, curves


def play(name, rows, curves, predictor=None):
    trace, truth = truth_of(rows, curves, MACHINE)
    believed = predictor or ToyOracle(truth)
    return (
        trace,
        truth,
        simulate(
            Setup(trace, truth, named(name), believed, Dedicated(MACHINE), watchers=(Checker(),))
        ),
    )


STATIC = {
    "request": Request(),
    "maximum": Maximum(),
    "fixed": Fixed(3),
    "average_parallelism": AverageParallelism(),
    "efficiency": EfficiencyAtLeast(0.7),
}


@pytest.mark.parametrize("name", [*POLICIES, *STATIC])
@settings(max_examples=20)
@given(jobs=moldable_traces(), factor=st.sampled_from([0.3, 1.0, 1.0, 2.5]))
def test_no_rule_beats_the_lower_bounds(name, jobs, factor):
    rows, curves = jobs
    trace, truth = truth_of(rows, curves, MACHINE)
    oracle = ToyOracle(truth, factor)
    rule = policy("easy", STATIC[name]) if name in STATIC else named(name)
    records = simulate(Setup(trace, truth, rule, oracle, Dedicated(MACHINE), watchers=(Checker(),)))
    least = least_costs(trace, truth, MACHINE)
    submit = records.submit_time
    length = records.end_time.max() - submit[0]
    assert length >= makespan_bound(submit, least, MACHINE) - 1e-6
    bounds = response_bounds(submit, least, MACHINE, fixed_allotment=True)
    assert (records.end_time - submit).mean() >= max(bounds.values()) - 1e-6


@pytest.mark.parametrize("rule", ["none", "skip", "easy", "easy2", "conservative", "replan"])
@settings(max_examples=50)
@given(rows=traces())
def test_open_counts_of_rigid_jobs_give_the_rigid_schedule(rule, rows):
    open_counts = replay(rows, MACHINE, policy(rule, BestTurnaround()), watchers=(Checker(),))
    if rule == "easy2":
        from toys import rigid

        expected = replay(rows, MACHINE, rigid(rule)).start_time.tolist()
    else:
        expected = NaiveScheduler(rows, MACHINE, rule).run()
    assert open_counts.start_time.tolist() == expected


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=12)
@given(rows=traces(), data=st.data())
def test_no_moldable_rule_foresees_an_end(name, rows, data):
    job = data.draw(st.integers(0, len(rows) - 1))
    other = float(data.draw(st.integers(1, 40)))

    def run(runtimes):
        curves = [
            lambda n, seconds=seconds, row=row: seconds * row[1] / n
            for seconds, row in zip(runtimes, rows, strict=True)
        ]
        trace, truth = truth_of(rows, curves, MACHINE)
        return simulate(Setup(trace, truth, named(name), Believer(), Dedicated(MACHINE)))

    runtimes = [row[2] for row in rows]
    one = run(runtimes)
    two = run([*runtimes[:job], other, *runtimes[job + 1 :]])
    lengths = [(r.end_time - r.start_time)[job] for r in (one, two)]
    known = one.start_time[job] + min(lengths)
    early = np.minimum(one.start_time, two.start_time) < known
    assert one.start_time[early].tolist() == two.start_time[early].tolist()
    assert one.allocated[early].tolist() == two.allocated[early].tolist()


@pytest.mark.parametrize("name", POLICIES)
def test_without_a_curve_every_request_stands(name):
    rows = [(0, 2, 10), (1, 4, 5), (1, 1, 7), (3, 6, 2)]
    curves = [lambda n: 20 / n, lambda n: 20 / n, lambda n: 7 / n, lambda n: 12 / n]
    _, _, records = play(name, rows, curves, ToyEstimate())
    assert records.allocated.tolist() == [2, 4, 1, 6]


@pytest.mark.parametrize("name", sorted(POLICIES.keys() - IN_SECONDS))
def test_times_in_other_units_give_the_same_schedule(name):
    rng = np.random.default_rng(7)
    drawn = [
        (float(rng.choice([0, 0, 50, 300])), int(rng.integers(1, MACHINE + 1)),
         float(rng.integers(1, 40)) * 30, float(rng.integers(0, 6)) / 10)
        for _ in range(60)
    ]  # fmt: skip
    submits = np.cumsum([one[0] for one in drawn])

    def schedule(unit):
        curves = [
            lambda n, work=work, serial=serial: unit * work * (serial + (1 - serial) / n)
            for _, _, work, serial in drawn
        ]
        rows = [
            (unit * at, one[1], curve(one[1]))
            for at, one, curve in zip(submits, drawn, curves, strict=True)
        ]
        records = play(name, rows, curves)[2]
        return records.start_time / unit, records.allocated.tolist()

    start, counts = schedule(1.0)
    for unit in (7.0, 3600.0):
        other, same = schedule(unit)
        assert same == counts
        np.testing.assert_allclose(other, start, rtol=1e-9, atol=1e-9)


class Wild(ToyOracle):
    """The truth, but for some jobs nonsense: no time at all, or all the time there is."""

    def curve(self, job, counts):
        told = super().curve(job, counts)
        return told * [1.0, 1e-38, 1e-7, 1e6][job % 4]


@pytest.mark.parametrize("submit", [0.0, 1.7e9])
@pytest.mark.parametrize("name", POLICIES)
def test_beliefs_beyond_reason_harm_no_schedule(name, submit):
    rng = np.random.default_rng(4)
    rows, curves = [], []
    for at in np.cumsum(rng.exponential(3.0, 60)).tolist():
        work, count = float(rng.uniform(1, 60)), int(rng.integers(1, MACHINE + 1))
        rows.append((submit + at, count, work / count))
        curves.append((lambda n, work=work: work / n) if rng.random() < 0.7 else None)
    trace, truth = truth_of(rows, curves, MACHINE)
    machine = Dedicated(MACHINE)
    records = simulate(
        Setup(trace, truth, named(name), Wild(truth), machine, watchers=(Checker(),))
    )
    assert (records.end_time > records.start_time).all()
