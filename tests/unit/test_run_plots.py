"""Pictures of one run, drawn from its artefacts."""

import base64
import gzip
import json
import re
import sys
from types import ModuleType

import numpy as np
import pytest
from random_schedules import random_run
from test_compare import fabricate

from predictors.cli import terminal
from sim.compare import main as compare
from sim.errors import SimError
from sim.plot import main, read_run
from sim.results.metrics import summarise
from sim.results.outcome import outcome
from sim.results.plots.pictures import KINDS, REPLAYED, WIDTHS, LoadSeries, Speedups, figure_of

pytestmark = pytest.mark.fast
NAMES = ("jobs", "allocations", "timeline", "predictions")


def write_tables(place, tables):
    place.mkdir(exist_ok=True, parents=True)
    for name in NAMES:
        getattr(tables, name).to_parquet(place / f"{name}.parquet")


@pytest.fixture
def run(tmp_path):
    trace, truth, records = random_run(4, 80, 8)
    made = outcome(trace, truth, records)
    summary = summarise(made)
    folder = fabricate(
        tmp_path / "run", [], summary=summary, baseline=summary,
        config={"baseline": "easy"},
        choices={"policy": "sa", "predictor": "adept", "workload": "lublin"},
    )  # fmt: skip
    for place in (folder, folder / "baseline"):
        write_tables(place, made.tables)
    return folder


def test_a_terminal_is_told_what_is_drawn(run, tmp_path, capsys, monkeypatch):
    for forced, told in (("", False), ("1", True)):
        monkeypatch.setenv("FORCE_COLOR", forced)
        assert main([str(run), "load", "--out", str(tmp_path)]) == 0
        assert ("draws load" in capsys.readouterr().err) is told


def test_time_left_counts_what_is_drawn_and_what_is_written(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(terminal, "PATIENCE_SECONDS", 0.0)
    assert main([str(run), "load", "--out", str(tmp_path)]) == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert "draws load · -:--:-- left" in shown
    assert "draws load · 0:00:00 left" in shown


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["schedule", *(kind for kind in KINDS if kind not in REPLAYED)])
def test_every_kind_is_drawn_and_written_the_same_again(run, kind, tmp_path):
    written = []
    for name in ("a", "b"):
        assert main([str(run), kind, "--out", str(tmp_path / name)]) == 0
        written.append([p.read_bytes() for p in sorted((tmp_path / name).iterdir())])
    assert len(written[0]) == 3
    assert written[0] == written[1]


def test_a_picture_names_the_run_unless_asked_not_to_and_fits_columns(run):
    found = read_run(run)
    assert found.title == "sa by adept, lublin: 80 jobs on 8 processors"
    assert read_run(run / "baseline").title.startswith("easy by user_estimate, lublin")
    for columns, inches in WIDTHS.items():
        figure = figure_of(found, "waits", columns)
        assert figure.get_size_inches()[0] == inches
        assert figure.get_suptitle() == found.title
    assert figure_of(found, "waits", title=False).get_suptitle() == ""


def test_pictures_show_what_the_tables_hold(run):
    found = read_run(run)
    given = figure_of(found, "processors").axes[0].collections[0].get_array()
    assert given.sum() == len(found.jobs) == 80
    shares = [line.get_ydata()[-1] for line in figure_of(found, "waits").axes[0].lines]
    assert shares == pytest.approx([100.0] * len(shares))
    lines = figure_of(found, "resized").axes[0].lines
    held = found.tables.allocations
    most = held.groupby(["job_id", "run"]).size().max()
    assert len(lines[0].get_xdata()) == most + 1
    believed = figure_of(found, "runtimes").axes[0].collections[0].get_array()
    assert believed.sum() == np.isfinite(found.tables.predictions["actual"]).sum()


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (["run", "wait"], "KIND wait: must be one of schedule, explorer, load, processors"),
        (["nowhere", "load"], "nowhere: there is no finished run with its tables"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(run, capsys, asked, problem):
    assert main([str(run.parent / asked[0]), asked[1]]) == 2
    error = capsys.readouterr().err
    assert problem in error
    assert error.count("\n") == 1


def test_a_table_that_is_missing_or_damaged_is_named_in_a_line(run, capsys):
    table = run / "predictions.parquet"
    table.write_bytes(table.read_bytes()[:-7])
    assert main([str(run), "runtimes"]) == 2
    assert f"error: {table}: not a table that can be read" in capsys.readouterr().err
    table.unlink()
    assert main([str(run), "runtimes"]) == 2
    error = capsys.readouterr().err
    assert f"error: {table}: No such file or directory" in error
    assert error.count("\n") == 1


def test_a_rigid_run_has_nothing_to_show_of_resizing(run, capsys):
    tables = read_run(run).tables
    first = tables.allocations.groupby(["job_id", "run"]).head(1)
    first.to_parquet(run / "allocations.parquet")
    assert main([str(run), "resized"]) == 2
    assert "no job was resized" in capsys.readouterr().err


def test_of_replications_the_first_is_drawn(run):
    (run / "jobs.parquet").unlink()
    trace, truth, records = random_run(5, 10, 8)
    made = outcome(trace, truth, records)
    write_tables(run / "replication=0", made.tables)
    (run / "replication=0/summary.json").write_text((run / "summary.json").read_text())
    assert len(read_run(run).jobs) == 10


@pytest.fixture
def plotly(monkeypatch):
    offline = ModuleType("plotly.offline")
    offline.get_plotlyjs = lambda: "/* the script of the package: $1 */"
    monkeypatch.setitem(sys.modules, "plotly.offline", offline)
    monkeypatch.setitem(sys.modules, "plotly", ModuleType("plotly"))


def columns_of(packed):
    """The columns of a packed schedule, as the page's script reads them."""
    data = gzip.decompress(base64.b64decode(packed["data"]))
    place, found = 0, {}
    for name, count in packed["columns"].items():
        found[name] = np.frombuffer(data, "<f4", count, 4 * place)
        place += count
    assert 4 * place == len(data)
    return found


def test_the_explorer_holds_every_job_and_two_runs_share_a_time_axis(run, plotly, tmp_path):
    assert main([str(run), "explorer", "--beside", str(run / "baseline")]) == 0
    page = (run / "plots/explorer.html").read_text()
    assert "/* the script of the package: $1 */" in page
    assert "http://" not in page
    packed = json.loads(page.split("const RUNS = ")[1].split(";\n")[0])
    assert [one["title"].split(",")[0] for one in packed] == [
        "sa by adept", "easy by user_estimate"
    ]  # fmt: skip
    found, tables = columns_of(packed[0]), read_run(run).tables
    jobs, held = tables.jobs, tables.allocations
    assert found["job.job_id"].tolist() == jobs["job_id"].tolist()
    waits = found["job.start_time"] - found["job.submit_time"]
    assert waits == pytest.approx(jobs["wait_time"].to_numpy(), rel=1e-4, abs=0.1)
    area = ((found["end"] - found["begin"]) * (found["high"] - found["low"])).sum()
    exact = ((held["end_time"] - held["start_time"]) * held["processors"]).sum()
    assert area == pytest.approx(exact, rel=1e-4)
    assert (np.diff(found["begin"]) >= 0).all()
    assert found["held"].sum() >= held["processors"].sum()


def test_what_the_explorer_needs_is_said(run, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    assert main([str(run), "explorer"]) == 2
    assert "pip install 'moldsim[explorer]'" in capsys.readouterr().err
    assert main([str(run), "load", "--beside", str(run)]) == 2
    assert "only explorer shows two runs" in capsys.readouterr().err


@pytest.mark.slow
def test_a_comparison_links_a_page_of_the_best_and_its_reference(plotly, tmp_path):
    trace, truth, records = random_run(4, 20, 8)
    made = outcome(trace, truth, records)
    for policy, factor in (("easy", 2.0), ("sa", 1.0)):
        summary = summarise(made)
        summary["mean_response_time"] *= factor
        folder = fabricate(
            tmp_path / f"policy={policy}", [f"policy={policy}"], summary=summary,
            choices={"policy": policy, "predictor": "adept"},
        )  # fmt: skip
        write_tables(folder, made.tables)
    assert compare([str(tmp_path)]) == 0
    page = (tmp_path / "comparison.html").read_text()
    assert '<a href="plots/explorer.html">' in page
    packed = (tmp_path / "plots/explorer.html").read_text().split("const RUNS = ")[1]
    titles = [one["title"] for one in json.loads(packed.split(";\n")[0])]
    assert titles == ["sa", "easy"]
    sys.modules["plotly.offline"] = None
    assert compare([str(tmp_path)]) == 0
    assert "explorer.html" not in (tmp_path / "comparison.html").read_text()
    assert not (tmp_path / "plots/explorer.html").exists()


class Curves:
    """Stands in for a run that is made again."""

    def speedups(self, applications, most):
        counts = np.array([1, 2, 4])
        known = list(applications) or [3, 5]
        believed = {3: np.array([1.0, 1.5, 2.0]), 5: None}
        return [Speedups(one, 7, counts, counts * 1.0, believed.get(one)) for one in known]

    def background(self):
        time = np.linspace(0.0, 7200.0, 5)
        return LoadSeries(time, np.full((5, 2), 0.5), np.full((5, 2), 0.75))


@pytest.mark.slow
def test_speedups_and_load_are_drawn_true_and_believed(run):
    found = read_run(run)._replace(again=Curves)
    first, second = figure_of(found, "speedups").axes
    true, believed, given = first.lines
    assert true.get_ydata().tolist() == [1.0, 2.0, 4.0]
    assert believed.get_ydata().tolist() == [1.0, 1.5, 2.0]
    assert given.get_ydata() == pytest.approx(given.get_xdata())
    assert len(second.lines) == 2
    jobs = found.jobs
    between = int(jobs[jobs["allocated_processors"] == 3]["application"].iloc[0])
    (line,) = figure_of(found, "speedups", of=[between]).axes
    own = jobs[jobs["application"] == between]["allocated_processors"]
    got = sorted({*own[own <= 4]})  # 3 among them, between counts of the curve
    assert line.lines[-1].get_xdata().tolist() == got
    assert line.lines[-1].get_ydata() == pytest.approx(got)
    (only,) = figure_of(found, "speedups", of=[3]).axes
    assert only.get_title() == "application 3 (7 jobs)"
    whole, errors = figure_of(found, "background", columns=2).axes
    assert [line.get_ydata().tolist() for line in whole.lines] == [[50.0] * 5, [75.0] * 5]
    assert errors.lines[0].get_ydata().tolist() == [25.0] * 5


def test_chosen_jobs_are_drawn_and_others_refused(run, capsys):
    held = read_run(run).tables.allocations
    job = int(held["job_id"].iloc[-1])
    (line,) = figure_of(read_run(run), "resized", of=[job]).axes[0].lines
    assert line.get_label() == f"job {job}"
    for asked, problem in (
        (["resized", "--of", "999"], "--of 999: there is no such job in this run"),
        (["waits", "--of", "3"], "--of 3: only resized and speedups take it"),
    ):
        assert main([str(run), *asked]) == 2
        assert problem in capsys.readouterr().err


def test_what_needs_a_replay_says_so_without_a_folder(run):
    with pytest.raises(SimError, match="needs the run's folder"):
        figure_of(read_run(run)._replace(again=None), "speedups")
