r"""Measure what learned predictors keep of the oracle's gain over rigid EASY.

Usage: python -m scripts.study_beliefs SETTING OUT.jsonl --curves FOLDER [--log FILE]
           [--truth model measured] [--load 0.6] [--only POLICY,PREDICTOR ...] [--set KEY=VALUE ...]

SETTING is ``kept`` (known sizes, three free runs), ``charged``, ``classes`` (three hidden
classes) or ``as_recorded`` (the log's applications, hidden sizes, no runs). Jobs are Lublin's,
or a log's: window k of eight is a file of 2,800 lines, cut evenly spread over it, but for
``as_recorded``, which takes the windows that a run takes. One line of JSON a simulation; one that
is there is not repeated.
"""

import argparse
import gzip
import json
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scripts.composing import composed
from sim.results.metrics import summarise
from sim.simulation.build import build
from sim.simulation.calibration import charge, plan_calibration
from sim.simulation.scene import Scene, play, set_scene, source_of
from workloads.streams import Streams

LINES = 2800
WINDOWS = 8
JOBS = 2000
RUNS = 3
ORACLES = {"easy": "user_estimate", "sa_easy": "oracle"}
INVENTED = ("workload.applications=50", "workload.popularity=1.0", "workload.size_noise=0.1")
KNOWN = (*INVENTED, "workload.sizes=null", "workload.size=known")
GIVEN = {
    "kept": KNOWN,
    "charged": KNOWN,
    "classes": (*INVENTED, "workload.sizes=3", "workload.size=hidden"),
    "as_recorded": ("workload.applications=log", "workload.size=hidden"),
}
KEPT = (
    *("mean_response_time", "prediction_median_error", "share_beliefs_off"),
    *("area_share_beliefs_off", "share_fitted_starts", "saturated"),
)


def cut(log: Path, folder: Path) -> list[Path]:
    """Cut windows of a log, evenly spread over it, and return their files."""
    with gzip.open(log, "rt", encoding="utf-8") as lines:
        everything = list(lines)
    head = [line for line in everything if line.startswith(";")]
    body = [line for line in everything if not line.startswith(";")]
    step = (len(body) - LINES) // (WINDOWS - 1)
    found = []
    for window in range(WINDOWS):
        path = folder / f"window-{window}.swf"
        path.write_text("".join(head + body[window * step : window * step + LINES]), "utf-8")
        found.append(path)
    return found


def configured(
    asked: argparse.Namespace, truth: str, policy: str, predictor: str, file: Path | None
) -> dict[str, Any]:
    """Return the configuration of one simulation."""
    given = [f"workload.jobs={JOBS}", f"workload.load={asked.load}"]
    given += GIVEN[asked.setting]
    given += ["workload.types=all"] if file is None else ["workload=swf", f"workload.path={file}"]
    if truth == "measured":
        given += ["moldability=measured", f"moldability.path={asked.curves}"]
        given.append("moldability.first_count_max=1")
    given += [*asked.set, f"policy={policy}", f"predictor={predictor}", "baseline=null"]
    if predictor not in ORACLES.values():
        runs = 0 if asked.setting == "as_recorded" else RUNS
        charged = str(asked.setting == "charged").lower()
        given += [f"predictor.calibration={runs}", f"predictor.charge={charged}"]
    return composed(*given)


def scene_of(config: dict[str, Any], window: int, asked: argparse.Namespace) -> Scene:
    """Return the jobs of a window and their truth; a file of one window has its first."""
    trace = None
    if asked.log and asked.setting != "as_recorded":
        source = build(source_of(config["workload"]), "workload")
        trace = source.trace(Streams(config["seed"]), config["cluster"]["processors"])
    return set_scene(config, window, trace)


def with_runs(scene: Scene) -> Scene:
    """Return a scene with the calibration runs of learned predictors as jobs."""
    plan = plan_calibration(scene.truth, RUNS, scene.machine.processors, scene.streams)
    trace, truth = charge(scene.trace, scene.truth, plan)
    return replace(scene, trace=trace, truth=truth)


def study(asked: argparse.Namespace, files: Sequence[Path | None]) -> None:
    """Carry out all that is missing."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True
    )
    out = asked.out
    lines = out.read_text("utf-8").splitlines() if out.is_file() else []
    done = [{k: v for k, v in json.loads(line).items() if k in KEY} for line in lines]
    for truth in asked.truth:
        for window, file in enumerate(files):
            scene = None
            for one in asked.only:
                policy, predictor = one.split(",")
                log = asked.log.name if asked.log else "lublin"
                found = [
                    log,
                    asked.load,
                    asked.setting,
                    truth,
                    policy,
                    predictor,
                    window,
                    asked.set,
                ]
                key = dict(zip(KEY, found, strict=True))
                if key in done:
                    continue
                config = configured(asked, truth, policy, predictor, file)
                scene = scene_of(config, window, asked) if scene is None else scene
                learns = predictor not in ORACLES.values()
                paid = asked.setting == "charged" and not learns
                played = play(config, config, with_runs(scene) if paid else scene)
                area = sum(run.nprocs * run.runtime for run in played.known)
                summary = summarise(played.outcome, calibration=played.known, calibration_area=area)
                figures = {name: summary.get(name) for name in KEPT}
                line = {**key, "commit": described.stdout.strip(), **figures}
                with out.open("a", encoding="utf-8") as written:
                    written.write(json.dumps(line) + "\n")


KEY = ("log", "load", "setting", "truth", "policy", "predictor", "window", "set")


def main(arguments: Sequence[str] | None = None) -> None:
    """Carry out what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("setting", choices=GIVEN)
    parser.add_argument("out", type=Path)
    parser.add_argument("--curves", required=True, help="measured curves: folder or pattern")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--truth", nargs="+", default=["model", "measured"])
    parser.add_argument("--load", type=float, default=0.6)
    parser.add_argument("--only", nargs="+", default=["sa_easy,consensus"])
    parser.add_argument("--set", nargs="+", default=[])
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each window names its dropped jobs
        files: list[Path | None] = [None] * WINDOWS
        if asked.log:
            windows = cut(asked.log, Path(folder))
            files = [asked.log] * WINDOWS if asked.setting == "as_recorded" else list(windows)
        study(asked, files)


if __name__ == "__main__":
    main()
