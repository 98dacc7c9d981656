"""What studies of prediction methods ask for: measured curves, and their papers' experiments."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import accuracy, adept_figure_4, rational_runs, sage_errors
from benchmarks.consensus_choice import BEYOND, Asked, chosen_errors
from benchmarks.measured_curves import MeasuredCurve, cases, read_curves

COUNTS = ((3, 4), (5,))
"""How many measured counts a method is given, by groups."""
EXTRAP = "MOLDSIM_EXTRAP"
"""The variable that names the interpreter of an environment with Extra-P."""


def curves_of(data: Path, toy: bool) -> list[MeasuredCurve]:
    """Return the measured curves, or each eighth of them."""
    return read_curves(data / "scaling")[:: 8 if toy else 1]


def curve_errors(data: Path, toy: bool) -> dict[str, Any]:
    """Return errors by method and distance, and those of a consensus chosen on other files."""
    curves = curves_of(data, toy)
    return {
        "chosen": chosen_consensus(curves),
        "rows": [row for name in accuracy.METHODS for row in method_rows(curves, name)],
    }


def method_rows(curves: list[MeasuredCurve], name: str) -> list[dict[str, Any]]:
    """Return the rows of one method."""
    return asked_rows(curves, name, lambda asked: accuracy.answered(name, asked))


def extrap_errors(data: Path, toy: bool) -> dict[str, Any]:
    """Return the errors of Extra-P."""
    curves, rows = curves_of(data, toy), []
    for name, negative in accuracy.EXTRAP.items():
        rows += asked_rows(
            curves, name,
            lambda asked, negative=negative: accuracy.answered_by_extrap(
                os.environ[EXTRAP], negative, asked
            ),
        )  # fmt: skip
    return {"rows": rows}


def asked_rows(curves: list[MeasuredCurve], name: str, answered: Any) -> list[dict[str, Any]]:
    """Return a row for each group of counts and distance."""
    rows = []
    for group in COUNTS:
        asked = [case for k in group for case in cases(curves, k)]
        found = accuracy.measured(name, " and ".join(map(str, group)), asked, answered(asked))
        rows += [row._asdict() for row in found]
    return rows


def chosen_consensus(curves: list[MeasuredCurve]) -> list[dict[str, Any]]:
    """Return errors from three and four counts with methods chosen on the other files."""
    asked = Asked(curves, (3, 4))
    _, errors = chosen_errors(asked)
    return [
        {
            "distance": distance,
            "median": 100 * asked.quantile(errors, 0.5, asked.distance == distance),
            "tail": 100 * asked.quantile(errors, 0.9, asked.distance == distance),
        }
        for distance in BEYOND
    ]


def cycle_errors(data: Path, toy: bool) -> dict[str, Any]:
    """Return mean errors of the next cycle's time, in percent, as in Tables 3 and 4."""
    runs = 2 if toy else 50
    return {
        "runs": runs,
        "rows": [
            {"machine": machine, "processors": count, "errors": errors}
            for machine in sage_errors.PRINTED
            for count, errors in zip(
                sage_errors.COUNTS, sage_errors.error_figures(machine, runs).tolist(), strict=True
            )
        ],
    }


FORMS = ("min_avg_avail", "effective")
USUAL = ("rational", "size alone")
EVERY = (*USUAL, "type 1", "type 2", "analytical")
"""Models of the experiment that the paper has several denominators for."""


def rational_settings(toy: bool) -> Iterator[tuple[rational_runs.Case, str]]:
    """Yield the experiments with the lengths of their runs; one at toy size."""
    for case in rational_runs.CASES[: 1 if toy else None]:
        yield from ((case, one) for one in (("any",) if case.constant else rational_runs.LENGTHS))


def rational_rows(case: rational_runs.Case, length: str, seeds: int) -> list[dict[str, Any]]:
    """Return mean errors by seed, in percent, of each model, way to fit and known load."""
    seconds, rows = rational_runs.LENGTHS.get(length, 120.0), []
    models = EVERY if case.name == "eigenvalue, 8 processors" else USUAL
    for form in FORMS:
        tables = [
            rational_runs.errors(replace(case, form=form), seconds, seed, models)
            for seed in range(1, seeds + 1)
        ]
        for (model, method, load), table in pd.concat(tables).groupby(["model", "method", "load"]):
            errors = 100 * table.groupby("seed")["error"].mean()
            rows.append({"case": case.name, "runs": length, "paper": case.paper, "form": form,
                         "model": model, "method": method, "load": load,
                         "error": errors.tolist()})  # fmt: skip
    return rows


def rational_errors(data: Path, toy: bool) -> dict[str, Any]:
    """Return errors of rational polynomials on simulated runs of their paper's experiments."""
    seeds, rows = 2 if toy else 10, []
    for case, length in rational_settings(toy):
        rows += rational_rows(case, length, seeds)
    return {"seeds": seeds, "rows": rows}


def figure_4_errors(data: Path, toy: bool) -> dict[str, Any]:
    """Return the largest errors of each method in ADEPT's Figure 4, and seconds an experiment."""
    rows = []
    for method, predict in adept_figure_4.METHODS.items():
        if toy and method.startswith("exhaustive"):
            continue
        for name in adept_figure_4.SETS:
            errors, seconds = adept_figure_4.largest_errors(name, predict)
            rows.append({"method": method, "set": name, "errors": (100 * errors).tolist(),
                         "seconds": seconds})  # fmt: skip
    return {"rows": rows}
