"""The key table of a comparison: for the page, for LaTeX and for Markdown."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sim.report.samples import Estimate, Group, estimate


@dataclass(frozen=True)
class Column:
    """A figure of the key table.

    Attributes
    ----------
    key : str
        Of the summary.
    label, unit : str
    scale : float
        One unit, in the summary's units.
    """

    key: str
    label: str
    unit: str
    scale: float


COLUMNS = (
    Column("mean_response_time", "mean response", "h", 3600.0),
    Column("p95_response_time", "95th percentile response", "h", 3600.0),
    Column("mean_wait_time", "mean wait", "h", 3600.0),
    Column("mean_bounded_slowdown", "bounded slowdown", "", 1.0),
    Column("utilization", "utilisation", "%", 0.01),
    Column("system_efficiency", "efficiency", "%", 0.01),
    Column("prediction_mape", "prediction error", "%", 0.01),
)


def number(value: float) -> str:
    """Return a figure with three digits, at most four of them decimals.

    Examples
    --------
    >>> number(1234.5), number(0.1234), number(-1e-12), number(float("nan"))
    ('1,234', '0.123', '0', '–')
    """
    if not math.isfinite(value):
        return "–"
    if abs(value) < 5e-5:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(digits, 4)}f}"


def cell(found: Estimate, scale: float) -> str:
    """Return a mean with its interval as text."""
    text = number(found.mean / scale)
    return text if not math.isfinite(found.half) else f"{text} ± {number(found.half / scale)}"


def key_rows(groups: Sequence[Group]) -> list[tuple[Group, list[Estimate]]]:
    """Return the estimates of each group in the order of `COLUMNS`."""
    return [(g, [estimate(g.values(column.key)) for column in COLUMNS]) for g in groups]


def heading(column: Column) -> str:
    """Return a column's name with its unit."""
    return f"{column.label} ({column.unit})" if column.unit else column.label


def text_table(groups: Sequence[Group], form: Literal["latex", "markdown"]) -> str:
    """Return the key table in LaTeX (booktabs) or Markdown.

    Examples
    --------
    >>> print(text_table([Group({"policy": "sa"}, "run")], "markdown").splitlines()[1])
    | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
    """
    head = ["runs", *map(heading, COLUMNS), "n"]
    rows = [
        [g.label, *(cell(e, c.scale) for e, c in zip(found, COLUMNS, strict=True)),
         str(len(g.samples))]
        for g, found in key_rows(groups)
    ]  # fmt: skip
    if form == "markdown":
        rule = ["---"] + ["---:"] * (len(head) - 1)
        lines = [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]
        return "\n".join(line.replace("_", r"\_") for line in lines) + "\n"
    body = [" & ".join(map(_latex, row)) + r" \\" for row in (head, *rows)]
    lines = [r"\begin{tabular}{l" + "r" * (len(head) - 1) + "}", r"\toprule", body[0], r"\midrule"]
    return "\n".join([*lines, *body[1:], r"\bottomrule", r"\end{tabular}"]) + "\n"


def _latex(text: str) -> str:
    for plain in "%_&#${}":
        text = text.replace(plain, f"\\{plain}")
    text = text.replace("~", r"\textasciitilde{}").replace("^", r"\textasciicircum{}")
    return text.replace("±", r"$\pm$").replace("–", "--")
