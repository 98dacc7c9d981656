"""Scaling advice judged by time, on Lublin's jobs with invented applications of measured curves."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sim.advise import Options, advise, read_jobs
from sim.simulation.scene import play, set_scene
from sim.site.site_logs import composed

PROCESSORS = 256
SCALING = ("moldability=measured", "workload.jobs=4000", "workload.applications=30",
           f"cluster.processors={PROCESSORS}", "policy=easy")  # fmt: skip


def scaling_rows(curves: Path) -> list[dict[str, Any]]:
    """Return errors of predicted times at the recommended counts, and regret, by seed."""
    rows = []
    for sizes, seed in ((sizes, seed) for sizes in (None, 3) for seed in range(1, 6)):
        given = [*SCALING, f"moldability.path={curves}", f"workload.sizes={sizes or 'null'}"]
        config = composed([*given, f"seed={seed}"])
        scene = set_scene(config, 0)
        table = play(config, config, scene).outcome.tables.jobs
        if sizes is not None:
            label = scene.truth.application * sizes + scene.truth.size_class
            table = table.assign(application=label, size=np.nan)
        rows.append({"sizes": "hidden" if sizes else "known", "seed": seed})
        rows[-1] |= judge(table, scene.truth)
        print(rows[-1])
    return rows


def judge(table: pd.DataFrame, truth: Any) -> dict[str, Any]:
    """Advise from the first 70 % of the jobs; judge by the true times of the later ones."""
    cut, counts = int(0.7 * len(table)), np.arange(1, PROCESSORS + 1)
    past, later = table.iloc[:cut], table.iloc[cut:]
    with tempfile.TemporaryDirectory() as folder:
        past.to_parquet(Path(folder) / "jobs.parquet")
        jobs = replace(read_jobs([folder]), processors=PROCESSORS)
    done = advise(jobs, Options(starts=False))
    told, fast, efficient = [], [], []
    for one in (one for one in done.rows if one.fastest and one.efficient):
        label = int(one.application.removeprefix("application "))
        size = past["size"][past["application"] == label].median()
        for job in later.index[later["application"] == label]:
            time = truth.runtimes(int(job), counts)
            ratio = 1.0 if np.isnan(size) else table["size"][job] / size
            for choice in (one.fastest, one.efficient):
                true = time[choice.count - 1] / ratio
                told.append((abs(choice.predicted / true - 1), choice.low <= true <= choice.high))
            fast.append(time[one.fastest.count - 1] / np.nanmin(time) - 1)
            least = min(one.counts)
            fit = counts[(time[least - 1] * least >= 0.5 * time * counts) & (counts >= least)]
            efficient.append(time[one.efficient.count - 1] / np.nanmin(time[fit - 1]) - 1)
    return {
        "with_scaling": done.figures["with_scaling"],
        "judged_jobs": len(fast),
        "median_error": float(np.median([error for error, _ in told])),
        "within_range": float(np.mean([inside for _, inside in told])),
        "fastest_median_regret": float(np.median(fast)),
        "fastest_p90_regret": float(np.percentile(fast, 90)),
        "efficient_median_regret": float(np.median(efficient)),
    }
