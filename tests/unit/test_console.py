import datetime
import io
import re
import sys
import types

import numpy as np
import pytest
from random_schedules import random_run, rigid_truth
from rich.console import Console
from toys import trace_of

import sim
from predictors.cli.display import Display
from predictors.cli.terminal import fitting_tables
from sim.console import Side, print_results
from sim.results.metrics import summarise
from sim.results.outcome import outcome
from sim.results.rows import TOO_WIDE, duration, percent, texts
from sim.simulation.progress import ProgressWatcher, simulated_date
from sim.statistics import Interval

pytestmark = pytest.mark.fast


def printed(*sides, folder=None, width=110):
    console = Console(file=io.StringIO(), width=width)
    shown = [one if isinstance(one, Side) else Side(one, "sa") for one in sides]
    print_results(console, shown, folder)
    return console.file.getvalue()


def line(text, label):
    return next(row for row in text.splitlines() if row.startswith(label))


def test_run_and_baseline_stand_side_by_side_with_difference_and_bound():
    run = {"mean_response_time": 5400.0, "jobs": 5, "bound_mean_response_time": 1800.0}
    base = {"mean_response_time": 7200.0, "jobs": 5}
    text = printed(run, Side(base, "easy", is_baseline=True))
    cells = re.split(r"\s{2,}", line(text, "mean response").strip())
    assert cells == ["mean response", "90.0 min", "120.0 min", "-25.0 %", "30.0 min"]
    assert re.search(r"sa\s+baseline easy\s+difference\s+lower bound", text)


def test_the_verdict_comes_first():
    text = printed(RUN, STEP, BASE).splitlines()
    assert text[0] == "sa by adept: mean response 60.0 s, -62.5 % against easy by user_estimate."
    assert printed(RUN).splitlines()[0].split()[0] == "sa"


def test_a_backtest_to_be_distrusted_stands_before_the_verdict(tmp_path, monkeypatch):
    bad, good = ("Backtest of a.swf: distrust. Far.", "Backtest of b.swf: care. Near.")
    monkeypatch.setattr("sim.results.sentences.backtest_sentences", lambda _: [good, bad])
    lines = printed(RUN, BASE, folder=tmp_path).splitlines()
    assert lines[0] == bad
    assert lines[1].startswith("sa by adept: mean response")
    assert (lines.count(bad), lines.count(good)) == (1, 1)


def test_one_pair_and_a_median_that_moves_the_other_way_are_said():
    sure = "(One pair of runs does not show how sure that is; replications=10 would.)"
    assert sure in printed(RUN, STEP, BASE).splitlines()
    assert sure not in printed(RUN)
    assert sure not in printed(RUN, Side(RUN.figures, "easy", is_baseline=True))
    parts = [{"mean_response_time": one} for one in (60.0, 70.0)]
    several = (Side(one.figures, one.policy, parts=parts) for one in (RUN, BASE))
    assert sure not in printed(*several)
    run, base = ({**side.figures, "median_response_time": 10.0} for side in (RUN, BASE))
    longer = printed(Side(run | {"median_response_time": 12.5}, "sa"), Side(base, "easy"))
    assert longer.startswith("sa: mean response 60.0 s, -62.5 % (median +25.0 %) against easy.")
    assert "median +" not in printed(Side(run, "sa"), Side(base, "easy")).splitlines()[0]


def test_shares_and_errors_differ_by_percentage_points():
    run = {"prediction_within_20": 0.75, "utilization": 0.5, "prediction_median_error": 0.09}
    base = {"prediction_within_20": 0.08, "utilization": 0.625, "prediction_median_error": 2.5}
    text = printed(Side(run, "sa", "adept"), Side(base, "sa", "user_estimate", is_baseline=True))
    for label, shown in (
        ("predicted within 20 %", "+67.0 pp"),
        ("utilisation", "-12.5 pp"),
        ("prediction error, median", "-241.0 pp"),
    ):
        assert re.split(r"\s{2,}", line(text, label).strip())[3] == shown
    assert "differ by percentage points (pp)" in text


RUN = Side({"mean_response_time": 60.0, "menu": "powers_of_two"}, "sa", "adept")
STEP = Side({"mean_response_time": 80.0}, "easy", "adept")
BASE = Side({"mean_response_time": 160.0}, "easy", "user_estimate", is_baseline=True)


def test_predictor_and_menu_of_every_column_are_named():
    text = printed(RUN, STEP, BASE)
    assert re.search(r"sa\s+easy\s+easy\s+policy\s+information", text)
    assert re.search(r"predictor +adept +adept +user", text)
    assert re.search(r"allocation choices +powers +– +– *\n +of two", text)


def test_policy_and_predictor_are_compared_one_after_the_other():
    cells = re.split(r"\s{2,}", line(printed(RUN, STEP, BASE), "mean response").strip())
    assert cells == ["mean response", "60.0 s", "80.0 s", "160.0 s", "-25.0 %", "-50.0 %"]
    text = " ".join(printed(RUN, STEP, BASE).split())
    assert "Change by policy: sa by adept against easy by adept. Change by runtime" in text


def test_unlike_columns_say_what_would_make_them_alike():
    assert "Both differ: baseline_predictor=true simulates the step" in printed(RUN, BASE)
    assert "Both differ" not in printed(STEP, BASE)
    assert "Difference: easy by adept against easy by user_estimate." in printed(STEP, BASE)


def test_what_jobs_asked_for_and_what_refusals_cost_is_shown_where_they_may_ask():
    asked = {"requests": 12, "requests_granted": 7, "requests_deferred": 3, "requests_refused": 4,
             "requests_withdrawn": 1, "denied_time": 7200.0, "denied_wait": 0.0}  # fmt: skip
    text = printed({"jobs": 3, **asked}, Side({"jobs": 3}, "easy", is_baseline=True))
    labels = ["requests of running jobs", "granted", "answered later", "refused", "withdrawn"]
    shown = [re.split(r"\s{2,}", line(text, label).strip())[1:3] for label in labels]
    assert shown == [[n, "–"] for n in ("12", "7", "3", "4", "1")]
    assert "120.0 min" in line(text, "time lost on denied processors")
    assert "0.00 s" in line(text, "waits for denied walltime")
    assert "requests of" not in printed({"jobs": 3})


def test_errors_are_capped_and_their_mean_is_not_shown():
    wild = {"prediction_mape": 1394.729, "prediction_median_error": 0.087,
            "prediction_p90_error": 18.4, "prediction_within_20": 0.61}  # fmt: skip
    base = Side({"prediction_median_error": 11.0}, "easy", "user_estimate", is_baseline=True)
    text = printed(Side(wild, "sa", "adept"), base)
    assert "139,472.9" not in text
    assert re.split(r"\s{2,}", line(text, "prediction error, median").strip())[1:] == [
        "8.7 %", "more than 10 times", "–"
    ]  # fmt: skip
    assert "more than 10 times" in line(text, "90th percentile")
    assert "61.0 %" in line(text, "predicted within 20 %")


def test_a_recorded_schedule_has_a_column_where_the_times_are_the_logs_own():
    own = RUN.figures | {"recorded_mean_response_time": 45.0, "recorded_times_kept": True}
    text = printed(Side(own, "sa", "adept"), BASE)
    assert re.search(r"sa\s+baseline easy\s+recorded\s+difference", text)
    assert "45.0 s" in line(text, "mean response")
    for kept in (False, 0.5):  # a load, or some of the replications are weeks drawn again
        other = Side(own | {"recorded_times_kept": kept}, "sa", "adept")
        assert "recorded" not in printed(other, BASE)


def test_recorded_waits_of_windows_hold_what_was_before_them():
    own = RUN.figures | {"recorded_mean_response_time": 45.0, "recorded_times_kept": True}
    said = "the recorded waits in them reflect"
    replicated = own | {"replications": 3}
    assert said in printed(Side(replicated, "sa", "adept"), BASE)
    assert said in printed(Side(replicated, "recorded"), BASE)
    assert said not in printed(Side(own, "sa", "adept"), BASE)
    assert said not in printed(Side(replicated | {"recorded_times_kept": False}, "sa", "a"), BASE)


def test_an_excess_is_said_of_a_recorded_baseline_too():
    base = Side({"excess_processors": 24, "processors": 96}, "recorded", is_baseline=True)
    said = "holds up to 24 processors more than cluster.processors=96."
    assert said in printed(RUN, base)
    assert said in printed(Side(base.figures, "recorded"), base)


def test_means_of_counts_are_said_as_such():
    text = printed({"replications": 3, "dropped_jobs": 41 / 3, "dropped_jobs_zero_runtime": 41 / 3})
    assert "Jobs dropped on average: 13.7 (zero runtime: 13.7)." in text


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


def test_a_queue_that_does_not_settle_is_said_first_and_no_percentage_is_told():
    run = {"mean_response_time": 60.0, "utilization": 0.5, "steady": True, "steady_load": None}
    base = {"mean_response_time": 90.0, "utilization": 0.7, "steady": False, "steady_load": 0.6}
    text = printed(run, Side(base, "easy", is_baseline=True))
    assert text.startswith("The queue does not settle under easy (its jobs settle up to load 0.6)")
    assert not re.search(r"-33\.3 %|-20\.0 pp", text)
    assert "-33.3 %" in printed(run, Side(base | {"steady": True}, "easy", is_baseline=True))
    assert printed({"steady": False, "steady_load": None}).startswith("The queue does not settle")


def replicated(times, name, **more):
    parts = [{"mean_response_time": time, **more} for time in times]
    return Side({"mean_response_time": sum(times) / len(times)}, name, parts=parts)


def test_of_replications_the_change_is_the_mean_of_paired_log_ratios():
    run, base = (50.0, 1000.0, 300.0), (100.0, 1000.0, 500.0)
    text = printed(replicated(run, "sa"), replicated(base, "easy"))
    change = f"{100 * ((0.5 * 0.6) ** (1 / 3) - 1):.1f} %"  # of the means it would be -15.6 %
    assert f"{change}, -50.0 to 0.0 against easy" in text
    assert line(text, "mean response").count(change) == 1
    more = printed(replicated(run * 3, "sa"), replicated(base * 3, "easy"))
    assert re.search(rf"{change} \[-\d+\.\d, -\d+\.\d\] against easy", more)
    assert "no difference against easy" in printed(replicated(run, "sa"), replicated(run, "easy"))


def test_windows_of_a_log_are_told_with_their_ratios_and_how_many_do_not_settle():
    sides = [replicated((50.0, 70.0), name, steady=False) for name in ("sa", "easy")]
    for side in sides:
        side.parts[0]["window_begin"], side.parts[1]["window_begin"] = 0.0, 9.0
    text = printed(*sides)
    assert "Windows of one log are not independent draws of a site" in text
    assert "does not settle in 2 of 2 simulations of sa" in " ".join(text.split())
    assert "no difference" in text


def test_identical_replications_are_a_warning():
    text = printed({"replications": 5, "replications_identical": True})
    assert "The 5 replications are identical: no interval can be given." in text


def test_names_are_no_markup():
    assert "[sa]" in printed(Side({"jobs": 1}, "[sa]", "[x]"))


def progress_text(monkeypatch, seconds, *, terminal):
    clock = [seconds[0]]
    monkeypatch.setattr("predictors.cli.display.time.monotonic", lambda: clock[0])
    console = Console(file=io.StringIO(), width=120, force_terminal=terminal)
    with Display(console, "sa") as display:
        watcher = ProgressWatcher(display, trace_of([(100.0, 1, 3.0)] * 10))
        for done in range(1, len(seconds)):
            clock[0], over = seconds[done], np.arange(10) < done
            if watcher.is_due():
                watcher.progressed(100.0 + 86400.0 * done, 7, over)
    return console.file.getvalue()


def test_short_runs_show_nothing(monkeypatch):
    assert progress_text(monkeypatch, [0.0, 0.3, 0.9], terminal=True) == ""


def test_terminal_shows_date_jobs_queue_and_time_left(monkeypatch):
    text = progress_text(monkeypatch, [0.0, 2.0, 4.0], terminal=True)
    assert "day 2 00:00 · 1 of 10 jobs · 7 waiting · -:--:-- left" in text
    assert "day 3 00:00 · 2 of 10 jobs · 7 waiting · 0:00:16 left" in text


def test_time_left_comes_from_work_not_from_jobs(monkeypatch):
    clock = iter([0.0, 30.0, 40.0])
    monkeypatch.setattr("predictors.cli.display.time.monotonic", lambda: next(clock))
    console = Console(file=io.StringIO(), width=120, force_terminal=True)
    with Display(console, "sa") as display:
        watcher = ProgressWatcher(display, trace_of([(0.0, 1, work) for work in (1, 1, 2, 36)]))
        watcher.progressed(60.0, 0, np.zeros(4, bool))  # 30 s to load and to compile: no measure
        watcher.progressed(60.0, 0, np.array([True, True, True, False]))
    assert "3 of 4 jobs · 0 waiting · 0:01:30 left" in console.file.getvalue()


def test_time_left_is_of_all_that_is_to_be_simulated(monkeypatch):
    clock = iter([0.0, 30.0, 40.0])
    monkeypatch.setattr("predictors.cli.display.time.monotonic", lambda: next(clock))
    console = Console(file=io.StringIO(), width=120, force_terminal=True)
    over = np.array([True, False])
    with Display(console) as display, display.part(1, 4, "2 of 4"), display.part(0, 2, "sa"):
        watcher = ProgressWatcher(display, trace_of([(0.0, 1, 1.0)] * 2))
        watcher.progressed(60.0, 0, ~over & over)
        watcher.progressed(60.0, 0, over)
    text = console.file.getvalue()
    assert "2 of 4 · sa" in text
    assert "1 of 2 jobs · 0 waiting · 0:01:50 left" in text  # 1/16 in 10 s, 11/16 to come


def test_a_notebook_gets_one_line_that_is_redrawn(monkeypatch):
    shown = []

    class Page:
        def update(self, data, raw):
            shown.append((data["text/plain"], raw))

    def display(data, raw, display_id):
        shown.append((data["text/plain"], display_id))
        return Page()

    module = types.ModuleType("IPython.display")
    module.display = display
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    console = Console(file=io.StringIO(), force_jupyter=True)
    with Display(console, "sweep") as progress:
        progress.show("begins", 0.0)
        progress.show("goes on", 0.5)
    assert [one[1] for one in shown] == [True, True, True]
    assert shown[1][0] == f"sweep {'█' * 12}{'░' * 12} goes on · -:--:-- left"
    assert shown[2][0] == "sweep ended after 0:00:00"
    assert console.file.getvalue() == ""


@pytest.mark.parametrize("settings", [{"quiet": True}, {"width": 80}])
def test_nothing_is_shown_where_nobody_looks(settings):
    console = Console(file=io.StringIO(), **settings)
    with Display(console, "sa") as progress:
        progress._begun -= 5.0
        due = progress.is_due()
        progress.show("begins", 0.0)
        progress.show("sets up the jobs")
    assert due is not console.quiet
    assert console.file.getvalue() == ""


def test_no_colour_and_no_terminal_get_no_control_characters(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    text = progress_text(monkeypatch, [0.0, 2.0, 11.0], terminal=True)
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", text)
    assert "\x1b" not in progress_text(monkeypatch, [0.0, 2.0, 11.0, 30.0], terminal=False)


def test_file_gets_a_plain_line_every_ten_seconds(monkeypatch):
    text = progress_text(monkeypatch, [0.0, 2.0, 11.0, 15.0, 22.0], terminal=False)
    assert text.splitlines() == [
        "sa: day 3 00:00 · 2 of 10 jobs · 7 waiting · 0:01:12 left",
        "sa: day 5 00:00 · 4 of 10 jobs · 7 waiting · 0:00:39 left",
    ]


def test_a_table_of_long_names_and_large_errors_fits_80_columns():
    run = {"mean_efficiency": 0.5, "mean_response_time": 0.5, "prediction_median_error": 4.7e3}
    sides = [
        Side(run | {"menu": "powers_of_two"}, "average_parallelism", "noisy_oracle"),
        Side(run, "conservative", "noisy_oracle"),
        Side(run, "conservative", "user_estimate", is_baseline=True),
    ]
    rows = printed(*sides, width=80).splitlines()
    assert any(row.split()[:1] == ["average"] for row in rows)
    labels = ("95th percentile response", "mean efficiency of a job", "prediction error, median")
    for label in labels:
        assert any(row.startswith(label) for row in rows)


def test_a_known_start_shows_dates_as_far_as_the_calendar_goes():
    start = datetime.datetime(2006, 12, 18, tzinfo=datetime.UTC)
    assert simulated_date(90061.0, start) == "2006-12-19 01:01"
    assert simulated_date(1e12, start) == "day 11574075 01:46"


def test_the_last_line_says_where_the_artefacts_lie(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert printed({"jobs": 1}, folder=tmp_path / "runs" / "a").endswith("\nArtefacts: runs/a\n")
    outside = tmp_path.parent / "b"
    assert printed({"jobs": 1}, folder=outside).endswith(f"\nArtefacts: {outside}\n")


def test_nothing_is_said_of_what_was_given_where_nobody_was_asked():
    given = {"given_runs": 3, "given_charged": False, "given_sizes": "hidden"}
    assert "This rests on: 3 runs" in printed(Side(given, "sa", "adept"))
    assert "rests on" not in printed(Side(given, "recorded", "adept"))


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160, 230])
def test_a_table_keeps_within_the_window_and_cuts_no_figure(width):
    head = ["policy", "predictor", "workload.jobs", "mean response", "p95 response", "mean wait"]
    rows = [
        ["iterative_with_a_long_name", "universal_scalability", "900", "1.72 h", "7.6 h", "0.41 h"],
        ["easy", "user_estimate", "300", "107.82 h", "19.3 h", "5.63 h"],
    ]
    console = Console(width=width, file=io.StringIO())
    found = fitting_tables(head, rows, width, 3)
    console.print(found)
    text = console.file.getvalue()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    assert all(figure in text for row in rows for figure in row[3:])
    assert (len(found.renderables) == 1) == (width >= 100)
    assert "…" not in text


def test_a_first_row_of_many_jobs_stands_in_one_line_at_80_columns():
    run = {"molded_jobs": 12_127, "jobs": 20_000, "mean_response_time": 7350.0}
    sides = [
        Side(run | {"prediction_median_error": 0.073}, "sa_easy", "adept"),
        Side(run | {"molded_jobs": 0, "prediction_median_error": 0.074}, "easy", "adept"),
        Side(run | {"molded_jobs": 0, "prediction_median_error": 1.1}, "easy", "user_estimate",
             is_baseline=True),
    ]  # fmt: skip
    first = line(printed(*sides, width=80), "jobs molded")
    assert first.split() == ["jobs", "molded", "of", "20,000", "12,127", "0", "0"]
    sides[1] = Side(run | {"molded_jobs": 0, "jobs": 19_000}, "easy", "adept")
    cells = re.split(r"\s{2,}", line(printed(*sides, width=110), "jobs molded").strip())
    assert cells[:4] == ["jobs molded", "12,127 of 20,000", "0 of 19,000", "0 of 20,000"]


def test_times_side_by_side_are_in_a_unit_that_a_person_reads():
    assert texts([25_560.0, 518_400.0], "s") == ["7.1 h", "144.0 h"]
    assert texts([510.0, 2_274.0], "s") == ["8.5 min", "37.9 min"]
    assert texts([4.4e6, 4.5e6], "s") == ["50.9 d", "52.1 d"]


def test_what_cannot_be_told_is_said_in_words():
    wide = Interval(-5.36, -15.1, 4.389, 9)
    assert percent(wide) == percent(Interval(-0.3, -np.inf, np.inf, 9)) == TOO_WIDE
    assert percent(Interval(np.nan, np.nan, np.nan, 0)) == "not defined"
    assert percent(Interval(0.35, -0.5, 4.0, 9)) == "35.0 % [-50.0, 400.0]"
    assert percent(Interval(-4e-5, -2e-4, 1e-4, 9)) == "-0.004 % [-0.020, 0.010]"


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_progress_keeps_to_one_line_of_the_terminal(width, monkeypatch):
    console = Console(file=io.StringIO(), width=width, force_terminal=True, legacy_windows=False)
    with Display(console, "iterative") as display:
        display._begun -= 60.0
        watcher = ProgressWatcher(display, trace_of([(0.0, 1, 1.0)] * 40_000))
        watcher.progressed(1e6, 1_234, np.arange(40_000) < 14_000)
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console.file.getvalue())
    rows = [row for row in shown.splitlines() if row.strip()]
    assert len(rows) == 1
    assert len(rows[0].rstrip()) <= width
    assert ("left" in rows[0]) == (width >= 80)
    assert ("━" in rows[0]) == (width >= 140)


def test_a_run_tells_in_one_line_who_loses_against_its_baseline():
    asked = ["workload=sample", "workload.jobs=300"]
    run = sim.run(*asked, policy="easy_sjbf", predictor="user_estimate", moldability="none")
    own, base = (one.jobs.set_index("job_id")["response_time"] for one in (run, run.baseline))
    apart = (own - base)[own.index >= 0]
    said = " ".join(str(run).split())
    later = f"{100 * (apart > 0.5).mean():.3g} % of the jobs respond later under easy_sjbf"
    assert f"Who loses: {later} by user_estimate than under easy by user_estimate" in said
    assert f"under easy by user_estimate (at most by {duration(apart.max())}), " in said
    assert f"{100 * (apart < -0.5).mean():.3g} % sooner" in said
    assert "Who loses" not in str(run.baseline)
