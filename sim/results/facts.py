"""The facts of a verdict beside a change: who was treated how, on what beliefs, in what world."""

from collections.abc import Mapping, Sequence
from typing import Any

from sim.results.rows import molded_text, number_of
from sim.results.sentences import given_line

Summary = Mapping[str, Any]
HOUR = 3600.0


def total(summaries: Sequence[Summary], key: str) -> float | None:
    """Return the sum of a figure over simulations, None where one lacks it."""
    values = [number_of(one, key) for one in summaries]
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def treated_sentence(own: Sequence[Summary], other: Sequence[Summary] = ()) -> str:
    """Return how many jobs were treated otherwise than they asked, and on what beliefs.

    Parameters
    ----------
    own : sequence of dict
        Summaries of the simulations of a run.
    other : sequence of dict
        Those of what it is compared with.

    Returns
    -------
    str
        Empty where summaries do not say it.

    Examples
    --------
    >>> run = {"molded_jobs": 18, "resized_jobs": 2, "jobs": 1000, "decisions_by_belief": 40}
    >>> treated_sentence([run])
    '18 of 1,000 jobs molded, 2 resized at no cost, by beliefs read in 40 decisions.'
    >>> treated_sentence([run | {"molded_jobs": 0, "resized_jobs": 0}], [])
    '0 of 1,000 jobs molded, 0 resized: nothing is gained or lost by molding.'
    """
    molded, resized, read = (total(own, key) for key in TREATED)
    if molded is None or resized is None or read is None:
        return ""
    said = f"{molded_text(own)} jobs molded, {resized:,.0f} resized"
    if not molded + resized:
        more, theirs = (total(other, key) or 0.0 for key in TREATED[:2])
        if more + theirs:
            return f"{said}; in the other {more:,.0f} molded, {theirs:,.0f} resized."
        return f"{said}: nothing is gained or lost by molding."
    if resized:
        area = (total(own, "reallocation_area") or 0.0) / HOUR
        said += f" at {f'{area:,.4g} processor-hours' if area else 'no cost'}"
    beliefs = f"by beliefs read in {read:,.0f} decisions" if read else "by no prediction"
    return f"{said}, {beliefs}."


TREATED = ("molded_jobs", "resized_jobs", "decisions_by_belief")


def rests_sentence(figures: Summary) -> str:
    """Return what would have to be true of jobs and predictors; empty where nothing says it.

    Examples
    --------
    >>> print(rests_sentence({"given_runs": 0, "share_moldable": 0.5})[:53])
    This rests on: no runs before the start; sizes of som
    """
    given, share = given_line(dict(figures)), number_of(figures, "share_moldable")
    moldable = [] if share is None else [f"{100 * share:.3g} % of the jobs moldable"]
    return f"This rests on: {'; '.join([given, *moldable])}." if given else ""
