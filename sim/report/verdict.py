"""The answer of a comparison in two sentences and three figures."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from sim.errors import SimError
from sim.report.answers import NO_EFFECT, Difference, Winners
from sim.report.gathering import Group, grouped, jobs_of, no_such_group, oracle_of, shared
from sim.report.tables import changed, mean_given, number
from sim.results import sentences
from sim.results.artefacts import same_schedule
from sim.results.rows import IDENTICAL, JUDGED, ONE_PAIR, ROWS, SECONDS, percent, texts
from sim.results.sentences import FEW
from sim.results.steady_state import in_windows, listed, partly_unsteady, unsteady_sentence
from sim.statistics import LEAST_PAIRS, Interval

NAMES = {row.key: row.label for row in ROWS}
"""Labels of the figures that have one."""


class Tile(NamedTuple):
    """One figure of the first screen: what it answers, the figure, and what it is."""

    name: str
    value: str
    text: str


class Verdict(NamedTuple):
    """What a comparison says first.

    Attributes
    ----------
    sentences : dict of str to str
        By what they tell, in the order in which they are read, those that have something to say:
        ``molding`` (which backtest is to be distrusted, where jobs are killed, and how those do
        that mold jobs, unless one of them is best), ``unsteady`` (under what no queue settles, so
        that nothing is told of it), ``best-sentence`` (which group comes first, by how much, and
        whether that is more than chance), ``partly`` (in how many simulations a queue does not
        settle of which changes are told, and whose predictors hardly take part), ``treated`` (how
        many jobs were molded or resized, by what beliefs), ``rests-on`` (what would have to be
        true of jobs and predictors) and ``recorded`` (how far simulated waits are from those of
        the log).
    tiles : list of Tile
    order : list of Group
        The groups, best first among those on the same jobs.
    """

    sentences: dict[str, str]
    tiles: list[Tile]
    order: list[Group]


def best_of(found: Sequence[Difference]) -> Difference | None:
    """Return the largest gain, of runs without foresight and with intervals if there are any."""
    known = [one for one in found if math.isfinite(one.change.mean)]
    runs = [one for one in known if one.group.role == "run" and not one.group.is_recorded]
    honest = [one for one in runs if "oracle" not in one.group.predictor]
    changing = [one for one in honest or runs if one.comparison.identical != "runs"]
    paired = [one for one in changing if math.isfinite(one.change.low)]

    def rank(one: Difference) -> tuple[float, bool]:  # of those alike the one that knows least
        return one.loss, one.group.predictor not in ("", "user_estimate")

    return min(paired or changing or honest or runs, key=rank, default=None)


def subject_of(found: Sequence[Difference], groups: Sequence[Group], label: str) -> Difference:
    """Return the difference of the group of a label, or of the best one of a policy.

    Raises
    ------
    SimError
        If none is compared with another one.
    """
    same = [one for one in found if one.group.policy == label.removeprefix("policy=")]
    exact = [one for one in found if one.group.label == label]
    for chosen in (*exact, best_of(same), *same):
        if chosen is not None:
            return chosen
    if any(group.label == label for group in groups):
        known = "; ".join(one.group.label for one in found) or "none"
        raise SimError(f"--subject {label}: not compared with another group; these are: {known}")
    raise no_such_group("--subject", label, [one.group for one in found] or groups)


def verdict(
    groups: Sequence[Group],
    found: Sequence[Difference],
    who: Winners | None,
    asked: Difference | None = None,
    distrusted: Sequence[str] = (),
) -> Verdict:
    """Return the verdict of a comparison.

    Parameters
    ----------
    groups, found
        All groups of the comparison and their differences.
    who, asked
        Of the run that is asked about, the best unless another one is.
    distrusted : sequence of str
        Sentences of backtests that are to be distrusted.
    """
    best, order = best_of(found), best_first(groups, found)
    named = {group.label: group.summaries for group in groups}
    said = {"molding": " ".join(distrusted), "unsteady": unsteady_sentence(named)}
    partly = " ".join([*partly_unsteady(named), *sentences.few_predictions(named)])
    if best is None:
        told = "Nothing is compared: no run is finished."
        if groups:
            told = (
                "Nothing is compared: no group has a reference on its jobs. Add runs with "
                "policy=easy or baseline=easy, or name a group as the reference: --against "
                f'"{groups[0].label}".'
            )
        said |= {"best-sentence": "" if said["unsteady"] else told, "partly": partly}
        return Verdict({name: one for name, one in said.items() if one}, [], order)
    of = f"{_name(best.figure)} of {best.group.label} against {best.reference.label}"
    ideal = _foresight_tile(best, groups, found)
    if best.kept == NO_EFFECT:
        ideal = Tile("foresight", "no effect", f"of predictions under {best.group.policy}")
    tiles = [Tile("best", changed(best), of), ideal, _losers_tile(who)]
    first, beside = [_best_sentence(best, found)], _beside(best, found)
    molding = [*distrusted, *sentences.killed_sentence(named)]
    if beside is not None:
        (first if _molds(best.group) else molding).append(_beside_sentence(beside))
    untried = [group.label for group in groups if _is_untried(group)]
    if untried:
        molding.append(
            f"Molding is untried under {listed(untried)}, where hardly any start was decided by a "
            "predicted curve: that is no evidence for it, and none against it."
        )
    oracles = ["oracle" in one.group.predictor for one in (best, *found)]
    if any(oracles) and not oracles[0]:
        first.append("An oracle is not ranked, as no site has one.")
    without = [one for one in found if one.group.role == "run" and math.isnan(one.change.mean)]
    if names := [one.group.label for one in without if not one.refused]:
        told = f"Not ranked, as they have no ratio (0 or nothing in some run): {listed(names)}."
        nothing = any(one.group.values(one.figure).max(initial=-1.0) == 0.0 for one in without)
        first.insert(0 if nothing else len(first), told)
    if best.figure not in JUDGED:
        first.append(f"A lower {_name(best.figure)} counts as better here.")
    both = {group for one in found for group in (one.group, one.reference)}
    if names := [one.label for one in groups if one.role == "run" and one not in both]:
        first.append(f"Not compared, as there is no reference for them: {listed(names)}.")
    shown = [best, beside if beside is not None and _molds(beside.group) else best, asked or best]
    treated = " ".join(dict.fromkeys(filter(None, (_treated(one, found) for one in shown))))
    assumed = "This rests on the assumptions of the configuration."
    told = sentences.rests_sentence(mean_given(best.group)) or assumed
    said |= {"molding": " ".join(molding), "best-sentence": " ".join(first), "partly": partly}
    said |= {"treated": treated, "rests-on": told, "recorded": f"{_recorded(best)}."}
    return Verdict({name: one for name, one in said.items() if one}, tiles, order)


def _treated(one: Difference, found: Sequence[Difference]) -> str:
    """Return how many jobs of a group were molded or resized; empty where nothing says it."""
    is_read = all(other.policy != one.group.policy for other in _alike(one, found))
    said = sentences.treated_sentence(one.group.summaries, one.reference.summaries, is_read)
    return said and f"{one.group.label}: {said}"


def _molds(group: Group) -> bool:
    """Return whether a rule chooses from counts, or jobs ran on others than they asked for."""
    return bool(group.menu) or group.values("molded_jobs").sum() > 0


def _beside(best: Difference, found: Sequence[Difference]) -> Difference | None:
    """Return the best that molds no job, or may, where the best of all does; None without one."""
    molds, reference = _molds(best.group), best.reference.policy
    others = [one for one in found if _molds(one.group) != molds and one.group.policy != reference]
    chosen = best_of(others)
    return None if chosen is None or chosen.refused else chosen


def _beside_sentence(chosen: Difference) -> str:
    """Return what the best of those brings that mold no job, or may."""
    change = f"{_name(chosen.figure)} {changed(chosen)} against {chosen.reference.label}"
    where = "comes first" if chosen.loss < 0 else "comes nearest"
    kind = "may mold jobs" if _molds(chosen.group) else "mold no job"
    return f"Of those that {kind}, {chosen.group.label} {where}: {change}."


def _is_untried(group: Group) -> bool:
    """Return whether a rule that chooses counts chose hardly any, for want of predictions."""
    molded, jobs = (group.values(key).sum() for key in ("molded_jobs", "jobs"))
    decided = group.values("decisions_by_belief")
    return bool(group.menu and decided.size and max(decided.sum() / FEW, molded / 0.01) < jobs)


def best_first(groups: Sequence[Group], found: Sequence[Difference]) -> list[Group]:
    """Return the groups, those on the same jobs together, by their change, the best first."""
    places = {jobs: place for place, jobs in enumerate(dict.fromkeys(map(jobs_of, groups)))}
    losses = {one.reference: 0.0 for one in found} | {one.group: one.loss for one in found}

    def key(group: Group) -> tuple[int, float]:
        loss = losses.get(group, math.inf)
        return places[jobs_of(group)], loss if math.isfinite(loss) else math.inf

    return sorted(groups, key=key)


def _name(figure: str) -> str:
    return NAMES.get(figure, figure.replace("_", " "))


def _best_sentence(best: Difference, found: Sequence[Difference]) -> str:
    change = f"{_name(best.figure)} {changed(best)}"
    known = best.alone is not None and math.isfinite(best.alone.change.mean)
    alone = f" ({changed(best, best.alone)} by the policy alone)" if known else ""
    same = [one.label for one in _alike(best, found)]
    how = f"{sureness(best)}."
    if same:
        how += f" The same to the last bit: {listed(same)}."
    how += _elsewhere(best, found)
    name, against = best.group.label, f"against {best.reference.label}{alone}"
    if best.comparison.identical == "runs":
        return f"No difference: {name} {against}, {how}"
    if not best.comparison.certain:
        where = "first comes" if best.loss < 0 else "nothing gains, nearest is"
        return f"No best: {where} {name}, {change} {against}, {how}"
    if best.loss < 0:
        return f"Best: {name}, {change} {against}, {how}"
    here = {one.reference.label for one in found if jobs_of(one.group) == jobs_of(best.group)}
    near = f"of those that differ, nearest is {name}, {change}"
    if len(here) > 1:
        return f"No run beats its reference; {near} {against}, {how}"
    return f"Best: {best.reference.label}, as nothing beats it; {near}, {how}"


def _alike(best: Difference, found: Sequence[Difference]) -> list[Group]:
    """Return which other groups are the same as the best to the last bit."""
    alike = []
    for one in found:
        pairs = [[s.summary for s in pair] for pair in shared(best.group, one.group)]
        whole = len(pairs) == len(best.group.samples) == len(one.group.samples)
        if whole and one.group.role == "run" and one is not best:
            alike += [one.group] * all(map(same_schedule, pairs))
    return alike


def _elsewhere(best: Difference, found: Sequence[Difference]) -> str:
    """Return what comes first in the other settings that are compared; empty for one setting."""
    firsts = map(best_of, grouped(found, lambda one: jobs_of(one.group)).values())
    told = [f"{one.group.label}, {changed(one)}" for one in firsts if one and one is not best]
    return f" First in other settings: {listed(told)}." if told else ""


def sureness(best: Difference) -> str:
    """Return in words how sure a difference is."""
    same = best.comparison.identical
    if best.pairs == 1:
        return ONE_PAIR
    if same == "runs":
        return f"as they are alike to the last bit in each of {best.pairs} pairs"
    if same:
        return f"of which nothing is certain: the {best.pairs} pairs are {IDENTICAL[same]}"
    if math.isnan(best.change.low):
        return f"the range of {best.pairs} pairs, as an interval needs at least {LEAST_PAIRS}"
    includes = "" if best.comparison.certain else "which includes 0, "
    single = best.comparison.single
    limits = percent(single).partition(" [")[2]
    told = f"{includes}{best.pairs} pairs"
    if best.set and limits:
        told += f"; simultaneous, one of {best.set}; this row alone has [{limits}"
    if best.comparison.certain or single.contains(0.0):
        return told
    return f"{told}, which excludes 0: uncertain only as several rows are judged at once"


def machine_sentence(groups: Sequence[Group]) -> list[str]:
    """Return in a sentence the size of machines that logs do not state."""
    every = (one for group in groups for one in group.summaries)
    sizes = {int(one["processors"]) for one in every if one.get("processors_by") == "recorded"}
    if not sizes:
        return []
    return [
        "A log states no machine size; it is assumed to be the most processors that its jobs held "
        f"at once, {' or '.join(f'{n:,}' for n in sorted(sizes))}."
    ]


def _recorded(best: Difference) -> str:
    """Return how far the reference is from what the log's own machine did."""
    keys = ("recorded_mean_wait_time", "mean_wait_time")
    for group in (best.reference, best.group):
        waits = [[one.get(key) for key in keys] for one in group.summaries]
        known = [(a, b) for a, b in waits if isinstance(a, int | float) and b is not None]
        if known and not group.is_recorded:
            means = [sum(map(float, column)) / len(known) for column in zip(*known, strict=True)]
            real, simulated = texts(means, SECONDS)
            windows = in_windows(group.summaries)
            where = " in these windows" if windows else ""
            own = f"The log's own mean wait{where} is {real}, that of {group.label} {simulated}"
            return own + ("; simulated windows begin on an empty machine" if windows else "")
    if any(one.get("given_applications") == "recorded" for one in best.group.summaries):
        return "The log records no waits: if submit times are starts, simulated waits mean nothing"
    return "No real machine's schedule of these jobs is recorded"


def _foresight_tile(best: Difference, groups: Sequence[Group], found: Sequence[Difference]) -> Tile:
    is_ideal = all(
        one.get("given_truth") and one.get("prediction_p90_error") == 0.0
        for one in best.group.summaries
    )
    oracle = best.group if is_ideal else oracle_of(best.group, groups)
    ideal = next((one for one in found if one.group is oracle), None)
    if ideal is None:
        told = f"no run under {best.group.policy} has any"
        if not any("oracle" in group.predictor for group in groups):
            told = f"predictor=oracle under {best.group.policy} shows what they would bring"
        return Tile("foresight", "–", f"with perfect predictions: {told}")
    text = f"with perfect predictions ({ideal.group.label})"
    if isinstance(best.kept, Interval):
        text += f"; {best.group.label} has {percent(best.kept)} of that gain"
    if ideal.loss > best.loss:
        text += (". True runtimes do worse here than predictions: the rule decides job by job "
                 "and does not look ahead")  # fmt: skip
    return Tile("foresight", changed(ideal), text)


def _losers_tile(who: Winners | None) -> Tile:
    if who is None:
        return Tile("losers", "–", "of the jobs respond later: no tables of jobs were written")
    later, sooner = (f"{number(100 * share)} %" for share in (who.longer, who.shorter))
    text = f"of the jobs respond later under {who.own} than under {who.base}, {sooner} sooner"
    return Tile("losers", later, text)
