"""The consensus against each of its methods and a Gaussian process on measured curves.

python -m scripts.study_consensus FOLDER

Windows of three and four consecutive counts, targets between them and 1.5 to 2.1 and
3 to 4.2 times beyond, every method as it answers users; every source file weighs the
same. For each file the loss that chooses the rule, the rule, the ranges and their
widening come from the other files (cross-fitted). Intervals are 95 %, from 2,000
resamplings of curves.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from predictors.consensus import Consensus
from predictors.consensus_calibration import RANGES, RULE
from predictors.consensus_rule import ConsensusRule, RangeModel
from predictors.evaluation import (
    Case,
    bootstrap_interval,
    cases,
    read_curves,
    source_weights,
    weighted_quantile,
)
from scripts.calibrate_consensus import COUNTS, HEADLINE, chooser, fit_ranges, widening
from scripts.consensus_voices import METHODS, Voices, combine, single_errors, voices

LEVEL = 0.8
RESAMPLES = 2000


def cross_fitted(folder: Path, said: Voices) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return relative errors, coverage at 80 %, and what was chosen without each file."""
    choose = chooser(folder, said)
    asked = [case for count in COUNTS for case in cases(read_curves(folder), count)]
    errors, inside = np.empty(said.actual.size), np.empty(said.actual.size, dtype=bool)
    chosen = []
    for source in np.unique(said.source).tolist():
        held = said.source == source
        loss, rule = choose.rule(source)
        rest = said.take(np.flatnonzero(~held & ~said.declining))
        known = combine(rule, rest)
        wider = widening(rest, *known)
        ranges = fit_ranges(rest, *known, wider)
        for place in np.flatnonzero(held).tolist():
            errors[place], inside[place] = answered(asked[place], rule, ranges)
        weights = ", ".join(f"{name} {rule.weights[name]:.1f}" for name in METHODS)
        chosen.append(
            f"{source}: {weights}; line rate {rule.line_rate:.2f}, mean {rule.mean_share:.2f}, "
            f"typical {rule.typical_exponent:.2f}, wider {wider:.3f}; {loss}"
        )
    return errors, inside, chosen


def answered(case: Case, rule: ConsensusRule, ranges: RangeModel) -> tuple[float, bool]:
    """Return the relative error of the consensus as it answers, and whether its range holds."""
    model = Consensus(rule=rule, ranges=ranges).fit_arrays(case.nprocs, case.runtime)
    low, high = model.predict_range([case.target], LEVEL)
    error = abs(model.predict([case.target])[0] / case.actual - 1.0)
    return float(error), bool(low[0] <= case.actual <= high[0])


def quantiles(said: Voices, errors: dict[str, np.ndarray]) -> pd.DataFrame:
    """Return medians and 90th percentiles in percent, a row a method."""
    table = {}
    for distance in ("inside", "near", "far"):
        rows = said.distance == distance
        if not rows.any():
            continue
        weights = source_weights(said.source[rows].tolist())
        for level, name in ((0.5, "median"), (0.9, "p90")):
            table[distance, name] = {
                method: 100 * weighted_quantile(values[rows], weights, level)
                for method, values in errors.items()
            }
    return pd.DataFrame(table).round(1)


def paired(said: Voices, ours: np.ndarray, theirs: np.ndarray, distance: str) -> dict[str, str]:
    """Return three paired differences in error with intervals, in points of percent."""
    rows = np.flatnonzero(said.distance == distance)
    source, groups = said.source[rows], said.problem[rows].tolist()
    mine, other = ours[rows], theirs[rows]

    def difference_of_medians(drawn: np.ndarray) -> float:
        weights = source_weights(source[drawn].tolist())
        return 100 * (
            weighted_quantile(mine[drawn], weights, 0.5)
            - weighted_quantile(other[drawn], weights, 0.5)
        )

    def median_difference(drawn: np.ndarray) -> float:
        weights = source_weights(source[drawn].tolist())
        return 100 * weighted_quantile((mine - other)[drawn], weights, 0.5)

    def mean_difference(drawn: np.ndarray) -> float:
        weights = source_weights(source[drawn].tolist())
        return 100 * float(weights @ (mine - other)[drawn])

    found = {}
    for name, statistic in (
        ("median of differences", median_difference),
        ("mean of differences", mean_difference),
        ("difference of medians", difference_of_medians),
    ):
        low, high = bootstrap_interval(statistic, groups, RESAMPLES)
        whole = statistic(np.arange(rows.size))
        found[name] = f"{whole:+.1f} [{low:+.1f}, {high:+.1f}]"
    return found


def coverage(said: Voices, inside: np.ndarray) -> pd.DataFrame:
    """Return the share of cases in the 80 % range: by file, and case by case."""
    rows = []
    for distance in ("inside", "near", "far"):
        part = said.distance == distance
        if not part.any():
            continue
        weights = source_weights(said.source[part].tolist())
        rows.append((distance, 100 * float(weights @ inside[part]), 100 * inside[part].mean()))
    both = np.isin(said.distance, ("near", "far"))
    weights = source_weights(said.source[both].tolist())
    rows.append(("near and far", 100 * float(weights @ inside[both]), 100 * inside[both].mean()))
    return pd.DataFrame(rows, columns=["targets", "files alike", "cases alike"]).round(1)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    everything = voices(folder, COUNTS)
    errors, inside, chosen = cross_fitted(folder, everything)
    rows = np.flatnonzero(np.isin(everything.counts, HEADLINE))
    said = everything.take(rows)
    single = single_errors(folder, HEADLINE)
    asked = [case for count in HEADLINE for case in cases(read_curves(folder), count)]
    shipped = np.array([answered(case, RULE, RANGES)[0] for case in asked])
    table = {**single, "consensus, cross-fitted": errors[rows], "consensus, as shipped": shipped}
    print(quantiles(said, table).to_string(), "\n")
    for distance in ("near", "far"):
        part = quantiles(said, single)[distance, "median"]
        for best in part.sort_values().index[:2]:
            print(distance, "against", best, paired(said, errors[rows], single[best], distance))
    print("\n80 % ranges, cross-fitted\n", coverage(said, inside[rows]).to_string(index=False))
    for count in COUNTS:
        part = everything.take(np.flatnonzero(everything.counts == count))
        print(f"from {count} count(s):")
        own = {"consensus, cross-fitted": errors[everything.counts == count]}
        print(quantiles(part, own).to_string())
        print(coverage(part, inside[everything.counts == count]).to_string(index=False))
    print("\nchosen without each file:", *chosen, sep="\n")
    print("80 % range as shipped:", RANGES.ends(LEVEL))


if __name__ == "__main__":
    main()
