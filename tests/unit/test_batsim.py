import json

import pytest

from workloads.errors import WorkloadError
from workloads.logs.batsim import BatsimWorkload, write_batsim
from workloads.models.lublin import Lublin
from workloads.streams import Streams

pytestmark = pytest.mark.fast

JOB = {"id": "w0!7", "subtime": 10, "walltime": 100.5, "res": 4, "profile": "p"}


def read_batsim(*given, **keys):
    return BatsimWorkload(*given, **keys).read()


def workload(tmp_path, profiles, jobs=(JOB,), **more):
    path = tmp_path / "workload.json"
    path.write_text(json.dumps({"nb_res": 8, "jobs": list(jobs), "profiles": profiles, **more}))
    return path


@pytest.mark.parametrize(
    ("profile", "seconds"),
    [
        ({"type": "delay", "delay": 20.25}, 20.25),
        ({"type": "parallel_homogeneous", "cpu": 5e9, "com": 0}, 5.0),
        ({"type": "parallel_homogeneous_total", "cpu": 8e9, "com": 0}, 2.0),
        ({"type": "parallel", "cpu": [1e9, 3e9], "com": [0, 0, 0, 0]}, 3.0),
        ({"type": "composed", "repeat": 3, "seq": ["d", "d"]}, 12.0),
    ],
)
def test_runtimes_of_profiles(tmp_path, profile, seconds):
    path = workload(tmp_path, {"p": profile, "d": {"type": "delay", "delay": 2}})
    trace = BatsimWorkload(path, speed=1e9).trace(Streams(1))
    job = trace.jobs.iloc[0]
    assert job["reference_runtime"] == seconds
    assert (job["job_id"], job["submit_time"], job["requested_processors"]) == (7, 10.0, 4)
    assert job["requested_time"] == 100.5
    assert trace.processors == 8


def test_a_written_trace_comes_back(tmp_path):
    trace = Lublin(jobs=100).trace(Streams(seed=3), 64)
    write_batsim(tmp_path / "w.json.gz", trace)
    again = BatsimWorkload(tmp_path / "w.json.gz").trace(Streams(1))
    assert again.jobs[list(trace.jobs)].equals(trace.jobs)
    assert again.processors == 64


def test_names_that_are_no_numbers_are_counted(tmp_path):
    jobs = [JOB | {"id": "a"}, JOB | {"id": "b"}]
    log = read_batsim(workload(tmp_path, {"p": {"type": "delay", "delay": 1}}, jobs))
    assert log.jobs["job_number"].tolist() == [1, 2]


def test_communication_is_refused_or_left_out(tmp_path):
    path = workload(tmp_path, {"p": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 5}})
    with pytest.raises(WorkloadError, match=r"workload\.communication=ignore"):
        read_batsim(path, speed=1e9)
    assert read_batsim(path, 1e9, "ignore").jobs["run_time"].tolist() == [1]


@pytest.mark.parametrize(
    ("profiles", "jobs", "named"),
    [
        ({}, [JOB], "profile p: there is no such profile"),
        ({"p": {"type": "smpi"}}, [JOB], "type 'smpi' depends on the platform"),
        ({"p": {"type": "delay", "delay": "x"}}, [JOB], "delay='x' is not a number"),
        ({"p": {"type": "parallel_homogeneous", "cpu": 1}}, [JOB], r"workload\.speed=1e9"),
        ({"p": {"type": "composed", "seq": ["p"]}}, [JOB], "job w0!7, profile p: .* itself$"),
        ({"p": {"type": "composed", "seq": 5}}, [JOB], "profile p: seq=5 is not a list"),
        ({"p": {"type": "composed", "seq": [], "repeat": "x"}}, [JOB], "repeat='x' is not a"),
        ({"p": {"type": "composed", "seq": [], "nb": -2}}, [JOB], "nb=-2 is below 0"),
        ({"p": {"type": "parallel", "cpu": ["a"]}}, [JOB], "cpu=.'a'. is not a list of numbers"),
        ({"p": {"type": "parallel", "cpu": [1], "com": "x"}}, [JOB], "profile p: com='x' is not"),
        ({"p": {"type": "parallel", "cpu": [1], "com": [[1], [2, 3]]}}, [JOB], "com=.* is not"),
        ({}, [{"id": 1, "res": 4}], "job 1: lacks subtime, profile"),
        ({}, [JOB | {"res": "four"}], "res='four' is not a number"),
        ({}, ["x"], "job 0: is not an object"),
        ([1], [JOB], "profiles must be an object"),
    ],
)
def test_defects_are_named(tmp_path, profiles, jobs, named):
    with pytest.raises(WorkloadError, match=named):
        read_batsim(workload(tmp_path, profiles, jobs))


def test_who_wants_no_processors_is_left_out(tmp_path):
    profile = {"type": "parallel_homogeneous_total", "cpu": 8e9, "com": 0}
    path = workload(tmp_path, {"p": profile}, [JOB | {"res": 0}, JOB | {"id": "w0!8"}])
    assert BatsimWorkload(path, speed=1e9).trace(Streams(1)).jobs["job_id"].tolist() == [8]


def test_files_and_arguments_that_are_refused(tmp_path):
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(WorkloadError, match=r"deep\.json: not a workload: nested too deeply"):
        read_batsim(tmp_path / "deep.json")
    (tmp_path / "empty.json").touch()
    with pytest.raises(WorkloadError, match="a Batsim workload has jobs and profiles"):
        read_batsim(tmp_path / "empty.json")
    with pytest.raises(WorkloadError, match="no such file; give the path of a Batsim workload"):
        read_batsim(tmp_path / "missing.json")
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(WorkloadError, match="not JSON"):
        read_batsim(tmp_path / "a.json")
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(WorkloadError, match="jobs and profiles"):
        read_batsim(tmp_path / "a.json")
    with pytest.raises(WorkloadError, match=r"workload\.path is not set"):
        BatsimWorkload(None)
    with pytest.raises(WorkloadError, match=r"workload\.speed=0"):
        BatsimWorkload("x", speed=0)
