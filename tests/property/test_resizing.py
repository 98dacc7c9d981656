"""Work is conserved over any sequence of changes, whatever they cost."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import ToyOracle, ToyTruth, trace_of

from sim.engine.engine import Engine
from sim.engine.invariants import Checker
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.errors import PolicyError
from sim.machine.base import Dedicated
from sim.state.decisions import Decision, Resize, Start, WakeAt
from sim.state.records import Records
from sim.state.view import View

P = 16
Change = tuple[float, int, int, float]


class Script:
    """Starts jobs at once and resizes them at given times, to given counts, at given costs."""

    def __init__(self, changes: Sequence[Change]) -> None:
        self.changes = sorted(changes)

    def begin(self, view: View) -> "Script":
        self.view = view
        self.left = list(self.changes)
        self.done: list[tuple[float, int, float]] = []
        return self

    def decide(self) -> list[Decision]:
        view, decisions = self.view, []
        free = view.free
        for job in view.arrived:
            decisions.append(Start(job, 2))
            free -= 2
        while self.left and self.left[0][0] <= view.now:
            _, job, count, cost = self.left.pop(0)
            run = view.running.get(job)
            if run is not None and count - run.processors <= free:
                if any(isinstance(d, Resize) and d.job == job for d in decisions):
                    continue
                decisions.append(Resize(job, count, None, cost))
                free -= count - run.processors
                if count != run.processors or cost:
                    self.done.append((view.now, job, cost))
        if self.left:
            decisions.append(WakeAt(self.left[0][0]))
        return decisions


def truth_of(work: Sequence[float], power: float) -> ToyTruth:
    number = len(work)
    return ToyTruth(
        lambda job, n: work[job] / float(n) ** power, np.full(number, 2), np.full(number, P)
    )


def play(
    work: Sequence[float], power: float, script: Script, check: bool = True
) -> tuple[Records, ToyTruth]:
    truth = truth_of(work, power)
    rows = [(0.0, 2, truth.runtime(job, 2)) for job in range(len(work))]
    records = simulate(
        Setup(
            trace_of(rows),
            truth,
            script,
            ToyOracle(truth),
            Dedicated(P),
            watchers=(Checker(),) * check,
        )
    )
    return records, truth


def paused(changes: list[tuple[float, float]], start: float, end: float) -> float:
    """Return how much of [start, end] lies in pauses that queue up behind each other."""
    resumes, lost = -np.inf, 0.0
    for now, cost in changes:
        begin = max(resumes, now)
        resumes = begin + cost
        lost += max(0.0, min(resumes, end) - max(begin, start))
    return lost


changes = st.lists(
    st.tuples(
        st.floats(0.5, 90.0),
        st.integers(0, 3),
        st.integers(1, P),
        st.sampled_from([0.0, 0.0, 0.3, 7.5]),
    ),
    max_size=30,
)


@settings(max_examples=150)
@given(
    work=st.lists(st.floats(1.0, 200.0), min_size=1, max_size=4),
    power=st.sampled_from([0.3, 0.7, 1.0]),
    changes=changes,
)
def test_work_is_conserved(work: list[float], power: float, changes: list[Change]) -> None:
    script = Script([c for c in changes if c[1] < len(work)])
    records, truth = play(work, power, script)
    held = records.allocations
    for job in range(len(work)):
        mine = [(now, cost) for now, who, cost in script.done if who == job]
        allocations = np.flatnonzero(held.job == job)
        share = sum(
            (
                held.end_time[k]
                - held.start_time[k]
                - paused(mine, held.start_time[k], held.end_time[k])
            )
            / truth.runtime(job, int(held.processors[k]))
            for k in allocations
        )
        assert share == pytest.approx(1.0, abs=1e-9)
    waited = sum(
        paused([(n, c) for n, w, c in script.done if w == job], 0.0, records.end_time[job])
        for job in range(len(work))
    )
    assert records.counters["reallocation_time"] == pytest.approx(waited, abs=1e-9)
    assert records.counters["events"] <= 1 + 2 * len(work) + len(script.changes)


@settings(max_examples=50)
@given(times=st.lists(st.floats(0.5, 40.0), max_size=10))
def test_a_free_change_to_the_same_count_changes_nothing(times: list[float]) -> None:
    still, _ = play([30.0, 80.0], 0.5, Script([]))
    asked, _ = play([30.0, 80.0], 0.5, Script([(t, k % 2, 2, 0.0) for k, t in enumerate(times)]))
    np.testing.assert_array_equal(asked.end_time, still.end_time)
    np.testing.assert_array_equal(asked.allocations.start_time, still.allocations.start_time)
    assert asked.counters["reallocation_time"] == 0.0


def test_a_change_by_hand() -> None:
    """100 s on one processor, S(n) = n: 25 s on 2, then a pause of 5 s, then 5 processors."""
    records, _ = play([100.0], 1.0, Script([(25.0, 0, 5, 5.0)]))
    assert records.end_time[0] == 25.0 + 5.0 + 50.0 / 5
    assert records.counters["reallocation_time"] == 5.0
    assert records.counters["reallocation_area"] == 25.0
    assert records.allocations.processors.tolist() == [2, 5]


def test_a_second_change_during_a_pause_adds_to_it() -> None:
    records, _ = play([100.0], 1.0, Script([(25.0, 0, 5, 5.0), (27.0, 0, 10, 4.0)]))
    assert records.end_time[0] == 27.0 + 3.0 + 4.0 + 50.0 / 10
    assert records.counters["reallocation_time"] == 9.0
    assert records.counters["reallocation_area"] == 2.0 * 5 + 7.0 * 10


def test_refused_changes() -> None:
    for change, words in (
        ((1.0, 0, 0, 0.0), "to 0 processors"),
        ((1.0, 0, 4, -1.0), "cost must be at least 0 s, got -1"),
    ):
        with pytest.raises(PolicyError, match=words):
            play([100.0], 1.0, Script([change]), check=False)


class Learner(ToyOracle):
    learns = True

    def attach(self, jobs: object) -> None:
        self.seen: list[tuple[int, float, float | None]] = []

    def observe(self, observation: object) -> bool:
        self.seen.append((observation.nprocs, observation.runtime, observation.more.get("share")))
        return False


def test_runs_that_changed_are_observed_by_segments() -> None:
    """Each count shows its own true runtime, pauses left out; short segments show nothing."""
    truth = truth_of([100.0, 60.0], 0.5)
    rows = [(0.0, 2, truth.runtime(job, 2)) for job in range(2)]
    learner = Learner(truth)
    script = Script([(10.0, 0, 4, 3.0), (20.0, 0, 9, 0.0), (21.0, 0, 4, 2.0)])
    records = simulate(Setup(trace_of(rows), truth, script, learner, Dedicated(P)))
    by_job = {1: [(2, truth.runtime(1, 2), None)]}
    whole = learner.seen
    assert (2, pytest.approx(by_job[1][0][1]), None) in whole
    segments = [(n, t, s) for n, t, s in whole if s is not None]
    assert [n for n, _, _ in segments] == [2, 4]  # one second on 9 is too short to tell
    for n, seconds, _ in segments:
        assert seconds == pytest.approx(truth.runtime(0, n), rel=1e-12)
    shares = sum(share for _, _, share in segments)
    assert shares == pytest.approx(1 - 1.0 / truth.runtime(0, 9), rel=1e-9)
    assert records.counters["reallocation_time"] == 5.0


@pytest.mark.parametrize(
    ("lost", "left"), [(((0, 0),), 5), (((1, 2), (5, 5)), 3), (((0, 5),), None)]
)
def test_a_run_can_shrink_off_lost_processors(lost: tuple, left: int | None) -> None:
    """What a failed node takes along goes to nobody; the work done so far is kept."""
    truth = truth_of([120.0], 1.0)
    outcome: list[bool] = []

    class Failing(Script):
        engine: Engine

        def decide(self) -> list[Decision]:
            view = self.view
            if view.now == 5.0:
                run = view.running[0]
                outcome.append(self.engine.resizer.shrink_off(run, lost, 2.0, view.now))
                return []
            if view.arrived:
                return [Start(0, 6), WakeAt(5.0)]
            return []

    policy = Failing([])
    rows = [(0.0, 6, 20.0)]
    engine = Engine(Setup(trace_of(rows), truth, policy, ToyOracle(truth), Dedicated(P)))
    policy.engine = engine
    records = engine.run()
    assert outcome == [left is not None]
    if left is None:
        assert records.end_time[0] == 20.0
        return
    assert records.end_time[0] == pytest.approx(5.0 + 2.0 + 90.0 / left)
    assert records.allocations.processors.tolist() == [6, left]
    gone = sum(high - low + 1 for low, high in lost)
    free = sum(high - low + 1 for low, high in engine.view.machine.idle())
    assert free == engine.view.free == P - gone


def test_a_limit_is_used_up_stretch_by_stretch() -> None:
    """Requested: 50 s on 2; 25 s on 2 use half, the other half are 12.5 s on 4 processors.

    The job would need 60 s on 2 processors.
    """
    work = 120.0
    truth = truth_of([work], 1.0)
    script = Script([(25.0, 0, 4, 0.0)])
    records = simulate(
        Setup(
            trace_of([(0.0, 2, 60.0, 50.0)]),
            truth,
            script,
            ToyOracle(truth),
            Dedicated(P),
            overrun="kill",
        )
    )
    assert records.status == ["killed"]
    assert records.end_time[0] == pytest.approx(25.0 + 12.5)
