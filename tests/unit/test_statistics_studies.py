"""Toy sizes of the coverage and precision studies, and the queue whose truth they know."""

import re

import numpy as np
import pytest

from scripts import study_coverage, study_precision
from scripts.study_coverage import Study, draw, expected_waits
from scripts.study_precision import carry_out, normal
from sim.errors import StatisticsError
from sim.statistics.load_curves import load_curve
from sim.statistics.precision import Precision


def test_the_chain_knows_the_waits_of_a_queue_from_empty():
    waits = expected_waits(0.7, 4000)
    assert waits[0] == 0
    assert waits[1] == pytest.approx(100 * 0.7 / 1.7)  # found in service with chance load/(1+load)
    assert waits[-1] == pytest.approx(100 * 0.7 / 0.3, rel=1e-3)
    drawn = [study_coverage.waits_by_recursion(draw(seed, 0, 20), 0.7) for seed in range(4000)]
    assert np.mean(drawn) == pytest.approx(expected_waits(0.7, 20).mean(), rel=0.05)


def test_the_simulator_waits_as_lindleys_recursion():
    drawn = draw(3, 1, 60)
    simulated = study_coverage.waits_by_simulation(drawn, 0.6)
    assert simulated.max() > 0
    np.testing.assert_allclose(simulated, study_coverage.waits_by_recursion(drawn, 0.6), atol=1e-9)


def test_intervals_cover_a_known_truth():
    recursion = Study(replications=15, jobs=200, waits=study_coverage.waits_by_recursion)
    counts = study_coverage.replicated(150, recursion)
    assert counts.keys() >= {"mean, t", "paired difference, t", "share of the gain kept, Fieller"}
    shares = {name: count.covered / count.studies for name, count in counts.items()}
    assert all(0.88 <= share <= 0.99 for share in shares.values()), shares
    count, short = study_coverage.batched(100, 5000, 250, 0.5)
    assert 0.86 <= count.covered / count.studies <= 0.99
    assert short < 20


def test_the_coverage_study_prints_its_table(capsys):
    study_coverage.main(["--repetitions", "3", "--replications", "5", "--jobs", "20"])
    shown = capsys.readouterr().out
    assert len(re.findall(r"^\| .* %? \|$|^\| .*%.*\|$", shown, re.M)) >= 7


def test_precision_reaches_what_was_asked_and_no_earlier():
    asked = Precision(0.05, most=2000)
    ended = [carry_out(asked, normal, 0.2, seed) for seed in range(50)]
    assert all(one.reached <= 0.05 < one.before for one in ended)
    spent = np.mean([one.replications for one in ended])
    assert spent == pytest.approx(asked.expected(1000.0, 200.0), rel=0.12)
    assert sum(one.covers for one in ended) >= 44


def test_the_precision_study_prints_its_table(capsys):
    study_precision.main(["--studies", "3", "--precision", "0.1"])
    assert capsys.readouterr().out.count("3 of 3") == 16


def test_a_load_curve_stops_at_saturation_and_says_so():
    asked = []

    def simulate(load):
        asked.append(load)
        return [(100 * load, load > 0.7), (120 * load, load > 0.85), (110 * load, load > 0.75)]

    curve = load_curve(simulate, [0.9, 0.5, 0.7, 0.8, 1.0])
    assert asked == [0.5, 0.7, 0.8]
    assert [point.load for point in curve.points] == [0.5, 0.7]
    assert curve.points[0].interval.mean == pytest.approx(55)
    assert curve.says() == "saturated from load 0.8 on"
    assert load_curve(simulate, [0.5]).says() == "not saturated up to load 0.5"
    for loads, message in (([0.5, 0.5], "must differ"),):
        with pytest.raises(StatisticsError, match=message):
            load_curve(simulate, loads)
    with pytest.raises(StatisticsError, match=r"load 0.5 has no replication"):
        load_curve(lambda load: [], [0.5])
