"""Redraw the figures of the cycle-prediction paper on simulated runs, and its error tables.

Run from the top of the repository: python -m scripts.study_cycles [folder]
"""

import sys
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from predictors.checkpointing import young_interval
from predictors.cycle_plan import place_checkpoints
from predictors.cycles import OnlineCyclePredictor
from predictors.interference import MedianDetector, SequentialDetector
from predictors.offline_cycles import OfflineCyclePredictor
from sim.evolving import exchange_of
from workloads.cycle_costs import CYCLE_MACHINES
from workloads.evolving import DECKS, EvolvingRun

FloatArray = NDArray[np.float64]

KEY = 20060
COUNTS = (1, 2, 4, 8, 16)
PRINTED = {
    "alphaserver": np.array(
        [
            [5.6, 5.0, 3.4, 4.2, 3.6, 4.8],
            [5.5, 3.4, 4.9, 3.0, 4.3, 4.6],
            [5.4, 3.4, 4.6, 3.7, 6.4, 5.1],
            [4.7, 4.7, 3.9, 5.5, 5.65, 6.6],
            [4.5, 9.1, 3.9, 7.7, 5.4, 10.6],
        ]
    ),
    "itanium2": np.array(
        [
            [5.9, 11.0, 3.8, 5.9, 4.9, 5.0],
            [8.0, 9.6, 6.7, 7.2, 5.7, 5.9],
            [8.3, 5.3, 6.8, 3.5, 8.3, 6.2],
            [8.1, 4.7, 6.0, 3.3, 7.45, 7.6],
            [8.4, 8.6, 5.8, 6.0, 10.2, 8.4],
        ]
    ),
}
"""Tables 3 and 4 as printed, percent: a row a count, online and offline of each deck."""
COLOURS = {"measured": "0.45", "online": "tab:blue", "offline": "tab:orange"}


@cache
def offline_model(machine: str, deck: str, seed: int = 1) -> OfflineCyclePredictor:
    """Fit the offline model of a deck to a noisy single-node benchmark."""
    truth = CYCLE_MACHINES[machine]
    start = DECKS[deck].cells
    cells = np.geomspace(0.4 * start, 16.0 * start, 24)
    table = DECKS[deck].benchmark(truth, cells, np.random.default_rng(seed))
    model = OfflineCyclePredictor(
        communication=exchange_of(truth), processors_per_node=truth.processors_per_node
    )
    return model.fit(table)


def measured_run(
    machine: str, deck: str, nprocs: int, number: int
) -> tuple[FloatArray, FloatArray]:
    """Return cells per processor and measured seconds of each cycle."""
    run = EvolvingRun(DECKS[deck], CYCLE_MACHINES[machine], nprocs, KEY, number)
    return run.cells_per_processor(nprocs), np.diff(run.cumulative(nprocs), prepend=0.0)


def errors(machine: str, deck: str, nprocs: int, runs: int) -> tuple[float, float]:
    """Return the mean errors of the online and offline mode, percent."""
    model = offline_model(machine, deck)
    online, offline = [], []
    for number in range(runs):
        cells, seconds = measured_run(machine, deck, nprocs, number)
        ahead = OnlineCyclePredictor(window=None).follow(cells, seconds)
        online.append(np.nanmean(np.abs(ahead / seconds - 1.0)))
        offline.append(np.mean(np.abs(model.predict(nprocs, cells=cells) / seconds - 1.0)))
    return 100.0 * float(np.mean(online)), 100.0 * float(np.mean(offline))


def error_figures(machine: str, runs: int = 50) -> FloatArray:
    """Return Table 3 or 4 as simulated, percent, in the layout of `PRINTED`."""
    return np.array([[v for deck in DECKS for v in errors(machine, deck, n, runs)] for n in COUNTS])


def error_table(figures: FloatArray) -> list[str]:
    """Return the lines of Table 3 or 4 as Markdown."""
    lines = ["| PEs | " + " | ".join(f"{d} online | {d} offline" for d in DECKS) + " |"]
    lines.append("| --- " * (1 + 2 * len(DECKS)) + "|")
    for nprocs, row in zip(COUNTS, figures, strict=True):
        lines.append(f"| {nprocs} | " + " | ".join(f"{v:.1f}" for v in row) + " |")
    return lines


def agreement(machine: str, figures: FloatArray) -> str:
    """Say how figures go with those printed, cell by cell; the constants know timing_b alone."""
    printed, others = PRINTED[machine], [0, 1, 4, 5]

    def correlation(columns: list[int] | slice) -> float:
        pairs = np.corrcoef(figures[:, columns].ravel(), printed[:, columns].ravel())
        return float(pairs[0, 1])

    return (
        f"Correlation with the 30 printed: {correlation(slice(None)):.2f}; timing_a and timing_c "
        f"{correlation(others):.2f}; online {correlation(slice(0, None, 2)):.2f}, offline "
        f"{correlation(slice(1, None, 2)):.2f}. Mean distance "
        f"{np.abs(figures - printed).mean():.1f} points."
    )


def draw_measured(machine: str, folder: Path) -> None:
    """Measured, online and offline times against the cycle (Figures 2 and 3)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 9.0), layout="constrained")
    axes = figure.subplots(3, 2, sharex=True)
    for row, deck in zip(axes, DECKS, strict=True):
        model = offline_model(machine, deck)
        for axis, nprocs in zip(row, (1, 16), strict=True):
            cells, seconds = measured_run(machine, deck, nprocs, list(DECKS).index(deck))
            online = OnlineCyclePredictor().follow(cells, seconds)
            offline = model.predict(nprocs, cells=cells)
            axis.plot(seconds, ".", color=COLOURS["measured"], markersize=3, label="measured")
            axis.plot(online, color=COLOURS["online"], linewidth=1.0, label="online, all cycles")
            axis.plot(offline, color=COLOURS["offline"], linewidth=1.0, label="offline")
            axis.set_title(f"{deck}, {nprocs} processor{'s' * (nprocs > 1)}", fontsize=10)
            axis.set_ylim(bottom=0)
        row[0].set_ylabel("seconds per cycle")
    for axis in axes[-1]:
        axis.set_xlabel("cycle")
    axes[0, 0].legend(fontsize=8)
    figure.savefig(folder / f"cycles_{machine}.png", dpi=110)


def draw_checkpoints(folder: Path, mtbf: float = 600.0, cost: float = 10.0) -> None:
    """Accumulated time and Young's checkpoints in whole cycles (Figure 4)."""
    from matplotlib.figure import Figure

    interval = float(young_interval(cost, mtbf))
    deck, machine = DECKS["timing_a"], CYCLE_MACHINES["itanium2"]
    growth = 1.0 + (deck.growth - 1.0) / deck.cycles * np.arange(deck.cycles)
    steady = np.cumsum(deck.seconds(machine, deck.cells * growth, 16))
    cells, seconds = measured_run("itanium2", "timing_a", 16, 0)
    noisy, ahead = np.cumsum(seconds), OnlineCyclePredictor(window=8).follow(cells, seconds)
    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    cases = (("mean growth, no noise", steady, None), ("one run, online window 8", noisy, ahead))
    for axis, (title, ends, predicted) in zip(axes, cases, strict=True):
        places = place_checkpoints(ends, interval, predicted)
        axis.plot(np.arange(1, ends.size + 1), ends, color="tab:blue", linewidth=1.2)
        axis.vlines(places, 0, ends[places - 1], color="0.6", linewidth=0.7)
        axis.plot(places, ends[places - 1], "o", color="tab:red", markersize=3)
        first = ", ".join(str(place) for place in places[:4])
        axis.set_title(f"{title}: checkpoints after {first}, …", fontsize=9)
        axis.set_xlabel("cycle")
        print(f"Figure 4, {title}: interval {interval:.3f} s, after {places.tolist()}")
    axes[0].set_ylabel("accumulated seconds")
    figure.savefig(folder / "checkpoints.png", dpi=110)


def draw_interference(folder: Path) -> None:
    """Large window, intermittent interference, small window (Figure 5), and both detectors."""
    from matplotlib.figure import Figure

    cells, seconds = measured_run("itanium2", "timing_a", 16, 1)
    offline = offline_model("itanium2", "timing_a").predict(16, cells=cells)
    cycle = np.arange(seconds.size)
    steady = np.where(cycle >= 50, 2.0, 1.0)
    phased = np.where((cycle >= 50) & ((cycle - 50) // 20 % 2 == 0), 2.0, 1.0)
    ended = np.where((cycle >= 50) & (cycle < 120), 2.0, 1.0)
    cases = (
        ("(a) from cycle 50 on, all cycles", steady, None),
        ("(b) intermittent, all cycles", phased, None),
        ("(c) cycles 50 to 119, last cycle alone", ended, 1),
    )
    figure = Figure(figsize=(11.0, 3.8), layout="constrained")
    for axis, (title, factor, window) in zip(
        figure.subplots(1, 3, sharey=True), cases, strict=True
    ):
        slowed = seconds * factor
        online = OnlineCyclePredictor(window).follow(cells, slowed)
        axis.plot(slowed, ".", color=COLOURS["measured"], markersize=3, label="measured")
        axis.plot(online, color=COLOURS["online"], linewidth=1.0, label="online")
        axis.plot(offline, color=COLOURS["offline"], linewidth=1.2, label="offline")
        _draw_alarms(axis, slowed / offline)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("cycle")
    figure.axes[0].set_ylabel("seconds per cycle")
    figure.axes[0].legend(fontsize=8, loc="upper left")
    figure.savefig(folder / "interference.png", dpi=110)


def _draw_alarms(axis, ratios: FloatArray) -> None:
    """Mark along the foot where each detector holds an alarm."""
    detectors = (("sequential", SequentialDetector(), "tab:red"), ("median", MedianDetector(), "k"))
    for height, (name, detector, colour) in zip((0.02, 0.05), detectors, strict=True):
        raised = np.flatnonzero(detector.update(ratios))
        axis.plot(
            raised,
            np.full(raised.size, height),
            "s",
            color=colour,
            markersize=2,
            transform=axis.get_xaxis_transform(),
            label=f"alarm, {name}",
        )


def main(folder: Path, runs: int = 50) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for machine in CYCLE_MACHINES:
        draw_measured(machine, folder)
        print(f"\nMean error in percent, {machine}:")
        figures = error_figures(machine, runs)
        print("\n".join(error_table(figures)))
        print(agreement(machine, figures))
    draw_checkpoints(folder)
    draw_interference(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/images"))
