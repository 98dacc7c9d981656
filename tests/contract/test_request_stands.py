"""Where no predictor knows a curve, the request stands under every preset."""

from functools import cache

import pandas as pd
import pytest

from scripts.composing import composed
from sim.config import CONFIG_FOLDER
from sim.simulation.scene import play, set_scene

pytestmark = pytest.mark.fast
POLICIES = sorted(
    {path.stem for path in (CONFIG_FOLDER / "policy").glob("*.yaml")} - {"recorded", "fixed"}
)
"""All but the log's own schedule, and the count that the user names for all jobs."""
TOY = ("workload.jobs=100", "cluster.processors=32", "workload.load=1.2", "predictor=user_estimate")


def table_of(columns):
    names = ("job_id", "submit_time", "start_time", "requested_processors", "processors")
    return pd.DataFrame({name: columns[name] for name in names if name in columns})


@cache
def scene(malleable):
    return set_scene(composed(*TOY, f"moldability.malleable={malleable}"), 0)


@pytest.mark.parametrize("malleable", [0.3, 1.0])
@pytest.mark.parametrize("policy", POLICIES)
def test_nobody_gets_more_than_asked_for_while_another_waits(policy, malleable):
    config = composed(*TOY, f"moldability.malleable={malleable}", f"policy={policy}")
    tables = play(config, config, scene(malleable)).outcome.tables
    jobs, held = (table_of(tables.columns(name)) for name in ("jobs", "allocations"))
    jobs, held = jobs.set_index("job_id"), held.sort_values(["job_id", "start_time"])
    before = held.groupby("job_id")["processors"].shift(fill_value=0)
    more = (held["processors"] > before).to_numpy()
    asked = held["job_id"].map(jobs["requested_processors"]).to_numpy()
    for when in held["start_time"][more & (held["processors"].to_numpy() > asked)].unique():
        waiting = (jobs["submit_time"] <= when) & (jobs["start_time"] > when)
        assert not waiting.any(), f"at {when}: {waiting.sum()} jobs wait"
