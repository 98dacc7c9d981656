# ruff: noqa: E501
"""Spreadsheets as people export them: read right, or refused in a line that says what to do."""

import numpy as np
import pytest

from predictors.__main__ import main
from predictors.cli.measurements import read, read_curves

pytestmark = pytest.mark.fast

COUNTS = [1.0, 2.0, 4.0, 8.0]
TIMES = [120.0, 63.5, 34.25, 20.0]

READ = {
    "units in brackets, words for counts": (
        "Number of cores,Time [ms]\n1,120000\n2,63500\n4,34250\n8,20000\n"
    ),
    "unit behind an underscore": "num_procs,time_ms\n1,120000\n2,63500\n4,34250\n8,20000\n",
    "unit after a stroke": "# cores;wall time / min\n1;2\n2;1,0583333333\n4;0,5708333333\n8;0,3333333\n",
    "clock times": "MPI ranks,Elapsed (hh:mm:ss)\n1,0:02:00\n2,0:01:03.5\n4,0:00:34.25\n8,0:00:20\n",
    "clock times without a unit": "nodes,elapsed\n1,00:02:00\n2,00:01:03.5\n4,0:00:34.25\n8,0:00:20\n",
    "minutes and seconds": "nodes,time (mm:ss)\n1,2:00\n2,1:03.5\n4,0:34.25\n8,0:20\n",
    "units in cells": "cores,time\n1,2 min\n2,63.5 s\n4,34250 ms\n8,20s\n",
    "runs side by side": (
        "cores,run1,run2,run3\n1,119,120,121\n2,63.5,63.5,63.5\n4,34,34.25,34.5\n8,20,20,20\n"
    ),
    "runs side by side, one missing, means beside": (
        "Cores,Time 1 (s),Time 2 (s),Mean\n1,119,121,120\n2,63.5,,63.5\n4,34.25,-,34.25\n8,20,20,20\n"
    ),
    "the same heading thrice": "n,time,time\n1,119,121\n2,63,64\n4,34.25,34.25\n8,20,20\n",
    "lines of title": (
        "Scaling study of our code,,\nGroup X,,\n\nProcessors,Runtime (s),Comment\n"
        '1,120,"first, cold"\n2,63.5,\n4,34.25,\n8,20,\n'
    ),
    "semicolons and decimal commas": "Kerne;Laufzeit [s]\n1;120,0\n2;63,5\n4;34,25\n8;20,0\n",
    "tabs from a spreadsheet": "Cores\tTime (s)\t\n1\t120\t\n2\t63.5\t\n4\t34.25\t\n8\t20\t\n",
    "columns of blanks": "cores   time\n1       120\n2       63.5\n4       34.25\n8       20\n",
    "a table of a page": "| cores | time (s) |\n|---:|---:|\n| 1 | 120 |\n| 2 | 63.5 |\n| 4 | 34.25 |\n| 8 | 20 |\n",
    "a row of units": "cores,time\n-,ms\n1,120000\n2,63500\n4,34250\n8,20000\n",
    "thousands": 'cores,time_ms\n1,"120,000.0"\n2,"63,500.0"\n4,"34,250.0"\n8,"20,000.0"\n',
    "thousands of another country": "cores;time in ms\n1;120.000,0\n2;63.500,0\n4;34.250,0\n8;20.000,0\n",
    "only an average": "cores,avg time (s),stddev\n1,120,1\n2,63.5,1\n4,34.25,1\n8,20,1\n",
    "counts side by side": "cores,1,2,4,8\ntime (s),120,63.5,34.25,20\n",
    "rows of speedup beside": "Threads,Speedup,Efficiency,Seconds\n1,1,1,120\n2,2,1,63.5\n4,4,1,34.25\n8,6,1,20\n",
    "a column of units, too": (
        "cores,time [ms],unit\n1,120000,ms\n2,63500,ms\n4,34250,ms\n8,20000,ms\n"
    ),
    "hours": "cpus,Duration (h)\n1,0.033333333333\n2,0.0176388889\n4,0.0095138889\n8,0.0055555556\n",
}


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_read_right(tmp_path, name, encoding):
    path = tmp_path / "runs.csv"
    path.write_text(READ[name], encoding=encoding)
    frame = read(path)
    means = frame.groupby("nprocs")["runtime"].mean()
    assert means.index.tolist() == COUNTS
    assert means.to_numpy() == pytest.approx(TIMES, rel=1e-6)


def test_latin_letters_and_counts_with_marks_of_thousands(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_bytes("Knoten;Gr\xf6\xdfe;Zeit (s)\n512;1;2,5\n1.024;1;1,25\n".encode("latin-1"))
    assert read(path)["nprocs"].tolist() == [512, 1024]
    path.write_text('cores,time\n512,2.5\n"1,024",1.25\n', encoding="utf-8")
    assert read(path)["nprocs"].tolist() == [512, 1024]


REFUSED = {
    "an unknown unit": (
        "cores,time (ticks)\n1,5\n2,3\n",
        "unit 'ticks' of column runtime is not known",
    ),
    "metres or minutes": ("cores,time (m)\n1,5\n2,3\n", "unit 'm' of column runtime is not known"),
    "hours or minutes": (
        "cores,time\n1,12:30\n2,6:15\n",
        "2: runtime is 12:30, which can be hours or",
    ),
    "comma or thousands": ("cores;time\n1;1,500\n2;1,250\n", "decimal comma or thousands"),
    "both marks": (
        'cores,time\n1,"1,5"\n2,0.75\n',
        "1,5 has a decimal comma and 0.75 a decimal point",
    ),
    "half a core": ("cores,time\n1.5,5\n2,3\n", "2: nprocs is 1.5; a whole number is needed"),
    "a run that failed": (
        "cores,time\n1,5\n2,FAILED\n",
        "3: runtime is 'FAILED'; a number is needed",
    ),
    "a total below": ("cores,time\n1,5\n2,3\nmean,4\n", "4: nprocs is 'mean'; a number is needed"),
    "no heading": ("1,5\n2,3\n", "no column for nprocs; accepted are nprocs, procs"),
    "cores and nodes": ("nodes,cores,time\n1,4,5\n2,8,3\n", "cores and nodes could each be nprocs"),
    "two times": (
        "cores,wall time,elapsed\n1,5,6\n2,3,4\n",
        "elapsed and wall time could each",
    ),
    "a runtime and another time": (
        "cores,runtime,elapsed\n1,5,6\n2,3,4\n",
        "choose one: --columns runtime=elapsed or runtime=runtime",
    ),
    "a time and runs beside": (
        "cores,time,time2,time3\n1,5,6,7\n2,3,4,5\n",
        "columns time and time2 can be runs side by side or different times",
    ),
    "a clock in a column of seconds": (
        "cores,time (s)\n1,0:05:00\n",
        "clock time 0:05:00 in a column of s",
    ),
    "a stray quote": (
        'cores,time\n1,"5.5\n' + "2,3.25\n" * 300 + '4"\n5,1\n',
        "is '5.5",
    ),
    "minutes beyond 59": ("cores,time\n1,0:75:00\n", "minutes and seconds go to 59"),
    "units that differ": ("cores,run1 (s),run2 (ms)\n1,5,5000\n", "side by side have units ms, s"),
    "a unit in some cells": (
        'cores,time\n1,"1,100 min"\n2,"2,60"\n',
        "3: runtime is '2,60' without a unit, where another is '1,100 min'; write it in",
    ),
    "a clock in some cells": ("cores,time\n1,0:01:40\n2,52\n", "3: runtime is '52' without a unit"),
    "a column of units": (
        "cores,time,Unit\n1,2,min\n2,1,min\n",
        "no unit is read from column unit;",
    ),
    "another unit beside": ("cores,time_s,unit\n1,2,min\n2,1,min\n", "such as time [min], or in"),
    "weak scaling": (
        "cores,size,time\n1,10,5\n2,20,5\n4,40,6\n",
        "every run has a size of its own, so that none are one curve; choose --method regression "
        "--inputs size, which",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_a_line(tmp_path, capsys, name):
    text, message = REFUSED[name]
    path = tmp_path / "runs.csv"
    path.write_text(text, encoding="utf-8")
    assert main([str(path)]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert len(shown.err) < 1000
    assert shown.out == ""


def test_spreadsheet_files_are_told_apart_from_text(tmp_path):
    path = tmp_path / "runs.xlsx"
    path.write_bytes(b"PK\x03\x04" + bytes(40))
    with pytest.raises(ValueError, match="this is a spreadsheet file; save it as CSV"):
        read(path)


def test_several_curves(tmp_path):
    path = tmp_path / "runs.csv"
    rows = [f"{app},{n},{t}" for app in ("lu", "cg") for n, t in zip(COUNTS, TIMES, strict=True)]
    path.write_text("code,cores,time\n" + "\n".join(rows), encoding="utf-8")
    found = read_curves(path)
    assert list(found) == ["code=lu", "code=cg"]
    assert all(np.array_equal(frame["runtime"], TIMES) for frame in found.values())
    assert read(path, ["code=cg"])["runtime"].tolist() == TIMES
