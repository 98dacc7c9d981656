"""What new_part does."""

import sim

HERE = "hydra.searchpath=[pkg://new_package.conf]"
"""Not needed once new_package is installed with its entry point."""


def test_a_run_ends_with_new_part() -> None:
    """All of its jobs are done."""
    result = sim.run(HERE, "new_group=new_part", "workload.jobs=20", processors=16, baseline=None)
    assert set(result.jobs["status"]) == {"completed"}
