"""Names of users, groups and executables are shown as they stand in the log."""

import pandas as pd
import pytest

import sim
from sim.advise import main as advise
from sim.report.answers import winners
from sim.results.plots import explorer
from sim.results.plots.pictures import RunFolder
from sim.site.comparison import _most_of, _whose
from workloads.frame import FrameWorkload
from workloads.logs.sacct import SacctWorkload
from workloads.logs.swf import read_swf
from workloads.logs.table import TableWorkload
from workloads.streams import Streams

pytestmark = pytest.mark.fast
USERS = ["ann_b", "müller", "\u202eevil", "x\x7fy"]
SHOWN = ["ann_b", "müller", r"\u202eevil", r"x\x7fy"]


@pytest.fixture
def table(tmp_path):
    rows = [
        f"{USERS[k % 4]},physics,gmx_{k % 2},{60 * k},{60 * k + 5},{60 * k + 500 + k},{1 + k % 2}"
        for k in range(40)
    ]
    head = "user,group,application,submit,start,end,cores"
    (tmp_path / "jobs.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return tmp_path / "jobs.csv"


def test_a_table_keeps_its_names_with_signs_that_show_nothing_as_escapes(table):
    words = TableWorkload(table).read().words
    assert set(words["user"].values()) == set(SHOWN)
    assert list(words["group"].values()) == ["physics"]
    assert set(words["executable"].values()) == {"gmx_0", "gmx_1"}


def test_accounting_and_frames_keep_theirs(tmp_path):
    (tmp_path / "sacct.txt").write_text(
        "JobID|User|Account|JobName|Submit|Start|End|ElapsedRaw|AllocCPUS|State\n"
        "1|zoe|chem|run_1|2024-01-01T00:00:00|2024-01-01T00:00:10|2024-01-01T00:01:10|60|4|COMPLETED\n"
    )
    words = SacctWorkload(tmp_path / "sacct.txt").read().words
    assert words == {"user": {1: "zoe"}, "group": {1: "chem"}, "executable": {1: "run_1"}}
    frame = pd.DataFrame({"submit_time": [0.0], "runtime": [9.0], "requested_processors": [1]})
    trace = FrameWorkload(frame=frame.assign(user="ann")).trace(Streams(1), 4)
    assert trace.named("user") == ["ann"]
    log = "; MaxProcs: 8\n1 0 0 60 4 -1 -1 4 90 -1 1 77 5 3 -1 -1 -1 -1\n"
    (tmp_path / "log.swf").write_text(log)
    assert read_swf(tmp_path / "log.swf").words == {}  # numbers are its names


def test_advice_names_users_and_executables(table, monkeypatch, capsys):
    monkeypatch.chdir(table.parent)
    assert advise([str(table)]) == 0
    assert "Further repeating applications, in the files only: 4" in capsys.readouterr().out
    (page,) = table.parent.glob("backtests/*/advice.html")
    (lines,) = table.parent.glob("backtests/*/advice.csv")
    for one in SHOWN:
        assert f"user {one}, executable gmx_" in lines.read_text(encoding="utf-8")
        assert one in page.read_text(encoding="utf-8")


def test_runs_and_who_loses_name_users(table):
    run = sim.run(jobs=table, processors=2, policy="easy_sjbf", predictor="user_estimate",
                  moldability="none", baseline="easy")  # fmt: skip
    assert run.jobs["user_name"].tolist()[:4] == SHOWN
    first = run.jobs["application_name"].iloc[0]
    assert first == "user ann_b, executable gmx_0"
    later = run.jobs.assign(response_time=run.jobs["response_time"] + 60 * (run.jobs["user"] == 1))
    who = winners("a", "b", [(later, run.jobs)])
    assert set(who.tables["user"].index) == set(SHOWN)
    most = f"most in total user {who.tables['user'].index[0]}, by 60.0 s a job"
    assert f"so does 1 of 4 users in the mean, {most}" in who.sentence()
    assert who.tables["user"]["change"].tolist() == [60.0, 0.0, 0.0, 0.0]
    assert first in who.tables["application"].index


def test_invented_applications_have_no_names(table):
    run = sim.run("workload.applications=3", jobs=table, policy="easy", baseline=None)
    assert "user_name" in run.jobs
    assert "application_name" not in run.jobs


def test_names_cannot_end_the_script_of_a_page_to_look_into_a_run(monkeypatch):
    frame = pd.DataFrame({"submit_time": [0.0, 9.0], "runtime": [99.0] * 2, "user": ["<b>", "x"]})
    run = sim.run(jobs=frame.assign(requested_processors=1), processors=2, policy="easy",
                  predictor="user_estimate", moldability="none", baseline=None)  # fmt: skip
    plotly = type("Plotly", (), {"get_plotlyjs": staticmethod(lambda: "")})
    monkeypatch.setattr(explorer.importlib, "import_module", lambda name: plotly)
    page = explorer.explorer_page([RunFolder(run.tables, {"processors": 2}, "run")])
    assert "<b>" not in page
    assert r"\u003cb>" in page


def test_reasons_of_a_backtest_name_users():
    jobs = pd.DataFrame({"user": [1, 2, 2]})
    trace = type("Named", (), {"jobs": jobs, "words": {"user": {2: "zoe"}}})
    found = type("Found", (), {"trace": trace})
    whose = _whose(found, pd.Series([1.0, 1.0, 2.0]).to_numpy())
    assert _most_of(whose, "Most") == " Most: user zoe (75 %), user 1 (25 %)."


def test_an_application_has_one_number_in_all_windows_of_a_log():
    given = ("workload=sample", "workload.jobs=250", "replications=2", "baseline=null")
    runs = sim.run(*given, policy="easy", predictor="adept").replications
    whose = pd.concat([run.jobs for run in runs]).groupby("application")["user"].nunique()
    assert (whose == 1).all()
    told = runs[1].predictions
    known = runs[1].jobs.set_index("job_id").loc[told["job_id"], "application"]
    assert told["application"].tolist() == known.tolist()
    drawn = sim.run(*given, "workload.applications=3", policy="easy").replications
    assert all(set(run.jobs["application"]) <= {0, 1, 2} for run in drawn)
