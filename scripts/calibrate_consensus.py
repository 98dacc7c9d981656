"""Find the consensus' constants on measured curves, and print them.

python scripts/calibrate_consensus.py FOLDER

The printed module is predictors/consensus_calibration.py. The rule is chosen from
a small table by median and 90th percentile of errors 1.5 to 4.2 times beyond the
measurements; the range's scale by quantile regression, its quantiles from all cases.
"""

import argparse
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
from consensus_voices import Voices, combine, voices
from scipy.optimize import linprog

from predictors.consensus_calibration import RULE
from predictors.consensus_rule import MOST_DISAGREEMENT, ConsensusRule, RangeModel
from predictors.evaluation import source_weights, weighted_quantile

HEADLINE = (3, 4)
COUNTS = (1, 2, 3, 4, 5, 6)
TAU = 0.8
LEVELS = (0.005, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
ALL_LEVELS = tuple(sorted({*LEVELS, *(round(1 - level, 3) for level in LEVELS)}))


def candidate_rules() -> list[ConsensusRule]:
    """Return the rules to choose from: variations of the shipped one."""
    found = []
    for adept, linear, amdahl, usl, rate in itertools.product(
        (1.0, 2.0, 3.0), (3.0, 4.0), (1.0, 2.0), (1.0, 2.0), (0.2, 0.3, 0.4)
    ):
        weights = {
            **RULE.weights,
            "adept": adept,
            "linear": linear,
            "focused": linear,
            "amdahl": amdahl,
            "usl": usl,
        }
        found.append(replace(RULE, weights=weights, line_rate=rate))
    return found


def loss(said: Voices, errors: np.ndarray) -> float:
    """Return medians and 90th percentiles near and far, each in units of its usual size."""
    total = 0.0
    for distance, usual in (("near", (0.17, 0.65)), ("far", (0.25, 0.70))):
        rows = (said.distance == distance) & np.isin(said.counts, HEADLINE)
        weights = source_weights(said.source[rows].tolist())
        for level, unit in zip((0.5, 0.9), usual, strict=True):
            total += weighted_quantile(errors[rows], weights, level) / unit
    return total


def choose_rule(
    said: Voices, tried: dict[int, np.ndarray], rules: list[ConsensusRule], rows: np.ndarray
) -> ConsensusRule:
    """Return the rule with the smallest loss on the cases at `rows`."""
    part = said.take(rows)
    losses = [loss(part, tried[place][rows]) for place in range(len(rules))]
    return rules[int(np.argmin(losses))]


def try_rules(said: Voices, rules: list[ConsensusRule]) -> dict[int, np.ndarray]:
    """Return every rule's relative errors on all cases."""
    return {
        place: np.abs(np.expm1(combine(rule, said)[0] - said.actual))
        for place, rule in enumerate(rules)
    }


def fit_ranges(said: Voices, middle: np.ndarray, apart: np.ndarray) -> RangeModel:
    """Fit the 80 % quantile of |error| linearly in its covariates, all of them >= 0."""
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
    quantiles = [weighted_quantile(error / scale, weights, level) for level in ALL_LEVELS]
    return RangeModel(
        tuple(base.tolist()), tuple(reach.tolist()), disagreement, ALL_LEVELS, tuple(quantiles)
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
    rules = candidate_rules()
    rule = choose_rule(said, try_rules(said, rules), rules, np.arange(said.actual.size))
    print(show(rule, fit_ranges(said, *combine(rule, said))))


if __name__ == "__main__":
    main()
