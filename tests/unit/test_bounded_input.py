"""No file, however odd, keeps a reader busy for long, wraps a number or ends in a traceback."""

import gzip
import json

import pytest
from swf_samples import job_line, write_log

from workloads.errors import Limits, WorkloadError
from workloads.logs.batsim import BatsimWorkload
from workloads.logs.log import SwfWorkload
from workloads.logs.sacct import SacctWorkload
from workloads.logs.swf import read_swf
from workloads.streams import Streams

pytestmark = pytest.mark.fast

FAR = 2**62 + 1
SMALL = Limits(size=10_000, line=1000, jobs=50)
PROFILE = {"type": "delay", "delay": 1}
JOB = {"id": "1", "subtime": 0, "walltime": 10, "res": 1, "profile": "p"}
DIGITS = ("9" * 30, "9" * 400, "9" * 5000)


def batsim(folder, jobs, profiles=None, **more):
    path = folder / "workload.json"
    profiles = {"p": PROFILE} if profiles is None else profiles
    path.write_text(json.dumps({"nb_res": 8, "jobs": jobs, "profiles": profiles, **more}))
    return path


def read_batsim(*given, **keys):
    return BatsimWorkload(*given, **keys).read()


def read_sacct(path):
    return SacctWorkload(path).read()


def refused(read, *args, **more):
    """Return the message, which is one line, of a file that is not read."""
    with pytest.raises(WorkloadError) as found:
        read(*args, **more)
    assert "\n" not in str(found.value)
    return str(found.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("job_number", str(2**63 - 1)),
        ("job_number", str(FAR)),
        ("user", "1e30"),
        ("preceding_job", "-1e19"),
        ("allocated_processors", "1e30"),
        ("run_time", "9" * 400),
        ("submit_time", "9" * 5000),
    ],
)
def test_numbers_of_a_log_that_would_wrap_are_refused_with_their_place(tmp_path, field, value):
    message = refused(read_swf, write_log(tmp_path, job_line(), job_line(**{field: value})))
    assert ", line 2, field " in message
    assert f"({field})" in message
    assert message.endswith("is too large; the limit is 2^62")
    assert len(message) < 300


def test_a_fraction_is_no_user(tmp_path):
    message = refused(read_swf, write_log(tmp_path, job_line(user="1.5")))
    assert message.endswith("line 1, field 12 (user): '1.5' is not a whole number")


@pytest.mark.parametrize("digits", DIGITS)
def test_a_machine_of_many_digits_is_refused(tmp_path, digits):
    path = write_log(tmp_path, f"; MaxProcs: {digits}", job_line())
    message = refused(SwfWorkload(path).trace, Streams(1))
    assert "MaxProcs" in message
    assert len(message) < 300


def test_what_unpacks_to_more_than_the_limit_is_refused(tmp_path):
    path = tmp_path / "bomb.swf.gz"
    path.write_bytes(gzip.compress(b"\n" * 20_000))
    message = refused(read_swf, path, SMALL)
    assert message.endswith(
        "holds more than 10,000 bytes unpacked; workload.limits.size=N raises the limit"
    )
    plain = tmp_path / "large.swf"
    plain.write_bytes(b"\n" * 20_000)
    assert "workload.limits.size" in refused(read_swf, plain, SMALL)


def test_a_line_or_a_number_of_jobs_beyond_the_limit_is_refused(tmp_path):
    long = write_log(tmp_path, ";" + "x" * 2000)
    assert refused(read_swf, long, SMALL).endswith(
        "has a line of more than 1,000 bytes; workload.limits.line=N raises the limit"
    )
    many = write_log(tmp_path, *[job_line(job_number=k) for k in range(51)])
    assert refused(read_swf, many, SMALL).endswith(
        "holds more than 50 jobs; workload.limits.jobs=N raises the limit"
    )
    assert len(read_swf(many, Limits(jobs=51)).jobs) == 51
    path = batsim(tmp_path, [JOB | {"id": str(k)} for k in range(60)])
    assert "more than 50 jobs" in refused(read_batsim, path, limits={"jobs": 50})


def test_limits_are_keys_of_a_log(tmp_path):
    path = write_log(tmp_path, *[job_line(job_number=k) for k in range(5)])
    assert "workload.limits.jobs" in refused(
        SwfWorkload(path, limits={"jobs": 4}).trace, Streams(1)
    )
    assert refused(SwfWorkload, path, limits={"jobs": 0}) == (
        "workload.limits.jobs=0: must be a whole number of at least 1"
    )
    assert refused(SwfWorkload, path, limits={"depth": 3}) == (
        "workload.limits.depth: no such limit; there are size, line, jobs, nesting"
    )


def composed(levels, width):
    parts = {f"c{k}": {"type": "composed", "seq": [f"c{k + 1}"] * width} for k in range(levels)}
    return parts | {f"c{levels}": {"type": "delay", "delay": 1}}


def test_nested_profiles_are_worked_out_once(tmp_path):
    path = batsim(tmp_path, [JOB | {"profile": "c0"}], composed(30, 3))
    assert read_batsim(path).jobs["run_time"].tolist() == [3**30]
    deep = batsim(tmp_path, [JOB | {"profile": "c0"}], composed(2000, 1))
    assert refused(read_batsim, deep).endswith(
        "profile c0: profiles nest deeper than 100; workload.limits.nesting=N raises the limit"
    )
    assert read_batsim(deep, limits={"nesting": 3000}).jobs["run_time"].tolist() == [1]


def test_work_that_is_shared_within_nested_profiles(tmp_path):
    profiles = {
        "p": {"type": "composed", "repeat": 2, "seq": ["d", "w"]},
        "d": {"type": "delay", "delay": 3},
        "w": {"type": "parallel_homogeneous_total", "cpu": 8e9},
    }
    path = batsim(tmp_path, [JOB | {"id": str(k), "res": k} for k in (1, 4)], profiles)
    assert read_batsim(path, 1e9).jobs["run_time"].tolist() == [22, 10]


@pytest.mark.parametrize("digits", DIGITS)
def test_long_numbers_of_a_batsim_workload(tmp_path, digits):
    path = batsim(tmp_path, [JOB | {"id": digits}])
    assert read_batsim(path).jobs["job_number"].tolist() == [1]
    for key in ("subtime", "res", "walltime"):
        text = path.read_text().replace(f'"{key}": {JOB[key]}', f'"{key}": {digits}')
        odd = tmp_path / "odd.json"
        odd.write_text(text)
        assert len(refused(read_batsim, odd)) < 400
    path = batsim(tmp_path, [JOB], {"p": {"type": "composed", "seq": ["q"], "repeat": 1e308},
                                    "q": {"type": "delay", "delay": 1e308}})  # fmt: skip
    refused(BatsimWorkload(path).trace, Streams(1))


HEADER = "JobIDRaw|User|Submit|Start|ElapsedRaw|TimelimitRaw|AllocCPUS|State|JobName"
ROW = dict(
    zip(HEADER.split("|"), ["7", "2", "100", "110", "60", "5", "4", "COMPLETED", "a"], strict=True)
)


@pytest.mark.parametrize("digits", DIGITS)
@pytest.mark.parametrize("column", ["Submit", "ElapsedRaw", "TimelimitRaw", "AllocCPUS"])
def test_long_numbers_of_an_accounting_dump(tmp_path, column, digits):
    path = tmp_path / "jobs.txt"
    path.write_text(f"{HEADER}\n" + "|".join((ROW | {column: digits}).values()) + "\n")
    message = refused(read_sacct, path)
    assert f"line 2, column {column}" in message
    assert len(message) < 300


@pytest.mark.parametrize("digits", DIGITS)
def test_long_names_of_an_accounting_dump_are_names(tmp_path, digits):
    path = tmp_path / "jobs.txt"
    rows = [ROW | {"JobIDRaw": digits, "User": digits}, ROW]
    path.write_text("\n".join([HEADER, *("|".join(row.values()) for row in rows)]) + "\n")
    jobs = read_sacct(path).jobs
    assert jobs["job_number"].tolist() == [-1, 7]
    assert sorted(jobs["user"].tolist()) == [1, 2]


def test_a_duration_of_many_days(tmp_path):
    path = tmp_path / "jobs.txt"
    header = HEADER.replace("ElapsedRaw", "Elapsed")
    path.write_text(f"{header}\n7|2|100|110|{'9' * 400}-01:00:00|5|4|COMPLETED|a\n")
    assert "column Elapsed" in refused(read_sacct, path)
