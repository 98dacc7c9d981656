"""A workload of new_package."""

import numpy as np
import pandas as pd

from workloads import FrameWorkload, Streams, Trace


class NewWorkload:
    """Poisson arrivals of jobs with exponential runtimes.

    Parameters
    ----------
    jobs : int
    width : int
        Processors of each job.
    """

    def __init__(self, jobs: int, width: int) -> None:
        self.jobs, self.width = jobs, width

    def trace(self, streams: Streams, processors: int | None) -> Trace:
        """Return the jobs; random numbers come from `streams` alone."""
        rng = streams("new_workload")
        runtime = rng.exponential(600.0, self.jobs)
        frame = pd.DataFrame(
            {
                "submit_time": np.cumsum(rng.exponential(300.0, self.jobs)),
                "runtime": runtime,
                "requested_processors": self.width,
                "requested_time": 2 * runtime,
            }
        )
        return FrameWorkload(frame=frame).trace(streams, processors)
