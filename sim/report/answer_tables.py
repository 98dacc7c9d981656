"""The answers of a comparison as plain tables: for the terminal, the page and CSV."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from sim.report.answers import Curve, Difference
from sim.report.samples import jobs_of
from sim.report.tables import number
from sim.report.winners import Winners
from sim.results.rows import ERROR, PERCENT, POINTS, change_text, duration, percent, texts, unit_of
from sim.results.steady_state import replications_of
from sim.statistics import Comparison, Interval

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


def unit_of_change(one: Difference) -> str:
    """Return percentage points of a share, else percent."""
    return POINTS if one.is_share else PERCENT


def changed(one: Difference, found: Comparison | None = None) -> str:
    """Return a change of a difference's figure as text."""
    return UNSTEADY if one.refused else change_text(found or one.comparison, unit_of_change(one))


def difference_rows(found: Sequence[Difference]) -> pd.DataFrame:
    """Return the differences as text, a row each, the best first among those on the same jobs."""
    references = list(dict.fromkeys(id(one.reference) for one in found))

    def rank(one: Difference) -> tuple[int, float]:
        change = one.change.mean
        return references.index(id(one.reference)), math.inf if math.isnan(change) else change

    names, policies = reference_names(found), {one.reference.policy for one in found}
    under = policies.pop() if len(policies) == 1 else "the reference's policy"
    return pd.DataFrame(
        {
            "runs": one.group.label,
            "against": names[id(one.reference)],
            "change": changed(one),
            "change by policy": "–" if one.alone is None else changed(one, one.alone),
            f"{INFORMATION} under {under}": "–" if one.step is None else changed(one.step),
            "pairs that do not settle": f"{one.unsettled} of {one.pairs}" if one.unsettled else "–",
            "share of oracle's gain": percent(one.kept)
            if isinstance(one.kept, Interval)
            else one.kept or "–",
            "pairs": str(one.pairs),
            "replications": replications_of(one.group.summaries) if one.pairs > 1 else "–",
            "read alone": "–"
            if math.isnan(one.comparison.single.low)
            else percent(one.comparison.single, unit_of_change(one)),
        }
        for one in sorted(found, key=rank)
    )


def reference_names(found: Sequence[Difference]) -> dict[int, str]:
    """Return what references are called, by their id: briefly where each is of the same jobs."""
    names = {id(one.reference): one.reference.label for one in found}
    alike = all(jobs_of(one.group) == jobs_of(one.reference) for one in found)
    if alike and len(set(names.values())) > 1:
        both = {id(one.reference): (one.reference.policy, one.reference.predictor) for one in found}
        names = {key: ", ".join(filter(None, pair)) for key, pair in both.items()}
    return names


def difference_figures(found: Sequence[Difference]) -> pd.DataFrame:
    """Return the differences in numbers, for ``differences.csv``."""
    rows = []
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
        rows.append(row)
    return pd.DataFrame(rows)


def curve_rows(curves: Sequence[Curve], figure: str) -> pd.DataFrame:
    """Return load curves as text: a row a group, a column a load, and where each stops."""
    loads = sorted({load for one in curves for load in one.points})
    unit = unit_of(figure, [point.mean for one in curves for point in one.points.values()])
    rows = []
    for one in curves:
        cells = {f"load {load:g}": _cell(one.points.get(load), *unit) for load in loads}
        rows.append({"runs": one.label, **cells, STOPS: one.says()})
    return pd.DataFrame(rows)


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
            "median error": texts([float(line["median_error"])], ERROR)[0],
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
            "at most by": duration(who.most) if who.longer else "–",
            "sooner (%)": number(100 * who.shorter),
        }
        for who in found
    )
