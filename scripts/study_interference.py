"""How well interference is detected: false alarms, misses and delay over many seeds.

Run from the top of the repository: python -m scripts.study_interference [seeds]
"""

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.interference import MedianDetector, SequentialDetector
from scripts.study_cycles import offline_model
from workloads.cycle_costs import CYCLE_MACHINES
from workloads.evolving import DECKS, EvolvingRun

FloatArray = NDArray[np.float64]
Detector = SequentialDetector | MedianDetector

HEALTHY = 300
"""Cycles before the disturbance."""

DISTURBED = 100
"""Cycles of the disturbance, at the end of the run."""

STATED = 1e-3
"""False alarms for each healthy cycle that the sequential test is asked for."""


class Score(NamedTuple):
    """What a detector did over many runs.

    Attributes
    ----------
    false_alarms : float
        Alarms raised in 1,000 healthy cycles.
    missed : float
        Share of runs in which the disturbance raised none.
    delay, slowest : float
        Mean and 95th percentile of the disturbed cycles until the alarm, 1 at
        best; NaN where all were missed.
    """

    false_alarms: float
    missed: float
    delay: float
    slowest: float


def score(make: Callable[[], Detector], healthy: list[FloatArray], slowdown: float) -> Score:
    """Run a detector over series of healthy ratios, the last part of them slowed."""
    alarms, delays = 0, []
    for ratios in healthy:
        slowed = np.where(np.arange(ratios.size) < HEALTHY, 1.0, slowdown)
        states = make().update(ratios * slowed)
        alarms += int((np.diff(states[:HEALTHY].astype(int), prepend=0) == 1).sum())
        raised = np.flatnonzero(states[HEALTHY:])
        delays.append(raised[0] + 1.0 if raised.size else np.nan)
    seen = np.array(delays)[np.isfinite(delays)]
    return Score(
        1000.0 * alarms / (HEALTHY * len(healthy)),
        1.0 - seen.size / len(healthy),
        float(seen.mean()) if seen.size else np.nan,
        float(np.percentile(seen, 95)) if seen.size else np.nan,
    )


def independent_ratios(spread: float, seeds: int) -> list[FloatArray]:
    """Return log-normal ratios without bias or drift: what the sequential test assumes."""
    rng = np.random.default_rng([seeds, round(1000 * spread)])
    return list(np.exp(spread * rng.standard_normal((seeds, HEALTHY + DISTURBED))))


def adaptive_ratios(machine: str, nprocs: int, seeds: int) -> list[FloatArray]:
    """Return ratios of simulated adaptive runs to a fitted offline model."""
    ratios = []
    for seed in range(seeds):
        deck = list(DECKS)[seed % len(DECKS)]
        model = offline_model(machine, deck, seed=seed % 10)
        run = EvolvingRun(
            DECKS[deck], CYCLE_MACHINES[machine], nprocs, 77, seed, HEALTHY + DISTURBED
        )
        seconds = np.diff(run.cumulative(nprocs), prepend=0.0)
        ratios.append(seconds / model.predict(nprocs, cells=run.cells_per_processor(nprocs)))
    return ratios


def table(seeds: int) -> list[str]:
    """Return the table of detectors, noises and slowdowns as Markdown."""
    sources: list[tuple[str, float, list[FloatArray]]] = [
        (f"independent, spread {spread:.2f}", spread, independent_ratios(spread, seeds))
        for spread in (0.05, 0.10, 0.20, 0.30)
    ]
    for machine, nprocs in (("alphaserver", 1), ("itanium2", 1), ("itanium2", 16)):
        ratios = adaptive_ratios(machine, nprocs, seeds)
        truth = CYCLE_MACHINES[machine]
        spread = float(np.hypot(truth.noise, truth.drift))
        sources.append((f"adaptive runs, {machine}, {nprocs} PE", spread, ratios))
    lines = [
        "| healthy ratios | detector | false alarms / 1,000 cycles "
        "| missed 1.3× / 1.5× / 2× | delay 1.3× / 1.5× / 2× (95 % at 2×) |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, spread, ratios in sources:
        sequential = SequentialDetector(STATED, spread=spread)
        for label, make in (
            ("sequential", lambda s=spread: SequentialDetector(STATED, spread=s)),
            ("median", MedianDetector),
        ):
            scores = [score(make, ratios, slowdown) for slowdown in (1.3, 1.5, 2.0)]
            missed = " / ".join(f"{s.missed:.1%}" for s in scores)
            delay = " / ".join(f"{s.delay:.1f}" for s in scores)
            shown = f"{label}, h = {sequential.threshold_:.2f}" if label == "sequential" else label
            lines.append(
                f"| {name} | {shown} | {scores[0].false_alarms:.3f} | {missed} "
                f"| {delay} ({scores[-1].slowest:.0f}) |"
            )
    return lines


def main(seeds: int) -> None:
    print(f"{seeds} runs of {HEALTHY} healthy and {DISTURBED} disturbed cycles each;")
    print(f"the sequential test is asked for {1000 * STATED:g} false alarms in 1,000 cycles")
    print("\n".join(table(seeds)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
