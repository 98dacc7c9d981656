"""Kills, two processes on one folder, and faults of the disk: the same bytes in the end."""

import contextlib
import io
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

from hydra.core.global_hydra import GlobalHydra

from sim.app import main
from sim.results import durable
from sim.verify import main as verify

ROOT = Path(__file__).resolve().parents[2]
ARTEFACTS = (".parquet", ".png")
RUNS = {
    "run": ("workload.jobs=300", "policy=sa", "predictor=adept", "hydra.run.dir=out"),
    "sweep": ("-m", "workload.jobs=40", "policy=fcfs,easy", "seed=1,2,3", "hydra.sweep.dir=out"),
    "study": ("-m", "experiment=malleable_curves", "workload.jobs=15", "hydra.sweep.dir=out"),
}  # fmt: skip
_alone: dict[str, dict[str, bytes]] = {}


def content(folder: Path) -> dict[str, bytes]:
    """Return the artefacts below a folder that do not hang on when and where they were made."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.suffix in ARTEFACTS or path.name == "summary.json"
    }


def begun(folder: Path, kind: str) -> subprocess.Popen[bytes]:
    """Begin a command in a folder, in a process group of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "sim", *RUNS[kind]], cwd=folder, env=environment,
        start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def alone(kind: str) -> dict[str, bytes]:
    """Return what a command leaves that nothing disturbs."""
    if kind not in _alone:
        with tempfile.TemporaryDirectory() as scratch:
            if begun(Path(scratch), kind).wait(300) != 0:
                raise RuntimeError(f"{kind} fails undisturbed")
            _alone[kind] = content(Path(scratch, "out"))
    return _alone[kind]


def judged(folder: Path, kind: str, status: int) -> str:
    """Say whether a folder holds what an undisturbed command leaves."""
    if status != 0:
        return f"FOUND: {kind}: status {status} in the end"
    if content(folder / "out") != alone(kind):
        return f"FOUND: {kind}: other bytes"
    with contextlib.redirect_stdout(io.StringIO()):
        damaged = verify([str(folder / "out")])
    return f"FOUND: {kind}: verify ends with {damaged}" if damaged else f"same bytes, {kind}"


def killed(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it began, without warning."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def try_kill(dice: random.Random) -> str:
    """Kill a command at a random moment, start it again, and compare."""
    kind = dice.choice(list(RUNS))
    alone(kind)
    with tempfile.TemporaryDirectory() as scratch:
        victim = begun(Path(scratch), kind)
        with contextlib.suppress(subprocess.TimeoutExpired):
            victim.wait(dice.uniform(0.5, 8.0))
        killed(victim)
        return judged(Path(scratch), kind, begun(Path(scratch), kind).wait(300))


def try_pair(dice: random.Random) -> str:
    """Let two processes work in one folder, the second a random moment later."""
    kind = dice.choice(list(RUNS))
    alone(kind)
    with tempfile.TemporaryDirectory() as scratch:
        one = begun(Path(scratch), kind)
        time.sleep(dice.uniform(0.0, 4.0))
        other = begun(Path(scratch), kind)
        status = [one.wait(300), other.wait(300)]
        if kind == "run":  # the second is refused while the first is at it
            return judged(
                Path(scratch), kind, min(status) if set(status) <= {0, 2} else max(status)
            )
        return judged(Path(scratch), kind, max(status))


@contextlib.contextmanager
def failing(name: str, after: int) -> Iterator[None]:
    """Let a function of the operating system fail once, after so many calls."""
    real: Callable[..., object] = getattr(os, name)
    calls = 0

    def fails(*arguments: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        if calls == after:
            raise OSError(28, "No space left on device", "the disk")
        return real(*arguments, **named)

    with patch.object(durable.os, name, fails):
        yield


def try_fault(dice: random.Random) -> str:
    """Let the disk fail once during a run, then make it again."""
    arguments = ["python -m sim", "workload.jobs=40", "policy=easy", "predictor=user_estimate",
                 "hydra.run.dir=out", "baseline=null", "picture=none"]  # fmt: skip
    name, after = dice.choice(["fsync", "replace", "open", "rename"]), dice.randint(1, 8)
    ends = []
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        for disturbed in (True, False):
            err, status = io.StringIO(), 0
            faulty = failing(name, after) if disturbed else contextlib.nullcontext()
            with (
                patch.object(sys, "argv", arguments),
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(err),
                faulty,
            ):
                try:
                    main()
                except SystemExit as end:
                    status = end.code if isinstance(end.code, int) else int(end.code is not None)
                finally:
                    GlobalHydra.instance().clear()
            if "Traceback" in err.getvalue():
                return f"FOUND: {name} {after}: {err.getvalue()[-300:]!r}"
            if status and Path("out/summary.json").exists():
                return f"FOUND: {name} {after}: status {status}, yet it looks finished"
            ends.append(status)
        found = content(Path("out"))
    if "fault" not in _alone and ends == [0, 0]:
        _alone["fault"] = found
    if ends[1] != 0 or found != _alone.get("fault", found):
        return f"FOUND: {name} {after}: ends {ends}"
    return "refused, then made" if ends[0] else "made"
