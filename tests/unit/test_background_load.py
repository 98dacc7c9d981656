"""Background load: its generators' figures, the integration of progress, what sensors see."""

from itertools import pairwise

import numpy as np
import pytest

from sim.background.background import KEPT_CHUNKS, BackgroundLoad
from sim.background.load_beliefs import LoadSensors
from sim.background.models import BurstyLoad, ConstantLoad, PeriodicLoad, RoundLoad
from sim.errors import ConfigError
from sim.machine.shared import Shared
from tests.loads import done_by, end_of
from workloads.streams import Streams

KINDS = {
    "rounds": (RoundLoad(), RoundLoad((0.02, 0.8), at_once=(1, 8))),
    "overlap": (RoundLoad(overlap=True), RoundLoad((0.02, 0.8), at_once=(1, 8), overlap=True)),
    "bursty": (BurstyLoad(), BurstyLoad()),
    "periodic": (PeriodicLoad(), PeriodicLoad(pairs=20)),
}


def background(kind, processors=8, seed=3, **keywords):
    cpu, network = KINDS[kind]
    return BackgroundLoad(processors, Streams(seed), cpu=cpu, network=network, **keywords)


def stepwise(load, processors, start, end, computation, communication, step):
    """Work done by adding up many small steps."""
    middles = np.arange(start, end, step) + step / 2
    slowest = load.cpu_at(middles, processors).min(axis=1)
    rows = load.loaded_links(processors, start, end)
    during = (rows[:, 0] <= middles[:, None]) & (middles[:, None] < rows[:, 1])
    free = np.where(during, rows[:, 4], 1.0).min(axis=1, initial=1.0)
    return (step / (computation / slowest + communication / free)).sum()


@pytest.mark.parametrize("kind", KINDS)
def test_progress_equals_a_fine_step_integration(kind):
    load, own = background(kind, chunk=2000.0), [1, 2, 5]
    done = done_by(load, own, 700.0, 5200.0, 9000.0, 4000.0)
    expected = stepwise(load, own, 700.0, 5200.0, 9000.0, 4000.0, 0.5)
    assert done == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_work_is_conserved_over_any_cuts(kind):
    load, own = background(kind, chunk=3000.0), [0, 3, 4, 7]
    end = end_of(load, own, 123.4, 1500.0, 700.0)
    cuts = [123.4, *np.sort(np.random.default_rng(1).uniform(123.4, end, 20)), end]
    parts = [done_by(load, own, a, b, 1500.0, 700.0) for a, b in pairwise(cuts)]
    assert sum(parts) == pytest.approx(1.0, abs=1e-9)
    half = cuts[9]
    left = 1.0 - sum(parts[:9])
    assert end_of(load, own, half, 1500.0, 700.0, work=left) == pytest.approx(end, abs=1e-6)


def test_constant_load_gives_the_closed_form():
    load = BackgroundLoad(6, Streams(1), ConstantLoad(0.4), ConstantLoad(0.25), chunk=500.0)
    seconds = 1000.0 / 0.4 + 300.0 / 0.25
    assert end_of(load, [0, 5], 50.0, 1000.0, 300.0) == pytest.approx(50.0 + seconds, rel=1e-12)
    assert end_of(load, [2], 0.0, 1000.0, 300.0) == pytest.approx(1000 / 0.4 + 300, rel=1e-12)
    assert done_by(load, [0, 5], 50.0, 50.0 + seconds / 4, 1000.0, 300.0) == pytest.approx(0.25)


def test_a_free_machine_runs_at_full_speed():
    load = BackgroundLoad(4, Streams(1), cpu=None, network=None)
    assert end_of(load, [0, 1, 2, 3], 10.0, 60.0, 40.0) == pytest.approx(110.0, rel=1e-12)


def test_processors_of_one_node_share_no_link():
    load = BackgroundLoad(4, Streams(1), cpu=None, network=ConstantLoad(0.1), processors_per_node=2)
    assert end_of(load, [0, 1], 0.0, 50.0, 50.0) == pytest.approx(100.0, rel=1e-12)
    assert end_of(load, [1, 2], 0.0, 50.0, 50.0) == pytest.approx(550.0, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_load_depends_on_its_stream_alone_not_on_the_questions(kind):
    asked, fresh = background(kind, chunk=1000.0), background(kind, chunk=1000.0)
    end_of(asked, [0], 9000.0, 10.0, 0.0)
    times = np.arange(0.0, 12_000.0, 37.0)
    np.testing.assert_array_equal(asked.cpu_at(times), fresh.cpu_at(times))
    rows = asked.loaded_links(range(8), 0.0, 12_000.0)
    np.testing.assert_array_equal(rows, fresh.loaded_links(range(8), 0.0, 12_000.0))
    other = background(kind, seed=4, chunk=1000.0)
    assert not np.array_equal(other.cpu_at(times), fresh.cpu_at(times))


def test_a_border_whose_quotient_rounds_down_is_passed():
    """(origin + k·span − origin) / span may fall short of k: jobs across it once never ended."""
    for origin in np.random.default_rng(7).uniform(-1e5, 1e6, 40).tolist():
        load = BackgroundLoad(1, Streams(1), ConstantLoad(0.5), None, origin=origin)
        assert end_of(load, [0], origin, 129600.0, 0.0) == pytest.approx(origin + 259200.0)
        assert load.average_cpu([0], origin, origin + 259200.0).tolist() == pytest.approx([0.5])


@pytest.mark.parametrize("kind", KINDS)
def test_the_chunk_length_does_not_matter(kind):
    short, long = background(kind, chunk=777.0), background(kind, chunk=50_000.0)
    times = np.arange(0.0, 20_000.0, 29.0)
    np.testing.assert_array_equal(short.cpu_at(times), long.cpu_at(times))
    ends = [end_of(load, range(8), 400.0, 900.0, 500.0) for load in (short, long)]
    assert ends[0] == pytest.approx(ends[1], rel=1e-12)


def test_rounds_have_the_papers_figures():
    load = background("rounds", processors=8)
    cpu = load.cpu_at(np.arange(0.0, 500 * 330.0, 5.0))
    loaded = cpu < 1
    assert cpu[loaded].min() >= 0.065
    assert cpu[loaded].max() <= 0.72
    assert cpu[loaded].mean() == pytest.approx((0.065 + 0.72) / 2, abs=0.02)
    assert loaded.any(axis=1).all()
    assert loaded.mean() == pytest.approx(4.5 / 8, abs=0.03)
    starts = np.flatnonzero((np.diff(cpu, axis=0) != 0).any(axis=1)) * 5.0
    lengths = np.diff(starts)
    assert lengths.min() >= 175
    assert lengths.max() <= 485
    assert lengths.mean() == pytest.approx(330, rel=0.05)


def test_network_rounds_load_one_to_eight_links_between_distinct_nodes():
    rows = background("rounds").loaded_links(range(8), 0.0, 80_000.0)
    starts, counts = np.unique(rows[:, 0], return_counts=True)
    assert set(counts) == set(range(1, 9))
    assert (rows[:, 2] != rows[:, 3]).all()
    assert rows[:, 4].min() >= 0.02
    assert rows[:, 4].max() <= 0.80
    pairs = {tuple(pair) for pair in rows[:, 2:4]}
    assert len(pairs) == 56
    for start in starts[:20]:
        now = rows[rows[:, 0] == start]
        assert len({tuple(pair) for pair in now[:, 2:4]}) == len(now)


def test_overlapping_processors_change_on_their_own():
    cpu = background("overlap").cpu_at(np.arange(0.0, 60_000.0, 5.0))
    moved = np.diff(cpu, axis=0) != 0
    assert (moved.sum(axis=1)[moved.any(axis=1)] == 1).mean() > 0.8
    assert (cpu < 1).mean() == pytest.approx(0.5, abs=0.05)


def test_bursts_have_a_heavy_tail_within_their_bounds():
    model = BurstyLoad(loaded=(30.0, 7200.0), tail=1.1)
    lengths = model._bursts(np.random.default_rng(2), (20_000,))
    assert lengths.min() >= 30
    assert lengths.max() <= 7200
    expected = (30 / 300) ** 1.1  # P(longer than 300 s) under the unbounded law
    bound = (30 / 7200) ** 1.1
    assert (lengths > 300).mean() == pytest.approx((expected - bound) / (1 - bound), rel=0.1)


def test_the_links_of_loaders_never_carry_two_loads_at_once():
    rows = background("bursty", processors=4).loaded_links(range(4), 0.0, 80_000.0)
    for pair in np.unique(rows[:, 2:4], axis=0):
        own = rows[(rows[:, 2:4] == pair).all(axis=1)]
        own = own[np.argsort(own[:, 0])]
        assert (own[1:, 0] >= own[:-1, 1]).all()


def test_periodic_load_repeats_after_its_period():
    load = BackgroundLoad(3, Streams(1), PeriodicLoad(period=6000.0, step=300.0), None)
    times = np.arange(10.0, 6000.0, 100.0)
    np.testing.assert_allclose(load.cpu_at(times), load.cpu_at(times + 6000.0), rtol=1e-12)
    assert 0.05 <= load.cpu_at(times).min() < 0.9


def test_averages_equal_those_of_many_readings():
    load, own = background("rounds", chunk=1000.0), [2, 4, 6]
    fine = np.arange(300.0, 4300.0, 0.25) + 0.125
    expected = load.cpu_at(fine, own).mean(axis=0)
    np.testing.assert_allclose(load.average_cpu(own, 300.0, 4300.0), expected, rtol=1e-3)


def test_sensors_sample_at_the_start_and_every_two_minutes():
    load = background("rounds")
    seen = LoadSensors(load, Streams(1)).during([1, 2], 50.0, 50.0 + 241.0)
    np.testing.assert_array_equal(seen.cpu, load.cpu_at([50.0, 170.0, 290.0], [1, 2]))
    short = LoadSensors(load, Streams(1)).during([1, 2], 50.0, 60.0)
    assert short.cpu.shape == (1, 2)


def test_sensors_per_node_average_the_processors_of_the_node():
    load = background("rounds", processors=8, processors_per_node=4)
    sensors = LoadSensors(load, Streams(1), per="node")
    seen = sensors.during([1, 2, 5], 0.0, 300.0).cpu
    cpu = load.cpu_at([0.0, 120.0, 240.0])
    expected = np.stack((cpu[:, :4].mean(axis=1), cpu[:, 4:].mean(axis=1)), axis=1)
    np.testing.assert_allclose(seen, expected)
    assert sensors.readings(0, 5).shape == (5, 2)


def test_link_samples_find_what_is_loaded_at_that_moment():
    load = background("rounds")
    seen = LoadSensors(load, Streams(1)).during(range(8), 100.0, 3000.0)
    for least, time in zip(seen.lowest_link, np.arange(100.0, 3000.0, 120.0), strict=True):
        assert least == load.effective(range(8), time, time)[1]


def test_link_samples_average_each_link_over_all_samples():
    load = background("rounds")
    times = np.arange(100.0, 3000.0, 120.0)
    found = load.links_at(times, np.ones(8, bool))
    lost = np.bincount(found.source * 8 + found.destination, 1.0 - found.available)
    seen = LoadSensors(load, Streams(1)).during(range(8), 100.0, 3000.0)
    np.testing.assert_allclose(seen.links, 1.0 - lost[lost > 0] / len(times), rtol=1e-12)


def test_noise_is_the_same_whoever_asks_and_of_the_given_size():
    load = BackgroundLoad(50, Streams(1), ConstantLoad(0.5), ConstantLoad(0.5))
    sensors = LoadSensors(load, Streams(1), noise=0.1)
    machine = sensors.readings(0, 40)
    assert np.log(machine / 0.5).std() == pytest.approx(0.1, rel=0.1)
    assert np.log(machine / 0.5).mean() == pytest.approx(0.0, abs=0.01)
    own = sensors.during([7, 9], 0.0, 4800.0)
    np.testing.assert_array_equal(own.cpu, machine[:, [7, 9]])
    assert len(np.unique(machine)) == machine.size
    link = sensors.links(3, 5)
    assert link.counts.tolist() == [2450, 2450]
    np.testing.assert_array_equal(sensors.links(4, 5).available, link.available[2450:])
    assert (link.available != 0.5).all()
    other = LoadSensors(load, Streams(2), noise=0.1).readings(0, 40)
    assert not np.array_equal(other, machine)


@pytest.mark.parametrize(
    "build",
    [
        lambda: RoundLoad(available=(0.0, 0.5)),
        lambda: RoundLoad(available=(0.5, 1.2)),
        lambda: RoundLoad(duration=(480.0, 180.0)),
        lambda: RoundLoad(at_once=(3, 2)),
        lambda: BurstyLoad(tail=0.0),
        lambda: BurstyLoad(loaders=0),
        lambda: PeriodicLoad(depth=(0.5, 1.0)),
        lambda: PeriodicLoad(step=0.0),
        lambda: ConstantLoad(0.0),
        lambda: BackgroundLoad(0, Streams(1)),
        lambda: BackgroundLoad(1, Streams(1), chunk=0.0),
        lambda: BackgroundLoad(2, Streams(1)).cpu_at(-1.0, [0]),
        lambda: Shared(2, sample_every=0.0),
        lambda: Shared(2, sample_per="rack"),
        lambda: Shared(2, sample_noise=-1.0),
    ],
)
def test_figures_out_of_range_are_refused(build):
    with pytest.raises(ConfigError):
        build()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RoundLoad(duration=(100.0, np.inf)), r"duration .* upper < inf, got \(100.0, inf"),
        (lambda: BurstyLoad(loaded=(30.0, np.inf)), "loaded must be a pair"),
        (lambda: BurstyLoad(free=(30.0, np.inf)), "free must be a pair"),
        (lambda: BurstyLoad(tail=np.nan), "tail must be positive and finite, or null, got nan"),
        (lambda: RoundLoad(at_once=(1,)), r"at_once must be a pair of whole numbers.* got \[1\]"),
        (lambda: RoundLoad(at_once=(1, 2, 3)), "at_once must be a pair"),
        (lambda: RoundLoad(at_once=(None, 3)), "at_once must be a pair"),
        (lambda: RoundLoad(at_once=(1.5, 3)), "at_once must be a pair"),
        (lambda: RoundLoad(at_once=(0, np.nan)), "at_once must be a pair"),
        (lambda: PeriodicLoad(period=np.nan), "period must be at least 0.01 seconds"),
        (lambda: PeriodicLoad(period=0.0), "period must be .* got 0"),
        (lambda: ConstantLoad(np.nan), "available must be above 0 and at most 1, got nan"),
        (lambda: Shared(2, sample_every=0.0), "sample_every must be .* got 0"),
        (lambda: Shared(2, sample_noise=np.inf), "sample_noise must be .* got inf"),
    ],
)
def test_the_refusal_names_the_figure_and_what_is_allowed(build, message):
    with pytest.raises(ConfigError, match=message):
        build()


def test_counts_of_numpy_are_counts():
    assert RoundLoad(at_once=(np.int64(0), np.int64(2))).at_once == (0, 2)


def test_noise_leaves_free_links_free():
    load = background("rounds")
    exact = LoadSensors(load, Streams(1)).during(range(3), 0.0, 3000.0).lowest_link
    noisy = LoadSensors(load, Streams(1), noise=0.2).during(range(3), 0.0, 3000.0).lowest_link
    assert (exact == 1).any()
    assert (noisy[exact == 1] == 1).all()
    assert (noisy[exact < 1] != exact[exact < 1]).all()


@pytest.mark.parametrize("kind", [RoundLoad(), BurstyLoad(), PeriodicLoad()])
def test_load_that_was_forgotten_is_drawn_again_and_only_the_latest_is_kept(kind, monkeypatch):
    monkeypatch.setattr("sim.background.background.KEPT_NUMBERS", 0)
    load = BackgroundLoad(3, Streams(1), kind, kind, chunk=1000.0)
    times = np.random.default_rng(1).uniform(0, 30_000, 20).tolist()
    for time in times:
        alone = BackgroundLoad(3, Streams(1), kind, kind, chunk=1000.0)
        np.testing.assert_array_equal(load.cpu_at(time), alone.cpu_at(time))
        own = ([0, 2], time, 900.0, 90.0)
        assert end_of(load, *own) == end_of(alone, *own)
    ahead = BackgroundLoad(3, Streams(1), kind, kind, chunk=1000.0)
    for day in range(200):
        ahead.cpu_at(1000.0 * day)
    assert sorted(ahead._chunks) == list(range(200 - KEPT_CHUNKS, 200))
