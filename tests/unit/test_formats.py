import pandas as pd
import pytest

from sim.results.formats import batsim_table

pytestmark = pytest.mark.fast


def test_a_resized_job_has_a_row_for_each_stretch():
    jobs = pd.DataFrame(
        {
            "job_id": [9, 4],
            "submit_time": [0.0, 1.0],
            "requested_processors": [2, 1],
            "requested_time": [60.0, 30.0],
            "status": ["completed", "killed"],
        }
    )
    held = pd.DataFrame(
        {
            "job_id": [9, 4, 9],
            "run": [0, 0, 0],
            "start_time": [5.0, 6.0, 10.0],
            "end_time": [10.0, 8.0, 30.0],
            "processors": [2, 1, 3],
            "nodes": ["0-1", "5", "0-1,7"],
        }
    )
    table = batsim_table(jobs, held)
    assert table["job_id"].tolist() == ["9", "9!1", "4"]
    assert table["allocated_resources"].tolist() == ["0-1", "0-1 7", "5"]
    assert table["waiting_time"].tolist() == [5.0, 10.0, 5.0]
    assert table["success"].tolist() == [1, 1, 0]
    assert table["final_state"].tolist()[2] == "COMPLETED_WALLTIME_REACHED"
    assert table["stretch"].tolist() == [2.0, 1.5, 3.5]
