import re

import pytest

from workloads.errors import WorkloadError
from workloads.logs.formats import guess_format
from workloads.logs.sacct import NEEDED, SACCT, SacctWorkload
from workloads.streams import Streams

pytestmark = pytest.mark.fast

# ruff: noqa: E501
HEADER = "JobID|User|Submit|Start|End|Elapsed|Timelimit|ReqCPUS|NCPUS|NNodes|State|JobName"
ROWS = (
    "17|ann|2024-03-01T00:00:00|2024-03-01T00:00:10|2024-03-01T00:01:10|00:01:00|1-00:00:00|4|8|2|COMPLETED|a|b",
    "17.batch||2024-03-01T00:00:00|2024-03-01T00:00:10|2024-03-01T00:01:10|00:01:00||8|8|2|COMPLETED|batch",
    "18_3|bob|2024-03-01T00:00:05|2024-03-01T00:00:05|2024-03-01T00:00:35|00:00:30|01:00:00|1|1|1|TIMEOUT|c",
    "18_4|bob|2024-03-01T00:00:05|2024-03-01T00:00:05|2024-03-01T00:00:36|00:00:31|UNLIMITED|1|1|1|CANCELLED by 7|c",
    "19|ann|2024-03-01T00:00:06|Unknown|Unknown|00:00:00|10:00|1|0|0|CANCELLED by 7|d",
    "20|ann|2024-03-01T00:00:07|2024-03-01T00:00:10|Unknown|00:00:50|10:00|1|1|1|RUNNING|d",
)


def read_sacct(*given):
    return SacctWorkload(*given).read()


def dump(tmp_path, header=HEADER, rows=ROWS):
    path = tmp_path / "jobs.txt"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_fields_of_a_dump(tmp_path):
    log = read_sacct(dump(tmp_path))
    jobs = log.jobs
    assert jobs["job_number"].tolist() == [17, 18, 18, 19, 20]
    assert jobs["submit_time"].tolist() == [1709251200 + s for s in (0, 5, 5, 6, 7)]
    assert jobs["wait_time"].tolist() == [10, 0, 0, -1, 3]
    assert jobs["run_time"].tolist() == [60, 30, 31, 0, -1]
    assert jobs["allocated_processors"].tolist() == [8, 1, 1, 0, 1]
    assert jobs["requested_processors"].tolist() == [4, 1, 1, 1, 1]
    assert jobs["requested_time"].tolist() == [86400, 3600, -1, 600, 600]
    assert jobs["status"].tolist() == [1, 0, 5, 5, -1]
    assert jobs["user"].tolist() == [1, 2, 2, 1, 1]
    assert jobs["executable"].tolist() == [1, 2, 2, 3, 3]


def test_jobs_of_a_dump(tmp_path, caplog):
    trace = SacctWorkload(dump(tmp_path)).trace(Streams(1))
    assert trace.jobs["job_id"].tolist() == [17, 18, 21]
    assert trace.dropped == {"cancelled_before_start": 1, "unknown_runtime": 1}
    assert "1 unknown_runtime (has not ended, or has no valid runtime)" in caplog.text
    assert trace.repaired["repeated_number"] == 1
    assert trace.processors == 10  # held at once; the widest job has 8


def test_names_that_differ_by_numbers_alone_are_one_application(tmp_path):
    row = ROWS[2].removesuffix("|c").replace("bob", "{}").replace("18_3", "{}")
    names = [f"{kind}_{k:03d}" for k in range(12) for kind in ("relax", "md4")]
    rows = [f"{row.format(k, 'ann' if k % 2 else 'bob')}|{name}" for k, name in enumerate(names, 1)]
    rows += [f"{row.format(99, 'bob')}|2024", f"{row.format(98, 'bob')}|relax_7"]
    log = read_sacct(dump(tmp_path, rows=rows))
    assert log.names.tolist()[:4] == [0, 1, 0, 1]
    assert log.names.tolist()[-2:] == [-1, 0]  # digits alone are no name
    mixed = [line.replace("ann", "bob") for line in rows]
    trace = SacctWorkload(dump(tmp_path, rows=mixed)).trace(Streams(1))
    assert trace.identity == "user_name"
    assert trace.jobs["application"].nunique() == 3


def test_tasks_that_are_alike_are_different_jobs(tmp_path):
    """Tasks of an array, and parts of a heterogeneous job, often share all they say."""
    row = ROWS[2]
    names = ("18_3", "18_4", "18_4", "30+0", "30+1")
    rows = [row.replace("18_3", name, 1) for name in names]
    trace = SacctWorkload(dump(tmp_path, rows=[*rows, ROWS[0]])).trace(Streams(1))
    assert trace.dropped == {"duplicate": 1}
    assert sorted(trace.jobs["job_id"]) == [17, 18, 30, 31, 32]


def test_files_that_are_no_dump(tmp_path):
    for name, problem in (("none.txt", "give the path of an acc"), ("empty.txt", "for each job")):
        (tmp_path / "empty.txt").touch()
        with pytest.raises(WorkloadError, match=rf"{name}: .*{problem}"):
            read_sacct(tmp_path / name)


def test_zone_unit_and_offsets(tmp_path):
    rows = (ROWS[0], ROWS[0].replace("T00:00:00|", "T00:00:00-06:00|", 1))
    log = read_sacct(dump(tmp_path, rows=rows), "America/Costa_Rica", "nodes")
    assert log.jobs["submit_time"].tolist() == [1709251200 + 6 * 3600] * 2
    assert log.jobs["allocated_processors"].tolist() == [2, 2]


def test_raw_columns_are_preferred(tmp_path):
    header = "JobIDRaw|Submit|Start|ElapsedRaw|TimelimitRaw|AllocCPUS|State|"
    log = read_sacct(dump(tmp_path, header, ["5|100|110|7|Partition_Limit|3|NODE_FAIL|"]))
    assert log.jobs["run_time"].tolist() == [7]
    assert log.jobs["submit_time"].tolist() == [100]
    assert log.jobs["requested_time"].tolist() == [-1]
    assert log.jobs["status"].tolist() == [0]


@pytest.mark.parametrize("delimiter", [";", ",", "\t"])
def test_other_delimiters_are_read_by_the_same_rules(tmp_path, delimiter):
    expected = read_sacct(dump(tmp_path)).jobs
    rows = [row.replace("|", delimiter) for row in ROWS]
    path = dump(tmp_path, HEADER.replace("|", delimiter), rows)
    assert guess_format(path) == "sacct"
    assert read_sacct(path).jobs.equals(expected)
    quoted = [row.replace("ann", f'"a{delimiter}n"') for row in rows]  # as spreadsheets write
    ended = [row + delimiter for row in (HEADER.replace("|", delimiter), *quoted)]
    log = read_sacct(dump(tmp_path, ended[0], ended[1:]))
    assert log.jobs.equals(expected)
    assert log.words["user"] == {1: r"a\tn" if delimiter == "\t" else f"a{delimiter}n", 2: "bob"}
    with pytest.raises(WorkloadError, match="line 2: 2 fields, the header has 12"):
        read_sacct(dump(tmp_path, HEADER.replace("|", delimiter), [f"17{delimiter}ann"]))


@pytest.mark.parametrize("delimiter", ["|", ";"])
def test_months_that_are_joined_have_their_headers_left_out(tmp_path, delimiter):
    """What ``cat`` makes of two exports."""
    header, *rows = (line.replace("|", delimiter) for line in (HEADER, *ROWS))
    expected = read_sacct(dump(tmp_path, header, rows))
    assert expected.remarks == ()
    log = read_sacct(dump(tmp_path, header, [*rows[:3], header, *rows[3:], header]))
    assert log.jobs.equals(expected.jobs)
    assert log.remarks == ("lines that repeat the header, left out: 2 (line 5 first)",)


def test_runtime_from_start_and_end(tmp_path):
    path = dump(tmp_path, "JobID|Submit|Start|End|NCPUS|State", ["5|100|110|150|3|COMPLETED"])
    assert read_sacct(path).jobs["run_time"].tolist() == [40]


def test_missing_columns_are_named_in_one_line(tmp_path):
    with pytest.raises(WorkloadError) as refused:
        read_sacct(dump(tmp_path, "Submit|State", ["1|COMPLETED"]))
    message = str(refused.value)
    assert "JobIDRaw or JobID, Start, ElapsedRaw or Elapsed or End, AllocCPUS or NCPUS" in message
    assert "\n" not in message
    assert SACCT in message


def test_the_command_prints_every_preferred_column():
    assert {names[0] for names in NEEDED.values()} <= set(SACCT.split("--format=")[1].split(","))


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (ROWS[0].replace("00:01:00", "1:0:0:0:0"), "line 2, column Elapsed"),
        (ROWS[0].replace("|8|", "|4K|"), "line 2, column NCPUS"),
        (ROWS[0].replace("2024-03-01T00:00:00", "yesterday"), "line 2, column Submit"),
        ("17|ann", "line 2: 2 fields, the header has 12"),
    ],
)
def test_what_is_no_value_is_named(tmp_path, row, named):
    with pytest.raises(WorkloadError, match=named):
        read_sacct(dump(tmp_path, rows=[row]))


def test_bad_arguments():
    with pytest.raises(WorkloadError, match=r"workload\.path is not set"):
        SacctWorkload(None)
    with pytest.raises(WorkloadError, match=r"workload\.timezone=Nowhere"):
        SacctWorkload("x", timezone="Nowhere")
    with pytest.raises(WorkloadError, match=r"workload\.unit=cores"):
        SacctWorkload("x", unit="cores")


def test_a_real_dump_replays(traces):
    trace = SacctWorkload(traces / "slurm-micro-sacct-2021.txt.gz").trace(Streams(1))
    assert len(trace.jobs) == 500
    assert (trace.jobs["reference_runtime"] == 0).sum() == 56
    assert trace.dropped == {}
    assert trace.jobs["submit_time"][0] == 1613082979.0  # 2021-02-11T22:36:19Z
    assert trace.jobs["requested_time"][0] == 420.0


RECKONED = "CPUTimeRAW|ReqCPUS|ReqNodes|ResvCPURAW|Submit|TimelimitRaw|Partition|State"


def test_starts_and_runtimes_are_reckoned_where_an_export_lacks_them(tmp_path):
    rows = (
        "1200|2|1|20|100|1|small|COMPLETED",  # too long for two CPUs and a minute
        "80|2|1|20|100|1|small|COMPLETED",
        "240|2|1|0|101|1|small|TIMEOUT",  # four CPUs for the minute
        "6400|1|1|5|102|10|whole|TIMEOUT",  # further down: nodes of 16
        "9600|1|1|5|103|10|whole|TIMEOUT",
        "9610|2|1|4|104|10|whole|TIMEOUT",
        "19200|20|2|40|105|10|whole|FAILED",
        "0|1|1|7|106|10|small|CANCELLED by 7",
        "0|1|1|7|107|10|small|FAILED",
        "30|8|1|0|108|Partition_Limit|small|COMPLETED",
    )
    path = dump(tmp_path, RECKONED, rows)
    jobs = read_sacct(path).jobs
    assert jobs["allocated_processors"].tolist() == [2, 2, 4, 16, 16, 16, 32, 1, 1, 8]
    assert jobs["wait_time"].tolist() == [10, 10, 0, 5, 5, 2, 2, 7, 7, 0]
    assert jobs["run_time"].tolist()[:5] == [600, 40, 60, 400, 600]
    assert jobs["run_time"].tolist()[6:] == [600, 0, 0, 3.75]
    trace = SacctWorkload(path).trace(Streams(1))
    assert trace.dropped == {"beyond_limit": 1, "cancelled_before_start": 1}
    assert (trace.jobs["reference_runtime"] == 0).sum() == 1
    assert trace.named("partition") == [*["small"] * 2, *["whole"] * 4, *["small"] * 2]
    told = (
        r"requested for 5 jobs, whole nodes for 4, and for 1 a number inferred from jobs .* 1 jobs"
    )
    assert re.search(told, read_sacct(path).remarks[0])


def test_nodes_of_a_partition_are_the_count_that_divides_the_work_of_its_jobs(tmp_path):
    rows = (
        f"{64 * 610}|1|1|5|100|10|debug|TIMEOUT",  # 65.07 CPUs for the limit of ten minutes
        f"{2 * 64 * 615}|1|2|5|101|10|debug|TIMEOUT",
        f"{64 * 7}|1|1|5|102|10|debug|COMPLETED",
        f"{64 * 59}|1|1|5|103|10|debug|FAILED",
        "0|1000|1|0|104|10|debug|CANCELLED by 7",  # never ran: no node has so many
    )
    jobs = read_sacct(dump(tmp_path, RECKONED, rows)).jobs
    assert jobs["allocated_processors"].tolist() == [64, 128, 64, 64, 64]
    assert jobs["run_time"].tolist() == [610, 615, 7, 59, 0]


def test_the_only_partition_has_a_name(tmp_path):
    path = dump(tmp_path, RECKONED, ("60|1|1|10|100|10|small|COMPLETED",))
    assert len(SacctWorkload(path, partition="small").trace(Streams(1)).jobs) == 1
    with pytest.raises(WorkloadError, match=r"no job of .* was for it; there are small"):
        SacctWorkload(path, partition="batch").trace(Streams(1))


def test_an_export_without_starts_of_a_real_machine(traces):
    log = read_sacct(traces / "kabre-sacct-2024.csv.gz", "America/Costa_Rica")
    assert len(log.jobs) == 30_376
    assert log.found["beyond_limit"].sum() == 247
