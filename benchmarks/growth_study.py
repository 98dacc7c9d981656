"""Prepare the workload of a site that doubles its machine, and run it.

Usage: python -m benchmarks.growth_study FOLDER [OVERRIDE ...] [--factor 2]

Time-constrained scaling (Garren 2010): for each job of a workload a focused regression, fitted
to the runs of its application that had ended when it was submitted, is solved for the problem
size that takes the same time on `factor` times the processors. Jobs keep their size where their
application cannot run on so many, where no regression can be fitted or it is graded unusable,
and where the size would not grow by 1 %. FOLDER gets the sized workload as `sized.swf`, what
became of each job as `sizes.csv`, and its run under EASY as `run`. Overrides are of `sim.run`.
"""

import argparse
from dataclasses import replace
from math import log2
from pathlib import Path

import numpy as np
import pandas as pd

import sim
from benchmarks.floor import show
from predictors.errors import PredictorError
from predictors.regression.garren import FocusedRegression
from predictors.regression.inputs import TrainingRuns, runs_from_arrays, without_constants
from predictors.remarks import gravest
from scripts.composing import composed
from sim.simulation.scene import Scene, set_scene
from workloads.base import Trace
from workloads.logs.swf import log_of_trace, write_swf
from workloads.truth.ground_truth import Truth
from workloads.truth.scales import grow_shapes

WORLD = ("moldability=downey", "given=invented", "predictor=focused", "workload.load=0.8")
FOCI = 4
"""Focal times are told apart by this many steps in a doubling."""
NEW_RUNS, LEAST_GROWTH = 1.1, 1.01
"""Ratios from which runs are fitted anew, and from which a job grows at all."""


class History:
    """The runs of one application in the order of their ends, and the fits to those that ended."""

    def __init__(self, runs: TrainingRuns, ends: np.ndarray) -> None:
        self._runs, self._ends = runs, ends
        self._fits: dict[int | None, tuple[int, FocusedRegression | None]] = {}

    def size(self, now: float, seconds: float, nprocs: int) -> tuple[float, str]:
        """Return the size that takes so long, and its grade; where few runs are near, by all."""
        ended = int(np.searchsorted(self._ends, now, side="right"))
        found = np.nan, "no fit"
        for focus in (round(log2(seconds) * FOCI), None):
            number, model = self._fits.get(focus, (0, None))
            if ended and ended >= NEW_RUNS * number:
                model = self._fit(focus, ended)
                self._fits[focus] = ended, model
            if model is None:
                continue
            try:
                size = float(model.solve_size(seconds, nprocs))
                found = size, gravest(model.remarks_on_size(seconds, nprocs))[0]
            except PredictorError:
                continue
            if found[1] != "unusable":
                break
        return found

    def _fit(self, focus: int | None, ended: int) -> FocusedRegression | None:
        model = FocusedRegression()
        if focus is not None:
            model.focal_time = 2.0 ** (focus / FOCI)
        try:
            return model.fit_runs(without_constants(self._runs.take(slice(ended))))
        except PredictorError:
            return None


def could_run(truth: Truth, counts: np.ndarray, processors: int) -> np.ndarray:
    """Return whether each job's application runs on that count on a machine of `processors`."""
    shapes = replace(truth._shapes, processors=processors)
    possible = truth.moldable & (counts <= processors)
    for application in np.unique(truth.application):
        allowed = shapes.allowed(int(application))
        if allowed is not None:
            own = truth.application == application
            possible[own] &= np.isin(counts[own], allowed)
    return possible & np.isfinite(shapes.g(truth.application, counts))


def runtimes_at(
    truth: Truth, ratio: np.ndarray, counts: np.ndarray, grew: np.ndarray, normal: np.ndarray
) -> np.ndarray:
    """Return how long jobs take on these counts at so many times their size.

    Those that grew are new runs, with noise of their own from standard normal draws.
    """
    noise = np.where(grew, np.exp(truth._options.noise * normal), truth.noise)
    scale = np.where(grew, truth.nominal_scale * ratio * noise, truth.serial_time)
    size, median = truth._options.size_exponent, truth._scales.median
    curves, row = grow_shapes(truth._shapes, truth.application, scale, median, size)
    return np.where(grew, scale * curves.g(row, counts), truth._recorded.runtime)


def sized(scene: Scene, factor: int) -> tuple[Trace, pd.DataFrame]:
    """Return the workload of the larger machine, and a row a job: what became of its size."""
    jobs, truth, processors = scene.trace.jobs, scene.truth, scene.machine.processors * factor
    before = jobs["requested_processors"].to_numpy()
    wanted, submitted = jobs["reference_runtime"].to_numpy(), jobs["submit_time"].to_numpy()
    counts, rows, ends = before * factor, np.arange(len(jobs)), submitted + wanted
    possible = could_run(truth, counts, processors)
    share = truth.communication_shares(rows, before)
    solved, outcome = truth.size.copy(), np.where(possible, "no fit", "infeasible").astype(object)
    for application in np.unique(truth.application):
        own = np.flatnonzero(truth.application == application)
        past = own[np.argsort(ends[own], kind="stable")]
        t, part = wanted[past], share[past]
        split = {"max": (t * (1.0 - part), t * part)} if (part > 0.0).any() else {}
        runs = runs_from_arrays(("size",), before[past], t, [truth.size[past]], splits=split)
        history = History(runs, ends[past])
        for row in own[possible[own]][np.argsort(submitted[own[possible[own]]], kind="stable")]:
            size, grade = history.size(submitted[row], wanted[row], int(counts[row]))
            outcome[row] = grade if grade in ("no fit", "unusable") else "no gain"
            if outcome[row] == "no gain" and size >= LEAST_GROWTH * truth.size[row]:
                solved[row], outcome[row] = size, "grew"
    grew = outcome == "grew"
    counts = np.where(grew, counts, before)
    noise = scene.streams("growth.noise").standard_normal(len(jobs))
    runtimes = [
        runtimes_at(truth, ratio, counts, grew, noise)
        for ratio in (solved / truth.size, np.where(grew, float(factor), 1.0))
    ]
    table = pd.DataFrame({"job_id": jobs["job_id"], "application": truth.application,
        "outcome": outcome, "processors": before, "grown_processors": counts,
        "size": truth.size, "grown_size": solved, "wanted_time": wanted, "runtime": runtimes[0],
        "weak_runtime": runtimes[1]})  # fmt: skip
    jobs = jobs.assign(requested_processors=counts, reference_runtime=runtimes[0],
        executable=truth.application)  # fmt: skip
    return replace(scene.trace, jobs=jobs, processors=processors, models={}), table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("overrides", nargs="*", help="of the workload that is sized")
    parser.add_argument("--factor", type=int, default=2, help="times the processors, at least 2")
    asked = parser.parse_args()
    if asked.factor < 2:
        parser.error(f"--factor {asked.factor}: must be at least 2")
    scene = set_scene(composed(*WORLD, *asked.overrides), 0)
    if not scene.truth.known or np.isnan(scene.truth.size).any():
        parser.error("needs workload.size=known and a moldability other than none")
    trace, table = sized(scene, asked.factor)
    asked.folder.mkdir(parents=True, exist_ok=True)
    write_swf(asked.folder / "sized.swf", log_of_trace(trace))
    table.to_csv(asked.folder / "sizes.csv", index=False)
    grown = table[table["outcome"] == "grew"]
    found = table["outcome"].value_counts()
    show("Sizes", [{"outcome": name, "jobs": number} for name, number in found.items()])
    columns = {"focused regression": "runtime", "weak scaling": "weak_runtime"}
    errors = {
        name: (grown[column] / grown["wanted_time"] - 1.0).abs().median()
        for name, column in columns.items()
    }
    rows = [{"sizes by": name, "median error": round(e, 3)} for name, e in errors.items()]
    show("Kept times of the jobs that grew", rows)
    log = f"workload.path={asked.folder / 'sized.swf'}"
    parts = {"policy": "easy", "predictor": "user_estimate", "baseline": None}
    result = sim.run("workload=swf", log, **parts, folder=asked.folder / "run")
    mean = result.summary["mean_response_time"]
    print(f"mean response time {mean:,.0f} s on {trace.processors} processors")


if __name__ == "__main__":
    main()
