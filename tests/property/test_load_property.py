"""Progress under any background load: conserved, ordered, equal to small steps."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.background.background import BackgroundLoad
from sim.background.models import BurstyLoad, PeriodicLoad, RoundLoad
from tests.loads import done_by, end_of
from workloads.streams import Streams

NODES = 6
MODELS = st.sampled_from(
    [
        RoundLoad((0.05, 0.9), (20.0, 90.0), (1, 4)),
        RoundLoad((0.05, 0.9), (20.0, 90.0), (0, 3), overlap=True),
        BurstyLoad((0.1, 0.6), (5.0, 300.0), (5.0, 60.0), loaders=4),
        PeriodicLoad((0.2, 0.9), period=400.0, step=25.0, spread=1.0),
        None,
    ]
)


@st.composite
def jobs(draw):
    load = BackgroundLoad(
        NODES,
        Streams(draw(st.integers(0, 2**31))),
        cpu=draw(MODELS),
        network=draw(MODELS),
        chunk=draw(st.sampled_from([45.0, 300.0, 86400.0])),
        processors_per_node=draw(st.sampled_from([1, 2])),
    )
    own = sorted(draw(st.sets(st.integers(0, NODES - 1), min_size=1)))
    start = draw(st.floats(0, 500))
    computation = draw(st.floats(0.5, 300))
    communication = draw(st.floats(0, 200))
    return load, own, start, computation, communication


@given(jobs(), st.lists(st.floats(0, 1), max_size=5))
@settings(max_examples=60)
def test_work_integrates_to_the_job(job, shares):
    load, own, start, computation, communication = job
    end = end_of(load, own, start, computation, communication)
    cuts = [start, *(start + (end - start) * share for share in sorted(shares)), end]
    done = [done_by(load, own, a, b, computation, communication) for a, b in pairwise(cuts)]
    assert sum(done) == pytest.approx(1.0, abs=1e-9)
    assert end - start >= computation + communication - 1e-6


@given(jobs())
@settings(max_examples=40)
def test_progress_equals_a_fine_step_integration(job):
    load, own, start, computation, communication = job
    end = start + 200.0
    middles = np.linspace(start, end, 8001)[:-1] + 0.0125
    slowest = load.cpu_at(middles, own).min(axis=1)
    rows = load.loaded_links(own, start, end)
    during = (rows[:, 0] <= middles[:, None]) & (middles[:, None] < rows[:, 1])
    free = np.where(during, rows[:, 4], 1.0).min(axis=1, initial=1.0)
    work = 5e3 * np.array([computation, communication])
    expected = (0.025 / (work[0] / slowest + work[1] / free)).sum()
    assert done_by(load, own, start, end, *work) == pytest.approx(expected, rel=5e-3)


@given(jobs(), st.floats(1, 5))
@settings(max_examples=30)
def test_more_processors_or_more_work_never_end_sooner(job, factor):
    load, own, start, computation, communication = job
    end = end_of(load, own, start, computation, communication)
    wider = end_of(load, range(NODES), start, computation, communication)
    heavier = end_of(load, own, start, factor * computation, factor * communication)
    assert wider >= end - 1e-6
    assert heavier >= end - 1e-6


@given(jobs())
@settings(max_examples=30)
def test_averages_lie_between_the_extremes(job):
    load, own, start, *_ = job
    averages = load.average_cpu(own, start, start + 300.0)
    seen = load.cpu_at(np.arange(start, start + 300.0, 0.5), own)
    assert (averages >= seen.min(axis=0) - 0.01).all()
    assert (averages <= seen.max(axis=0) + 0.01).all()
    assert 0 < load.effective(own, start, start + 300.0)[1] <= 1
