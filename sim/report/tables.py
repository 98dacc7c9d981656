"""The tables of a comparison as text: for the terminal, the page, CSV, LaTeX and Markdown."""

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import pandas as pd

from sim.report.answers import Difference, LoadCurve, Winners
from sim.report.gathering import Group, grouped, jobs_of
from sim.results import rows
from sim.results.artefacts import mean_summary, same_schedule
from sim.results.sentences import given_line, recorded_sentences
from sim.results.steady_state import Figures, in_windows, listed, replications_of
from sim.statistics import Comparison, Interval

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
    lines = grouped(known, lambda group: given_line(mean_given(group)))
    named = {line: [group.label for group in some] for line, some in lines.items() if line}
    return [
        f"Given to {'all' if len(some) == len(known) > 1 else listed(some)}: {line}."
        for line, some in named.items()
    ]


def schedule_sentences(groups: Sequence[Group]) -> list[str]:
    """Return what sets a log's own schedule apart from simulated ones, where it is a group."""
    shown = [group for group in groups if group.is_recorded]
    schedules = [one for group in shown for one in group.summaries]
    return recorded_sentences(schedules, any(in_windows(group.summaries) for group in shown))


def mean_given(group: Group) -> Figures:
    """Return the means of what the sentence needs."""
    told = [{k: v for k, v in one.items() if k.startswith(GIVEN)} for one in group.summaries]
    return mean_summary(told)


Figure = tuple[str, str, float]
"""A cell of the key table: a mean and the half-width of its interval as text, and the mean."""


def key_figures(groups: Sequence[Group]) -> tuple[list[str], list[tuple[Figure, ...]]]:
    """Return the headings of the key table's figures with their units, and those of each group.

    Times have the unit that their means are read in.
    """
    headings, columns = [], []
    for key, label in LABELS.items():
        found = [group.interval(key) for group in groups]
        unit, scale = rows.unit_of(key, [one.mean for one in found])
        headings.append(f"{label} ({unit})" if unit else label)
        columns.append([_figure(key, one, scale) for one in found])
    return headings, list(zip(*columns, strict=True))


def _figure(key: str, found: Interval, scale: float) -> Figure:
    if key.endswith("_error") and found.mean > rows.MOST_ERROR:
        return rows.BEYOND, "", found.mean
    half = number(found.half / scale) if math.isfinite(found.half) else ""
    return number(found.mean / scale), half, found.mean


def key_table(
    groups: Sequence[Group], changes: Mapping[str, str] = MappingProxyType({})
) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of the key table as text, without columns that nobody has.

    Changes against the reference, by the groups' labels, are a column of it.
    """
    headings, found = key_figures(groups)
    head = ["runs", rows.MOLDED, "n", "change", *headings, "allocation choices"]
    lines = [
        [group.label, rows.molded_text(group.summaries), size(group), changes.get(group.label, "–"),
         *(" ± ".join(filter(None, one[:2])) for one in own), group.menu or "–"]
        for group, own in zip(groups, found, strict=True)
    ]  # fmt: skip
    kept = [k for k in range(len(head)) if k < 2 or any(line[k] != "–" for line in lines)]
    return [head[k] for k in kept], [[line[k] for k in kept] for line in lines]


def text_table(
    groups: Sequence[Group],
    form: Form,
    said: Sequence[str] = (),
    changes: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the key table in LaTeX (booktabs) or Markdown, and below it what must be known.

    Changes are as in `key_table`.

    Examples
    --------
    >>> print(text_table([Group({"policy": "sa"}, "run")], "markdown").splitlines()[0])
    | runs | jobs molded | n |
    """
    head, below = key_table(groups, changes)
    if form == "markdown":
        rule = ["---"] + ["---:"] * (len(head) - 1)
        plain = [[_markdown(one) for one in row] for row in (head, *below)]
        lines = [f"| {' | '.join(row)} |" for row in (plain[0], rule, *plain[1:])]
        told = ["", *(line for sentence in said for line in (_markdown(sentence), ""))][:-1]
        return "\n".join([*lines, *told]) + "\n"
    body = [" & ".join(map(_latex, row)) + r" \\" for row in (head, *below)]
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


UNSTEADY = "does not settle"
"""What stands in place of a change of means that hang on the length of the run."""
INFORMATION = "change by runtime information"
BY_WHAT = (
    "Change by policy: against the reference's policy with the run's predictor. Change by runtime "
    "information: that against the reference; --against predictor=NAME is of the run's own policy."
)
LOSES = "Who loses"
OVER_LOAD = "Over load"
STOPS = "curve"
"""Column that says how far a load curve goes."""


def changed(one: Difference, found: Comparison | None = None) -> str:
    """Return a change of a difference's figure as text."""
    return UNSTEADY if one.refused else rows.change_text(found or one.comparison, one.unit)


def difference_rows(found: Sequence[Difference]) -> pd.DataFrame:
    """Return the differences as text, a row each, the best first among those on the same jobs."""
    references = list(dict.fromkeys(one.reference for one in found))

    def rank(one: Difference) -> tuple[int, float]:
        change = one.change.mean
        return references.index(one.reference), math.inf if math.isnan(change) else change

    names, policies = reference_names(found), {one.reference.policy for one in found}
    under = policies.pop() if len(policies) == 1 else "the reference's policy"
    return pd.DataFrame(
        {
            "runs": one.group.label,
            "against": names[one.reference],
            "change": changed(one),
            "change by policy": "–" if one.alone is None else changed(one, one.alone),
            f"{INFORMATION} under {under}": "–" if one.step is None else changed(one.step),
            "pairs that do not settle": f"{one.unsettled} of {one.pairs}" if one.unsettled else "–",
            "share of oracle's gain": rows.percent(one.kept)
            if isinstance(one.kept, Interval)
            else one.kept or "–",
            "pairs": str(one.pairs),
            "replications": replications_of(one.group.summaries) if one.pairs > 1 else "–",
            "read alone": "–"
            if math.isnan(one.comparison.single.low)
            else rows.percent(one.comparison.single, one.unit),
        }
        for one in sorted(found, key=rank)
    )


def reference_names(found: Sequence[Difference]) -> dict[Group, str]:
    """Return what references are called: briefly where each is of the same jobs."""
    names = {one.reference: one.reference.label for one in found}
    alike = all(jobs_of(one.group) == jobs_of(one.reference) for one in found)
    if alike and len(set(names.values())) > 1:
        names = {one: ", ".join(filter(None, (one.policy, one.predictor))) for one in names}
    return names


def difference_figures(found: Sequence[Difference]) -> pd.DataFrame:
    """Return the differences in numbers, for ``differences.csv``."""
    every = []
    for one in found:
        row: dict[str, object] = {**one.group.setting, "role": one.group.role}
        row |= {"reference": one.reference.label, "pairs": one.pairs, "set": one.set}
        for name, interval in (
            ("change", one.change),
            ("gain_kept", None if isinstance(one.kept, str) else one.kept),
            ("policy_alone", None if one.alone is None else one.alone.change),
            ("single", one.comparison.single),
        ):
            if interval is not None:
                row |= {name: interval.mean, f"{name}_low": interval.low}
                row[f"{name}_high"] = interval.high
        row |= {"least": one.comparison.least, "most": one.comparison.most}
        row |= {"identical": one.comparison.identical, "settles": not one.refused}
        every.append(row)
    return pd.DataFrame(every)


def curve_rows(curves: Sequence[LoadCurve], figure: str) -> pd.DataFrame:
    """Return load curves as text: a row a group, a column a load, and where each stops."""
    loads = sorted({load for one in curves for load in one.points})
    unit = rows.unit_of(figure, [point.mean for one in curves for point in one.points.values()])
    every = []
    for one in curves:
        cells = {f"load {load:g}": _cell(one.points.get(load), *unit) for load in loads}
        every.append({"runs": one.label, **cells, STOPS: one.says()})
    return pd.DataFrame(every)


def _cell(interval: Interval | None, unit: str, scale: float) -> str:
    if interval is None:
        return "–"
    half = f" ± {number(interval.half / scale)}" if interval.half > 0 else ""
    return f"{number(interval.mean / scale)}{half} {unit}".rstrip()


def regret_rows(found: Mapping[str, Mapping[str, pd.DataFrame]]) -> pd.DataFrame:
    """Return who bears the regret against the oracle as text, a row a group of jobs."""
    return pd.DataFrame(
        {
            "runs": label,
            "jobs": f"{key} {str(name).replace('_', ' ')}",
            "of all jobs": f"{100 * line['jobs']:.1f} %",
            "regret (min)": number(line["regret"] / 60),
            "waiting (min)": number(line["waiting"] / 60),
            "running (min)": number(line["running"] / 60),
            "median error": rows.texts([float(line["median_error"])], rows.ERROR)[0],
        }
        for label, tables in found.items()
        for key, table in tables.items()
        for name, line in table.iterrows()
    )


def loss_rows(found: Sequence[Winners]) -> pd.DataFrame:
    """Return who loses as text, a row a run, in its order."""
    return pd.DataFrame(
        {
            "runs": who.own,
            "respond later (%)": number(100 * who.longer),
            "at most by": rows.duration(who.most) if who.longer else "–",
            "sooner (%)": number(100 * who.shorter),
        }
        for who in found
    )
