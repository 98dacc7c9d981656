"""Evolving applications: cells, noise that adds up, independence, cost."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from predictors.cycles.checkpointing import place_checkpoints
from workloads.errors import WorkloadError
from workloads.evolving.cycle_costs import CYCLE_MACHINES, CycleMachine, Network
from workloads.evolving.phases import BLOCK, DECKS, EvolvingApplication, EvolvingJobs, EvolvingRun
from workloads.streams import Streams

pytestmark = pytest.mark.fast

ITANIUM2 = CYCLE_MACHINES["itanium2"]
TIMING_A = DECKS["timing_a"]


def run(deck="timing_a", processors=16, number=0, cycles=None, key=42):
    return EvolvingRun(DECKS[deck], ITANIUM2, processors, key, number, cycles)


def test_decks_of_table_1():
    assert [DECKS[name].cells for name in ("timing_a", "timing_b", "timing_c")] == [
        4_000,
        4_000,
        80_000,
    ]
    assert all(deck.cycles == 200 for deck in DECKS.values())


def test_noiseless_timing_a_places_the_papers_first_checkpoints():
    # Section 4: 16 Itanium-2 processors, M = 10 min, δ = 10 s: after 27 and 43.
    growth = 1.0 + (TIMING_A.growth - 1.0) / 200 * np.arange(200)
    seconds = TIMING_A.seconds(ITANIUM2, 4000.0 * growth, 16)
    places = place_checkpoints(np.cumsum(seconds), 109.545)
    assert places[:2].tolist() == [27, 43]
    assert np.diff(places)[-1] < 10


def test_pieces_and_cycles_agree():
    evolving = run(cycles=777)
    ends = evolving.cumulative(16)
    assert ends.size == 777
    assert (np.diff(ends) > 0).all()
    assert ends[evolving.edges[1:] - 1].tolist() == evolving.piece_ends(16).tolist()


def test_total_is_met_to_the_bit_and_keeps_the_shape():
    for number in range(30):
        evolving = run(number=number)
        stretched = evolving.cumulative(16, total=86_400.1)
        assert stretched[-1] == 86_400.1
        assert stretched[evolving.edges[1:] - 1].tolist() == (
            evolving.piece_ends(16, 86_400.1).tolist()
        )
    assert stretched == pytest.approx(evolving.cumulative(16) * 86_400.1 / evolving.total(16))


def test_same_run_whatever_is_asked_first():
    first, second = run(number=3), run(number=3)
    second.cumulative(4)
    assert first.cumulative(8).tolist() == second.cumulative(8).tolist()
    assert run(number=4).cumulative(8)[0] != first.cumulative(8)[0]
    assert run(number=3, key=43).cumulative(8)[0] != first.cumulative(8)[0]


def noise_on(machine, count):
    """Return the noise of each cycle of one run on so many processors."""
    evolving = EvolvingRun(TIMING_A, machine, 16, 42)
    return np.diff(evolving.cumulative(count), prepend=0.0) / evolving.noiseless(count)


def test_noise_is_one_draw_of_which_few_processors_feel_less():
    steady = replace(ITANIUM2, drift=0.0, calm=0.6)
    alone, some, many, more = (noise_on(steady, n) - 1.0 for n in (1, 4, 16, 64))
    assert alone == pytest.approx(0.6 * many)
    assert some == pytest.approx(0.8 * many)
    assert more == pytest.approx(many)
    drifting = replace(ITANIUM2, noise=1e-9, drift=0.1, calm=0.6)
    assert np.log(noise_on(drifting, 1)) == pytest.approx(
        0.6 * np.log(noise_on(drifting, 16)), abs=1e-6
    )


def test_noise_does_not_depend_on_the_processors_where_one_is_as_busy_as_many():
    busy = replace(ITANIUM2, calm=1.0)
    assert noise_on(busy, 1) == pytest.approx(noise_on(busy, 5))
    assert noise_on(busy, 1) == pytest.approx(noise_on(busy, 16))


def test_messages_by_hand():
    network = Network((1.0, 1.0, 10.0), (0.0, 0.0, 5.0))
    machine = CycleMachine(
        "by hand", 2, (1, 2), (1, 1), (1.0, 1.0), network, messages=2, reductions=3,
        bidirectional=1.5, nic=0.5, distance=0.1, placement=0.2,
    )  # fmt: skip
    # A face of 100 cells has 800 bytes; both processes of a node share its interface.
    two = 2 * (10.0 + 800 * 5e-3 * 1.5 * 1.5) + 3 * 1 * 1.0
    assert machine.communication(1000.0, 2) * 1e6 == pytest.approx(two)
    eight = 2 * (10.0 + 800 * 5e-3 * 1.5 * 1.5) + 3 * 3 * 1.0
    far = eight * (1 + 0.1 * 2)  # four nodes
    assert machine.communication(1000.0, 8) * 1e6 == pytest.approx(far)
    lucky = far * np.exp(-0.2)
    assert machine.communication(1000.0, 8, deviate=-1.0) * 1e6 == pytest.approx(lucky)
    # On one node there is nothing to be lucky about.
    assert machine.communication(1000.0, 2, deviate=-1.0) * 1e6 == pytest.approx(two)
    assert machine.communication(1000.0, 1, deviate=-1.0) == 0.0


def test_runs_differ_by_where_they_lie():
    far = replace(ITANIUM2, placement=0.5)
    times = [EvolvingRun(TIMING_A, far, 16, 42, k).noiseless(16)[0] for k in range(200)]
    plain = EvolvingRun(TIMING_A, replace(far, placement=0.0), 16, 42).noiseless(16)[0]
    computation = float(far.computation(4000.0, 16))
    spread = np.std(np.log((np.array(times) - computation) / (plain - computation)))
    assert spread == pytest.approx(0.5, rel=0.15)


def test_noise_has_the_stated_spread_within_and_between_blocks():
    quiet = CycleMachine("quiet", 1, (1, 2), (1, 1), (1.0,), ITANIUM2.network, noise=0.05, drift=0)
    flat = EvolvingApplication("flat", 1.0, 1.0, adapt_every=7.0)
    evolving = EvolvingRun(flat, quiet, 1, key=1, cycles=40_000)
    noise = np.diff(evolving.cumulative(1), prepend=0.0)
    assert noise.mean() == pytest.approx(1.0, abs=0.002)
    assert stats.kstest(noise, stats.gamma(400, scale=1 / 400).cdf).pvalue > 0.01
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 0.02
    drifting = CycleMachine("d", 1, (1, 2), (1, 1), (1.0,), ITANIUM2.network, noise=0.01, drift=0.1)
    slow = EvolvingRun(flat, drifting, 1, key=1, cycles=100 * BLOCK).cumulative(1)
    blocks = np.log(np.diff(slow[BLOCK - 1 :: BLOCK]) / BLOCK)
    assert blocks.std() == pytest.approx(0.1, rel=0.25)


def test_cells_change_only_at_adaptations_and_grow_as_stated():
    final, events = [], []
    for number in range(200):
        evolving = run(number=number)
        cells = evolving.cells_per_processor(16)
        assert cells[0] == 4000
        events.append(np.count_nonzero(np.diff(cells)))
        final.append(cells[-1] / 4000)
    assert np.mean(final) == pytest.approx(TIMING_A.growth, rel=0.1)
    assert np.mean(events) == pytest.approx(199 / TIMING_A.adapt_every, rel=0.05)


def test_a_piece_begins_where_the_cells_change():
    evolving = run(cycles=3000)
    inside = evolving.edges[1:-1]
    changed = np.diff(evolving.cells) != 0
    assert changed[inside % BLOCK != 0].all()
    assert not changed[inside % BLOCK == 0].all()


def test_cells_are_spread_over_the_processors():
    evolving = run(processors=16)
    wide, narrow = evolving.cells_per_processor(32), evolving.cells_per_processor(8)
    assert wide.tolist() == (narrow / 4).tolist()
    assert evolving.total(32) < evolving.total(16) < evolving.total(8)


def test_growth_is_over_the_run_whatever_its_length():
    final = [run(number=k, cycles=5000).cells_per_processor(16)[-1] / 4000 for k in range(20)]
    assert np.mean(final) == pytest.approx(TIMING_A.growth, rel=0.1)


def test_machine_by_hand():
    machine = CycleMachine(
        "toy", 2, (100, 400), (1.0, 3.0), (1.0, 1.5), Network((1, 2, 3), (0, 0, 0)), imbalance=0.1
    )
    assert machine.computation(200.0, 1) == pytest.approx(200 * 2.0)
    assert machine.computation(200.0, 8) == pytest.approx(200 * 2.0 * 1.5 * 1.3)
    assert machine.communication(200.0, 1) == 0.0
    # a face of 1000 cells is 100 cells, 800 bytes; sums of 8 bytes, 3 levels
    assert machine.communication(1000.0, 8) * 1e6 == pytest.approx(300 * 3 + 100 * 3 * 1)


def test_benchmark_is_what_an_offline_model_reads():
    table = TIMING_A.benchmark(ITANIUM2, [1e3, 1e4], np.random.default_rng(0))
    assert list(table.columns) == ["cells", "processes_per_node", "runtime"]
    true = TIMING_A.cost * ITANIUM2.computation(table["cells"].to_numpy()[:2], 1)
    assert table["runtime"].to_numpy()[:2] == pytest.approx(true, rel=0.2)
    assert table["processes_per_node"].tolist() == [1, 1, 2, 2]


def test_jobs_evolve_by_share_and_independently_of_each_other():
    counts = np.full(2000, 8)
    runs = EvolvingJobs(share=0.3).assign(counts, Streams(1))
    assert runs.evolving.mean() == pytest.approx(0.3, abs=0.04)
    assert set(runs.deck) == {0, 1, 2}
    job = int(np.flatnonzero(runs.evolving)[0])
    assert runs.run(job).cumulative(8).tolist() == runs.run(job).cumulative(8).tolist()
    still = int(np.flatnonzero(~runs.evolving)[0])
    with pytest.raises(WorkloadError, match="does not evolve"):
        runs.run(still)


def test_ten_thousand_cycles_add_up_to_the_total():
    runs = EvolvingJobs(cycles=10_000).assign(np.full(3, 16), Streams(1))
    for job in range(3):
        ends = runs.run(job).cumulative(16, total=86_400.0)
        assert len(ends) == 10_000
        assert (np.diff(ends, prepend=0.0) > 0).all()
        assert ends[-1] == pytest.approx(86_400.0)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: run(processors=0), "processors must be at least 1"),
        (lambda: run(key=-1), "key must be at least 0"),
        (lambda: run().piece_ends(0), "nprocs must be at least 1"),
        (lambda: run().piece_ends(1, total=0.0), "total must be positive"),
        (lambda: EvolvingJobs(share=2.0), "share must lie"),
        (lambda: EvolvingJobs(decks=("timing_d",)), "no deck 'timing_d'; there are timing_a"),
        (lambda: EvolvingJobs(decks=()), "at least one of"),
        (lambda: EvolvingJobs(machine="abacus"), "no cycle machine 'abacus'"),
    ],
)
def test_bad_values_are_named(call, named):
    with pytest.raises(WorkloadError, match=named):
        call()
