"""The experiments of Yagnik, Sanjay & Vadhiyar in simulation, with intervals.

Three applications on 4, 8 and 32 processors, training and prediction ranges as in
the paper, run lengths of 2, 10 and 30 minutes at the middle training size on an
idle machine, 20 seeds. Prints the tables of docs/rational.md.

    python -m scripts.study_rational --seeds 20
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pandas as pd

from predictors.analytical import FLOPS, WORDS, AnalyticalModel
from predictors.forecast import NwsMixture
from predictors.load_comparators import RatioPolynomial, SizePolynomial
from predictors.load_observations import LoadForm, available
from predictors.rational import RationalPolynomial
from sim.load import CPU_ROUNDS, NETWORK_ROUNDS, BackgroundLoad
from sim.load_sensors import LoadSensors
from sim.statistics.intervals import t_interval
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
            slowest, free = load.cpu_at(time, own).min(), load.bandwidth_at(own, time)
            end = time + seconds["init"] + busy[0] / slowest + busy[1] / free
        else:
            end = load.completion(own, time + seconds["init"], *busy)
            samples = sensors.during(own, time, end)
        measured = (
            available(samples.cpu, case.form),
            available(samples.bandwidth, case.form),
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


def interval(values: np.ndarray) -> str:
    """Return mean ± half width of the 95 % interval, in percent."""
    found = t_interval(values)
    return f"{100 * found.mean:.1f} ± {100 * found.half:.1f}"


def by_seed(table: pd.DataFrame, **where: str) -> np.ndarray:
    """Return the mean error of each seed over the rows that match."""
    for name, value in where.items():
        table = table[table[name] == value]
    return table.groupby("seed").error.mean().to_numpy()


def report_case(case: Case, table: pd.DataFrame, length: str) -> list[str]:
    """Return the lines of the main table and of the paired differences."""
    columns = [
        *(("rational", "nnls", load) for load in ("measured", "forecast", "last value")),
        *((name, "nnls", "forecast") for name in ("relative", "auto")),
        ("rational", "ols", "forecast"),
    ]
    cells = [interval(by_seed(table, model=m, method=k, load=load)) for m, k, load in columns]
    lines = [f"| {case.name} | {length} | {' | '.join(cells)} | {case.paper} |"]
    for load in ("measured", "forecast"):
        for method in ("nnls", "ols"):
            own = by_seed(table, model="rational", method=method, load=load)
            others = [
                interval(by_seed(table, model=name, method=method, load=load) - own)
                for name in ("size alone", "type 1", "type 2")
            ]
            lines.append(f"| {case.name} | {length} | {load} | {method} | {' | '.join(others)} |")
    return lines


def constrained(case: Case, middle_seconds: float, seeds: range) -> pd.DataFrame:
    """Return the errors of the constrained rational polynomial over all seeds."""
    table = [errors(case, middle_seconds, seed, ("rational",)) for seed in seeds]
    return pd.concat(table, ignore_index=True).query("method == 'nnls'")


def per_node(seeds: range) -> Iterator[str]:
    """Compare sensors a node with sensors a processor, on the same runs, by measured load."""
    for width in (4, 8, 32):
        case = replace(CASES[2], processors=width)
        for middle in (5.0, 15.0, 30.0, 120.0, 600.0):
            runs = pd.concat([play(case, middle, seed).query("training") for seed in seeds[:5]])
            name = f"{width} of 32 | {runs.runtime.median():.0f} s"
            yield f"| {name} | {_node_cells(case, middle, seeds)} |"
    still = replace(CASES[2], constant=True)
    yield f"| 32 of 32 | constant load | {_node_cells(still, LENGTHS['short'], seeds)} |"


def _node_cells(case: Case, middle: float, seeds: range) -> str:
    """Return the errors with each kind of sensor, and their difference."""
    node, each = (
        by_seed(constrained(replace(case, sensors=sensors), middle, seeds), load="measured")
        for sensors in ("node", "processor")
    )
    return f"{interval(node)} | {interval(each)} | {interval(node - each)}"


def short_training(seeds: range) -> Iterator[str]:
    """Compare samples every 120 s, every 10 s, and constant load, for shorter and longer runs."""
    for middle in (15.0, 30.0, 60.0, 120.0, 600.0, 1800.0):
        rare, often = CASES[3], replace(CASES[3], every=10.0)
        runs = pd.concat([play(rare, middle, seed).query("training") for seed in seeds])
        still = replace(rare, constant=True)
        a, b, c = (
            by_seed(constrained(x, middle, seeds), load="measured") for x in (rare, often, still)
        )
        share = f"{runs.runtime.median():.0f} s | {100 * (runs.samples == 1).mean():.0f} %"
        cells = " | ".join(map(interval, (a, b, a - b, c)))
        yield f"| {middle:g} s | {share} | {cells} |"


def drastic_changes(seeds: range) -> Iterator[str]:
    """Compare the quarter of largest changes of load with the rest: forecasts, and their cost."""
    for case in (CASES[1], CASES[4]):
        for length, middle in LENGTHS.items():
            table = constrained(case, middle, seeds)
            limits = table.groupby("seed").change.transform("quantile", 0.75)
            wild = table.change > limits
            excess = [
                by_seed(part, load="forecast") - by_seed(part, load="measured")
                for part in (table[~wild], table[wild])
            ]
            missed = [
                part.query("load == 'forecast'").groupby("seed").missed.mean().to_numpy()
                for part in (table[~wild], table[wild])
            ]
            cells = [interval(x) for x in (*missed, *excess, excess[1] - excess[0])]
            yield f"| {case.name} | {length} | {' | '.join(cells)} |"


def features(seeds: range) -> Iterator[str]:
    """Compare size alone, the least average, and the effective load, measured and forecast."""
    wanted = ("rational", "size alone")
    for case in CASES[1:]:
        for length, middle in LENGTHS.items():
            cells = []
            for form in ("min_avg_avail", "effective"):
                own = replace(case, form=form)
                table = pd.concat([errors(own, middle, seed, wanted) for seed in seeds])
                table = table[table.method == "nnls"]
                if not cells:
                    cells.append(by_seed(table, model="size alone", load="measured"))
                cells += [
                    by_seed(table, model="rational", load=x) for x in ("measured", "forecast")
                ]
            gain = interval(cells[0] - cells[3]), interval(cells[0] - cells[4])
            figures = " | ".join((*map(interval, cells), *gain))
            yield f"| {case.name} | {length} | {figures} |"


def analytical(seeds: range) -> Iterator[str]:
    """Compare ScaLAPACK's analytical model with the rational polynomial, by measured load."""
    for case in CASES[:3]:
        for length, middle in LENGTHS.items():
            cells = []
            for form in ("min_avg_avail", "effective"):
                own = replace(case, form=form)
                asked = ("rational", "analytical")
                table = pd.concat([errors(own, middle, seed, asked) for seed in seeds])
                table = table[table.load == "measured"]
                cells += [by_seed(table, method=x) for x in ("nnls", "known", "fitted")]
            yield f"| {case.name} | {length} | {' | '.join(map(interval, cells))} |"
            if case.constant:
                break


def nodes_by_feature(seeds: range) -> Iterator[str]:
    """Compare sensors a node with sensors a processor, by the effective load measured."""
    for width in (4, 8, 32):
        case = replace(CASES[2], processors=width, form="effective")
        for length, middle in LENGTHS.items():
            yield f"| {width} of 32 | {length} | {_node_cells(case, middle, seeds)} |"


def counts(seeds: range) -> Iterator[str]:
    """Learn on 2 to 16 processors, predict 32: the growth of communication, and the errors."""
    truths = {"1/n": -1.0, "1": 0.0, "log2 n": None, "n": 1.0}
    forms: tuple[LoadForm, ...] = ("min_avg_avail", "effective")
    for name, power in truths.items():
        cells = []
        for form in forms:
            seen = [_count_seed(power, seed, form) for seed in seeds]
            found = 100 * np.mean([growth == name for growth, _ in seen])
            cells.append(f"{found:.0f} % | {interval(np.array([error for _, error in seen]))}")
        yield f"| {name} | {' | '.join(cells)} |"


def _count_seed(power: float | None, seed: int, form: LoadForm) -> tuple[str | None, float]:
    """Return the growth that was found in the runs of one seed, and the mean error."""
    streams = Streams(seed)
    load, rng = BackgroundLoad(32, streams), streams("study")
    sensors, rows, time = LoadSensors(load, streams), [], 0.0
    grid = [(n, s) for n in (2, 4, 8, 16) for s in np.arange(3000, 7001, 200.0)]
    grid += [(32, s) for s in np.arange(7500, 12001, 500.0)]
    for nprocs, size in grid:
        seconds = parts(CASES[1], size, 600.0)
        growth = np.log2(nprocs) / 3 if power is None else (nprocs / 8) ** power
        busy = (seconds["computation"] * 8 / nprocs, seconds["communication"] * growth)
        own = np.sort(rng.choice(32, nprocs, replace=False))
        end = load.completion(own, time + seconds["init"], *busy)
        seen = sensors.during(own, time, end)
        measured = available(seen.cpu, form), available(seen.bandwidth, form)
        rows.append((nprocs, size, end - time, *measured))
        time = end + rng.uniform(0, PAUSE)
    names = ["nprocs", "size", "runtime", "available_cpu", "available_bandwidth"]
    runs = pd.DataFrame(rows, columns=names)
    model = RationalPolynomial(3, 3, 2).fit(runs[runs.nprocs < 32])
    asked = runs[runs.nprocs == 32]
    inputs = {name: asked[name] for name in ("size", *names[3:])}
    error = np.abs(model.predict(asked.nprocs, **inputs) - asked.runtime) / asked.runtime
    return model.form_.growth, float(error.mean())


def experiments(seeds: range) -> Iterator[str]:
    """Play every case at every run length."""
    for case in CASES:
        for length, seconds in LENGTHS.items():
            table = pd.concat([errors(case, seconds, seed) for seed in seeds], ignore_index=True)
            yield from report_case(case, table, length)
            if case.constant:
                break


STUDIES = (
    experiments, features, analytical, per_node, nodes_by_feature, short_training,
    drastic_changes, counts,
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    names = [study.__name__ for study in STUDIES]
    parser.add_argument("--only", nargs="*", default=names, choices=names)
    asked = parser.parse_args()
    for study in STUDIES:
        if study.__name__ in asked.only:
            print(study.__doc__)
            for line in study(range(1, asked.seeds + 1)):
                print(line, flush=True)


if __name__ == "__main__":
    main()
