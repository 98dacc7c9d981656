"""The answers of a comparison as plain tables: for the terminal, the page and CSV."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from sim.report.answers import Curve, Difference, differences, load_curves, regrets
from sim.report.samples import Group
from sim.report.tables import number
from sim.results.rows import ERROR, POINTS, texts
from sim.statistics.intervals import Interval

IDENTICAL = {"runs": "identical runs", "replications": "identical replications"}
"""What stands in place of a p value where there is nothing to infer."""
SHOWN = 15
"""Rows that the terminal shows of a table; the page and the file have all."""
REGRET = "Who bears the regret against the oracle"
STOPS = "where it stops"
"""Column that says where a load curve stops."""
ON_PAGE = (REGRET,)
"""Tables that the page alone shows."""


def percent(interval: Interval, unit: str = "%") -> str:
    """Return an interval of shares as text.

    Examples
    --------
    >>> percent(Interval(-0.5, -0.6, -0.4, 5)), percent(Interval(0.5, -math.inf, math.inf, 5))
    ('-50.0 % [-60.0, -40.0]', '50.0 % [unbounded]')
    """
    if not math.isfinite(interval.mean):
        return "–"
    text = f"{100 * interval.mean:.1f} {unit}"
    if math.isinf(interval.low):
        return f"{text} [unbounded]"
    if math.isnan(interval.low):
        return text
    return f"{text} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def changed(one: Difference, interval: Interval) -> str:
    """Return a change of a difference's figure as text."""
    return percent(interval, POINTS if one.is_share else "%")


def span(interval: Interval) -> str:
    """Return the limits of an interval as text; a dash where there are none."""
    if math.isnan(interval.low):
        return "–"
    return f"[{number(interval.low)}, {number(interval.high)}]"


def _probability(value: float) -> str:
    if math.isnan(value):
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def difference_rows(found: Sequence[Difference]) -> pd.DataFrame:
    """Return the differences as text, a row each, the best first among those on the same jobs."""
    order = sorted(range(len(found)), key=lambda place: _rank(found, place))
    rows = []
    for one in (found[place] for place in order):
        compared = one.comparison
        rows.append(
            {
                "runs": one.group.label,
                "against": one.reference.label,
                "pairs": str(one.pairs),
                "change": changed(one, one.change),
                "worst pair": "–" if math.isnan(one.worst) else f"{one.worst:.2f}",
                "by policy alone": "–" if one.alone is None else changed(one, one.alone),
                "difference": number(compared.difference.mean),
                "t interval": span(compared.difference),
                "bootstrap": span(compared.bootstrap),
                "p, corrected": IDENTICAL.get(compared.identical) or _probability(one.corrected),
                "oracle's gain kept": "–" if one.kept is None else percent(one.kept),
            }
        )
    return pd.DataFrame(rows)


def _rank(found: Sequence[Difference], place: int) -> tuple[int, float]:
    references = list(dict.fromkeys(id(one.reference) for one in found))
    change = found[place].change.mean
    return references.index(id(found[place].reference)), math.inf if change != change else change


def difference_figures(found: Sequence[Difference]) -> pd.DataFrame:
    """Return the differences in numbers, for ``differences.csv``."""
    rows = []
    for one in found:
        compared = one.comparison
        row: dict[str, object] = {**one.group.setting, "role": one.group.role}
        row |= {"reference": one.reference.label, "pairs": one.pairs}
        for name, interval in (
            ("change", one.change),
            ("difference", compared.difference),
            ("bootstrap", compared.bootstrap),
            ("gain_kept", one.kept),
            ("policy_alone", one.alone),
        ):
            if interval is not None:
                row |= {name: interval.mean, f"{name}_low": interval.low}
                row[f"{name}_high"] = interval.high
        row["worst"] = one.worst
        row |= {"p_value": compared.p_value, "p_corrected": one.corrected}
        row["identical"] = compared.identical
        rows.append(row)
    return pd.DataFrame(rows)


def curve_rows(curves: Sequence[Curve]) -> pd.DataFrame:
    """Return load curves as text: a row a group, a column a load, and where each stops."""
    loads = sorted({load for one in curves for load in one.points})
    rows = []
    for one in curves:
        cells = {f"load {load:g}": _cell(one.points.get(load)) for load in loads}
        rows.append({"runs": one.label, **cells, STOPS: one.says()})
    return pd.DataFrame(rows)


def _cell(interval: Interval | None) -> str:
    if interval is None:
        return "–"
    half = f" ± {number(interval.half)}" if interval.half > 0 else ""
    return f"{number(interval.mean)}{half}"


def regret_rows(found: Mapping[str, Mapping[str, pd.DataFrame]]) -> pd.DataFrame:
    """Return who bears the regret against the oracle as text, a row a group of jobs."""
    rows = []
    for label, tables in found.items():
        for key, table in tables.items():
            for name, line in table.iterrows():
                rows.append(
                    {
                        "runs": label,
                        "jobs": f"{key} {str(name).replace('_', ' ')}",
                        "of all jobs": f"{100 * line['jobs']:.1f} %",
                        "regret (s)": number(line["regret"]),
                        "waiting (s)": number(line["waiting"]),
                        "running (s)": number(line["running"]),
                        "median error": texts([float(line["median_error"])], ERROR)[0],
                    }
                )
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Answers:
    """What a comparison answers.

    Attributes
    ----------
    differences : list of Difference
    curves : list of Curve
    regrets : dict
        Where regret against the oracle is felt, by label and by class and count.
    """

    differences: list[Difference]
    curves: list[Curve]
    regrets: dict[str, dict[str, pd.DataFrame]]

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that have rows, as text, by title."""
        found = {
            "Differences on the same jobs": difference_rows(self.differences),
            "Over load, up to saturation": curve_rows(self.curves),
            REGRET: regret_rows(self.regrets),
        }
        return {title: table for title, table in found.items() if len(table)}


def answers(groups: Sequence[Group], figure: str, against: str | None, detail: int) -> Answers:
    """Return what a comparison answers; see `sim.report.answers`."""
    return Answers(
        differences(groups, figure, against), load_curves(groups, figure), regrets(groups, detail)
    )
