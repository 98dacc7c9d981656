"""SA that measures where the predictor asks for it."""

import numpy as np
import pytest
from published_rules.explore import Explore
from toys import ToyOracle, ToyTruth, trace_of

from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.backfill.conservative import Conservative
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed


def amdahl(job: int, n: int) -> float:
    return 4 + 12 / n


class Asking(ToyOracle):
    """An oracle that wants one count measured."""

    want: int | None = None

    def wanted(self, job: int, nprocs: int) -> int | None:
        return self.want


def allocated(want: int | None, rows: list, **options: float) -> list[int]:
    trace = trace_of(rows)
    reference = trace.jobs["requested_processors"].to_numpy()
    truth = ToyTruth(amdahl, reference, np.full(len(rows), 8))
    oracle = Asking(truth)
    oracle.want = want
    policy = Policy(FirstComeFirstServed(), Conservative(), Explore(**options))
    return simulate(Setup(trace, truth, policy, oracle, Dedicated(8))).allocated.tolist()


def test_runs_on_the_count_asked_for_if_the_machine_is_idle() -> None:
    # SA takes 8 processors (5.5 s); 3 would take 8 s, within twice that.
    assert allocated(3, [(0, 2, 10)]) == [3]
    assert allocated(None, [(0, 2, 10)]) == [8]


def test_not_if_it_takes_too_long() -> None:
    assert allocated(1, [(0, 2, 10)]) == [8]  # 16 s is more than 11
    assert allocated(1, [(0, 2, 10)], patience=3.0) == [1]


def test_not_if_the_machine_is_busy() -> None:
    # The second finds 5 of 8 free: more than half; 6 of 8 is asked for.
    rows = [(0, 2, 10), (1, 2, 10)]
    assert allocated(3, rows) == [3, 3]
    assert allocated(3, rows, idle=0.75)[0] == 3
    assert allocated(3, rows, idle=0.75)[1] != 3


def test_not_on_counts_that_the_job_cannot_use() -> None:
    assert allocated(9, [(0, 2, 10)]) == [8]


@pytest.mark.parametrize("bad", [{"idle": 1.5}, {"patience": 0.5}])
def test_refuses(bad: dict) -> None:
    name, value = next(iter(bad.items()))
    with pytest.raises(ValueError, match=f"{name} must be .*, got {value}"):
        Explore(**bad)
