"""What measuring another count gains: advice beside simple rules, on measured curves.

Starts are all windows of three counts that leave two more below the largest, which is the target;
counts that were measured below it are to be had. A rule's gain is the fall of the median
|ln(predicted / measured)| there, its cost the mean of processor-seconds over those of the window.
"""

from collections.abc import Callable

import numpy as np

from benchmarks.measured_curves import MeasuredCurve
from predictors import Consensus
from predictors.advice import measure_next
from predictors.base import FloatArray

RUNS = 3
DRAWS = 10
"""Times that the random rule is tried."""
Pick = Callable[[Consensus, FloatArray, FloatArray, float, np.random.Generator], float]


def nearest(free: FloatArray, wanted: float) -> float:
    """Return the count nearest to one in logarithms, the larger of two."""
    return float(min(free, key=lambda count: (abs(np.log(count / wanted)), -count)))


def advised(costless: bool) -> Pick:
    """Return the rule that follows the advice."""

    def pick(
        model: Consensus,
        known: FloatArray,
        free: FloatArray,
        target: float,
        rng: np.random.Generator,
    ) -> float:
        advice = measure_next(model, known, [target], free=costless, candidates=free)
        return float(free[-1]) if advice is None else float(advice.nprocs)

    return pick


RULES: dict[str, Pick] = {
    "advice, costs left out": advised(costless=True),
    "advice, costs weighed": advised(costless=False),
    "largest": lambda model, known, free, target, rng: float(free[-1]),
    "doubling": lambda model, known, free, target, rng: nearest(free, 2.0 * known[-1]),
    "middle": lambda model, known, free, target, rng: nearest(free, np.sqrt(known[-1] * target)),
    "random": lambda model, known, free, target, rng: float(rng.choice(free)),
}


def followed(
    curve: MeasuredCurve, known: FloatArray, pick: Pick, rng: np.random.Generator
) -> tuple[list[float], list[float]]:
    """Return the error at the target and what was spent, before and after each run."""
    times = dict(zip(curve.nprocs.tolist(), curve.runtime.tolist(), strict=True))
    target = float(curve.nprocs[-1])
    unit = sum(count * times[count] for count in known.tolist())
    errors, spent = [], [0.0]
    for run in range(RUNS + 1):
        model = Consensus().fit_arrays(known, [times[count] for count in known.tolist()])
        errors.append(abs(float(np.log(model.predict(target) / times[target]))))
        free = np.setdiff1d(curve.nprocs[:-1], known)
        if run == RUNS or not free.size:
            break
        count = pick(model, known, free, target, rng)
        known = np.union1d(known, [count])
        spent.append(spent[-1] + count * times[count] / unit)
    errors += errors[-1:] * (RUNS + 1 - len(errors))
    return errors, spent + spent[-1:] * (RUNS + 1 - len(spent))


def next_runs(curves: list[MeasuredCurve]) -> str:
    """Return a row a rule: fall of the median error, and fall for each unit spent."""
    starts = [
        (curve, curve.nprocs[first : first + 3])
        for curve in curves
        for first in range(len(curve.nprocs) - 5)
    ]
    lines = [f"| {len(starts)} starts | fall after 1, 2, 3 runs | fall / cost |"]
    for name, pick in RULES.items():
        draws = DRAWS if name == "random" else 1
        found = [
            followed(curve, known, pick, np.random.default_rng([draw, place]))
            for draw in range(draws)
            for place, (curve, known) in enumerate(starts)
        ]
        errors = np.median([one[0] for one in found], axis=0)
        fall = errors[0] - errors[1:]
        worth = fall / np.mean([one[1] for one in found], axis=0)[1:]
        cells = [", ".join(f"{value:.3f}" for value in row) for row in (fall, worth)]
        lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)
