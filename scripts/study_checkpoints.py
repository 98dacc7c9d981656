"""What checkpoint intervals cost, in closed form and simulated; walltime; remaining time.

Run from the top of the repository: python -m scripts.study_checkpoints [runs]
"""

import sys

import numpy as np
from numpy.typing import NDArray

from predictors.checkpointing import (
    CheckpointCost,
    best_interval,
    daly_interval,
    expected_walltime,
    young_interval,
)
from predictors.cycles import OnlineCyclePredictor
from predictors.remaining import RemainingTime
from scripts.study_cycles import offline_model
from sim.failures import ConstantRepairs, ExponentialLifetimes, NodeFailures, WeibullLifetimes
from sim.recovery import recover
from workloads.cycle_costs import CYCLE_MACHINES
from workloads.evolving import DECKS, EvolvingRun

FloatArray = NDArray[np.float64]

NODES = 8
RULES = {"best": best_interval, "Daly": daly_interval, "Young": young_interval}


def closed_form_table() -> list[str]:
    """Return the loss of Daly's and Young's interval against the best, as Markdown."""
    ratios = np.array([1e-4, 1e-3, 0.01, 0.05, 1 / 6, 0.5, 1.0, 2.0, 5.0])
    best = expected_walltime(1.0, best_interval(ratios, 1.0), ratios, 1.0)
    lines = [
        "| δ/M | wall/work at best | Daly's loss | Young's loss |",
        "| --- | --- | --- | --- |",
    ]
    losses = [
        expected_walltime(1.0, rule(ratios, 1.0), ratios, 1.0) / best - 1.0
        for rule in (daly_interval, young_interval)
    ]
    for ratio, least, daly, young in zip(ratios, best, *losses, strict=True):
        lines.append(f"| {ratio:.4g} | {least:.4g} | {daly:.3%} | {young:.3%} |")
    return lines


def simulated_walls(
    ends: FloatArray, interval: float, cost: float, mtbf: float, runs: int, shape: float
) -> FloatArray:
    """Return wall times of a job through failures of its nodes."""
    lives = (
        ExponentialLifetimes(NODES * mtbf)
        if shape == 1.0
        else WeibullLifetimes(NODES * mtbf, shape)
    )
    walls = []
    for run in range(runs):
        nodes = NodeFailures(NODES, lives, ConstantRepairs(0.0), key=31 + run)
        times = (event.time for event in nodes.events() if event.kind == "failure")
        walls.append(recover(ends, times, interval, cost).wall)
    return np.array(walls)


def waste_table(runs: int) -> list[str]:
    """Return simulated against closed waste for constant cycles, as Markdown."""
    lines = [
        "| δ, M (s) | rule | interval (s) | closed form | simulated, exponential "
        "| simulated, Weibull 0.7 |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for cost, mtbf in ((10.0, 600.0), (60.0, 3600.0), (600.0, 3600.0)):
        for name, rule in RULES.items():
            interval = float(np.maximum(np.round(rule(cost, mtbf) / 5.0), 1.0) * 5.0)
            ends = np.arange(1, round(10 * interval / 5.0) + 1) * 5.0
            work = float(ends[-1])
            before = expected_walltime(work - interval, interval, cost, mtbf)
            closed = float(before + expected_walltime(interval, interval, 0.0, mtbf))
            shown = []
            for shape in (1.0, 0.7):
                waste = simulated_walls(ends, interval, cost, mtbf, runs, shape) / work - 1.0
                half = 1.96 * waste.std(ddof=1) / np.sqrt(runs)
                shown.append(f"{waste.mean():.3f} ± {half:.3f}")
            lines.append(
                f"| {cost:g}, {mtbf:g} | {name} | {interval:g} | {closed / work - 1.0:.3f} "
                f"| {shown[0]} | {shown[1]} |"
            )
    return lines


def walltime_table(runs: int) -> list[str]:
    """Return stopping in time against being killed, on adaptive runs, as Markdown."""
    machine, cost = CYCLE_MACHINES["itanium2"], CheckpointCost(5.0, 0.0005)
    lines = [
        "| limit / whole run | strategy | completed | extra wall of these "
        "| kills in a completed run |",
        "| --- | --- | --- | --- | --- |",
    ]
    for share in (0.15, 0.3, 0.6):
        tallies: dict[str, list[tuple[bool, float, int]]] = {}
        for number in range(runs):
            deck = list(DECKS.values())[number % 3]
            run = EvolvingRun(deck, machine, 16, 91, number)
            ends, cells = run.cumulative(16), run.cells_per_processor(16)
            ahead = OnlineCyclePredictor(8).follow(cells, np.diff(ends, prepend=0.0))
            for name, margin, stop in (
                ("stop in time", 1.0, True),
                ("stop in time, margin 1.25", 1.25, True),
                ("killed, a checkpoint every tenth of the limit", 1.0, False),
            ):
                every = np.inf if stop else 0.1 * share * ends[-1]
                result = recover(
                    ends,
                    interval=every,
                    cost=cost.at(cells),
                    restart=5.0,
                    predicted=ahead,
                    margin=margin,
                    limit=share * ends[-1],
                    stop_in_time=stop,
                )
                row = (result.completed, result.wall / ends[-1] - 1.0, result.kills)
                tallies.setdefault(name, []).append(row)
        for name, rows in tallies.items():
            table = np.array(rows, dtype=float)
            finished = table[table[:, 0] > 0, 1:]
            extra, kills = finished.mean(axis=0) if len(finished) else (np.nan, np.nan)
            done = table[:, 0].mean()
            lines.append(f"| {share:g} | {name} | {done:.1%} | {extra:.1%} | {kills:.2f} |")
    return lines


def remaining_table(runs: int) -> list[str]:
    """Return errors and coverage of the remaining time, as Markdown."""
    lines = [
        "| deck | done | median error | online alone | offline alone | 80 % interval covers |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, deck in DECKS.items():
        offline = offline_model("itanium2", name)
        for share in (0.1, 0.25, 0.5, 0.9):
            rows = []
            for number in range(runs):
                run = EvolvingRun(deck, CYCLE_MACHINES["itanium2"], 16, 92, number)
                ends, cells = run.cumulative(16), run.cells_per_processor(16)
                done = int(share * run.cycles)
                model = RemainingTime(run.cycles, offline, 16)
                model.update(cells[:done], np.diff(ends, prepend=0.0)[:done])
                belief, true = model.predict(0.8), float(ends[-1] - ends[done - 1])
                wrong = [
                    abs(value / true - 1.0)
                    for value in (belief.seconds, belief.online, belief.offline)
                ]
                rows.append((*wrong, float(belief.low < true < belief.high)))
            table = np.array(rows)
            middle = np.median(table[:, :3], axis=0)
            lines.append(
                f"| {name} | {share:.0%} | {middle[0]:.1%} | {middle[1]:.1%} | {middle[2]:.1%} "
                f"| {table[:, 3].mean():.0%} |"
            )
    return lines


def main(runs: int) -> None:
    for title, lines in (
        ("Loss against the best interval, closed form", closed_form_table()),
        (f"Waste, {runs} runs", waste_table(runs)),
        (f"Walltime limits, {runs} runs", walltime_table(runs)),
        (f"Remaining time, {runs} runs, Itanium-2, 16 processors", remaining_table(runs)),
    ):
        print(f"\n{title}:")
        print("\n".join(lines))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
