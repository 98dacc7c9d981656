"""Find the consensus' constants on measured curves, and print them.

python scripts/calibrate_consensus.py FOLDER

The printed module is predictors/consensus_calibration.py. The rule is chosen among
variations of the shipped one by medians and tails of errors 1.5 to 4.2 times beyond
three or four counts; the range's scale by quantile regression, its quantiles from the
errors, on windows of one to six counts.
"""

import argparse
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
from consensus_voices import METHODS, Voices, combine, scales, voices
from scipy.optimize import linprog

from predictors.consensus_calibration import RULE
from predictors.consensus_rule import MOST_DISAGREEMENT, ConsensusRule, RangeModel
from predictors.evaluation import source_weights, weighted_quantile

HEADLINE = (3, 4)
COUNTS = (1, 2, 3, 4, 5, 6)
TAU = 0.8
LEVELS = (0.005, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
MIDDLE, TAIL = (0.4, 0.5, 0.6), (0.85, 0.9, 0.95)
MARGIN = 0.15
PENALTY = 6.0
WIDER = 1.06
"""Factor on ranges: a new file's errors spread more than those of the files pooled here.

Chosen by the coverage of the same files; `widening` finds it on files apart."""
FOLDS = 5
ALL_LEVELS = tuple(sorted({*LEVELS, *(round(1 - level, 3) for level in LEVELS)}))


def candidate_rules() -> list[ConsensusRule]:
    """Return the rules to choose from: variations of the shipped one."""
    found = []
    for adept, linear, quadratic, amdahl, usl, rate in itertools.product(
        (1.0, 2.0, 3.0),
        (2.0, 3.0, 4.0, 5.0),
        (1.0, 2.0, 3.0),
        (1.0, 2.0),
        (1.0, 2.0),
        (0.1, 0.2, 0.3, 0.4, 0.5),
    ):
        weights = (adept, linear, quadratic, amdahl, usl)
        changed = {**RULE.weights, **dict(zip(METHODS, weights, strict=True)), "focused": linear}
        found.append(replace(RULE, weights=changed, line_rate=rate))
    return found


def quantiles(errors: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """Return the quantiles of every row of errors, every source weighing the same."""
    weights = source_weights(sources.tolist())
    order = np.argsort(errors, axis=1)
    middle = np.cumsum(weights[order], axis=1) - 0.5 * weights[order]
    ordered = np.take_along_axis(errors, order, axis=1)
    rows = zip(middle, ordered, strict=True)
    return np.array([np.interp(MIDDLE + TAIL, place, row) for place, row in rows])


def losses(said: Voices, tried: np.ndarray) -> np.ndarray:
    """Return a loss for every rule, from medians and tails against the best single method's.

    Near and far alike: the middle of the errors, half the tail, and a penalty where the
    90th percentile is not at least 15 % below that of every single method.
    """
    singles = np.abs(np.expm1(said.target - said.actual))
    total = np.zeros(len(tried))
    for distance in ("near", "far"):
        rows = said.distance == distance
        ours = quantiles(tried[:, rows], said.source[rows])
        theirs = quantiles(singles[:, rows], said.source[rows])
        cut = len(MIDDLE)
        total += ours[:, :cut].mean(axis=1) / theirs[:, :cut].mean(axis=1).min()
        total += 0.5 * ours[:, cut:].mean(axis=1) / theirs[:, cut:].mean(axis=1).min()
        ninetieth = (MIDDLE + TAIL).index(0.9)
        ratio = ours[:, ninetieth] / theirs[:, ninetieth].min()
        total += PENALTY * np.maximum(ratio - 1.0 + MARGIN, 0.0)
    return total


def choose_rule(said: Voices, tried: np.ndarray, rules: list[ConsensusRule]) -> ConsensusRule:
    """Return the mean of the best tenth of the rules: steadier than the best one."""
    best = np.argsort(losses(said, tried))[: len(rules) // 10]
    weights = {
        name: round(float(np.mean([rules[k].weights[name] for k in best])), 2)
        for name in RULE.weights
    }
    rate = round(float(np.mean([rules[k].line_rate for k in best])), 3)
    return replace(RULE, weights=weights, line_rate=rate)


def headline(said: Voices) -> np.ndarray:
    """Return the indices of the cases that rules are chosen by."""
    return np.flatnonzero(np.isin(said.counts, HEADLINE) & (said.distance != "inside"))


def try_rules(said: Voices, rules: list[ConsensusRule]) -> np.ndarray:
    """Return every rule's relative errors, shape (rules, cases)."""
    return np.array([np.abs(np.expm1(combine(rule, said)[0] - said.actual)) for rule in rules])


def widening(said: Voices, middle: np.ndarray, apart: np.ndarray, level: float = TAU) -> float:
    """Return the factor on ranges at which files that did not make them are held as they should.

    The files are split into five parts; the ranges of each come from the others.
    """
    names = np.unique(said.source)
    part = np.searchsorted(names, said.source) % FOLDS
    needed = np.empty(said.actual.size)
    for fold in range(FOLDS):
        here, rest = np.flatnonzero(part == fold), np.flatnonzero(part != fold)
        ranges = fit_ranges(said.take(rest), middle[rest], apart[rest], 1.0)
        low, high = ranges.ends(level)
        own = said.take(here)
        error = (own.actual - middle[here]) / scales(ranges, own, apart[here])
        needed[here] = np.where(error > 0.0, error / high, error / low)
    return weighted_quantile(needed, source_weights(said.source.tolist()), level)


def fit_ranges(
    said: Voices, middle: np.ndarray, apart: np.ndarray, wider: float = WIDER
) -> RangeModel:
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
    rows, columns = design.shape
    cost = np.concatenate([np.zeros(columns), TAU * weights, (1 - TAU) * weights])
    equality = np.hstack([design, np.eye(rows), -np.eye(rows)])
    found = linprog(cost, A_eq=equality, b_eq=np.abs(error), bounds=(0, None), method="highs")
    base, reach, disagreement = found.x[:4] + 0.005, found.x[4:8], float(found.x[8])
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
        f"    line_rate={rule.line_rate:g},\n    steepest={rule.steepest:g},\n"
        f"    flattest={rule.flattest:g},\n    typical_exponent={rule.typical_exponent:g},\n"
        f"    typical_information={rule.typical_information:g},\n)\n\n"
        f"RANGES = RangeModel(\n    base={listed(ranges.base)},\n"
        f"    reach={listed(ranges.reach)},\n"
        f"    disagreement={ranges.disagreement:.4g},\n    levels={listed(ranges.levels)},\n"
        f"    quantiles={listed(ranges.quantiles)},\n)\n"
    )


def main() -> None:
    """Print the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    said = voices(parser.parse_args().folder, COUNTS)
    rules, part = candidate_rules(), said.take(headline(said))
    rule = choose_rule(part, try_rules(part, rules), rules)
    middle, apart = combine(rule, said)
    print(show(rule, fit_ranges(said, middle, apart)))
    print(f"# found on files apart, ranges would be {widening(said, middle, apart):.3f} as wide")


if __name__ == "__main__":
    main()
