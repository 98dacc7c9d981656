"""A report for people: a table with figures and sentences, and a picture."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from predictors.base import FloatArray, Predictor, Remark
from predictors.cli.report import Report

_LABELS = {
    "A": "average parallelism A",
    "sigma": "variance of parallelism sigma",
    "serial_time": "runtime on one processor (s)",
    "floor": "relative noise",
    "serial": "serial part (s)",
    "parallel": "parallel part (s)",
    "scale": "unit of time (s)",
    "contention": "contention",
    "coherency": "coherency",
}


def print_report(report: Report, console: Console) -> None:
    """Write a report as a table, figures and sentences."""
    console.print(_table(report))
    if not report.serial_measured:
        console.print("Speedup and efficiency refer to a predicted runtime on one processor.")
    for name, value in report.parameters.items():
        console.print(f"{_LABELS.get(name, name)}: {value:.4g}")
    knee = "not within reach" if report.knee is None else f"{report.knee:.4g} processors"
    console.print(f"knee (best balance of speedup and efficiency): {knee}")
    for least, count in report.at_efficiency.items():
        text = "beyond the counts considered" if count is None else f"{count:.4g} processors"
        console.print(f"efficiency of at least {least}: up to {text}")
    for line in dict.fromkeys(f"{remark.grade}: {remark.text}" for remark in report.remarks):
        console.print(line, markup=False)
    if report.measure_next is not None:
        console.print(f"measure next on: {report.measure_next} processors")
    else:
        console.print("measure next on: no further count is needed")


def save_plot(
    path: Path, model: Predictor, observed: FloatArray, runtime: FloatArray, report: Report
) -> None:
    """Draw measurements, curve, range and knee on logarithmic axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    ends = [row.nprocs for row in report.rows] + observed.tolist()
    counts = np.geomspace(min(ends), max(max(ends), min(ends) * 1.01), 200)
    low, high = model.predict_range(counts)
    axes.fill_between(counts, low, high, alpha=0.2, label="range")
    axes.plot(counts, model.predict(counts), label=report.method)
    axes.plot(observed, runtime, "o", color="black", label="measured")
    if report.knee is not None and report.knee <= counts[-1]:
        axes.axvline(report.knee, linestyle="--", color="grey", label="knee")
    axes.set(xscale="log", yscale="log", xlabel="processors", ylabel="runtime (s)")
    axes.legend()
    figure.savefig(path, dpi=150)


def _table(report: Report) -> Table:
    title = f"{report.method}, from {report.observations} runs"
    table = Table(title=title, title_justify="left")
    for heading in ("processors", "runtime (s)", "range (s)", "speedup", "efficiency", "trust"):
        table.add_column(heading, justify="right")
    for row in report.rows:
        table.add_row(
            f"{row.nprocs:g}",
            f"{row.runtime:.4g}",
            f"{row.low:.4g} - {row.high:.4g}",
            f"{row.speedup:.4g}",
            f"{row.efficiency:.3f}",
            row.grade,
        )
    return table


def write_table(as_json: bool, title: str, rows: pd.DataFrame, remarks: list[Remark]) -> None:
    """Write a small table and its remarks, as text or JSON."""
    if as_json:
        finite = rows.astype(object).where(np.isfinite(rows), None)
        answer = {
            "answer": title,
            "rows": finite.to_dict(orient="records"),
            "remarks": [remark._asdict() for remark in remarks],
        }
        json.dump(answer, sys.stdout, indent=2, allow_nan=False)
        sys.stdout.write("\n")
        return
    table = rows.to_string(index=False, float_format=lambda value: f"{value:.6g}")
    lines = "".join(f"{remark.grade}: {remark.text}\n" for remark in remarks)
    sys.stdout.write(f"{title}\n{table}\n{lines}")
