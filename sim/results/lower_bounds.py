"""Lower bounds on makespan and mean response time that no policy can beat.

Sources: Turek, Ludwig, Wolf, Fleischer, Tiwari, Glasgow, Schwiegelshohn & Yu,
SPAA 1994 (squashed area and height); Goemans, SODA 1997 (mean busy times with
release dates).
"""

import heapq
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.results.outcome import Outcome, bounded, completed
from sim.results.steady_state import Figures
from workloads.base import GroundTruth, Trace

COMPILED_JOBS = 20_000
"""From this many jobs on, the sweep over arrivals is worth compiling."""
CHUNK = 2_000_000
"""Runtimes that are evaluated at once."""
MOST_RUNTIMES = 400_000_000
"""Runtimes beyond which least areas and times are not worked out."""


class Least(NamedTuple):
    """The least that each job can cost over the counts it can run on.

    Attributes
    ----------
    area : numpy.ndarray of float, shape (n,), processor-seconds
        a_j = min over n of n T_j(n); below T_j(1) where speedup is superlinear.
    time : numpy.ndarray of float, shape (n,), seconds
        h_j = min over n of T_j(n).
    """

    area: FloatArray
    time: FloatArray


def _representatives(
    truth: GroundTruth, top: IntArray, jobs: IntArray
) -> tuple[IntArray, IntArray]:
    """Return job indices to evaluate, by what they can use, and of `jobs` the place of its own one.

    Jobs of an application whose curves are multiples of each other are stood
    for by the one that can use the most processors.
    """
    chosen, position = jobs, np.arange(len(jobs))
    if getattr(truth, "shared_shape", False):
        order = jobs[np.lexsort((-top[jobs], truth.application[jobs]))]
        _, first = np.unique(truth.application[order], return_index=True)
        chosen = order[first]
        position = np.searchsorted(truth.application[chosen], truth.application[jobs])
    by_width = np.argsort(top[chosen], kind="stable")
    return chosen[by_width], np.argsort(by_width)[position]


def _prefix_minima(
    truth: GroundTruth, jobs: IntArray, width: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return T(n) and the least n T(n) and T(n) over feasible counts up to n, each (k, width)."""
    counts = np.arange(1, width + 1)
    rows = np.repeat(jobs, width)
    each = np.minimum(np.tile(counts, len(jobs)), np.repeat(truth.max_processors[jobs], width))
    runtime = truth.runtimes_at(rows, each).reshape(len(jobs), width)
    can = counts >= truth.min_processors[jobs, None]
    can &= counts <= truth.max_processors[jobs, None]
    for row, job in enumerate(jobs.tolist()):
        allowed = truth.feasible(job)
        if allowed is not None:
            can[row] &= np.isin(counts, allowed)
    area = np.where(can, runtime * counts, np.inf)
    time = np.where(can, runtime, np.inf)
    return runtime, np.minimum.accumulate(area, axis=1), np.minimum.accumulate(time, axis=1)


def least_costs(trace: Trace, truth: GroundTruth, processors: int) -> Least | None:
    """Return each job's least area and time over its feasible counts.

    Curves need not be monotone: every feasible count up to the size of the machine is
    evaluated; None where that takes more than `MOST_RUNTIMES` evaluations. Where the ground
    truth says that jobs of one application share their shape (``shared_shape``), one job of
    each application is evaluated and the others are scaled by their recorded runtimes.
    """
    requested = trace.jobs["requested_processors"].to_numpy()
    reference = trace.jobs["reference_runtime"].to_numpy()
    area = requested * reference
    jobs = np.flatnonzero(truth.max_processors > truth.min_processors)
    if not len(jobs):
        return Least(area, reference)
    time = reference.copy()
    top = np.minimum(truth.max_processors, processors)
    chosen, position = _representatives(truth, top, jobs)
    if int(top[chosen].sum()) > MOST_RUNTIMES:
        return None
    users = np.argsort(position, kind="stable")
    for part in _chunks(top[chosen]):
        rows, width = chosen[part], int(top[chosen[part]].max())
        runtime, least_area, least_time = _prefix_minima(truth, rows, width)
        ours = slice(*np.searchsorted(position[users], (part.start, part.stop)))
        mine, row = jobs[users[ours]], position[users[ours]] - part.start
        scale = reference[mine] / runtime[row, requested[mine] - 1]
        area[mine] = np.minimum(area[mine], scale * least_area[row, top[mine] - 1])
        time[mine] = np.minimum(time[mine], scale * least_time[row, top[mine] - 1])
    return Least(area, time)


def _chunks(widths: IntArray) -> list[slice]:
    """Return slices of ascending widths, each of at most `CHUNK` runtimes when padded."""
    slices, begin = [], 0
    while begin < len(widths):
        sizes = widths[begin:] * np.arange(1, len(widths) - begin + 1)
        length = max(int(np.searchsorted(sizes, CHUNK, side="right")), 1)
        slices.append(slice(begin, begin + length))
        begin += length
    return slices


def _one_machine(release: FloatArray, sizes: FloatArray, by_remaining: bool) -> tuple[float, float]:
    """Run jobs preemptively on a machine of speed 1, the first from 0 on; see `preemptive_sums`."""
    n = len(release)
    left = sizes.copy()
    moment = np.zeros(n)
    response, mean_busy = 0.0, 0.0
    heap = [(0.0, 0)]
    heap.pop()
    now, arrived = 0.0, 0
    while arrived < n or len(heap) > 0:
        if len(heap) == 0:
            now = max(now, release[arrived])
        while arrived < n and release[arrived] <= now:
            heapq.heappush(heap, (left[arrived], arrived))
            arrived += 1
        key, job = heapq.heappop(heap)
        end = now + left[job]
        if arrived < n and release[arrived] < end:
            end = release[arrived]
            moment[job] += (end - now) * (end + now) / 2
            left[job] -= end - now
            heapq.heappush(heap, (left[job] if by_remaining else key, job))
        else:
            moment[job] += left[job] * (end + now) / 2
            size = sizes[job]
            response += end - release[job]
            mean_busy += (moment[job] / size if size > 0 else end) - release[job]
        now = end
    return response, mean_busy


def preemptive_sums(
    release: FloatArray, area: FloatArray, processors: int = 1, *, by_remaining: bool
) -> tuple[float, float]:
    """Run jobs preemptively on one machine as fast as some processors, and sum over them.

    Parameters
    ----------
    release : numpy.ndarray of float, shape (n,), seconds
        Ascending.
    area : numpy.ndarray of float, shape (n,), processor-seconds
        A job's size is its area over the processors.
    processors : int
    by_remaining : bool
        Shortest remaining size first (SRPT, least total response time), else
        shortest size first (least total mean busy time).

    Returns
    -------
    response, mean_busy : float, seconds
        Σ(C_j - r_j) and Σ(M_j - r_j), with C_j the end of job j, r_j its release and M_j
        its mean busy time.
    """
    run = _one_machine
    if len(release) >= COMPILED_JOBS:
        from predictors.compiling import compiled  # the compiler takes long to import

        run = compiled(_one_machine)
    return run(release - release[:1], area / processors, by_remaining)


def makespan_bound(release: FloatArray, least: Least, processors: int) -> float:
    """Return a lower bound on last end minus first submit, seconds.

    The latest of: a job's submit and least time; and, from any submit on, the
    area of all later jobs on the whole machine.
    """
    later = release + np.cumsum(least.area[::-1])[::-1] / processors
    return float(np.maximum(release + least.time, later).max() - release[0])


def response_bounds(
    release: FloatArray, least: Least, processors: int, *, fixed_allotment: bool
) -> dict[str, float]:
    """Return lower bounds on the mean response time by their names, seconds.

    Parameters
    ----------
    release : numpy.ndarray of float, shape (n,), seconds
        Submit times, ascending.
    least : Least
        In the same order.
    processors : int
    fixed_allotment : bool
        Whether every run keeps its processors from start to end; ``mixed`` holds
        for no other schedule.

    Returns
    -------
    dict of str to float
        ``height``: mean least time. ``squashed``: SRPT on one machine as fast as
        all processors, with least areas as sizes; a job on n processors gets
        1 / T(n) <= n / a of itself done a second, so Σ a over progress never
        exceeds P, superlinear speedups and malleable policies included.
        ``mixed``: least mean busy times on that machine plus half of the least
        times: a job of constant rate ends half its runtime after its mean busy
        time.
    """
    n = len(release)
    work = (release, least.area, processors)
    response, _ = preemptive_sums(*work, by_remaining=True)
    bounds = {"height": float(least.time.sum()) / n, "squashed": response / n}
    if fixed_allotment:
        _, busy = preemptive_sums(*work, by_remaining=False)
        bounds["mixed"] = (busy + float(least.time.sum()) / 2) / n
    return bounds


def bound_figures(run: Outcome) -> Figures:
    """Return the lower bounds of a run's workload for its summary.

    Jobs that did not complete bound nothing: they count with no area and no time.
    Calibration runs count in the bound on the makespan alone.
    """
    keys = [f"mean_response_{name}" for name in ("time", "height", "squashed", "mixed")]
    keys += ["makespan", "mean_bounded_slowdown"]
    undefined: Figures = {f"bound_{key}": None for key in keys}
    processors = run.records.processors
    least = least_costs(run.trace, run.truth, processors)
    if least is None:
        return undefined
    done = completed(run.records)
    least = Least(np.where(done, least.area, 0.0), np.where(done, least.time, 0.0))
    release, reference = run.records.submit_time, run.trace.jobs["reference_runtime"].to_numpy()
    order = np.argsort(release, kind="stable") if (np.diff(release) < 0).any() else slice(None)
    release, everyone = release[order], Least(least.area[order], least.time[order])
    mine = run.own if isinstance(run.own, slice) else run.own[order]
    counted = Least(everyone.area[mine], everyone.time[mine])
    fixed = len(run.records.allocations.job) == int((run.records.restarts + 1).sum())
    response = response_bounds(release[mine], counted, processors, fixed_allotment=fixed)
    return undefined | {
        "bound_makespan": makespan_bound(release, everyone, processors),
        "bound_mean_response_time": max(response.values()),
        "bound_mean_bounded_slowdown": float(bounded(counted.time, reference[order][mine]).mean()),
        **{f"bound_mean_response_{name}": value for name, value in response.items()},
    }


def over_bounds(figures: Mapping[str, object]) -> Figures:
    """Return how many times its lower bound a run's makespan and mean response are.

    None where either is undefined or the bound is 0.
    """
    found: Figures = dict.fromkeys(["makespan_over_bound", "mean_response_time_over_bound"])
    for name in ("makespan", "mean_response_time"):
        own, bound = figures[name], figures[f"bound_{name}"]
        if isinstance(own, float) and isinstance(bound, float) and bound > 0:
            found[f"{name}_over_bound"] = own / bound
    return found
