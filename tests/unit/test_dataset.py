import re

import pandas as pd
import pyarrow.parquet as pq
import pytest
from test_compare import fabricate, figures

from predictors.cli import terminal
from sim.dataset import main
from sim.verify import main as verify

pytestmark = pytest.mark.fast


@pytest.fixture
def sweep(tmp_path):
    for policy in ("easy", "sa"):
        for load in (0.5, 0.9):
            name = f"policy={policy},workload.load={load}"
            run = fabricate(tmp_path / "sweep" / name, name.split(","),
                            summary=figures(1.0, seed=3, replications=2),
                            choices={"policy": policy})  # fmt: skip
            for k in range(2):
                part = run / f"replication={k}"
                part.mkdir()
                (part / "summary.json").write_text('{"seed": 3}')
                for table in ("jobs", "allocations", "timeline", "predictions"):
                    pd.DataFrame({"job_id": [1, 2], "time": [load, k]}).to_parquet(
                        part / f"{table}.parquet"
                    )
    return tmp_path / "sweep"


def test_partitions_and_rows(sweep, tmp_path, capsys):
    target = tmp_path / "data"
    assert main([str(sweep), str(target)]) == 0
    assert "8 simulations" in capsys.readouterr().out
    files = sorted(p.relative_to(target).as_posix() for p in target.glob("jobs/**/*.parquet"))
    assert files == [f"jobs/role=run/policy={p}/part-0.parquet" for p in ("easy", "sa")]
    assert [pq.ParquetFile(target / name).num_row_groups for name in files] == [1, 1]
    jobs = pd.read_parquet(target / "jobs")
    assert len(jobs) == 16
    assert set(jobs["policy"]) == {"easy", "sa"}
    one = jobs[(jobs["policy"] == "sa") & (jobs["workload.load"] == "0.9") & (jobs["job_id"] == 1)]
    assert one["replication"].tolist() == [0, 1]
    assert one["time"].tolist() == [0.9, 0.9]
    assert set(jobs["seed"]) == {3}
    assert set(one["run"]) == {"policy=sa,workload.load=0.9"}
    assert len(pd.read_csv(target / "simulations.csv")) == 8


def test_a_terminal_is_told_what_is_read_and_written(sweep, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(terminal, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(terminal, "TERMINAL_SECONDS", 0.0)
    assert main([str(sweep), str(tmp_path / "data")]) == 0
    told = capsys.readouterr().err
    assert re.search(r"reads the runs, 2 of \d+ · 0:00:0\d left", told)
    assert "writes the tables, 4 of 4" in told
    assert verify([str(sweep)]) == 1  # they have no checksums
    assert re.search(r"checks the runs, 2 of \d+ · 0:00:0\d left", capsys.readouterr().err)


def test_what_a_table_lacks_is_null(sweep, tmp_path):
    other = sweep / "policy=sa,workload.load=0.9/replication=1/jobs.parquet"
    pd.read_parquet(other).assign(recorded_start_time=[1.0, 2.0]).to_parquet(other)
    assert main([str(sweep), str(tmp_path / "data")]) == 0
    jobs = pd.read_parquet(tmp_path / "data/jobs/role=run/policy=sa")
    assert len(jobs) == 8
    assert sorted(jobs["recorded_start_time"].dropna()) == [1.0, 2.0]


def test_refusals(sweep, tmp_path, capsys):
    assert main([str(sweep), str(sweep)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main([str(sweep), str(tmp_path / "d"), "--by", "seed"]) == 2
    assert "--by seed: must be a key in which runs differ" in capsys.readouterr().err
    assert main([str(sweep), str(tmp_path / "d"), "--by", "workload.load"]) == 0
    assert (tmp_path / "d/jobs/role=run/workload.load=0.5/part-0.parquet").is_file()
