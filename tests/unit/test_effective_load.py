"""The load that a set of processors meets: the slowest of them at each instant."""

from itertools import combinations

import numpy as np
import pytest

from predictors.load_aware import Parts
from sim.load import BackgroundLoad
from sim.load_ahead import LoadAhead
from sim.load_beliefs import LoadBeliefs
from sim.load_models import BurstyLoad, PeriodicLoad, RoundLoad
from sim.load_outlook import LoadOutlook
from sim.load_sensors import LoadSensors
from workloads.streams import Streams

KINDS = {
    "rounds": (RoundLoad(), RoundLoad((0.02, 0.8), (180.0, 480.0), (1, 4))),
    "bursts": (BurstyLoad(), BurstyLoad()),
    "cycle": (PeriodicLoad(period=3600.0, step=60.0), PeriodicLoad(period=3600.0, step=60.0)),
}


def load_of(kind, processors=6):
    return BackgroundLoad(processors, Streams(5), *KINDS[kind], chunk=5000.0)


def finely(load, own, start, end, parts=200_000):
    """Average the least CPU and bandwidth over instants, without the compiled loops."""
    times = start + (end - start) * (np.arange(parts) + 0.5) / parts
    rows = load.loaded_links(own, start, end)
    free = np.ones(parts)
    for low, high, _, _, left in rows:
        inside = (low <= times) & (times < high)
        free[inside] = np.minimum(free[inside], left)
    return load.cpu_at(times, own).min(axis=1).mean(), free.mean()


@pytest.mark.parametrize("kind", KINDS)
def test_the_effective_load_is_the_average_of_the_minimum(kind):
    load, own = load_of(kind), np.array([0, 2, 3, 5])
    found = load.effective(own, 1234.5, 9876.5)
    assert found == pytest.approx(finely(load, own, 1234.5, 9876.5), rel=1e-3)
    assert found[0] < load.average_cpu(own, 1234.5, 9876.5).min()


@pytest.mark.parametrize("kind", KINDS)
def test_work_of_one_kind_lasts_its_seconds_over_the_effective_load(kind):
    load, own = load_of(kind), np.array([1, 4, 5])
    for part, work in ((0, (3000.0, 0.0)), (1, (0.0, 3000.0))):
        end = load.completion(own, 700.0, *work)
        assert end - 700.0 == pytest.approx(3000.0 / load.effective(own, 700.0, end)[part])


def test_at_one_instant_it_is_the_least_there_and_then():
    load = load_of("rounds")
    expected = load.cpu_at(500.0, [0, 1]).min(), load.bandwidth_at([0, 1], 500.0)
    assert load.effective([0, 1], 500.0, 500.0) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_whoever_knows_the_load_knows_what_believed_parts_would_take(kind):
    """Exact for what it is an oracle of: the parts may be anybody's, the load is true."""
    load = load_of(kind)
    outlook = LoadOutlook(LoadBeliefs(LoadSensors(load, Streams(1)), "oracle"))
    outlook.now = 4000.0
    own, parts = np.array([0, 1, 5]), Parts(*np.array([[50.0], [2000.0], [300.0]]))
    found = outlook.runtime(parts, own, "effective", delay=60.0)
    end = load.completion(own, 4110.0, 2000.0, 300.0)
    assert found == pytest.approx(50.0 + end - 4110.0, rel=1e-12)
    assert outlook.runtime(Parts(*np.array([[50.0], [0.0], [0.0]])), own, "effective") == 50.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("horizon", [40.0, 700.0, 6000.0])
def test_a_job_of_unknown_processors_meets_the_average_over_all_sets(kind, horizon):
    load = load_of(kind)
    outlook = LoadOutlook(LoadBeliefs(LoadSensors(load, Streams(1)), "oracle"))
    outlook.now = 2000.0
    for count in (1, 3, 6):
        sets = [np.array(each) for each in combinations(range(6), count)]
        true = np.mean([load.effective(own, 2000.0, 2000.0 + horizon) for own in sets], axis=0)
        cpu, bandwidth = outlook.expected(np.array([count]), np.array([horizon]))
        assert cpu[0] == pytest.approx(true[0], rel=0.1)
        assert bandwidth[0] == pytest.approx(true[1], rel=0.2)


def test_the_order_of_the_load_ahead_is_read_once_an_instant():
    class Counted(BackgroundLoad):
        reads = 0

        def cpu_at(self, times, processors=None):
            self.reads += 1
            return super().cpu_at(times, processors)

    load = Counted(6, Streams(5), *KINDS["rounds"])
    ahead = LoadAhead(load)
    for horizon in (1100.0, 1500.0, 2000.0):
        ahead.average(0.0, horizon)
    assert load.reads == 1
    ahead.average(60.0, 2000.0)
    assert load.reads == 2
    assert ahead.average(60.0, 1e12).cpu.shape == (6,)
