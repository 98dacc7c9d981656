"""The parts of mylab, at work."""

import sim

NAMES = ("workload=mylab_bursts", "policy=mylab_easy_while_few", "predictor=mylab_proportional")


def test_a_run_is_by_all_three():
    result = sim.run(*NAMES, processors=64)
    assert set(result.jobs["status"]) == {"completed"}
    assert set(result.predictions["method"]) == {"proportional"}


def test_many_wait_as_under_fcfs_and_few_as_under_easy():
    def starts(policy, *more):
        run = sim.run("workload.jobs=500", f"policy={policy}", *more, baseline=None)
        return run.jobs["start_time"].to_list()

    few, most = "mylab_easy_while_few", "policy.backfill.most"
    assert starts(few, f"{most}=0") == starts("fcfs") != starts(few)
    assert starts(few, f"{most}=500") == starts("easy") != starts(few)
    in_python = "cluster=failing", "cluster.mtbf=null"
    assert starts(few) == starts(few, "sim.check=true") == starts(few, "sim.check=true", *in_python)
