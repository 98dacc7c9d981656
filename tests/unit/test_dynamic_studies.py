"""The studies behind docs/dynamic.md, at toy size."""

import numpy as np
import pytest

from predictors.interference import MedianDetector, SequentialDetector
from scripts import study_checkpoints, study_cycles, study_interference

FIGURES = ("cycles_alphaserver", "cycles_itanium2", "checkpoints", "interference")


def test_errors_grow_with_the_processors_as_in_tables_3_and_4():
    # What of them goes with the printed: all of the AlphaServer's, the online ones of the other.
    for machine, part, least in (("alphaserver", 1, 0.7), ("itanium2", 2, 0.3)):
        figures = study_cycles.error_figures(machine, runs=4)
        printed = study_cycles.PRINTED[machine]
        assert (figures > 2.0).all()
        assert (figures < printed.max()).all()
        # The means of the online and the offline columns grow, as those printed do.
        for mode in (0, 1):
            for table in (figures, printed):
                assert table[-1, mode::2].mean() > table[0, mode::2].mean() * 1.02
        both = figures[:, ::part].ravel(), printed[:, ::part].ravel()
        assert np.corrcoef(*both)[0, 1] > least


def test_figures_are_drawn(tmp_path, capsys):
    study_cycles.main(tmp_path, runs=1)
    assert {path.stem for path in tmp_path.iterdir()} == set(FIGURES)
    said = capsys.readouterr().out
    assert "after [27, 43, 56" in said
    assert said.count("Correlation with the 30 printed: ") == 2
    assert len([line for line in said.splitlines() if line.startswith("| 16 |")]) == 2


def test_offline_stays_and_online_follows_under_interference():
    cells, seconds = study_cycles.measured_run("itanium2", "timing_a", 16, 1)
    model = study_cycles.offline_model("itanium2", "timing_a")
    slowed = seconds * np.where(np.arange(200) >= 50, 2.0, 1.0)
    ratios = slowed / model.predict(16, cells=cells)
    for detector in (SequentialDetector(), MedianDetector()):
        assert np.flatnonzero(detector.update(ratios))[0] == 51


@pytest.mark.parametrize("slowdown", [1.5, 2.0])
def test_detection_scores(slowdown):
    ratios = study_interference.independent_ratios(0.08, 20)
    score = study_interference.score(SequentialDetector, ratios, slowdown)
    assert score.false_alarms == 0.0
    assert score.missed == 0.0
    assert 2.0 <= score.delay <= score.slowest + 1.0 < 6.0


def test_a_blind_detector_scores_badly():
    ratios = study_interference.independent_ratios(0.3, 20)
    nervous = study_interference.score(lambda: MedianDetector(1.01, 1.01), ratios, 2.0)
    blind = study_interference.score(lambda: MedianDetector(99.0, 98.0), ratios, 2.0)
    assert nervous.false_alarms > 50.0
    assert (blind.missed, blind.false_alarms) == (1.0, 0.0)
    assert np.isnan(blind.delay)


def test_tables_have_their_rows():
    assert len(study_interference.table(3)) == 2 + 2 * 7
    assert len(study_checkpoints.closed_form_table()) == 2 + 9
    assert len(study_checkpoints.waste_table(3)) == 2 + 9
    assert len(study_checkpoints.walltime_table(3)) == 2 + 9
    assert len(study_checkpoints.remaining_table(3)) == 2 + 12
