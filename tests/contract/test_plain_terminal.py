"""Neither control characters of files nor modules of the current folder do anything."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest
from rich.table import Table

from predictors.cli.terminal import PlainConsole
from predictors.plain import shown_plainly
from sim.errors import one_line
from sim.results.durable import LOCK
from sim.verify import main as verify
from tests.contract.test_architecture import ROOT

BAD = "\x1b[2J\x1b]0;mine\x07\x9b31m\r\x08"
TINY = ("workload.jobs=20", "policy=fcfs", "picture=none", "predictor=user_estimate")


@pytest.mark.fast
def test_no_text_is_obeyed_in_tables_sentences_and_errors(capsys):
    console = PlainConsole(force_terminal=True, width=60)
    table = Table(f"a{BAD}")
    table.add_row(f"b{BAD}")
    console.print(table)
    console.print(f"[bold]c{BAD}", markup=False)
    out = capsys.readouterr().out
    for one in ("\x1b[2J", "\x1b]", "\x07", "\x9b", "\r", "\x08"):
        assert one not in out
    assert "\x1b[1m" in out  # its own
    assert one_line(OSError(2, "none", f"x{BAD}")) == shown_plainly(f"x{BAD}: none")


def plain(folder, *command):
    """Run a command and return what it prints, which holds no control character."""
    ended = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    said = (ended.stdout + ended.stderr).decode()
    assert not [one for one in said if one not in "\n\t" and shown_plainly(one) != one], said
    assert "Traceback" not in said
    return said


def test_commands_that_name_what_a_log_holds(tmp_path):
    header = "submit_time,runtime,requested_processors,user,application"
    asked = ("sim", "workload=table", "workload.path=jobs.csv", *TINY, "hydra.run.dir=run")
    odd = BAD.replace("\r", "")  # which ends a line
    rows = [f"{9 * k},{60 + k},{1 + k % 3},u{odd},a{odd}" for k in range(12)]
    (tmp_path / "jobs.csv").write_text("\n".join([header, *rows, f"x{odd},1,1,u,a"]) + "\n")
    assert "line 14, column submit_time" in plain(tmp_path, *asked)
    (tmp_path / "jobs.csv").write_text("\n".join([header, *rows]) + "\n")
    plain(tmp_path, *asked)
    plain(tmp_path, "sim.explain", "run", "3")
    plain(tmp_path, "sim.command.main", "describe", f"none{odd}.swf")
    plain(tmp_path, "sim.advise", "jobs.csv")
    shown = r"u\x1b[2J\x1b]0;mine\x07\x9b31m\x08"
    assert set(pd.read_parquet(tmp_path / "run/jobs.parquet")["user_name"]) == {shown}
    for name in ("advice.csv", "advice.html"):
        (written,) = tmp_path.glob(f"backtests/*/{name}")
        assert shown in written.read_text(encoding="utf-8")


def test_a_header_of_swf_may_hold_what_a_terminal_obeys(tmp_path):
    rows = "".join(f"{k} {k} 5 60 1 -1 -1 1 90 -1 1 7 1 1 1 1 -1 -1\n" for k in range(1, 13))
    odd = BAD.replace("\r", "")
    (tmp_path / "log.swf").write_text(f"; Computer: {odd}\n; Note: user 7 is u{odd}\n{rows}")
    asked = ("workload=swf", "workload.path=log.swf")
    plain(tmp_path, "sim", *asked, *TINY[1:], "hydra.run.dir=run")
    assert (tmp_path / "run/summary.json").is_file()
    plain(tmp_path, "sim.command.main", "describe", "log.swf")
    plain(tmp_path, "sim.backtest", *asked)
    (tmp_path / "log.swf").write_text(f"; Note: \0\n{rows}")
    assert "not a text file (byte 0x00" in plain(tmp_path, "sim", *asked, "hydra.run.dir=new")


@pytest.mark.fast
def test_names_of_folders(tmp_path, capsys):
    (tmp_path / f"run{BAD}" / ".hydra").mkdir(parents=True)
    assert verify([str(tmp_path)]) == 1
    assert "\x1b" not in capsys.readouterr().out


def test_no_module_of_the_current_folder_takes_the_place_of_another(tmp_path):
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "moldsim"
    script.write_text("import sys\nfrom sim.command.main import main\nsys.exit(main())\n")
    folder = tmp_path / "work"
    (folder / "sim").mkdir(parents=True)
    for name in ("json", "numpy", "sim/__init__", "random", "hydra", "logging"):
        (folder / f"{name}.py").write_text("raise SystemExit(9)\n")
    asked = ("sweep", *TINY, "seed=1,2", "hydra.sweep.dir=swept", "hydra/launcher=joblib")
    ended = subprocess.run(
        [sys.executable, str(script), *asked, "hydra.launcher.n_jobs=2"], cwd=folder,
        env={k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
        | {"PYTHONPATH": str(ROOT)}, capture_output=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    made = sorted(folder.glob("swept/*/summary.json"))
    assert [json.loads(one.read_text())["jobs"] for one in made] == [20, 20]
    assert (made[0].parent / LOCK).is_file()
