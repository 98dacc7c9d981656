"""The studies behind docs/dynamic.md, at toy size."""

import numpy as np
import pytest

from predictors.interference import MedianDetector, SequentialDetector
from scripts import study_checkpoints, study_cycles, study_interference

FIGURES = ("cycles_alphaserver", "cycles_itanium2", "checkpoints", "interference")


def numbers(line):
    return [float(cell) for cell in line.strip("| ").split(" | ")]


def test_errors_have_the_size_of_tables_3_and_4():
    for machine in ("alphaserver", "itanium2"):
        for line in study_cycles.error_table(machine, runs=4)[2:]:
            assert all(3.0 < error < 11.0 for error in numbers(line)[1:])


def test_figures_are_drawn(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(study_cycles, "error_table", lambda machine: [])
    study_cycles.main(tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == set(FIGURES)
    assert "after [27, 43, 56" in capsys.readouterr().out


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
