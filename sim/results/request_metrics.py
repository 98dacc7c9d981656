"""Figures and a table of what running jobs asked for."""

import numpy as np
import pandas as pd

from sim.results.frames import RECOVERY_PARTS, held_area
from sim.results.job_metrics import Figures
from sim.state.records import Records, Requests
from workloads.base import Trace


def recovery_figures(records: Records) -> Figures:
    """Return sums over all jobs, and their shares of the held area; nothing where none apply."""
    paid = records.recoveries
    if paid is None:
        return {}
    area = float(held_area(records).sum())
    sums = {name: float(getattr(paid, name).sum()) for name in RECOVERY_PARTS}
    shares = {f"{name}_share": total / area if area > 0 else None for name, total in sums.items()}
    return {
        "evolving_jobs": int(paid.evolving.sum()),
        "unfinished_jobs": int((np.array(paid.reason) != "").sum()),
        **sums,
        **shares,
    }


KINDS = ("more", "fewer", "walltime")
OUTCOMES = ("granted", "refused", "withdrawn")


def asking_figures(records: Records) -> Figures:
    """Return what was asked, granted, and what it cost to go without; nothing where nobody may ask.

    Returns
    -------
    dict
        ``requests`` and how many of them were ``granted``, ``refused``, ``withdrawn``,
        and whatever the answer ``deferred``: answered later than they were made;
        ``requests_for_more``, ``…_fewer``, ``…_walltime`` and how many of each were
        granted; ``mean_grant_delay`` (s, from asking to getting; null without a grant);
        ``granted_processors``, ``returned_processors``, ``granted_walltime`` (s);
        ``denied_time`` (s that runs would have been spared on the processors that
        they asked for, by the truth) and ``denied_wait`` (s that jobs waited to go on
        after they ended at a limit which they had asked to have moved).
    """
    if records.requests is None:
        return {}
    asked = records.requests.asked
    got = [a for a in asked if a.outcome == "granted"]
    figures: Figures = {"requests": len(asked)}
    for outcome in OUTCOMES:
        figures[f"requests_{outcome}"] = sum(a.outcome == outcome for a in asked)
    figures["requests_deferred"] = sum(a.answered > a.time for a in asked)
    for kind in KINDS:
        figures[f"requests_for_{kind}"] = sum(a.kind == kind for a in asked)
        figures[f"requests_for_{kind}_granted"] = sum(a.kind == kind for a in got)
    delays = [a.answered - a.time for a in got]
    return figures | {
        "mean_grant_delay": float(np.mean(delays)) if delays else None,
        "granted_processors": sum(a.wanted - a.held for a in got if a.kind == "more"),
        "returned_processors": sum(a.held - a.wanted for a in got if a.kind == "fewer"),
        "granted_walltime": sum(a.seconds for a in got),
        "denied_time": sum(a.denied_time for a in asked),
        "denied_wait": records.requests.denied_wait,
    }


def requests_frame(trace: Trace, requests: Requests) -> pd.DataFrame:
    """Return the table of ``requests.parquet``: a row a request, in the order of asking.

    Returns
    -------
    pandas.DataFrame
        ``job_id``, ``run``, ``time`` (s), ``kind``, ``held_processors``,
        ``wanted_processors``, ``wanted_seconds`` (beyond the limit), ``outcome``,
        ``answered_time`` (s), ``denied_time`` (s).
    """
    asked = requests.asked
    names = trace.jobs["job_id"].to_numpy()
    return pd.DataFrame(
        {
            "job_id": names[[a.job for a in asked]] if asked else np.empty(0, np.int64),
            "run": np.array([a.run for a in asked], np.int64),
            "time": np.array([a.time for a in asked], np.float64),
            "kind": pd.Series([a.kind for a in asked], dtype="str"),
            "held_processors": np.array([a.held for a in asked], np.int64),
            "wanted_processors": np.array([a.wanted for a in asked], np.int64),
            "wanted_seconds": np.array([a.seconds for a in asked], np.float64),
            "outcome": pd.Series([a.outcome for a in asked], dtype="str"),
            "answered_time": np.array([a.answered for a in asked], np.float64),
            "denied_time": np.array([a.denied_time for a in asked], np.float64),
        }
    )
