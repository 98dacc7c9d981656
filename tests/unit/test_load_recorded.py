"""Playback of recorded load, and one clear error for each way a file can be wrong."""

import pytest

from sim.background.background import BackgroundLoad
from sim.background.recorded import LoadFileError, RecordedLoad
from sim.errors import ConfigError
from tests.loads import end_of
from workloads.streams import Streams

pytestmark = pytest.mark.fast

CPU = """start_time,end_time,node,available_cpu
1000,1100,0,0.5
1100,1300,0,0.25
1000,1050,1,1.0
1050,1300,1,0.8
"""
NETWORK = """start_time,end_time,source,destination,available_bandwidth
1000,1200,0,1,0.5
1200,1300,0,1,1
"""


@pytest.fixture
def play(tmp_path):
    def write(cpu=CPU, network=NETWORK, **keywords):
        models = {}
        for name, text in (("cpu", cpu), ("network", network)):
            path = tmp_path / f"{name}.csv"
            path.write_text(text or "")
            beyond = keywords.get("beyond", "repeat")
            models[name] = RecordedLoad(str(path), beyond=beyond) if text else None
        return BackgroundLoad(6, Streams(1), processors_per_node=2, chunk=130.0, **models)

    return write


def test_playback_begins_at_the_origin_and_repeats(play):
    load = play()
    times = [0.0, 60.0, 100.0, 299.9, 300.0, 360.0, 700.0]
    half_then_quarter = [0.5, 0.5, 0.25, 0.25, 0.5, 0.5, 0.25]
    assert load.cpu_at(times, [1])[:, 0].tolist() == half_then_quarter
    assert load.cpu_at(times, [3])[:, 0].tolist() == [1, 0.8, 0.8, 0.8, 1, 0.8, 0.8]
    assert (load.cpu_at(times, [4, 5]) == 1).all()
    assert load.effective([0, 2], 150.0, 150.0)[1] == 0.5
    assert load.effective([0, 2], 250.0, 250.0)[1] == 1.0
    assert load.effective([0, 2], 450.0, 450.0)[1] == 0.5
    assert load.effective([2, 4], 150.0, 150.0)[1] == 1.0


def test_playback_may_end_free(play):
    load = play(beyond="free")
    assert load.cpu_at([299.0, 300.0, 900.0], [0])[:, 0].tolist() == [0.25, 1.0, 1.0]
    assert load.effective([0, 2], 450.0, 450.0)[1] == 1.0


def test_jobs_feel_the_recorded_load(play):
    load = play()
    # 100 s at rate 1/2, then at 1/4: 60 s of computation on processor 0 end at 100 + 40
    assert end_of(load, [0], 0.0, 60.0, 0.0) == pytest.approx(140.0, rel=1e-12)
    # both nodes, 10 s of computation and 10 of communication at 0.5 and 0.5
    assert end_of(load, [0, 2], 0.0, 10.0, 10.0) == pytest.approx(40.0, rel=1e-12)


HEAD = "start_time,end_time,node,available_cpu\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "0,100,0,0.5\n150,200,0,0.5\n", "line 3: node 0 has a gap from 100 to 150 s"),
        (HEAD + "0,100,0,0.5\n50,200,0,0.5\n", "line 3: node 0 overlaps line 2"),
        (HEAD + "0,100,0,0.5\n0,200,1,0.5\n", "line 2: node 0 has a gap: it covers 0 to 100 s"),
        (HEAD + "0,100,0,0\n", r"line 2: available_cpu must be in \(0, 1\], got '0'"),
        (HEAD + "0,100,0,1.2\n", r"line 2: available_cpu must be in \(0, 1\], got '1.2'"),
        (HEAD + "0,100,3,0.5\n", "line 2: node must be a node of this machine, 0 to 2, got '3'"),
        (HEAD + "0,100,0.5,0.5\n", "line 2: node must be a node"),
        (HEAD + "0,100,-1,0.5\n", "line 2: node must be a node"),
        (HEAD + "0,100,0,0.5\n100,0,0,0.5\n", "line 3: end_time must be later than start_time"),
        (HEAD + "0,100,0,half\n", "line 2: available_cpu must be a number, got 'half'"),
        (HEAD + "0,,0,0.5\n", "line 2: end_time must be a number, got ''"),
        (HEAD + "0,inf,0,0.5\n", "line 2: end_time must be a finite number"),
        (HEAD, "has no row of load below its header"),
        ("start_time,end_time,node\n0,1,0\n", "line 1 lacks available_cpu"),
        (HEAD + "0,1_00,0,0.5\n", "line 2: end_time must be a number, got '1_00'"),
        (HEAD + '0,100,0,"0.5\n', "line 2: not well-formed CSV"),
        (HEAD.strip() + ",node\n0,1,0,0.5,0\n", "line 1 names node more than once"),
        (HEAD + "0,100,0,0.5,9,9\n1\n", "line 2: 4 fields are needed, got 6"),
    ],
)
def test_bad_cpu_files_are_refused_with_file_line_and_field(play, text, message):
    with pytest.raises(LoadFileError, match=message) as caught:
        play(cpu=text, network=None)
    assert str(caught.value).startswith("cpu.csv: ")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("0,100,0,0,0.5\n", "destination must be a node other than the source"),
        ("0,100,0,7,0.5\n", "destination must be a node of this machine"),
        ("0,100,0,1,0.5\n90,200,0,1,0.5\n", "link 0 -> 1 overlaps"),
        ("0,100,0,1,0.5\n110,200,0,1,0.5\n", "link 0 -> 1 has a gap"),
        ("0,100,0,1,-0.5\n", "available_bandwidth must be in"),
    ],
)
def test_bad_network_files_are_refused(play, rows, message):
    head = "start_time,end_time,source,destination,available_bandwidth\n"
    with pytest.raises(LoadFileError, match=message):
        play(cpu=None, network=head + rows)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(LoadFileError, match=r"none\.csv: cannot be read as CSV \(No such file"):
        BackgroundLoad(2, Streams(1), cpu=RecordedLoad(str(tmp_path / "none.csv")))


def test_an_unknown_continuation_is_refused():
    with pytest.raises(ConfigError, match="beyond"):
        RecordedLoad("x.csv", beyond="hold")
