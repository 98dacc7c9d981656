import base64

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from random_schedules import random_run

import sim
from sim.results.metrics import waiting
from sim.results.outcome import TABLES, Levels, Tables, outcome
from sim.results.plots.pictures import Rectangles, coverage, rectangles, schedule_figure
from sim.results.plots.style import (
    DARK,
    LINE_COLOURS,
    calibration_note,
    clock,
    in_dark,
    line,
    picture,
    svg_of,
    time_ticks,
)


def changed(tables, **frames):
    return Tables(*(frames.get(name, getattr(tables, name)) for name in TABLES))


def drawn(jobs, processors=8, title=""):
    trace, truth, records = random_run(1, jobs, processors)
    return schedule_figure(outcome(trace, truth, records).tables, processors, title)


def test_each_of_a_few_jobs_has_its_number():
    gantt = drawn(20).axes[0]
    assert {text.get_text() for text in gantt.texts} == {str(k) for k in range(1, 21)}


def test_axes_have_units_and_title():
    figure = drawn(20, title="sa on 8 processors")
    gantt, busy, queue = figure.axes[:3]
    assert figure.get_suptitle() == "sa on 8 processors"
    assert gantt.get_ylabel() == "processor"
    assert busy.get_ylabel() == "busy (%)"
    assert queue.get_xlabel() == "time since the first submit (h)"


def test_many_jobs_are_drawn_as_a_picture(monkeypatch):
    monkeypatch.setattr("sim.results.plots.pictures.DRAWN_RECTANGLES", 50)
    assert len(drawn(60).axes[0].images) == 1
    monkeypatch.undo()
    assert len(drawn(60).axes[0].images) == 0


def test_rectangles_of_separate_ranges():
    _, _, records = random_run(3, 30, 8)
    held = records.allocations
    spans = pd.DataFrame({"start_time": held.start_time, "end_time": held.end_time})
    shape = rectangles(spans, held.nodes)
    heights = np.bincount(shape.stretch, shape.high - shape.low)
    assert heights.tolist() == records.allocations.processors.tolist()


@pytest.mark.parametrize("size", [(8, 13), (3, 5), (1, 1), (4, 40)])
def test_coverage_is_the_mean_over_each_cell(size):
    rng = np.random.default_rng(size[1])
    k, begin, end, processors = 25, 10.0, 30.0, 8
    left, low = rng.uniform(begin, end, k), rng.integers(0, processors, k)
    right = np.minimum(left + rng.exponential(3, k), end)
    high = np.minimum(low + rng.integers(1, 5, k), processors)
    weight = rng.uniform(0, 2, k)
    shape = Rectangles(np.arange(k), left, right, low.astype(float), high.astype(float))
    got = coverage(shape, weight, (begin, end, processors), size)
    columns, rows = np.linspace(begin, end, size[1] + 1), np.linspace(0, processors, size[0] + 1)
    across = np.clip(
        np.minimum(right[:, None], columns[1:]) - np.maximum(left[:, None], columns[:-1]), 0, None
    ) / np.diff(columns)
    along = np.clip(
        np.minimum(high[:, None], rows[1:]) - np.maximum(low[:, None], rows[:-1]), 0, None
    ) / np.diff(rows)
    assert got == pytest.approx(np.einsum("k,kr,kc->rc", weight, along, across), abs=1e-9)
    both = coverage(shape, np.stack([weight, 2 * weight]), (begin, end, processors), size)
    assert (both[0] == got).all()
    assert both[1] == pytest.approx(2 * got)


def test_means_and_extremes_keep_area_and_range():
    rng = np.random.default_rng(2)
    times, values = np.sort(rng.uniform(0, 10, 50)), rng.uniform(0, 5, 50)
    edges = np.linspace(-1, 11, 9)
    levels = Levels(times, values)
    mean = levels.means(edges)
    low, high = (levels.extremes(edges, of, closed=True) for of in (np.minimum, np.maximum))
    fine = np.linspace(-1, 11, 240_001)[:-1]
    at = np.searchsorted(times, fine, side="right") - 1
    sampled = np.where(at >= 0, values[at], 0.0).reshape(8, -1)
    assert mean == pytest.approx(sampled.mean(axis=1), abs=1e-3)
    assert low == pytest.approx(sampled.min(axis=1))
    assert high == pytest.approx(sampled.max(axis=1))


@pytest.mark.parametrize(("length", "unit"), [(100, "s"), (1000, "min"), (20000, "h"), (1e6, "d")])
def test_clock_chooses_its_unit(length, unit):
    assert clock(5.0, 5.0 + length).unit == unit


def test_a_schedule_shows_jobs_by_wait_over_the_load_and_nothing_else():
    figure = drawn(60)
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "processor",
        "busy (%)",
        "jobs waiting",
        "wait of the job (blank: idle)",
    ]
    assert len(drawn(20).axes) == 3  # jobs of a colour of their own need no scale of waits
    assert [axes.get_title(loc="left") for axes in figure.axes] == [""] * 4


def test_a_run_is_drawn_from_its_artefacts_as_from_its_processors_at_hand():
    trace, truth, records = random_run(1, 60, 8)
    tables = outcome(trace, truth, records).tables
    figure = schedule_figure(tables, 8)
    again = schedule_figure(tables, 8, nodes=records.allocations.nodes)
    for one, other in zip(figure.axes[0].collections, again.axes[0].collections, strict=True):
        assert [p.vertices.tolist() for p in one.get_paths()] == [
            p.vertices.tolist() for p in other.get_paths()
        ]


def test_one_job_is_drawn():
    figure = drawn(1, processors=1)
    assert [text.get_text() for text in figure.axes[0].texts] == ["1"]


def test_a_large_picture_covers_the_area_of_its_rectangles():
    rng = np.random.default_rng(0)
    k = 200_000
    left = np.sort(rng.uniform(0, 1e6, k))
    low = rng.integers(0, 200, k).astype(float)
    shape = Rectangles(np.arange(k), left, left + 10.0, low, low + 5)
    got = coverage(shape, np.ones(k), (0.0, 1e6 + 10, 256), (256, 1600))
    assert got.shape == (256, 1600)
    assert got.mean() * (1e6 + 10) * 256 == pytest.approx(k * 10.0 * 5)


def contrast(one, other):
    """By the formula of the Web Content Accessibility Guidelines."""
    light = []
    for colour in (one, other):
        parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        light.append(float(linear @ [0.2126, 0.7152, 0.0722]) + 0.05)
    return max(light) / min(light)


def test_a_picture_is_drawn_once_and_read_in_light_and_dark():
    figure = Figure()
    axes = figure.subplots()
    for number in range(len(LINE_COLOURS)):
        axes.plot([0, 1], [0, number], **line(number))
    light = svg_of(figure, "name")
    assert light == svg_of(figure, "name")
    dark = in_dark(light)
    paper = DARK["#ffffff"]
    assert f"fill: {paper}" in dark
    assert "#ffffff" not in dark
    assert dark.startswith(light[:40])
    for colour in LINE_COLOURS[:6]:
        assert contrast(DARK.get(colour.lower(), colour), paper) >= 4.5
    assert contrast(DARK["#000000"], paper) > contrast(DARK["#333333"], paper) > 7
    page = picture(light, "a < b")
    assert 'media="screen and (prefers-color-scheme: dark)"' in page
    assert base64.b64encode(dark.encode()).decode() in page.partition("<img")[0]
    assert 'alt="a &lt; b"' in page


def test_calibration_runs_wait_in_no_picture_as_in_no_table():
    jobs = pd.DataFrame(
        {"job_id": [-2, -1, 1], "submit_time": 0.0, "start_time": [0.0, 50.0, 70.0]}
    )
    timeline = pd.DataFrame({"time": [0.0, 50.0, 70.0], "queued_jobs": [2, 1, 0]})
    assert waiting(timeline, jobs).tolist() == [1.0, 1.0, 0.0]
    figure = Figure()
    calibration_note(figure, jobs)
    assert figure.get_supxlabel().startswith("Calibration runs (2) are drawn, as in tables")
    bare = Figure()
    calibration_note(bare, jobs[2:])
    assert bare.get_supxlabel() == ""


def test_logarithmic_times_are_marked_in_units_that_a_person_reads():
    axes = Figure().subplots()
    axes.set_xscale("log")
    time_ticks(axes.xaxis, least=60.0)
    shown = [label.get_text() for label in axes.get_xticklabels()]
    assert shown == ["1 min", "10 min", "1 h", "10 h", "4 d", "30 d", "1 a"]


def test_axes_of_time_have_dates_where_the_log_has_them(tmp_path):
    (tmp_path / "log.swf").write_text(
        "; UnixStartTime: 893462400\n; MaxProcs: 4\n"
        + "".join(
            f"{k} {3600 * k} 0 7200 2 -1 -1 2 9000 -1 1 1 1 1 -1 -1 -1 -1\n" for k in range(1, 49)
        )
    )
    log = ("workload=swf", f"workload.path={tmp_path / 'log.swf'}")
    for overrides, label, marks, offset in (
        (log, "date (UTC)", ["12:00", "Apr-26"], "1998-Apr"),
        (("workload.jobs=9",), "time since the first submit (h)", [], ""),
    ):
        run = sim.run(*overrides, policy="easy", predictor="user_estimate", baseline=None)
        for kind in ("load", "schedule"):
            figure = run.plot(kind)
            figure.draw_without_rendering()
            places = []
            for axes in figure.axes[-3:] if kind == "load" else figure.axes[:3]:
                places.append(axes.get_xticks().tolist())
                last = axes
            assert last.get_xlabel() == label
            assert all(place == places[0] for place in places)
            shown = [one.get_text() for one in last.get_xticklabels()]
            assert set(marks) <= set(shown), shown
            assert last.xaxis.get_offset_text().get_text().startswith(offset)


@pytest.mark.parametrize("epoch", [-1e12, 1e15, float("nan"), float("inf"), "soon", None])
def test_an_axis_without_a_date_that_can_be_written_counts_from_the_first_submit(epoch):
    axes = Figure().subplots()
    at = clock(5.0, 5.0 + 7200.0, epoch)
    at.mark(axes)
    assert axes.get_xlabel() == "time since the first submit (min)"
    assert at.shown == (0.0, 120.0)
