"""The key table of a comparison: for the page, for LaTeX and for Markdown."""

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

from sim.report.samples import Group, estimate
from sim.results.artefacts import mean_summary, same_schedule
from sim.results.job_metrics import Figures
from sim.results.rows import BEYOND, MOLDED, MOST_ERROR, molded_text, unit_of
from sim.results.sentences import given_lines, recorded_sentences
from sim.results.steady_state import in_windows, listed
from sim.statistics import Interval

Form = Literal["latex", "markdown"]
GIVEN = ("given_", "applications", "sizes_", "share_moldable", "share_malleable", "resized_jobs")
"""How keys of the summary begin that say what was given, what repeats, and which jobs change."""


LABELS = {
    "mean_response_time": "mean response",
    "p95_response_time": "95th percentile response",
    "mean_wait_time": "mean wait",
    "mean_bounded_slowdown": "bounded slowdown",
    "utilization": "utilisation",
    "system_efficiency": "efficiency",
    "prediction_median_error": "median error",
    "prediction_p90_error": "90th percentile error",
    "prediction_within_20": "within 20 %",
    "share_own_predictions": "starts with a prediction",
    "fallback_median_error": "requests' median error",
}
"""Figures of the key table."""


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


def size(group: Group) -> str:
    """Return how many simulations a group has, and whether they are all the same."""
    same = same_schedule(group.summaries)
    return f"{len(group.samples)}, identical" if same else str(len(group.samples))


def given_sentences(groups: Sequence[Group]) -> list[str]:
    """Return what the predictors of each group were given, a sentence for each answer.

    Of several simulations the means are told.
    """
    known = [g for g in groups if g.samples and not g.is_recorded]
    said = []
    for line, places in given_lines([mean_given(group) for group in known]).items():
        some = [known[place].label for place in places]
        whom = "all" if len(some) == len(known) > 1 else listed(some)
        said.append(f"Given to {whom}: {line}.")
    return said


def schedule_sentences(groups: Sequence[Group]) -> list[str]:
    """Return what sets a log's own schedule apart from simulated ones, where it is a group."""
    shown = [group for group in groups if group.is_recorded]
    schedules = [one for group in shown for one in group.summaries]
    return recorded_sentences(schedules, any(in_windows(group.summaries) for group in shown))


def mean_given(group: Group) -> Figures:
    """Return the means of what the sentence needs."""
    told = [{k: v for k, v in one.items() if k.startswith(GIVEN)} for one in group.summaries]
    return mean_summary(told)


class Figure(NamedTuple):
    """A cell of the key table: a mean and the half-width of its interval as text, perhaps empty."""

    mean: str
    half: str
    value: float


def key_figures(groups: Sequence[Group]) -> tuple[list[str], list[tuple[Figure, ...]]]:
    """Return the headings of the key table's figures with their units, and those of each group.

    Times have the unit that their means are read in.
    """
    headings, columns = [], []
    for key, label in LABELS.items():
        found = [estimate(group.values(key)) for group in groups]
        unit, scale = unit_of(key, [one.mean for one in found])
        headings.append(f"{label} ({unit})" if unit else label)
        columns.append([_figure(key, one, scale) for one in found])
    return headings, list(zip(*columns, strict=True))


def _figure(key: str, found: Interval, scale: float) -> Figure:
    if key.endswith("_error") and found.mean > MOST_ERROR:
        return Figure(BEYOND, "", found.mean)
    half = number(found.half / scale) if math.isfinite(found.half) else ""
    return Figure(number(found.mean / scale), half, found.mean)


def key_table(
    groups: Sequence[Group], changes: Mapping[str, str] = MappingProxyType({})
) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of the key table as text, without columns that nobody has.

    Parameters
    ----------
    groups : sequence of Group
    changes : mapping of str to str
        Against their reference, by the groups' labels, for a column of them.
    """
    headings, found = key_figures(groups)
    head = ["runs", MOLDED, "n", "change", *headings, "allocation choices"]
    rows = [
        [group.label, molded_text(group.summaries), size(group), changes.get(group.label, "–"),
         *(" ± ".join(filter(None, one[:2])) for one in own), group.menu or "–"]
        for group, own in zip(groups, found, strict=True)
    ]  # fmt: skip
    kept = [k for k in range(len(head)) if k < 2 or any(row[k] != "–" for row in rows)]
    return [head[k] for k in kept], [[row[k] for k in kept] for row in rows]


def text_table(
    groups: Sequence[Group],
    form: Form,
    said: Sequence[str] = (),
    changes: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the key table in LaTeX (booktabs) or Markdown, and below it what must be known.

    Parameters
    ----------
    groups : sequence of Group
    form : {"latex", "markdown"}
    said : sequence of str
        Sentences below the table.
    changes : mapping of str to str
        Against their reference, by the groups' labels, for a column of them.

    Examples
    --------
    >>> print(text_table([Group({"policy": "sa"}, "run")], "markdown").splitlines()[0])
    | runs | jobs molded | n |
    """
    head, rows = key_table(groups, changes)
    if form == "markdown":
        rule = ["---"] + ["---:"] * (len(head) - 1)
        plain = [[_markdown(one) for one in row] for row in (head, *rows)]
        lines = [f"| {' | '.join(row)} |" for row in (plain[0], rule, *plain[1:])]
        below = ["", *(line for sentence in said for line in (_markdown(sentence), ""))][:-1]
        return "\n".join([*lines, *below]) + "\n"
    body = [" & ".join(map(_latex, row)) + r" \\" for row in (head, *rows)]
    lines = [r"\begin{tabular}{l" + "r" * (len(head) - 1) + "}", r"\toprule", body[0], r"\midrule"]
    end = [r"\bottomrule", r"\end{tabular}", *(rf"\par {_latex(one)}" for one in said)]
    return "\n".join([*lines, *body[1:], *end]) + "\n"


def _markdown(text: str) -> str:
    """Return text that Markdown shows as it is: no markup, no HTML, no end of a cell."""
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", " ".join(text.split()))


LATEX = {plain: f"\\{plain}" for plain in "%_&#${}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
}


def _latex(text: str) -> str:
    """Return text that LaTeX sets as it is: no commands."""
    return "".join(LATEX.get(one, one) for one in " ".join(text.split()))
