"""Machine, jobs and truth of a run as ``growth`` leaves them, and what it did to sizes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from rich.box import SIMPLE
from rich.table import Table

from predictors.base import BoolArray, FloatArray
from workloads.base import Trace
from workloads.streams import Streams
from workloads.truth.ground_truth import Truth

GREW, INFEASIBLE, NO_FIT, UNUSABLE, NO_GAIN = "grew", "infeasible", "no fit", "unusable", "no gain"
"""What became of a job; all but the first keep their size and their processors."""


@dataclass(frozen=True)
class Site:
    """Machine, jobs and truth of a run, and what growing did.

    Attributes
    ----------
    processors : int
    trace : Trace
    truth : Truth
    sizes : pandas.DataFrame or None
        A row a job, as `KeepTime.grow` describes; None where nothing grew.
    """

    processors: int
    trace: Trace
    truth: Truth
    sizes: pd.DataFrame | None = None


@dataclass(frozen=True)
class NoGrowth:
    """The machine and the jobs stay as they are."""

    def grow(self, site: Site, streams: Streams) -> Site:
        """Return the site unchanged."""
        return site


def size_figures(sizes: pd.DataFrame | None) -> Mapping[str, object]:
    """Return the figures of a table of sizes; NaN where no job grew; none without a table."""
    if sizes is None:
        return {}
    grown = sizes[sizes["outcome"] == GREW]
    error = np.abs(grown["runtime"] / grown["wanted_time"] - 1.0).to_numpy()
    weak = np.abs(grown["weak_runtime"] / grown["wanted_time"] - 1.0).to_numpy()
    growth = (grown["grown_size"] / grown["size"]).to_numpy()
    inside: BoolArray = grown["runtime"].between(grown["time_low"], grown["time_high"]).to_numpy()
    figures: dict[str, object] = {
        f"sizes_{name.replace(' ', '_')}": int((sizes["outcome"] == name).sum())
        for name in (GREW, INFEASIBLE, NO_FIT, UNUSABLE, NO_GAIN)
    }
    return figures | {
        "size_growth_median": _quantile(growth, 0.5),
        "kept_time_median_error": _quantile(error, 0.5),
        "kept_time_p90_error": _quantile(error, 0.9),
        "weak_scaling_median_error": _quantile(weak, 0.5),
        "weak_scaling_p90_error": _quantile(weak, 0.9),
        "kept_time_within_range": float(inside.mean()) if len(inside) else np.nan,
    }


def _quantile(values: FloatArray, share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else np.nan


def application_sizes(sizes: pd.DataFrame, most: int = 10) -> pd.DataFrame:
    """Return a row for each of the applications with most jobs, medians over its grown jobs.

    Returns
    -------
    pandas.DataFrame
        ``application``, ``jobs``, ``grew``, ``size_growth`` with ``low`` and
        ``high`` (the interval's ends over the size before), ``kept_time``
        (runtime over wanted time).
    """
    ranked = sizes["application"].value_counts().head(most).index
    rows = [_application_row(sizes[sizes["application"] == number]) for number in ranked]
    return pd.DataFrame(rows, columns=list(_application_row(sizes.head(0)).keys()))


def _application_row(jobs: pd.DataFrame) -> dict[str, float]:
    grown = jobs[jobs["outcome"] == GREW]
    return {
        "application": float(jobs["application"].iloc[0]) if len(jobs) else np.nan,
        "jobs": float(len(jobs)),
        "grew": float(len(grown)),
        "size_growth": float((grown["grown_size"] / grown["size"]).median()),
        "low": float((grown["size_low"] / grown["size"]).median()),
        "high": float((grown["size_high"] / grown["size"]).median()),
        "kept_time": float((grown["runtime"] / grown["wanted_time"]).median()),
    }


def sizes_table(rows: pd.DataFrame) -> Table:
    """Return what keeps the jobs' times on a larger machine, a row an application.

    Parameters
    ----------
    rows : pandas.DataFrame
        As `application_sizes` has them.
    """
    table = Table(show_edge=False, pad_edge=False, box=SIMPLE, padding=(0, 1, 0, 0))
    headings = ("application", "jobs", "that grow", "size", "interval", "time kept")
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows.itertuples():
        cells = [f"{row.application:.0f}", f"{row.jobs:.0f}", f"{row.grew:.0f}"]
        if row.grew:
            interval = f"x {row.low:.2f} - {row.high:.2f}"
            cells += [f"x {row.size_growth:.2f}", interval, f"x {row.kept_time:.2f}"]
        table.add_row(*cells)
    return table
