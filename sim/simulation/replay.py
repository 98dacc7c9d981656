"""One run from its configuration to its artefacts, in a folder of its own where it has one.

A run is played more than once: in replications (`sim.simulation.precision`), at lower loads where
its queue does not settle, and under other assumptions (`sim.simulation.assumptions`).
"""

import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from sim.config import CONFIG_FOLDER, Settings, digest
from sim.errors import ConfigError
from sim.results import artefacts
from sim.results.artefacts import BASELINE, RUN, STEP, Artefacts
from sim.results.durable import FAILURE, SUMMARY
from sim.results.formats import check_formats, write_formats
from sim.results.job_metrics import Figures
from sim.results.metrics import summarise
from sim.results.plots.style import write_svg
from sim.results.provenance import KEEP, Identity, identity_of, input_files, why_again
from sim.results.rows import EASY_PLUS, KEPT
from sim.results.steady_state import STEADY, STEADY_LOAD, WINDOW, Trim
from sim.simulation.assumptions import decisive, steady_load
from sim.simulation.build import with_menu
from sim.simulation.precision import Results, replicated, stopping_rule
from sim.simulation.progress import Show
from sim.simulation.recorded_schedule import is_recorded
from sim.simulation.scene import Played, Scene, play, set_scene
from sim.sweeps.resume import mark_finished
from workloads.base import Trace
from workloads.truth.options import TruthOptions

logger = logging.getLogger(__name__)
FILLED = "missing_requested_time"
"""The rule of cleaning that fills requested times."""
CURVES = {"NoMoldability": "none", "Measured": "measured"}
"""Classes whose curves are not invented."""


def given_figures(config: Settings, scene: Scene, played: Played) -> Figures:
    """Return what predictors knew of a run's jobs before they ran.

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
    trace = scene.trace
    jobs = trace.jobs
    runs, held = len(played.known) + played.charged, played.outcome.tables.columns("jobs")
    charged_area = float(held["held_area"][held["job_id"] < 0].sum())
    work = float((jobs["requested_processors"] * jobs["reference_runtime"]).sum())
    workload, curves = config["workload"], config["moldability"]
    asks = scene.truth.known and "A" not in trace.models
    sizes = "class" if (scene.truth.size_class >= 0).any() else "hidden"
    if not np.isnan(scene.truth.size).all():
        sizes = "known"
    recorded = workload.get("applications") == "log"
    nobody = trace.identity == "user_request" and bool((jobs["user"] < 0).all())
    return {
        "given_truth": played.told_truth,
        "given_runs": runs,
        "given_work_share": (played.known_area + charged_area) / work,
        "given_charged": played.charged > 0 if runs else None,
        "given_sizes": sizes,
        "given_size_noise": workload.get("size_noise", 0.0) if sizes == "known" else None,
        "given_applications": "recorded" if recorded else "invented",
        "given_identity": ("request" if nobody else trace.identity) if recorded else None,
        "given_curves": CURVES.get(str(curves["_target_"]).rpartition(".")[2], "invented"),
        "given_requests": curves.get("requests", TruthOptions.requests) if asks else None,
        "given_requested_times": _requested_times(workload, trace),
    }


def _requested_times(workload: Settings, trace: Trace) -> str:
    """Return where requested times are from."""
    estimates, filled = workload.get("estimates", "recorded"), trace.repaired.get(FILLED, 0)
    if estimates != "recorded" or not filled:
        return str(estimates)
    how = (workload.get("cleaning") or {}).get(FILLED, "exact")
    made = "modelled" if how == "model" else "exact"
    return made if filled >= len(trace.jobs) else f"recorded and {made}"


def summary_of(config: Settings, scene: Scene, played: Played) -> Figures:
    """Return the summary of a finished simulation, with what was given and what repeats."""
    return summarise(
        played.outcome,
        trim=Trim(**config["metrics"]),
        calibration=played.known,
        calibration_area=played.known_area,
        more={
            "seed": config["seed"],
            **given_figures(config, scene, played),
            "menu": played.menu,
            **scene.truth.repetition(),
        },
    )


def easy_plus_of(config: Settings) -> dict[str, Any] | None:
    """Return policy and predictor of `easy_plus`, which a site could take instead of molding.

    They are made of those of the baseline; None where that is not `easy`, or the run has them.
    """
    base = config["baseline"]
    if base["name"] != "easy":
        return None
    last_two = yaml.safe_load((CONFIG_FOLDER / "predictor" / "last_two.yaml").read_text())
    shortest = {**base["policy"]["backfill"], "candidates": "shortest"}
    policy = {**base["policy"], "backfill": shortest, "predictor": last_two}
    return None if config["policy"] == policy else {**base, "policy": policy}


def perform(
    config: Settings,
    parts: Settings,
    scene: Scene,
    identity: Identity,
    show: Show,
    role: str,
    replication: int,
) -> Artefacts:
    """Simulate the run or what it is compared with, and return everything that is written of it.

    If it does not settle, and is no later replication, it is run at lower loads too.
    """
    began, is_first = time.perf_counter(), replication == 0
    played = play(config, parts, scene, show.display)
    run, seconds = played.outcome, time.perf_counter() - began
    figures = summary_of(config, scene, played)
    alone = config["replications"] == 1 and config["precision"] is None
    sought = is_first and figures[STEADY] is False and (alone or figures[WINDOW] is None)
    load = steady_load(config, parts, scene, show.display) if sought else None
    figures = dict(sorted({**figures, STEADY_LOAD: load}.items()))
    asked = config["picture"]
    drawn = asked == "all" or (asked == "first" and is_first and role != STEP)

    def write_more(folder: Path) -> None:
        """Write its pictures, if they are asked for, and its schedule in other formats."""
        write_formats(folder, run, config["export"])
        if not drawn:
            return
        from sim.results.plots.schedule import schedule_figure  # late: many runs draw none

        names, size, held = show.names[role], run.records.processors, run.records.stretches
        if parts["policy"].get("predictor"):  # one of its own, which its name says
            names = replace(names, predictor="")
        title, epoch = names.title(figures), run.trace.epoch
        picture = schedule_figure(run.tables, size, title, held.nodes, epoch)
        picture.savefig(folder / "schedule.png", metadata={"Software": None})
        for name, one in scene.figures(run).items():
            write_svg(one, folder / name)

    return Artefacts(
        run.tables, figures, artefacts.manifest(run.trace, seconds) | {**identity}, write_more
    )


MOST_STEP_JOBS = 100_000
"""Jobs up to which the step between baseline and run is played unasked."""


def step_between(config: Settings, jobs: int) -> dict[str, Any] | None:
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


Simulated = Mapping[str, Artefacts]
"""One replication of a run and of what it is compared with, by role."""


def replicate(
    config: Settings, replication: int, folder: Path | None, identity: Identity, show: Show
) -> Simulated:
    """Run one replication and what it is compared with; write all where there is a folder."""
    if config["sim"]["assumptions"] and config["baseline"] is None:
        raise ConfigError("sim.assumptions=true: needs a baseline, such as baseline=easy")
    with show.display.ahead():
        scene = set_scene(config, replication, shown=show.display)
    step = step_between(config, len(scene.trace.jobs))
    every = {RUN: config, BASELINE: config["baseline"], STEP: step}
    asked = {role: parts for role, parts in every.items() if parts is not None}
    varies = config["sim"]["assumptions"] and replication == 0
    rival = None if step is None else easy_plus_of(config)
    number = len(asked) + (rival is not None) + varies
    made: dict[str, Artefacts] = {}
    for role, parts in asked.items():
        with show.display.part(len(made), number, show.names[role].policy):
            made[role] = perform(config, parts, scene, identity, show, role, replication)
    more: Figures = {}
    if rival is not None:
        with show.display.part(number - 1 - varies, number, EASY_PLUS):
            played = play(config, rival, scene, show.display)
            figures = summarise(played.outcome, trim=Trim(**config["metrics"]))
            more |= {f"{EASY_PLUS}_{key}": figures[key] for key in KEPT}
    if varies:
        with show.display.part(number - 1, number):
            more |= decisive(config, show.display)
    made[RUN] = replace(made[RUN], summary=dict(sorted((made[RUN].summary | more).items())))
    if folder is not None:
        artefacts.write_run(folder, made)
    return made


class Carried(NamedTuple):
    """A run that is carried out: its summaries, and those of each of several replications.

    Attributes
    ----------
    results : mapping of str to dict
        By role; of several replications the means.
    parts : sequence of such mappings
        Without several replications empty.
    """

    results: Results
    parts: Sequence[Results] = ()


def run(
    config: Settings,
    folder: Path | None,
    identity: Identity,
    show: Show,
    keep: Callable[[Simulated], None] | None = None,
) -> Carried:
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
    """
    Trim(**config["metrics"])
    check_formats(config["export"])
    number, rule = config["replications"], stopping_rule(config)

    several = number > 1 or rule is not None

    def one(replication: int) -> Results:
        place = artefacts.replication_folder(folder, replication) if folder and several else folder
        if several and place is not None and artefacts.is_finished(place):
            return artefacts.read_results(place)
        named = f"{replication + 1} of {number}" if number > 1 else ""
        with show.display.part(min(replication, number - 1), number, named):
            simulated = replicate(config, replication, place, identity, show)
        if keep is not None:
            keep(simulated)
        return {role: made.summary for role, made in simulated.items()}

    if not several:
        return Carried(one(0))
    every = replicated(one, number, rule)
    more = {} if rule is None else rule.figures(every)
    means = {RUN: artefacts.mean_of_replications([results[RUN] for results in every], more)}
    for role in (BASELINE, STEP):
        if known := [results[role] for results in every if role in results]:
            means[role] = artefacts.mean_summary(known)
    if folder is not None:
        places = [artefacts.replication_folder(folder, k) for k in range(len(every))]
        artefacts.write_ends(folder, means[RUN], identity, places)
    return Carried(means, every)


def run_in(
    folder: Path,
    config: Settings,
    show: Show,
    save: Callable[[Path], None],
    keep: Callable[[Simulated], None] | None = None,
    *,
    anew: bool,
    goes_on: bool = True,
    marked: Sequence[str] | None = None,
) -> Carried:
    """Carry out a run in a folder that nobody else works in.

    Parameters
    ----------
    folder : pathlib.Path
    config : mapping
        Its whole settings.
    show : Show
    save : callable
        Writes the configuration into a folder's ``.hydra/``: at once where there are no former
        results, which otherwise keep their own until the new ones are whole.
    keep : callable, optional
        Is handed each replication as it ends.
    anew : bool
        Whether to do again what is finished there with this configuration, these
        inputs and this code.
    goes_on : bool
        Whether replications that an interrupted run left there are taken for its own.
    marked : sequence of str, optional
        The overrides by which a sweep knows the run again.
    """
    files = input_files(config)
    identity = identity_of(digest(config), files)
    artefacts.finish(folder)
    (folder / FAILURE).unlink(missing_ok=True)
    again = partial(why_again, identity=identity, keep_code=config["reuse"] == KEEP)
    why = "" if anew else again(folder)
    if why is None:
        logger.info("already finished: %s", folder.name)
        results = artefacts.read_results(folder)
        number = int(results[RUN].get("replications") or 0)
        places = [artefacts.replication_folder(folder, k) for k in range(number)]
        done = Carried(results, [*map(artefacts.read_results, places)])
    else:
        if why:
            logger.warning("done again: %s", why)
        if not (folder / SUMMARY).exists():
            save(folder)
        with artefacts.replacing(folder, goes_on=goes_on) as new:
            for part in new.iterdir():
                if part.is_file():
                    part.unlink()
                elif again(part) is not None:
                    shutil.rmtree(part)
            save(new)
            done = run(config, new, identity, show, keep)
    if marked is not None:
        mark_finished(folder, marked, files, config)
    return done
