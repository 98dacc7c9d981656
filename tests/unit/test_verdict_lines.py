"""Each sentence of a verdict over odd runs, checked against the tables of the same runs."""

import copy
import functools
import io
import re

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import sim
from scripts.composing import composed
from sim.console import RESPONSE, Side, compared, print_results, verdict_lines
from sim.results.artefacts import BASELINE, RUN, STEP
from sim.results.rows import MOLDED
from sim.results.sentences import rests_sentence, treated_sentence
from sim.simulation.progress import Names
from sim.simulation.replay import Run

COMPOSED = (
    ("policy=sa", "predictor=adept", "moldability=downey"),
    ("policy=easy", "predictor=user_estimate", "moldability=none"),
    ("policy=maximum", "predictor=oracle", "cluster=failing"),
    ("policy=equi", "predictor=noisy_oracle"),
)
"""Of their parts odd runs are put together, as composing takes longer than running."""
COSTS = {"cost": {"_target_": "sim.policies.reallocation.costs.Constant", "seconds": 60.0}}
LATER, BEFORE = {"calibration": 0}, {"calibration": 3}
ONE, MANY = {"jobs": 1, "load": None}, {"jobs": 110}
KINDS = {  # policy, predictor and what else differs
    "nobody can be molded": ("sa", "adept", {"moldability": "none"}),
    "requests alone": ("sa", "user_estimate", {}),
    "identical": ("easy", "user_estimate", {}),
    "molded": ("sa", "oracle", {}),
    "learned": ("sa", "adept", {}),
    "learned online": ("sa", "adept", {"predictor": LATER}),
    "no beliefs": ("maximum", "user_estimate", {}),
    "killed": ("sa", "noisy_oracle", {"overrun": "kill"}),
    "half moldable": ("sa", "oracle", {"moldability": {"share": 0.5}}),
    "resized": ("equi", "oracle", {}),
    "resized at a cost": ("equi", "oracle", {"reallocation": COSTS}),
    "failing": ("sa", "oracle", {"cluster": "failing"}),
    "all calibration": ("sa", "adept", {"workload": ONE, "predictor": BEFORE}),
    "one job": ("sa", "oracle", {"workload": ONE}),
    "unsteady": ("sa", "oracle", {"workload": MANY | {"load": 3.0}}),
    "steady": ("sa", "oracle", {"workload": MANY | {"load": 0.3}}),
    "the reference resizes": ("easy", "oracle", {"baseline": "equi"}),
}
EACH = 5
"""Replications of a kind: with baselines and the steps between more than 200 runs."""
NAMES = ("run", "base", "step")


@functools.cache
def parts():
    """Return what there is of each part of a configuration, by name, and all of the first."""
    found = {}
    for asked in COMPOSED:
        config = composed(*asked, "cluster.processors=32", "picture=none")
        for key, name in (one.split("=") for one in asked[:3]):
            found[key, name] = config.get(key.partition("/")[0])
        found.setdefault("all", config)
    return found


def configured(policy, predictor, more):
    """Return the configuration of a run, its baseline filled in."""
    chosen, own = copy.deepcopy(parts()), dict(more)
    base = own.pop("baseline", "easy")
    user = chosen["predictor", "user_estimate"]
    config = chosen["all"] | {"policy": chosen["policy", policy]}
    config |= {"predictor": chosen["predictor", predictor]}
    config["baseline"] = {"name": base, "policy": chosen["policy", base], "predictor": user}
    config["workload"] |= {"jobs": 20, "load": 0.8, "applications": 4}
    config["policy"]["reallocation"] |= own.pop("reallocation", {})
    for key, value in own.items():
        if isinstance(value, dict):
            config[key] |= value
        else:
            config[key] = chosen.get((key, value), value)
    return copy.deepcopy(config)


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    """Return the replications of a kind of runs: run, baseline, step between."""
    config = configured(*KINDS[request.param])
    run = Run(config, dict.fromkeys((RUN, BASELINE, STEP), Names("run", "", "")))
    return request.param, [run.replicate(k) for k in range(EACH)]


def sides_of(made, replications):
    """Return the columns of the table over some replications."""
    shown = [[one[role] for one in made if role in one] for role in (RUN, BASELINE, STEP)]
    sides = []
    for name, own in zip(NAMES, shown, strict=True):
        parts = [one.summary for one in own][:replications]
        if parts:
            number = [k for k, v in parts[0].items() if isinstance(v, int | float)]
            means = parts[0] | {
                k: float(np.mean([one[k] for one in parts]))
                for k in number
                if k != "steady" and all(one[k] is not None for one in parts)
            }
            figures = parts[0] if len(parts) == 1 else means
            sides.append(Side(figures, name, "by", name == "base", parts[1:] and parts))
    return [sides[0], *sides[2:], *sides[1:2]]


def printed(sides):
    console = Console(file=io.StringIO(), width=2000)
    print_results(console, sides)
    return console.file.getvalue()


def cells(text, label):
    row = next(one for one in text.splitlines() if one.startswith(label))
    return re.split(r"\s{2,}", row.strip())[1:]


def recount(made):
    """Return molded, resized and decided, counted in the tables themselves."""
    jobs = made.tables.jobs[made.tables.jobs["job_id"] >= 0]
    molded = int((jobs["allocated_processors"] != jobs["requested_processors"]).sum())
    held = made.tables.allocations
    held = held[held["job_id"] >= 0]
    counts = held.groupby(["job_id", "run"])["processors"].nunique().groupby("job_id").max()
    asked = made.tables.predictions
    own = asked[(asked["job_id"] >= 0) & ~asked["method"].isin(["requested_time", "user_estimate"])]
    return molded, int((counts > 1).sum()), len(own), len(jobs)


def test_each_sentence_is_what_the_tables_say(kind):
    _, made = kind
    for one in made:
        sides = sides_of([one], 1)
        lines, text = verdict_lines(sides), printed(sides)
        assert 2 <= len(lines) <= 3, lines
        assert text.startswith(lines[0])
        row = next(line for line in text.splitlines()[len(lines) :] if re.match(r"\w", line))
        assert row.startswith(MOLDED)
        molded, resized, own, jobs = recount(one[RUN])
        summary, other = one[RUN].summary, one[BASELINE].summary
        assert cells(text, MOLDED)[0] == f"{molded} of {jobs}"
        assert (summary["molded_jobs"], summary["resized_jobs"]) == (molded, resized)
        assert summary["decisions_by_belief"] <= own
        check_treated(lines[-2], one, molded, resized)
        check_change(lines[0], sides, text)
        assert lines[-1] == rests_sentence(summary)
        assert f"{100 * summary['share_moldable']:.3g} % of the jobs moldable" in lines[-1]
        assert other["jobs"] == jobs


def test_jobs_below_all_requests_are_counted_and_said():
    """A machine whose users ask for 128 processors at least may have no smaller allocations."""
    run = {"molded_jobs": 18, "resized_jobs": 0, "jobs": 100, "decisions_by_belief": 4}
    assert treated_sentence([run | {"jobs_below_requests": 5}] * 2) == (
        "36 of 200 jobs molded (10 to fewer processors than any job requests, "
        "which moldability.min_processors can forbid), 0 resized, "
        "by predictions read in 8 decisions, the others by no prediction."
    )
    rows = pd.DataFrame({"job_id": range(40), "submit_time": 100.0 * np.arange(40),
                         "requested_processors": 32, "runtime": 2000.0})  # fmt: skip
    asked = {"processors": 64, "policy": "sa_easy", "predictor": "oracle"}
    found = sim.run("moldability.share=1", jobs=rows, **asked)
    below = (found.jobs["allocated_processors"] < 32).sum()
    assert found.summary["jobs_below_requests"] == below > 0
    narrow = sim.run("moldability.share=1", jobs=rows.assign(requested_processors=1), **asked)
    assert narrow.summary["jobs_below_requests"] == 0


def check_treated(line, one, molded, resized):
    """The second line: numbers of the tables, costs, beliefs; nothing by molding without."""
    summary = one[RUN].summary
    assert line == treated_sentence([summary], [one[BASELINE].summary])
    assert line.startswith(f"{molded} of {summary['jobs']} jobs molded, {resized} resized")
    theirs = sum(recount(one[BASELINE])[:2])
    none = molded + resized == 0
    assert ("nothing is gained or lost by molding" in line) == (none and not theirs)
    assert ("in the other" in line) == (none and theirs > 0)
    assert ("at no cost" in line) == (resized > 0 and summary["reallocation_area"] == 0)
    assert ("processor-hours" in line) == (resized > 0 and summary["reallocation_area"] > 0)
    read = summary["decisions_by_belief"]
    others = not resized and read < molded
    assert ("by no prediction" in line) == (not none and (not read or others))
    assert ("the others by no prediction" in line) == bool(read and others)
    assert (f"by predictions read in {read:,} decisions" in line) == (not none and read > 0)


def check_change(line, sides, text):
    """The first line: a change is that of the table and of paired ratios, or why it is none."""
    run, base = sides[0], sides[-1]
    times = [np.array([p[RESPONSE] for p in side.samples]) for side in (run, base)]
    unsteady = [s.name for s in sides if np.mean([p["steady"] is False for p in s.samples]) > 0.5]
    assert line.startswith("The queue does not settle") == bool(unsteady)
    if unsteady:
        assert all(name in line for name in unsteady)
        assert "%" not in line
        if len(compared(sides)) == 1:
            assert cells(text, "mean response")[len(sides)] == "–"
        return
    change = np.expm1(np.log(times[0] / times[1]).mean())
    assert ("no difference" in line) == bool((times[0] == times[1]).all())
    if "no difference" not in line:
        assert f"{100 * change:.1f} %" in line
    if len(compared(sides)) == 1:
        shown = cells(text, "mean response")[len(sides)]
        assert float(shown.split()[0]) == pytest.approx(100 * change, abs=0.051)


def test_replications_are_told_together(kind):
    _, made = kind
    for number in (2, EACH):
        sides = sides_of(made, number)
        lines, text = verdict_lines(sides), printed(sides)
        assert len(lines) <= 3
        counts = np.array([recount(one[RUN]) for one in made[:number]]).sum(axis=0)
        assert cells(text, MOLDED)[0] == f"{counts[0]:,} of {counts[3]:,}"
        assert lines[-2].startswith(f"{counts[0]:,} of {counts[3]:,} jobs molded, {counts[1]:,} re")
        check_change(lines[0], sides, text)
        told = re.search(r"\[(-?[\d.]+), (-?[\d.]+)\]", lines[0])
        assert told is None or number >= 8


ODD = {
    "killed": lambda run, base: run["killed_jobs"] > 0,
    "unsteady": lambda run, base: run["steady"] is False,
    "steady": lambda run, base: run["steady"] is True,
    "identical": lambda run, base: run[RESPONSE] == base[RESPONSE],
    "nobody can be molded": lambda run, base: run["molded_jobs"] == 0,
    "molded": lambda run, base: run["molded_jobs"] > 0 == base["molded_jobs"],
    "resized at a cost": lambda run, base: run["resized_jobs"] * run["reallocation_area"] > 0,
    "the reference resizes": lambda run, base: base["resized_jobs"] > 0 == run["resized_jobs"],
    "all calibration": lambda run, base: run["given_work_share"] > 1,
    "learned online": lambda run, base: run["share_own_predictions"] < 1,
    "one job": lambda run, base: run["jobs"] == 1,
}


def test_odd_runs_are_odd(kind):
    name, made = kind
    odd = ODD.get(name, lambda run, base: True)
    assert any(odd(one[RUN].summary, one[BASELINE].summary) for one in made)
