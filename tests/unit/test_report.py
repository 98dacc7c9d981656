import json
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from test_compare import fabricate, figures

from predictors.cli import terminal
from sim.compare import main
from sim.report.answers import LoadCurve
from sim.report.figures import (
    COUNT_BINS,
    answer_plots,
    details,
    in_turn,
    interval_bars,
    losses_of,
    plots_of,
    save,
)
from sim.report.gathering import Group, Sample, estimate, gather, groups_of
from sim.report.page import bar
from sim.report.tables import size, text_table
from sim.results.sentences import few_predictions
from sim.statistics import Interval

pytestmark = pytest.mark.fast


def tables(folder, slowdown):
    times = {"submit_time": [0.0] * 3, "start_time": [0.0] * 3}
    pd.DataFrame({"job_id": [-1, 1, 2], "bounded_slowdown": [99.0, *slowdown], **times}).to_parquet(
        folder / "jobs.parquet"
    )
    pd.DataFrame(
        {"time": [0.0, 10.0, 30.0, 40.0], "busy_processors": [4, 2, 1, 0],
         "queued_jobs": [0, 1, 0, 0]}
    ).to_parquet(folder / "timeline.parquet")  # fmt: skip
    pd.DataFrame(
        {"job_id": [1] * 11, "nprocs": [1] * 5 + [2] + [4] * 5, "observations": [0] * 11,
         "method": ["adept"] * 6 + ["requested_time"] * 5,  # which are no predictions
         "predicted": [12.0] * 6 + [90.0] * 5, "actual": [10.0] * 5 + [np.nan] + [90.0] * 5}
    ).to_parquet(folder / "predictions.parquet")  # fmt: skip
    return folder


FIGURES = {
    "processors": 4,
    "makespan": 40.0,
    "utilization": 0.5,
    "useful_utilization": 0.3,
    "loss_of_capacity_requested": 0.1,
    "mean_wait_time": 2.0,
    "system_efficiency": 0.6,
}


@pytest.fixture
def sweep(tmp_path):
    for policy, times in (("easy", (30.0, 34.0)), ("sa", (10.0, 14.0))):
        for seed, response in enumerate(times, start=1):
            folder = fabricate(
                tmp_path / f"policy={policy},seed={seed}",
                [f"policy={policy}", f"seed={seed}", "workload.jobs=5"],
                summary=figures(response, **FIGURES, seed=seed),
                config={"seed": seed, "baseline": "easy", "workload": {"jobs": 5}},
                choices={"policy": policy, "predictor": "oracle"},
                baseline=figures(31.0, seed=seed),
            )
            tables(folder, (1.0, 3.0))
    return tmp_path


def test_groups_gather_seeds_and_count_a_baseline_once(sweep):
    groups = groups_of(sweep, *gather(sweep))
    assert [(g.label, len(g.samples)) for g in groups] == [
        ("easy, oracle", 2), ("easy, user_estimate (baseline)", 2), ("sa, oracle", 2)
    ]  # fmt: skip
    found = estimate(groups[2].values("mean_response_time"))
    assert (found.mean, found.count) == (12.0, 2)
    assert found.half == pytest.approx(12.7062 * 2.0, rel=1e-4)


def test_the_same_schedule_again_and_again_is_no_repetition():
    def group(*responses):
        figures = [{"mean_response_time": r, "menu": "all", "noise": k} for k, r in
                   enumerate(responses)]  # fmt: skip
        return Group({"policy": "sa"}, "run", [Sample(None, "", one) for one in figures])

    again = group(7200.0, 7200.0, 7200.0)
    assert size(again).endswith("identical")
    row = text_table([again], "markdown").splitlines()[-1]
    assert row.startswith("| sa | – | 3, identical | 120 | all |")
    assert size(group(7200.0, 7200.0 + 1e-9)) == "2"
    assert size(group(7200.0)) == "1"


def test_details_of_tables(tmp_path):
    group = Group({}, "run", [Sample(tables(tmp_path, (1.0, 3.0)), ".", FIGURES)])
    found = details(group, 3)
    losses = found.losses
    assert losses.useful == 0.3
    assert losses.inefficiency == pytest.approx(0.2)
    assert losses.held_back == 0.1
    assert losses.fragmentation == pytest.approx(2 * 20 / 160 - 0.1)
    assert losses.no_demand == pytest.approx(3 * 10 / 160)
    assert losses.misprediction == pytest.approx(5 * 2 / 160)
    assert found.by_count.to_dict() == {1: pytest.approx(0.2)}
    assert found.by_history.to_dict() == {0: pytest.approx(0.2)}
    assert (found.slowdown[0], found.slowdown[-1]) == (1.0, 3.0)
    assert (found.busy * 4).mean() == pytest.approx((40 + 40 + 10) / 40)
    assert COUNT_BINS[:3] == (1, 2, 4)


@pytest.mark.slow
def test_everything_is_written_and_safe_to_repeat(sweep):
    asked = [str(sweep), "--latex", "--markdown"]
    assert main(asked) == 0
    first = {p.name: p.read_bytes() for p in [*sweep.glob("comparison.*"), *sweep.glob("plots/*")]}
    assert len(first) == 5 + 18
    assert main(asked) == 0
    assert {p.name: p.read_bytes() for p in [*sweep.glob("comparison.*"), *sweep.glob("plots/*")]} \
        == first  # fmt: skip
    page = first["comparison.html"].decode()
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert page.count("<tr>") > 3
    assert '<th scope="col" class="text"><button type="button">against</button></th>' in page
    assert '<td data-value="easy, oracle" class="text">easy, oracle</td>' in page
    assert page.index('id="best-sentence"') < page.index('id="forest"') < page.index('id="figures"')
    assert page.count("<table") == page.count("<caption>")
    assert "workload.jobs: 5" in page
    parquet = pd.read_parquet(sweep / "comparison.parquet")
    assert parquet["mean_response_time"].tolist() == [
        30.0,
        31.0,
        34.0,
        31.0,
        10.0,
        31.0,
        14.0,
        31.0,
    ]
    assert "seed." in parquet.columns
    assert json.loads(json.dumps(parquet["seed"].tolist())) == [1, 1, 2, 2] * 2
    csv = (sweep / "comparison.csv").read_text().partition("\n")[0].split(",")
    assert csv == parquet.columns.tolist()


def test_tables_for_papers(sweep):
    groups = groups_of(sweep, *gather(sweep))
    latex, markdown = text_table(groups, "latex"), text_table(groups, "markdown")
    assert latex.count(r"\\") == 4
    assert r"utilisation (\%)" in latex
    assert r"$\pm$" in latex
    odd = Group({"predictor.counts": "[1,2]", "a": "~x_{1}^2$"}, "run")
    assert r"\textasciitilde{}x\_\{1\}\textasciicircum{}2\$" in text_table([odd], "latex")
    assert markdown.splitlines()[-1].startswith("| sa, oracle | – | 2 | 12.0 ± 25.4 | 2.00 |")


@pytest.mark.slow
def test_a_schedule_is_chosen_by_name(sweep, capsys):
    (sweep / "policy=sa,seed=2" / "schedule.png").write_bytes(b"not really")
    assert main([str(sweep), "--gantt", "policy=sa,seed=2"]) == 0
    assert 'data-gantt="0"' in (sweep / "comparison.html").read_text()
    assert main([str(sweep), "--gantt", "policy=no"]) == 2
    assert "policy=no" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (
            ["--figure", "mean_wait"],
            "--figure mean_wait: there is no such figure in summary.json; ",
        ),
        (["--figure", "mean_wait"], "there are mean_wait_time and others"),
        (["--detail", "0"], "--detail 0: must be at least 1"),
    ],
)
def test_what_no_run_has_is_refused(sweep, capsys, asked, problem):
    assert main([str(sweep), *asked]) == 2
    assert problem in capsys.readouterr().err
    assert not (sweep / "comparison.html").exists()


def test_the_time_left_of_a_page_counts_its_schedules(sweep, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(terminal, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(terminal, "TERMINAL_SECONDS", 0.0)
    assert main([str(sweep)]) == 0
    told = capsys.readouterr().err
    assert re.search(r"reads the runs, 2 of \d+ .* left", told)
    assert re.search(r"draws schedules, 2 of \d+ .* left", told)


def test_many_groups_are_drawn_in_turn():
    groups = [Group({"policy": p, "predictor": q}, "run") for p in "ab" for q in range(5)]
    assert [(g.policy, g.predictor) for g in in_turn(groups, 4)] == [
        ("a", "0"), ("a", "1"), ("b", "0"), ("b", "1")
    ]  # fmt: skip
    assert in_turn(groups, 10) == groups
    assert [plot.name for plot in plots_of(groups, {})] == [
        "response_time",
        "efficiency",
        "waiting",
    ]


@pytest.mark.slow
def test_what_was_held_is_shown_where_serial_times_are_unknown(sweep):
    """As under moldability=none: half of the machine was held, and nothing says how well."""
    summary = sweep / "policy=sa,seed=1" / "summary.json"
    text = json.loads(summary.read_text())
    for seed in (1, 2):
        path = sweep / f"policy=sa,seed={seed}" / "summary.json"
        path.write_text(json.dumps(text | {"useful_utilization": None, "seed": seed}))
    groups = [g for g in groups_of(sweep, *gather(sweep)) if g.role == "run"]
    found = {g.label: details(g, 3) for g in groups}
    assert found["sa, oracle"].losses.unknown == 0.5
    assert np.isnan(found["sa, oracle"].losses.useful)
    assert found["easy, oracle"].losses.unknown == 0.0
    assert [name for name, *_ in losses_of([found["easy, oracle"]])] == [
        "useful", "inefficiency", "held_back", "fragmentation", "no_demand"
    ]  # fmt: skip
    assert "unknown" in [name for name, *_ in losses_of(found.values())]
    assert main([str(sweep)]) == 0
    assert "held, T(1) unknown" in (sweep / "comparison.html").read_text()


def test_a_mean_that_rounding_puts_beside_its_interval_is_drawn():
    alike = Interval(-0.6573065010817561, -0.657306501081756, -0.657306501081756, 3)
    figure = Figure()
    interval_bars([("alike", alike)], "change (%)", figure)
    assert len(figure.axes[0].containers) == 1


def test_a_figure_says_on_itself_which_groups_it_leaves_out_and_why(tmp_path):
    shown, missing = Interval(2.0, 1.0, 3.0, 9), {0.5: Interval(7200.0, 7000.0, 7400.0, 9)}
    curves = [LoadCurve("sa", missing, 0.7), LoadCurve("fcfs", {}, 0.5)]
    found = answer_plots([], curves, [], "mean_response_time")
    (plot,) = found
    assert plot.left_out == "Not drawn: fcfs (does not settle from load 0.5 on)."
    assert "not settle from 0.7 on" in save(plot, tmp_path)
    many = [LoadCurve(f"p{k}", {0.5: shown}, None) for k in range(10)]
    (plot,) = answer_plots([], many, [], "mean_response_time")
    assert plot.left_out == "Not drawn: p8; p9 (for want of room)."
    bare = save(plot._replace(left_out=""), tmp_path)
    assert "Not drawn" not in bare
    assert bare != save(plot, tmp_path)
    groups = [Group({"policy": f"p{k}"}, "run") for k in range(3)]
    assert [one.left_out for one in plots_of(groups, {})] == ["", "", ""]


@pytest.mark.parametrize(
    ("low", "high", "arrows"), [(-0.1, 0.05, 0), (-0.5, 0.05, 1), (-2.0, 3.0, 2)]
)
def test_an_interval_beyond_the_axis_ends_in_an_arrow(low, high, arrows):
    assert bar(Interval(-0.04, low, high, 8), (-0.1, 0.05)).count("<path") == arrows


def test_errors_of_few_predictions_are_said_to_be_that():
    asked = {"adept": 0.001, "last_two": 0.5, "oracle": 1.0, "recorded": None}
    named = {name: [{"share_own_predictions": share}] for name, share in asked.items()}
    assert few_predictions(named) == [
        "Predictors answered fewer than 10 % of the starts themselves in adept (0.1 %); requested "
        "times were used for the rest. Changes there are hardly due to these predictors, and their "
        "errors are of few jobs."
    ]
    del named["adept"]
    assert few_predictions(named) == []
