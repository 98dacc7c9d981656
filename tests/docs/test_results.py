"""Tables of pages are those of their data, and the data are those of the code, at toy size."""

import json
import math
import re
import statistics
import subprocess
from pathlib import Path

import numpy as np
import pytest

import sim
from benchmarks.results import (
    claims,
    guide_tables,
    logs,
    method_studies,
    other_tables,
    others,
    running,
    site_tables,
    speed_tables,
    tables,
    world,
)
from benchmarks.results.pictures import PICTURES, drawn
from benchmarks.results.regions import REGION, ROOT, TABLES, differing, filled, pages
from benchmarks.results.running import DATA, NAME, RESULTS, make, rounded
from benchmarks.results.studies import STUDIES, Study, Sweep
from sim.results.plots.style import in_dark
from sim.statistics import MIRRORED
from tests.former import WORLD

MAKERS = (claims, guide_tables, logs, other_tables, site_tables, speed_tables, tables, world)
"""Modules that register tables."""
KEPT = {name: RESULTS / name / NAME for name in STUDIES}
MADE = sorted(name for name, path in KEPT.items() if path.is_file())


def kept(name):
    return json.loads(KEPT[name].read_text(encoding="utf-8"))


@pytest.mark.fast
def test_tables_are_those_of_their_data():
    assert differing(write=False) == []


@pytest.mark.fast
def test_every_table_stands_on_a_page_and_a_changed_figure_is_seen():
    texts = [page.read_text(encoding="utf-8") for page in pages()]
    shown = {name for text in texts for name in REGION.findall(text)}
    assert shown <= TABLES.keys()
    studies = {name.partition("/")[0].partition("_")[0] for name in shown}
    assert {"papers/figure_4", "papers/rational", "papers/itanium2"} <= shown
    own = {name.partition("_")[0] for name in MADE} - {"figure", "rational", "cycles"}
    assert studies >= own
    one = next(text for text in texts if REGION.search(text))
    region = REGION.search(one)[0]
    figure = re.search(r"\d+\.\d", region)[0]
    assert filled(one.replace(region, region.replace(figure, "77.7", 1))) == one


@pytest.mark.parametrize(
    "name", [name for name in PICTURES if (RESULTS / name).with_name(NAME).is_file()]
)
def test_pictures_are_those_of_their_data(name):
    light, dark = RESULTS / name, (RESULTS / name).with_suffix(".dark.svg")
    told = light.read_text(encoding="utf-8")
    kept, anew = (np.array(re.findall(r"-?\d+\.\d+", one), float) for one in (told, drawn(name)))
    np.testing.assert_allclose(kept, anew, atol=0.01)
    assert dark.read_text(encoding="utf-8") == in_dark(told)
    shown = f'srcset="{name[:-4]}.dark.svg"><img src="{name}"'
    assert any(shown in page.read_text(encoding="utf-8") for page in pages())


@pytest.mark.fast
def test_a_name_of_no_table_is_refused():
    with pytest.raises(KeyError, match="none/such"):
        filled("<!-- table: none/such -->\n<!-- end -->\n")


@pytest.mark.parametrize("name", [name for name in MADE if STUDIES[name].toy])
def test_a_row_of_each_study_is_computed_again(name):
    """Its run at toy size gives the figures that stand in its data."""
    toy = kept(name)["toy"]
    summary = sim.run(*toy["asked"].split()).summary
    assert toy["figures"]
    for figure, value in toy["figures"].items():
        found = rounded(summary.get(figure))
        assert found == (value if value is None else pytest.approx(value, rel=1e-5)), figure


def bootstrapped(ratios, block):
    """Return how far an interval read alone reaches, by resampled blocks of windows."""
    values = np.array([part.mean() for part in np.array_split(ratios, len(ratios) // block)])
    rng, rows, apart = np.random.default_rng(5), values.size, values - values.mean()
    reached = []
    for _ in range(4000):
        signs = np.where(rng.random(rows) < min(MIRRORED * rows, 0.5), -1, 1)
        drawn = apart[rng.integers(rows, size=rows)] * signs
        spread = drawn.std(ddof=1)
        reached.append(abs(drawn.mean()) / spread if spread > 1e-9 * values.std() else 0.0)
    return float(np.quantile(reached, 0.95) * values.std(ddof=1))


def test_changes_on_five_logs_are_those_of_another_reckoning():
    """By hand: the mean of ln(own / EASY) of windows, and how far a bootstrap of its t reaches."""
    rows = kept("logs")["rows"]
    keys, found = logs.family()
    for (log, policy), one in zip(keys, found.comparisons, strict=True):
        own, easy = (
            next(r for r in rows if r["log"] == log and (r["policy"], r["predictor"]) == pair)
            for pair in ((policy, logs.RULES[policy][1]), ("easy", "user_estimate"))
        )
        ratios = [
            math.log(a / b)
            for a, b, begin in zip(
                own["mean_response_time"], easy["mean_response_time"], easy["window_begin"],
                strict=True,
            )
            if begin is not None
        ]  # fmt: skip
        mean = statistics.fmean(ratios)
        assert one.change.count == len(ratios)
        assert one.change.mean == pytest.approx(math.exp(mean) - 1, abs=1e-9)
        if not math.isnan(one.change.low):
            together, alone = (math.log1p(each.high) - mean for each in (one.change, one.single))
            assert together > 1.5 * statistics.stdev(ratios) / len(ratios) ** 0.5
            assert 1.2 * alone < together < 2 * alone
            anew = [bootstrapped(ratios, block) for block in (1, 2, 4)]
            assert any(alone == pytest.approx(reach, rel=0.25) for reach in anew), (log, policy)


def test_queue_times_of_a_replication_are_computed_again():
    first = kept("claims")["queue_times"][0]
    found = others.correlation(first["model"], first["load"], first["jobs"], 0, *WORLD[1:])
    assert found == pytest.approx(first["correlation"][0], rel=1e-5)


@pytest.mark.skipif(not (DATA / "traces").is_dir(), reason=f"{DATA} has no logs")
def test_the_backtest_of_the_smallest_log_is_computed_again():
    found = rounded(others.backtests(DATA, toy=True)["logs"][0])
    assert json.loads(json.dumps(found)) == next(
        log for log in kept("backtest")["logs"] if log["name"] == found["name"]
    )


@pytest.mark.skipif(not (DATA / "scaling").is_dir(), reason=f"{DATA} has no curves")
def test_a_method_on_measured_curves_is_computed_again():
    curves = method_studies.curves_of(DATA, toy=False)
    text = (ROOT / "docs/results/accuracy.md").read_text(encoding="utf-8")
    sources = len({curve.source for curve in curves})
    assert f"{len(curves)} measured scaling curves in {sources} files" in text
    rows = [row for row in kept("accuracy")["rows"] if row["method"] == "Amdahl"]
    found = method_studies.method_rows(curves, "Amdahl")
    for row, own in zip(rows, found, strict=True):
        assert rounded({**own, "milliseconds": 0}) == {**row, "milliseconds": 0}


@pytest.mark.fast
def test_what_measures_speed_or_lacks_its_program_is_skipped_and_says_so(tmp_path, monkeypatch):
    monkeypatch.delenv("MOLDSIM_EXTRAP", raising=False)
    (tmp_path / "scaling").mkdir()
    asked = (["accuracy_extrap", "performance_start"], tmp_path, tmp_path, tmp_path)
    assert make(*asked, quick=True) == [
        "accuracy_extrap: skipped, MOLDSIM_EXTRAP names no program",
        "performance_start: skipped, speed is not measured at toy size",
    ]


@pytest.mark.fast
@pytest.mark.parametrize("name", MADE)
def test_data_say_where_they_come_from(name):
    found = kept(name)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])
    assert found["seconds"] is None or found["seconds"] > 0
    assert set(found["inputs"]) >= {one for one in STUDIES[name].inputs if one != "scaling"}
    known = subprocess.run(  # one that was rewritten is in no other checkout
        ["git", "merge-base", "--is-ancestor", found["commit"], "HEAD"],
        cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    inside = subprocess.run(["git", "rev-parse"], cwd=ROOT, capture_output=True, check=False)
    assert inside.returncode or known.returncode == 0


def test_a_study_without_its_logs_is_skipped_in_a_line(tmp_path: Path):
    said = make(["backtest"], tmp_path, tmp_path / "out", tmp_path / "working", quick=True)
    assert len(said) == 1
    assert said[0].startswith("backtest: skipped, ")
    assert "\n" not in said[0]


def test_a_sweep_of_a_study_is_carried_out(tmp_path):
    """It was asked for as a single run, which takes no several values."""
    sweep = Sweep("backfill_or_mold policy=easy,fcfs predictor=user_estimate")
    running.run_sweep(sweep, ["workload.jobs=20", "replications=1"], tmp_path, tmp_path / "a")
    rows = running.collected(sweep, ["jobs"], tmp_path / "a")
    assert {row["policy"]: row["jobs"] for row in rows} == {"easy": [20], "fcfs": [20]}


def test_a_finished_study_is_left_as_it_is(tmp_path, monkeypatch):
    """And one whose code changed is not."""
    toy = Study((Sweep("herd policy=easy workload.load=0.5 policy.allocation.adopters=0 "
                       "moldability.parallelism_min=1"),), 20, 2, "policy=easy")  # fmt: skip
    monkeypatch.setitem(STUDIES, "toy", toy)
    asked = (["toy"], tmp_path, tmp_path / "out", tmp_path / "working")
    monkeypatch.setattr(running, "run_study", lambda *_: json.loads(kept_toy))
    inputs: dict[str, str] = {}
    kept_toy = json.dumps(
        {"fingerprint": running.fingerprint(toy, inputs, False), "rows": [], "seconds": 1.0}
    )
    assert "s, " in make(*asked, quick=False)[0]
    assert "done before" in make(*asked, quick=False)[0]
    monkeypatch.setattr(running, "code_checksum", lambda: "other")
    assert "done before" not in make(*asked, quick=False)[0]


@pytest.mark.fast
def test_two_hundred_tables_of_equals_have_few_false_gains():
    found = json.loads((RESULTS / "equals" / NAME).read_text(encoding="utf-8"))
    assert found["tables"] == 200
    assert found["false_better"] <= 16
    assert found["named_best"] <= 16
