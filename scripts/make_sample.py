"""Make the log that lies in the package: ``python -m scripts.make_sample [FILE]``.

Jobs are those of the default world: sizes, runtimes and arrivals by Lublin & Feitelson,
requested times by Tsafrir, Etsion & Feitelson, users and groups as in
`workloads.truth.build`, all in whole seconds. Waits are those of EASY backfilling with
these requested times on the machine that the header names, where a job ends at its limit.
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

import sim
from workloads.base import Trace
from workloads.logs.swf import Comment, log_of_schedule, write_swf
from workloads.models.lublin import Lublin
from workloads.streams import Streams
from workloads.truth.build import with_applications

FILE = Path(__file__).parents[1] / "workloads" / "logs" / "sample.swf.gz"
JOBS, PROCESSORS, SEED = 2000, 256, 1
HEADER = (
    "Computer: none (a model)",
    "Installation: the sample of moldsim",
    "UnixStartTime: 1767571200",
    "TimeZoneString: UTC",
    "StartTime: Mon Jan  5 00:00:00 UTC 2026",
)
NOTES = (
    "GENERATED: no machine recorded these jobs, and no user submitted them",
    "made by python -m scripts.make_sample of moldsim, byte for byte",
    "sizes, runtimes, arrivals: Lublin & Feitelson, J. Parallel Distrib. Comput. 63 (2003), "
    "scaled to an offered load of 0.7, no job wider than 0.7 of the machine",
    "requested times: Tsafrir, Etsion & Feitelson, JSSPP 2005; limit 18 h, asked for by 10 %",
    "users, groups, executables: Zilber, Amit & Talby, ICS 2005, and logs of the archive",
    "waits: EASY backfilling with these requested times; status 0: ended at its limit",
)


@dataclass(frozen=True)
class Whole:
    """The jobs in whole seconds, as a workload."""

    jobs: pd.DataFrame

    def trace(self, streams: Streams, processors: int | None = None) -> Trace:
        """Return the jobs."""
        return Trace(self.jobs, PROCESSORS, "sample")


def make(path: Path) -> None:
    """Write the log."""
    streams = Streams(SEED)
    drawn = with_applications(Lublin(jobs=JOBS).trace(streams, PROCESSORS), streams)
    times = ["submit_time", "reference_runtime", "requested_time"]
    jobs = drawn.jobs.assign(**np.maximum(drawn.jobs[times].round(), [0, 1, 1]))
    rule = {"policy": "easy", "predictor": "user_estimate", "overrun": "kill"}
    played = sim.run(jobs=Whole(jobs), moldability="none", baseline=None, **rule).jobs
    log = log_of_schedule(
        jobs.assign(group=drawn.models["group"]),
        played["start_time"],
        played["end_time"],
        played["allocated_processors"],
        status=played["status"],
        processors=PROCESSORS,
        source="sample",
        notes=NOTES,
    )
    header = [Comment(0, f"; {line}") for line in HEADER]
    write_swf(path, replace(log, comments=(*log.comments[:1], *header, *log.comments[1:])))


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE)
