"""What the load signals say."""

import numpy as np
import pytest
from published_rules.load_interpolated import LoadInterpolated
from test_advice import bent, view_of


@pytest.mark.parametrize("wrong", [{"load": "busy"}, {"time": 0}, {"window": -1}])
def test_values_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        LoadInterpolated(**wrong)


def test_load_signals():
    view, _ = view_of(bent, learns=False)
    queued = LoadInterpolated().meter(view)
    assert queued.read(np.array([0])) == 3 / 16
    forecast = LoadInterpolated(load="forecast", window=100.0).meter(view)
    view._state.arrived.append(0)
    forecast.watch()
    view._state.arrived.clear()
    assert forecast.read(np.array([0])) == pytest.approx(3 * 8 / (100 * 16))
    view._state.now = 101.0
    forecast.watch()
    assert forecast.read(np.array([0])) == pytest.approx(0)
