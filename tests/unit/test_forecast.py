"""The forecasters against versions written down plainly, one series, all history at hand."""

import numpy as np
import pytest

from predictors.errors import PredictorError
from predictors.under_load.forecast import PRIMARIES, NwsMixture

GAINS = (0.05, 0.10, 0.15, 0.20, 0.30, 0.40, 0.50, 0.75)
SPANS = (None, 1, 5, 10, 20, 30, 50, 100)


def trimmed(values):
    cut = int(0.3 * len(values))
    return np.mean(np.sort(values)[cut : len(values) - cut])


def smoothed(values, gain):
    level = values[0]
    for value in values[1:]:
        level += gain * (value - level)
    return level


def adaptive_windows(values, low, high, first, offset):
    """The window in force after each prefix of the series."""
    window, windows = first, []
    for count, value in enumerate(values):
        if count >= high:
            past = values[:count]
            now, less, more = (
                (np.median(past[-w:]) - value) ** 2
                for w in (window, max(low, window - offset), min(high, window + offset))
            )
            if less < now and less <= more:
                window = max(low, window - 1)
            elif more < now:
                window = min(high, window + 1)
        windows.append(window)
    return windows


def plain_primaries(values):
    """What the 18 say after each prefix, shape (n, 18)."""
    small, large = adaptive_windows(values, 5, 21, 10, 1), adaptive_windows(values, 21, 51, 30, 5)
    rows = []
    for count in range(1, len(values) + 1):
        past = values[:count]
        rows.append(
            [past[-1], np.mean(past)]
            + [smoothed(past, gain) for gain in GAINS]
            + [np.median(past[-31:]), np.median(past[-5:])]
            + [np.mean(past[-31:]), np.mean(past[-5:])]
            + [trimmed(past[-31:]), trimmed(past[-51:])]
            + [np.median(past[-small[count - 1] :]), np.median(past[-large[count - 1] :])]
        )
    return np.array(rows)


def first_smallest(sums):
    return int(np.flatnonzero(sums <= sums.min() + 1e-10 * sums.max())[0])


def plain_answers(values):
    """Selectors (n, 16) and the answers by mae_50, mse and mae after each prefix."""
    primaries = plain_primaries(values)
    errors = np.abs(primaries[:-1] - values[1:, None])
    selectors = np.empty((len(values), 16))
    for count in range(len(values)):
        for k, span in enumerate(SPANS):
            part = errors[:count] if span is None else errors[max(0, count - span) : count]
            for base, sums in ((0, (part**2).sum(axis=0)), (8, part.sum(axis=0))):
                best = first_smallest(sums) if count else 0
                selectors[count, base + k] = primaries[count, best]
    missed = np.abs(selectors[:-1] - values[1:, None])
    mse, mae = [], []
    for count in range(len(values)):
        best = first_smallest((missed[:count] ** 2).sum(axis=0)) if count else 0
        mse.append(selectors[count, best])
        best = first_smallest(missed[:count].sum(axis=0)) if count else 0
        mae.append(selectors[count, best])
    return selectors, {"mae_50": selectors[:, 14], "mse": np.array(mse), "mae": np.array(mae)}


def series(kind, length, seed):
    rng = np.random.default_rng(seed)
    if kind == "independent":
        return rng.uniform(0.065, 1.0, length)
    if kind == "steps":
        return np.repeat(rng.uniform(0.065, 1.0, length), rng.integers(1, 6, length))[:length]
    return 0.5 + 0.3 * np.sin(np.arange(length) / 9) + rng.normal(0, 0.03, length)


@pytest.mark.parametrize("kind", ["independent", "steps", "cycle"])
def test_primaries_equal_plain_versions_at_every_length(kind):
    values = series(kind, 130, 4)
    mixture, found = NwsMixture(1), []
    for value in values:
        found.append(mixture.update([value]).primaries()[0])
    np.testing.assert_allclose(found, plain_primaries(values), rtol=1e-12, atol=1e-12)
    assert mixture.primaries().shape[1] == PRIMARIES


@pytest.mark.parametrize("kind", ["independent", "steps", "cycle"])
def test_selectors_and_answers_equal_plain_versions(kind):
    values = series(kind, 160, 5)
    selectors, answers = plain_answers(values)
    for name, expected in answers.items():
        mixture, found, chosen = NwsMixture(1, name), [], []
        for value in values:
            found.append(mixture.update([value]).forecast()[0])
            chosen.append(mixture.selectors()[0])
        followed = selectors[:, [14]] if name == "mae_50" else selectors
        np.testing.assert_allclose(found, expected, rtol=1e-11)
        np.testing.assert_allclose(chosen, followed, rtol=1e-11)


def test_many_series_equal_single_ones_and_missing_values_are_skipped():
    block = np.stack([series(kind, 70, 7) for kind in ("independent", "steps", "cycle")], axis=1)
    block[::7, 1] = np.nan
    together = NwsMixture(3).update(block)
    for k in range(3):
        column = block[:, k]
        alone = NwsMixture(1).update(column[~np.isnan(column)][:, None])
        assert together.forecast()[k] == alone.forecast()[0]


@pytest.mark.parametrize("kind", ["independent", "steps", "cycle"])
def test_the_mixture_stays_within_a_tenth_of_the_best_single_forecaster(kind):
    values = series(kind, 600, 8)
    mixture, standing, answers = NwsMixture(1), [], []
    for value in values:
        mixture.update([value])
        standing.append(mixture.primaries()[0])
        answers.append(mixture.forecast()[0])
    single = np.abs(np.array(standing)[:-1] - values[1:, None]).mean(axis=0).min()
    assert np.abs(np.array(answers)[:-1] - values[1:]).mean() <= 1.1 * single


def test_empty_history_is_idle():
    mixture = NwsMixture(2).update([0.4, np.nan])
    assert mixture.forecast().tolist() == [0.4, 1.0]


def test_answers_stay_within_limits():
    assert NwsMixture(1).update([0.001]).forecast()[0] == 0.01
    assert NwsMixture(1).update([1.5]).forecast()[0] == 1.0


def test_what_was_forecast_is_said_of_every_value():
    block = np.stack([series(kind, 70, 9) for kind in ("independent", "steps")], axis=1)
    together, alone = NwsMixture(2), NwsMixture(2)
    before = [alone.update(row).forecast() for row in block[:-1]]
    np.testing.assert_array_equal(together.follow(block), [[1.0, 1.0], *before])


@pytest.mark.parametrize(
    ("values", "message"),
    [([1.0], "shape"), ([1.0, np.inf], "finite"), (np.ones((2, 2, 2)), "shape")],
)
def test_bad_values_are_refused(values, message):
    with pytest.raises(PredictorError, match=message):
        NwsMixture(2).update(values)


@pytest.mark.parametrize("keywords", [{"series": -1}, {"selection": "best"}])
def test_bad_arguments_are_refused(keywords):
    with pytest.raises(PredictorError):
        NwsMixture(**{"series": 1, **keywords})
