"""What load-aware allocation gains on a shared machine, over load levels and beliefs of load.

Prints how the response time of each load-aware policy compares with that of its
load-blind twin on the same jobs under the same load: the change of the mean, and
that of a typical job (geometric mean over jobs), in percent, with 95 % intervals
over seeds. The twin knows the long-run average of the load and nothing more. Beside
it stand the errors of the runtimes predicted at the starts, by what is known of load:
the effective load or the paper's least average, true, forecast or as it was last; and
times on an idle machine that are learned, or known (oracle). ``--table`` prints other
tables of the same runs: the errors by processor count and length (``errors``), or of
jobs believed at their request and of all others (``requests``), and what it changes to
predict running jobs again (``renewal``).

    python -m scripts.study_shared --seeds 10
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scripts.composing import composed
from sim.run import play, set_scene
from sim.statistics.intervals import t_interval

FloatArray = NDArray[np.float64]

ROUNDS = {"light": 4, "medium": 16, "heavy": 48}
"""Most of 64 processors that the paper's rounds of 3 to 8 minutes load at once."""
BURSTS = {"light": 0.05, "medium": 0.15, "heavy": 0.3}
"""Share of the time for which bursts of hours load each processor."""
BURST = 5561.0
"""Mean seconds of a burst: bounded Pareto, 1,800 to 43,200 s, exponent 1.1."""
TWINS = {
    "easy_fastest": "easy",
    "easy_patient": "easy",
    "sa_easy": "sa_easy_usual",
    "load_aware": "sa_easy_usual",
}
RENEWED = ("easy_fastest", "conservative", "sa_easy", "load_aware")
"""Policies for which running jobs are predicted again."""
GIVEN = ["predictor.calibration=3", "predictor.charge=false"]
"""Runs before the start are given here, that predictors may differ in what they know of load."""
KNOWN = {
    "effective, oracle": ["cluster.belief=oracle", *GIVEN],
    "effective, forecast": ["cluster.belief=forecast", *GIVEN],
    "effective, last": ["cluster.belief=last", *GIVEN],
    "least average, forecast": [
        "cluster.belief=forecast", "predictor.load=min_avg_avail", *GIVEN,
    ],
    "effective, forecast; true times": ["cluster.belief=forecast", "predictor=oracle"],
}  # fmt: skip
"""What is known of load, and of the jobs."""
COUNTS = (0, 1, 4, 16, 64)
"""Borders of the processor counts of the table of errors."""
HOURS = (0.0, 0.1, 1.0, 4.0, np.inf)
"""Borders of the hours."""


def load(kind: str, level: str) -> list[str]:
    """Return the overrides that make a kind of load of some level."""
    if kind == "rounds":
        most = ROUNDS[level]
        return [f"cluster.cpu.at_once=[1,{most}]", f"cluster.network.at_once=[0,{most // 8 + 1}]"]
    share = BURSTS[level]
    pause = BURST * (1.0 - share) / share
    return [
        "cluster/cpu=bursty",
        "cluster.cpu.loaded=[1800,43200]",
        f"cluster.cpu.free=[{0.5 * pause:.0f},{1.5 * pause:.0f}]",
        f"cluster.network.at_once=[0,{ROUNDS[level] // 8 + 1}]",
    ]


def played(policy: str, known: Sequence[str], scene: Sequence[str]) -> pd.DataFrame:
    """Return the jobs of one run, a row each."""
    config = composed("experiment=shared_load", f"policy={policy}", *known, *scene)
    return play(config, config, set_scene(config, 0)).outcome.tables.jobs


def errors(jobs: pd.DataFrame) -> FloatArray:
    """Return by how much the runtime predicted at each start was off, as a share."""
    done = jobs[jobs["status"] == "completed"]
    return np.abs(done["believed_runtime"] / done["runtime"] - 1.0).to_numpy(float)


def missed(runs: Sequence[pd.DataFrame]) -> tuple[str, str]:
    """Return the mean and the median error over seeds, percent."""
    each = [100 * errors(jobs) for jobs in runs]
    return (
        interval(np.array([error.mean() for error in each])),
        interval(np.array([np.median(error) for error in each])),
    )


def interval(values: FloatArray) -> str:
    """Return mean and half width of the 95 % interval; the value alone of a single seed."""
    if len(values) == 1:
        return f"{values[0]:.1f}"
    found = t_interval(values)
    return f"{found.mean:.1f} ± {found.half:.1f}"


def change(ratios: FloatArray) -> str:
    """Return the geometric mean of ratios as a change in percent, with its 95 % interval."""
    logs = t_interval(np.log(ratios))
    mean = np.exp(logs.mean)
    if len(ratios) == 1:
        return f"{100 * (mean - 1):.1f}"
    return f"{100 * (mean - 1):.1f} ± {100 * mean * logs.half:.1f}"


def changes(aware: Sequence[FloatArray], blind: Sequence[FloatArray]) -> tuple[str, str]:
    """Return the change of the mean and that of a typical job, percent, over seeds."""
    pairs = list(zip(aware, blind, strict=True))
    means = np.array([own.mean() / twin.mean() for own, twin in pairs])
    typical = np.array([np.exp(np.log(own / twin).mean()) for own, twin in pairs])
    return change(means), change(typical)


def responses(runs: Sequence[pd.DataFrame]) -> list[FloatArray]:
    """Return the response times of every run, seconds."""
    return [jobs["response_time"].to_numpy(float) for jobs in runs]


def rows(
    kind: str, level: str, seeds: int, policies: Sequence[str], more: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Yield the table of one kind and level of load, a row a policy and what is known."""
    scenes = [[*load(kind, level), *more, f"seed={seed}"] for seed in range(1, seeds + 1)]
    blind = {
        twin: [played(twin, ["cluster.belief=mean", *GIVEN], scene) for scene in scenes]
        for twin in dict.fromkeys(TWINS[policy] for policy in policies)
    }
    for policy in policies:
        twins = responses(blind[TWINS[policy]])
        minutes = interval(np.array([each.mean() / 60 for each in twins]))
        for name, known in KNOWN.items():
            aware = [played(policy, known, scene) for scene in scenes]
            yield (
                kind,
                level,
                policy,
                name,
                minutes,
                *changes(responses(aware), twins),
                *missed(aware),
            )


def by_count_and_length(
    kind: str, level: str, seeds: int, policies: Sequence[str], more: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Yield median errors by processor count and hours, a row a policy and what is known."""
    scenes = [[*load(kind, level), *more, f"seed={seed}"] for seed in range(1, seeds + 1)]
    for policy, (name, known) in product(policies, KNOWN.items()):
        jobs = pd.concat([played(policy, known, scene) for scene in scenes])
        jobs = jobs[jobs["status"] == "completed"].assign(error=errors(jobs))
        counts = pd.cut(jobs["allocated_processors"], [*COUNTS]).cat.codes
        hours = pd.cut(jobs["runtime"] / 3600.0, [*HOURS]).cat.codes
        for count in range(len(COUNTS) - 1):
            picked = [
                jobs["error"][(counts == count) & (hours == k)] for k in range(len(HOURS) - 1)
            ]
            cells = [f"{100 * each.median():.1f} ({len(each)})" for each in picked]
            label = f"{COUNTS[count] + 1} to {COUNTS[count + 1]}"
            yield kind, level, policy, name, label, *cells


def by_request(
    kind: str, level: str, seeds: int, policies: Sequence[str], more: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Yield the errors of jobs believed at their request, and of those that a curve decided."""
    scenes = [[*load(kind, level), *more, f"seed={seed}"] for seed in range(1, seeds + 1)]
    for policy, (name, known) in product(policies, KNOWN.items()):
        jobs = pd.concat([played(policy, known, scene) for scene in scenes])
        jobs = jobs[jobs["status"] == "completed"]
        error = 100 * errors(jobs)
        request = jobs["believed_runtime"].eq(jobs["requested_time"]).to_numpy()
        at_request, others = error[request], error[~request]
        first = f"{at_request.mean():.0f}" if at_request.size else "–"
        rest = [f"{of(others):.1f}" if others.size else "–" for of in (np.mean, np.median, np.max)]
        share = f"{at_request.size} of {error.size}"
        yield kind, level, policy, name, f"{error.mean():.1f}", share, first, *rest


def by_renewal(
    kind: str, level: str, seeds: int, policies: Sequence[str], more: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Yield what it changes to predict running jobs again every ten minutes, paired by seed."""
    scenes = [[*load(kind, level), *more, f"seed={seed}"] for seed in range(1, seeds + 1)]
    for policy in policies:
        once, again = (
            responses([played(policy, [f"cluster.renew={every}", *GIVEN], x) for x in scenes])
            for every in ("null", "600")
        )
        minutes = interval(np.array([each.mean() / 60 for each in once]))
        pairs = zip(once, again, strict=True)
        moved = 100 * np.mean([np.mean(before != after) for before, after in pairs])
        yield kind, level, policy, minutes, *changes(again, once), f"{moved:.0f}"


Table = Callable[[str, str, int, Sequence[str], Sequence[str]], Iterator[tuple[str, ...]]]
TABLES: dict[str, tuple[Table, str]] = {
    "gains": (
        rows,
        "policy | known | twin, minutes | mean, % | typical job, % | error, % | median error, %",
    ),
    "errors": (
        by_count_and_length,
        "policy | known | processors | to 6 min | to 1 h | to 4 h | longer",
    ),
    "requests": (
        by_request,
        "policy | known | error, % | at their request | error, % | others' error, %"
        " | median, % | largest, %",
    ),
    "renewal": (
        by_renewal,
        "policy | told once, minutes | mean, % | typical job, % | jobs changed, %",
    ),
}
"""What `--table` may print: how its rows are made, and their heads."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    kinds = ["rounds", "bursts"]
    parser.add_argument("--kinds", nargs="+", default=kinds, choices=kinds)
    parser.add_argument("--levels", nargs="+", default=list(ROUNDS), choices=list(ROUNDS))
    parser.add_argument("--policies", nargs="+", choices=sorted({*TWINS, *RENEWED}))
    parser.add_argument("--table", default="gains", choices=list(TABLES))
    parser.add_argument("overrides", nargs="*", help="further overrides, such as workload.jobs=100")
    arguments = parser.parse_args()
    usual = RENEWED if arguments.table == "renewal" else tuple(TWINS)
    policies = arguments.policies or usual
    if arguments.table == "gains" and not set(policies) <= set(TWINS):
        parser.error(f"--policies of gains must have a load-blind twin: {', '.join(TWINS)}")
    table, head = TABLES[arguments.table]
    head = f"load | level | {head}"
    print(f"| {head} |\n|{' --- |' * (head.count('|') + 1)}")
    for kind, level in product(arguments.kinds, arguments.levels):
        for row in table(kind, level, arguments.seeds, policies, arguments.overrides):
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
