"""Figures about failures, checkpoints and restarts."""

import numpy as np

from sim.frames import RECOVERY_PARTS, held_area
from sim.job_metrics import Figures
from sim.records import Records


def recovery_figures(records: Records) -> Figures:
    """Return sums over all jobs, and their shares of the held area; nothing where none apply."""
    paid = records.recoveries
    if paid is None:
        return {}
    area = float(held_area(records).sum())
    sums = {name: float(getattr(paid, name).sum()) for name in RECOVERY_PARTS}
    shares = {f"{name}_share": total / area if area > 0 else None for name, total in sums.items()}
    reasons = np.array(paid.reason)
    return {
        "evolving_jobs": int(paid.evolving.sum()),
        "unfinished_jobs": int((reasons != "").sum()),
        **sums,
        **shares,
    }
