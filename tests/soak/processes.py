"""Kills, two processes on one folder, and faults of the disk: the same bytes in the end."""

import contextlib
import functools
import io
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any
from unittest.mock import patch

from hydra.core.global_hydra import GlobalHydra

from sim.app import main
from sim.results import durable
from sim.verify import main as verify

LONGEST = 600.0
"""Seconds after which a process does not end."""
USUAL = 10.0
"""Seconds that a command takes at most, but for one that compiles first."""
SUMMARIES = "out/*/summary.json"
ARTEFACTS = (".parquet", ".png")
RUNS = {
    "run": ("workload.jobs=200", "policy=sa", "predictor=adept", "hydra.run.dir=out"),
    "sweep": ("-m", "workload.jobs=40", "policy=fcfs,easy", "seed=1,2,3", "hydra.sweep.dir=out"),
    "study": ("-m", "experiment=malleable_curves", "workload.jobs=15", "replications=2",
              "hydra.sweep.dir=out"),
}  # fmt: skip
LARGE = ("-m", "workload.jobs=20", "policy=fcfs,easy", "seed=range(1,101)", "hydra.sweep.dir=out")
"""A sweep of 200 runs."""
_alone: dict[str, tuple[dict[str, bytes], float]] = {}


def content(folder: Path) -> dict[str, bytes]:
    """Return the artefacts below a folder that do not hang on when and where they were made."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.suffix in ARTEFACTS or path.name == "summary.json"
    }


def _work(folder: Path, arguments: tuple[str, ...]) -> None:
    os.chdir(folder)
    with (
        patch.object(sys, "argv", ["python -m sim", *arguments]),
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        main()


def begun(folder: Path, kind: str) -> Any:
    """Begin a command in a folder, in a process that has loaded everything already."""
    warm()
    arguments = LARGE if kind == "large sweep" else RUNS[kind]
    process = multiprocessing.get_context("fork").Process(target=_work, args=(folder, arguments))
    process.start()
    return process


def ended(process: Any) -> int:
    """Return the status of a process once it has ended; one that does not end is killed."""
    process.join(LONGEST)
    process.kill()
    process.join()
    return int(process.exitcode)


@functools.cache
def warm() -> None:
    """Load what every run needs, once for all processes to come."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as scratch, contextlib.suppress(SystemExit):
        _work(Path(scratch), ("workload.jobs=20", "policy=sa", "predictor=adept"))
    GlobalHydra.instance().clear()
    os.chdir(here)


def alone(kind: str) -> tuple[dict[str, bytes], float]:
    """Return what a command leaves that nothing disturbs, and its seconds."""
    if kind not in _alone:
        with tempfile.TemporaryDirectory() as scratch:
            began = monotonic()
            if ended(begun(Path(scratch), kind)) != 0:
                raise RuntimeError(f"{kind} fails undisturbed")
            seconds = min(monotonic() - began, USUAL)
            _alone[kind] = content(Path(scratch, "out")), seconds
    return _alone[kind]


def judged(folder: Path, kind: str, status: int) -> str:
    """Say whether a folder holds what an undisturbed command leaves."""
    if status != 0:
        return f"FOUND: {kind}: status {status} in the end"
    if content(folder / "out") != alone(kind)[0]:
        return f"FOUND: {kind}: other bytes"
    with contextlib.redirect_stdout(io.StringIO()):
        damaged = verify([str(folder / "out")])
    return f"FOUND: {kind}: verify ends with {damaged}" if damaged else f"same bytes, {kind}"


def try_kill(dice: random.Random) -> str:
    """Kill a command at a random moment, start it again, and compare."""
    kind = dice.choice(list(RUNS))
    seconds = alone(kind)[1]
    with tempfile.TemporaryDirectory() as scratch:
        victim = begun(Path(scratch), kind)
        victim.join(dice.uniform(0.0, seconds))
        victim.kill()
        victim.join()
        return judged(Path(scratch), kind, ended(begun(Path(scratch), kind)))


def try_pair(dice: random.Random) -> str:
    """Let two processes work in one folder, the second a random moment later."""
    kind = dice.choice(list(RUNS))
    seconds = alone(kind)[1]
    with tempfile.TemporaryDirectory() as scratch:
        one = begun(Path(scratch), kind)
        one.join(dice.uniform(0.0, seconds))
        status = [ended(process) for process in (begun(Path(scratch), kind), one)]
        if kind == "run":  # the second is refused while the first is at it
            status = [min(status) if set(status) <= {0, 2} else max(status)]
        return judged(Path(scratch), kind, max(status))


def try_four(dice: random.Random) -> str:
    """Let four processes share a sweep of 200 runs and kill two of them, one after the other."""
    kind = "large sweep"
    number = sum(name.endswith("summary.json") for name in alone(kind)[0])
    marks = sorted(dice.sample(range(1, number), 2))
    with tempfile.TemporaryDirectory() as scratch:
        four = [begun(Path(scratch), kind) for _ in range(4)]
        for mark, victim in zip(marks, four, strict=False):
            while victim.is_alive() and len(list(Path(scratch).glob(SUMMARIES))) < mark:
                time.sleep(0.05)
            victim.kill()
            victim.join()
        status = max(ended(process) for process in four[2:])
        said = judged(Path(scratch), kind, status)
    return f"{said}: {number} runs, killed at {marks}"


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
        _alone["fault"] = found, 0.0
    if ends[1] != 0 or found != _alone.get("fault", (found, 0.0))[0]:
        return f"FOUND: {name} {after}: ends {ends}"
    return "refused, then made" if ends[0] else "made"
