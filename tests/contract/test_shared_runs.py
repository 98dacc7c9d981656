"""The shared machine from the command line: every preset runs, bad load is refused."""

import json

import pytest

from sim.results.artefacts import FILES

POLICIES = ["fcfs", "easy_fastest", "sa_easy_usual", "load_aware"]
SMALL = ("cluster=shared", "cluster.processors=16", "workload.jobs=30", "workload.load=0.2",
         "workload.applications=4", "baseline=null", "hydra.run.dir=run")  # fmt: skip
CPU = "start_time,end_time,node,available_cpu\n"
LINK = "start_time,end_time,source,destination,available_bandwidth\n"
BAD_LOAD = {
    "a gap": ("cpu", CPU + "0,60,0,0.5\n70,90,0,1\n", ["line 3", "node 0", "gap"]),
    "an overlap": ("cpu", CPU + "0,60,0,0.5\n50,90,0,1\n", ["line 3", "overlap"]),
    "a value of 0": ("cpu", CPU + "0,60,0,0\n", ["line 2", "available_cpu", "(0, 1]"]),
    "a value above 1": ("network", LINK + "0,60,0,1,1.5\n", ["line 2", "(0, 1]", "1.5"]),
    "an unknown node": ("cpu", CPU + "0,60,16,0.5\n", ["line 2", "node", "0 to 15"]),
    "an unknown link": ("network", LINK + "0,60,0,99,0.5\n", ["line 2", "destination"]),
    "a missing column": ("cpu", "start_time,end_time,node\n0,1,0\n", ["line 1", "available_cpu"]),
}
BAD_FIGURES = [
    (["cluster.cpu.available=[0,0.5]"], "cluster.cpu.available"),
    (["cluster.network.duration=[5,1]"], "cluster.network.duration"),
    (["cluster.belief=hope"], "cluster.belief=hope"),
    (["cluster.sample_every=0"], "every"),
    (["cluster.history=-1"], "cluster.history"),
    (["cluster/cpu=recorded"], "cluster.cpu.path"),
    (["cluster/cpu=recorded", "cluster.cpu.path=nowhere.csv"], "nowhere.csv"),
    (["predictor=rational", "predictor.refit=-1"], "predictor.refit"),
    (["predictor=rational", "predictor.computation=cubed"], "cubed"),
]


def refused(ended, folder, *fragments):
    errors = [line for line in ended.err.splitlines() if not line.startswith("WARNING: ")]
    assert ended.status == 2, ended
    assert len(errors) == 1, ended.err
    for fragment in fragments:
        assert fragment in errors[0]
    assert [path for path in folder.rglob("*") if path.name in FILES] == []


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_run_under_load_and_keep_the_invariants(command, tmp_path, policy):
    ended = command(*SMALL, f"policy={policy}", "predictor=rational", "sim.check=true")
    assert ended.status == 0, ended.err
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["jobs"] == 30


@pytest.mark.parametrize("kind", BAD_LOAD)
def test_bad_recorded_load_is_refused_with_file_and_line(command, tmp_path, kind):
    group, text, fragments = BAD_LOAD[kind]
    (tmp_path / "load.csv").write_text(text)
    ended = command(*SMALL, f"cluster/{group}=recorded", f"cluster.{group}.path=load.csv")
    refused(ended, tmp_path, "load.csv", *fragments)


@pytest.mark.parametrize(("overrides", "named"), BAD_FIGURES, ids=lambda value: str(value)[:50])
def test_a_figure_out_of_range_is_refused(command, tmp_path, overrides, named):
    refused(command(*SMALL, *overrides), tmp_path, named)


def test_recorded_load_slows_a_run_down_as_it_says(command, tmp_path):
    rows = "".join(f"0,1000,{node},0.5\n" for node in range(16))
    (tmp_path / "load.csv").write_text(CPU + rows)
    load = ("cluster/cpu=recorded", "cluster.cpu.path=load.csv", "cluster/network=idle")
    ended = command(*SMALL, *load, "policy=fcfs", "predictor=user_estimate", "moldability=none")
    assert ended.status == 0, ended.err
    import pandas as pd

    jobs = pd.read_parquet(tmp_path / "run" / "jobs.parquet")
    assert (jobs["runtime"] / jobs["reference_runtime"]).to_numpy() == pytest.approx(2.0)
