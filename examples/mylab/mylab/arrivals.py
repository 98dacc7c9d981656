"""A workload of one's own."""

import numpy as np
import pandas as pd

from workloads import FrameWorkload, Streams, Trace


class Bursts:
    """Jobs that arrive in bursts, as from a script that submits a parameter study.

    Parameters
    ----------
    jobs : int
    burst : int
        Jobs that arrive together.
    gap : float, seconds
        Mean time between two bursts.
    """

    def __init__(self, jobs: int, burst: int, gap: float) -> None:
        self.jobs, self.burst, self.gap = jobs, burst, gap

    def trace(self, streams: Streams, processors: int | None) -> Trace:
        """Return the jobs; random numbers come from `streams` alone."""
        rng = streams("mylab.bursts")
        study = np.arange(self.jobs) // self.burst
        begins = np.cumsum(rng.exponential(self.gap, study[-1] + 1))
        runtime = rng.lognormal(6.0, 1.0, self.jobs)
        frame = pd.DataFrame(
            {
                "submit_time": begins[study],
                "runtime": runtime,
                "requested_processors": 2 ** rng.integers(0, 5, self.jobs),
                "requested_time": 3.0 * runtime,
                "application": study % 7,
            }
        )
        return FrameWorkload(frame=frame).trace(streams, processors)
