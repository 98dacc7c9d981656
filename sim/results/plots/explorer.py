"""A page to look into schedules: zoom, brush, hover over a job; two runs on one time axis."""

import base64
import gzip
import importlib
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

import numpy as np
import pandas as pd

from predictors.base import FloatArray
from sim.errors import SimError
from sim.results.outcome import Levels
from sim.results.plots.pictures import RunFolder, rectangles
from sim.results.plots.style import clock

TEMPLATE = Path(__file__).with_name("explorer.html")
MOST_POINTS = 1200
"""Points of a curve below the schedule."""
COLUMNS = (
    "job_id", "submit_time", "start_time", "end_time", "requested_processors",
    "allocated_processors", "requested_time", "believed_runtime", "runtime", "user", "application",
)  # fmt: skip
"""Columns of jobs that are told of one."""
NEEDS = "moldsim plot RUN explorer needs plotly: pip install 'moldsim[explorer]'"


def explorer_page(runs: Sequence[RunFolder]) -> str:
    """Return the page of one run, or two on one time axis.

    It needs no network: the script of Plotly's package is part of it.

    Raises
    ------
    SimError
        If Plotly is not installed.
    """
    try:
        script = importlib.import_module("plotly.offline").get_plotlyjs()
    except ImportError:
        raise SimError(NEEDS) from None
    submits = [one.tables.jobs["submit_time"].min() for one in runs]
    ends = [one.tables.jobs["end_time"].max() for one in runs]
    at = clock(float(min(submits)), float(max(ends)))
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape("; ".join(one.title for one in runs)),
        plotly=script,
        unit=at.unit,
        seconds=repr(at.seconds),
        length=repr((at.end - at.begin) / at.seconds),
        runs=json.dumps([_packed(one, at.begin) for one in runs]).replace("<", "\\u003c"),
    )


def _packed(one: RunFolder, begin: float) -> dict[str, object]:
    """Return a schedule as text: columns of four bytes, one after the other, compressed."""
    jobs, held = one.tables.jobs, one.tables.allocations
    row = pd.Index(jobs["job_id"]).get_indexer(held["job_id"])
    shape = rectangles(held)
    shape = shape._replace(begin=shape.begin - begin, end=shape.end - begin)
    stretch, *edges = shape.part(np.argsort(shape.begin, kind="stable"))
    columns = dict(zip(("begin", "end", "low", "high"), edges, strict=True))
    columns |= {"row": row[stretch], "held": held["processors"].to_numpy()[stretch]}
    for name in COLUMNS:
        values = jobs[name].to_numpy(np.float64)
        columns[f"job.{name}"] = values - begin if name in COLUMNS[1:4] else values
    times = one.tables.timeline["time"].to_numpy() - begin
    for name in ("busy_processors", "queued_jobs"):
        values = one.tables.timeline[name].to_numpy(np.float64)
        columns[f"{name}.time"], columns[name] = _thinned(times, values)
    data = b"".join(column.astype("<f4").tobytes() for column in columns.values())
    names = {
        part: dict(zip(jobs[part].tolist(), jobs[f"{part}_name"], strict=True))
        for part in ("user", "application")
        if f"{part}_name" in jobs.columns
    }
    return {
        "title": one.title,
        "names": names,
        "processors": one.processors,
        "columns": {name: len(column) for name, column in columns.items()},
        "data": base64.b64encode(gzip.compress(data, 6, mtime=0)).decode(),
    }


def _thinned(times: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a step function of few points: where it has more, means between instants."""
    if len(times) <= MOST_POINTS:
        return times, values
    edges = np.linspace(times[0], times[-1], MOST_POINTS + 1)
    return edges[:-1], Levels(times, values).means(edges)
