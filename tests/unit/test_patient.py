"""Waiting for faster processors that running jobs are about to leave."""

import numpy as np
import pytest

from predictors.in_loop.oracle import Oracle
from sim.background.recorded import RecordedLoad
from sim.engine.invariants import Checker
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.shared import OracleUnderLoad, Shared
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.easy import Easy
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from sim.policies.placement import Fastest, Patient
from tests.toys import rigid_truth, trace_of
from workloads.streams import Streams

pytestmark = pytest.mark.fast


@pytest.fixture
def play(tmp_path):
    """Replay jobs under exact beliefs on processors of constant, given speeds."""

    def run(rows, speeds, rule, changes=()):
        path = tmp_path / "load.csv"
        lines = ["start_time,end_time,node,available_cpu"]
        for node, speed in enumerate(speeds):
            points = [(0, speed), *((at, s) for at, n, s in changes if n == node)]
            ends = [at for at, _ in points[1:]] + [1_000_000]
            lines += [f"{at},{end},{node},{s}" for (at, s), end in zip(points, ends, strict=True)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        cpu = RecordedLoad(str(path))
        machine = Shared(
            len(speeds), cpu=cpu, network=None, belief="oracle", history=0.0, streams=Streams(1)
        )
        trace = trace_of(rows)
        truth = rigid_truth(trace)
        truth.share = 0.0
        oracle = Oracle()
        oracle.bind_truth(truth.runtimes, 0)
        policy = Policy(FirstComeFirstServed(), rule, Request(), placement=Fastest())
        predictor = OracleUnderLoad(oracle, truth)
        records = simulate(Setup(trace, truth, policy, predictor, machine, watchers=(Checker(),)))
        nodes = dict(zip(records.stretches.job.tolist(), records.stretches.nodes, strict=True))
        return records, [nodes[job] for job in range(len(rows))]

    return run


FAST_IS_TAKEN = [(0, 1, 100), (1, 1, 200), (2, 1, 5)]
SPEEDS = (0.1, 0.1, 1.0)


def test_a_job_waits_for_a_fast_processor_and_a_short_one_passes(play):
    # At 1 s the second job would take 2,000 s on what is free, and ends at 300 s if it waits for
    # the first one's processor. The third ends by 52 s on a slow one: before the wait is over.
    records, nodes = play(FAST_IS_TAKEN, SPEEDS, Patient())
    assert nodes == [((2, 2),), ((2, 2),), ((0, 0),)]
    assert records.start_time.tolist() == [0, 100, 2]
    assert records.end_time == pytest.approx([100, 300, 52])
    eager, _ = play(FAST_IS_TAKEN, SPEEDS, Easy())
    assert eager.start_time.tolist() == [0, 1, 2]
    assert eager.end_time[1] == pytest.approx(2001)


def test_who_outlasts_the_wait_leaves_what_is_wanted(play):
    # The second job waits for processor 1, and wants the free one, 2, with it. The third runs
    # beyond 100 s, so it may have what the head leaves over, the slow one.
    records, nodes = play([(0, 1, 100), (1, 2, 200), (2, 1, 300)], (0.1, 1.0, 1.0), Patient())
    assert nodes == [((1, 1),), ((1, 2),), ((0, 0),)]
    assert records.start_time.tolist() == [0, 100, 2]
    assert records.end_time == pytest.approx([100, 300, 3002])


@pytest.mark.parametrize(
    ("rule", "starts"),
    [
        (Patient(longest=99.0), 100),
        (Patient(longest=98.0), 1),  # the processor is free too late
        (Patient(margin=0.85), 100),  # waiting saves 85.05 % of 2,000 s
        (Patient(margin=0.86), 1),
    ],
)
def test_how_long_and_for_how_much_a_job_is_put_off(play, rule, starts):
    records, _ = play(FAST_IS_TAKEN[:2], SPEEDS, rule)
    assert records.start_time[1] == starts


def test_load_that_passes_on_the_same_processors_is_not_waited_for(play):
    # From 60 s on all is fast: who starts at once still ends first.
    records, _ = play([(0, 2, 50)], (0.1, 0.1), Patient(), [(60, 0, 1.0), (60, 1, 1.0)])
    assert records.start_time[0] == 0
    assert records.end_time[0] == pytest.approx(104)


def test_load_to_come_on_what_is_free_is_waited_out_elsewhere(play):
    # What is free slows down at 50 s, for good; the other processor comes free at 40 s.
    rows = [(0, 1, 40), (1, 1, 500)]
    records, nodes = play(rows, (1.0, 1.0), Patient(), [(50, 1, 0.1)])
    assert nodes[1] == ((0, 0),)
    assert records.start_time[1] == 40
    assert records.end_time[1] == pytest.approx(540)


def test_on_equal_processors_it_is_easy(play):
    rng = np.random.default_rng(5)
    submit = np.cumsum(rng.exponential(40.0, 80))
    rows = [
        (float(at), int(n), float(t))
        for at, n, t in zip(
            submit, rng.integers(1, 5, 80), rng.exponential(100.0, 80) + 1.0, strict=True
        )
    ]
    patient, own = play(rows, [0.5] * 4, Patient())
    easy, theirs = play(rows, [0.5] * 4, Easy())
    assert patient.start_time.tolist() == easy.start_time.tolist()
    assert own == theirs
