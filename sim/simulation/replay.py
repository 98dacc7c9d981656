"""One run from its configuration to its artefacts: jobs, truth, policy, simulation, figures."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from predictors.cli.display import SILENT, Display
from sim.config import BASELINE_PREDICTOR
from sim.errors import ConfigError
from sim.results.artefacts import (
    REQUESTS,
    Artefacts,
    is_finished,
    manifest,
    mean_of_replications,
    mean_summary,
    read_results,
    replication_folder,
    write_ends,
    write_run,
    write_table,
)
from sim.results.formats import check_formats, write_formats
from sim.results.frames import requests_frame
from sim.results.job_metrics import Figures
from sim.results.metrics import summarise
from sim.results.outcome import Outcome
from sim.results.provenance import Identity
from sim.results.rows import EASY_PLUS
from sim.results.steady_state import STEADY, STEADY_LOAD, WINDOW, Trim
from sim.simulation.build import with_menu
from sim.simulation.progress import Show
from sim.simulation.recorded_schedule import is_recorded
from sim.simulation.replication import (
    decisive,
    easy_plus_figures,
    easy_plus_of,
    replicated,
    stopping_rule,
)
from sim.simulation.scene import Played, Scene, play, set_scene, steady_load
from workloads.truth.options import TruthOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FILLED = "missing_requested_time"
"""The rule of cleaning that fills requested times."""


def given_figures(config: Mapping[str, Any], scene: Scene, played: Played) -> Figures:
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
        ``user``, or ``request`` where no job has a user; None where they are invented.
        ``given_curves``: ``invented``, ``measured``, or ``none`` where every job is rigid.
        ``given_requests``: how jobs ask for processors of these, ``efficiency`` or
        ``independent``; None where they are rigid, or a model draws curve and request
        itself. ``given_requested_times``: ``recorded`` or how they were made.
    """
    jobs = scene.trace.jobs
    runs = len(played.known) + played.charged
    work = float((jobs["requested_processors"] * jobs["reference_runtime"]).sum())
    workload = config["workload"]
    sizes = _sizes(scene.truth.size, scene.truth.size_class)
    recorded = workload.get("applications") == "log"
    nobody = scene.trace.identity == "user_request" and bool((jobs["user"] < 0).all())
    return {
        "given_truth": played.told_truth,
        "given_runs": runs,
        "given_work_share": (played.known_area + played.charged_area) / work,
        "given_charged": played.charged > 0 if runs else None,
        "given_sizes": sizes,
        "given_size_noise": workload.get("size_noise", 0.0) if sizes == "known" else None,
        "given_applications": "recorded" if recorded else "invented",
        "given_identity": ("request" if nobody else scene.trace.identity) if recorded else None,
        "given_curves": _curves(config["moldability"]),
        "given_requests": _requests(config["moldability"], scene),
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


def _requests(moldability: Mapping[str, Any], scene: Scene) -> str | None:
    drawn = scene.truth.known and "A" not in scene.trace.models
    return str(moldability.get("requests", TruthOptions.requests)) if drawn else None


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


def _title(show: Show, config: Mapping[str, Any], parts: Mapping[str, Any], run: Outcome) -> str:
    """Return the title of the picture of a run or a baseline: its parts, jobs, processors."""
    from sim.results.plots.pictures import title_of  # late: many runs draw none

    own = parts["predictor"] == config["predictor"]
    brings_own = is_recorded(parts["policy"]) or parts["policy"].get("predictor")
    predictor = "" if brings_own else show.names.predictor if own else BASELINE_PREDICTOR
    figures: Figures = {"jobs": int(run.counted.sum()), "processors": run.records.processors}
    return title_of(show.name(parts), predictor, show.names.workload, figures)


def write_more(folder: Path, run: Outcome, names: Sequence[str]) -> None:
    """Write the formats of other tools, and what jobs asked."""
    write_formats(folder, run=run, names=names)
    if run.records.requests is not None:
        write_table(requests_frame(run.trace, run.records.requests), folder / REQUESTS)


def artefacts(
    config: Mapping[str, Any],
    played: Played,
    scene: Scene,
    seconds: float,
    identity: Identity,
    title: str | None = None,
) -> Artefacts:
    """Return everything that is written of a finished simulation; pictures if they have a title."""
    outcome = played.outcome
    return Artefacts(
        tables=outcome.tables,
        summary=summarise(
            outcome,
            trim=Trim(**config["metrics"]),
            calibration=played.known,
            calibration_area=played.known_area,
            more={
                "seed": config["seed"],
                **given_figures(config, scene, played),
                "menu": played.menu,
                **scene.truth.repetition(),
            },
        ),
        figure=None if title is None else _drawn(outcome, title),
        manifest=manifest(outcome.trace, seconds) | dict(identity),
        export=partial(write_more, run=outcome, names=config["export"]),
        more_figures={} if title is None else scene.figures(outcome),
    )


def _drawn(outcome: Outcome, title: str) -> "Figure":
    """Return the picture of a schedule, from the processors of each allocation as they are."""
    from sim.results.plots.schedule import schedule_figure

    records, epoch = outcome.records, outcome.trace.epoch
    nodes = records.stretches.nodes
    return schedule_figure(outcome.tables, records.processors, title, nodes, epoch)


def perform(
    config: Mapping[str, Any],
    parts: Mapping[str, Any],
    scene: Scene,
    identity: Identity,
    show: Show,
    is_drawn: bool = True,
    is_first: bool = True,
) -> Artefacts:
    """Simulate the run or its baseline, and return everything that is written of it.

    If it `is_first`, no later replication, and does not settle, it is run at lower loads too.
    """
    began = time.perf_counter()
    played = play(config, parts, scene, show.display)
    title = _title(show, config, parts, played.outcome) if is_drawn else None
    made = artefacts(config, played, scene, time.perf_counter() - began, identity, title)
    figures, alone = made.summary, config["replications"] == 1 and config["precision"] is None
    sought = is_first and figures[STEADY] is False and (alone or figures[WINDOW] is None)
    load = steady_load(config, parts, scene, show.display) if sought else None
    return replace(made, summary=dict(sorted({**figures, STEADY_LOAD: load}.items())))


MOST_STEP_JOBS = 100_000
"""Jobs up to which the step between baseline and run is played unasked."""
Results = tuple[Figures, Figures | None, Figures | None]
"""Summaries of a run, of its baseline and of the step between, where there are such."""


def step_between(config: Mapping[str, Any], jobs: int) -> dict[str, Any] | None:
    """Return the baseline's policy with the run's predictor, where that is a step between them.

    Parameters
    ----------
    config : mapping
        The run's configuration; ``baseline_predictor`` may ask for it or refuse it.
    jobs : int
        How many there are; beyond `MOST_STEP_JOBS` it must be asked for.

    Returns
    -------
    dict or None
        None where policy or predictor are the same, so that the run and its
        baseline are like and like already, or where one is the log's own
        schedule, which no predictor changes.
    """
    base, asked = config["baseline"], config["baseline_predictor"]
    if base is None or config["predictor"] == base["predictor"]:
        return None
    if is_recorded(config["policy"]) or is_recorded(base["policy"]):
        return None
    menu = config["menu"]
    if with_menu(config["policy"], menu) == with_menu(base["policy"], menu):
        return None
    if not (jobs <= MOST_STEP_JOBS if asked is None else asked):
        return None
    return {**base, "predictor": config["predictor"]}


Simulated = tuple[Artefacts, Artefacts | None, Artefacts | None]
"""One replication of a run, of its baseline and of the step between."""


def replicate(
    config: Mapping[str, Any], replication: int, folder: Path | None, identity: Identity, show: Show
) -> Simulated:
    """Run one replication, its baseline and the step between; write all where there is a folder."""
    if config["sim"]["assumptions"] and config["baseline"] is None:
        raise ConfigError("sim.assumptions=true: needs a baseline, such as baseline=easy")
    with show.display.ahead():
        scene = set_scene(config, replication, shown=show.display)
    others = (config["baseline"], step_between(config, len(scene.trace.jobs)))
    first, every = replication == 0 and config["picture"] == "first", config["picture"] == "all"
    drawn = (first or every, first or every, every)
    varies = config["sim"]["assumptions"] and replication == 0
    rival = easy_plus_of(config) if others[1] is not None else None
    number = sum(one is not None for one in (config, *others, rival)) + varies
    made: list[Artefacts | None] = []
    for parts, is_drawn in zip((config, *others), drawn, strict=True):
        if parts is None:
            made.append(None)
            continue
        with show.display.part(sum(map(bool, made)), number, show.name(parts)):
            asked = (config, parts, scene, identity, show, is_drawn, replication == 0)
            made.append(perform(*asked))
    own, base, step = made
    assert own is not None
    more: Figures = {}
    if rival is not None:
        with show.display.part(number - 1 - varies, number, EASY_PLUS):
            more |= easy_plus_figures(config, rival, scene, show.display)
    if varies:
        with show.display.part(number - 1, number):
            more |= decisive(config, show.display)
    own = replace(own, summary=dict(sorted({**own.summary, **more}.items())))
    if folder is not None:
        write_run(folder, own, base, step)
    return own, base, step


def summaries(simulated: Simulated) -> Results:
    """Return the summaries of a replication."""
    own, base, step = (None if one is None else one.summary for one in simulated)
    assert own is not None
    return own, base, step


def run(
    config: Mapping[str, Any],
    folder: Path | None,
    identity: Identity,
    show: Show,
    keep: Callable[[Simulated], None] | None = None,
) -> Results:
    """Carry out a whole run: all replications, each with what it is compared with, and means.

    Parameters
    ----------
    config : mapping
        The resolved configuration; ``baseline`` is None or has a name, a policy
        and a predictor.
    folder : pathlib.Path or None
        Where the artefacts go; None writes nothing. A replication that is there is not done again.
    identity : mapping
        What the manifest says that the run was made of.
    show : Show
        What the terminal is told.
    keep : callable, optional
        Is handed each replication as it ends.

    Returns
    -------
    tuple of dict
        The summary of the run, and those of its baseline and of the step
        between, if it has them.
    """
    Trim(**config["metrics"])
    check_formats(config["export"])
    number, rule = config["replications"], stopping_rule(config)

    several = number > 1 or rule is not None

    def one(replication: int) -> Results:
        place = replication_folder(folder, replication) if folder and several else folder
        if several and place is not None and is_finished(place):
            return read_results(place)
        named = f"{replication + 1} of {number}" if number > 1 else ""
        with show.display.part(min(replication, number - 1), number, named):
            simulated = replicate(config, replication, place, identity, show)
        if keep is not None:
            keep(simulated)
        return summaries(simulated)

    with contextlib.ExitStack() as stack:
        if show.progress and show.display is SILENT:
            show = replace(show, display=stack.enter_context(Display(show.messages)))
        if not several:
            return one(0)
        every = replicated(one, number, rule)
    more = {} if rule is None else rule.figures(every)
    means = mean_of_replications([results[0] for results in every], more)
    if folder is not None:
        places = [replication_folder(folder, k) for k in range(len(every))]
        write_ends(folder, means, identity, places)
    others = ([own for results in every if (own := results[k]) is not None] for k in (1, 2))
    base, step = (mean_summary(known) if known else None for known in others)
    return means, base, step
