"""heSRPT and EQUI against the exact figures of policies.md 4.4."""

import numpy as np
import pytest
from toys import ToyOracle, ToyTruth, trace_of

from sim.engine.invariants import Checker
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.easy import Easy
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from sim.policies.reallocation.equi import Equipartition
from sim.policies.reallocation.hesrpt import HeSrpt, thetas

pytestmark = pytest.mark.fast

SIZES = np.array([7.0, 5.0, 2.0, 1.5, 1.0])
SCALE = 10**6
FLOWS = {
    ("hesrpt", 0.3): 11.23517,
    ("hesrpt", 0.5): 8.57009,
    ("hesrpt", 0.8): 5.24149,
    ("equi", 0.3): 11.33042,
    ("equi", 0.5): 8.93777,
    ("equi", 0.8): 6.37782,
}


@pytest.mark.parametrize(
    ("number", "shares"),
    [(3, np.array([1, 3, 5]) / 9), (4, np.array([1, 3, 5, 7]) / 16)],
)
def test_shares_of_the_square_root(number: int, shares: np.ndarray) -> None:
    work = np.arange(number, 0, -1.0)
    np.testing.assert_allclose(thetas(work, 0.5), shares, rtol=1e-12)
    np.testing.assert_allclose(thetas(work[::-1], 0.5), shares[::-1], rtol=1e-12)


def test_weights_of_the_slowdown() -> None:
    work = np.array([4.0, 1.0])
    found = thetas(work, 0.5, 1.0 / work)
    np.testing.assert_allclose(found, [0.2**2, 1 - 0.2**2], rtol=1e-12)


def optimal_flow(p: float) -> float:
    """Return the optimum for 10 processors in closed form (4.4)."""
    k = np.arange(1, SIZES.size + 1)
    with np.errstate(divide="ignore"):
        omega = 1.0 / ((k / (k - 1.0)) ** (1.0 / (1.0 - p)) - 1.0)
    omega[0] = 0.0
    return float((SIZES * (k * (1 + omega) ** p - (k - 1) * omega**p)).sum() / 10**p)


@pytest.mark.parametrize(("rule", "p"), FLOWS)
def test_flows_in_the_engine(rule: str, p: float) -> None:
    """Ten processors in a million pieces each; times stretched so that flows stay the same."""
    processors = 10 * SCALE
    serial = SIZES * float(SCALE) ** p
    number = SIZES.size
    rows = [(0.0, 1, time) for time in serial]
    truth = ToyTruth(
        lambda job, n: serial[job] / float(n) ** p,
        np.ones(number, np.int64),
        np.full(number, processors),
    )
    rules = {"hesrpt": HeSrpt(exponent=p), "equi": Equipartition()}
    policy = Policy(FirstComeFirstServed(), Easy(), Request(), rules[rule])
    records = simulate(
        Setup(
            trace_of(rows),
            truth,
            policy,
            ToyOracle(truth),
            Dedicated(processors),
            watchers=(Checker(),),
        )
    )
    flow = float((records.end_time - records.submit_time).sum())
    assert flow == pytest.approx(FLOWS[rule, p], rel=1e-5)
    if rule == "hesrpt":
        assert flow == pytest.approx(optimal_flow(p), rel=1e-5)
        assert (np.diff(records.end_time) < 0).all()  # the smallest first
    assert records.counters["events"] == number + 1  # one arrival and the ends: no belief expires
