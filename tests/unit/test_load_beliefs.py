import numpy as np
import pytest

from predictors.under_load.forecast import NwsMixture
from sim.background.background import BackgroundLoad
from sim.background.load_beliefs import LoadBeliefs, LoadSensors
from sim.background.load_forecast import LoadForecast
from sim.background.models import RoundLoad
from sim.errors import ConfigError
from workloads.streams import Streams

pytestmark = pytest.mark.fast


def sensors(nodes=8, per="processor", per_node=1):
    load = BackgroundLoad(
        nodes,
        Streams(2),
        RoundLoad((0.1, 0.7)),
        RoundLoad((0.1, 0.8), at_once=(1, 8)),
        processors_per_node=per_node,
    )
    return LoadSensors(load, Streams(2), per=per)


def links_of(beliefs, now):
    """The believed bandwidth of each link that is not believed free."""
    _, source, destination, available = (column.tolist() for column in beliefs.standing(now).links)
    return dict(zip(zip(source, destination, strict=True), available, strict=True))


def test_forecasts_are_the_mixtures_whatever_the_steps():
    watched = sensors()
    beliefs = LoadBeliefs(watched)
    for now in (50.0, 1000.0, 1010.0, 9000.0):
        found = beliefs.standing(now).cpu
    expected = NwsMixture(8).update(watched.readings(0, 76)).forecast()
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(LoadBeliefs(sensors()).standing(9000.0).cpu, expected)


def test_nothing_after_the_last_sample_is_seen():
    beliefs = LoadBeliefs(sensors())
    before = beliefs.standing(1200.0).cpu, links_of(beliefs, 1200.0)
    assert (beliefs.standing(1319.9).cpu == before[0]).all()
    assert links_of(beliefs, 1319.9) == before[1]
    assert (beliefs.standing(2400.0).cpu != before[0]).any()


def test_link_forecasts_equal_those_of_complete_series():
    watched = sensors(nodes=4)
    beliefs, last = LoadBeliefs(watched, forget=1e9), 60
    found = links_of(beliefs, last * 120.0)
    series = {link: np.ones(last + 1) for link in found}
    for sample in range(last + 1):
        _, *seen = watched.links(sample, sample + 1)
        for a, b, value in zip(*seen, strict=True):
            series[(a, b)][sample] = value
    for link, values in series.items():
        expected = NwsMixture(1).update(values[:, None]).forecast()[0]
        assert found[link] == pytest.approx(expected, rel=1e-12)


def test_links_long_free_are_forgotten_and_memory_stays_bounded():
    beliefs = LoadBeliefs(sensors(nodes=30), forget=1200.0)
    beliefs.standing(60_000.0)
    assert len(beliefs._links._known) < 60
    assert len(LoadBeliefs(sensors(nodes=30), forget=1e9).standing(60_000.0).links.source) > 300


def test_the_last_value_is_the_last_sample():
    watched = sensors()
    beliefs = LoadBeliefs(watched, "last")
    np.testing.assert_array_equal(beliefs.standing(1250.0).cpu, watched.load.cpu_at(1200.0)[0])
    present = beliefs.met(1250.0, np.arange(8))[0].item(3)
    assert present == watched.load.effective(range(8), 1200.0, 1200.0)[1]


def test_the_oracle_averages_over_the_time_to_come():
    watched = sensors()
    forecast = LoadForecast(LoadBeliefs(watched, "oracle"))
    forecast.now = 500.0
    expected = watched.load.average_cpu(range(8), 500.0, 1400.0)
    np.testing.assert_array_equal(forecast.cpu(900.0), expected)


def test_processors_of_a_node_share_its_reading():
    beliefs = LoadBeliefs(sensors(nodes=7, per="node", per_node=2))
    cpu = beliefs.standing(2000.0).cpu
    assert len(cpu) == 7
    assert cpu[0] == cpu[1] != cpu[2]


@pytest.mark.parametrize("keywords", [{"belief": "hope"}, {"forget": 0.0}])
def test_unknown_beliefs_are_refused(keywords):
    with pytest.raises(ConfigError):
        LoadBeliefs(sensors(), **keywords)
