"""A wrapper that has nothing to change changes nothing, whatever it wraps."""

import functools

import pandas as pd
import pytest

from predictors.base import Inquisitive, Selective, Wrapper, layers, provider, setting
from predictors.in_loop.oracle import NeedsTruth
from predictors.under_load.load_aware import NeedsLoad
from scripts.composing import composed
from sim.config import CONFIG_FOLDER
from sim.simulation.build import build
from sim.simulation.scene import play, set_scene

WRAPPERS = ("dynamic", "repaired")
WRAPPED = sorted({path.stem for path in (CONFIG_FOLDER / "predictor").glob("*.yaml")} - {*WRAPPERS})
NOTHING = {"dynamic": (), "repaired": ("predictor.counts=[2147483648,2147483648]",)}
"""Overrides under which a wrapper changes nothing of jobs that do not evolve."""
SCENES = {
    "dedicated": ("policy=sa_easy", "workload.jobs=80", "cluster.processors=32"),
    "shared": (
        *("policy=load_aware", "cluster=shared", "cluster.processors=16", "cluster.history=1200"),
        "workload.jobs=12",
    ),
}
SCENES["shared, its load known"] = (*SCENES["shared"], "cluster.belief=oracle")
CAPABILITIES = (NeedsLoad, NeedsTruth, Inquisitive, Selective)


@functools.cache
def scene_of(scene):
    return set_scene(composed(*SCENES[scene], "baseline=null"), 0)


def played(scene, *overrides):
    config = composed(*SCENES[scene], "baseline=null", *overrides)
    found = play(config, config, scene_of(scene))
    return found.outcome.tables, found


@pytest.mark.parametrize("scene", ["dedicated", "shared"])
@pytest.mark.parametrize("wrapped", WRAPPED)
def test_beliefs_and_schedule_are_those_of_what_is_wrapped(scene, wrapped):
    alone, its = played(scene, f"predictor={wrapped}")
    for wrapper in WRAPPERS:
        inside = (f"predictor={wrapper}", f"predictor/before={wrapped}", *NOTHING[wrapper])
        tables, run = played(scene, *inside)
        for name in ("predictions", "jobs", "allocations"):
            pd.testing.assert_frame_equal(
                getattr(tables, name), getattr(alone, name), check_exact=True, obj=wrapper
            )
        assert run.charged == its.charged
        assert len(run.known) == len(its.known)


@pytest.mark.parametrize("wrapped", WRAPPED)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_every_capability_is_found_through_a_wrapper(wrapper, wrapped):
    alone = build(composed(f"predictor={wrapped}")["predictor"], "predictor")
    asked = composed(f"predictor={wrapper}", f"predictor/before={wrapped}")["predictor"]
    around = build(asked, "predictor")
    assert [type(one) for one in layers(around)[1:]] == [type(alone)]
    for capability in CAPABILITIES:
        if isinstance(alone, capability):
            assert provider(around, capability) is not None, capability
    public = {name for name in vars(alone) if not name.startswith("_")}
    public |= {name for name in dir(type(alone)) if not name.startswith("_")}
    for name in public - set(dir(around)):
        same = getattr(alone, name)
        found = setting(around, name, None)
        assert type(found) is type(same), name


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_an_oracle_inside_a_wrapper_is_exact_under_load(wrapper):
    tables, _ = played("shared, its load known", f"predictor={wrapper}", "predictor/before=oracle")
    assert len(tables.predictions)
    ratio = tables.predictions["predicted"] / tables.predictions["actual"]
    assert (ratio - 1).abs().max() < 1e-6


def test_what_is_mended_under_load_is_the_truth_under_load():
    inside = ("predictor=repaired", "predictor/before=rational")
    tables, _ = played("shared, its load known", *inside)
    found = tables.predictions
    assert set(found["method"]) == {"oracle"}
    assert (found["predicted"] / found["actual"] - 1).abs().max() < 1e-6


def test_wrappers_may_be_nested():
    inside = build(composed("predictor=oracle")["predictor"], "predictor")
    twice = Wrapper(Wrapper(inside))
    assert provider(twice, NeedsTruth) is inside
    assert setting(twice, "calibration", 7) == 7


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapper_as_what_is_wrapped_is_refused_with_the_options(command, wrapper):
    asked = command(f"predictor={wrapper}", f"predictor/before={wrapper}", "workload.jobs=10")
    assert asked.status != 0
    assert "user_estimate" in asked.err
