import io
import re

from random_schedules import random_run, rigid_truth
from rich.console import Console

from sim.console import print_results
from sim.metrics import summarise
from sim.outcome import outcome
from sim.progress import Progress


def printed(run, baseline=None, **options):
    console = Console(file=io.StringIO(), width=110)
    print_results(console, run, baseline, **options)
    return console.file.getvalue()


def line(text, label):
    return next(row for row in text.splitlines() if row.startswith(label))


def test_run_and_baseline_stand_side_by_side_with_difference_and_bound():
    run = {"mean_response_time": 5400.0, "jobs": 5, "bound_mean_response_time": 1800.0}
    text = printed(run, {"mean_response_time": 7200.0, "jobs": 5}, names=("sa", "easy"))
    cells = re.split(r"\s{2,}", line(text, "mean response").strip())
    assert cells == ["mean response", "90.0 min", "120.0 min", "-25.0 %", "30.0 min"]
    assert re.search(r"sa\s+easy\s+difference\s+lower bound", text)


def test_null_is_a_dash_with_its_reason():
    trace, _, records = random_run(4, 6, 4, plain=True)
    rigid = rigid_truth(trace)
    text = printed(summarise(outcome(trace, rigid, records)))
    assert line(text, "system efficiency").split()[-1] == "–"
    assert "T(1) of the jobs is unknown, as under moldability=none" in text


def test_dropped_and_repaired_are_named():
    text = printed(summarise(outcome(*random_run(4, 6, 4))))
    assert "Jobs dropped: 2 (wider than the machine: 2)." in text
    assert "Values repaired: 1 (requested time: 1)." in text


def test_saturation_is_a_warning():
    assert "queue kept growing" in printed({"saturated": True})
    assert "queue kept growing" not in printed({"saturated": False})


def test_names_are_no_markup():
    assert "[sa]" in printed({"jobs": 1}, names=("[sa]", "baseline"))


def progress_text(monkeypatch, seconds, *, terminal):
    clock = iter(seconds)
    monkeypatch.setattr("sim.progress.time.monotonic", lambda: next(clock))
    console = Console(file=io.StringIO(), width=120, force_terminal=terminal)
    with Progress(console, "sa", origin=100.0) as progress:
        for done in range(1, len(seconds)):
            progress.update(now=100.0 + 86400.0 * done, done=done, total=10, queued=7)
    return console.file.getvalue()


def test_short_runs_show_nothing(monkeypatch):
    assert progress_text(monkeypatch, [0.0, 0.3, 0.9], terminal=True) == ""


def test_terminal_shows_date_jobs_queue_and_time_left(monkeypatch):
    text = progress_text(monkeypatch, [0.0, 0.5, 4.0], terminal=True)
    assert "day 3 00:00 · 2 of 10 jobs · 7 waiting · 0:00:16 left" in text


def test_file_gets_a_plain_line_every_ten_seconds(monkeypatch):
    text = progress_text(monkeypatch, [0.0, 2.0, 11.0, 15.0, 22.0], terminal=False)
    assert text.splitlines() == [
        "sa: day 3 00:00 · 2 of 10 jobs · 7 waiting · 0:00:44 left",
        "sa: day 5 00:00 · 4 of 10 jobs · 7 waiting · 0:00:33 left",
    ]
