"""What the consensus rests on, found for each file of measured curves on the other files.

    python -m benchmarks.consensus_choice FOLDER

FOLDER as in `benchmarks.accuracy`. Printed are which methods a plain median would take, what ranges
hold and how grades order errors with constants of the other files and with those shipped, and
what `predictors.measure_next` gains beside simple rules.
"""

import argparse
from collections.abc import Callable
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from benchmarks.measured_curves import (
    MeasuredCurve,
    cases,
    read_curves,
    source_halves,
    source_weights,
    weighted_quantile,
)
from benchmarks.next_runs import next_runs
from predictors import Adept, Amdahl, Consensus, LogLogRegression, UniversalScalability
from predictors.base import BoolArray, FloatArray
from predictors.consensus.member_kernels import BASE, BEND, ENOUGH, REACH, WIDE, flattening_of
from predictors.remarks import GRADES

METHODS: dict[str, Callable[[], object]] = {
    "adept": Adept,
    "linear": lambda: LogLogRegression((), "linear", "total"),
    "quadratic": lambda: LogLogRegression((), "quadratic", "total"),
    "amdahl": Amdahl,
    "usl": UniversalScalability,
}
BEYOND = ("near", "far")
SHARES = (0.3, 0.7, 0.9)
"""Of ranges up to which width are no remark, a note and a warning."""
RESAMPLES = 300
SHIPPED = np.array([BASE, REACH, BEND])
Chosen = tuple[int, ...]


class Asked:
    """Cases of windows of these counts, and what the consensus says there."""

    def __init__(self, curves: list[MeasuredCurve], counts: tuple[int, ...]) -> None:
        self.cases = [case for k in counts for case in cases(curves, k)]
        self.source = np.array([case.source for case in self.cases])
        self.curve = np.array([f"{case.source}: {case.problem}" for case in self.cases])
        self.distance = np.array([case.distance for case in self.cases])
        self.counts = np.array([len(case.nprocs) for case in self.cases])
        self.actual = np.array([case.actual for case in self.cases])
        self.rising = np.array([case.runtime[-1] > case.runtime[-2] for case in self.cases])
        self.models = [Consensus().fit_arrays(case.nprocs, case.runtime) for case in self.cases]
        self.declining = np.array([model.declines_after_ is not None for model in self.models])
        both = list(zip(self.cases, self.models, strict=True))
        self.said = np.array([float(model.predict(case.target)) for case, model in both])
        target = np.array([case.target for case in self.cases])
        self.away = np.log(np.maximum(target / [case.nprocs[-1] for case in self.cases], 1.0))
        self.apart = np.array(
            [model._consensus(np.log2([[case.target]]))[3].item() for case, model in both]
        )
        self.bend = np.array(
            [flattening_of(m.members_.curve.nprocs, m.members_.curve.runtime) for m in self.models]
        )

    @cached_property
    def methods(self) -> FloatArray:
        """What each method says, shape (methods, cases)."""
        return np.array(
            [
                [
                    make().fit_arrays(case.nprocs, case.runtime).predict_model(case.target).item()  # type: ignore[attr-defined]
                    for case in self.cases
                ]
                for make in METHODS.values()
            ]
        )

    @property
    def beyond(self) -> BoolArray:
        """Which targets lie outside the counts."""
        return np.asarray(self.distance != "inside")

    def quantile(self, errors: FloatArray, level: float, rows: BoolArray) -> float:
        """Return a quantile of some rows' errors, every file weighing the same."""
        return weighted_quantile(errors[rows], source_weights(self.source[rows].tolist()), level)


def chosen_errors(asked: Asked) -> tuple[dict[str, tuple[Chosen, Chosen]], FloatArray]:
    """Choose the median's methods, and others where runtimes rise, on the other files.

    Returns
    -------
    chosen : dict
        The two sets of methods of each file.
    errors : numpy.ndarray of float, shape (cases,)
        Relative errors with them.
    """
    sets = [one for one in product((0, 1), repeat=len(METHODS)) if sum(one) > 1]
    medians = {one: np.median(asked.methods[np.array(one, bool)], axis=0) for one in sets}
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

    def loss(pair: tuple[Chosen, Chosen], rows: BoolArray) -> float:
        return sum(
            asked.quantile(errors[pair], 0.5, rows & (asked.distance == distance))
            + 0.25 * asked.quantile(errors[pair], 0.9, rows & (asked.distance == distance))
            for distance in BEYOND
        )

    found, chosen = np.empty(len(asked.cases)), {}
    for source in np.unique(asked.source).tolist():
        here = asked.source == source
        chosen[source] = min(errors, key=lambda pair: loss(pair, ~here))
        found[here] = errors[chosen[source]][here]
    return chosen, found


def members(asked: Asked) -> str:
    """Say what is chosen for each file, and how far off it is."""
    chosen, found = chosen_errors(asked)
    lines = ["| file | methods | where runtimes rise |"]
    for source, best in chosen.items():
        names = [" ".join(n for n, one in zip(METHODS, part, strict=True) if one) for part in best]
        lines.append(f"| {source} | {names[0]} | {names[1]} |")
    hindsight = np.abs(asked.methods / asked.actual - 1.0).min(axis=0)
    for distance, (name, each) in product(
        BEYOND, (("chosen", found), ("the best method of each case", hindsight))
    ):
        rows = asked.distance == distance
        median, tail = (100.0 * asked.quantile(each, level, rows) for level in (0.5, 0.9))
        lines.append(
            f"| {distance}, {name} | median {median:.1f} % | 90th percentile {tail:.0f} % |"
        )
    return "\n".join(lines)


def sides(asked: Asked, constants: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return how far ranges with these constants go below and above, in ln T."""
    base, reach, bend = constants
    few = np.sqrt(ENOUGH / asked.counts)
    above = base + asked.apart + (reach + bend * asked.bend) * asked.away
    return few * (base + asked.apart), few * above


def fitted(asked: Asked, rows: BoolArray) -> FloatArray:
    """Fit the constants of ranges to some rows by pinball loss, distances and files alike."""
    missed = np.log(asked.actual / asked.said)
    weights = np.zeros(len(missed))
    for distance in ("inside", *BEYOND):
        here = rows & (asked.distance == distance)
        weights[here] = source_weights(asked.source[here].tolist())

    def loss(logs: FloatArray) -> float:
        low, high = (missed + sides(asked, np.exp(logs))[0], missed - sides(asked, np.exp(logs))[1])
        lost = np.maximum(0.1 * low, -0.9 * low) + np.maximum(0.9 * high, -0.1 * high)
        return float(weights @ lost)

    return np.asarray(np.exp(minimize(loss, np.log([0.2, 0.3, 0.4]), method="Nelder-Mead").x))


def crossed(asked: Asked, part: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return both sides of ranges, and grades 0 to 3, with what the other files of a part give."""
    below, above, grade = (np.zeros(len(asked.cases)) for _ in range(3))
    for source in np.unique(asked.source):
        here, others = asked.source == source, part & (asked.source != source)
        constants = fitted(asked, others)
        low, high = sides(asked, constants)
        below[here], above[here] = low[here], high[here]
        wide, others = at_distance(asked, low + high), others & asked.beyond
        limits = [asked.quantile(wide, share, others) for share in SHARES]
        grade[here] = np.searchsorted(limits, wide[here])
    return below, above, grade


def at_distance(asked: Asked, width: FloatArray) -> FloatArray:
    """Return widths over the root of the doublings beyond the counts, where more than one."""
    return np.asarray(width / np.sqrt(np.maximum(asked.away / np.log(2.0), 1.0)))


def coverage(asked: Asked, below: FloatArray, above: FloatArray) -> str:
    """Return what ranges hold and miss at each distance and from so many counts, in percent."""
    missed = np.log(asked.actual / asked.said)
    over, under = (missed > above).astype(float), (missed < -below).astype(float)
    parts = {"beyond": asked.beyond}
    parts |= {name: asked.distance == name for name in ("inside", *BEYOND)}
    ks = [(k, asked.counts == k) for k in np.unique(asked.counts)]
    parts |= {f"{k} counts": rows & asked.beyond for k, rows in ks}
    parts |= {f"{n}, {k} counts": parts[n] & rows for n in BEYOND for k, rows in ks}
    lines = ["| cases | | held | standard error | above | below |"]
    for name, rows in parts.items():
        weights = source_weights(asked.source[rows].tolist())
        shares = [100.0 * float(weights @ side[rows]) for side in (over, under)]
        error = spread(asked, 1.0 - over - under, rows)
        lines.append(
            f"| {name} | {rows.sum()} | {100.0 - sum(shares):.1f} | {error:.1f} "
            f"| {shares[0]:.1f} | {shares[1]:.1f} |"
        )
    return "\n".join(lines)


def spread(asked: Asked, held: FloatArray, rows: BoolArray) -> float:
    """Return the standard error of a share in percent, curves resampled, files alike."""
    _, curve = np.unique(asked.curve, return_inverse=True)
    files, file = np.unique(asked.source, return_inverse=True)
    rng, drawn = np.random.default_rng(0), []
    for _ in range(RESAMPLES):
        times = np.bincount(rng.integers(curve.max() + 1, size=curve.max() + 1))
        weight = np.append(times, np.zeros(curve.max() + 1))[curve] * rows
        total = np.bincount(file, weight, len(files))
        means = np.bincount(file, weight * held, len(files))[total > 0] / total[total > 0]
        drawn.append(100.0 * means.mean())
    return float(np.std(drawn))


def graded(
    asked: Asked, grade: FloatArray, distance: str, part: BoolArray | bool = True
) -> tuple[list[float], list[float]]:
    """Return shares of cases with each grade, and their median errors; no declining ends.

    A case weighs the same in both: as one of its file's at that distance.
    """
    errors = np.abs(asked.said / asked.actual - 1.0)
    rows = (asked.distance == distance) & ~asked.declining & part
    weights = np.zeros(len(rows))
    weights[rows] = source_weights(asked.source[rows].tolist())
    places = [rows & (grade == place) for place in range(len(SHARES) + 1)]
    medians = [
        weighted_quantile(errors[here], weights[here], 0.5) if here.any() else np.nan
        for here in places
    ]
    return [float(weights[here].sum()) for here in places], medians


def by_width(asked: Asked) -> FloatArray:
    """Return the grades of ranges as shipped, 0 to 3."""
    below, above = sides(asked, SHIPPED)
    limits = list(WIDE)
    return np.searchsorted(limits, at_distance(asked, below + above)).astype(float)


def row(asked: Asked, name: str, grade: FloatArray, part: BoolArray | bool = True) -> str:
    """Return a line of the table of grades."""
    cells = [
        f"{100.0 * share:.0f}: {100.0 * median:.1f}"
        for distance in BEYOND
        for share, median in zip(*graded(asked, grade, distance, part), strict=True)
    ]
    return f"| {name} | {' | '.join(cells)} |"


def ranges_and_grades(asked: Asked) -> str:
    """Return coverage and grades with constants of other files, of half of them, and as shipped."""
    below, above, grade = crossed(asked, np.ones(len(asked.cases), bool))
    lines = ["found on the other files", coverage(asked, below, above)]
    lines += ["shipped", coverage(asked, *sides(asked, SHIPPED))]
    heads = " | ".join(f"{d}, {g}" for d in BEYOND for g in ("none", *GRADES[1:]))
    lines += [f"| share: median error | {heads} |"]
    lines.append(row(asked, "found on the other files", grade))
    for half in source_halves(asked.source.tolist()):
        used = np.isin(asked.source, list(half))
        lines.append(row(asked, "found on the other half", crossed(asked, used)[2], ~used))
    lines.append(row(asked, "shipped", by_width(asked)))
    return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    curves = read_curves(parser.parse_args().folder)
    print(members(Asked(curves, (3, 4))))
    print(ranges_and_grades(Asked(curves, (3, 4, 5))))
    print(next_runs(curves))


if __name__ == "__main__":
    main()
