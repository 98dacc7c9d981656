"""The experiments of Yagnik, Sanjay & Vadhiyar in simulation: runs and errors of prediction.

Three applications on 4, 8 and 32 processors, training and prediction ranges as in the
paper, under its load. ``python -m benchmarks.results rational`` makes the tables of the pages.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pandas as pd

from benchmarks.load_comparators import RatioPolynomial, SizePolynomial
from benchmarks.scalapack_model import FLOPS, WORDS, AnalyticalModel
from predictors.under_load.forecast import NwsMixture
from predictors.under_load.load_aware import LoadForm, available
from predictors.under_load.rational import RationalPolynomial
from sim.background.background import CPU_ROUNDS, NETWORK_ROUNDS, BackgroundLoad
from sim.background.load_beliefs import LoadSensors
from workloads.streams import Streams

LENGTHS = {"short": 120.0, "medium": 600.0, "long": 1800.0}
SHARES = {"init": 0.05, "computation": 0.70, "communication": 0.25}
NOISE = 0.02
PAUSE = 600.0


@dataclass(frozen=True)
class Case:
    """One experiment: an application, a machine, and the sizes to learn from and to predict.

    ``powers`` are the leading complexities (power, logs) of computation and
    communication; a tenth of each part goes to the next lower power. ``form`` is the
    figure of the load of several processors, by default the paper's.
    """

    name: str
    processors: int
    train: tuple[float, ...]
    predict: tuple[float, ...]
    complexities: tuple[object, object, object]
    powers: tuple[tuple[float, float], tuple[float, float]]
    machine: int
    per_node: int = 1
    sensors: str = "processor"
    constant: bool = False
    every: float = 120.0
    slower: float = 1.0
    paper: str = ""
    form: LoadForm = "min_avg_avail"


def _steps(first: float, last: float, step: float, repeats: int = 1) -> tuple[float, ...]:
    return tuple(np.tile(np.arange(first, last + step / 2, step), repeats).tolist())


CUBIC = (3, 3, 2)
EIGEN = ((3.0, 0.0), (2.0, 0.0))
CASES = (
    Case(
        "eigenvalue, 4 processors, small dynamics", 4, _steps(100, 8000, 100),
        _steps(9000, 12000, 100), CUBIC, EIGEN, machine=8, constant=True, paper="18",
    ),
    Case(
        "eigenvalue, 8 processors", 8, _steps(3000, 7000, 50), _steps(7500, 12000, 250),
        CUBIC, EIGEN, machine=8, paper="11.86",
    ),
    Case(
        "eigenvalue, 32 processors, per node", 32, _steps(5000, 12000, 100),
        _steps(12500, 20000, 500), CUBIC, EIGEN, machine=32, per_node=4, sensors="node",
        paper="15",
    ),
    Case(
        "conjugate gradient, 8 processors", 8, tuple(np.repeat([1400.0, 7000, 14000], 14)),
        tuple(np.repeat([75000.0, 150000], 5)), (1, 1, 1), ((1.0, 0.0), (1.0, 0.0)), machine=8,
        paper="7",
    ),
    Case(
        "FFT, 32 processors, per node", 32, _steps(400e6, 550e6, 25e6, 6),
        _steps(575e6, 700e6, 25e6, 3), ("n log n", "n log n", "n"), ((1.0, 1.0), (1.0, 0.0)),
        machine=32, per_node=4, sensors="node", paper="11",
    ),
)  # fmt: skip


def parts(case: Case, size: float, middle_seconds: float) -> dict[str, float]:
    """Return the idle-machine seconds of each part of a run."""
    middle = float(np.median(case.train))

    def grows(power: float, logs: float) -> float:
        def value(n: float) -> float:
            return n**power * np.log2(n) ** logs

        lead = value(size) / value(middle)
        lower = (
            1.0 if power <= 1 and not logs else (size / middle) ** (power if logs else power - 1)
        )
        return 0.9 * lead + 0.1 * lower

    computation, communication = case.powers
    relative = {
        "init": 0.5 + 0.5 * (size / middle),
        "computation": grows(*computation),
        "communication": grows(*communication),
    }
    return {name: middle_seconds * SHARES[name] * relative[name] for name in SHARES}


def background(case: Case, streams: Streams) -> BackgroundLoad:
    """Return the paper's load, its rounds so many times longer as the case says."""
    duration = (180.0 * case.slower, 480.0 * case.slower)
    return BackgroundLoad(
        case.machine,
        streams,
        cpu=replace(CPU_ROUNDS, duration=duration),
        network=replace(NETWORK_ROUNDS, duration=duration),
        processors_per_node=case.per_node,
    )


def play(case: Case, middle_seconds: float, seed: int) -> pd.DataFrame:
    """Run training and prediction sizes one after the other; return what was measured."""
    streams = Streams(seed)
    load = background(case, streams)
    sensors = LoadSensors(load, streams, case.every, case.sensors)  # type: ignore[arg-type]
    rng = streams("study")
    own = np.sort(rng.choice(case.machine, case.processors, replace=False))
    rows, time = [], 0.0
    sizes = [(float(s), True) for s in rng.permutation(case.train)]
    for size, training in sizes + [(s, False) for s in case.predict]:
        time += float(rng.uniform(0, PAUSE))
        factor = float(np.exp(NOISE * rng.standard_normal()))
        seconds = {k: v * factor for k, v in parts(case, size, middle_seconds).items()}
        busy = (seconds["computation"], seconds["communication"])
        if case.constant:
            samples = sensors.during(own, time, time)
            slowest, free = load.effective(own, time, time)
            end = time + seconds["init"] + busy[0] / slowest + busy[1] / free
        else:
            end, _ = load.advance(own, time + seconds["init"], np.inf, 1.0, *busy)
            samples = sensors.during(own, time, end)
        least, average = samples.lowest_link, samples.links
        measured = (
            available(samples.cpu, case.form),
            available(average[None] if case.form == "min_avg_avail" else least, case.form),
            len(samples.cpu),
        )
        rows.append((training, len(own), size, end - time, *measured))
        time = end
    names = ["training", "nprocs", "size", "runtime", "available_cpu", "available_bandwidth"]
    return pd.DataFrame(rows, columns=[*names, "samples"])


def forecasts(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the load believed before each predicted run, by each way of believing."""
    columns = ["available_cpu", "available_bandwidth"]
    mixture = NwsMixture(2).update(runs.loc[runs.training, columns].to_numpy())
    believed = []
    for at in runs.index[~runs.training]:
        believed.append((*mixture.forecast(), *runs.loc[at - 1, columns]))
        mixture.update(runs.loc[at, columns].to_numpy(float))
    names = ["forecast_cpu", "forecast_bandwidth", "last_cpu", "last_bandwidth"]
    return pd.DataFrame(believed, columns=names)


def models(case: Case) -> Iterator[tuple[str, str, object]]:
    """Yield every model with and without the sign constraint."""
    degree = case.complexities[1]
    yield "auto", "nnls", RationalPolynomial(None, "auto", "auto")
    yield "relative", "nnls", RationalPolynomial(*case.complexities, weights="relative")
    for method in ("nnls", "ols"):
        yield "rational", method, RationalPolynomial(*case.complexities, method=method)  # type: ignore[arg-type]
        yield "size alone", method, SizePolynomial(degree, method)  # type: ignore[arg-type]
        yield "type 1", method, RatioPolynomial(degree, 1, method)  # type: ignore[arg-type]
        yield "type 2", method, RatioPolynomial(degree, 2, method)  # type: ignore[arg-type]


def machine_times(case: Case, middle_seconds: float) -> tuple[float, float, float]:
    """Return the seconds of an operation, a word and a message on the idle machine.

    Those that an analyst knows who has the leading terms of the solver right, and
    nothing else: neither lower powers nor what is done once. Messages wait for nothing.
    """
    P, middle = case.processors, float(np.median(case.train))
    lead = {name: 0.9 * middle_seconds * SHARES[name] for name in SHARES}
    words = WORDS * np.log2(P) * middle**2 / np.sqrt(P)
    return lead["computation"] / (FLOPS * middle**3 / P), lead["communication"] / words, 0.0


def analytical_models(case: Case, middle_seconds: float) -> Iterator[tuple[str, str, object]]:
    """Yield ScaLAPACK's model with the times of the idle machine, and with fitted ones."""
    yield "analytical", "known", AnalyticalModel(machine_times(case, middle_seconds))
    yield "analytical", "fitted", AnalyticalModel()


def errors(
    case: Case, middle_seconds: float, seed: int, wanted: tuple[str, ...] = ()
) -> pd.DataFrame:
    """Return the relative error of every prediction, a row each, by the models wanted (all)."""
    runs = play(case, middle_seconds, seed)
    asked = runs[~runs.training].reset_index(drop=True)
    believed = forecasts(runs)
    loads = {
        "measured": (asked.available_cpu, asked.available_bandwidth),
        "forecast": (believed.forecast_cpu, believed.forecast_bandwidth),
        "last value": (believed.last_cpu, believed.last_bandwidth),
    }
    before = runs.available_cpu.shift()[~runs.training].to_numpy()
    change = np.abs(np.log(asked.available_cpu / before))
    tables = []
    everybody = chain(models(case), analytical_models(case, middle_seconds))
    for name, method, model in everybody:
        if wanted and name not in wanted:
            continue
        model.fit(runs[runs.training])  # type: ignore[attr-defined]
        for source, (cpu, bandwidth) in loads.items():
            seconds = model.predict(  # type: ignore[attr-defined]
                asked.nprocs, size=asked["size"], available_cpu=cpu, available_bandwidth=bandwidth
            )
            table = asked[["size", "runtime", "samples"]].assign(
                seed=seed, model=name, method=method, load=source,
                error=np.abs(seconds - asked.runtime) / asked.runtime,
                change=change,
                missed=np.abs(np.log(believed.forecast_cpu / asked.available_cpu)),
            )  # fmt: skip
            tables.append(table)
    return pd.concat(tables, ignore_index=True)


def by_seed(table: pd.DataFrame, **where: str) -> np.ndarray:
    """Return the mean error of each seed over the rows that match."""
    for name, value in where.items():
        table = table[table[name] == value]
    return table.groupby("seed").error.mean().to_numpy()
