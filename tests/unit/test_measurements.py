import pytest

from predictors.cli.measurements import read

pytestmark = pytest.mark.fast


def written(folder, text):
    path = folder / "runs.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("count", ["nodes", "Cores", "THREADS", "procs", "nprocs", "Nodes "])
@pytest.mark.parametrize("time", ["time", "Runtime", "SECONDS", "runtime_s", "Time (s)"])
def test_spellings(tmp_path, count, time):
    frame = read(written(tmp_path, f"{count},{time}\n1,100\n2,55.5\n"))
    assert frame["nprocs"].tolist() == [1, 2]
    assert frame["runtime"].tolist() == [100, 55.5]


@pytest.mark.parametrize(
    "text",
    [
        "nodes;time\n1;100,5\n2;55,25\n",
        "nodes\ttime\n1\t100,5\n2\t55,25\n",
        "\ufeffnodes,time\n1,100.5\n\n# a comment\n2,55.25\n",
        'nodes,time\n"1","100,5"\n"2","55,25"\n',
    ],
)
def test_separators_and_decimal_commas(tmp_path, text):
    frame = read(written(tmp_path, text))
    assert frame["runtime"].tolist() == [100.5, 55.25]


def test_where_chooses_a_curve_and_keeps_other_columns(tmp_path):
    text = (
        'problem,size,nprocs,runtime_s,comp_s,comm_s\n"a, b",3,1,9,8,1\nc,4,1,7,6,1\nc,4,2,4,3,1\n'
    )
    frame = read(written(tmp_path, text), ["problem=c"])
    assert frame["runtime"].tolist() == [7, 4]
    assert frame["computation"].tolist() == [6, 3]
    assert frame["communication"].tolist() == [1, 1]
    assert frame["size"].tolist() == [4, 4]
    assert len(read(tmp_path / "runs.csv", ["Problem=a, b", "size=3.0"])) == 1


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("", [], "the file is empty"),
        ("nodes,time\n", [], "no row below the header"),
        ("nodes,colour\n1,2\n", [], "no column for runtime; accepted are runtime"),
        ("nodes,cores,time\n1,4,2\n", [], "cores and nodes could each be nprocs; choose one: "),
        ("nodes,cores,time\n1,4,2\n", [], "--columns nprocs=cores or nprocs=nodes"),
        ("nodes,time\n1,fast\n", [], r"runs.csv:2: runtime is 'fast'; a number is needed"),
        ("nodes,time\n1,2\n2\n", [], r"runs.csv:3: 1 fields where the header has 2"),
        ("nodes,time\n1,2\n2,0\n", [], r"runs.csv:3: runtime is 0; it must be finite and above 0"),
        ("nodes,time\n0,2\n", [], r"runs.csv:2: nprocs is 0; it must be finite and at least 1"),
        ("nodes,time\n1,-2\n", [], r"runs.csv:2: runtime is -2"),
        ("nodes,time\n1,1e400\n", [], r"runs.csv:2: runtime is inf"),
        ("nodes,time\n1,\n", [], r"runs.csv:2: runtime is ''"),
        ("nodes;time\n1;1,000\n2;2,500\n", [], "can be a decimal comma or thousands"),
        ("problem,n,time\na,1,2\nb,1,3\n", [], r"choose one with where=\['problem=VALUE'\], where"),
        ("problem,n,time\na,1,2\n", ["problem=z"], "no row has problem=z; there are: a"),
        ("n,time\n1,2\n", ["problem"], "expected COLUMN=VALUE"),
        ("n,time,size,size\n1,2,3,3\n", [], "stands in the header twice"),
    ],
)
def test_bad_files_are_refused_with_line_and_field(tmp_path, text, where, message):
    with pytest.raises(ValueError, match=message):
        read(written(tmp_path, text), where)


@pytest.mark.parametrize("empty", ["", "-", "NaN"])
def test_rows_without_a_runtime_are_left_out_and_named(tmp_path, caplog, empty):
    path = written(tmp_path, f"problem,n,time\na,1,9\na,2,{empty}\nb,2,\na,4,3\na,8,{empty}\n")
    assert read(path, ["problem=a"])["nprocs"].tolist() == [1, 4]
    assert caplog.messages == [f"{path}: lines without a runtime are left out: 3, 6"]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"absent\.csv: no such file"):
        read(tmp_path / "absent.csv")
