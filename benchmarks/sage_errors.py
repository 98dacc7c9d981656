"""The error tables of the cycle-prediction paper, printed and on simulated runs."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from predictors.cycles.offline import OfflineCyclePredictor
from predictors.cycles.online import OnlineCyclePredictor
from sim.evolving.settings import exchange_of
from workloads.evolving.cycle_costs import CYCLE_MACHINES
from workloads.evolving.phases import DECKS, EvolvingRun

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
