"""Pictures of one run, drawn from its artefacts."""

import numpy as np
import pytest
from random_schedules import random_run
from test_compare import fabricate

from sim.plot import KINDS, WIDTHS, figure_of, main, read_run
from sim.results.metrics import summarise
from sim.results.outcome import outcome

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
        config={"baseline": {"name": "easy"}},
        choices={"policy": "sa", "predictor": "adept", "workload": "lublin"},
    )  # fmt: skip
    for place in (folder, folder / "baseline"):
        write_tables(place, made.tables)
    return folder


@pytest.mark.parametrize("kind", ["schedule", *KINDS])
def test_every_kind_is_drawn_and_written_the_same_again(run, kind, tmp_path):
    written = []
    for name in ("a", "b"):
        assert main([str(run), kind, "--out", str(tmp_path / name)]) == 0
        written.append([p.read_bytes() for p in sorted((tmp_path / name).iterdir())])
    assert len(written[0]) == 2
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
        (["run", "wait"], "KIND wait: must be one of schedule, load, processors"),
        (["nowhere", "load"], "nowhere: there is no finished run with its tables"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(run, capsys, asked, problem):
    assert main([str(run.parent / asked[0]), asked[1]]) == 2
    error = capsys.readouterr().err
    assert problem in error
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
