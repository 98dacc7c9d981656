"""Differences on the same jobs, shares of the oracle's gain, load curves and regret of runs."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from test_compare import fabricate, figures
from test_report import FIGURES, tables

from benchmarks.results.regions import share_of_gain
from sim.compare import main
from sim.report import answers as answering
from sim.report import page
from sim.report.answers import NO_GAIN, load_curves, most_affected, regrets
from sim.report.gathering import Group, Sample, gather, groups_of
from sim.report.page import forest
from sim.report.tables import curve_rows, difference_figures, difference_rows
from sim.report.verdict import best_of, verdict
from sim.results.steady_state import SAME_JOBS, partly_unsteady, replications_of, windows_sentences
from sim.statistics import Comparison, Interval, compare, log_ratios

pytestmark = pytest.mark.fast

RESPONSE = "mean_response_time"
BEST = "best-sentence"
TIMES = {
    ("easy", "user_estimate"): (100.0, 130.0, 90.0, 160.0),
    ("easy", "oracle"): (95.0, 120.0, 92.0, 150.0),
    ("sa", "oracle"): (50.0, 62.0, 44.0, 81.0),
    ("sa", "adept"): (60.0, 74.0, 57.0, 93.0),
    ("sa", "noisy_oracle"): (99.0, 133.0, 91.0, 158.0),
}
TIMES |= {
    key: (*times, *(v * (1 + 0.01 * ((k + len(key[1])) % 7)) for k, v in enumerate(2 * times)))
    for key, times in TIMES.items()
}
"""Twelve seeds."""


def jobs(response, longest):
    """Two jobs, of which the second bears what the run takes longer."""
    waits = [0.0, 2 * response - 60.0 - longest]
    runs = [60.0, longest]
    return pd.DataFrame(
        {
            "job_id": [1, 2],
            "bounded_slowdown": [1.0, 3.0],
            "submit_time": [0.0, 0.0],
            "start_time": waits,
            "wait_time": waits,
            "response_time": np.add(waits, runs),
            "requested_processors": [4, 64],
            "reference_runtime": [60.0, 7200.0],
            "allocated_processors": [4, 32],
            "believed_runtime": [60.0, 90.0],
            "runtime": runs,
        }
    )


@pytest.fixture
def study(tmp_path):
    for (policy, predictor), times in TIMES.items():
        for seed, response in enumerate(times, start=1):
            folder = fabricate(
                tmp_path / f"policy={policy},predictor={predictor},seed={seed}",
                [f"policy={policy}", f"predictor={predictor}", f"seed={seed}"],
                summary=figures(response, **FIGURES | {"seed": seed}),
                choices={"policy": policy, "predictor": predictor},
            )
            tables(folder, (1.0, 3.0))
            jobs(response, 30.0).to_parquet(folder / "jobs.parquet")
    return tmp_path


def test_runs_of_more_replications_are_no_group_of_their_own(study):
    one = study / "policy=sa,predictor=adept,seed=1"
    before = {group.label: len(group.samples) for group in groups(study)}
    run = fabricate(
        study / "replications=2",
        ["policy=sa", "predictor=adept", "seed=1", "replications=2"],
        summary=figures(9.0, **FIGURES | {"seed": 1, "replications": 2}),
        choices={"policy": "sa", "predictor": "adept"},
    )
    for k in range(2):
        fabricate(run / f"replication={k}", [], summary=figures(9.0, **FIGURES | {"seed": 1}))
    found = {group.label: group for group in groups(study)}
    assert {label: len(each.samples) for label, each in found.items()} == {
        **before,
        "sa, adept": before["sa, adept"] + 1,
    }
    first = [each for each in found["sa, adept"].samples if each.drawn == (1, 0)]
    assert [each.folder for each in first] == [one]


def differences(*given, **more):
    return answering.differences(*given, **more)[0]


def groups(folder):
    return groups_of(folder, *gather(folder))


def test_a_single_pair_is_not_best_beside_intervals_and_of_those_alike_who_knows_least(study):
    seeds = dict(enumerate(TIMES["sa", "adept"], start=1))
    for policy, predictor, times in (
        ("equi", "adept", {1: 10.0}),
        ("sa", "user_estimate", seeds),
    ):
        for seed, response in times.items():
            fabricate(
                study / f"policy={policy},predictor={predictor},seed={seed}",
                [f"policy={policy}", f"predictor={predictor}", f"seed={seed}"],
                summary=figures(response, **FIGURES | {"seed": seed}),
                choices={"policy": policy, "predictor": predictor},
            )
    found = differences(groups(study))
    assert best_of(found).group.label == "sa, user_estimate"
    assert best_of([one for one in found if one.pairs == 1]).group.label == "equi, adept"


def by_label(found):
    return {one.group.label: one for one in found}


def ratios(own, reference):
    return log_ratios(TIMES[own], TIMES[reference])


def test_differences_are_paired_and_read_together(study):
    found = differences(groups(study))
    assert {one.reference.label for one in found} == {"easy, user_estimate"}
    assert [one.pairs for one in found] == [12] * 4
    adept = by_label(found)["sa, adept"]
    mean = ratios(("sa", "adept"), ("easy", "user_estimate")).mean()
    assert adept.change.mean == pytest.approx(np.expm1(mean))
    assert {one.set for one in found} == {
        "5 intervals of mean_response_time"
    }  # one by the policy alone
    alone = compare([ratios(("sa", "adept"), ("easy", "user_estimate"))]).comparisons[0]
    assert adept.change.low < alone.change.low
    assert adept.comparison.single == alone.change
    assert adept.comparison.certain
    assert not by_label(found)["sa, noisy_oracle"].comparison.certain


def test_shares_of_gain_are_against_the_oracle_under_the_same_policy(study):
    found = by_label(differences(groups(study)))
    right = share_of_gain(*(TIMES[one] for one in (("sa", "adept"), ("sa", "oracle"))),
                          TIMES["easy", "user_estimate"])  # fmt: skip
    assert found["sa, adept"].kept == right
    assert found["sa, oracle"].kept == ""
    assert found["easy, oracle"].kept == ""


def test_a_share_is_not_told_where_the_oracle_may_gain_nothing_or_it_is_unbounded():
    def of(oracle):
        times = {"user_estimate": (100.0,) * 12, "adept": (60.0, 74.0, 57.0) * 4, "oracle": oracle}
        every = [drawn(times["user_estimate"], policy="easy", predictor="user_estimate")]
        every += [drawn(times[name], policy="sa", predictor=name) for name in ("adept", "oracle")]
        return by_label(differences(every))["sa, adept"].kept

    sure = of((50.0, 62.0, 44.0) * 4)
    assert 0 < sure.low < sure.mean < sure.high < np.inf
    assert of((50.0, 150.0, 100.0) * 4) == NO_GAIN
    assert of((50.0, 62.0, 44.0)) == NO_GAIN  # no interval below eight pairs


def test_a_share_stands_beside_what_the_predictor_alone_is_worth(study):
    every = groups(study)
    found = by_label(differences(every))
    assert found["sa, oracle"].step.group.label == "easy, oracle"
    assert found["sa, adept"].step is None  # easy by adept was not played
    table = difference_rows(differences(every))
    alone = table.set_index("runs")["change by runtime information under easy"]
    assert alone["sa, oracle"] == table.set_index("runs")["change"]["easy, oracle"]
    assert alone["sa, adept"] == "–"


def test_what_differs_in_policy_and_predictor_says_what_the_policy_does_alone(study):
    found = by_label(differences(groups(study)))
    right = found["sa, oracle"].alone.change
    mean = ratios(("sa", "oracle"), ("easy", "oracle")).mean()
    assert right.mean == pytest.approx(np.expm1(mean))
    assert found["easy, oracle"].alone is None  # one of them is the same
    assert found["sa, adept"].alone is None  # easy by adept was not played
    row = difference_rows(differences(groups(study))).set_index("runs").loc["sa, oracle"]
    assert row["change by policy"].startswith(f"{100 * right.mean:.1f} % [")
    only = [found["sa, oracle"]]
    assert "by the policy alone)" in verdict(groups(study), only, None).sentences[BEST]


def drawn(times, **setting):
    samples = [Sample(None, f"seed={k}", {"seed": k, "mean_response_time": float(one)})
               for k, one in enumerate(times)]  # fmt: skip
    return Group({key.replace("_", "."): value for key, value in setting.items()}, "run", samples)


def test_a_reference_is_told_by_what_differs_from_it():
    blind, aware = ((policy, belief) for policy, belief in (("easy", "mean"), ("sa", "last")))
    every = [
        drawn((factor * base, factor * 2 * base), policy=policy, cluster_belief=belief, load=base)
        for base in (100, 200)
        for (policy, belief), factor in ((blind, 1.0), (aware, 0.5), (("sa", "mean"), 2.0))
    ]
    assert all(one.reference.setting["cluster.belief"] == one.group.setting["cluster.belief"]
               for one in differences(every))  # fmt: skip
    found = differences(every, against="policy=easy, cluster.belief=mean")
    changes = {(*one.group.setting.values(),): round(one.change.mean, 3) for one in found}
    assert changes == {
        ("sa", "last", 100): -0.5, ("sa", "mean", 100): 1.0,
        ("sa", "last", 200): -0.5, ("sa", "mean", 200): 1.0,
    }  # fmt: skip
    with pytest.raises(Exception, match=r"--against cluster.belief=oracle: there is no such group"):
        differences(every, against="cluster.belief=oracle")


def test_the_twin_keeps_what_it_does_not_share_with_the_reference():
    easy = drawn((10, 10), policy="easy", policy_react="–", load=1)
    careful = drawn((8, 5), policy="careful", policy_react="avoid", load=1)
    (one,) = differences([easy, careful], against="policy=easy")
    assert (one.group, one.reference) == (careful, easy)
    assert (one.comparison.least, one.comparison.most) == pytest.approx((-0.5, -0.2))


def test_shares_change_by_percentage_points(study):
    for run in study.rglob("summary.json"):
        figures = json.loads(run.read_text())
        share = 0.08 if "easy" in str(run) else 0.75
        run.write_text(json.dumps(figures | {"prediction_within_20": share}))
    every = groups(study)
    found = differences(every, "prediction_within_20")
    table = difference_rows(found).set_index("runs")
    assert table.loc["sa, adept", "change"] == "+67.0 pp, identical replications"
    assert difference_figures(found)["change"].max() == pytest.approx(0.67)
    said = verdict(every, found, None)
    assert "predicted within 20 % +67.0 pp, identical replications against" in said.sentences[BEST]
    assert said.order[0].policy == "sa"


def test_identical_runs_are_no_difference_and_do_not_count(study):
    before = by_label(differences(groups(study)))["sa, adept"]
    for seed, response in enumerate(TIMES["easy", "user_estimate"], start=1):
        fabricate(
            study / f"policy=sa,predictor=user_estimate,seed={seed}",
            ["policy=sa", "predictor=user_estimate", f"seed={seed}"],
            summary=figures(response, **FIGURES | {"seed": seed}),
            choices={"policy": "sa", "predictor": "user_estimate"},
        )
    every = differences(groups(study))
    same = by_label(every)["sa, user_estimate"]
    assert (same.comparison.identical, same.comparison.certain, same.set) == ("runs", False, "")
    assert by_label(every)["sa, adept"].change == before.change
    row = difference_rows(every).set_index("runs").loc["sa, user_estimate"]
    assert row["change"] == "no difference"
    only = [same]
    assert verdict(groups(study), only, None).sentences[BEST].startswith("No difference: sa, user_")


def test_a_gain_that_includes_zero_is_not_called_best(study):
    noisy = [one for one in differences(groups(study)) if "noisy" in one.group.label]
    said = verdict(groups(study), noisy, None)
    assert said.sentences[BEST].startswith("No best: nothing gains, nearest is sa, noisy_oracle")
    assert "which includes 0, 12 pairs" in said.sentences[BEST]


def test_an_oracle_is_not_ranked_where_nothing_else_makes_a_difference(study):
    every = {group.label: group for group in groups(study)}
    base = every["easy, user_estimate"]
    same = Group({"policy": "sa", "predictor": "user_estimate"}, "run", list(base.samples))
    some = [base, same, every["sa, oracle"]]
    said = verdict(some, differences(some), None).sentences[BEST]
    assert said.startswith("No difference: sa, user_estimate against easy, user_estimate")
    assert said.endswith("An oracle is not ranked, as no site has one.")


def test_of_a_queue_that_does_not_settle_no_percentage_is_told(study, capsys):
    for run in study.rglob("summary.json"):
        if "policy=sa,predictor=adept" in str(run):
            figures = json.loads(run.read_text()) | {"steady": False, "steady_load": 0.5}
            run.write_text(json.dumps(figures))
    found = by_label(differences(groups(study)))
    assert np.isnan(found["sa, adept"].change.mean)
    assert found["sa, adept"].kept == ""
    assert found["sa, oracle"].comparison.certain
    assert main([str(study), "--table", "--markdown"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(
        "The queue does not settle under sa, adept (its jobs settle up to load 0.5): means depend"
    )
    answered = shown.partition("Differences on the same jobs")[2].splitlines()
    row = " ".join(line for line in answered if line.startswith("sa, adept"))
    assert "does not settle" in row
    assert "%" not in row
    table = pd.read_csv(study / "differences.csv")
    row = table[(table["policy"] == "sa") & (table["predictor"] == "adept")].iloc[0]
    assert row[["change", "change_low", "change_high", "least", "most"]].isna().all()
    assert "| sa, adept | – | 12 | does not settle |" in (study / "comparison.md").read_text()


def windows(policy, times, begins):
    drawn = [sample(f"{policy}/replication={k}", 1, time, window_begin=begin, steady=k > 3)
             for k, (time, begin) in enumerate(zip(times, begins, strict=True))]  # fmt: skip
    return Group({"policy": policy}, "run", drawn)


def test_each_log_has_its_own_windows():
    def of(policy, log, times, begins):
        group = windows(policy, times, begins)
        return Group({"policy": policy, "workload.path": log}, "run", group.samples)

    begins = {"short": [0.0, 9.0, None, None], "long": [5.0, 3.0, 8.0, 1.0]}
    every = [
        of(policy, log, np.array([1.0, 2.0, 3.0, 4.0]) * (2.0 if policy == "sa" else 1.0), begin)
        for log, begin in begins.items()
        for policy in ("easy", "sa")
    ]
    assert [one.pairs for one in differences(every)] == [2, 4]
    assert answering.differences(every[:1]) == ([], answering.Family([], 0, 1, np.nan))


def test_windows_are_told_in_the_order_of_the_log_and_drawn_weeks_do_not_count():
    begins = [*np.random.default_rng(5).permutation(30).astype(float), None, None]
    level = np.array([100.0 if begin is None else 100 + begin for begin in begins])
    easy, sa = windows("easy", 0 * level + 100, begins), windows("sa", level, begins)
    (found,), family = answering.differences([easy, sa], RESPONSE)
    assert found.pairs == 30
    assert found.comparison.most == pytest.approx(0.29)
    assert family.block == 2  # windows that rise are alike, and 15 blocks are the fewest doubled
    assert family.correlation > 0.9
    own = {"sa": [one.summary for one in sa.samples]}
    said = windows_sentences(own, 2, 0.95)
    assert "correlate by 0.95 and are read in blocks of 2" in said[0]
    assert said[1].endswith("do not count as windows: 2.")
    assert partly_unsteady(own) == ["The queue does not settle in 4 of 30 simulations of sa: they "
                                    "count, but changes depend on their length."]  # fmt: skip


def test_only_simulations_that_both_have_are_paired(study):
    (study / "policy=sa,predictor=adept,seed=2/summary.json").unlink()
    found = by_label(differences(groups(study)))
    assert found["sa, adept"].pairs == 11
    kept = np.delete(ratios(("sa", "adept"), ("easy", "user_estimate")), 1)
    assert found["sa, adept"].change.mean == pytest.approx(np.expm1(kept.mean()))


def test_the_reference_may_be_named_and_a_baseline_comes_first(study):
    named = differences(groups(study), against="sa, oracle")
    assert {one.reference.label for one in named} == {"sa, oracle"}
    with pytest.raises(Exception, match="--against best: there is no such group"):
        differences(groups(study), against="best")
    rigid = Group({"policy": "easy"}, "run", [sample("a", 1, 9.0), sample("b", 2, 8.0)])
    base = Group({"policy": "easy"}, "baseline", [sample("a", 1, 10.0), sample("b", 2, 11.0)])
    (found,) = differences([rigid, base])
    assert (found.reference.role, found.comparison.least) == ("baseline", pytest.approx(8 / 11 - 1))


def test_under_one_policy_others_are_compared_with_requested_times():
    learned, requests = (
        Group({"predictor": name}, "run", [sample(name, 1, response)])
        for name, response in (("last_two", 9.0), ("user_estimate", 10.0))
    )
    (found,) = differences([learned, requests])
    assert (found.group, found.reference) == (learned, requests)
    assert differences([learned, Group({"predictor": "adept"}, "run", [sample("b", 1, 8.0)])]) == []


def sample(name, seed, response, **more):
    return Sample(None, name, {"seed": seed, "mean_response_time": response, **more})


def test_replications_pair_by_number_and_other_jobs_never_compare():
    def group(policy, load, values):
        drawn = [sample(f"{policy}{load}/replication={k}", 1, v) for k, v in values]
        return Group({"policy": policy, "workload.load": load}, "run", drawn)

    rigid = group("easy", 0.5, [(0, 10.0), (1, 20.0), (2, 31.0)])
    other = group("sa", 0.5, [(2, 30.0), (0, 9.0)])
    apart = group("sa", 0.7, [(0, 1.0), (1, 1.0)])
    (found,) = differences([rigid, other, apart])
    assert (found.group, found.pairs) == (other, 2)
    assert found.comparison.most == pytest.approx(30 / 31 - 1)


def test_load_curves_stop_where_the_queue_does_not_settle():
    def group(policy, load, grows):
        drawn = [sample(f"r/replication={k}", 1, 10 * load + k, steady=not grows[k])
                 for k in range(3)]  # fmt: skip
        return Group({"policy": policy, "workload.load": load}, "run", drawn)

    easy = [group("easy", load, [load > 0.6, load > 0.4, False]) for load in (0.9, 0.5, 0.7)]
    sa = [group("sa", load, [False] * 3) for load in (0.5, 0.7)]
    found = {one.label: one for one in load_curves([*easy, *sa])}
    assert list(found["easy"].points) == [0.5]
    assert found["easy"].says() == "does not settle from load 0.7 on"
    assert found["easy"].points[0.5].mean == pytest.approx(6.0)
    assert found["sa"].says() == "goes up to load 0.7"
    table = curve_rows(load_curves([*easy, *sa]), RESPONSE)
    assert table["load 0.7"].tolist()[0] == "–"
    assert load_curves([Group({"policy": "sa"}, "run", [])]) == []


def test_regret_says_which_jobs_bear_it(study):
    found = regrets(groups(study), 4)
    assert set(found) == {"sa, adept", "sa, noisy_oracle", "easy, user_estimate"}
    table = found["sa, adept"]["class"]
    apart = np.mean(np.subtract(TIMES["sa", "adept"][:4], TIMES["sa", "oracle"][:4]))
    assert table.loc["wide_long", ["regret", "waiting"]].tolist() == pytest.approx([apart] * 2)
    assert table.loc["wide_long", "median_error"] == pytest.approx(2.0)
    assert table.loc["narrow_short", "regret"] == 0
    assert regrets(groups(study), 1)["sa, adept"]["count"].index.tolist() == ["17-32", "2-4"]


def test_the_verdict_names_the_best_without_foresight_and_how_sure(study):
    every = groups(study)
    found = differences(every)
    who = answering.losers(best_of(found))
    said = verdict(every, found, who)
    assert said.sentences[BEST].startswith("Best: sa, adept, mean response -4")
    told = "12 pairs; simultaneous, one of 5 intervals of mean_response_time; this row alone has ["
    assert told in said.sentences[BEST]
    assert said.sentences["rests-on"] == "This rests on the assumptions of the configuration."
    assert said.sentences["recorded"] == "No real machine's schedule of these jobs is recorded."
    best, foresight, losing = said.tiles
    assert (best.name, foresight.name, losing.name) == ("best", "foresight", "losers")
    assert best.text == "mean response of sa, adept against easy, user_estimate"
    assert foresight.value.startswith("-50.")
    assert "sa, adept has 73.4 %" in foresight.text
    assert losing.value == "0 %"
    assert "50.0 % sooner" in losing.text
    assert [group.label for group in said.order] == [
        "sa, oracle", "sa, adept", "easy, oracle", "easy, user_estimate", "sa, noisy_oracle"
    ]  # fmt: skip


def told(one, **figures):
    """Return a simulation whose summary says something else."""
    return replace(one, summary={**one.summary, **figures})


def test_one_run_each_and_foresight_that_does_worse_are_said(study):
    alone = [
        Group(group.setting, group.role, group.samples[:1])
        for group in groups(study)
        if group.label != "sa, noisy_oracle"
    ]
    for group in alone:
        if group.label == "sa, oracle":
            group.samples[0] = told(group.samples[0], mean_response_time=70.0)
    found = differences(alone)
    said = verdict(alone, found, None)
    assert said.sentences[BEST] == (
        "No best: first comes sa, adept, mean response -40.0 % against easy, user_estimate, "
        "one pair of runs does not show how sure that is; replications=10 would. "
        "An oracle is not ranked, as no site has one."
    )
    assert "True runtimes do worse here than predictions" in said.tiles[1].text
    assert verdict(alone, [], None).sentences[BEST].endswith('--against "easy, oracle".')
    assert verdict([], [], None).sentences[BEST] == "Nothing is compared: no run is finished."


def test_over_several_settings_the_verdict_says_in_how_many_it_holds():
    def group(policy, load, values):
        drawn = [sample(f"r/replication={k}", 1, v) for k, v in enumerate(values)]
        return Group({"policy": policy, "workload.load": load}, "run", drawn)

    drawn = {("easy", 0.5): [10, 11], ("sa", 0.5): [8, 9], ("fcfs", 0.5): [20, 19],
             ("easy", 0.9): [20, 21], ("sa", 0.9): [9, 8], ("fcfs", 0.9): [40, 41]}  # fmt: skip
    every = [group(*key, values) for key, values in drawn.items()]
    said = verdict(every, differences(every), None)
    assert "sa, workload.load=0.9, mean response" in said.sentences[BEST]
    assert "First in other settings: sa, workload.load=0.5, -1" in said.sentences[BEST]


def test_winners_and_losers_are_told_job_by_job(study):
    who = answering.losers(best_of(differences(groups(study))))
    assert (who.read, who.there, who.longer, who.shorter) == (12, 12, 0.0, 0.5)  # all count
    assert who.sentence() == (
        "Who loses: 0 % of the jobs respond later under sa, adept than under easy, user_estimate, "
        "50 % sooner; no class does in the mean (simulations: 12 of 12)."
    )
    table = who.tables["class"]
    assert table.index.tolist() == ["narrow_short", "wide_long"]
    own, base = (TIMES[key] for key in (("sa", "adept"), ("easy", "user_estimate")))
    apart = np.subtract(own, base).mean()
    assert table.loc["wide_long", "change"] == pytest.approx(2 * apart)
    assert table.loc["narrow_short", ["jobs", "longer", "change"]].tolist() == [0.5, 0.0, 0.0]
    assert most_affected(table).index.tolist() == ["wide_long"]  # the others neither lose nor gain


def test_a_page_of_an_earlier_comparison_is_said_to_be_that(study, capsys):
    assert main([str(study)]) == 0
    assert "is of an earlier comparison" not in capsys.readouterr().out
    assert main([str(study), "--table"]) == 0
    assert f"{study / 'comparison.html'} is of an earlier comparison" in capsys.readouterr().out


def test_who_loses_is_told_of_the_run_that_is_asked_about(study, capsys):
    assert main([str(study), "--table", "--subject", "sa, noisy_oracle"]) == 0
    shown = capsys.readouterr().out
    own, base = (TIMES[key] for key in (("sa", "noisy_oracle"), ("easy", "user_estimate")))
    later, sooner = (100 * np.mean(s * np.subtract(own, base) > 0.25) / 2 for s in (1, -1))
    assert "Best: sa, adept" in shown
    assert f"Who loses: {later:.3g} % of the jobs respond later under sa, noisy_oracle" in shown
    assert f"{sooner:.3g} % sooner" in shown
    assert "simulations: 12 of 12" in shown
    assert main([str(study), "--table", "--subject", "sa,noisy_oracle"]) == 0
    assert "respond later under sa, noisy_oracle" in capsys.readouterr().out
    assert main([str(study), "--table", "--subject", "sa"]) == 0  # of several the best
    assert "respond later under sa, adept" in capsys.readouterr().out
    assert (
        main([str(study), "--table", "--subject", "policy=easy"]) == 0
    )  # the other is the reference
    assert "respond later under easy, oracle" in capsys.readouterr().out
    assert main([str(study), "--table", "--subject", "easy, user_estimate"]) == 2
    assert "easy, user_estimate: not compared with another group; these" in capsys.readouterr().err
    assert main([str(study), "--table", "--against", "sa"]) == 2
    assert "--against sa: several groups have it; name one" in capsys.readouterr().err


def test_simulations_that_do_not_count_are_told_with_the_reason(study, monkeypatch):
    one = by_label(differences(groups(study)))["sa, noisy_oracle"]
    path = one.group.samples[0].folder / "jobs.parquet"
    jobs(50.0, 30.0).assign(job_id=[1, 9]).to_parquet(path)
    who = answering.losers(one)
    assert "simulations: 11 of 12, as others have no table of the same jobs" in who.sentence()
    monkeypatch.setattr("sim.report.answers.MOST_JOBS", 8)
    assert answering.losers(one).read == 4


def test_users_of_several_drawn_workloads_are_told_of_the_first_alone(study):
    one = by_label(differences(groups(study)))["sa, noisy_oracle"]
    for group in (one.group, one.reference):
        for place, sample in enumerate(group.samples):
            table = pd.read_parquet(sample.folder / "jobs.parquet", partitioning=None)
            users = [5, 6] if place == 0 else [6, 5]
            table.assign(user=users).to_parquet(sample.folder / "jobs.parquet")
    assert answering.losers(one).tables["user"]["change"].nunique() == 2
    one.group.samples[:] = [told(s, given_applications="invented") for s in one.group.samples]
    who = answering.losers(one)
    own, base = (2 * TIMES[key][0] for key in (("sa", "noisy_oracle"), ("easy", "user_estimate")))
    assert who.tables["user"]["change"].to_dict() == {5: 0.0, 6: pytest.approx(own - base)}
    assert who.anew


@pytest.mark.slow
def test_the_command_shows_and_writes_the_answers(study, capsys):
    assert main([str(study), "--table"]) == 0
    shown = capsys.readouterr().out
    assert "Differences on the same jobs" in shown
    assert "Best: sa, adept" in shown
    written = pd.read_csv(study / "differences.csv")
    row = written[(written["policy"] == "sa") & (written["predictor"] == "adept")].iloc[0]
    assert row["gain_kept"] == pytest.approx(
        by_label(differences(groups(study)))["sa, adept"].kept.mean
    )
    assert main([str(study), "--table", "--against", "nobody"]) == 2
    assert "there is no such group" in capsys.readouterr().err
    assert main([str(study), "--table", "--figure", "utilization"]) == 0
    assert "Differences on the same jobs" in capsys.readouterr().out
    assert main([str(study)]) == 0
    assert (study / "plots/gain_kept.dark.svg").stat().st_size > 5000
    page = (study / "comparison.html").read_text()
    assert "Who bears the regret" in page
    assert "Best: sa, adept" in page
    choice = page.partition('<select id="whom" data-picks="whose">')[2].partition("</select>")[0]
    assert choice.count("<option") == 4  # all that are compared
    assert choice.startswith('<option value="0">sa, adept</option>')
    assert page.count('<div data-whose="') == 4


def test_a_policy_whose_label_it_is_can_be_asked_about(tmp_path, capsys):
    for policy, response in (("easy", 4.0), ("sa", 3.0), ("sa_easy", 2.0)):
        fabricate(tmp_path / policy, [f"policy={policy}"], summary=figures(response),
                  choices={"policy": policy, "predictor": "user_estimate"})  # fmt: skip
    assert main([str(tmp_path), "--table", "--subject", "sa"]) == 0
    assert main([str(tmp_path), "--table", "--subject", "conservative"]) == 2
    assert "there is no such group; nearest are sa_easy; sa" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("begins", "told", "warned"),
    [
        ([0.0, 9.0], "windows of a log", "Windows of one log are not independent draws"),
        ([7.0, 7.0], SAME_JOBS, "their intervals say nothing of other weeks"),
        ([7.0, None], "weeks of a log, drawn again", "intervals get narrower on the same data"),
        ([None, None], "draws of a model", ""),
    ],
)
def test_repetitions_of_the_same_jobs_are_not_read_as_other_weeks(begins, told, warned):
    summaries = [{"window_begin": begin} for begin in begins]
    assert replications_of(summaries) == told
    said = " ".join(windows_sentences({"sa": summaries, "easy": summaries}))
    assert (warned in said) if warned else (said == "")
    assert windows_sentences({"sa": [{"window_begin": 7.0}]}) == []  # no pairs, no interval


def test_a_rule_that_had_nothing_to_go_by_is_called_untried(study):
    every = groups(study)
    assert "untried" not in verdict(every, differences(every), None).sentences.get("molding", "")
    idle = {"menu": "powers_of_two", "molded_jobs": 0, "jobs": 500, "decisions_by_belief": 3}
    for group in every:
        if group.label == "sa, adept":
            group.samples[:] = [told(sample, **idle) for sample in group.samples]
    said = verdict(every, differences(every), None).sentences.get("molding", "")
    assert "Molding is untried under sa, adept, where hardly any start was decided" in said


def test_a_page_of_few_pairs_speaks_of_ranges_and_of_the_oracle_that_ran(study):
    """Three pairs give no interval; an oracle without a certain gain is there all the same."""
    every = groups(study)
    found = differences(every)
    few = [
        replace(
            one, kept=NO_GAIN, comparison=Comparison(Interval(0.1, np.nan, np.nan, 3), 0.0, 0.2)
        )
        for one in found
    ]
    assert "ranges of the pairs (intervals need at least 8)" in forest(every, few, RESPONSE)
    assert "simultaneous 95 % intervals" in forest(every, found, RESPONSE)
    told = page._foresight("", SimpleNamespace(differences=few))
    assert told == f"<p>No share of the oracle's gain is known: {NO_GAIN}.</p>"
    none = page._foresight("", SimpleNamespace(differences=[]))
    assert none.startswith("<p>No policy has runs both with predictor=oracle")
    others = [one for one in every if one.policy != "sa" or one.predictor != "oracle"]
    honest = [one for one in every if "oracle" not in one.predictor]
    for some, said in ((others, "no run under sa has any"), (honest, "predictor=oracle under sa")):
        tile = verdict(some, differences(some), None).tiles[1]
        assert f"with perfect predictions: {said}" in tile.text


def test_who_loses_is_told_of_the_other_runs_in_a_table(study, capsys):
    assert main([str(study), "--table"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("Who loses: ") == 1
    assert "Of several comparisons quote the intervals that hold together" in shown
    rows = [line.split() for line in shown.partition("\nWho loses\n")[2].splitlines()]
    own, base = (TIMES[key] for key in (("sa", "noisy_oracle"), ("easy", "user_estimate")))
    later, sooner = (100 * np.mean(s * np.subtract(own, base) > 0.25) / 2 for s in (1, -1))
    (row,) = (row for row in rows if row[:2] == ["sa,", "noisy_oracle"])
    assert (float(row[2]), float(row[5])) == pytest.approx((later, sooner), rel=3e-3)
    (best,) = (row for row in rows if row[:2] == ["sa,", "adept"])
    assert best[2:] == ["0", "–", "50.0"]


def test_jobs_that_run_longer_than_they_asked_for_are_counted(study):
    one = best_of(differences(groups(study)))
    for sample in one.group.samples:
        path = sample.folder / "jobs.parquet"
        jobs = pd.read_parquet(path, partitioning=None)
        jobs.assign(requested_time=jobs["runtime"] / 1.2).to_parquet(path)
    jobs = sum(
        len(pd.read_parquet(each.folder / "jobs.parquet", partitioning=None))
        for each in one.group.samples
    )
    told = answering.losers(one).sentence()
    assert f" more than 10 %: {jobs:,} under {one.group.label}, 0 under easy," in told
    for sample in one.group.samples:  # within a grace period
        path = sample.folder / "jobs.parquet"
        jobs = pd.read_parquet(path, partitioning=None)
        jobs.assign(requested_time=jobs["runtime"] / 1.05).to_parquet(path)
    assert "exceed" not in answering.losers(one).sentence()


def test_classes_are_divided_where_the_jobs_are(study):
    one = best_of(differences(groups(study)))
    assert "wide: more than 8 processors" in answering.losers(one).meaning
    for sample in (*one.group.samples, *one.reference.samples):
        path = sample.folder / "jobs.parquet"
        jobs = pd.read_parquet(path, partitioning=None)
        jobs.assign(requested_processors=jobs["requested_processors"] * 64).to_parquet(path)
    who = answering.losers(one)
    assert who.narrow > 64
    assert who.tables["class"].index.tolist() == ["narrow_short", "wide_long"]


def test_a_share_that_may_be_0_is_compared_by_differences_the_oracles_too(study):
    every = groups(study)
    for group in every:
        lost = {"sa, oracle": 0.0, "sa, adept": 0.05}.get(group.label, 0.1)
        group.samples[:] = [told(one, loss_of_capacity=lost * (1 + k % 3 / 20))
                            for k, one in enumerate(group.samples)]  # fmt: skip
    found = by_label(differences(every, "loss_of_capacity"))
    assert found["sa, oracle"].change.mean == pytest.approx(-0.105)
    assert found["sa, adept"].kept.mean == pytest.approx(0.5)


def test_a_figure_of_which_neither_is_better_says_how_it_is_ranked(study):
    every = groups(study)
    for group in every:
        group.samples[:] = [told(one, held_area=one.summary["mean_response_time"])
                            for one in group.samples]  # fmt: skip
    said = verdict(every, differences(every, "held_area"), None).sentences[BEST]
    assert said.endswith(" A lower held area counts as better here.")
    assert "counts as better" not in verdict(every, differences(every), None).sentences[BEST]


def test_runs_that_are_not_ranked_or_settle_in_part_are_said_first(study):
    every = groups(study)
    for group in every:
        if group.label == "sa, adept":
            group.samples[:2] = [told(one, steady=False, steady_load=0.6)
                                 for one in group.samples[:2]]  # fmt: skip
            group.samples[:] = [told(one, steady=one.summary.get("steady", True))
                                for one in group.samples]  # fmt: skip
        if group.label == "sa, noisy_oracle":
            group.samples[0] = told(group.samples[0], mean_response_time=0.0)
    said = verdict(every, differences(every), None)
    assert said.sentences["partly"] == (
        "The queue does not settle in 2 of 12 simulations of sa, adept (its jobs settle up to load "
        "0.6): they count, but changes depend on their length."
    )
    none = "Not ranked, as they have no ratio (0 or nothing in some run): sa, noisy_oracle."
    assert f" {none}" in said.sentences[BEST]
    (noisy,) = (group for group in every if group.label == "sa, noisy_oracle")
    noisy.samples[:] = [told(one, mean_response_time=0.0) for one in noisy.samples]
    assert verdict(every, differences(every), None).sentences[BEST].startswith(f"{none} Best: ")
    assert (
        "Not ranked" not in verdict(groups(study), differences(groups(study)), None).sentences[BEST]
    )


def test_the_best_is_named_with_those_that_are_the_same_to_the_last_bit(study):
    every = groups(study)
    plain = verdict(every, differences(every), None).sentences[BEST]
    assert plain.startswith("Best: sa, adept, mean response")
    (best,) = (group for group in every if group.label == "sa, adept")
    moved = {"molded_jobs": 3, "resized_jobs": 2, "reallocations": 7, "decisions_by_belief": 4}
    moved["jobs"] = 9
    best.samples[:] = [told(one, **moved) for one in best.samples]
    every += [Group({"policy": "sa", "predictor": name}, "run", list(best.samples))
              for name in ("twin", "near")]  # fmt: skip
    every[-1].samples[0] = told(best.samples[0], makespan=1.0)
    said = verdict(every, differences(every), None)
    assert said.sentences[BEST].startswith("Best: sa, adept, mean response")
    assert " The same to the last bit: sa, twin." in said.sentences[BEST]
    assert said.sentences["treated"].endswith(
        "24 resized (84 times) at no cost, whatever was predicted."
    )
    (oracle,) = (group for group in every if group.label == "sa, oracle")
    oracle.samples[:] = best.samples
    tile = verdict(every, differences(every), None).tiles[1]
    assert (tile.value, tile.text) == ("no effect", "of predictions under sa")


def test_long_keys_are_named_by_their_end_where_no_other_ends_so():
    keys = {"policy": "mine", "policy.allocation.horizon": 60, "workload.load": 0.9}
    assert Group(keys, "run").label == "mine, horizon=60, workload.load=0.9"
    both = keys | {"policy.backfill.horizon": 5}
    assert "policy.allocation.horizon=60, " in Group(both, "run").label
    assert "policy.backfill.horizon=5" in Group(both, "run").label


def test_a_policy_of_one_group_is_the_reference_of_all_on_its_jobs(study):
    every = groups(study)
    alone = Group({"policy": "easy_plus", "predictor": "last_two"}, "run", list(every[0].samples))
    found = differences([*every, alone], against="policy=easy_plus")
    assert {one.reference.label for one in found} == {"easy_plus, last_two"}
    assert len(found) == len(every)


def test_an_oracle_of_other_simulations_says_nothing_of_an_effect(study):
    every = [Group(one.setting, one.role, list(one.samples)) for one in groups(study)]
    named = {one.label: one for one in every}
    named["sa, adept"].samples[6:] = []
    named["sa, oracle"].samples[:6] = []
    assert by_label(differences(every))["sa, adept"].kept != answering.NO_EFFECT


def test_runs_without_a_reference_are_named(study):
    every = groups(study)
    asked = differences(every, against="predictor=noisy_oracle")
    said = verdict(every, asked, None).sentences[BEST]
    assert "Not compared, as there is no reference for them: easy, " in said
    assert "sa, " not in said.partition("Not compared")[2]
    assert "Not compared" not in verdict(every, differences(every), None).sentences[BEST]


def test_ranges_of_few_pairs_are_drawn(study):
    few = [Group(one.setting, one.role, one.samples[:3]) for one in groups(study)]
    found = by_label(differences(few))["sa, adept"]
    assert np.isnan(found.change.low)
    assert (found.span.low, found.span.high) == (found.comparison.least, found.comparison.most)
    assert found.span.low < found.change.mean < found.span.high
    whole = by_label(differences(groups(study)))["sa, adept"]
    assert whole.span == whole.change


def test_a_backtest_to_be_distrusted_stands_before_the_answer(study, capsys, monkeypatch):
    bad, good = ("Backtest of a.swf: distrust. Far.", "Backtest of b.swf: care. Near.")
    monkeypatch.setattr("sim.results.sentences.backtest_sentences", lambda _: [bad, good])
    assert main([str(study), "--markdown"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(bad)
    assert shown.count(bad) == shown.count(good) == 1
    assert shown.index("Best: sa, adept") < shown.index(good)
    text = (study / "comparison.html").read_text()
    assert text.index(bad) < text.index("Best: sa, adept") < text.index(good)
    assert bad in (study / "comparison.md").read_text()


def test_a_run_that_does_not_count_is_said_first(study, capsys):
    (study / "policy=sa,predictor=adept,seed=2/summary.json").write_text("{")
    assert main([str(study), "--table"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Runs left out, named below the first table: 1.\n")
    assert "damaged policy=sa,predictor=adept,seed=2" in shown
