"""What the consensus rests on, found for each file of measured curves on the other files.

    python -m benchmarks.consensus_choice FOLDER

FOLDER as in `scripts.accuracy`. Printed are which methods a plain median would take, ranges
with constants fitted elsewhere, errors by grade, and what `predictors.measure_next` gains.
"""

import argparse
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from benchmarks.measured_curves import (
    Case,
    MeasuredCurve,
    cases,
    read_curves,
    source_weights,
    weighted_quantile,
)
from predictors import Adept, Amdahl, Consensus, LogLogRegression, UniversalScalability
from predictors.advice import FAR, FEW
from predictors.base import FloatArray
from predictors.consensus.combination import DIFFER

METHODS: dict[str, Callable[[], object]] = {
    "adept": Adept,
    "linear": lambda: LogLogRegression((), "linear", "total"),
    "quadratic": lambda: LogLogRegression((), "quadratic", "total"),
    "amdahl": Amdahl,
    "usl": UniversalScalability,
}
DISTANCES = ("near", "far")
Chosen = tuple[int, ...]


class Asked:
    """Cases beyond windows of these counts, and what methods and the consensus say there."""

    def __init__(self, curves: list[MeasuredCurve], counts: tuple[int, ...]) -> None:
        self.cases: list[Case] = [
            case for k in counts for case in cases(curves, k) if case.distance != "inside"
        ]
        self.source = np.array([case.source for case in self.cases])
        self.distance = np.array([case.distance for case in self.cases])
        self.actual = np.array([case.actual for case in self.cases])
        self.rising = np.array([case.runtime[-1] > case.runtime[-2] for case in self.cases])
        self.models = [Consensus().fit_arrays(case.nprocs, case.runtime) for case in self.cases]
        self.declining = np.array([model.declines_after_ is not None for model in self.models])
        self.said = self._each(lambda case, model: model.predict(case.target))
        self.methods = {
            name: self._each(
                lambda case, _, make=make: (
                    make().fit_arrays(case.nprocs, case.runtime).predict_model(case.target)
                )
            )
            for name, make in METHODS.items()
        }

    def _each(self, ask: Callable[[Case, Consensus], FloatArray]) -> FloatArray:
        both = zip(self.cases, self.models, strict=True)
        return np.array([float(ask(case, model)) for case, model in both])

    def quantile(self, errors: FloatArray, level: float, rows: np.ndarray) -> float:
        """Return a quantile of some rows' errors, every file weighing the same."""
        return weighted_quantile(errors[rows], source_weights(self.source[rows].tolist()), level)

    def share(self, held: np.ndarray, rows: np.ndarray) -> float:
        """Return the percentage of some rows for which something holds."""
        return 100.0 * float(source_weights(self.source[rows].tolist()) @ held[rows])


def members(asked: Asked) -> str:
    """Choose the median's methods, and others where runtimes rise, on the other files."""
    sets = [one for one in product((0, 1), repeat=len(METHODS)) if sum(one) > 1]
    table = np.array(list(asked.methods.values()))
    medians = {one: np.median(table[np.array(one, bool)], axis=0) for one in sets}
    errors = {
        pair: np.abs(
            np.where(
                asked.declining,
                asked.said,
                np.where(asked.rising, medians[pair[1]], medians[pair[0]]),
            )
            / asked.actual
            - 1.0
        )
        for pair in product(sets, sets)
    }

    def loss(pair: tuple[Chosen, Chosen], rows: np.ndarray) -> float:
        return sum(
            asked.quantile(errors[pair], 0.5, rows & (asked.distance == distance))
            + 0.25 * asked.quantile(errors[pair], 0.9, rows & (asked.distance == distance))
            for distance in DISTANCES
        )

    found, lines = np.empty(len(asked.cases)), []
    for source in np.unique(asked.source):
        here = asked.source == source
        best = min(errors, key=lambda pair: loss(pair, ~here))
        found[here] = errors[best][here]
        names = [" ".join(n for n, one in zip(METHODS, part, strict=True) if one) for part in best]
        lines.append(f"| {source} | {names[0]} | {names[1]} |")
    for distance in DISTANCES:
        rows = asked.distance == distance
        median, tail = (100.0 * asked.quantile(found, level, rows) for level in (0.5, 0.9))
        lines.append(f"| {distance} | median {median:.1f} % | 90th percentile {tail:.0f} % |")
    return "\n".join(lines)


def ranges(asked: Asked) -> str:
    """Fit base, reach, share of the difference, and upper over lower end on the other files."""
    ends = np.array([case.nprocs[-1] for case in asked.cases])
    away = np.log(np.array([case.target for case in asked.cases]) / ends)
    apart = asked._each(
        lambda case, model: model._consensus(np.log2([case.target]), np.empty((1, 0)))[2][0]
    )
    missed, apart = np.log(asked.actual / asked.said), np.minimum(apart, 1.0)

    def scale(t: FloatArray) -> FloatArray:
        base, reach, share, _ = np.exp(t)
        return base + reach * away + share * apart

    def loss(t: FloatArray, weights: FloatArray, rows: np.ndarray) -> float:
        low, high = missed + scale(t), missed - np.exp(t[3]) * scale(t)
        lost = np.maximum(0.1 * low, -0.9 * low) + np.maximum(0.9 * high, -0.1 * high)
        return float(weights @ lost[rows])

    above, below = np.zeros(len(missed), bool), np.zeros(len(missed), bool)
    for source in np.unique(asked.source):
        here, rows = asked.source == source, asked.source != source
        weights = source_weights(asked.source[rows].tolist())
        start = np.log([0.15, 0.15, 0.3, 1.3])
        t = minimize(
            loss, start, (weights, rows), method="Nelder-Mead", options={"maxiter": 2000}
        ).x
        above[here] = (missed > np.exp(t[3]) * scale(t))[here]
        below[here] = (missed < -scale(t))[here]
    rows_of = {name: asked.distance == name for name in DISTANCES}
    lines = []
    for name, rows in rows_of.items():
        sides = asked.share(above, rows), asked.share(below, rows)
        lines.append(f"| {name} | above {sides[0]:.0f} % | below {sides[1]:.0f} % |")
    return "\n".join(lines)


def grades(asked: Asked) -> str:
    """Return the share of cases with each grade of difference, and their median error."""
    found = np.array(
        [
            next(
                (r.grade for r in model.reliability(case.target) if r.code == "methods_differ"), ""
            )
            for case, model in zip(asked.cases, asked.models, strict=True)
        ]
    )
    errors, lines = np.abs(asked.said / asked.actual - 1.0), []
    for distance, grade in product(DISTANCES, ("", *(name for _, name in reversed(DIFFER)))):
        rows = (asked.distance == distance) & ~asked.declining
        if (rows & (found == grade)).any():
            median = 100.0 * asked.quantile(errors, 0.5, rows & (found == grade))
            share = asked.share(found == grade, rows)
            lines.append(f"| {distance} | {grade or 'none'} | {share:.0f} % | {median:.1f} % |")
    return "\n".join(lines)


def next_runs(curves: list[MeasuredCurve], by_cost: bool) -> str:
    """Return median |ln error| at the largest count, and what was spent, after 0 to 3 runs."""
    errors, spent = [], []
    for curve in curves:
        last = len(curve.nprocs) - 1
        for first in range(min(max(1, len(curve.nprocs) // 2 - 1), last - 4)):
            known, error, cost = [first, first + 1, first + 2], [], [0.0]
            unit = float(np.median(curve.nprocs[known] * curve.runtime[known]))
            for _ in range(4):
                model = Consensus().fit_arrays(curve.nprocs[known], curve.runtime[known])
                error.append(abs(np.log(model.predict(curve.nprocs[-1]) / curve.runtime[-1])))
                free = np.array([place for place in range(last) if place not in known])
                if free.size:
                    counts = curve.nprocs[free]
                    beyond = np.log(curve.nprocs[-1] / np.maximum(counts, curve.nprocs[max(known)]))
                    worth = -FEW / np.sqrt(len(known) + 1) - FAR * beyond
                    worth += FEW / np.sqrt(len(known))
                    worth += FAR * np.log(curve.nprocs[-1] / curve.nprocs[max(known)])
                    worth = (
                        worth / (counts * model.predict(counts))
                        if by_cost
                        else worth + 1e-9 * counts
                    )
                    pick = int(free[np.argmax(worth)])
                    known = sorted([*known, pick])
                    cost.append(cost[-1] + curve.nprocs[pick] * curve.runtime[pick] / unit)
                else:
                    cost.append(cost[-1])
            errors.append(error)
            spent.append(cost[:4])
    shown = (np.median(errors, axis=0).round(3), np.median(spent, axis=0).round(1))
    return f"| {'by cost' if by_cost else 'free'} | {len(errors)} | {shown[0]} | {shown[1]} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    curves = read_curves(parser.parse_args().folder)
    print(members(Asked(curves, (3, 4))))
    wide = Asked(curves, (3, 4, 5))
    print(ranges(wide), grades(wide), sep="\n")
    long = [curve for curve in curves if len(curve.nprocs) >= 6]
    print(next_runs(long, by_cost=False), next_runs(long, by_cost=True), sep="\n")


if __name__ == "__main__":
    main()
