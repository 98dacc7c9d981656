"""The parts of mylab, at work."""

import sim

NAMES = ("workload=mylab_bursts", "policy=mylab_widest_first", "predictor=mylab_proportional")


def test_no_job_has_more_than_its_share():
    result = sim.run(*NAMES, "policy.share=0.25", processors=64)
    assert result.jobs["allocated_processors"].max() <= 16
    assert set(result.jobs["status"]) == {"completed"}
    assert set(result.predictions["method"]) == {"proportional"}
