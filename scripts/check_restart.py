"""Kill a sweep at random points, start it again each time, and compare it with one left alone.

python scripts/check_restart.py [KILLS] [RUNS]

Kills are of the whole process group, without warning. At the end all artefacts but
manifest.json must be the same bytes.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ARTEFACTS = ("summary.json", "failure.json", "jobs.parquet", "allocations.parquet",
             "timeline.parquet", "predictions.parquet", "schedule.png")  # fmt: skip


def command(folder, runs):
    seeds = f"seed=range(1,{runs + 1})"
    return [
        *(sys.executable, "-m", "sim", "-m", "workload.jobs=60", "policy=easy,sa", seeds),
        *("hydra/launcher=joblib", "hydra.launcher.n_jobs=2", f"hydra.sweep.dir={folder}"),
    ]


def artefacts(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.name in ARTEFACTS
    }


def finished(folder):
    return len(list(folder.rglob("summary.json")))


def main():
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    dice = random.Random(1)
    with tempfile.TemporaryDirectory() as scratch:
        whole, killed = Path(scratch, "whole"), Path(scratch, "killed")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        began = time.monotonic()
        subprocess.run(command(whole, runs), check=True, **quiet)
        alone = time.monotonic() - began
        print(f"{2 * runs} runs left alone: {alone:.1f} s")
        for number in range(1, kills + 1):
            goal = finished(killed) + dice.randint(0, max(2 * runs // kills - 1, 1))
            process = subprocess.Popen(command(killed, runs), start_new_session=True, **quiet)
            while finished(killed) < goal and process.poll() is None:
                time.sleep(0.05)
            time.sleep(dice.uniform(0.0, 2.0))
            ended = process.poll() is not None
            if not ended:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            print(f"kill {number}: {finished(killed)} of {2 * runs} runs finished"
                  + (" (it had ended by itself)" if ended else ""))  # fmt: skip
        subprocess.run(command(killed, runs), check=True, **quiet)
        one, other = artefacts(whole), artefacts(killed)
        assert len(one) == 2 * runs * 6, len(one)
        differ = [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
        assert not differ, differ[:10]
    print(f"after {kills} kills: {len(one)} artefacts, byte for byte the same")


if __name__ == "__main__":
    main()
