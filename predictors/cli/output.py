"""A report for people: a table with figures and sentences, and a picture."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console, Group

from predictors.base import FloatArray, Predictor, Remark
from predictors.cli.report import EFFICIENT, CurveReport, number
from predictors.cli.terminal import fitting_tables
from predictors.plain import shown_plainly
from predictors.remarks import UNUSABLE

_LABELS = {
    "A": "average parallelism A",
    "sigma": "variance of parallelism sigma",
    "floor": "relative noise",
    "serial": "serial part (s)",
    "parallel": "parallel part (s)",
    "scale": "scale (s)",
}


UNITS = (("h", 3600.0), ("min", 60.0), ("s", 1.0))
"""Of the axis of a picture: the first in which every measured runtime is at least 1."""


def print_report(report: CurveReport, console: Console) -> None:
    """Write a report as a sentence, a table, figures and remarks."""
    for sentence in re.split(r"(?<=\.) (?=[A-Z\d])", report.answer):
        console.print(sentence, markup=False)
    is_alone = not report.uses and len(report.measured) == 1
    if not is_alone:
        _print_figures(report, console)
    told = [one for one in report.remarks if one.grade == "note" or not is_alone]
    for line in dict.fromkeys(f"{remark.grade}: {remark.text}" for remark in told):
        console.print(line, markup=False)


def _print_figures(report: CurveReport, console: Console) -> None:
    console.print(_table(report, console.width))
    known = "measured" if report.serial_measured else "predicted"
    console.print(
        f"Speedup and efficiency are those of the measured runtime, else of the predicted one, "
        f"and refer to {number(report.serial_time)} s on one ({known})."
    )
    for name, value in report.parameters.items():
        console.print(f"{_LABELS.get(name, name)}: {value:.4g}")
    if any(one.target is None and one.grade == UNUSABLE for one in report.remarks):
        return
    knee = "not within reach" if report.knee is None else f"{report.knee:.4g}"
    console.print(f"knee of the predictions (best balance of speedup and efficiency): {knee}")
    for least, count in report.at_efficiency.items():
        text = "beyond the counts considered" if count is None else f"up to {count:.4g}"
        console.print(f"predicted efficiency of at least {least}: {text}")


def print_curves(reports: dict[str, CurveReport], console: Console, with_targets: bool) -> None:
    """Write a line a curve: what to use, what to expect there and at targets, what to measure."""
    console.print(f"{len(reports)} curves; --curve K shows one of them.")
    console.print(f"Use: {EFFICIENT}. Runtimes with a grade are predicted.")
    head = ["K", "curve", "use", "runtime (s)", "efficiency 0.5 up to", "measure next"]
    rows = []
    if with_targets:
        head += [f"on {row.nprocs:g} (s)" for row in next(iter(reports.values())).rows]
    for place, (name, report) in enumerate(reports.items(), 1):
        believed = [use for use in report.uses if use.nprocs == report.use and not use.measured]
        told = f", {believed[0].grade}" if believed else ""
        cells = [
            str(place),
            name.partition("=")[2],
            "-" if report.use is None else f"{report.use:g}",
            "-" if report.use_runtime is None else f"{number(report.use_runtime)}{told}",
            "-"
            if not report.uses or report.at_efficiency["0.5"] is None
            else f"{report.at_efficiency['0.5']:g}",
            "-" if report.measure_next is None else str(report.measure_next),
        ]
        cells += [
            f"{number(on.runtime)} ({number(on.low)} to {number(on.high)}), {on.grade}"
            for on in (report.rows if with_targets else ())
        ]
        rows.append(cells)
    console.print(fitting_tables(head, rows, console.width, 2))


def save_plot(
    path: Path, model: Predictor, observed: FloatArray, runtime: FloatArray, report: CurveReport
) -> str:
    """Draw measurements, curve and range on logarithmic axes; return in which files.

    An SVG has another for dark pages.
    """
    import matplotlib.style
    from matplotlib.figure import Figure

    ends = [row.nprocs for row in report.rows] + observed.tolist()
    counts = np.geomspace(min(ends), max(max(ends), min(ends) * 1.01), 200)
    unit, seconds = next(one for one in UNITS if runtime.min() >= one[1] or one[0] == "s")
    low, high = (end / seconds for end in model.predict_range(counts))
    looks = {path: "default"}
    if path.suffix == ".svg":
        looks[path.with_suffix(".dark.svg")] = "dark_background"
    for place, look in looks.items():
        with matplotlib.style.context(look):
            figure = Figure(figsize=(7.0, 4.5), layout="constrained")
            axes = figure.subplots()
            axes.fill_between(counts, low, high, alpha=0.2, label="80 % range")
            axes.plot(counts, model.predict(counts) / seconds, label=report.method)
            axes.plot(observed, runtime / seconds, "o", color="C3", label="measured")
            axes.set(xlabel="processors", ylabel=f"runtime ({unit})")
            axes.loglog(base=2)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.legend()
            figure.savefig(place, dpi=150)
    return " and ".join(map(str, looks))


def _table(report: CurveReport, width: int) -> Group:
    head = ["processors", "measured (s)", "predicted (s)", "range (s)", "speedup", "efficiency"]
    targets = (row for row in report.rows if not row.measured)
    ordered = [*report.measured, *targets, *report.advised]
    rows = [
        [
            f"{row.nprocs:g}",
            "" if row.measured_runtime is None else number(row.measured_runtime),
            number(row.runtime),
            f"{number(row.low)} to {number(row.high)}",
            f"{report.serial_time / row.seconds:.4g}",
            f"{report.serial_time / row.cost:.3f}",
            row.grade,
        ]
        for row in ordered
    ]
    title = f"{report.method}, from {report.observations} run{'s' * (report.observations > 1)}"
    return fitting_tables(
        [*head, "trust"], rows, width, title=title, ends=[len(report.measured) - 1]
    )


def write_json(answer: dict[str, Any]) -> None:
    """Write an answer to standard output."""
    json.dump(answer, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def write_table(as_json: bool, title: str, rows: pd.DataFrame, remarks: list[Remark]) -> None:
    """Write a small table and its remarks, as text or JSON."""
    if as_json:
        finite = rows.astype(object).where(np.isfinite(rows), None)
        said = [remark._asdict() for remark in remarks]
        write_json({"answer": title, "rows": finite.to_dict(orient="records"), "remarks": said})
        return
    table = rows.to_string(index=False, float_format=lambda value: f"{value:.6g}")
    lines = "".join(f"{remark.grade}: {remark.text}\n" for remark in remarks)
    sys.stdout.write(shown_plainly(f"{title}\n{table}\n{lines}"))
