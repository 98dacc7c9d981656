"""What predictors were given: without it nobody can repeat a figure of theirs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.job_metrics import Figures

if TYPE_CHECKING:
    from sim.run import Played, Scene

FILLED = "missing_requested_time"
"""The rule of cleaning that fills requested times."""


def given_figures(config: Mapping[str, Any], scene: "Scene", played: "Played") -> Figures:
    """Return what predictors knew of a run's jobs before they ran.

    Parameters
    ----------
    config : mapping
        The run's whole configuration.
    scene : Scene
    played : Played

    Returns
    -------
    dict
        ``given_truth``: whether the predictor holds the true runtimes, as oracles
        do. ``given_runs``: calibration runs before the start. ``given_work_share``:
        their processor-seconds over those of the workload at its reference
        counts. ``given_charged``: whether they were jobs of the run; None
        without any. ``given_sizes``: ``known``, ``class`` (which input, not how
        large) or ``hidden``; ``given_size_noise``: spread of the logarithm of
        known sizes. ``given_applications``: ``recorded`` or ``invented``.
        ``given_identity``: what jobs of one recorded application share, such as
        ``user``; None where they are invented. ``given_curves``: ``invented``,
        ``measured``, or ``none`` where every job is rigid. ``given_requested_times``:
        ``recorded`` or how they were made.
    """
    jobs = scene.trace.jobs
    runs = len(played.known) + played.charged
    work = float((jobs["requested_processors"] * jobs["reference_runtime"]).sum())
    workload = config["workload"]
    sizes = _sizes(scene.truth.size, scene.truth.size_class)
    recorded = workload.get("applications") == "log"
    return {
        "given_truth": played.told_truth,
        "given_runs": runs,
        "given_work_share": (played.known_area + played.charged_area) / work,
        "given_charged": played.charged > 0 if runs else None,
        "given_sizes": sizes,
        "given_size_noise": workload.get("size_noise", 0.0) if sizes == "known" else None,
        "given_applications": "recorded" if recorded else "invented",
        "given_identity": scene.trace.identity if recorded else None,
        "given_curves": _curves(config["moldability"]),
        "given_requested_times": _requested_times(
            workload.get("estimates", "recorded"),
            scene.trace.repaired.get(FILLED, 0),
            len(jobs),
            (workload.get("cleaning") or {}).get(FILLED, "exact"),
        ),
    }


def _sizes(size: np.ndarray, size_class: np.ndarray) -> str:
    if not np.isnan(size).all():
        return "known"
    return "class" if (size_class >= 0).any() else "hidden"


def _curves(moldability: Mapping[str, Any]) -> str:
    name = str(moldability["_target_"]).rpartition(".")[2]
    return {"NoMoldability": "none", "Measured": "measured"}.get(name, "invented")


def _requested_times(estimates: str, filled: int, jobs: int, how: str) -> str:
    """Return where requested times are from.

    Examples
    --------
    >>> _requested_times("recorded", 3, 10, "model"), _requested_times("recorded", 9, 9, "repair")
    ('recorded and modelled', 'exact')
    """
    if estimates != "recorded" or not filled:
        return estimates
    made = "modelled" if how == "model" else "exact"
    return made if filled >= jobs else f"recorded and {made}"


_SIZES = {
    "class": "which of its inputs a job has, not how large it is",
    "hidden": "no job's size",
}
_TIMES = {
    "exact": "requested times are the true runtimes",
    "recorded": "recorded requested times",
    "modelled": "requested times modelled, as none is recorded",
    "recorded and exact": "recorded requested times, missing ones filled with the true runtime",
    "recorded and modelled": "recorded requested times, missing ones modelled",
}
_CURVES = {
    "invented": "invented curves",
    "measured": "measured curves",
    "none": "no curves (jobs are rigid)",
}


def _percent(share: float) -> str:
    """Return a share in percent, two digits of small ones.

    Examples
    --------
    >>> _percent(2.1314), _percent(0.0041)
    ('213.1 %', '0.41 %')
    """
    return f"{100 * share:.1f} %" if share >= 0.01 else f"{100 * share:.2g} %"


def _runs(figures: Figures) -> str:
    runs, share = figures.get("given_runs"), figures.get("given_work_share")
    if not runs:
        return "no runs before the start"
    how = (
        "submitted as jobs ahead of all and charged"
        if figures.get("given_charged")
        else "free of charge"
    )
    part = "" if share is None else f" ({_percent(float(share))} of the work)"
    return f"{float(runs):,.0f} runs before the start{part}, {how}"


def _known_sizes(figures: Figures) -> str:
    sizes, noise = figures.get("given_sizes"), figures.get("given_size_noise")
    if sizes == "class" and not figures.get("sizes_per_application"):
        return "which popular time a job requests, not its size"
    if sizes != "known":
        return _SIZES.get(str(sizes), "sizes of some")
    if not isinstance(noise, int | float) or not noise:
        return "every job's serial time"
    return f"every job's serial time within {100 * noise:.2g} %"


def given_line(figures: Figures) -> str | None:
    """Return in one line what predictors were given, None for a summary that does not say.

    Examples
    --------
    >>> figures = {"given_runs": 150, "given_work_share": 0.0123, "given_charged": True,
    ...     "given_sizes": "known", "given_size_noise": 0.1, "given_applications": "invented",
    ...     "applications": 50, "given_curves": "invented", "given_requested_times": "tsafrir"}
    >>> for part in given_line(figures).split("; "):
    ...     print(part)
    150 runs before the start (1.2 % of the work), submitted as jobs ahead of all and charged
    every job's serial time within 10 %
    50 invented applications
    invented curves
    requested times modelled (tsafrir)
    """
    if "given_runs" not in figures:
        return None
    number = figures.get("applications")
    count = f"{float(number):,.0f} " if isinstance(number, int | float) else ""
    times = str(figures.get("given_requested_times"))
    named = _identity(figures.get("given_identity"))
    parts = [
        *(["the true runtimes"] if figures.get("given_truth") else []),
        _runs(figures),
        _known_sizes(figures),
        f"{count}{figures.get('given_applications') or 'partly invented'} applications{named}",
        _CURVES.get(str(figures.get("given_curves")), "curves of several kinds"),
        _TIMES.get(times, f"requested times modelled ({times})"),
    ]
    return "; ".join(parts)


def _identity(identity: object) -> str:
    """Return in brackets what jobs of one recorded application share."""
    if not isinstance(identity, str):
        return ""
    shared = identity.replace("_", " and ")
    return " (a job each)" if identity == "none" else f" (by {shared})"


def given_lines(summaries: Sequence[Figures]) -> dict[str, list[int]]:
    """Return each line that summaries have, with the places of those that have it."""
    places: dict[str, list[int]] = {}
    for place, figures in enumerate(summaries):
        line = given_line(figures)
        if line is not None:
            places.setdefault(line, []).append(place)
    return places
