"""The engine against closed forms of queueing theory (policies.md 5 and 4.1)."""

import numpy as np
import pytest
from toys import ToyOracle, ToyTruth, replay, rigid, trace_of

from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.none import NoBackfill
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from sim.policies.reallocation.equi import Equipartition


def poisson(rng: np.random.Generator, number: int, rate: float) -> np.ndarray:
    return np.cumsum(rng.exponential(1 / rate, number))


def waits(servers: int, width: int, load: float, service: np.ndarray, rng) -> np.ndarray:
    rate = load * servers / (width * service.mean())
    submit = poisson(rng, service.size, rate)
    rows = [(s, width, t) for s, t in zip(submit, service, strict=True)]
    records = replay(rows, servers, rigid("none"))
    return (records.start_time - records.submit_time)[service.size // 10 :]


def batch_interval(values: np.ndarray, batches: int = 20) -> tuple[float, float]:
    """Return mean and half-width of its 99 % interval by batch means."""
    means = np.array([batch.mean() for batch in np.array_split(values, batches)])
    return float(means.mean()), float(2.861 * means.std(ddof=1) / np.sqrt(batches))


@pytest.mark.parametrize(
    ("servers", "load", "must_wait", "mean_wait"),
    [(8, 0.7, 0.27060, 0.11275), (16, 0.9, 0.59134, 0.36959)],
)
def test_serial_jobs_are_an_mmc_queue(
    servers: int, load: float, must_wait: float, mean_wait: float
) -> None:
    rng = np.random.default_rng(11)
    waited = waits(servers, 1, load, rng.exponential(1.0, 150_000), rng)
    share, half = batch_interval(waited > 0)
    assert abs(share - must_wait) < half < 0.08
    mean, half = batch_interval(waited)
    assert abs(mean - mean_wait) < half < 0.15


def test_jobs_as_wide_as_the_machine_are_an_mg1_queue() -> None:
    """Pollaczek-Khinchine: E[W] = load · E[S] · (1 + C²) / (2 (1 - load))."""
    rng = np.random.default_rng(5)
    service = rng.uniform(0.0, 2.0, 60_000) + 1e-9
    mean, half = batch_interval(waits(16, 16, 0.7, service, rng))
    expected = 0.7 * (1 + 1 / 3) / (2 * 0.3)
    assert abs(mean - expected) < half < 0.13


def test_equal_shares_of_linear_jobs_are_processor_sharing() -> None:
    """M/G/1-PS: E[response] = E[S] / (1 - load), whatever the law of S."""
    rng = np.random.default_rng(3)
    processors, load, number = 1000, 0.6, 12_000
    serial = processors * np.where(rng.random(number) < 0.9, 0.2, 8.2) * 1.0
    service = serial / processors  # mean 1, far from exponential
    submit = poisson(rng, number, load / service.mean())
    trace = trace_of([(s, processors, t) for s, t in zip(submit, service, strict=True)])
    whole = np.full(number, processors)
    truth = ToyTruth(lambda job, n: serial[job] / n, whole, whole)
    policy = Policy(FirstComeFirstServed(), NoBackfill(), Request(), Equipartition())
    records = simulate(Setup(trace, truth, policy, ToyOracle(truth), Dedicated(processors)))
    response = (records.end_time - records.submit_time)[number // 10 :]
    mean, half = batch_interval(response)
    assert abs(mean - service.mean() / (1 - load)) < half < 0.6
    held = (records.allocations.end_time - records.allocations.start_time) * (
        records.allocations.processors
    )
    areas = np.bincount(records.allocations.job, held, number)
    np.testing.assert_allclose(areas, serial, rtol=1e-9)
