"""Broken files and configurations: one clear line, status 2, nothing that looks like a result."""

import gzip

import pytest

from sim.results.artefacts import FILES

TINY = ("workload.jobs=30", "baseline=null", "hydra.run.dir=run")

CONFIGURATIONS = [
    (["seed=-1"], "seed=-1", "at least 0"),
    (["replications=0"], "replications=0", "at least 1"),
    (["precision=2"], "precision=2", "between 0 and 1"),
    (["precision=0.1", "most_replications=5"], "most_replications=5", "at least the 10"),
    (["precision=0.1", "objective_of=change", "baseline=null"], "objective_of=change", "baseline"),
    (["precision=0.1", "objective=speed"], "objective=speed", "summary.json"),
    (["precision=0.1", "objective=steady"], "objective=steady", "a number"),
    (["overrun=ignore"], "overrun=ignore", "extend, kill"),
    (["cluster.processors=0"], "cluster.processors=0", "at least 1"),
    (["cluster.processors=100000000000000000000"], "cluster.processors=1", "20,000,000"),
    (["workload.jobs=100000000000000000000"], "workload.jobs=1", "1,000,000,000"),
    (["cluster.processors=many"], "cluster.processors=many", "whole number"),
    (["cluster.processors_per_node=0"], "cluster.processors_per_node", "at least 1"),
    (["workload.jobs=0"], "workload.jobs=0", "at least 1"),
    (["workload.jobs=ten"], "workload.jobs=ten", "whole number"),
    (["workload.load=-0.5"], "workload.load=-0.5", "positive"),
    (["workload.load=high"], "workload.load=high", "number"),
    (["workload.estimates=guess"], "guess", "tsafrir"),
    (["workload.applications=0"], "applications", "at least 1"),
    (["workload.applications=log"], "workload.applications=log", "records no applications"),
    (["workload.popularity=-1"], "popularity", "at least 0"),
    (["workload.size=secret"], "secret", "hidden"),
    (["moldability.share=1.5"], "share", "1.5"),
    (["moldability.noise=-0.1"], "noise", "-0.1"),
    (["moldability.noise=500"], "moldability.noise", "at most 10"),
    (["predictor=noisy_oracle", "predictor.spread=-1"], "predictor.spread", "between 0 and 10"),
    (["predictor=noisy_oracle", "predictor.bias=null"], "predictor.bias=null", "a number"),
    (["predictor=noisy_oracle", "predictor.bias=1e-320"], "predictor.bias", "between 1e-06"),
    (["moldability.serial_max=99999999999999999999"], "moldability.serial_max", "99999999999999"),
    (["moldability.sigma_max=1e308"], "moldability.sigma_max", "1000"),
    (["cluster=failing", "cluster.mtbf=1e-300"], "cluster.mtbf", "at least 1 and"),
    (["cluster=failing", "cluster.shape=1e-5"], "cluster.shape", "at least 0.05"),
    (["cluster=failing", "cluster.factor=1e308"], "cluster.factor", "at most 1,000,000"),
    (["cluster=shared", "cluster.history=1e15"], "cluster.history", "at most 1,000,000 samples"),
    (["cluster=shared", "cluster.cpu.duration=[1e-9,1e-9]"], "cluster.cpu.duration", "0.01 <"),
    (["evolving=adaptive", "evolving.cycles=99999999999999999999"], "cycles", "1 to 10,000,000"),
    (["predictor.calibration=99999999999999999999"], "predictor.calibration", "at most 10,000"),
    (["policy=lpa", "policy.allocation.counts=-inf", "menu=all"], "counts", "powers_of_two, all"),
    (
        ["policy=conservative", "policy.backfill.replan=perhaps"],
        "policy.backfill.replan=perhaps",
        "true or false",
    ),
    (["policy.backfill=easy"], "policy.backfill=easy", "policy/backfill=easy"),
    (["policy.allocation.adopters=2"], "policy.allocation.adopters", "2"),
    (["policy._target_=os.system"], "policy._target_=os.system", "must be a class with begin"),
    (["baseline=best"], "baseline=best", "easy"),
    (["baseline=1"], "baseline=1", "easy"),
    (["predictor=oracle", "+predictor.trust=1"], "predictor.trust", "allowed: none"),
    (["metrics.warmup=-1"], "metrics.warmup", "-1"),
    (["cluster=shared", "cluster.cpu.duration=[100,inf]"], "cluster.cpu.duration", "upper < inf"),
    (["cluster=shared", "cluster.cpu.at_once=[null,3]"], "cluster.cpu.at_once", "whole numbers"),
    (["cluster=shared", "cluster.cpu.at_once=[1]"], "cluster.cpu.at_once", "[1]"),
    (["cluster=shared", "cluster/cpu=bursty", "cluster.cpu.tail=nan"], "cluster.cpu.tail", "nan"),
    (["cluster=shared", "cluster.sample_every=0"], "cluster.sample_every", "positive"),
    (["cluster=shared", "cluster.sample_noise=inf"], "cluster.sample_noise", "finite"),
    (["predictor=rational", "predictor.computation=-1"], "predictor.computation=-1", "0 to 9"),
    (["evolving=adaptive", "evolving.cost=-1"], "evolving.cost", "at least 0"),
    (["evolving=adaptive", "evolving.cost_per_cell=inf"], "evolving.cost_per_cell", "finite"),
    (["workload=swf"], "workload.path", "path"),
    (["workload=swf", "workload.path=nowhere.swf"], "nowhere.swf", "no such file"),
    (["workload=swf", "workload.path=."], ".", "folder"),
]

JOB = "1 0 -1 60 4 -1 -1 4 60 -1 1 1 1 1 1 1 -1 -1\n"

FILES_OF_LINES = {
    "empty": ("", ["broken.swf"]),
    "comments alone": ("; MaxProcs: 8\n", ["broken.swf"]),
    "a field too few": (
        JOB + "2 5 -1 60 4 -1 -1 4 60 -1 1 1 1 1 1 1 -1\n",
        ["broken.swf, line 2", "17 fields"],
    ),
    "a field too many": (JOB + JOB.strip() + " 7\n", ["broken.swf, line 2", "19 fields"]),
    "a word for a number": (
        JOB.replace(" 60 4", " soon 4", 1),
        ["broken.swf, line 1, field 4", "soon"],
    ),
    "no number in the header": ("; MaxProcs: lots\n" + JOB, ["broken.swf", "MaxProcs", "lots"]),
    "a runtime of ages": (
        JOB.replace(" 60 4", " 1e300 4", 1),
        ["broken.swf, line 1, field 4 (run_time)", "1e300", "too large"],
    ),
    "a submit time of ages": (
        JOB.replace("1 0 -1", "1 1e18 -1", 1),
        ["broken.swf", "job 1", "submit_time=1e+18", "at most 1e+12"],
    ),
    "more processors than there can be": (
        JOB.replace(" 60 4", " 60 2000000000", 1),
        ["broken.swf", "job 1", "requested_processors=2e+09", "at most 1,000,000,000"],
    ),
    "nothing that can run": (
        JOB.replace(" 60 4", " -1 4", 1),
        ["broken.swf", "none of 1 jobs", "runtime"],
    ),
    "all wider than the machine": (
        "; MaxProcs: 2\n" + JOB,
        ["broken.swf", "none of 1 jobs", "wider"],
    ),
    "an infinite runtime": (
        JOB.replace(" 60 4", " inf 4", 1),
        ["broken.swf, line 1, field 4", "inf"],
    ),
}


def assert_refused(ended, folder, *fragments):
    lines = ended.err.splitlines()
    errors = [line for line in lines if not line.startswith("WARNING: ")]
    assert ended.status == 2, ended
    assert len(errors) == 1, ended.err
    assert errors[0].startswith("error: ")
    for fragment in fragments:
        assert fragment in errors[0]
    assert "Traceback" not in ended.err + ended.out
    assert [path for path in folder.rglob("*") if path.name in FILES] == []


@pytest.mark.parametrize(
    ("overrides", "named", "allowed"), CONFIGURATIONS, ids=lambda value: str(value)[:50]
)
def test_a_broken_configuration_is_refused(command, tmp_path, overrides, named, allowed):
    ended = command(*TINY, *overrides)
    assert_refused(ended, tmp_path, named, allowed)


@pytest.mark.parametrize("kind", FILES_OF_LINES)
def test_a_broken_log_is_refused_with_file_and_line(command, tmp_path, kind):
    text, fragments = FILES_OF_LINES[kind]
    (tmp_path / "broken.swf").write_text(text)
    ended = command("workload=swf", "workload.path=broken.swf", *TINY)
    assert_refused(ended, tmp_path, *fragments)


def test_a_cut_gzip_file_is_refused(command, tmp_path):
    whole = gzip.compress(JOB.encode() * 1000)
    (tmp_path / "cut.swf.gz").write_bytes(whole[: len(whole) // 2])
    ended = command("workload=swf", "workload.path=cut.swf.gz", *TINY)
    assert_refused(ended, tmp_path, "cut.swf.gz")


def test_bytes_that_are_no_text_are_refused(command, tmp_path):
    (tmp_path / "noise.swf").write_bytes(bytes(range(128, 256)) * 20)
    ended = command("workload=swf", "workload.path=noise.swf", *TINY)
    assert_refused(ended, tmp_path, "noise.swf")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("sed=1", "there is no such key; did you mean seed?"),
        ("+sed=1", "there is no such key; did you mean seed?"),
        ("workload=swff", "there is no such option; did you mean swf?"),
        ("workload=moon", "there is no such option; there are archive, "),
        ("workload.job=3", "there is no such key; did you mean workload.jobs"),
        ("polcy=easy", "there is no such key; did you mean policy"),
        ("seed=x", "must be a whole number"),
        ("replications=1.5", "must be a whole number"),
        ("precision=x", "must be a number"),
        ("seed=[1", "cannot be read as KEY=VALUE (no viable alternative at input '[1')"),
        ("policy=null", "must be the name of an option"),
        ("hydra.run.dir=/proc/x", "No such file or directory"),
        ("policy._target_=sim.study.subprocess", "there is no such class"),
        ("policy._target_=sim.results.durable.Path", "there is no such class"),
    ],
)
def test_what_hydra_refuses_is_one_line(command, tmp_path, override, said):
    ended = command(*TINY, override)
    assert ended.status == 2
    assert ended.err.count("\n") == 1
    assert ended.err.startswith("error: ")
    assert override.lstrip("+").removeprefix("hydra.run.dir=") in ended.err
    assert said in ended.err
    assert [path for path in tmp_path.rglob("*") if path.name in FILES] == []


def test_a_file_in_the_place_of_a_sweeps_folder_is_told(command, tmp_path):
    (tmp_path / "file").write_text("")
    ended = command("-m", "hydra.sweep.dir=file", "policy=easy,sa", *TINY)
    assert (ended.status, ended.err) == (2, "error: file: Not a directory\n")


def test_a_log_in_the_place_of_an_override_is_told_its_keys(command, tmp_path):
    (tmp_path / "log.swf").write_text("; MaxProcs: 8\n" + JOB)
    ended = command(*TINY, "log.swf")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err == "error: log.swf: a log is workload=swf workload.path=log.swf\n"
    assert command(*TINY, "x" * 5000).status == 2


def test_a_recoverable_defect_is_counted_and_the_run_goes_on(command, tmp_path):
    bad = JOB.replace("1 0", "2 10", 1).replace(" 60 4", " -1 4", 1)
    (tmp_path / "log.swf").write_text("; MaxProcs: 8\n" + JOB + bad)
    ended = command("workload=swf", "workload.path=log.swf", *TINY)
    assert ended.status == 0, ended.err
    assert "WARNING: log.swf: 1 of 2 jobs left out: 1 unknown_runtime" in ended.err
    assert '"dropped_jobs": 1' in (tmp_path / "run/summary.json").read_text()


def test_the_same_defect_is_refused_on_request(command, tmp_path):
    (tmp_path / "log.swf").write_text(
        JOB + JOB.replace("1 0", "2 10", 1).replace(" 60 4", " -1 4", 1)
    )
    asked = ("workload=swf", "workload.path=log.swf", "workload.cleaning.unknown_runtime=error")
    assert_refused(command(*TINY, *asked), tmp_path, "log.swf", "2", "runtime")


def test_results_of_an_earlier_run_survive_a_refused_one(command, tmp_path):
    assert command(*TINY).status == 0
    before = (tmp_path / "run/summary.json").read_bytes()
    ended = command(*TINY, "seed=-1")
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert "seed=-1" in ended.err
    assert (tmp_path / "run/summary.json").read_bytes() == before
