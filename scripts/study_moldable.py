"""Check published claims on moldable policies, each from its experiment preset.

Usage: python -m scripts.study_moldable [NAME ...] [--replications 10] [--jobs 2000]
                                         [--reference POLICY] [--menu powers_of_two]

All policies of a table replay the same jobs (common random numbers); a
difference is the mean over replications of log ratios of mean response times,
with its 95 % t interval, shown as a relative change. Writes Markdown.
"""

import argparse
from collections.abc import Callable, Sequence

import numpy as np

from predictors.user_estimate import UserEstimate
from scripts.composing import axes, composed, settings
from sim.engine import simulate
from sim.metrics import summarise
from sim.outcome import Outcome
from sim.policies.advice import MENUS
from sim.policies.allocation.queue_time_kernels import predicted_end
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.none import StrictScheduler
from sim.policies.order import FirstComeFirstServed
from sim.run import Scene, play, set_scene
from sim.statistics.intervals import t_interval

COLUMNS = {
    "workload.load": "load",
    "moldability.parallelism_min": "A from",
    "moldability.serial_min": "serial part",
}
"""What a preset sweeps besides policies, and how its columns are headed."""


def column_key(name: str) -> str:
    """Return what a preset sweeps besides policies."""
    return next(key for key in axes(name) if key in COLUMNS)


def summaries(name: str, more: list[str], replications: int) -> dict[tuple[str, str], list]:
    """Return the summaries of all replications by policy and by value of the other axis."""
    found: dict[tuple[str, str], list] = {}
    scenes: dict[tuple, Scene] = {}
    other = column_key(name)
    for setting in settings(name, more):
        config = composed(
            f"experiment={name}", *more, *(f"{key}={value}" for key, value in setting.items())
        )
        rule, value = setting["policy"], setting[other]
        for k in range(replications):
            scene = scenes.get((value, k))
            if scene is None:
                scene = scenes[value, k] = set_scene(config, k)
            found.setdefault((rule, value), []).append(
                summarise(play(config, config, scene).outcome)
            )
    return found


def change(ratio: np.ndarray) -> str:
    """Return a relative change with its interval, from paired ratios."""
    found = t_interval(np.log(ratio)).transformed(lambda v: 100 * np.expm1(v))
    return f"{found.mean:+.0f} % [{found.low:+.0f}, {found.high:+.0f}]"


def level(values: np.ndarray) -> str:
    """Return a mean with its interval."""
    found = t_interval(values)
    return f"{found.mean:.3g} [{found.low:.3g}, {found.high:.3g}]"


def gap(ratio: np.ndarray) -> str:
    """Return a geometric mean of ratios with its interval."""
    found = t_interval(np.log(ratio)).transformed(np.exp)
    return f"{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]"


def column(runs: list, key: str) -> np.ndarray:
    return np.array([run[key] for run in runs], float)


def heading(corner: str, found: dict[tuple[str, str], list], label: str) -> list[str]:
    """Return the first two lines of a table with a column for each value of an axis."""
    columns = [f"{label} {value}" for value in dict.fromkeys(value for _, value in found)]
    return [f"| {corner} | " + " | ".join(columns) + " |", "| --- " * (len(columns) + 1) + "|"]


def compare(found: dict[tuple[str, str], list], reference: str, label: str = "load") -> list[str]:
    """Return two tables: mean response and its changes, and the distance from the bound."""
    values = list(dict.fromkeys(value for _, value in found))
    rules = list(dict.fromkeys(rule for rule, _ in found))
    changes, gaps = heading("rule", found, label), heading("over the lower bound", found, label)
    for rule in rules:
        cells = []
        for value in values:
            own = column(found[rule, value], "mean_response_time")
            base = column(found[reference, value], "mean_response_time")
            cells.append(level(own) + " s" if rule == reference else change(own / base))
        changes.append(f"| {rule} | " + " | ".join(cells) + " |")
        cells = [
            gap(
                column(found[rule, value], "mean_response_time")
                / column(found[rule, value], "bound_mean_response_time")
            )
            for value in values
        ]
        gaps.append(f"| {rule} | " + " | ".join(cells) + " |")
    return [*changes, "", *gaps]


class Herd:
    """What becomes of mean response, of counts, and of those who adopt first."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], list] = {}
        self.asked: dict[tuple[str, str], list[float]] = {}
        self.first: dict[tuple[str, str], list[float]] = {}

    def note(self, at: tuple[str, str], outcome: Outcome, luck: np.ndarray) -> None:
        """Take in a run at a share of adopters and a load."""
        records = outcome.records
        response = records.end_time - records.submit_time
        self.found.setdefault(at, []).append(summarise(outcome))
        self.asked.setdefault(at, []).append(float(records.allocated.mean()))
        self.first.setdefault(at, []).append(float(response[luck < 0.1].mean()))

    def tables(self) -> list[str]:
        """Return four tables by share of adopters and load."""
        lines = [*compare(self.found, "0"), "", *heading("mean processors", self.found, "load")]
        lines += self._rows(lambda at: level(np.array(self.asked[at])))
        lines += ["", *heading("the tenth that adopts first", self.found, "load")]
        return lines + self._rows(self._against_few)

    def _against_few(self, at: tuple[str, str]) -> str:
        return change(np.array(self.first[at]) / np.array(self.first["0.1", at[1]]))

    def _rows(self, cell: Callable[[tuple[str, str]], str]) -> list[str]:
        loads = list(dict.fromkeys(load for _, load in self.found))
        shares = list(dict.fromkeys(share for share, _ in self.found))
        cells = {share: " | ".join(cell((share, load)) for load in loads) for share in shares}
        return [f"| {share} | {cells[share]} |" for share in shares]


def study_herd(more: list[str], replications: int) -> list[str]:
    """Return the tables of the herd for each range of average parallelism."""
    herds: dict[str, Herd] = {}
    scenes: dict[tuple, Scene] = {}
    for setting in settings("herd", more):
        config = composed("experiment=herd", *more, *(f"{k}={v}" for k, v in setting.items()))
        least = setting["moldability.parallelism_min"]
        at = (setting["policy.allocation.adopters"], setting["workload.load"])
        for k in range(replications):
            key = (least, at[1], k)
            if key not in scenes:
                scenes[key] = set_scene(config, k)
            scene = scenes[key]
            luck = scene.streams("adopters").random(len(scene.trace.jobs))
            herds.setdefault(least, Herd()).note(at, play(config, config, scene).outcome, luck)
    return [
        line
        for least, herd in herds.items()
        for line in (f"A from {least}:", "", *herd.tables(), "")
    ]


class WatchedHeads(StrictScheduler):
    """First come first served; notes how long each blocked head is predicted to wait."""

    longest = 163_000.0

    def __init__(self, view) -> None:
        super().__init__(view, FirstComeFirstServed(), Request())
        self.noted: dict[int, tuple[float, float, float]] = {}

    def look(self):
        """Start heads, and note the prediction for the next one."""
        decisions = super().look()
        view, queue = self.view, self.queue
        if queue.waiting:
            place = queue.head()
            job = queue.job.item(place)
            if job not in self.noted:
                started = [(d.processors, 0.0) for d in decisions]
                runs = [(r.processors, view.now - r.start) for r in view.running.values()]
                held, age = np.array([*runs, *started], float).T.copy()
                free = view.free - sum(n for n, _ in started)
                needed = queue.processors.item(place) - free
                self.noted[job] = (view.now, *self._predicted(held, age, needed))
        return decisions

    def _predicted(self, held, age, needed: int) -> tuple[float, float]:
        """Return the waits by predictors A and B, seconds; A is B where no job alone would do."""
        age = np.maximum(age, 1.0)
        runs = (held.astype(np.int64), age, np.log(self.longest / age), needed, self.longest)
        _, mean = predicted_end(*runs, False, 0.0, 0.0, np.inf)
        if held.max() < needed:
            return mean, mean
        return predicted_end(*runs, True, 0.0, 0.0, np.inf)[1], mean


class Watched:
    """A policy that keeps its scheduler."""

    def begin(self, view):
        """Begin a run."""
        self.scheduler = WatchedHeads(view)
        return self.scheduler


def study_queue_times(more: list[str], replications: int) -> list[str]:
    """Return a table of correlations of predicted with actual waits at the head of the queue."""
    titles = ("jobs", "load", *("predictor A (median)", "predictor B (mean)"))
    titles += ("A, logarithms", "B, logarithms")
    lines = ["| " + " | ".join(titles) + " |", "| --- " * len(titles) + "|"]
    for setting in settings("queue_time_prediction", more):
        chosen = [f"{key}={value}" for key, value in setting.items()]
        config = composed("experiment=queue_time_prediction", *more, *chosen)
        rows = []
        for k in range(replications):
            scene, policy = set_scene(config, k), Watched()
            records = simulate(scene.trace, scene.truth, policy, UserEstimate(), scene.machine)
            noted = policy.scheduler.noted
            actual = np.array(
                [records.start_time[job] - since for job, (since, _, _) in noted.items()]
            )
            guesses = np.array([guess for _, *guess in noted.values()]).T
            plain = [np.corrcoef(guess, actual)[0, 1] for guess in guesses]
            some = actual >= 1
            logs = [
                np.corrcoef(np.log(np.maximum(guess[some], 1)), np.log(actual[some]))[0, 1]
                for guess in guesses
            ]
            rows.append(plain + logs)
        cells = [level(np.array(values)) for values in zip(*rows, strict=True)]
        lines.append("| " + " | ".join([*setting.values(), *cells]) + " |")
    return lines


REFERENCES = {
    "molding_by_load": "easy",
    "molding_of_downey": "easy",
    "parallelism_and_load": "a_plus_cut",
    "whole_queue": "sa",
    "scalability": "sa",
    "one_fraction": "easy",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables of presets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [*REFERENCES, "herd", "queue_time_prediction"]
    parser.add_argument("names", nargs="*", default=names, help=", ".join(names))
    parser.add_argument("--replications", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument(
        "--reference", help="policy of which changes are shown, by default the table's own"
    )
    parser.add_argument(
        "--menu", choices=MENUS, help="counts that all rules choose from; by default the preset's"
    )
    asked = parser.parse_args(arguments)
    more = [f"workload.jobs={asked.jobs}", *([f"menu={asked.menu}"] if asked.menu else [])]
    for name in asked.names:
        print(f"### {name}\n", flush=True)
        if name == "herd":
            lines = study_herd(more, asked.replications)
        elif name == "queue_time_prediction":
            lines = study_queue_times(more, asked.replications)
        else:
            found = summaries(name, more, asked.replications)
            reference = asked.reference or REFERENCES[name]
            lines = compare(found, reference, COLUMNS[column_key(name)])
        print("\n".join(lines) + "\n", flush=True)


if __name__ == "__main__":
    main()
