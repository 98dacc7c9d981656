"""Keys of the priority functions, figure by figure (policies.md 2.4)."""

import math

import numpy as np
import pytest

from sim.policies.order import (
    FirstComeFirstServed,
    LargestAreaFirst,
    LargestExpansionFactor,
    LargestFirst,
    Learned,
    LongestFirst,
    Order,
    ShortestFirst,
    SmallestAreaFirst,
    SmallestFirst,
    Unicep,
    Wfp3,
)

pytestmark = pytest.mark.fast

NOW = 100.0
SUBMIT = np.array([40.0, 90.0])
PROCESSORS = np.array([4, 8])
RUNTIME = np.array([20.0, 5.0])


@pytest.mark.parametrize(
    ("order", "keys"),
    [
        (ShortestFirst(), [20, 5]),
        (LongestFirst(), [-20, -5]),
        (SmallestAreaFirst(), [80, 40]),
        (LargestAreaFirst(), [-80, -40]),
        (SmallestFirst(), [4, 8]),
        (LargestFirst(), [-4, -8]),
        (LargestExpansionFactor(), [-(60 + 20) / 20, -(10 + 5) / 5]),
        (Wfp3(), [-(3**3) * 4, -(2**3) * 8]),
        (Unicep(), [-60 / (2 * 20), -10 / (3 * 5)]),
        (Learned("F1"), [math.log10(r) * n + 870 * math.log10(s) for r, n, s in
                         ((20, 4, 40), (5, 8, 90))]),
        (Learned("F2"), [math.sqrt(r) * n + 25600 * math.log10(s) for r, n, s in
                         ((20, 4, 40), (5, 8, 90))]),
        (Learned("F3"), [r * n + 6860000 * math.log10(s) for r, n, s in
                         ((20, 4, 40), (5, 8, 90))]),
        (Learned("F4"), [r * math.sqrt(n) + 530000 * math.log10(s) for r, n, s in
                         ((20, 4, 40), (5, 8, 90))]),
    ],
)  # fmt: skip
def test_keys(order: Order, keys: list[float]) -> None:
    np.testing.assert_allclose(order.keys(NOW, SUBMIT, PROCESSORS, RUNTIME), keys, rtol=1e-12)


def test_arrival_order_has_no_keys() -> None:
    assert FirstComeFirstServed().keys(NOW, SUBMIT, PROCESSORS, RUNTIME) is None


def test_serial_jobs_win_outright_in_unicep_or_count_as_two() -> None:
    one = np.array([1])
    first = Unicep().keys(NOW, SUBMIT[:1], one, RUNTIME[:1])
    assert first is not None
    assert first[0] == pytest.approx(-60 / (1e-15 * 20))
    as_two = Unicep("as_two").keys(NOW, SUBMIT[:1], one, RUNTIME[:1])
    assert as_two is not None
    assert as_two[0] == -60 / 20


def test_a_submit_at_zero_counts_as_a_tenth() -> None:
    keys = Learned("F1").keys(NOW, np.zeros(1), np.array([2]), np.array([100.0]))
    assert keys is not None
    assert keys[0] == pytest.approx(2 * 2 - 870)


def test_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="function must be one of F1, F2, F3, F4; got 'F5'"):
        Learned("F5")
    with pytest.raises(ValueError, match="serial must be one of first, as_two; got 'last'"):
        Unicep("last")
