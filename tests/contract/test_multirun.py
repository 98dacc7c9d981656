"""Multiruns: folders by overrides, failures that stop nobody, restart, other processes."""

import json

from swf_samples import job_line, write_log

from sim.results.artefacts import FILES
from sim.results.durable import FAILURE

TINY = ("-m", "workload.jobs=40", "hydra.sweep.dir=sweep")
BOUNDS = "must be a whole number, at least 0 and at most 9,223,372,036,854,775,807"
JOBLIB = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")


def artefacts(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.name in FILES and path.name != "manifest.json"
    }


def stamps(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("summary.json")}


def test_folders_are_named_from_overrides_and_hold_no_unasked_baseline(command, tmp_path):
    assert command(*TINY, "policy=easy,fcfs").status == 0
    found = sorted(path.parent.name for path in (tmp_path / "sweep").rglob("summary.json"))
    assert found == ["policy=easy,workload.jobs=40", "policy=fcfs,workload.jobs=40"]


def test_what_was_asked_of_a_sweep_before_is_kept(command, tmp_path):
    folder = tmp_path / "sweep"
    for policy in ("easy", "easy", "fcfs"):
        assert command(*TINY, f"policy={policy}", "seed=1,2").status == 0
    asked = sorted(path.name for path in folder.glob("multirun*.yaml"))
    assert asked == ["multirun-1.yaml", "multirun.yaml"]
    assert "policy=easy" in (folder / "multirun-1.yaml").read_text(encoding="utf-8")
    assert "policy=fcfs" in (folder / "multirun.yaml").read_text(encoding="utf-8")


def test_a_baseline_on_the_command_line_runs(command, tmp_path):
    assert command(*TINY, "seed=1,2", "baseline=fcfs").status == 0
    assert len(list((tmp_path / "sweep").glob("*/baseline/summary.json"))) == 2


def test_a_failed_run_is_marked_and_the_others_go_on(command, tmp_path):
    ended = command(*TINY, "seed=-1,1,-2,2")
    assert ended.status == 1
    lines = [line for line in ended.err.splitlines() if line.startswith("failed: ")]
    assert lines == [
        f"failed: seed={seed},workload.jobs=40: seed={seed}: {BOUNDS}" for seed in (-1, -2)
    ]
    assert "Traceback" not in ended.err
    folder = tmp_path / "sweep"
    failed = sorted(path.parent.name for path in folder.rglob(FAILURE))
    assert failed == ["seed=-1,workload.jobs=40", "seed=-2,workload.jobs=40"]
    message = json.loads((folder / failed[0] / FAILURE).read_text())["message"]
    assert message == f"seed=-1: {BOUNDS}"
    assert len(list(folder.rglob("summary.json"))) == 2


def test_a_warning_is_told_once_with_how_many_runs_had_it(command, tmp_path):
    path = write_log(tmp_path, *(job_line(job_number=k, submit_time=60 * k) for k in range(1, 7)))
    log = ("workload=swf", f"workload.path={path}", "policy=fcfs", "baseline=null")
    asked = ("-m", *log, "seed=1,2,3", "workload.jobs=3,9", "hydra.sweep.dir=sweep")
    ended = command(*asked)
    assert ended.status == 0
    few = "workload.jobs=9: fewer jobs can run; all of them are taken: 6"
    told = [line for line in ended.err.splitlines() if few in line]
    assert told == [f"WARNING (3 runs): {path.name}: {few}"]
    size = [line for line in ended.err.splitlines() if "it states no size of its machine" in line]
    assert len(size) == 1
    assert size[0].startswith("WARNING (6 runs): ")
    logs = [one.read_text() for one in (tmp_path / "sweep").glob("*/moldsim.log")]
    assert sum(few in text for text in logs) == 3
    assert few not in command(*asked).err  # nothing is done again
    single = command(*log, "workload.jobs=2", "replications=3", "hydra.run.dir=one")
    assert single.err.count("it states no size of its machine") == 1


def test_a_bug_in_one_run_stops_no_other(command, tmp_path, monkeypatch):
    from sim.simulation import replay as run

    play = run.play

    def sometimes(config, *others):
        if config["seed"] == 1:
            raise RuntimeError("a bug")
        return play(config, *others)

    monkeypatch.setattr(run, "play", sometimes)
    ended = command(*TINY, "seed=1,2")
    assert ended.status == 1
    assert "failed: seed=1,workload.jobs=40: RuntimeError: a bug" in ended.err
    assert len(list((tmp_path / "sweep").rglob("summary.json"))) == 1


def test_a_restart_redoes_only_what_is_missing(command, tmp_path):
    command(*TINY, "seed=1,2,3")
    folder = tmp_path / "sweep"
    before = stamps(folder)
    whole = artefacts(folder)
    (folder / "seed=2,workload.jobs=40/summary.json").unlink()
    assert command(*TINY, "seed=1,2,3").status == 0
    after = stamps(folder)
    changed = {path.parent.name for path in after if after[path] != before.get(path)}
    assert changed == {"seed=2,workload.jobs=40"}
    assert artefacts(folder) == whole


def test_a_repaired_run_loses_its_mark_and_old_failures_are_not_repeated(command, tmp_path):
    log = tmp_path / "log.swf"
    log.write_text("")
    asked = ("workload=swf", "workload.path=log.swf", "workload.jobs=null", "seed=1,2")
    command(*TINY, "seed=-1,1")
    assert command(*TINY, *asked).status == 1
    log.write_text("; MaxProcs: 8\n1 0 -1 60 4 -1 -1 4 60 -1 1 1 1 1 1 1 -1 -1\n")
    ended = command(*TINY, *asked)
    assert ended.status == 0, ended.err
    assert "failed: " not in ended.err
    assert len(list((tmp_path / "sweep").rglob(FAILURE))) == 1


def test_joblib_gives_the_same_bytes_and_the_same_answer_to_failures(command, tmp_path):
    asked = ("seed=-1,1,2", "baseline=easy")
    serial = command(*TINY, *asked)
    parallel = command(*TINY[:-1], "hydra.sweep.dir=parallel", *asked, *JOBLIB)
    assert serial.status == parallel.status == 1
    assert [line for line in serial.err.splitlines() if line.startswith("failed: ")] == [
        line for line in parallel.err.splitlines() if line.startswith("failed: ")
    ]
    assert artefacts(tmp_path / "sweep") == artefacts(tmp_path / "parallel")
    assert len(artefacts(tmp_path / "parallel")) > 10
