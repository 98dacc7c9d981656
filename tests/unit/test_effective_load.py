"""The load that a set of processors meets: the slowest of them at each instant."""

from itertools import combinations

import numpy as np
import pytest

from predictors.under_load.load_aware import Parts
from sim.background.background import BackgroundLoad, LoadAhead, LoadedLinks
from sim.background.load_beliefs import LoadBeliefs, LoadPast, LoadSensors
from sim.background.load_forecast import LoadForecast
from sim.background.models import BurstyLoad, PeriodicLoad, RoundLoad
from tests.loads import conditions, end_of
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
        end = end_of(load, own, 700.0, *work)
        assert end - 700.0 == pytest.approx(3000.0 / load.effective(own, 700.0, end)[part])


def test_at_one_instant_it_is_the_least_there_and_then():
    load = load_of("rounds")
    links = load.links_at(np.array([500.0]), load.inside([0, 1]))
    expected = load.cpu_at(500.0, [0, 1]).min(), links.available.min(initial=1.0)
    assert load.effective([0, 1], 500.0, 500.0) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_whoever_knows_the_load_knows_what_believed_parts_would_take(kind):
    """Exact for what it is an oracle of: the parts may be anybody's, the load is true."""
    load = load_of(kind)
    forecast = LoadForecast(LoadBeliefs(LoadSensors(load, Streams(1)), "oracle"))
    forecast.now = 4000.0
    own, parts = np.array([0, 1, 5]), Parts(*np.array([[50.0], [2000.0], [300.0]]))
    found = forecast.runtime(parts, own, "effective", delay=60.0)
    end = end_of(load, own, 4110.0, 2000.0, 300.0)
    assert found == pytest.approx(50.0 + end - 4110.0, rel=1e-12)
    assert forecast.runtime(Parts(*np.array([[50.0], [0.0], [0.0]])), own, "effective") == 50.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("horizon", [40.0, 700.0, 6000.0])
def test_a_job_of_unknown_processors_meets_the_average_over_all_sets(kind, horizon):
    load = load_of(kind)
    forecast = LoadForecast(LoadBeliefs(LoadSensors(load, Streams(1)), "oracle"))
    forecast.now = 2000.0
    for count in (1, 3, 6):
        sets = [np.array(each) for each in combinations(range(6), count)]
        true = np.mean([load.effective(own, 2000.0, 2000.0 + horizon) for own in sets], axis=0)
        cpu, bandwidth = conditions(forecast, np.array([count]), np.array([horizon]))
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
    assert ahead.average(60.0, 1e12)[0].shape == (6,)


def forecast_of(load, belief, now, **more):
    forecast = LoadForecast(LoadBeliefs(LoadSensors(load, Streams(1), **more), belief))
    forecast.now = now
    return forecast


def computing(seconds):
    return Parts(np.zeros(1), np.array([seconds]), np.zeros(1))


@pytest.mark.parametrize("belief", ["forecast", "mean"])
@pytest.mark.parametrize("kind", ["rounds", "bursts"])
def test_wide_long_jobs_are_believed_at_the_pace_of_their_slowest_processor(belief, kind):
    """The least of the averages believes them three times as fast."""
    load = BackgroundLoad(64, Streams(3), *KINDS[kind])
    rng, found = np.random.default_rng(1), []
    for day in (1.0, 1.5, 2.0):
        forecast = forecast_of(load, belief, day * 86400.0)
        for count in (16, 48):
            own = np.sort(rng.choice(64, count, replace=False))
            for form in ("effective", "min_avg_avail"):
                believed = forecast.runtime(computing(7200.0), own, form)
                true = end_of(load, own, forecast.now, 7200.0, 0.0) - forecast.now
                found.append((form, believed / true))
    effective, least = (
        np.array([ratio for name, ratio in found if name == form])
        for form in ("effective", "min_avg_avail")
    )
    assert np.abs(np.log(effective)).mean() < 0.12
    assert least.mean() < 0.45


def test_the_least_of_forecasts_is_corrected_by_what_it_was_worth():
    """Alternating loads: no forecast says which processor is slow, samples say that one is."""
    past = LoadPast(2)
    for at in range(400):
        past.add(np.array([[0.2, 1.0] if at % 2 else [1.0, 0.2]]), np.array([[0.6, 0.6]]))
    (both, believed), (one, _) = past.least(np.array([0, 1])), past.least(np.array([1]))
    assert both.mean() == pytest.approx(0.2)
    assert one.mean() == pytest.approx(0.6)
    assert believed == pytest.approx(0.6, rel=0.01)
    assert past.ordered[0] == pytest.approx([0.2, 1.0])
    first, believed = past.least_of_first(np.array([1, 0]))
    assert first == pytest.approx([0.6, 0.2])
    assert believed == pytest.approx([0.6, 0.6], rel=0.01)


def test_the_past_keeps_its_latest_samples_in_order_and_no_more():
    past = LoadPast(2**19)
    for first, last in ((0, 7), (7, 40)):
        readings = np.repeat(1.0 - np.arange(first, last)[:, None] / 100, 2**19, axis=1)
        past.add(readings, np.ones(readings.shape))
    kept, _ = past.least(np.array([7]))
    assert kept == pytest.approx(1.0 - np.arange(8, 40) / 100)


def test_links_that_were_loaded_are_remembered_for_the_nodes_asked_about():
    past = LoadPast(4)
    for at in range(10):
        pair = (np.array([0]), np.array([1])) if at % 2 else (np.array([2]), np.array([3]))
        past.add_links(LoadedLinks(np.array([1]), *pair, np.array([0.4])))
    left, right = np.array([1, 1, 0, 0], bool), np.array([0, 1, 1, 0], bool)
    assert past.lowest_link(left).tolist() == [1.0, 0.4] * 5
    assert past.lowest_link(right).tolist() == [1.0] * 10
    assert past.lost == pytest.approx([0.6])


def test_waiting_for_processors_and_links_in_turn_takes_longer_than_either_average_says():
    load = load_of("rounds", 8)
    own, parts = np.arange(8), Parts(*np.array([[0.0], [20_000.0], [20_000.0]]))
    forecast = forecast_of(load, "mean", 90_000.0)
    true = end_of(load, own, 90_000.0, 20_000.0, 20_000.0) - 90_000.0
    cpu, bandwidth = load.effective(own, 90_000.0, 90_000.0 + true)
    assert 20_000 / cpu + 20_000 / bandwidth < 0.95 * true
    assert forecast.runtime(parts, own, "effective") == pytest.approx(true, rel=0.1)


def test_the_paper_s_figure_is_still_believed_where_it_is_asked_for():
    load = load_of("rounds")
    forecast = forecast_of(load, "oracle", 4000.0)
    own = np.array([0, 1, 5])
    seconds = forecast.runtime(computing(1000.0), own, "min_avg_avail")
    assert seconds == pytest.approx(
        1000.0 / load.average_cpu(own, 4000.0, 4000.0 + seconds).min(), rel=0.06
    )
    assert seconds < 0.9 * forecast.runtime(computing(1000.0), own, "effective")


@pytest.mark.parametrize("belief", ["forecast", "last", "mean", "oracle"])
def test_whoever_gets_the_fastest_processors_is_believed_to_meet_them(belief):
    load = BackgroundLoad(32, Streams(3), *KINDS["rounds"])
    forecast = forecast_of(load, belief, 90_000.0)
    counts, horizon = np.array([1, 8, 24]), np.full(3, 60.0)
    anybody = conditions(forecast, counts, horizon)[0]
    forecast.picks_processors = True
    assert (conditions(forecast, counts, horizon)[0] >= anybody - 1e-12).all()
    with forecast.usual():
        usual = conditions(forecast, counts, horizon)[0]
    forecast.picks_processors = False
    with forecast.usual():
        assert usual == pytest.approx(conditions(forecast, counts, horizon)[0])


@pytest.mark.parametrize("belief", ["forecast", "last", "mean"])
def test_sensors_of_nodes_serve_too(belief):
    load = BackgroundLoad(10, Streams(3), *KINDS["rounds"], processors_per_node=4)
    forecast = forecast_of(load, belief, 90_000.0, per="node")
    forecast.picks_processors = True
    cpu, bandwidth = conditions(forecast, np.array([1, 5, 10]), np.full(3, 600.0))
    assert ((cpu > 0) & (cpu <= 1) & (bandwidth > 0) & (bandwidth <= 1)).all()
    assert forecast.runtime(computing(600.0), np.array([0, 9]), "effective") >= 600.0
