"""Forecasts of load taken in by blocks are, to the bit, those of plain code, value by value."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictors.under_load.forecast import ADAPTIVE, GAINS, TIE, TRIM, NwsMixture
from predictors.under_load.load_aware import MOST_ROUNDS, ROUNDS, SETTLED, Parts
from sim.background.background import BackgroundLoad
from sim.background.load_beliefs import (
    DROP_AT_ONCE,
    LinkMixture,
    LoadBeliefs,
    LoadPast,
    LoadSensors,
)
from sim.background.load_forecast import LoadForecast
from sim.background.models import RoundLoad
from tests.loads import conditions
from workloads.streams import Streams

pytestmark = pytest.mark.fast

LEVELS = st.sampled_from([0.065, 0.1, 0.25, 0.3, 0.3 + 1e-15, 0.7, 1.0])
VALUES = st.sampled_from([1, 60, 120]).flatmap(
    lambda least: st.lists(LEVELS | st.floats(0.05, 1.0), min_size=least, max_size=160)
)


def total(values):
    """Add up from the first value on."""
    added = 0.0
    for value in values:
        added += value
    return added


def median(values):
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def trimmed(values):
    cut = int(TRIM * len(values))
    kept = sorted(values)[cut : len(values) - cut]
    return total(kept) / len(kept)


class PlainSeries:
    """The forecasters and the selector over 50 values, all history at hand."""

    def __init__(self):
        self.values, self.errors, self.sums = [], [], [0.0] * 18
        self.windows = [row[2] for row in ADAPTIVE]
        self.standing, self.levels = [], []

    def medians(self, a):
        low, high, _, offset = ADAPTIVE[a]
        now = self.windows[a]
        wanted = (now, max(low, now - offset), min(high, now + offset))
        return [median(self.values[-window:]) for window in wanted]

    def adapt(self, value):
        for a, (low, high, *_) in enumerate(ADAPTIVE):
            if len(self.values) >= high:
                now, less, more = ((each - value) ** 2 for each in self.medians(a))
                if less < now and less <= more:
                    self.windows[a] = max(low, self.windows[a] - 1)
                elif more < now:
                    self.windows[a] = min(high, self.windows[a] + 1)

    def take(self, value):
        if self.values:
            errors = [abs(each - value) for each in self.standing]
            if len(self.errors) >= 50:
                self.sums = [s - e for s, e in zip(self.sums, self.errors[-50], strict=True)]
            self.sums = [s + e for s, e in zip(self.sums, errors, strict=True)]
            self.errors.append(errors)
            self.adapt(value)
        self.values.append(value)
        self.levels = [
            old + gain * (value - old)
            for old, gain in zip(self.levels or [value] * 8, GAINS, strict=True)
        ]
        newest = self.values[::-1]
        self.standing = [value, total(self.values) / len(self.values), *self.levels]
        self.standing += [median(newest[:31]), median(newest[:5])]
        self.standing += [total(newest[:n]) / len(newest[:n]) for n in (31, 5)]
        self.standing += [trimmed(newest[:31]), trimmed(newest[:51])]
        self.standing += [self.medians(a)[0] for a in range(2)]
        return self

    def forecast(self):
        if not self.values:
            return 1.0
        limit = min(self.sums) + TIE * max(self.sums)
        best = next(k for k, each in enumerate(self.sums) if each <= limit)
        return min(max(self.standing[best], 0.01), 1.0)


@settings(max_examples=25)
@given(VALUES, st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_the_mixture_equals_plain_code(values, blocks):
    plain, expected = PlainSeries(), []
    for value in values:
        expected.append(plain.forecast())
        plain.take(value)
    mixture, found, rest = NwsMixture(1), [], np.array(values)[:, None]
    for length in [*blocks, len(values)]:
        found += mixture.follow(rest[:length])[:, 0].tolist() if len(rest) else []
        rest = rest[length:]
    assert found == expected
    assert mixture.forecast().tolist() == [plain.forecast()]
    assert mixture.primaries()[0].tolist() == plain.standing


LOOKS = st.lists(
    st.dictionaries(st.integers(0, 30), LEVELS.filter(lambda value: value < 1), max_size=6),
    min_size=1,
    max_size=60,
)


@settings(max_examples=25)
@given(LOOKS, st.sampled_from([0.5, 3.0, 7.5]), st.integers(1, 20), st.integers(0, 80))
def test_links_equal_histories_that_are_kept_one_by_one(looks, forget, block, more):
    """With as many other links as there is no room for at first."""
    looks = [{**look, **{100 + at: 0.5 for at in range(more)}} for look in looks]
    links, free, known = LinkMixture("mae_50", forget), [], {}
    for at, look in enumerate(looks):
        for key in look:
            known.setdefault(key, [list(free), at])[1] = at
        free.append(1.0)
        for key, (history, _) in known.items():
            history.append(look.get(key, 1.0))
        stale = [key for key, (_, last) in known.items() if last < at - forget]
        if len(stale) >= DROP_AT_ONCE:
            known = {key: kept for key, kept in known.items() if key not in stale}
    for first in range(0, len(looks), block):
        some = looks[first : first + block]
        keys = np.array([key for look in some for key in look], np.int64)
        values = np.array([value for look in some for value in look.values()])
        links.take(np.array([len(look) for look in some]), keys, values)
    fresh = [key for key, (_, last) in known.items() if last >= len(looks) - 1 - forget]
    alone = {
        key: NwsMixture(1).update(np.array(known[key][0])[:, None]).forecast().item()
        for key in fresh
    }
    found, left = links.believed()
    assert dict(zip(found.tolist(), left.tolist(), strict=True)) == alone
    assert len(links._known) == len(known)


def settled(parts, conditions):
    """Look up each runtime alone, round by round, and halve in on what does not settle."""
    asked = [sum(each) for each in zip(*parts, strict=True)]
    low, high, rounds = list(asked), [np.inf] * len(asked), [0] * len(asked)
    while any(each < np.inf for each in rounds):
        for i, (cpu, left) in enumerate(conditions(np.array(asked)).T):
            if rounds[i] == np.inf:
                continue
            answer = parts.fixed[i] + parts.computation[i] / cpu + parts.communication[i] / left
            rounds[i] += 1
            low[i] = max(low[i], asked[i]) if answer > asked[i] else low[i]
            high[i] = high[i] if answer > asked[i] else min(high[i], asked[i])
            far = abs(answer / asked[i] - 1.0) > SETTLED
            if rounds[i] >= (MOST_ROUNDS if far else ROUNDS):
                asked[i], rounds[i] = answer, np.inf
            elif rounds[i] >= ROUNDS and high[i] < np.inf:
                asked[i] = np.sqrt(low[i] * high[i])
            else:
                asked[i] = answer
    return asked


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.booleans(), st.sampled_from(["forecast", "last", "mean"]))
def test_settled_runtimes_equal_those_that_are_looked_up_round_by_round(seed, fastest, belief):
    rng = np.random.default_rng(seed)
    load = BackgroundLoad(12, Streams(seed), RoundLoad(), RoundLoad(at_once=(1, 30)))
    forecast = LoadForecast(LoadBeliefs(LoadSensors(load, Streams(1)), belief))
    forecast.now, forecast.picks_processors = float(rng.uniform(0, 20_000)), fastest
    free = np.sort(rng.choice(12, int(rng.integers(0, 13)), replace=False))
    forecast.free_processors = lambda: free
    counts = np.arange(1, 13)
    parts = Parts(*(10.0 ** rng.uniform(0, 5, (3, 12)) * rng.integers(0, 2, (3, 1)) + 0.1))
    plain = settled(parts, partial(conditions, forecast, counts))
    assert forecast.runtimes(counts, parts).tolist() == plain
    with forecast.usual():
        plain = settled(parts, partial(conditions, forecast, counts))
        assert forecast.runtimes(counts, parts).tolist() == plain


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.lists(st.sampled_from([1, 7, 300, 900]), min_size=1, max_size=5))
def test_the_past_is_the_same_by_blocks_as_sample_by_sample(seed, blocks):
    rng = np.random.default_rng(seed)
    together, alone = LoadPast(3), LoadPast(3)
    for length in blocks:
        readings, forecasts = rng.random((2, length, 3))
        together.add(readings, forecasts)
        for at in range(length):
            alone.add(readings[at : at + 1], forecasts[at : at + 1])
    assert together.ordered.tolist() == alone.ordered.tolist()
    places = np.array([0, 2])
    assert together.least(places)[0].tolist() == alone.least(places)[0].tolist()
    for found, expected in zip(
        together.least_of_first(places), alone.least_of_first(places), strict=True
    ):
        assert found.tolist() == expected.tolist()
