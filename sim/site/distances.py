"""What a backtest found, as its files hold it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from sim.site.causes import Reason
from sim.site.comparison import Compared, class_tables, nearest_of, recorded_figures
from sim.site.log_schedule import Recorded
from sim.site.outages import Outage


@dataclass(frozen=True)
class Backtest:
    """What a backtest found.

    Attributes
    ----------
    found : Recorded
    candidates : tuple of Compared
    left_out : dict of str to str
        Candidates that were not played, and why.
    reasons : tuple of Reason
    outages : tuple of Outage
        What replays went without.
    changes : tuple of Compared
        The nearest candidate with one thing changed.
    given : tuple of str
        Overrides that set something otherwise than the log and the defaults say.
    """

    found: Recorded
    candidates: tuple[Compared, ...]
    left_out: Mapping[str, str]
    reasons: tuple[Reason, ...]
    outages: tuple[Outage, ...]
    changes: tuple[Compared, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def nearest(self) -> Compared:
        """The candidate that comes nearest."""
        return nearest_of(self.candidates)

    def figures(self) -> dict[str, Any]:
        """Return what ``backtest.json`` holds."""
        found, nearest = self.found, self.nearest
        return {
            "log": found.trace.source,
            **({"given": list(self.given)} if self.given else {}),
            "checksum": found.trace.checksum,
            "jobs": int(found.judged.sum()),
            "jobs_without_wait": int((~found.known).sum()),
            "processors": found.processors,
            "processors_by": found.source_of_size,
            "begin": found.begin,
            "running_at_begin": int(found.running_first.sum()),
            "waiting_at_begin": int(found.waiting_first.sum()),
            "outages": [asdict(one) for one in self.outages],
            "dropped_jobs": dict(found.trace.dropped),
            "recorded": recorded_figures(found),
            "candidates": [
                {"name": one.name, **one.figures, "quarters": list(one.quarters),
                 "verdict": one.verdict}
                for one in self.candidates
            ],
            "left_out": dict(self.left_out),
            "nearest": nearest.name,
            "verdict": nearest.verdict,
            "reasons": [asdict(one) for one in self.reasons],
            "changes": [
                {"name": one.name, **one.figures, "verdict": one.verdict}
                for one in self.changes
            ],
            "classes": class_tables(found, nearest),
        }  # fmt: skip


def jobs_frame(found: Recorded, candidates: Sequence[Compared]) -> pd.DataFrame:
    """Return the table of ``backtest_jobs.parquet``: a row for each job and candidate."""
    judged = found.judged
    jobs = found.trace.jobs.loc[judged, ["job_id", "submit_time"]]
    jobs = jobs.assign(recorded_start_time=found.start[judged])
    parts = [jobs.assign(candidate=one.name, start_time=one.start[judged]) for one in candidates]
    columns = ["job_id", "candidate", "submit_time", "recorded_start_time", "start_time"]
    return pd.concat(parts, ignore_index=True)[columns].astype({"candidate": "str"})
