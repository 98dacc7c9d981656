"""The impact study at toy size, and its tables on figures whose answers are known."""

import json

import numpy as np
import pandas as pd
import pytest

from scripts import impact_page, kept_table, study_impact
from scripts.composing import composed
from scripts.impact_page import Results
from scripts.study_impact import PARTS, Case, cut
from sim.run import play, set_scene
from sim.statistics.paired import share_of_gain

CURVES = "application,problem,nprocs,runtime_s\nCG,B,1,100\nCG,B,8,20\nFT,A,1,60\nFT,A,16,10\n"


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def carried_out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("impact")
    (folder / "curves.csv").write_text(CURVES)
    asked = ["lublin", str(folder / "out.jsonl"), "--curves", str(folder / "curves.csv"),
             "--jobs", "15", "--replications", "2"]  # fmt: skip
    parts = ["--parts", "predictors", "causes", "--truths", "measured"]
    study_impact.main([*asked, *parts])
    return folder, asked


def test_all_cases_replay_the_same_jobs(carried_out):
    folder, _ = carried_out
    found = lines(folder / "out.jsonl")
    cases = [case.key for part in ("predictors", "causes") for case in PARTS[part]("measured")]
    assert len(cases) == len(set(cases))
    assert sorted({one["case"] for one in found}) == sorted(cases)
    assert len(found) == 2 * len(cases)
    again = [(one["replication"], one["mean_response_time"]) for one in found
             if (one["policy"], one["predictor"]) == ("easy", "user_estimate")]  # fmt: skip
    assert len(again) == 4
    assert len(set(again)) == 2  # a replication has one set of jobs, in all parts


def test_what_is_done_is_not_repeated(carried_out):
    folder, asked = carried_out
    before = (folder / "out.jsonl").read_text()
    study_impact.main([*asked, "--parts", "causes", "--truths", "measured"])
    assert (folder / "out.jsonl").read_text() == before


def test_mending_all_errors_gives_the_oracles_schedule():
    trusting = ("repair=never", "reach=1000", "observations=0", "distrust=false")
    base = ("workload.jobs=60", "policy=sa_easy", "workload.load=0.8", "given=free")
    base += tuple(f"policy.allocation.advice.{one}" for one in trusting)
    responses = {}
    for name, more in {
        "oracle": ("predictor=oracle",),
        "mended": ("predictor=repaired",),
        "kept": ("predictor=repaired", "predictor.invert=true"),
        "adept": ("predictor=adept",),
    }.items():
        config = composed(*base, *more)
        jobs = play(config, config, set_scene(config, 0)).outcome.tables.jobs
        responses[name] = jobs["response_time"].tolist()
    assert responses["mended"] == responses["oracle"]  # but for the policy's caution
    assert responses["oracle"] != responses["adept"]
    assert responses["kept"] == responses["adept"]


def test_every_table_of_the_toy_has_its_rows(carried_out, capsys):
    folder, _ = carried_out
    impact_page.main([f"toy={folder / 'out.jsonl'}"])
    shown = capsys.readouterr().out
    for title, part, _ in impact_page.TABLES:
        assert (f"### {title}: toy, measured curves, 2 replications" in shown) == (
            part in ("predictors", "causes")
        )
    assert "| oracle |" in shown
    assert "nan" not in shown.replace("tenant", "")


def test_replications_that_lack_a_case_are_left_out(carried_out):
    folder, _ = carried_out
    frame = pd.read_json(folder / "out.jsonl", lines=True)
    assert len(impact_page.whole(frame)) == len(frame)
    last = frame[(frame["part"] == "causes") & (frame["replication"] == 1)].index[-1]
    left = impact_page.whole(frame.drop(index=last))
    assert set(left.loc[left["part"] == "causes", "replication"]) == {0}
    assert set(left.loc[left["part"] == "predictors", "replication"]) == {0, 1}


def made_up(times):
    """Simulations of the main part with given mean responses by (policy, predictor, beliefs)."""
    rows = []
    for (policy, predictor, beliefs), values in times.items():
        rows += [
            {"part": "predictors", "truth": "model", "policy": policy, "predictor": predictor,
             "jobs_setting": "", "beliefs": beliefs, "replication": k, "mean_response_time": value,
             "prediction_median_error": 0.1, "seconds": 2.0, "held_area": 5.0}
            for k, value in enumerate(values)
        ]  # fmt: skip
    return Results("made up", pd.DataFrame(rows))


def test_the_main_table_tells_gains_kept():
    easy, best = np.array([1000.0, 1200.0, 900.0]), np.array([500.0, 500.0, 480.0])
    times = {(policy, predictor, beliefs): (easy + best) / 2
             for _, policy, predictor, beliefs in impact_page.predictors()}  # fmt: skip
    times |= {("easy", "user_estimate", ""): easy, ("sa_easy", "oracle", ""): best}
    table = impact_page.main_table(made_up(times), "model").splitlines()
    adept = next(line for line in table if line.startswith("| adept"))
    assert "| 50.0 % [50.0, 50.0] |" in adept
    assert share_of_gain((easy + best) / 2, best, easy).mean == pytest.approx(0.5)
    assert "| < 0.001 |" not in adept  # three pairs, twelve comparisons
    assert next(line for line in table if line.startswith("| oracle |")).count("100 %") == 2


def test_windows_of_a_log_are_spread_evenly_and_keep_its_head(tmp_path):
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 8\n" + "".join(f"{k} 0\n" for k in range(1000)))
    found = cut(log, tmp_path, 3, 100)
    bodies = [path.read_text().splitlines() for path in found]
    assert [body[0] for body in bodies] == ["; MaxProcs: 8"] * 3
    assert [body[1] for body in bodies] == ["0 0", "430 0", "860 0"]
    assert [len(body) for body in bodies] == [141, 141, 141]


def test_a_case_is_named_by_all_that_it_is():
    case = Case("load", "model", "easy", "oracle", ("workload.load=0.5",), ("x=1",))
    assert case.key == "load model easy oracle workload.load=0.5 x=1"
    with pytest.raises(SystemExit):
        study_impact.main(["log", "out", "--curves", "x"])


def test_all_of_a_charged_setting_run_the_calibration_runs(carried_out):
    folder, asked = carried_out
    out = folder / "charged.jsonl"
    study_impact.main([asked[0], str(out), *asked[2:], "--parts", "charged", "--truths", "model"])
    found = pd.DataFrame(lines(out))
    assert sorted(set(found["predictor"])) == ["adept", "consensus", "oracle", "user_estimate"]
    paid = found.groupby("replication")["calibration_area"]
    assert (paid.nunique() == 1).all()
    assert (paid.min() > 0).all()
    free = folder / "free.jsonl"
    study_impact.main([asked[0], str(free), *asked[2:], "--parts", "kept", "--truths", "model"])
    easy = found["predictor"] == "user_estimate"
    calm = pd.DataFrame(lines(free)).query("predictor == 'user_estimate'")
    assert (found.loc[easy, "held_area"].to_numpy() > calm["held_area"].to_numpy()).all()
    assert found.loc[easy, "jobs"].tolist() == calm["jobs"].tolist()


def test_the_place_belongs_to_what_is_done(carried_out):
    folder, asked = carried_out
    out = folder / "loads.jsonl"
    for load in ("0.5", "0.7"):
        study_impact.main([asked[0], str(out), *asked[2:], "--parts", "classes", "--truths",
                           "model", "--load", load, "--set", "moldability.noise=0"])  # fmt: skip
    found = lines(out)
    assert len({one["place"] for one in found}) == 2
    assert len(found) == 2 * 2 * len(list(PARTS["classes"]("model")))


def kept_frame(own, easy=(1000.0, 1000.0, 900.0), best=(500.0, 500.0, 480.0), place="toy"):
    cases = {("easy", "user_estimate"): easy, ("sa_easy", "oracle"): best,
             ("sa_easy", "adept"): own}  # fmt: skip
    return pd.DataFrame(
        [{"place": place, "part": "kept", "truth": "model", "policy": policy,
          "predictor": predictor, "case": Case("kept", "model", policy, predictor).key,
          "replication": k, "mean_response_time": value, "prediction_median_error": 0.08,
          "share_beliefs_off": None, "area_share_beliefs_off": None, "share_fitted_starts": 1.0}
         for (policy, predictor), values in cases.items() for k, value in enumerate(values)]
    )  # fmt: skip


def test_kept_tells_the_share_of_the_gain_and_the_worst_window():
    (row,) = kept_table.rows_of(kept_frame((500.0, 1200.0, 480.0)))
    assert row["kept"][0] == pytest.approx(1 - 700 / 1420)
    assert (row["worst_of_easy"], row["worst_of_oracle"]) == (1.2, 2.4)
    assert kept_table.missed(row) == "kept, worst window"
    (row,) = kept_table.rows_of(kept_frame((510.0, 520.0, 490.0)))
    assert kept_table.missed(row) == ""
    slow = kept_frame(
        (1090.0,) * 3, best=(1000.0, 1000.0, 999.0)
    )  # EASY's is less than the oracle's
    assert kept_table.missed(next(kept_table.rows_of(slow))) == ""  # a gain not worth a share


def test_a_window_that_lacks_a_case_is_left_out():
    frame = kept_frame((510.0, 520.0, 490.0))
    (row,) = kept_table.rows_of(frame.drop(index=frame.index[-1]))
    assert row["windows"] == 2
