"""What studies ask for beside presets: backtests and advice on logs, the tutorial, queue times."""

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.scaling_advice import scaling_rows
from predictors.in_loop.user_estimate import UserEstimate
from scripts.composing import composed
from sim.advise import Options, advise, read_jobs
from sim.backtest import backtest, options
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.policies.allocation.queue_time import predicted_end
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.easy import EasyScheduler
from sim.policies.order import FirstComeFirstServed
from sim.simulation.scene import set_scene
from sim.site.site_logs import of_log

LOGS = {
    "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln.swf.gz",),
    "Theta 2022": ("ALCF-Theta-2022.swf.gz",),
    "Cirrus 2024-09": ("Cirrus-CPU-2024-09.csv.gz", "cluster.processors=13248"),
    "Kabré 2024": ("kabre-sacct-2024.csv.gz", "workload.timezone=America/Costa_Rica"),
    "Slurm sample": ("slurm-micro-sacct-2021.txt.gz", "cluster.processors=120"),
}
JUDGED = ("SDSC-SP2-1998-4.2-cln.swf.gz", "LLNL-Atlas-2006-2.1-cln.swf.gz",
          "ALCF-Theta-2022.swf.gz", "NASA-iPSC-1993-3.1-cln.swf.gz")  # fmt: skip


def backtests(data: Path, toy: bool) -> dict[str, Any]:
    """Return what each log's backtest found, and EASY's changes; of one log at toy size."""
    rows = []
    for name, (file, *more) in reversed(LOGS.items()):
        given, own = of_log([str(data / "traces" / file), *more]), ["backtest.changes=true"]
        figures = backtest(given, options(own)).figures()
        easy = backtest(given, options([*own, "backtest.candidates=[easy]"])).figures()
        figures["changes_of_easy"] = easy["changes"]
        for left_out in ("classes", "outages", "checksum", "given"):
            figures.pop(left_out, None)
        rows.insert(0, {"name": name, **figures})
        if toy:
            break
    return {"logs": rows}


def advice(data: Path, toy: bool) -> dict[str, Any]:
    """Return how walltimes and recommended counts fared; of one log at toy size."""
    rows = []
    for file in JUDGED[-1:] if toy else JUDGED:
        done = advise(read_jobs([str(data / "traces" / file)]), Options(until=0.7, starts=False))
        rows.append({"log": file, **done.figures})
    scaling = [] if toy else scaling_rows(data / "scaling")
    return {"walltimes": rows, "scaling": scaling}


SLURM = (
    "workload=sacct workload.path=traces/slurm-micro-sacct-2021.txt.gz cluster.processors=120 "
    "seed=1,2,3"
)
TUTORIAL = {
    "slurm": f"{SLURM} predictor=user_estimate,amdahl,adept,oracle",
    "slurm_alone": f"{SLURM} predictor=user_estimate,amdahl,adept workload.identity=none",
    "sdsc": "workload=swf workload.path=traces/SDSC-SP2-1998-4.2-cln.swf.gz workload.jobs=1000 "
    "replications=5 predictor=user_estimate,amdahl,adept,oracle",
}
"""What the tutorial compares, with paths below the data folder."""
ASKED = "policy=easy,conservative,sa given=recorded moldability.share=0.5 picture=none"
DIFFERENCES = ["policy", "predictor", "reference", "pairs", "change", "change_low", "change_high",
               "p_corrected", "identical"]  # fmt: skip


def tutorial(data: Path, toy: bool) -> dict[str, Any]:
    """Return the differences that the tutorial shows; of one sweep alone at toy size."""
    small = ["workload.jobs=24"] if toy else []
    found = {}
    for name, asked in TUTORIAL.items():
        own = asked.replace("traces/", f"{data}/traces/")
        with tempfile.TemporaryDirectory() as folder:
            sweep = ["sim", "-m", *shlex.split(f"{own} {ASKED}"), *small]
            called([*sweep, f"hydra.sweep.dir={folder}"])
            for table, against in ((name, []), (f"{name}_molding", ["policy=conservative"])):
                called(["sim.compare", folder, *(["--against", *against] if against else [])])
                rows = pd.read_csv(Path(folder, "differences.csv"))[DIFFERENCES]
                found[table] = rows.astype(object).where(rows.notna(), None).to_dict("records")
        if toy:
            break
    return found


def called(module: list[str]) -> None:
    """Run a command of the project.

    Raises
    ------
    RuntimeError
        If it fails, with what it said last.
    """
    ended = subprocess.run(
        [sys.executable, "-m", *module], capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise RuntimeError(f"{shlex.join(module)}: {ended.stderr[-300:]}")


class BlockedHeads(EasyScheduler):
    """First come first served; notes how long each blocked head is predicted to wait."""

    longest = 163_000.0

    def __init__(self, view: Any) -> None:
        super().__init__(view, FirstComeFirstServed(), Request(), strict=True)
        self.noted: dict[int, tuple[float, float]] = {}

    def decide(self) -> Any:
        """Note what a head that is blocked now is predicted to wait."""
        decisions = super().decide()
        view, queue = self.view, self.queue
        if queue.waiting and (job := queue.job.item(queue.head())) not in self.noted:
            runs = [(r.processors, view.now - r.start) for r in view.running.values()]
            runs += [(one.processors, 0.0) for one in decisions]
            held, age = np.array(runs).T
            free = view.free - sum(one.processors for one in decisions)
            needed = queue.processors.item(queue.head()) - free
            self.noted[job] = (view.now, self.predicted(held, np.maximum(age, 1.0), needed))
        return decisions

    def predicted(self, held: Any, age: Any, needed: int) -> float:
        """Return the mean of the wait by the ages of running jobs (predictor B), seconds."""
        runs = held, age, np.log(self.longest / age), self.longest
        return float(predicted_end(runs, needed, False, 0.0, 0.0, np.inf)[1])


class Noting:
    """A policy that keeps its scheduler."""

    def begin(self, view: Any) -> BlockedHeads:
        """Return its scheduler."""
        self.scheduler = BlockedHeads(view)
        return self.scheduler


def correlation(model: str, load: str, jobs: int, replication: int, *more: str) -> float:
    """Return how predicted and actual waits of blocked heads correlate in a replication."""
    config = composed("experiment=queue_time_prediction", f"workload={model}",
                      f"workload.load={load}", f"workload.jobs={jobs}", *more)  # fmt: skip
    scene = set_scene(config, replication)
    policy = Noting()
    records = simulate(Setup(scene.trace, scene.truth, policy, UserEstimate(), scene.machine))
    noted = policy.scheduler.noted
    start = records.start_time
    found = np.array([(said, start[job] - now) for job, (now, said) in noted.items()])
    return float(np.corrcoef(found.T)[0, 1])


def queue_times(data: Path, toy: bool) -> dict[str, Any]:
    """Return correlations of predicted and actual queue times, by model, load and replication."""
    jobs, number = (100, 2) if toy else (2000, 10)
    return {
        "queue_times": [
            {"model": model, "load": load, "jobs": jobs,
             "correlation": [correlation(model, load, jobs, k) for k in range(number)]}
            for model in ("lublin", "downey") for load in ("0.5", "0.6", "0.7")
        ]
    }  # fmt: skip
