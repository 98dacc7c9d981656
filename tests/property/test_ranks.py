"""Where a value belongs among ascending ones, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.state.run_state import rank_in

VALUES = st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 3.0, np.inf]), max_size=40).map(sorted)


@pytest.mark.parametrize("side", ["left", "right"])
@given(values=VALUES, wanted=st.sampled_from([-np.inf, -2.0, 0.0, 0.5, 2.0, 3.0, np.inf]))
def test_a_rank_is_that_of_numpy(side: str, values: list[float], wanted: float) -> None:
    among = np.array(values, float)
    assert rank_in(among, wanted, side == "right") == np.searchsorted(among, wanted, side)
