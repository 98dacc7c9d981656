"""Which processors a job gets: the lowest-numbered, or the fastest for it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from predictors.base import IntArray
from sim.engine.protocols import AroundScheduler, Scheduler
from sim.policies.ties import is_less
from sim.state.decisions import Decision, Start
from sim.state.processors import as_ranges
from sim.state.view import View

if TYPE_CHECKING:
    from sim.background.background import LoadedLinks
    from sim.background.load_forecast import LoadForecast


class Fastest:
    """The free processors on which the job is predicted to end first.

    Candidates are the processors of most believed CPU whose links among each
    other have at least a bound, for every bound that matters; of these the
    fastest for the job's own shares of computation and communication is taken.
    Without background load the lowest-numbered are taken.
    """

    picks_processors = True

    def begin(self, view: View, scheduler: Scheduler) -> Scheduler:
        """Begin a run."""
        return scheduler if view.load is None else PlacingScheduler(view, scheduler)


class PlacingScheduler(AroundScheduler):
    """Names the processors in another scheduler's starts.

    Parameters
    ----------
    view : View
        Of a machine under load.
    inner : Scheduler
        Decides who starts on how many processors.
    """

    def decide(self) -> Sequence[Decision]:
        """Decide as the inner scheduler does, and place the starts in its order.

        A start on processors that others are only about to give up is left to the
        engine, and with it all that follow: nobody knows which it will take.
        """
        decisions, load = self.inner.decide(), self.view.load
        unplaced = [one for one in decisions if type(one) is Start and one.nodes is None]
        if load is None or not unplaced:
            return decisions
        free = load.free_processors()
        placed: list[Decision] = []
        for decision in decisions:
            if type(decision) is Start and decision.nodes is None:
                job, count = decision.job, decision.processors
                own = free  # all go to a start for which others are yet to give up some
                if count <= free.size:
                    own = fastest(self.view, load, job, count, free)
                    decision = decision._replace(nodes=as_ranges(own))
                free = np.setdiff1d(free, own, assume_unique=True)
            placed.append(decision)
        return placed


def fastest(view: View, load: "LoadForecast", job: int, count: int, free: IntArray) -> IntArray:
    """Return the free processors on which a job is predicted to end first, ascending.

    Parameters
    ----------
    view : View
    load : LoadForecast
    job, count : int
    free : numpy.ndarray of int, ascending
    """
    if count == free.size:
        return free
    horizon = view.belief(job, count)
    cpu, links = load.cpu(horizon), load.links(horizon)
    ranked = free[np.argsort(-cpu[free], kind="stable")]
    parts = view.predictor.parts(job, np.array([count]))
    if parts is None or count == 1 or not parts.communication[0] > 0:
        return np.sort(ranked[:count])
    best, least = ranked[:count], np.inf
    for bound in np.unique(np.append(0.0, links.available)).tolist():
        own = apart(ranked, count, links, bound, load.per_node)
        if own is None:
            break
        slowest, left = cpu[own].min(), load.bandwidth(own, links)
        seconds = float(parts.under(slowest, np.array([left]))[0])
        if is_less(seconds, least):
            best, least = own, seconds
    return np.sort(best)


def apart(
    ranked: IntArray, count: int, links: "LoadedLinks", bound: float, per_node: int
) -> IntArray | None:
    """Return the first processors in rank order that share no link at or below a bound.

    None if there are not enough of them.
    """
    poor = links.available <= bound
    ends = np.array([links.source[poor], links.destination[poor]])
    banned: set[int] = set()
    chosen = []
    for processor in ranked.tolist():
        node = processor // per_node
        if node not in banned:
            chosen.append(processor)
            banned.update(ends[::-1][ends == node].tolist())
            if len(chosen) == count:
                return np.array(chosen)
    return None
