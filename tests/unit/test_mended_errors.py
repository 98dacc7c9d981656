"""A predictor whose errors are mended: what is left is the policy's caution."""

from scripts.composing import composed
from sim.simulation.scene import play, set_scene


def test_mending_all_errors_gives_the_oracles_schedule():
    trusting = ("repair=never", "reach=1000", "observations=0", "distrust=false")
    base = ("workload.jobs=60", "policy=sa_easy", "workload.load=0.8", "given=free")
    base += tuple(f"policy.allocation.advice.{one}" for one in trusting)
    base += ("policy.allocation.margin=0", "policy.backfill.anew=null")
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
