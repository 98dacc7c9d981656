"""See whether precision mode stops when it should.

Usage: python -m scripts.study_precision [--studies 50] [--precision 0.05]

Each study draws replications from a law of known mean and variance until `Precision`
is content. Then: is the reached width what was asked, was it not yet reached one
replication earlier, how many replications were spent against the number that the
known variance calls for, and does the interval still cover? Prints Markdown.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sim.statistics.precision import Precision

MEAN = 1000.0
Draw = Callable[[np.random.Generator, float], float]


def normal(rng: np.random.Generator, variation: float) -> float:
    return float(rng.normal(MEAN, variation * MEAN))


def lognormal(rng: np.random.Generator, variation: float) -> float:
    spread = np.sqrt(np.log1p(variation**2))
    return float(MEAN * np.exp(rng.normal(-(spread**2) / 2, spread)))


LAWS: dict[str, Draw] = {"normal": normal, "log-normal": lognormal}
VARIATIONS = (0.02, 0.1, 0.2, 0.4)
"""Standard deviations of a replication's figure over its mean."""


@dataclass(frozen=True)
class Ended:
    """How one study ended: half-width over mean, at the end and one replication before."""

    reached: float
    before: float
    replications: int
    covers: bool


def carry_out(asked: Precision, law: Draw, variation: float, seed: int) -> Ended:
    rng = np.random.default_rng([seed, round(1e6 * variation)])
    values: list[float] = []
    while not asked.enough(values):
        values.append(law(rng, variation))
    interval = asked.interval(values)
    return Ended(
        interval.relative,
        asked.interval(values[:-1]).relative,
        len(values),
        interval.contains(MEAN),
    )


def row(asked: Precision, name: str, variation: float, studies: int) -> str:
    ended = [carry_out(asked, LAWS[name], variation, seed) for seed in range(studies)]
    spent = np.array([one.replications for one in ended])
    reached = np.array([one.reached for one in ended])
    least = spent == asked.least
    in_time = np.array([one.before > asked.relative for one in ended]) | least
    right = asked.expected(MEAN, variation * MEAN)
    return (
        f"| {name} | {variation:.0%} | {right} "
        f"| {spent.mean():.1f} ({spent.min()} to {spent.max()}) "
        f"| {np.median(reached):.2%} | {reached.max():.2%} "
        f"| {(reached <= asked.relative).sum()} of {studies} | {in_time.sum()} of {studies} "
        f"| {np.mean([one.covers for one in ended]):.0%} |"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the studies of every law and variation, and print their table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--studies", type=int, default=50)
    parser.add_argument("--precision", type=float, default=0.05)
    options = parser.parse_args(arguments)
    asked = Precision(options.precision, most=2000)
    print(
        "| law | deviation / mean | replications called for | spent (range) | median reached "
        "| widest reached | as asked | not one too many | covers |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in LAWS:
        for variation in VARIATIONS:
            print(row(asked, name, variation, options.studies))


if __name__ == "__main__":
    main()
