"""One run from its configuration to its artefacts, in a folder of its own where it has one.

A run is played more than once: in replications (`sim.simulation.precision`), at lower loads where
its queue does not settle, and under other assumptions (`sim.simulation.assumptions`).
"""

import logging
import shutil
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from predictors.cli.terminal import SILENT, Display
from sim.composition import Composed
from sim.config import BASELINE_PREDICTOR, CONFIG_FOLDER, Settings, digest
from sim.errors import ConfigError
from sim.results import artefacts
from sim.results.artefacts import BASELINE, RUN, STEP, Artefacts
from sim.results.durable import FAILURE, SUMMARY
from sim.results.formats import check_formats, write_formats
from sim.results.metrics import summarise, whole_figures
from sim.results.plots.style import write_svg
from sim.results.provenance import KEEP, Identity, identity_of, input_files, why_again
from sim.results.rows import EASY_PLUS, KEPT
from sim.results.steady_state import STEADY, STEADY_LOAD, WINDOW, Figures, Trim
from sim.simulation.assumptions import decisive
from sim.simulation.build import with_menu
from sim.simulation.precision import Results, replicated, stopping_rule
from sim.simulation.progress import Names
from sim.simulation.recorded_schedule import is_recorded
from sim.simulation.scene import Played, Scene, play, set_scene
from sim.sweeps.configurations import OWN_PREDICTOR
from sim.sweeps.resume import mark_finished
from workloads.arrivals import offered_load, scale_load
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
        "given_work_share": (played.known_area + charged_area) / work if work else 0.0,
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


LOADS = tuple(tenth / 10 for tenth in range(1, 10))


def steady_load(config: Settings, parts: Settings, scene: Scene, progress: Display) -> float | None:
    """Return the largest load of `LOADS` at which the jobs of a scene settle; None if none is.

    Notes
    -----
    It is sought by bisection: a load below one that settles is taken to settle too.
    """
    jobs, machine = scene.trace.jobs, scene.machine.processors
    below = [load for load in LOADS if load < offered_load(jobs, machine)]

    def grows(load: float) -> bool:
        """Say whether the queue does not settle."""
        slower = replace(scene.trace, jobs=scale_load(jobs, machine, load))
        if progress.is_due():
            progress.show(f"does the queue settle at load {load:g}?", 1.0)
        played = play(config, parts, replace(scene, trace=slower))
        return not whole_figures(played.outcome)[STEADY]

    steady = 0 if is_recorded(parts["policy"]) else bisect_left(below, True, key=grows)
    return below[steady - 1] if steady else None


def names_of(made: Composed) -> dict[str, Names]:
    """Return by role what parts are called, by the options of a run and its baseline's name."""
    chosen, baseline = made.choices, made.settings["baseline"]
    policy, predictor, workload = (str(chosen[key]) for key in ("policy", "predictor", "workload"))
    base = "" if baseline is None else str(baseline["name"])
    return {
        RUN: Names(policy, str(chosen.get(OWN_PREDICTOR, predictor)), workload),
        BASELINE: Names(base, BASELINE_PREDICTOR, workload),
        STEP: Names(base, predictor, workload),
    }


Simulated = Mapping[str, Artefacts]
"""One replication of a run and of what it is compared with, by role."""


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


@dataclass(frozen=True)
class Run:
    """A run with all that it is compared with, to be carried out.

    Attributes
    ----------
    config : mapping
        The resolved configuration; ``baseline`` is None or has a name, a policy
        and a predictor.
    names : mapping of str to Names
        Of its parts, by role.
    display : Display
        Shows how far it is, on runs longer than a second.
    keep : callable, optional
        Is handed each replication as it ends.
    identity : mapping
        What the manifest says that the run was made of.
    """

    config: Settings
    names: Mapping[str, Names]
    display: Display = SILENT
    keep: Callable[[Simulated], None] | None = None
    identity: Identity = field(default_factory=dict)

    def perform(self, parts: Settings, scene: Scene, role: str, replication: int) -> Artefacts:
        """Simulate the run or what it is compared with, and return all that is written of it.

        If it does not settle, and is no later replication, it is run at lower loads too.
        """
        config, began, is_first = self.config, time.perf_counter(), replication == 0
        played = play(config, parts, scene, self.display)
        run, seconds = played.outcome, time.perf_counter() - began
        figures = summary_of(config, scene, played)
        alone = config["replications"] == 1 and config["precision"] is None
        sought = is_first and figures[STEADY] is False and (alone or figures[WINDOW] is None)
        load = steady_load(config, parts, scene, self.display) if sought else None
        figures = dict(sorted({**figures, STEADY_LOAD: load}.items()))
        asked = config["picture"]
        drawn = asked == "all" or (asked == "first" and is_first and role != STEP)

        def write_more(folder: Path) -> None:
            """Write its pictures, if they are asked for, and its schedule in other formats."""
            write_formats(folder, run, config["export"])
            if not drawn:
                return
            from sim.results.plots.pictures import schedule_figure  # late: many runs draw none

            names, size, held = self.names[role], run.records.processors, run.records.allocations
            if parts["policy"].get("predictor"):  # one of its own, which its name says
                names = replace(names, predictor="")
            title, epoch = names.title(figures), run.trace.epoch
            picture = schedule_figure(run.tables, size, title, held.nodes, epoch)
            picture.savefig(folder / "schedule.png", metadata={"Software": None})
            for name, one in scene.figures(run).items():
                write_svg(one, folder / name)

        manifest = artefacts.manifest(run.trace, seconds) | {**self.identity}
        return Artefacts(run.tables, figures, manifest, write_more)

    def replicate(self, replication: int, folder: Path | None = None) -> Simulated:
        """Run a replication and what it is compared with; write all where there is a folder."""
        config, display = self.config, self.display
        varies = config["sim"]["assumptions"] and replication == 0
        if varies and config["baseline"] is None:
            raise ConfigError("sim.assumptions=true: needs a baseline, such as baseline=easy")
        with display.ahead():
            scene = set_scene(config, replication, shown=display)
        step = step_between(config, len(scene.trace.jobs))
        every = {RUN: config, BASELINE: config["baseline"], STEP: step}
        asked = {role: parts for role, parts in every.items() if parts is not None}
        rival = None if step is None else easy_plus_of(config)
        number = len(asked) + (rival is not None) + varies
        made: dict[str, Artefacts] = {}
        for role, parts in asked.items():
            with display.part(len(made), number, self.names[role].policy):
                made[role] = self.perform(parts, scene, role, replication)
        more: Figures = {}
        if rival is not None:
            with display.part(number - 1 - varies, number, EASY_PLUS):
                played = play(config, rival, scene, display)
                figures = summarise(played.outcome, trim=Trim(**config["metrics"]))
                more |= {f"{EASY_PLUS}_{key}": figures[key] for key in KEPT}
        if varies:
            with display.part(number - 1, number):
                more |= decisive(config, display)
        made[RUN] = replace(made[RUN], summary=dict(sorted((made[RUN].summary | more).items())))
        if folder is not None:
            artefacts.write_run(folder, made)
        if self.keep is not None:
            self.keep(made)
        return made

    def carry_out(self, folder: Path | None) -> Carried:
        """Carry out all replications, each with what it is compared with, and return their means.

        The artefacts go into the folder; None writes nothing. A replication that is there is not
        done again.
        """
        config = self.config
        Trim(**config["metrics"])
        check_formats(config["export"])
        number, rule = config["replications"], stopping_rule(config)
        several = number > 1 or rule is not None

        def one(replication: int) -> Results:
            place = folder
            if folder is not None and several:
                place = artefacts.replication_folder(folder, replication)
                if artefacts.is_finished(place):
                    return artefacts.read_results(place)
            named = f"{replication + 1} of {number}" if number > 1 else ""
            with self.display.part(min(replication, number - 1), number, named):
                simulated = self.replicate(replication, place)
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
            artefacts.write_ends(folder, means[RUN], self.identity, places)
        return Carried(means, every)

    def carry_out_in(
        self,
        folder: Path,
        made: Composed,
        *,
        anew: bool,
        goes_on: bool = True,
        marked: Sequence[str] | None = None,
    ) -> Carried:
        """Carry it out in a folder that nobody else works in.

        Parameters
        ----------
        folder : pathlib.Path
        made : Composed
            Its configuration, which goes into the folder's ``.hydra/``: at once where there are no
            former results, which otherwise keep their own until the new ones are whole.
        anew : bool
            Whether to do again what is finished there with this configuration, these
            inputs and this code.
        goes_on : bool
            Whether replications that an interrupted run left there are taken for its own.
        marked : sequence of str, optional
            The overrides by which a sweep knows the run again.
        """
        config = self.config
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
                made.save(folder)
            with artefacts.replacing(folder, goes_on=goes_on) as new:
                for part in new.iterdir():
                    if part.is_file():
                        part.unlink()
                    elif again(part) is not None:
                        shutil.rmtree(part)
                made.save(new)
                done = replace(self, identity=identity).carry_out(new)
        if marked is not None:
            mark_finished(folder, marked, files, config)
        return done
