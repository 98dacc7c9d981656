"""Run studies and keep what they give: a folder each in docs/results, resumable."""

import contextlib
import datetime
import hashlib
import inspect
import json
import logging
import os
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import sim
from benchmarks.results.studies import STUDIES, Study, Sweep
from sim import app
from sim.help.versions import commit
from sim.report.gathering import gather, groups_of
from sim.results.durable import sha256
from sim.results.provenance import code_checksum
from sim.study import commands

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
DATA = Path(os.environ.get("MOLDSIM_DATA", ROOT.parent / "shared" / "data"))
NAME = "data.json"
TOY = ["workload.jobs=40", "baseline=null", "replications=1"]
"""Of the run that a test repeats."""
QUICK = (24, 2)
"""Jobs and replications of a study at toy size."""
DIGITS = 6


def files(study: Study, data: Path) -> list[Path]:
    """Return the input files of a study, those of its folders included."""
    asked = [data / name for name in study.inputs]
    listed = [sorted(path.glob("*.csv")) if path.is_dir() else [path] for path in asked]
    return [one for paths in listed for one in paths]


def lacking(study: Study, data: Path, quick: bool) -> str:
    """Return why a study cannot be run, or nothing."""
    absent = [name for name in study.inputs if not (data / name).exists()]
    if absent:
        return f"{data} has no {', '.join(absent)}"
    if study.program and not shutil.which(os.environ.get(study.program, "")):
        return f"{study.program} names no program"
    return "speed is not measured at toy size" if study.timed and quick else ""


def fingerprint(study: Study, inputs: dict[str, str], quick: bool) -> str:
    """Return what says whether a study must be run again: code, inputs, and what is asked."""
    asked = [study.sweeps, study.jobs, study.replications, study.figures, study.toy, quick]
    if study.special is not None:
        own = [*sorted(ROOT.glob("benchmarks/*.py")), Path(inspect.getfile(study.special))]
        asked += [sha256(path) for path in own]
    told = repr((code_checksum(), sorted(inputs.items()), asked))
    return hashlib.sha256(told.encode()).hexdigest()


def rounded(value: Any) -> Any:
    """Return plain data with numbers of so many digits."""
    if isinstance(value, dict):
        return {str(key): rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    if isinstance(value, bool | int | str) or value is None:
        return value
    number = float(f"{float(value):.{DIGITS}g}")
    return number if abs(number) < float("inf") else None  # NaN and infinity


def run_sweep(sweep: Sweep, overrides: Sequence[str], data: Path, folder: Path) -> None:
    """Run a sweep, or what is left of it.

    Raises
    ------
    RuntimeError
        If a run fails.
    """
    preset, *own = shlex.split(sweep.asked.replace("DATA", str(data)))
    named = {one.partition("=")[0] for one in own}
    general = [one for one in overrides if one.partition("=")[0] not in named]
    run, _ = commands(preset, [*general, *own, "picture=none", f"hydra.sweep.dir={folder}"],
                      datetime.datetime.now().astimezone())  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.log").open("w", encoding="utf-8") as log:
        ended = in_process(["sim", "-m", *run], log)
    if ended:
        raise RuntimeError(f"{folder}.log says why")


def in_process(asked: Sequence[str], log: TextIO) -> object:
    """Run ``python -m sim`` here, which saves its start; return its status."""
    before = sys.argv
    sys.argv = list(asked)
    try:
        with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            app.main()
    except SystemExit as ended:
        return ended.code
    finally:
        sys.argv = before
        logging.getLogger().handlers.clear()
    return 0


def collected(sweep: Sweep, figures: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """Return a row for each setting of a finished sweep: its keys and figures by replication."""
    table, keys, known = gather(folder)
    named = [one.partition("=") for one in shlex.split(sweep.asked) if "," not in one]
    fixed = {key: value for key, _, value in named if key in ("policy", "predictor")}
    rows = []
    for group in groups_of(folder, table, keys, known):
        setting = {key: str(value) for key, value in group.setting.items()}
        row: dict[str, Any] = {**sweep.labels, **fixed, **setting}
        rows.append(row | {key: [one.summary.get(key) for one in group.samples] for key in figures})
    return rows


def seconds_of(folder: Path) -> float:
    """Return how long the simulations below a folder took."""
    manifests = (json.loads(one.read_text("utf-8")) for one in folder.rglob("manifest.json"))
    return sum(float(one.get("wall_seconds", 0.0)) for one in manifests)


def toy_row(study: Study) -> dict[str, Any]:
    """Return the figures of the run that a test repeats."""
    means = sim.run(*study.toy.split(), *TOY).summary
    return {figure: means.get(figure) for figure in study.figures}


def run_study(name: str, data: Path, working: Path, quick: bool) -> dict[str, Any]:
    """Run a study and return all that its folder holds."""
    study = STUDIES[name]
    jobs, replications = QUICK if quick else (study.jobs, study.replications)
    size = [] if study.jobs is None else [f"workload.jobs={jobs}", f"replications={replications}"]
    rows = []
    for k, sweep in enumerate(study.sweeps):
        folder = working / name / f"{k:02d}"
        run_sweep(sweep, size, data, folder)
        rows += collected(sweep, study.figures, folder)
    began = time.monotonic()
    special = {} if study.special is None else study.special(data, quick)
    took = time.monotonic() - began + seconds_of(working / name)
    inputs = {str(path.relative_to(data)): sha256(path) for path in files(study, data)}
    toy = {"asked": f"{study.toy} {' '.join(TOY)}", "figures": toy_row(study)} if study.toy else {}
    return rounded({
        "study": name,
        "command": f"python -m benchmarks.results {name}",
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        "commit": commit(),
        "seconds": took,
        "fingerprint": fingerprint(study, inputs, quick),
        "inputs": inputs,
        "jobs": jobs,
        "replications": replications,
        "sweeps": [" ".join(["python -m sim.study", one.asked, *size]) for one in study.sweeps],
        "toy": toy,
        "rows": rows,
        **special,
    })  # fmt: skip


def written(found: dict[str, Any]) -> str:
    """Return a study's data as JSON, a row a line."""
    lists = {key: value for key, value in found.items() if key == "rows"}
    plain = {key: value for key, value in found.items() if key not in lists}
    text = json.dumps(plain, indent=1, ensure_ascii=False).removesuffix("\n}")
    rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in found["rows"])
    return f'{text},\n "rows": [\n  {rows}\n ]\n}}\n'


def make(names: Sequence[str], data: Path, out: Path, working: Path, quick: bool) -> list[str]:
    """Run studies that are not done yet; return what was said of each."""
    said = []
    for name in names:
        study, place = STUDIES[name], out / name / NAME
        why = lacking(study, data, quick)
        if why:
            said.append(f"{name}: skipped, {why}")
        else:
            inputs = {str(path.relative_to(data)): sha256(path) for path in files(study, data)}
            kept = json.loads(place.read_text("utf-8")) if place.is_file() else {}
            if kept.get("fingerprint") == fingerprint(study, inputs, quick):
                said.append(f"{name}: done before, {place}")
            else:
                try:
                    found = run_study(name, data, working, quick)
                except RuntimeError as failed:
                    said.append(f"{name}: failed, {failed}")
                    print(said[-1], flush=True)
                    continue
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(written(found), encoding="utf-8")
                said.append(f"{name}: {found['seconds']:.0f} s, {place}")
        print(said[-1], flush=True)
    return said
