import json
import os
import re

import pytest

from sim.results.artefacts import replacing
from sim.results.durable import FAILURE, LOCK, SUMMARY, read_failure, write_failure
from sim.results.provenance import code_checksum
from sim.sweeps.resume import (
    BATCH,
    Sweep,
    SweepProgress,
    SweepState,
    batch_size,
    fingerprint,
    is_marked,
    mark_finished,
    spread,
)

HYDRA = {
    "launcher": {"_target_": "basic"},
    "sweep": {"subdir": "${moldsim.folder:${hydra.job.override_dirname}}"},
    "job": {"config": {"override_dirname": {"exclude_keys": ["sim.progress"]}}},
}
RUNS = [[f"seed={number}"] for number in range(1, 8)]


def finish(folder, combination):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SUMMARY).write_text("{}")
    (folder / "manifest.json").write_text(json.dumps({"code": code_checksum()}))
    (folder / LOCK).touch()
    mark_finished(folder, combination, {}, {})


class Launcher:
    """Finishes runs; breaks at those that are named."""

    def __init__(self, folder, breaks=()):
        self.folder = folder
        self.breaks = breaks
        self.launched = []

    def __call__(self, batch, first):
        for combination in batch:
            self.launched.append(combination[0])
            if combination[0] in self.breaks:
                raise MemoryError("no more\nmemory")
            finish(self.folder / combination[0], combination)


def test_finished_runs_are_not_launched(tmp_path):
    for combination in RUNS[:3]:
        finish(tmp_path / combination[0], combination)
    (tmp_path / "seed=2" / SUMMARY).unlink()
    mark_finished(tmp_path / "seed=3", ["seed=3", "policy=easy"], {}, {})
    launcher = Launcher(tmp_path)
    Sweep(tmp_path, HYDRA, RUNS, launcher).run(None)
    assert sorted(launcher.launched) == [f"seed={number}" for number in range(2, 8)]


def test_runs_of_other_code_that_a_comparison_will_not_pair_are_counted(tmp_path, caplog):
    for combination in RUNS[:4]:
        finish(tmp_path / combination[0], combination)
    for name in ("seed=1", "seed=2", "seed=3"):
        (tmp_path / name / "manifest.json").write_text('{"code": "other"}')
    Sweep(tmp_path, HYDRA, RUNS[2:], Launcher(tmp_path)).run(None)
    assert f"2 other runs in {tmp_path} are of another version" in caplog.text
    caplog.clear()
    Sweep(tmp_path, HYDRA, RUNS, Launcher(tmp_path)).run(None)
    assert "of another version" not in caplog.text


def test_runs_are_handed_over_in_parts(tmp_path):
    sizes = []

    def launch(batch, first):
        sizes.append((first, len(batch)))
        Launcher(tmp_path)(batch, first)

    Sweep(tmp_path, HYDRA, RUNS, launch).run(3)
    assert sizes == [(0, 3), (3, 3), (6, 1)]


def test_a_run_that_kills_its_worker_is_marked_and_the_others_go_on(tmp_path):
    launcher = Launcher(tmp_path, breaks=("seed=3", "seed=6"))
    Sweep(tmp_path, HYDRA, RUNS, launcher).run(None)
    failed = sorted(path.parent.name for path in tmp_path.rglob(FAILURE))
    assert failed == ["seed=3", "seed=6"]
    assert read_failure(tmp_path / "seed=3") == "MemoryError: no more memory"
    assert len(list(tmp_path.rglob(SUMMARY))) == 5


def test_an_interrupt_is_passed_on(tmp_path):
    def launch(batch, first):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Sweep(tmp_path, HYDRA, RUNS, launch).run(None)


def test_names_of_the_users_own_are_left_to_hydra(tmp_path):
    for combination in RUNS:
        finish(tmp_path / combination[0], combination)
    launcher = Launcher(tmp_path)
    own = HYDRA | {"sweep": {"subdir": "${hydra.job.num}"}}
    Sweep(tmp_path, own, RUNS, launcher).run(None)
    assert len(launcher.launched) == len(RUNS)


def test_a_mark_is_of_one_configuration_and_goes_with_the_run(tmp_path):
    finish(tmp_path, ["a=1", "b=2"])
    assert is_marked(tmp_path, ["b=2", "a=1"])
    assert not is_marked(tmp_path, ["a=1"])
    assert fingerprint(["a=1"]) != fingerprint(["a=2"])
    with replacing(tmp_path) as new:
        (new / SUMMARY).write_text("{}")
    assert not is_marked(tmp_path, ["a=1", "b=2"])


def test_sizes_of_parts(monkeypatch, tmp_path):
    assert batch_size("hydra_plugins.JoblibLauncher") == BATCH
    control = tmp_path / "scontrol"
    control.write_text("#!/bin/sh\necho 'MaxArraySize            = 51'\n")
    control.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert batch_size("submitit_launcher.SlurmLauncher") == 50
    control.write_text("#!/bin/sh\nexit 1\n")
    assert batch_size("submitit_launcher.SlurmLauncher") == 1000


def test_progress_counts_and_is_logged(tmp_path, capsys):
    runs = [tmp_path / str(number) for number in range(4)]
    with SweepProgress(tmp_path, runs, before=2) as progress:
        finish(runs[0], [])
        write_failure(runs[1], "broken")
        runs[2].mkdir()
        (runs[2] / LOCK).write_text("process 1 on host")
        assert progress.look() == SweepState(done=3, failed=1, running=1, total=6)
    line = (tmp_path / "sweep.log").read_text().splitlines()[-1]
    expected = r"3 of 6 done, 1 failed, 1 running, 1 waiting, 0:00:0\d spent, 0:00:0\d left"
    assert re.search(expected, line)
    assert re.search(expected, capsys.readouterr().err)


def test_runs_whose_results_stand_are_done_once_a_sweep_is_over(tmp_path, capsys):
    run = tmp_path / "kept"
    finish(run, [])
    for path in run.iterdir():
        os.utime(path, (1e9, 1e9))
    with SweepProgress(tmp_path, [run]) as progress:
        assert progress.look() == SweepState(done=0, failed=0, running=0, total=1)
    assert "1 of 1 done, 0 failed, 0 running, 0 waiting" in capsys.readouterr().err


def test_a_tenth_of_unlike_runs_tells_the_time_that_is_left(tmp_path, monkeypatch):
    """Policies of 1, 3 and 20 s, twice as long on twice the jobs, in the order of a sweep."""
    seconds = {"a": 1.0, "b": 3.0, "c": 20.0}
    runs = [
        [f"policy={policy}", f"jobs={jobs}", f"seed={seed}"]
        for policy in seconds
        for jobs in (1, 2)
        for seed in range(8)
    ]
    took = [seconds[run[0][-1]] * int(run[1][-1]) for run in spread(runs)]
    whole, ended = sum(took), 0
    progress = SweepProgress(tmp_path, [tmp_path / str(k) for k in range(len(runs))])
    while sum(took[: ended + 1]) <= 0.1 * whole:
        ended += 1
    progress._begun, progress._ended_at = 0.0, sum(took[:ended])
    monkeypatch.setattr("sim.sweeps.resume.time.time", lambda: 0.1 * whole)
    progress._state = SweepState(done=ended, failed=0, running=1, total=len(runs))
    line = progress.line()
    hours, minutes, rest = re.search(r"(\d+):(\d+):(\d+) left", line).groups()
    left = 3600 * int(hours) + 60 * int(minutes) + int(rest)
    monkeypatch.setattr("sim.sweeps.resume.time.time", lambda: 0.1 * whole + 9.0)
    later = progress.line()
    assert f"{left // 60 % 60:02d}:{left % 60:02d} left" not in later  # it gets less
    assert 0.5 < left / (0.9 * whole) < 2.0
    assert sorted(spread(runs)) == sorted(runs)
