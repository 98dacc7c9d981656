import gzip
import hashlib

import numpy as np
import pandas as pd
import pytest
from swf_samples import job_line, write_log

from workloads.errors import WorkloadError
from workloads.logs.swf import FIELDS, Comment, SwfLog, read_swf, write_swf

pytestmark = pytest.mark.fast

REAL_LOGS = {
    "SDSC-SP2-1998-4.2-cln": (59_715, 48, 128),
    "LLNL-Atlas-2006-2.1-cln": (43_778, 32, 9_216),
    "NASA-iPSC-1993-3.1-cln": (18_239, 32, 128),
    "ALCF-Theta-2022": (23_911, 3, 4_360),
    "lublin_256": (10_000, 7, 256),
    "lublin_256_new2": (10_000, 7, 256),
}


def test_reads_eighteen_fields_in_order(tmp_path):
    line = " ".join(str(number) for number in range(1, 19))
    log = read_swf(write_log(tmp_path, "; Version: 2.2", line))
    assert list(log.jobs.columns) == list(FIELDS)
    assert log.jobs.iloc[0].tolist() == list(range(1, 19))
    assert FIELDS[3] == "run_time"
    assert FIELDS[4] == "allocated_processors"
    assert FIELDS[16] == "preceding_job"


def test_fractions_are_exact_and_whole_columns_stay_integers(tmp_path):
    path = write_log(
        tmp_path,
        job_line(run_time="1.50", average_cpu_time="0.1"),
        job_line(run_time="2", average_cpu_time="123456789.123456789", submit_time=1641021254),
    )
    jobs = read_swf(path).jobs
    assert jobs["run_time"].tolist() == [1.5, 2.0]
    assert jobs["average_cpu_time"].tolist() == [0.1, 123456789.123456789]
    assert jobs["submit_time"].dtype == np.int64
    assert jobs["submit_time"].tolist() == [0, 1641021254]


def test_comments_anywhere_keep_their_place_and_text(tmp_path):
    lines = ["; Version: 2.2", job_line(), "  ;  indented é", "", job_line(), ";tail"]
    log = read_swf(write_log(tmp_path, *lines))
    assert log.comments == (
        Comment(0, "; Version: 2.2"),
        Comment(1, "  ;  indented é"),
        Comment(2, ";tail"),
    )
    assert len(log.jobs) == 2


def test_directives_repeat_and_continue(tmp_path):
    lines = ["; Queue: 1 short", ";Queue: 2  long  ", ";   http://no.directive/here", "; Note:"]
    log = read_swf(write_log(tmp_path, *lines, job_line()))
    assert log.values("queue") == ["1 short", "2  long"]
    assert log.directives() == [("Queue", "1 short"), ("Queue", "2  long"), ("Note", "")]


@pytest.mark.parametrize(
    ("header", "size"),
    [
        (["; MaxNodes: 64", "; MaxProcs: 128"], 128),
        (["; MaxNodes: 64"], 64),
        (["; MaxProcs: -1", "; MaxNodes: 64"], 64),
        (["; MaxProcs: 128 (64 x 2)"], 128),
        (["; Computer: x"], None),
    ],
)
def test_machine_size_is_maxprocs_else_maxnodes(tmp_path, header, size):
    assert read_swf(write_log(tmp_path, *header, job_line())).machine_size() == size


def test_machine_size_that_is_no_number_is_refused(tmp_path):
    log = read_swf(write_log(tmp_path, "; MaxProcs: many", job_line()))
    with pytest.raises(WorkloadError, match=r"log.swf: header MaxProcs: 'many' is not a whole"):
        log.machine_size()


def test_gzip_is_known_by_content_and_the_checksum_is_of_the_stored_file(tmp_path):
    path = tmp_path / "log.txt"
    path.write_bytes(gzip.compress(f"{job_line()}\r\n{job_line(job_number=2)}\r\n".encode()))
    log = read_swf(path)
    assert log.jobs["job_number"].tolist() == [1, 2]
    assert log.jobs["think_time"].tolist() == [-1, -1]
    assert log.checksum == hashlib.sha256(path.read_bytes()).hexdigest()
    assert log.source == "log.txt"


@pytest.mark.parametrize("name", ["out.swf", "out.swf.gz"])
def test_round_trip_keeps_values_comments_and_order(tmp_path, name):
    lines = ["; Version: 2.2", job_line(run_time=1.5, average_cpu_time=0.1 + 0.2), "; between"]
    log = read_swf(write_log(tmp_path, *lines, job_line(job_number=2**53 + 1), ";  end"))
    write_swf(tmp_path / name, log)
    again = read_swf(tmp_path / name)
    pd.testing.assert_frame_equal(again.jobs, log.jobs)
    assert again.comments == log.comments
    assert not list(tmp_path.glob(".*"))


def test_written_numbers_are_compact_and_gzip_bytes_repeat(tmp_path):
    log = read_swf(write_log(tmp_path, job_line(run_time="1.50", average_cpu_time="3.00")))
    write_swf(tmp_path / "out.swf", log)
    assert (tmp_path / "out.swf").read_text() == job_line(run_time=1.5, average_cpu_time=3) + "\n"
    write_swf(tmp_path / "a.swf.gz", log)
    write_swf(tmp_path / "b.swf.gz", log)
    assert (tmp_path / "a.swf.gz").read_bytes() == (tmp_path / "b.swf.gz").read_bytes()


@pytest.mark.parametrize("name", REAL_LOGS)
def test_real_logs_round_trip(traces, tmp_path, name):
    jobs, comments, processors = REAL_LOGS[name]
    log = read_swf(traces / f"{name}.swf.gz")
    assert (len(log.jobs), len(log.comments), log.machine_size()) == (jobs, comments, processors)
    write_swf(tmp_path / "again.swf", log)
    again = read_swf(tmp_path / "again.swf")
    pd.testing.assert_frame_equal(again.jobs, log.jobs)
    assert again.comments == log.comments


def test_every_value_of_a_real_log_is_the_one_in_the_file(traces):
    path = traces / "SDSC-SP2-1998-4.2-cln.swf.gz"
    log = read_swf(path)
    with gzip.open(path, "rt") as lines:
        rows = [line.split() for line in lines if not line.startswith(";")]
    for number in (0, 1, 777, 30_000, len(rows) - 1):
        assert log.jobs.iloc[number].tolist() == [float(word) for word in rows[number]]


MALFORMED = {
    "short": ("; h\n1 2 3\n", "{path}, line 2: 3 fields; an SWF job has 18"),
    "long": (f"{job_line()}\n{job_line()} 7\n", "{path}, line 2: 19 fields; an SWF job has 18"),
    "longer": (f"{job_line()} 7 8\n", "{path}, line 1: 20 fields; an SWF job has 18"),
    "word": (
        f";\n\n{job_line(run_time='abc')}\n",
        "{path}, line 3, field 4 (run_time): 'abc' is not a number; unknown values are -1",
    ),
    "nan": (
        f"{job_line(wait_time='nan')}\n",
        "{path}, line 1, field 3 (wait_time): 'nan' is not a number; unknown values are -1",
    ),
    "inf": (
        f"{job_line()}\n{job_line(think_time='inf')}\n",
        "{path}, line 2, field 18 (think_time): 'inf' is not a number; unknown values are -1",
    ),
    "hex": (
        f"{job_line(user='0x1F')}\n",
        "{path}, line 1, field 12 (user): '0x1F' is not a number; unknown values are -1",
    ),
    "true": (
        f"{job_line(status='True')}\n",
        "{path}, line 1, field 11 (status): 'True' is not a number; unknown values are -1",
    ),
    "comma": (
        f"{job_line().replace(' ', ',')}\n",
        "{path}, line 1: 1 fields; an SWF job has 18",
    ),
    "huge": (
        f"{job_line(job_number=2**63)}\n",
        f"{{path}}, line 1, field 1 (job_number): '{2**63}' is too large; the limit is 2^62",
    ),
    "overflow": (
        f"{job_line(run_time='1e999')}\n",
        "{path}, line 1, field 4 (run_time): '1e999' is too large; the limit is 2^62",
    ),
    "inline": (
        f"{job_line()} ; note\n",
        "{path}, line 1: 20 fields; an SWF job has 18",
    ),
    "quoted": (
        f"{job_line(user=chr(34) + '1' + chr(34))}\n",
        "{path}, line 1, field 12 (user): '\"1\"' is not a number; unknown values are -1",
    ),
    "html": (
        "<!DOCTYPE html>\n<html>\n",
        "{path}, line 1: 2 fields; an SWF job has 18",
    ),
    "empty": ("", "{path}: the file is empty; an SWF log has one line for each job"),
    "blank": (" \n\n", "{path}: the file is empty; an SWF log has one line for each job"),
    "binary": (
        "PK\x03\x04\x00",
        "{path}: not a text file (byte 0x00 at offset 4); an SWF log is text, plain or "
        "gzip-compressed",
    ),
}


@pytest.mark.parametrize("defect", MALFORMED)
def test_malformed_text_is_refused_with_its_place(tmp_path, defect):
    text, message = MALFORMED[defect]
    path = tmp_path / "bad.swf"
    path.write_text(text)
    with pytest.raises(WorkloadError) as refusal:
        read_swf(path)
    assert str(refusal.value) == message.format(path=path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "bad.swf"
    path.write_bytes(job_line(user="é").encode("latin-1"))
    with pytest.raises(WorkloadError) as refusal:
        read_swf(path)
    assert str(refusal.value) == (
        f"{path}, line 1, field 12 (user): '\N{REPLACEMENT CHARACTER}' is not a number; "
        "unknown values are -1"
    )


def test_truncated_and_damaged_gzip_are_refused(tmp_path):
    whole = gzip.compress((job_line() + "\n").encode() * 1000)
    path = tmp_path / "bad.swf.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(WorkloadError) as refusal:
        read_swf(path)
    assert str(refusal.value) == (
        f"{path}: the gzip data breaks off before its end; fetch the file again"
    )
    path.write_bytes(whole[:-8] + b"\0\0\0\0" + whole[-4:])
    with pytest.raises(WorkloadError, match=r"bad.swf.gz: the gzip data is damaged \(CRC check"):
        read_swf(path)


def test_missing_file_and_folder_are_refused(tmp_path):
    with pytest.raises(WorkloadError) as refusal:
        read_swf(tmp_path / "none.swf")
    assert str(refusal.value) == f"{tmp_path}/none.swf: no such file; give the path of an SWF log"
    with pytest.raises(WorkloadError) as refusal:
        read_swf(tmp_path)
    assert str(refusal.value) == f"{tmp_path}: is a folder; give the path of one SWF log"


def test_odd_but_valid_numbers_are_read(tmp_path):
    path = write_log(tmp_path, job_line(user="+5", run_time="1e2", wait_time=".5", queue="007"))
    row = read_swf(path).jobs.iloc[0]
    assert (row["user"], row["run_time"], row["wait_time"], row["queue"]) == (5, 100, 0.5, 7)


def test_byte_order_mark_and_old_line_ends_are_read(tmp_path):
    path = tmp_path / "old.swf"
    path.write_bytes(b"\xef\xbb\xbf; MaxProcs: 8\r" + job_line().encode() + b"\r")
    log = read_swf(path)
    assert log.machine_size() == 8
    assert len(log.jobs) == 1


def test_not_finite_values_and_wrong_columns_are_not_written(tmp_path):
    log = read_swf(write_log(tmp_path, job_line()))
    broken = SwfLog(log.jobs.assign(run_time=np.nan))
    with pytest.raises(WorkloadError, match="run_time has a value that is not finite"):
        write_swf(tmp_path / "out.swf", broken)
    assert not (tmp_path / "out.swf").exists()
    with pytest.raises(WorkloadError, match="an SWF log has the columns job_number"):
        SwfLog(log.jobs[["run_time"]])


def test_writing_into_a_missing_folder_is_refused(tmp_path):
    log = read_swf(write_log(tmp_path, job_line()))
    with pytest.raises(WorkloadError, match=r"out.swf: cannot be written: No such file"):
        write_swf(tmp_path / "none" / "out.swf", log)


@pytest.mark.parametrize(
    ("header", "submit", "epoch"),
    [
        ("; UnixStartTime: 893466664", 0, 893466664.0),
        ("; UnixStartTime: 0", 1641021254, 0.0),
        ("; UnixStartTime: 0", 7, None),
        ("; UnixStartTime: unknown", 7, None),
        ("; MaxProcs: 4", 1641021254, None),
    ],
)
def test_the_epoch_is_the_unix_time_of_instant_0(tmp_path, header, submit, epoch):
    log = read_swf(write_log(tmp_path, header, job_line(submit_time=submit)))
    assert log.epoch() == epoch
