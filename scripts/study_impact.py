r"""Measure how much prediction matters: what each predictor keeps of the oracle's gain.

Usage: python -m scripts.study_impact WORKLOAD OUT --curves FOLDER [--log FILE]
           [--parts NAME ...] [--truths model measured] [--load 0.6] [--set KEY=VALUE ...]
           [--jobs 2000] [--replications 8] [--first N]

WORKLOAD is ``lublin`` or ``log``; of a log, replication k replays its own window
of jobs, cut evenly spread over it (in the part ``as_recorded``, whose applications
are the whole log's, the k-th of the log's own windows). Every replication gives all
predictors and policies the same jobs, curves and noise. One line of JSON a simulation
goes to OUT; a simulation that is there already is not repeated.
`scripts.impact_page` makes tables and figures of it,
`scripts.kept_table` the table of the parts ``kept``, ``charged``, ``classes`` and
``as_recorded``: what learned predictors keep of the oracle's gain, and no window lost::

    kept="python -m scripts.study_impact --curves scaling --parts kept charged classes as_recorded"
    for load in 0.6 0.8; do
        $kept log kept.jsonl --log SDSC-SP2-1998-4.2-cln.swf.gz --load $load
        $kept log kept.jsonl --log NASA-iPSC-1993-3.1-cln.swf.gz --load $load \
            --set workload.estimates=tsafrir
    done
    $kept lublin kept.jsonl
    $kept log kept.jsonl --log LLNL-Atlas-2006-2.1-cln.swf.gz --truths model
    python -m scripts.kept_table kept.jsonl --json kept.json

What predictors are given is set explicitly, whatever the defaults: 50 invented
applications, sizes known within 10 %, three free calibration runs.
"""

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from scripts.composing import composed
from sim.build import build
from sim.calibration import charge, plan_calibration
from sim.metrics import summarise
from sim.run import Scene, play, set_scene, source_of
from sim.statistics.regret import regret_by, regret_of_jobs
from workloads.streams import Streams

LOAD = 0.6
SPREADS = (0.1, 0.2, 0.5, 1.0)
LEARNED = ("adept", "consensus", "rational", "amdahl", "regression", "focused")
BELIEVED = (*LEARNED, "universal_scalability")
GIVEN = (
    *("workload.applications=50", "workload.popularity=1.0", "workload.sizes=null"),
    *("workload.size=known", "workload.size_noise=0.1"),
)
"""What repeats and what predictors see of it, unless a case says otherwise."""
RUNS = 3
"""Free calibration runs of an application, unless a case says otherwise."""
POLICIES = ("sa_easy", "iterative", "fair_share", "knee")
STEADY = "fair_share"
"""The policy of the part on repetition: gains vary least between replications."""
LOADS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
CLASSES = ("narrow_short", "narrow_long", "wide_short", "wide_long")
COUNTS = ((1, 4), (5, 16), (17, 64), (65, 2**31))
REFERENCES = ("easy user_estimate", "sa_easy oracle")
"""What others are compared with, job by job."""
COMPARED = ("predictors", "causes")
"""Parts in which they are."""
SPARE = 1.4
"""Lines cut from a log for each job wanted: some are cancelled before they start."""
KEPT = (
    *("mean_response_time", "mean_wait_time", "mean_bounded_slowdown", "makespan", "utilization"),
    *("system_efficiency", "prediction_mape", "prediction_median_error", "saturated", "jobs"),
    *("calibration_area", "held_area", "share_fitted_starts", "share_seen_at_three_counts"),
    *("mean_jobs_per_application", "mean_allocated_processors", "predictor_queries"),
    *("beliefs_at_measured_counts", "share_beliefs_off", "area_share_beliefs_off"),
    *(f"{name}_{what}" for name in CLASSES for what in ("jobs", "mean_response_time")),
)


@dataclass(frozen=True)
class Case:
    """One simulation of the study.

    Attributes
    ----------
    part : str
        Of the study.
    truth : str
        ``model`` or ``measured``: where the curves come from.
    policy, predictor : str
        Options of their groups.
    jobs : tuple of str
        Overrides that change the jobs or their truth.
    beliefs : tuple of str
        Overrides that change the predictor alone.
    charged : bool
        Whether calibration runs are jobs; then also where nobody learns from them,
        so that all cases have the same jobs.
    """

    part: str
    truth: str
    policy: str
    predictor: str
    jobs: tuple[str, ...] = ()
    beliefs: tuple[str, ...] = ()
    charged: bool = False

    @property
    def key(self) -> str:
        """Name the case."""
        parts = (self.truth, self.policy, self.predictor, *self.jobs, *self.beliefs)
        return " ".join((self.part, *parts, *(("charged",) if self.charged else ())))

    @property
    def learns(self) -> bool:
        """Whether the predictor learns from runs."""
        return self.predictor in (*BELIEVED, "repaired")

    def trust(self) -> list[str]:
        """Return the overrides of policy and predictor; later ones win."""
        chosen = [f"policy={self.policy}", f"predictor={self.predictor}"]
        if self.learns:
            charged = str(self.charged).lower()
            inner = "before." if self.predictor == "repaired" else ""
            chosen += [
                f"predictor.{inner}calibration={RUNS}",
                f"predictor.{inner}charge={charged}",
            ]
        return [*chosen, *self.beliefs]


@dataclass(frozen=True)
class Place:
    """Where jobs and curves come from."""

    workload: str
    curves: str
    jobs: int
    log: Path | None = None
    windows: list[Path] = field(default_factory=list)
    load: float = LOAD
    more: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name all that a simulation hangs on besides its case and replication."""
        source = self.workload if self.log is None else self.log.name
        windows = f"{len(self.windows)} windows of " if self.windows else ""
        parts = (source, f"load {self.load}", f"{windows}{self.jobs} jobs", *self.more)
        return ", ".join(parts)

    def overrides(self, case: Case, replication: int) -> list[str]:
        """Return the overrides that say what is replayed."""
        given = [f"workload.jobs={self.jobs}", "baseline=null", f"workload.load={self.load}"]
        if self.log is not None and case.part == "as_recorded":
            given += ["workload=swf", f"workload.path={self.log}"]
        elif self.log is not None:
            given += ["workload=swf", f"workload.path={self.windows[replication]}"]
        else:
            given.append("workload.types=all")
        given += GIVEN
        if case.truth == "measured":
            given += [
                "moldability=measured",
                f"moldability.path={self.curves}",
                "moldability.first_count_max=1",
            ]
        return [*given, *self.more, *case.jobs]


def cut(log: Path, folder: Path, number: int, jobs: int) -> list[Path]:
    """Cut windows of a log, evenly spread over it, and return their files."""
    with gzip.open(log, "rt", encoding="utf-8") if log.suffix == ".gz" else log.open() as lines:
        everything = list(lines)
    head = [line for line in everything if line.startswith(";")]
    body = [line for line in everything if not line.startswith(";")]
    size = int(SPARE * jobs)
    step = max((len(body) - size) // max(number - 1, 1), 1)
    found = []
    for window in range(number):
        path = folder / f"window-{window}.swf"
        path.write_text("".join(head + body[window * step : window * step + size]), "utf-8")
        found.append(path)
    return found


def yardsticks(part: str, truth: str, *jobs: str) -> Iterator[Case]:
    """Yield rigid EASY, and the oracle under the main policy."""
    yield Case(part, truth, "easy", "user_estimate", jobs)
    yield Case(part, truth, "sa_easy", "oracle", jobs)


def main_part(truth: str) -> Iterator[Case]:
    """Yield all predictors under the main policy, and the chief ones under others."""
    part = "predictors"
    yield from yardsticks(part, truth)
    yield Case(part, truth, "easy", "oracle")
    noisy = [("noisy_oracle", (f"predictor.spread={spread}",)) for spread in SPREADS]
    for predictor, beliefs in [*noisy, *((name, ()) for name in LEARNED)]:
        yield Case(part, truth, "sa_easy", predictor, beliefs=beliefs)
    for policy in POLICIES[1:]:
        yield Case(part, truth, policy, "oracle")
        for predictor, beliefs in noisy[1:]:
            yield Case(part, truth, policy, predictor, beliefs=beliefs)
        for predictor in ("adept", "consensus", "amdahl"):
            yield Case(part, truth, policy, predictor)


def repetition_part(truth: str) -> Iterator[Case]:
    """Yield how much repeats: applications, sizes, noise of sizes."""
    settings = [
        *((f"workload.applications={number}",) for number in (10, 50, 200, 1000)),
        *((f"workload.size_noise={noise}",) for noise in (0.0, 0.3, 1.0)),
        *((f"workload.sizes={number}",) for number in (1, 5)),
        ("workload.sizes=5", "workload.size=hidden"),
        ("workload.size=hidden",),
    ]
    for jobs in settings:
        yield Case("repetition", truth, "easy", "user_estimate", jobs)
        for predictor in ("oracle", "adept", "rational"):
            yield Case("repetition", truth, STEADY, predictor, jobs)


def calibration_part(truth: str) -> Iterator[Case]:
    """Yield cold starts and calibration, free and charged."""
    yield from yardsticks("calibration", truth)
    for predictor in ("adept", "consensus"):
        for runs, paid in ((0, "false"), (3, "false"), (3, "true"), (6, "false"), (6, "true")):
            beliefs = (f"predictor.calibration={runs}", f"predictor.charge={paid}")
            yield Case("calibration", truth, "sa_easy", predictor, beliefs=beliefs)


def load_part(truth: str) -> Iterator[Case]:
    """Yield the load curves of rigid and molded jobs."""
    for load in LOADS:
        jobs = (f"workload.load={load}",)
        yield from yardsticks("load", truth, *jobs)
        yield Case("load", truth, "iterative", "oracle", jobs)
        yield Case("load", truth, "sa_easy", "adept", jobs)


def cause_part(truth: str) -> Iterator[Case]:
    """Yield ADEPT with its errors mended, or kept alone, by class and by count.

    With all errors mended the policy still is cautious, as with any predictor that
    learns: it uses no counts far from those that were seen.
    """
    yield from yardsticks("causes", truth)
    yield Case("causes", truth, "sa_easy", "adept")
    yield Case("causes", truth, "sa_easy", "repaired")
    groups = [f"predictor.classes=[{name}]" for name in CLASSES]
    groups += [f"predictor.counts=[{low},{high}]" for low, high in COUNTS]
    for group in groups:
        for invert in ("false", "true"):
            beliefs = (group, f"predictor.invert={invert}")
            yield Case("causes", truth, "sa_easy", "repaired", beliefs=beliefs)


def kept_part(truth: str) -> Iterator[Case]:
    """Yield what learned predictors keep of the oracle's gain, and rigid EASY."""
    yield Case("kept", truth, "easy", "user_estimate")
    for policy in ("sa_easy", "iterative", "fair_share"):
        for predictor in ("oracle", *(BELIEVED if policy == "sa_easy" else LEARNED[:2])):
            yield Case("kept", truth, policy, predictor)


def setting_part(
    part: str, *jobs: str, charged: bool = False, runs: int = RUNS
) -> Callable[[str], Iterator[Case]]:
    """Return a part that asks of ADEPT and the consensus what they keep in one setting."""

    def cases(truth: str) -> Iterator[Case]:
        for one in yardsticks(part, truth, *jobs):
            yield replace(one, charged=charged)
        for predictor in LEARNED[:2]:
            beliefs = () if runs == RUNS else (f"predictor.calibration={runs}",)
            yield Case(part, truth, "sa_easy", predictor, jobs, beliefs, charged)

    return cases


IMPACT = {
    "predictors": main_part,
    "calibration": calibration_part,
    "load": load_part,
    "causes": cause_part,
    "repetition": repetition_part,
}
PARTS = IMPACT | {
    "kept": kept_part,
    "charged": setting_part("charged", charged=True),
    "classes": setting_part("classes", "workload.sizes=3", "workload.size=hidden"),
    "as_recorded": setting_part(
        "as_recorded", "workload.applications=log", "workload.size=hidden", runs=0
    ),
}


def with_runs(scene: Scene) -> Scene:
    """Return a scene with the calibration runs that learned predictors ask for as jobs."""
    plan = plan_calibration(scene.truth, RUNS, scene.machine.processors, scene.streams)
    trace, truth = charge(scene.trace, scene.truth, plan)
    return replace(scene, trace=trace, truth=truth)


def borne(own: pd.DataFrame, reference: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return who bears what a run takes longer than a reference, by class and by count."""
    regret = regret_of_jobs(own, reference)
    columns = ["jobs", "regret", "waiting", "running", "median_error"]
    return {
        key: json.loads(regret_by(regret, key)[columns].to_json(orient="index"))
        for key in ("class", "count", "choice")
    }


def commit() -> str:
    """Return the commit of the code at hand."""
    asked = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


class Study:
    """Simulations of a study, those of one scene in a row; what is done is kept in a file."""

    def __init__(self, place: Place, out: Path) -> None:
        self.place = place
        self.out = out
        self.commit = commit()
        lines = out.read_text(encoding="utf-8").splitlines() if out.is_file() else []
        self.done = {
            (one["case"], one["replication"])
            for one in map(json.loads, lines)
            if one["place"] == place.name
        }
        self.scene: tuple[tuple[Any, ...], Scene] | None = None
        self.tables: dict[str, pd.DataFrame] = {}

    def run_all(self, cases: Sequence[Case], replication: int) -> None:
        """Carry out all that is missing of one replication."""
        if not all((case.key, replication) in self.done for case in cases):
            for case in cases:
                self.run(case, replication)

    def run(self, case: Case, replication: int) -> None:
        """Carry out one simulation unless it is done, and write its line."""
        done = (case.key, replication) in self.done
        name = f"{case.policy} {case.predictor}"
        if done and not (case.part in COMPARED and name in REFERENCES):
            return
        config = composed(*self.place.overrides(case, replication), *case.trust())
        scene = self._scene(case, replication, config)
        if case.charged and not case.learns:
            scene = with_runs(scene)
        began = time.process_time()
        played = play(config, config, scene)
        seconds = time.process_time() - began
        area = sum(run.nprocs * run.runtime for run in played.known)
        summary = summarise(played.outcome, calibration=played.known, calibration_area=area)
        line = {
            "place": self.place.name,
            "case": case.key,
            "part": case.part,
            "truth": case.truth,
            "policy": case.policy,
            "predictor": case.predictor,
            "jobs_setting": " ".join(case.jobs),
            "beliefs": " ".join(case.beliefs),
            "charged": case.charged,
            "replication": replication,
            "seconds": seconds,
            "commit": self.commit,
            **{key: summary.get(key) for key in KEPT},
        }
        self._note_regret(case, played.outcome.tables.jobs, line)
        if done:
            return
        with self.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _note_regret(self, case: Case, jobs: pd.DataFrame, line: dict[str, Any]) -> None:
        if case.part not in COMPARED:
            return
        name = f"{case.policy} {case.predictor}"
        if name in REFERENCES:
            self.tables[name] = jobs
        for reference in REFERENCES:
            if reference in self.tables and case.policy == "sa_easy" and name != reference:
                line[f"against {reference}"] = borne(jobs, self.tables[reference])

    def _scene(self, case: Case, replication: int, config: dict[str, Any]) -> Scene:
        key = (case.part, case.truth, case.jobs, replication)
        if self.scene is None or self.scene[0] != key:
            trace = None
            if self.place.windows and case.part != "as_recorded":  # one file, one window
                source = build(source_of(config["workload"]), "workload")
                trace = source.trace(Streams(config["seed"]), config["cluster"]["processors"])
            self.scene = (key, set_scene(config, replication, trace))
            self.tables = {}
        return self.scene[1]


def main(arguments: Sequence[str] | None = None) -> None:
    """Carry out the parts that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workload", choices=("lublin", "log"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--curves", required=True, help="measured curves: CSV file or pattern")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(IMPACT))
    parser.add_argument("--truths", nargs="+", default=["model", "measured"])
    parser.add_argument("--load", type=float, default=LOAD)
    parser.add_argument("--set", nargs="+", default=[], help="overrides of all simulations")
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--replications", type=int, default=8, help="windows of a log")
    parser.add_argument("--first", type=int, help="carry out so many of them only")
    asked = parser.parse_args(arguments)
    if (asked.workload == "log") != (asked.log is not None):
        parser.error("--log goes with the workload log, and it alone")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each window names its dropped jobs
        windows = cut(asked.log, Path(folder), asked.replications, asked.jobs) if asked.log else []
        place = Place(
            asked.workload, asked.curves, asked.jobs, asked.log, windows, asked.load,
            tuple(asked.set),
        )  # fmt: skip
        study = Study(place, asked.out)
        for part in asked.parts:
            if part == "as_recorded" and not asked.log:
                continue
            for truth in asked.truths:
                began = time.process_time()
                cases = list(PARTS[part](truth))
                for replication in range(min(asked.first or 10**6, asked.replications)):
                    study.run_all(cases, replication)
                print(f"{part} {truth}: {time.process_time() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
