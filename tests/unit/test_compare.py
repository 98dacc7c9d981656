import io
import json
import re
import subprocess
import sys

import pandas as pd
import pytest
from rich.console import Console

from sim import compare
from sim.compare import main, print_comparison
from sim.errors import SimError
from sim.report.gathering import LEFT_OUT, find_runs, gather, groups_of, references, with_origins
from sim.report.tables import LABELS
from sim.results import durable
from sim.results.durable import write_failure
from sim.sweeps.configurations import Configuration, flatten, load_yaml, read_configuration


def fabricate(folder, overrides, *, summary=None, config=None, choices=None, baseline=None):
    """A run's folder as Hydra and the simulator leave it."""
    hydra = folder / ".hydra"
    hydra.mkdir(parents=True)
    (hydra / "overrides.yaml").write_text(json.dumps(overrides))
    (hydra / "config.yaml").write_text(json.dumps(config or {"seed": 1, "baseline": "easy"}))
    chosen = {"hydra": {"runtime": {"choices": {"hydra/launcher": "basic", **(choices or {})}}}}
    (hydra / "hydra.yaml").write_text(json.dumps(chosen))
    for place, content in ((folder, summary), (folder / "baseline", baseline)):
        if content is not None:
            place.mkdir(exist_ok=True)
            (place / "summary.json").write_text(json.dumps(content))
    return folder


def figures(response, **more):
    return {"mean_response_time": response, "utilization": 0.5, **more}


@pytest.fixture
def sweep(tmp_path):
    base = {"policy": "sa", "predictor": "adept"}
    common = ["workload.load=0.8"]
    fabricate(tmp_path / "policy=sa,seed=2", [*common, "policy=sa", "seed=2"],
              summary=figures(10.0), choices=base, baseline=figures(30.0))  # fmt: skip
    fabricate(tmp_path / "policy=sa,seed=10", [*common, "policy=sa", "seed=10"],
              summary=figures(None), choices=base)  # fmt: skip
    fabricate(tmp_path / "policy=easy", [*common, "policy=easy"],
              summary=figures(40.0), choices={**base, "policy": "easy"})  # fmt: skip
    fabricate(tmp_path / "seed=7", [*common, "seed=7"], choices=base)
    write_failure(fabricate(tmp_path / "seed=-1", [*common, "seed=-1"], choices=base),
                  "seed must be at least 0, got -1")  # fmt: skip
    (tmp_path / "multirun.yaml").write_text("{}")
    return tmp_path


def test_rows_are_keyed_by_what_differs(sweep):
    table, keys, _ = gather(sweep)
    assert keys == ["policy", "predictor", "seed"]
    assert list(table.columns[4:7]) == keys
    rows = table[["run", "role", "status", *keys]].values.tolist()
    assert rows == [
        ["policy=easy", "run", "finished", "easy", "adept", 1],
        ["policy=sa,seed=2", "run", "finished", "sa", "adept", 2],
        ["policy=sa,seed=2", "baseline", "finished", "easy", "user_estimate", 2],
        ["policy=sa,seed=10", "run", "finished", "sa", "adept", 10],
        ["seed=7", "run", "unfinished", "sa", "adept", 7],
        ["seed=-1", "run", "failed", "sa", "adept", -1],
    ]
    assert table["message"][5] == "seed must be at least 0, got -1"
    assert table["mean_response_time"][2] == 30.0


def blocks(text):
    """The cells of each line of a table below its rule, by the width of 80 characters."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if line.strip()]


def test_a_group_of_replications_is_a_row_with_its_interval_at_80_columns(tmp_path, capsys):
    for policy, shift in (("sa", 0.0), ("easy", 40.0)):
        for seed in range(1, 10):
            fabricate(
                tmp_path / f"{policy}{seed}", [f"policy={policy}", f"seed={seed}"],
                choices={"policy": policy, "predictor": "adept"},
                summary=figures(7000.0 + 60 * seed + 60 * shift, seed=seed, molded_jobs=3,
                                jobs=1000, p95_response_time=25_560.0),
            )  # fmt: skip
    assert main([str(tmp_path), "--table"]) == 0
    folded = capsys.readouterr().out
    console = Console(file=io.StringIO(), width=80)
    groups = groups_of(tmp_path, *gather(tmp_path))
    print_comparison(console, gather(tmp_path)[0], groups)
    text = console.file.getvalue()
    rows = [row for row in blocks(text) if row[0] in ("sa", "easy")]
    assert rows[0] == ["easy", "27 of 9,000", "9", "162 ± 2.11", "7.10", "50.0"]
    assert rows[1] == ["sa", "27 of 9,000", "9", "122 ± 2.11", "7.10", "50.0"]
    assert len(rows) == 2
    assert max(map(len, text.splitlines())) <= 80
    assert re.search(r"sa +easy +-2\d\.\d % \[-2\d\.\d, -2\d\.\d\] ", folded)


def test_what_falls_off_80_columns_follows_below(tmp_path, capsys, monkeypatch):
    for name in ("adept", "oracle"):
        fabricate(tmp_path / f"very-long-name-of-a-run,predictor={name}",
                  ["policy=sa", f"predictor={name}"],
                  summary=figures(1.0, **dict.fromkeys(LABELS, 1.0)),
                  baseline=figures(2.0), choices={"predictor": name})  # fmt: skip
    monkeypatch.setattr(durable, "PAGE_WIDTH", 80)
    assert main([str(tmp_path), "--table"]) == 0
    text = capsys.readouterr().out
    assert "Not shown" not in text
    assert "…" not in text
    words = " ".join(text.split())
    assert all(word in words for label in LABELS.values() for word in label.split())
    assert max(len(line) for line in text.splitlines() if re.search(r"\w   +\w|──", line)) <= 80
    assert words.count("easy, user_estimate") >= 2  # a shared baseline is one row of each block
    assert "In all rows: against easy, user_estimate (baseline); change -50.0 %; pairs 1." in words


def test_why_a_share_of_the_oracles_gain_cannot_be_told_is_said(tmp_path, capsys):
    for place, name in enumerate(("adept", "oracle")):
        for seed in range(1, 10):
            asked = ["policy=sa", f"predictor={name}", f"seed={seed}"]
            fabricate(tmp_path / f"{name}{seed}", asked,
                      summary=figures(100.0 + (-1) ** seed * (seed + place), seed=seed),
                      baseline=figures(100.0, seed=seed),
                      choices={"policy": "sa", "predictor": name})  # fmt: skip
    assert main([str(tmp_path)]) == 0
    assert "oracle's gain not certain" in capsys.readouterr().out
    assert not (tmp_path / "plots/gain_kept.svg").exists()


def test_the_step_between_is_named_by_the_baselines_policy_and_the_runs_predictor(tmp_path):
    run = fabricate(tmp_path / "a", ["policy=sa", "policy.x=3", "predictor.q=2"],
                    summary=figures(1.0, menu="all"), baseline=figures(4.0),
                    choices={"policy": "sa", "predictor": "adept"})  # fmt: skip
    (run / "baseline_predictor").mkdir()
    (run / "baseline_predictor/summary.json").write_text(json.dumps(figures(2.0)))
    table, *_ = gather(tmp_path)
    assert table[["role", "policy", "predictor", "mean_response_time"]].values.tolist() == [
        ["run", "sa", "adept", 1.0],
        ["baseline", "easy", "user_estimate", 4.0],
        ["baseline_predictor", "easy", "adept", 2.0],
    ]
    assert find_runs(tmp_path) == [run]


@pytest.mark.parametrize("predictors", [("user_estimate", "adept"), ("adept",)])
def test_a_policy_that_brings_its_predictor_is_one_row_with_its_name(tmp_path, predictors):
    own = {"predictor@policy.predictor": "last_two"}
    for k, predictor in enumerate(predictors):
        for policy, more in (("easy", {}), ("easy_plus", own)):
            chosen = {"policy": policy, "predictor": predictor, **more}
            asked = [f"policy={policy}", f"predictor={predictor}"]
            fabricate(tmp_path / ",".join(asked), asked, choices=chosen,
                      summary=figures(2.0 if more else 3.0 + k))  # fmt: skip
    table, keys, known = gather(tmp_path)
    assert table.attrs[LEFT_OUT] == len(predictors) - 1
    pairs = references(groups_of(tmp_path, table, keys, known), "easy_plus")
    assert {reference.label for _, reference, _ in pairs} == {"easy_plus, last_two"}
    assert sorted(table[["policy", "predictor", "mean_response_time"]].values.tolist()) == [
        *sorted(["easy", name, 3.0 + k] for k, name in enumerate(predictors)),
        ["easy_plus", "last_two", 2.0],
    ]


def test_policy_predictor_and_menu_are_named_where_all_runs_share_them(tmp_path, capsys):
    for seed in (1, 2):
        fabricate(tmp_path / f"seed={seed}", [f"seed={seed}"],
                  summary=figures(1.0 * seed, menu="powers_of_two", seed=seed),
                  choices={"policy": "sa", "predictor": "adept"})  # fmt: skip
    assert main([str(tmp_path), "--table"]) == 0
    shown = capsys.readouterr().out
    assert "All have the policy sa." in shown
    assert "All have the predictor adept." in shown
    assert "powers_of_two" in shown


def test_tables_say_what_predictors_were_given_and_no_mean_error(tmp_path, capsys):
    given = {"given_charged": True, "given_sizes": "known", "given_size_noise": 0.1,
             "given_applications": "invented", "applications": 50, "given_curves": "invented",
             "given_requested_times": "recorded", "prediction_mape": 1394.729,
             "prediction_median_error": 17.0}  # fmt: skip
    for name, runs in (("adept", 150), ("oracle", 0)):
        fabricate(tmp_path / name, [f"predictor={name}"], choices={"predictor": name},
                  summary=figures(1.0, given_runs=runs, given_work_share=runs / 1000,
                                  **given))  # fmt: skip
    assert main([str(tmp_path), "--markdown", "--latex"]) == 0
    written = [(tmp_path / f"comparison.{end}").read_text() for end in ("md", "tex", "html")]
    for text in (capsys.readouterr().out, *written):
        plain = " ".join(text.replace("\\", "").replace("&#x27;", "'").split())
        assert "Given to adept: 150 runs before the start (15.0 % of the work)" in plain
        assert "Given to oracle: no runs before the start; every job's serial time" in plain
        assert "50 invented applications" in plain
        assert "more than 10 times" in plain
        assert "139,473" not in plain


def test_comparison_is_written_and_safe_to_repeat(sweep, capsys):
    assert main([str(sweep)]) == 0
    first = (sweep / "comparison.csv").read_bytes()
    shown = capsys.readouterr().out
    assert "baseline" in shown
    assert "seed must be at least 0, got -1" in shown
    assert main([str(sweep)]) == 0
    assert (sweep / "comparison.csv").read_bytes() == first
    table = pd.read_csv(sweep / "comparison.csv")
    assert table["mean_response_time"].tolist()[:3] == [40.0, 10.0, 30.0]
    assert table["mean_response_time"][3:].isna().all()
    assert len(table) == 6
    assert not list(sweep.glob(".comparison*"))


def test_replications_are_one_row_with_the_mean_of_their_baselines(tmp_path):
    run = fabricate(tmp_path / "a", [], summary=figures(15.0, replications=2))
    for k, (own, other) in enumerate([(10.0, 50.0), (20.0, 70.0)]):
        fabricate(run / f"replication={k}", [], summary=figures(own), baseline=figures(other))
    table, keys, _ = gather(tmp_path)
    assert keys == []
    assert table["role"].tolist() == ["run", "baseline"]
    assert table["mean_response_time"].tolist() == [15.0, 60.0]


def test_single_run_is_compared_with_its_baseline(tmp_path):
    fabricate(tmp_path, ["policy=sa"], summary=figures(1.0), baseline=figures(2.0))
    table, *_ = gather(tmp_path)
    assert table[["run", "role"]].values.tolist() == [[".", "run"], [".", "baseline"]]


def test_runs_that_no_override_tells_apart_are_by_their_configuration(tmp_path):
    fabricate(tmp_path / "a", [], summary=figures(1.0), config={"x": {"y": 1, "z": 3}})
    fabricate(tmp_path / "b", [], summary=figures(1.0), config={"x": {"y": 2, "z": 3}})
    table, keys, _ = gather(tmp_path)
    assert keys == ["x.y"]
    assert table["x.y"].tolist() == [1, 2]


def test_key_named_like_a_figure_keeps_both(tmp_path):
    for name in ("jobs=5", "jobs=6"):
        fabricate(tmp_path / name, [name], summary=figures(1.0, jobs=99))
    table, keys, known = gather(tmp_path)
    assert table.columns.tolist().count("jobs") == 2
    labels = [group.label for group in groups_of(tmp_path, table, keys, known)]
    assert labels == ["jobs=5", "jobs=6"]


def test_runs_inside_a_run_are_part_of_it(tmp_path):
    run = fabricate(tmp_path / "a", [], summary=figures(1.0), baseline=figures(2.0))
    assert find_runs(tmp_path) == [run]


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_nothing_to_compare_is_one_line_and_status_2(tmp_path, capsys, name):
    (tmp_path / "empty").mkdir()
    assert main([str(tmp_path / name)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert name in error


def test_broken_yaml_is_named(tmp_path, capsys):
    run = fabricate(tmp_path / "a", [], summary=figures(1.0))
    (run / ".hydra" / "overrides.yaml").write_text("[a: {")
    assert main([str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "damaged a: " in out
    assert "overrides.yaml: it is not valid YAML" in out


def test_gather_refuses_a_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(SimError, match="no such folder"):
        gather(path)


def test_module_runs_from_the_command_line(sweep):
    done = subprocess.run(
        [sys.executable, "-m", "sim.compare", str(sweep)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "6 rows in" in done.stdout


def test_a_run_that_is_not_finished_is_no_run_of_other_code():
    settings, runs = [{"seed": 1}, {"seed": 2}, {"seed": 3}], [Configuration()] * 3
    unfinished = (None, {})
    same = [("abc", {}), ("abc", {}), unfinished]
    assert with_origins(settings, runs, same) == settings
    other = with_origins(settings, runs, [("abc", {}), ("", {}), unfinished])
    assert [one["code"] for one in other] == ["abc", "unknown", "unknown"]


def test_other_code_of_a_policys_package_leaves_rigid_jobs_to_compare_with(tmp_path, capsys):
    """A rule that was edited between runs is two policies on the same jobs."""
    own = {"_target_": "mylab.half.Half"}
    for name, policy, inputs in (
        ("old", "half", {"policy.allocation._target_/mylab/half.py": "a" * 64}),
        ("new", "half", {"policy.allocation._target_/mylab/half.py": "b" * 64}),
        ("rigid", "easy", {}),
    ):
        allocation = own if policy == "half" else {"_target_": "sim.Request"}
        place = fabricate(tmp_path / name, [f"policy={policy}", f"+reuse={name}"],
                          summary=figures(len(name) * 2.0, seed=1), choices={"policy": policy},
                          config={"seed": 1, "policy": {"allocation": allocation}})  # fmt: skip
        (place / "manifest.json").write_text(json.dumps({"code": "c" * 64, "inputs": inputs}))
    assert main([str(tmp_path), "--table"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    differences = shown.partition("Differences on the same jobs")[2]
    assert all(f"half, policy.input={mark * 8}" in differences for mark in "ab")
    assert "In all rows: against easy; change -40.0 %; pairs 1." in differences
    assert "=–" not in shown
    assert "reuse" not in shown.replace(str(tmp_path), "")
    assert "start the sweep again by its command" in shown


ODD = (
    "a: 1\nb:\n  c: null\n  d: .5\n  e: 2001-01-01\n  f: 0x1F\n  g: 1_000\n",
    "a: true\nb:\n- c: 1\n  d: 2\n- x\ne: []\nf: {}\ng: off\n",
    "a: |\n  b: 1\n  c: 2\nd: >\n  e: 3\nf: 'g\n\n  h: 4'\n",
    "a: 1\na: 2\nb: c\n  d\n",
    "a: value_of_line_0\nb: 1\n",
    "a: &x 1\nb: y\n",
    "a: 1e3\nb: +1\nc: -.inf\nd: ~\ne: '1'\nf: 1 # g\n",
    "",
)


@pytest.mark.parametrize("text", ODD)
def test_what_is_read_once_for_texts_alike_is_what_yaml_says(text, tmp_path):
    (tmp_path / ".hydra").mkdir()
    path = tmp_path / ".hydra" / "config.yaml"
    for one in (text, text.replace("1", "7"), text.replace("2", "x")):
        path.write_text(one, "utf-8")
        content = load_yaml(path)
        expected = flatten(content) if content else {}
        found = read_configuration(tmp_path).values
        assert repr(dict(found)) == repr(expected)


@pytest.mark.parametrize("word", ["2020-13-41", "0x_"])
@pytest.mark.parametrize("name", ["config.yaml", "hydra.yaml"])
def test_a_word_that_yaml_cannot_read_is_told_with_its_file(name, word, tmp_path):
    (tmp_path / ".hydra").mkdir()
    text = f"hydra:\n  runtime:\n    choices:\n      policy: {word}\n"
    (tmp_path / ".hydra" / name).write_text(text, "utf-8")
    with pytest.raises(SimError, match=rf"{name}: it is not valid YAML \("):
        read_configuration(tmp_path)


def test_choices_are_found_in_all_that_hydra_writes(tmp_path):
    (tmp_path / ".hydra").mkdir()
    path = tmp_path / ".hydra" / "hydra.yaml"
    for choices in ("      policy: sa\n      policy/order: fcfs\n      experiment: null\n", ""):
        path.write_text(
            f"hydra:\n  run:\n    dir: here\n  runtime:\n    cwd: /a b\n    choices:\n{choices}"
            "      hydra/launcher: basic\n  verbose: false\n", "utf-8"
        )  # fmt: skip
        short = {"policy": "sa", "policy/order": "fcfs"} if choices else {}
        assert read_configuration(tmp_path).choices == short
    path.write_text("hydra:\n  runtime: {choices: {policy: easy}}\n", "utf-8")
    assert read_configuration(tmp_path).choices == {"policy": "easy"}


def test_of_many_runs_the_first_are_printed(sweep, monkeypatch, capsys):
    monkeypatch.setattr(compare, "LISTED", 1)
    assert main([str(sweep), "--table"]) == 0
    out = capsys.readouterr().out
    assert "The first 1 of 3 groups; all are in comparison.csv." in out
    assert "6 rows in" in out


def test_keys_join_in_that_tell_alike_runs_apart_and_the_same_run_counts_once(tmp_path):
    for folder in ("a", "b"):
        for policy in ("easy", "sa"):
            values = {"policy": policy, "predictor": {"most_error": 0.7}, "menu": policy}
            fabricate(
                tmp_path / folder / policy,
                [f"policy={policy}"],
                summary=figures(1.0, seed=1),
                choices={"policy": policy},
                config=values if folder == "a" or policy == "easy" else values | {"menu": "all"},
            )
    table, keys, known = gather(tmp_path)
    assert keys == ["menu", "policy"]
    found = {group.label: len(group.samples) for group in groups_of(tmp_path, table, keys, known)}
    assert found == {"menu=easy, easy": 1, "menu=sa, sa": 1, "menu=all, sa": 1}
