import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure
from random_schedules import random_run

from sim.results import artefacts
from sim.results.artefacts import (
    BASELINE,
    RUN,
    Artefacts,
    finish,
    is_finished,
    manifest,
    mean_of_replications,
    mean_summary,
    read_table,
    replacing,
    write_ends,
    write_run,
)
from sim.results.durable import read_failure, write_failure
from sim.results.metrics import summarise
from sim.results.outcome import outcome
from sim.results.plots.pictures import schedule_figure

NAMES = {
    "jobs.parquet",
    "allocations.parquet",
    "timeline.parquet",
    "predictions.parquet",
    "schedule.png",
    "summary.json",
    "manifest.json",
}


def made(seed=1, jobs=12, wall=1.0, processors=8, *, drawn=False):
    """The artefacts of a random run; its picture is empty unless drawn."""
    trace, truth, records = random_run(seed, jobs, processors)
    run = outcome(trace, truth, records)
    small = Figure(figsize=(1, 1))
    figure = schedule_figure(run.tables, records.processors, "made") if drawn else small

    def draw(folder):
        figure.savefig(folder / "schedule.png", metadata={"Software": None})

    return Artefacts(run.tables, summarise(run), manifest(trace, wall), draw)


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_run_again_gives_the_same_bytes_but_for_the_manifest(tmp_path):
    write_run(tmp_path / "a", {RUN: made(wall=1.0, drawn=True)})
    write_run(tmp_path / "longer" / "b", {RUN: made(wall=2.0, drawn=True)})
    first, second = content(tmp_path / "a"), content(tmp_path / "longer" / "b")
    assert set(first) == NAMES
    assert first.pop("manifest.json") != second.pop("manifest.json")
    assert first == second


def test_tables_read_back_with_nulls_and_units(tmp_path):
    run = made(jobs=30)
    write_run(tmp_path, {RUN: run})
    jobs = pd.read_parquet(tmp_path / "jobs.parquet")
    pd.testing.assert_frame_equal(jobs, run.tables.jobs, check_dtype=False)
    table = pq.read_table(tmp_path / "jobs.parquet")
    missing = int(run.tables.jobs["efficiency"].isna().sum())
    assert table["efficiency"].null_count == missing > 0
    assert table.schema.field("wait_time").metadata == {b"unit": b"s"}
    assert json.loads((tmp_path / "summary.json").read_text()) == run.summary
    text = (tmp_path / "summary.json").read_text()
    assert "NaN" not in text
    assert list(json.loads(text)) == sorted(run.summary)


def test_overrides_in_the_name_of_a_folder_are_no_columns(tmp_path):
    table = pd.DataFrame({"job_id": [0, 1], "evolving": [True, False]})
    folder = tmp_path / "evolving=adaptive,policy=easy" / "replication=1"
    folder.mkdir(parents=True)
    table.to_parquet(folder / "jobs.parquet")
    pd.testing.assert_frame_equal(read_table(folder / "jobs.parquet"), table)


def rewrite(folder, *runs):
    """Write a run over a former one, as a command does."""
    folder.mkdir(exist_ok=True)
    with replacing(folder) as new:
        write_run(new, dict(zip((RUN, BASELINE), runs, strict=False)))


def everything(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("steps", range(8))
def test_death_on_the_way_leaves_the_former_results(tmp_path, monkeypatch, steps):
    folder = tmp_path / "run"
    rewrite(folder, made(seed=2), made(seed=3))
    before = everything(folder)
    left = iter(range(steps))
    write = artefacts.write_table

    def dying(*arguments):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return write(*arguments)

    monkeypatch.setattr(artefacts, "write_table", dying)
    with pytest.raises(KeyboardInterrupt):
        rewrite(folder, made(seed=4), made(seed=5))
    assert everything(folder) == before
    monkeypatch.undo()
    rewrite(folder, made(seed=4), made(seed=5))
    rewrite(tmp_path / "other", made(seed=4), made(seed=5))
    assert everything(folder) == everything(tmp_path / "other")


@pytest.mark.parametrize("moves", range(7))
def test_death_among_the_moves_loses_nothing(tmp_path, monkeypatch, moves):
    folder = tmp_path / "run"
    rewrite(folder, made(seed=2), made(seed=3))
    left = iter(range(moves))
    replace = type(tmp_path).replace

    def dying(self, target):
        if next(left, None) is None:
            raise SystemExit
        return replace(self, target)

    monkeypatch.setattr(type(tmp_path), "replace", dying)
    with pytest.raises(SystemExit):
        rewrite(folder, made(seed=4))
    monkeypatch.undo()
    assert not is_finished(folder)
    finish(folder)
    rewrite(tmp_path / "other", made(seed=4))
    assert everything(folder) == everything(tmp_path / "other")


def test_an_interrupt_among_the_moves_comes_after_them(tmp_path, monkeypatch):
    replace, moved = type(tmp_path).replace, []

    def interrupted(self, target):
        moved.append(target.name)
        if len(moved) == 3:
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(type(tmp_path), "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rewrite(tmp_path, made())
    assert set(content(tmp_path)) == NAMES
    assert moved[-1] == "summary.json"


@pytest.mark.parametrize(
    ("error", "stays"),
    [(KeyboardInterrupt, True), (SystemExit, True), (BrokenPipeError, True), (ValueError, False)],
)
def test_finished_replications_stay_where_nothing_was_wrong_with_the_run(tmp_path, error, stays):
    def run():
        with replacing(tmp_path, goes_on=True) as partial:
            (partial / "replication=0").mkdir()
            (partial / "replication=0/summary.json").write_text("{}")
            raise error

    with pytest.raises(error):
        run()
    with replacing(tmp_path, goes_on=True) as partial:
        assert (partial / "replication=0/summary.json").exists() == stays


def test_run_without_baseline_leaves_no_old_one_and_what_is_not_of_a_run(tmp_path):
    rewrite(tmp_path, made(), made(seed=2))
    (tmp_path / "notes.txt").write_text("mine")
    rewrite(tmp_path, made(), made(seed=2))
    (tmp_path / "baseline/notes.txt").write_text("mine too")
    rewrite(tmp_path, made())
    assert not is_finished(tmp_path / "baseline")
    assert set(everything(tmp_path)) == {*NAMES, "notes.txt", "baseline/notes.txt"}


def test_means_over_replications(tmp_path):
    summaries, places = [], [tmp_path / f"replication={k}" for k in range(3)]
    for k, place in enumerate(places):
        run = made(seed=k)
        write_run(place, {RUN: run})
        summaries.append(run.summary)
    summary = mean_of_replications(summaries, {})
    write_ends(tmp_path, summary, {"host": "x"}, places)
    assert json.loads((tmp_path / "summary.json").read_text()) == summary
    assert summary["replications"] == 3
    responses = [s["mean_response_time"] for s in summaries]
    assert summary["mean_response_time"] == pytest.approx(np.mean(responses))
    assert summary.keys() - {"replications"} == summaries[0].keys()
    assert summary["jobs"] == 12


def test_identical_replications_are_said_so():
    summaries = [made().summary for _ in range(2)]
    assert mean_of_replications(summaries, {})["replications_identical"] is True


def test_mean_of_undefined_text_and_truth():
    means = mean_summary(
        [{"a": None, "b": "x", "c": True, "d": "y"}, {"a": None, "b": "x", "c": False, "d": "z"}]
    )
    assert means == {"a": None, "b": "x", "c": 0.5, "d": None, "replications": 2}


def test_failure_keeps_the_message_and_former_results(tmp_path):
    rewrite(tmp_path, made())
    write_failure(tmp_path, "workload.load must be positive, got -1")
    assert set(content(tmp_path)) == {"failure.json", *NAMES}
    assert read_failure(tmp_path) == "workload.load must be positive, got -1"


def test_manifest_tells_versions_and_origin():
    trace, _, _ = random_run(1, 2, 2)
    told = manifest(trace, 3.5)
    assert told["wall_seconds"] == 3.5
    assert told["source"] == "made.swf"
    assert told["versions"]["numpy"] == np.__version__
