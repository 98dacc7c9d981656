"""Delimited tables: what other systems export is read right, or refused in a line."""

import gzip

import pytest

from workloads.errors import WorkloadError
from workloads.logs.formats import guess_format
from workloads.logs.table import TableWorkload
from workloads.streams import Streams

pytestmark = pytest.mark.fast

HEAD = "id,submit,start,end,processors,walltime,user"
ROWS = ("1,0,10,70,4,120,ann", "2,5,5,35,2,60,bob")


def table(tmp_path, *lines, name="jobs.csv"):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def trace(path, **keys):
    return TableWorkload(path, **keys).trace(Streams(1))


def times(log):
    return log.jobs[["submit_time", "wait_time", "run_time"]].to_numpy().tolist()


READ = {
    "plain": ((HEAD, *ROWS), {}),
    "semicolons": ((HEAD.replace(",", ";"), *(row.replace(",", ";") for row in ROWS)), {}),
    "tabs": ((HEAD.replace(",", "\t"), *(row.replace(",", "\t") for row in ROWS)), {}),
    "bars": ((HEAD.replace(",", "|"), *(row.replace(",", "|") for row in ROWS)), {}),
    "another delimiter": (
        (HEAD.replace(",", "~"), *(row.replace(",", "~") for row in ROWS)),
        {"delimiter": "~"},
    ),
    "capitals and spaces": (("ID,Submit Time, Start Time ,End Time,Cores,WallTime,User", *ROWS), {}),
    "other names": (
        ("n,a,b,c,d,e,f", *ROWS),
        {"columns": dict(zip(["a", "b", "c", "d", "e", "f"], "abcdef", strict=True))},
    ),
    "two lines of header, names first": ((HEAD, "-,s,s,s,-,s,-", *ROWS), {"header": 2}),
    "two lines of header, names last": (("Jobs of May,,,,,,", HEAD, *ROWS), {"header": 2}),
    "empty lines": ((HEAD, "", ROWS[0], "  ", ROWS[1]), {}),
    "a mark of the byte order": (("\ufeff" + HEAD, *ROWS), {}),
    "quotes": ((HEAD, *(f'"{row.replace(",", chr(34) + "," + chr(34))}"' for row in ROWS)), {}),
    "milliseconds": (
        (HEAD, "1,0,10000,70000,4,120,ann", "2,5000,5000,35000,2,60,bob"),
        {"units": dict.fromkeys(("submit", "start", "end"), "ms")},
    ),
    "minutes of limits": (
        (HEAD, ROWS[0].replace("120", "2"), ROWS[1].replace("60", "1")),
        {"units": {"requested_time": "min"}},
    ),
    "durations": ((HEAD, ROWS[0].replace("120", "00:02:00"), ROWS[1].replace("60", "1:00")), {}),
    "wait and runtime": (
        ("id,submit,wait,runtime,processors,walltime,user", "1,0,10,60,4,120,ann",
         "2,5,0,30,2,60,bob"), {},
    ),
    "end and runtime": (
        ("id,submit,end,runtime,processors,walltime,user", "1,0,70,60,4,120,ann",
         "2,5,35,30,2,60,bob"), {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("odd", READ)
def test_odd_tables_are_read_right(tmp_path, odd):
    lines, keys = READ[odd]
    if "columns" in keys:
        roles = ("submit", "start", "end", "processors", "requested_time", "user")
        keys = {"columns": dict(zip(roles, keys["columns"].values(), strict=True))}
    log = TableWorkload(table(tmp_path, *lines), **keys).read()
    assert times(log) == [[0, 10, 60], [5, 0, 30]]
    assert log.jobs["allocated_processors"].tolist() == [4, 2]
    assert log.jobs["requested_time"].tolist() == [120, 60]
    assert log.jobs["user"].tolist() == [1, 2]


def test_zones_offsets_and_formats(tmp_path):
    rows = ("1,2024-07-01T12:00:00,2024-07-01 12:00:10,2024-07-01T10:01:10Z,4,120,ann",)
    log = TableWorkload(table(tmp_path, HEAD, *rows), timezone="Europe/Berlin").read()
    assert times(log) == [[1719828000, 10, 60]]
    assert log.epoch() == 0.0
    rows = ("1,01.07.2024 12:00,01.07.2024 12:05,01.07.2024 13:00,4,120,ann",)
    keys = {"timezone": "Europe/Berlin", "time_format": "%d.%m.%Y %H:%M"}
    assert times(TableWorkload(table(tmp_path, HEAD, *rows), **keys).read()) == [
        [1719828000, 300, 3300]
    ]


# ruff: noqa: E501
REFUSED = {
    "no processors": (("submit,start,end", "0,1,2"), {}, "to say processors; name them"),
    "no runtime": (("submit,start,cpus", "0,1,2"), {}, r"to say runtime \(or start and end\)"),
    "two of one meaning": (("id,submit,Submit,runtime,cpus", "1,0,0,1,2"), {}, "may both say submit"),
    "a name that is not there": ((HEAD, *ROWS), {"columns": {"submit": "queued"}}, "no column of that"),
    "a role that is not there": ((HEAD, *ROWS), {"columns": {"begin": "submit"}}, "columns.begin"),
    "two lines of header": ((HEAD, "-,s,s,s,-,s,-", *ROWS), {}, "line 2.*workload.header=2"),
    "a date to guess": ((HEAD, "1,01/02/2024,5,6,1,1,x"), {}, "line 2, column submit.*time_format"),
    "another format": (
        (HEAD, *ROWS), {"time_format": "%Y"}, "not as workload.time_format=%Y says",
    ),
    "milliseconds unsaid": ((HEAD, "1,1719828000000,5,6,1,1,x"), {}, "units.submit=ms"),
    "a field too many": ((HEAD, ROWS[0], ROWS[1] + ",x"), {}, "line 3: 8 fields, the header has 7"),
    "text for a count": ((HEAD, ROWS[0].replace(",4,", ",four,")), {}, "four.*number of processors"),
    "a decimal comma": ((HEAD.replace(",", ";"), "1;0;1,5;9;1;1;x"), {}, "line 2, column start"),
    "a zone of Mars": ((HEAD, *ROWS), {"timezone": "Mars"}, "workload.timezone=Mars"),
    "a unit": ((HEAD, *ROWS), {"units": {"submit": "weeks"}}, "units.submit=weeks"),
    "no header at all": ((HEAD,), {}, "no job below the header .workload.header=1."),
    "one column": (("jobs", "1"), {}, "no comma, semicolon, tab or bar"),
    "a mark that swallows jobs": (
        (HEAD, *ROWS, '3,6,7,9,1,60,"ann', "4,6,7,9,1,60,bob", '5,6,7,9,1,60,eve"'), {},
        "line 4: a quotation mark opens a cell that goes on to line 6",
    ),
    "a mark that never closes": ((HEAD, ROWS[0], '2,5,5,35,2,60,"bob'), {}, "line 3: quotation marks"),
}  # fmt: skip


@pytest.mark.parametrize("odd", REFUSED)
def test_odd_tables_are_refused_in_a_line(tmp_path, odd):
    lines, keys, said = REFUSED[odd]
    with pytest.raises(WorkloadError, match=said) as refused:
        TableWorkload(table(tmp_path, *lines), **keys).read()
    assert "\n" not in str(refused.value)


def test_nothing_is_dropped_uncounted(tmp_path):
    rows = (
        *ROWS,
        "3,10,4,40,1,60,ann",  # starts before its submit
        "4,11,20,,1,60,ann",  # no end
        "5,12,30,25,1,60,ann",  # ends before its start
        "5,13,13,20,1,60,ann",  # an identifier again
        "6,14,14,14,1,60,ann",  # of zero seconds
        "7,15,16,20,0,60,ann",  # on nothing
        "8,,16,20,1,60,ann",  # never submitted
        "2,5,5,35,2,60,bob",  # a line again
        "9,15,16,20,1,,ann",  # no limit
    )
    found = trace(table(tmp_path, HEAD, *rows))
    assert found.dropped == {
        "duplicate": 1,
        "unknown_submit": 1,
        "unknown_runtime": 2,
        "zero_runtime": 1,
        "no_processors": 1,
    }
    assert found.repaired["negative_wait"] == 1
    assert found.repaired["repeated_number"] == 1
    assert found.repaired["missing_requested_time"] == 1
    assert len(found.jobs) + sum(found.dropped.values()) == len(rows)
    assert found.jobs["recorded_wait_time"].tolist()[:2] == [10.0, 0.0]
    assert (found.jobs["recorded_wait_time"] == -1).sum() == 1


def test_queues_are_named_where_they_stand_for_partitions(tmp_path):
    rows = (f"{n},{60 * n},{60 * n + 10},{60 * n + 50},4,q{n % 2}" for n in range(1, 4))
    path = table(tmp_path, "job,submit,start,end,processors,queue", *rows)
    assert trace(path).named("partition") == ["q1", "q0", "q1"]
    alone = trace(path, partition="q1")
    assert alone.jobs["submit_time"].tolist() == [60.0, 180.0]
    assert alone.source == "jobs.csv (q1)"
    assert alone.checksum not in (None, trace(path).checksum, trace(path, partition="q0").checksum)
    with pytest.raises(
        WorkloadError, match=r"=q2: no job of jobs.csv was for it; there are q1, q0"
    ):
        trace(path, partition="q2")


def test_runtimes_and_waits_that_contradict_are_told(tmp_path, caplog):
    head = "submit,start,end,runtime,wait,processors"
    found = trace(table(tmp_path, head, "0,10,70,60,10,4", "5,5,35,999,0,2", "6,9,19,10,77,2"))
    assert "1 jobs have a runtime other than end - start (line 3 first)" in caplog.text
    assert "1 jobs have a wait other than start - submit (line 4 first)" in caplog.text
    assert found.jobs["reference_runtime"].tolist() == [60.0, 999.0, 10.0]
    assert found.jobs["recorded_wait_time"].tolist() == [10.0, 0.0, 3.0]


def test_jobs_that_are_alike_but_for_their_names_are_jobs_all_the_same(tmp_path):
    rows = [f"{name},0,1,2,1,60,ann" for name in ("7[1].host", "7[2].host", "7[1].host")]
    assert trace(table(tmp_path, HEAD, *rows)).dropped == {"duplicate": 1}
    without = trace(
        table(tmp_path, HEAD.removeprefix("id,"), *(r[r.index(",") + 1 :] for r in rows))
    )
    assert without.dropped == {}
    assert without.jobs["job_id"].tolist() == [1, 2, 3]


def test_formats_are_known_by_content(tmp_path):
    samples = {
        "table": "submit,runtime,cpus\n0,1,2",
        "sacct": "JobID|State|Submit|Start\n",
        "swf": "; MaxProcs: 4\n" + " ".join(["1"] * 18),
        "batsim": '{"jobs": []}',
    }
    for kind, text in samples.items():
        path = tmp_path / kind
        path.write_bytes(gzip.compress(text.encode()))
        assert guess_format(path) == kind
    tabbed = table(tmp_path, "\t".join(["1"] * 18), name="tabbed")
    assert guess_format(tabbed) == "swf"


def test_a_real_table(traces):
    found = trace(traces / "Cirrus-CPU-2024-09.csv.gz")
    assert (len(found.jobs), found.dropped) == (60_000, {})
    assert found.jobs["recorded_wait_time"].mean() == pytest.approx(74 * 60, rel=0.01)
    assert found.jobs["requested_processors"].max() == 2304
