"""Interrupt twenty kinds of work: python -m tests.soak.interrupts [KIND ...].

Each must end within two seconds with status 130 and one line, without a traceback, and leave what
was in its folder as it was. ``SLOW`` (default 1) stretches the moments on a slow machine.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep

from sim.help.interrupts import SAID

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 2.0
BIG = ("workload.jobs=200000", "picture=none", "hydra.run.dir=new")
SWEEP = ("-m", "workload.jobs=3000", "policy=easy,sa", "seed=1,2,3", "hydra.sweep.dir=new")
KINDS: dict[str, tuple[float, tuple[str, ...]]] = {
    "loading": (0.3, ("sim", *BIG)),
    "composing": (0.8, ("sim", *BIG)),
    "compiling": (1.5, ("sim.warm",)),
    "calibration": (3.0, ("sim", "predictor.calibration=50", *BIG)),
    "a compiled simulation": (5.0, ("sim", "policy=easy", "predictor=user_estimate", *BIG)),
    "long conservative passes": (
        6.0, ("sim", "policy=conservative", "workload.load=2.0", "predictor=user_estimate", *BIG)),
    "candidates of SA": (5.0, ("sim", "policy=sa", "workload.load=1.5", *BIG)),
    "a failing machine": (5.0, ("sim", "cluster=failing", *BIG)),
    "a machine under load": (5.0, ("sim", "cluster=shared", *BIG)),
    "reallocation": (5.0, ("sim", "policy=equi", *BIG)),
    "replications": (4.0, ("sim", "replications=500", "workload.jobs=200", "hydra.run.dir=new")),
    "tables and pictures": (
        8.0, ("sim", "policy=fcfs", "predictor=user_estimate", "workload.jobs=60000",
              "hydra.run.dir=new")),
    "a sweep": (5.0, ("sim", *SWEEP)),
    "a sweep with workers": (8.0, ("sim", *SWEEP, "hydra/launcher=joblib",
                                   "hydra.launcher.n_jobs=2")),
    "a comparison": (1.5, ("sim.compare", "old")),
    "a study": (5.0, ("sim.study", "malleable_curves", "hydra.sweep.dir=new")),
    "a data set": (1.0, ("sim.dataset", "old", "set")),
    "a backtest": (4.0, ("sim.backtest", "log.swf")),
    "advice": (4.0, ("sim.advise", "log.swf")),
    "a plot": (1.0, ("sim.plot", "old", "schedule")),
    "a model's log": (
        1.5, ("sim.command.main", "generate", "lublin", "big.swf", "--jobs", "1000000")),
}  # fmt: skip
"""Of each kind the moment, in seconds, and the command."""


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def heed() -> None:
    """Let a child meet interrupts, although a shell starts what is in the background deaf."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupted(command: Sequence[str], folder: Path, after: float, whole: bool) -> str:
    """Interrupt a command, or all of its processes as a terminal does; say how it ended."""
    with subprocess.Popen(
        [sys.executable, "-m", *command], cwd=folder, env=environment(), text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, preexec_fn=heed,
    ) as process:  # fmt: skip
        sleep(after)
        if process.poll() is not None:
            return f"ended before: {process.returncode}"
        began = monotonic()
        (os.killpg if whole else os.kill)(process.pid, signal.SIGINT)
        status = process.wait()
        took = monotonic() - began
        assert process.stderr is not None
        said = process.stderr.read()
    if status == 0 and took < 0.5:  # all was done when the interrupt came
        return "ended by itself: 0"
    lines = [
        line
        for line in said.splitlines(keepends=True)
        if line.strip() and not line.startswith("WARNING: ")
    ]
    told = [line for line in lines if "running" not in line]
    if status != 130 or took > LIMIT or told[:1] != [SAID]:
        return f"FOUND: status {status} after {took:.1f} s: {said[-500:]!r}"
    return f"130 after {took:.1f} s"


def main(asked: Sequence[str]) -> int:
    slow, bad = float(os.environ.get("SLOW", "1")), 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        small = ("workload.jobs=500", "export=[swf]", "policy=fcfs", "hydra.run.dir=old")
        subprocess.run([sys.executable, "-m", "sim", *small], cwd=folder, env=environment(),
                       check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        (folder / "log.swf").write_bytes((folder / "old/schedule.swf").read_bytes())
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for kind, (after, command) in KINDS.items():
            if asked and kind not in asked:
                continue
            for whole in (False, True):
                shutil.rmtree(folder / "new", ignore_errors=True)
                end = interrupted(command, folder, slow * after, whole)
                if any(path.read_bytes() != content for path, content in before.items()):
                    end += "; FOUND: files have changed"
                bad += "FOUND" in end
                print(f"{kind}{' (all processes)' if whole else ''}: {end}", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
