"""Runs from the command line: layout, baseline, replications, determinism."""

import json
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from predictors.compiling import kernel_folder
from sim.results.artefacts import EXPORTS, FILES, PICTURES
from sim.results.durable import LOCK
from sim.statistics import t_interval

ROOT = Path(__file__).resolve().parents[2]
TINY = ("workload.jobs=40",)
ASKED_FOR = {*EXPORTS, *PICTURES} - {"schedule.png"}
WHOLE = {*FILES} - {"failure.json"} - ASKED_FOR


def names(folder):
    files = {path.name for path in folder.iterdir() if path.is_file() and path.suffix != ".log"}
    return files - {LOCK}


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def same_bytes(one, other):
    return all(
        (one / name).read_bytes() == (other / name).read_bytes()
        for name in WHOLE - {"manifest.json"}
    )


def test_a_run_leaves_all_artefacts_its_own_and_its_baselines(command, tmp_path):
    assert command(*TINY, "hydra.run.dir=run").status == 0
    assert names(tmp_path / "run") == WHOLE
    assert names(tmp_path / "run/baseline") == WHOLE
    assert summary(tmp_path / "run")["jobs"] == 40
    text = (tmp_path / "run/summary.json").read_text()
    assert str(tmp_path) not in text
    assert list(json.loads(text)) == sorted(json.loads(text))


def test_the_verdict_is_the_first_line_and_warnings_stand_below_the_table(tmp_path):
    told = subprocess.run(
        [sys.executable, "-m", "sim", "workload.jobs=600", "baseline=null",
         "workload.time_limit=7200", "picture=none", f"hydra.run.dir={tmp_path}"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert re.match(r"\d+ of 600 jobs molded, 0 resized", told[0])
    warned = [place for place, line in enumerate(told) if "are too short for the runtimes" in line]
    assert warned == [len(told) - 1]


def test_the_summary_says_how_noisily_sizes_repeat(command, tmp_path):
    sizes = ("workload.sizes=2", "workload.applications=3", "workload.size_noise=0")
    assert command(*TINY, *sizes, "hydra.run.dir=run").status == 0
    figures = summary(tmp_path / "run")
    assert figures["sizes_per_application"] == 2
    jobs = pd.read_parquet(tmp_path / "run/jobs.parquet")
    serial = jobs["efficiency"] * jobs["held_area"]
    leftover = np.log(serial / jobs["size"])
    assert figures["noise_spread"] == pytest.approx(leftover.std(ddof=0))
    assert figures["median_noise"] == pytest.approx(leftover.abs().median())


def test_policy_overrides_do_not_reach_the_baseline(command, tmp_path):
    molded = ("policy/backfill=none", "policy/order=sjf", "policy.allocation.adopters=0.5")
    shown = command(*TINY, *molded, "hydra.run.dir=run").out
    assert f", {', '.join(molded)} by " in " ".join(shown.split())
    command(*TINY, "policy=easy", "predictor=user_estimate", "baseline=null", "hydra.run.dir=easy")
    assert same_bytes(tmp_path / "run/baseline", tmp_path / "easy")
    assert not same_bytes(tmp_path / "run", tmp_path / "easy")
    assert not (tmp_path / "easy/baseline").exists()


def test_same_seed_same_bytes_other_seed_other_jobs(command, tmp_path):
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        command(*TINY, f"seed={seed}", "baseline=null", f"hydra.run.dir={folder}")
    assert same_bytes(tmp_path / "a", tmp_path / "b")
    assert not same_bytes(tmp_path / "a", tmp_path / "c")


def test_another_predictor_replays_the_same_jobs(command, tmp_path):
    given = ["job_id", "application", "size", "submit_time", "requested_processors"]
    given += ["requested_time", "reference_runtime"]
    tables = []
    for predictor in ("oracle", "noisy_oracle", "user_estimate"):
        command(*TINY, f"predictor={predictor}", "baseline=null", f"hydra.run.dir={predictor}")
        tables.append(pd.read_parquet(tmp_path / predictor / "jobs.parquet")[given])
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])


def test_replications_run_inside_one_job_and_are_averaged(command, tmp_path):
    command(*TINY, "replications=3", "hydra.run.dir=run")
    command(*TINY, "hydra.run.dir=single")
    run = tmp_path / "run"
    parts = [run / f"replication={k}" for k in range(3)]
    waits = [summary(part)["mean_wait_time"] for part in parts]
    assert len(set(waits)) == 3
    assert summary(run)["mean_wait_time"] == pytest.approx(sum(waits) / 3)
    assert summary(run)["replications"] == 3
    assert names(run) == {"summary.json", "manifest.json"}
    drawn, *others = parts
    assert names(drawn) == names(drawn / "baseline") == WHOLE
    drawn_once = WHOLE - {"schedule.png"}
    assert all(names(part) == names(part / "baseline") == drawn_once for part in others)
    assert same_bytes(parts[0], tmp_path / "single")


def test_precision_replicates_until_the_mean_is_as_precise_as_asked(command, tmp_path):
    asked = (*TINY, "policy=sa_easy", "predictor=oracle", "replications=3", "most_replications=12")
    rule = ("precision=0.4", "objective_of=change", "hydra.run.dir=run")
    ended = command(*asked, *rule)
    run = tmp_path / "run"
    count = summary(run)["replications"]
    pairs = [
        [
            summary(run / f"replication={k}" / part)["mean_response_time"]
            for part in ("", "baseline")
        ]
        for k in range(count)
    ]
    ratios = [own / base for own, base in pairs]
    assert 3 <= count < 12
    assert t_interval(ratios).relative == summary(run)["precision_reached"] <= 0.4
    assert count == 3 or t_interval(ratios[:-1]).relative > 0.4
    assert summary(run)["precision_met"] is True
    assert "Precision reached" in ended.out
    assert not (run / f"replication={count}").exists()
    ended = command(*asked, "precision=0.001", "baseline=null", "hydra.run.dir=never")
    assert summary(tmp_path / "never")["replications"] == 12
    assert "was not reached" in ended.out


def test_fewer_replications_into_the_same_folder_leave_no_others(command, tmp_path):
    command(*TINY, "baseline=null", "replications=2", "hydra.run.dir=run")
    command(*TINY, "baseline=null", "hydra.run.dir=run")
    assert names(tmp_path / "run") == WHOLE
    assert not list((tmp_path / "run").glob("replication=*"))


def test_what_a_user_keeps_in_a_runs_folder_stays(command, tmp_path):
    command(*TINY, "hydra.run.dir=run")
    (tmp_path / "run/baseline/notes.txt").write_text("mine")
    command(*TINY, "baseline=null", "hydra.run.dir=run")
    assert names(tmp_path / "run/baseline") == {"notes.txt"}
    assert (tmp_path / "run/baseline/notes.txt").read_text() == "mine"


def test_an_unexpected_error_leaves_nothing_and_keeps_its_traceback(command, tmp_path, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("a bug")

    monkeypatch.setattr("sim.results.artefacts.write_run", broken)
    ended = command(*TINY, "hydra.run.dir=run")
    assert ended.status == 1
    assert "RuntimeError: a bug" in ended.err
    assert not names(tmp_path / "run") & WHOLE


def test_a_reader_that_goes_away_takes_no_artefact_along(tmp_path):
    asked = f"{sys.executable} -m sim workload.jobs=40 hydra.run.dir={tmp_path / 'run'} | true"
    subprocess.run(["bash", "-c", asked], cwd=ROOT, check=True, capture_output=True)
    assert names(tmp_path / "run") == WHOLE


def test_an_interrupt_while_modules_load_is_still_one(command, tmp_path, monkeypatch):
    def interrupted(*_: object) -> None:
        raise SystemError("an extension module did not initialise") from KeyboardInterrupt()

    monkeypatch.setattr("sim.simulation.replay.Run.carry_out", interrupted)
    ended = command(*TINY, "hydra.run.dir=run")
    assert (ended.status, ended.err.splitlines()[0]) == (
        130, "interrupted: no unfinished result was saved"
    )  # fmt: skip
    assert not names(tmp_path / "run") & WHOLE


MET = {
    "by code made from text": """
        def run(*_):
            exec("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    """,
    "and made another error": """
        def run(*_):
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                pass
            raise ImportError("a module could not be loaded")
    """,
}


@pytest.mark.parametrize("way", MET)
def test_an_interrupt_ends_with_its_status_however_it_is_met(tmp_path, way):
    code = "import os, signal\nimport sim.simulation.replay\n" + textwrap.dedent(MET[way])
    code += "sim.simulation.replay.Run.carry_out = run\nfrom sim.app import main\nmain()\n"
    (tmp_path / "interrupted.py").write_text(code, encoding="utf-8")
    asked = [sys.executable, "-m", "interrupted", *TINY, f"hydra.run.dir={tmp_path / 'run'}"]
    paths = {"PYTHONPATH": f"{ROOT}:{tmp_path}", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    paths["NUMBA_CACHE_DIR"] = str(kernel_folder().parent)
    ended = subprocess.run(asked, env=paths, capture_output=True, text=True, check=False)
    assert ended.stderr.strip() == "interrupted: no unfinished result was saved"
    assert ended.returncode == 130
    assert not names(tmp_path / "run") & WHOLE


def test_an_interrupted_run_leaves_nothing(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "sim", "workload.jobs=200000", f"hydra.run.dir={tmp_path / 'run'}"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    while not (tmp_path / "run/.hydra/overrides.yaml").exists() and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert re.search(r"^interrupted: ", err, re.MULTILINE)
    assert "Traceback" not in err
    assert not names(tmp_path / "run") & WHOLE
