"""The studies behind docs/methods/cycles.md, at toy size."""

import numpy as np

from benchmarks import sage_errors
from predictors.cycles.interference import MedianDetector


def test_errors_grow_with_the_processors_as_in_tables_3_and_4():
    # What of them goes with the printed: all of the AlphaServer's, the online ones of the other.
    for machine, part, least in (("alphaserver", 1, 0.7), ("itanium2", 2, 0.3)):
        figures = sage_errors.error_figures(machine, runs=4)
        printed = sage_errors.PRINTED[machine]
        assert (figures > 2.0).all()
        assert (figures < printed.max()).all()
        # The means of the online and the offline columns grow, as those printed do.
        for mode in (0, 1):
            for table in (figures, printed):
                assert table[-1, mode::2].mean() > table[0, mode::2].mean() * 1.02
        both = figures[:, ::part].ravel(), printed[:, ::part].ravel()
        assert np.corrcoef(*both)[0, 1] > least


def test_offline_stays_and_online_follows_under_interference():
    cells, seconds = sage_errors.measured_run("itanium2", "timing_a", 16, 1)
    model = sage_errors.offline_model("itanium2", "timing_a")
    slowed = seconds * np.where(np.arange(200) >= 50, 2.0, 1.0)
    ratios = slowed / model.predict(16, cells=cells)
    assert np.flatnonzero(MedianDetector().update(ratios))[0] == 51
