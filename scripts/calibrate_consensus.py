"""Find the consensus' constants on measured curves, and print them.

python -m scripts.calibrate_consensus FOLDER

The printed module is predictors/consensus_calibration.py. The rule is chosen among
random ones by errors 1.5 to 4.2 times beyond three or four counts; the loss that chooses
it, and the factor on the ranges, by leaving out files. The range's scale comes from
quantile regression, its quantiles from the errors, on windows of one to six counts.
Targets in and beyond a declining end, where no method answers, are left out.
"""

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import linprog

from predictors.consensus_calibration import RULE
from predictors.consensus_rule import MOST_DISAGREEMENT, ConsensusRule, RangeModel
from predictors.evaluation import source_weights, weighted_quantile
from scripts.consensus_voices import METHODS, Voices, combine, scales, single_errors, voices

HEADLINE = (3, 4)
COUNTS = (1, 2, 3, 4, 5, 6)
DISTANCES = ("near", "far")
CANDIDATES = 1200
SEED = 1
TAU = 0.8
LEVELS = (0.005, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
MIDDLE, TAIL = (0.4, 0.5, 0.6), (0.85, 0.9, 0.95)
ALL_LEVELS = tuple(sorted({*LEVELS, *(round(1 - level, 3) for level in LEVELS)}))


@dataclass(frozen=True)
class Loss:
    """How rules are judged by their errors on the files that choose.

    The mean of three middle quantiles near and far, each against the best single
    method's, and, by their weights, of three tail quantiles, and of what the 90th
    percentile lacks to being a margin below every single method's. The chosen rule is
    the mean of a share of the best ones: steadier than the best one.
    """

    tail: float
    penalty: float
    margin: float
    share: float


LOSSES = [
    Loss(tail, penalty, margin, share)
    for tail in (0.0, 0.5, 1.0)
    for penalty, margin in ((0.0, 0.0), (3.0, 0.05), (6.0, 0.05), (3.0, 0.15), (6.0, 0.15))
    for share in (0.02, 0.1)
]


def candidate_rules(number: int = CANDIDATES, seed: int = SEED) -> list[ConsensusRule]:
    """Return rules to choose from: every constant drawn from a wide range."""
    draws = np.random.default_rng(seed)
    found = []
    for _ in range(number):
        weights = np.exp(draws.uniform(0.0, np.log(5.0), len(METHODS))).round(2).tolist()
        named = dict(zip(METHODS, weights, strict=True))
        found.append(
            ConsensusRule(
                weights={**named, "focused": named["linear"], "between": 2.0},
                line_rate=draws.uniform(0.0, 0.8),
                steepest=float(draws.choice([-1.0, -1.05, -1.1, -1.2, -1.5])),
                flattest=float(draws.choice([0.0, 0.15, 0.3, 0.5])),
                typical_exponent=draws.uniform(-1.0, -0.4),
                typical_information=float(np.exp(draws.uniform(np.log(0.003), 0.0))),
                grades={"warning": draws.uniform(0.25, 1.0), "unusable": draws.uniform(0.05, 0.5)},
                mean_share=float(draws.choice([0.0, 0.25, 0.5, 0.75, 1.0])),
            )
        )
    return found


def mean_rule(rules: list[ConsensusRule]) -> ConsensusRule:
    """Return the rule whose constants are the means of these rules'."""

    def mean(values: Iterator[float]) -> float:
        return round(float(np.mean(list(values))), 3)

    return ConsensusRule(
        weights={name: mean(r.weights[name] for r in rules) for name in RULE.weights},
        grades={name: mean(r.grades[name] for r in rules) for name in RULE.grades},
        line_rate=mean(r.line_rate for r in rules),
        mean_share=mean(r.mean_share for r in rules),
        steepest=mean(r.steepest for r in rules),
        flattest=mean(r.flattest for r in rules),
        typical_exponent=mean(r.typical_exponent for r in rules),
        typical_information=float(np.exp(mean(np.log(r.typical_information) for r in rules))),
    )


class Trials:
    """Errors of all candidate rules and single methods on the cases that choose.

    Parameters
    ----------
    said : Voices
        Cases near and far, from as many inputs as count for the headline.
    singles : numpy.ndarray, shape (methods, cases)
        Relative errors of the single methods.
    """

    def __init__(self, said: Voices, singles: np.ndarray, rules: list[ConsensusRule]) -> None:
        self.said, self.singles, self.rules = said, singles, rules
        tried = [np.abs(np.expm1(combine(rule, said)[0] - said.actual)) for rule in rules]
        self._rows = [np.flatnonzero(said.distance == distance) for distance in DISTANCES]
        errors = [np.vstack([*tried, *singles])[:, rows] for rows in self._rows]
        self._order = [np.argsort(part, axis=1) for part in errors]
        self._sorted = [np.sort(part, axis=1) for part in errors]

    def quantiles(self, without: tuple[str, ...]) -> list[np.ndarray]:
        """Return the quantiles of every rule and method near and far without some files.

        Every other file weighs the same. Shape (rules + methods, levels) each.
        """
        found = []
        for rows, order, ordered in zip(self._rows, self._order, self._sorted, strict=True):
            source = self.said.source[rows]
            kept = ~np.isin(source, without)
            weights = np.zeros(rows.size)
            weights[kept] = source_weights(source[kept].tolist())
            there, weighed = kept[order], weights[order]
            place = np.cumsum(weighed, axis=1) - 0.5 * weighed
            parts = zip(place, ordered, there, strict=True)
            found.append(np.array([np.interp(MIDDLE + TAIL, p[k], e[k]) for p, e, k in parts]))
        return found

    def best(self, without: tuple[str, ...]) -> dict[Loss, ConsensusRule]:
        """Return the rule that each loss chooses without some files."""
        values, found = self.quantiles(without), {}
        for loss in LOSSES:
            total = sum(self._loss(loss, part) for part in values)
            order = np.argsort(total)[: int(loss.share * len(self.rules))]
            found[loss] = mean_rule([self.rules[k] for k in order])
        return found

    def _loss(self, loss: Loss, values: np.ndarray) -> np.ndarray:
        ours, theirs = values[: len(self.rules)], values[len(self.rules) :]
        cut, ninetieth = len(MIDDLE), (MIDDLE + TAIL).index(0.9)
        middle = ours[:, :cut].mean(axis=1) / theirs[:, :cut].mean(axis=1).min()
        tail = ours[:, cut:].mean(axis=1) / theirs[:, cut:].mean(axis=1).min()
        ratio = ours[:, ninetieth] / theirs[:, ninetieth].min()
        lacking = np.maximum(ratio - 1.0 + loss.margin, 0.0)
        return middle + loss.tail * tail + loss.penalty * lacking

    def errors(self, rule: ConsensusRule, rows: np.ndarray) -> np.ndarray:
        """Return the relative errors of a rule on some cases."""
        part = self.said.take(rows)
        return np.abs(np.expm1(combine(rule, part)[0] - part.actual))


class Chooser:
    """The choice of a loss by leaving out files, and of a rule by that loss.

    A loss is judged by rules that it chose without the file they are applied to: by the
    sum, near and far, of the median and the 90th percentile, each against the best single
    method's: what is wanted of the consensus, without constants of its own.
    """

    def __init__(self, trials: Trials) -> None:
        self._trials = trials
        self.sources = np.unique(trials.said.source).tolist()
        pairs = itertools.combinations(self.sources, 2)
        self._without = {frozenset(pair): self._applied(pair) for pair in pairs}

    def _applied(self, pair: tuple[str, str]) -> dict[str, dict[Loss, np.ndarray]]:
        """Return errors on each of two files of the rules chosen without both."""
        best = self._trials.best(pair)
        return {name: self._errors(best, name) for name in pair}

    def _errors(self, best: dict[Loss, ConsensusRule], name: str) -> dict[Loss, np.ndarray]:
        rows = np.flatnonzero(self._trials.said.source == name)
        return {loss: self._trials.errors(rule, rows) for loss, rule in best.items()}

    def rule(self, held: str | None) -> tuple[Loss, ConsensusRule]:
        """Return the loss and the rule chosen without one file, or by all of them.

        A file with no case to choose by is as good as none.
        """
        held = held if held in self.sources else None
        others = [name for name in self.sources if name != held]
        if held is None:
            alone = {name: self._errors(self._trials.best((name,)), name) for name in others}
        else:
            alone = {name: self._without[frozenset((held, name))][name] for name in others}
        loss = min(LOSSES, key=lambda loss: self._badness(others, alone, loss))
        return loss, self._trials.best(() if held is None else (held,))[loss]

    def _badness(
        self, names: list[str], alone: dict[str, dict[Loss, np.ndarray]], loss: Loss
    ) -> float:
        said, singles, total = self._trials.said, self._trials.singles, 0.0
        errors = np.empty(said.actual.size)
        for name in names:
            errors[said.source == name] = alone[name][loss]
        for distance in DISTANCES:
            rows = np.isin(said.source, names) & (said.distance == distance)
            weights = source_weights(said.source[rows].tolist())
            for level in (0.5, 0.9):
                best = min(weighted_quantile(row[rows], weights, level) for row in singles)
                total += weighted_quantile(errors[rows], weights, level) / best
        return total


def headline(said: Voices) -> np.ndarray:
    """Return the indices of the cases that rules are chosen by."""
    shown = np.isin(said.counts, HEADLINE) & (said.distance != "inside")
    return np.flatnonzero(shown & ~said.declining)


def chooser(folder: Path, said: Voices, rules: list[ConsensusRule] | None = None) -> Chooser:
    """Try candidate rules on the headline's cases."""
    rows = np.flatnonzero(np.isin(said.counts, HEADLINE))
    asked = said.take(rows)
    shown = headline(asked)
    singles = np.array(list(single_errors(folder, HEADLINE).values()))[:, shown]
    return Chooser(Trials(asked.take(shown), singles, rules or candidate_rules()))


def widening(said: Voices, middle: np.ndarray, apart: np.ndarray, level: float = TAU) -> float:
    """Return the factor on ranges at which files that did not make them are held as they should.

    The ranges of each file come from the others.
    """
    needed = np.empty(said.actual.size)
    for name in np.unique(said.source):
        here, rest = np.flatnonzero(said.source == name), np.flatnonzero(said.source != name)
        ranges = fit_ranges(said.take(rest), middle[rest], apart[rest], 1.0)
        low, high = ranges.ends(level)
        own = said.take(here)
        error = (own.actual - middle[here]) / scales(ranges, own, apart[here])
        needed[here] = np.where(error > 0.0, error / high, error / low)
    return weighted_quantile(needed, source_weights(said.source.tolist()), level)


def fit_ranges(said: Voices, middle: np.ndarray, apart: np.ndarray, wider: float) -> RangeModel:
    """Fit the 80 % quantile of |error| linearly in its covariates, all of them >= 0.

    `wider` is a factor on the quantiles.
    """
    error = said.actual - middle
    place = np.minimum(said.counts, 4) - 1
    own = place[:, None] == np.arange(4)
    design = np.column_stack(
        [own, own * np.abs(said.reach)[:, None], np.minimum(apart, MOST_DISAGREEMENT)]
    )
    groups = [f"{count}/{source}" for count, source in zip(place, said.source, strict=True)]
    weights = source_weights(groups)
    # The dual of quantile regression has a row a covariate only.
    found = linprog(
        -np.abs(error),
        A_ub=design.T,
        b_ub=np.zeros(design.shape[1]),
        bounds=np.column_stack([(TAU - 1.0) * weights, TAU * weights]),
        method="highs",
    )
    fitted = -found.ineqlin.marginals
    base, reach, disagreement = fitted[:4] + 0.005, fitted[4:8], float(fitted[8])
    scale = base[place] + reach[place] * np.abs(said.reach) + disagreement * design[:, 8]
    found_at = [wider * weighted_quantile(error / scale, weights, q) for q in ALL_LEVELS]
    return RangeModel(
        tuple(base.tolist()), tuple(reach.tolist()), disagreement, ALL_LEVELS, tuple(found_at)
    )


def show(rule: ConsensusRule, ranges: RangeModel) -> str:
    """Return the calibration as a Python module."""

    def listed(values: tuple[float, ...]) -> str:
        return "(" + ", ".join(f"{value:.4g}" for value in values) + ")"

    weights = "".join(f'        "{name}": {value:g},\n' for name, value in rule.weights.items())
    return (
        '"""The consensus\' constants, from measured strong-scaling curves.\n\n'
        "Printed by scripts/calibrate_consensus.py.\n"
        '"""\n\n'
        "from predictors.consensus_rule import ConsensusRule, RangeModel\n\n"
        f"RULE = ConsensusRule(\n    weights={{\n{weights}    }},\n"
        f"    grades={dict(rule.grades)},\n"
        f"    line_rate={rule.line_rate:g},\n    mean_share={rule.mean_share:g},\n"
        f"    steepest={rule.steepest:g},\n"
        f"    flattest={rule.flattest:g},\n    typical_exponent={rule.typical_exponent:g},\n"
        f"    typical_information={rule.typical_information:.4g},\n)\n\n"
        f"RANGES = RangeModel(\n    base={listed(ranges.base)},\n"
        f"    reach={listed(ranges.reach)},\n"
        f"    disagreement={ranges.disagreement:.4g},\n    levels={listed(ranges.levels)},\n"
        f"    quantiles={listed(ranges.quantiles)},\n)\n"
    )


def main() -> None:
    """Print the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    said = voices(folder, COUNTS)
    loss, rule = chooser(folder, said).rule(None)
    said = said.take(np.flatnonzero(~said.declining))
    middle, apart = combine(rule, said)
    wider = widening(said, middle, apart)
    print(show(rule, fit_ranges(said, middle, apart, wider)))
    print(f"# {loss}; ranges {wider:.3f} times as wide as on the files that made them")


if __name__ == "__main__":
    main()
