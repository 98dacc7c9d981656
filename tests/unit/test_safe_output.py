"""What is written of somebody else's runs: no formulas, commands or markup, no links followed."""

import json

import pandas as pd
import pytest

from sim.compare import main as compare
from sim.report.gathering import Group
from sim.report.tables import text_table
from sim.results.durable import write_csv

pytestmark = pytest.mark.fast

ODD = ("=cmd|' /C calc'!A0", "@SUM(A1)", "+1+cmd", "\\input{/etc/passwd}", "\\write18{ls}",
       "<script>alert(1)</script>", "a | b", "$x$", "[a](javascript:b)", "line\nbreak",
       "\x1b]0;title\x07\x1b[31mred", "\x9b2J")  # fmt: skip


def fabricated(folder, policy):
    (folder / ".hydra").mkdir(parents=True)
    (folder / ".hydra" / "overrides.yaml").write_text(json.dumps([f"policy={policy}"]))
    (folder / ".hydra" / "config.yaml").write_text(json.dumps({"policy": policy, "seed": 1}))
    chosen = {"hydra": {"runtime": {"choices": {"policy": policy}}}}
    (folder / ".hydra" / "hydra.yaml").write_text(json.dumps(chosen))
    summary = {"mean_response_time": 3.0, "menu": policy}
    (folder / "summary.json").write_text(json.dumps(summary))


@pytest.mark.slow
def test_a_comparison_of_odd_names_is_plain(tmp_path, capsys):
    for number, policy in enumerate(ODD):
        fabricated(tmp_path / f"run{number}", policy)
    assert compare([str(tmp_path), "--latex", "--markdown"]) == 0
    shown = capsys.readouterr().out
    assert "red" in shown
    assert not {"\x1b", "\x07", "\x9b"} & set(shown)
    for path in tmp_path.glob("*.csv"):
        for cell in pd.read_csv(path, dtype=str).to_numpy().ravel():
            assert not str(cell).lstrip().startswith(("=", "@", "+", "-")) or float(cell)
    latex = (tmp_path / "comparison.tex").read_text()
    assert "\\input" not in latex
    assert "\\write" not in latex
    assert "\\$x\\$" in latex
    markdown = (tmp_path / "comparison.md").read_text().splitlines()
    table = [line for line in markdown if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in table}) == 1
    assert "\\<script\\>" in "".join(table)
    page = (tmp_path / "comparison.html").read_text()
    assert "<script>alert(1)" not in page


def test_text_tables_keep_plain_text():
    group = Group({"policy": "\\a{b}_c|d"}, "run")
    assert "\\textbackslash{}a\\{b\\}\\_c|d" in text_table([group], "latex")
    assert "\\\\a{b}\\_c\\|d" in text_table([group], "markdown")


def test_numbers_stay_numbers(tmp_path):
    frame = pd.DataFrame({"=a": [-1.5, 2.0], "b": ["-3", "-x"], "c": [None, -4]})
    write_csv(frame, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "'=a,b,c\n-1.5,-3,\n2.0,'-x,-4.0\n"


@pytest.mark.slow
def test_planted_links_are_replaced(tmp_path, capsys):
    runs, mine = tmp_path / "runs", tmp_path / "mine"
    fabricated(runs / "a", "sa")
    fabricated(runs / "b", "easy")
    mine.mkdir()
    (mine / "file").write_text("kept")
    for name in (".comparison.csv.partial", ".comparison.html.partial", "comparison.csv",
                 "comparison.md", "comparison.parquet", "comparison.html"):  # fmt: skip
        (runs / name).symlink_to(mine / "file")
    (runs / "plots").symlink_to(mine)
    assert compare([str(runs), "--markdown"]) == 0
    capsys.readouterr()
    assert (mine / "file").read_text() == "kept"
    assert [path.name for path in mine.iterdir()] == ["file"]
    assert not (runs / "comparison.csv").is_symlink()
