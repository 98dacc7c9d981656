"""Changes as a forest plot in the page's text, and as a map of policies and predictors."""

import math
from collections.abc import Sequence

from sim.report.answer_tables import changed
from sim.report.answers import Difference
from sim.report.html import Cell, table
from sim.report.samples import Group, jobs_of
from sim.statistics.intervals import Interval

WIDTH, HEIGHT = 200.0, 12.0
MOST_MAPS = 6
FULL = math.log(4.0)
"""A change by this factor has the full colour."""
BETTER, WORSE = "var(--better)", "var(--worse)"


def limits(found: Sequence[Difference]) -> tuple[float, float]:
    """Return the ends of the axis: 0, all means, and the ends of intervals up to their double."""
    means = [one.change.mean for one in found if math.isfinite(one.change.mean)]
    low, high = min([0.0, *means]), max([0.0, *means])
    ends = [v for one in found for v in (one.change.low, one.change.high) if math.isfinite(v)]
    room = max(high - low, 1e-9)
    low = max(min([low, *ends]), low - room)
    high = min(max([high, *ends]), high + room)
    return (low, high) if high - low > 1e-9 else (-0.01, 0.01)


def bar(interval: Interval, ends: tuple[float, float]) -> str:
    """Return mean and interval as a picture in a line of text, zero dashed."""
    low, high = ends

    def x(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low)
        return round(2.0 + share * (WIDTH - 4.0), 1)

    middle = HEIGHT / 2
    parts = [f'<line class="zero" x1="{x(0.0)}" x2="{x(0.0)}" y1="0" y2="{HEIGHT:g}"/>']
    if not math.isnan(interval.low):
        parts.append(
            f'<line class="span" x1="{x(interval.low)}" x2="{x(interval.high)}" '
            f'y1="{middle:g}" y2="{middle:g}"/>'
        )
    if math.isfinite(interval.mean):
        at = x(interval.mean)
        parts.append(f'<line class="mean" x1="{at}" x2="{at}" y1="1" y2="{HEIGHT - 1:g}"/>')
    return (
        f'<svg class="bar" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" preserveAspectRatio="none" '
        f'aria-hidden="true">{"".join(parts)}</svg>'
    )


def forest(order: Sequence[Group], found: Sequence[Difference], figure: str) -> str:
    """Return the changes as a table with bars, in the order of the groups.

    Parameters
    ----------
    order : sequence of Group
    found : sequence of Difference
    figure : str
        What is compared, in words.
    """
    by_group = {id(one.group): one for one in found}
    references = {id(one.reference) for one in found}
    ends = limits(found)
    rows = []
    for group in order:
        one = by_group.get(id(group))
        if one is None:
            if id(group) in references:
                nothing = Interval(0.0, math.nan, math.nan, 0)
                rows.append([Cell(group.label), Cell("reference", value="0"),
                             Cell("", html=bar(nothing, ends), value="0")])  # fmt: skip
            continue
        told = changed(one)
        text, _, span = told.partition(" [")
        mark = (f"[{span}" if span else "") + (" *" if one.certain else "")
        rows.append([Cell(group.label), Cell(text, mark),
                     Cell("", html=bar(one.change, ends), value=str(one.change.mean))])  # fmt: skip
    if not rows:
        return ""
    names = dict.fromkeys(one.reference.label for one in found)
    if len(names) > 1:
        pairs = ((one.reference.policy, one.reference.predictor) for one in found)
        names = dict.fromkeys(", ".join(filter(None, pair)) for pair in pairs)
    against = " or ".join(names)
    unit = "pp" if found[0].is_share else "%"
    caption = f"Change of {figure} against {against}: 95 % intervals at once; * excludes 0"
    axis = f"{100 * ends[0]:.0f} to {100 * ends[1]:.0f} {unit}"
    return table(caption, ["runs", "change", axis], rows, ["runs"], "forest")


def maps(order: Sequence[Group], found: Sequence[Difference], figure: str) -> str:
    """Return maps of policies (rows) and predictors (columns), one for each set of jobs."""
    by_group = {id(one.group): one for one in found}
    references = {id(one.reference) for one in found}
    alike: dict[str, list[Group]] = {}
    for group in order:
        if not group.is_recorded:
            alike.setdefault(jobs_of(group), []).append(group)
    parts = []
    for same in alike.values():
        policies = list(dict.fromkeys(group.policy for group in same))
        predictors = list(dict.fromkeys(filter(None, (group.predictor for group in same))))
        if len(policies) < 2 or len(predictors) < 2:
            continue
        rows = []
        for policy in policies:
            cells = [Cell(policy)]
            for predictor in predictors:
                here = [g for g in same if (g.policy, g.predictor) == (policy, predictor)]
                cells.append(_map_cell(here, by_group, references))
            rows.append(cells)
        rest = {k: v for k, v in same[0].setting.items() if k not in ("policy", "predictor")}
        where = ", ".join(f"{k}={v}" for k, v in rest.items() if k.partition(".")[0] == "workload")
        caption = f"Change of {figure} (%) by policy and predictor{', ' if where else ''}{where}"
        parts.append(table(caption, ["policy", *predictors], rows, ["policy"]))
    more = f"<p>{len(parts) - MOST_MAPS} more maps are left out.</p>"
    return "".join(parts[:MOST_MAPS]) + (more if len(parts) > MOST_MAPS else "")


def _map_cell(here: Sequence[Group], by_group: dict[int, Difference], references: set[int]) -> Cell:
    known = [by_group[id(group)] for group in here if id(group) in by_group]
    if not known:
        is_reference = any(id(group) in references for group in here)
        return Cell("reference", value="0") if is_reference else Cell("–")
    one = min(known, key=lambda each: each.change.mean)
    mean = one.change.mean
    text, _, span = changed(one).partition(" [")
    shade = ""
    if math.isfinite(mean) and mean > -1:
        share = min(abs(math.log1p(mean)) / FULL, 1.0)
        colour = BETTER if mean < 0 else WORSE
        shade = f"background:color-mix(in srgb,{colour} {100 * share:.0f}%,transparent)"
    return Cell(text, f"[{span}" if span else "", style=shade)
