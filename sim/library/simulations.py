"""Simulations from Python: `sim.run` and `sim.sweep`."""

import contextlib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pandas as pd

from predictors.cli.terminal import SILENT, Display
from sim.composition import combinations, compose
from sim.errors import BAD_INPUT, ConfigError, SimError, SweepWarning, one_line
from sim.help.interrupts import noting_interrupts
from sim.library.call import Call, called, keyword, several
from sim.library.result import REPLICATIONS, Kept, Result
from sim.results.artefacts import BASELINE, RUN, STEP, foreign
from sim.results.durable import write_failure
from sim.simulation.precision import Results
from sim.simulation.progress import Names, Show
from sim.simulation.replay import Carried, Simulated, run_in
from sim.simulation.replay import run as replay
from sim.sweeps.callback import folder_name
from sim.sweeps.configurations import HOW
from sim.sweeps.locks import own_folder
from sim.sweeps.resume import override_dirname, samples_to_validate

_CALLER = 3
"""Calls between a warning and who called `sweep`."""


@noting_interrupts()
def run(
    *overrides: str,
    jobs: object = None,
    processors: int | None = None,
    policy: object = None,
    predictor: object = None,
    folder: str | PathLike[str] | None = None,
    **keys: object,
) -> Result:
    """Simulate, as ``moldsim run`` does with the same settings and seed.

    Parameters
    ----------
    *overrides : str
        As on the command line, such as ``"workload.jobs=2000"``.
    jobs : pandas.DataFrame, path or workload, optional
        What to run instead of a configured workload. A DataFrame has ``submit_time``,
        ``runtime`` (seconds), ``requested_processors`` and, where there,
        ``requested_time``, ``user``, ``application`` (see
        `workloads.FrameWorkload`); it has the defaults of files.
    processors : int, optional
        Of the machine: ``cluster.processors``.
    policy, predictor : str, class or object, optional
        A preset's name, or anything with the methods of a policy (`sim.Policy`) or of
        a predictor in the loop (`predictors.RuntimePredictor`): an object, a class
        without arguments, or a class's dotted name. Objects are copied, not changed. A
        model of curves (`predictors.Adept(q=2)`) learns one for each application.
    folder : path, optional
        Where to write the artefacts; without it nothing is written.
    **keys
        Top-level keys: ``seed=2``, ``baseline=None``, ``metrics={"warmup": 0.1}``.

    Returns
    -------
    Result

    Raises
    ------
    ConfigError
        If a key or value is refused; the text is that of the command line.
    WorkloadError, PredictorError, PolicyError
        If jobs cannot be read, or a part refuses its work.

    Examples
    --------
    >>> import sim
    >>> result = sim.run("workload.jobs=30", policy="easy", predictor="oracle", seed=2)
    >>> len(result.jobs), result.summary["prediction_median_error"]
    (30, 0.0)
    """
    call = called(overrides, jobs, processors, policy, predictor, keys)
    kept: list[Simulated] = []
    names, done = _carried_out(call, folder, keep=kept.append)
    return _result(done.results, kept, names, None if folder is None else Path(folder))


def _carried_out(
    call: Call,
    folder: str | PathLike[str] | None,
    shown: Display | None = None,
    keep: Callable[[Simulated], None] | None = None,
) -> tuple[Mapping[str, Names], Carried]:
    """Simulate; return by role what parts are called, and the summaries.

    Of a sweep, which a display is `shown` of, what is finished in its folder is left as it is,
    but for runs of objects.
    """
    multirun = shown is not None
    config, show, save = call.composed(multirun)
    if shown is not None:
        show = replace(show, display=shown if show.progress else SILENT)
    if folder is None:
        return show.names, replay({**config, "picture": "none"}, None, {}, show, keep)
    place, anew = _made(folder), not multirun or bool(call.parts)
    marked = call.overrides if multirun else None
    with own_folder(place, wait=multirun):
        done = run_in(place, config, show, save, keep, anew=anew, goes_on=not anew, marked=marked)
    return show.names, done


def _made(folder: str | PathLike[str]) -> Path:
    """Return the path of a folder that is there now.

    Raises
    ------
    ConfigError
        If it cannot be made.
    """
    try:
        place = Path(fspath(folder))
        place.mkdir(parents=True, exist_ok=True)
    except (OSError, TypeError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise ConfigError(f"folder={folder!r:.200}: cannot be made: {said}") from None
    return place


def _result(
    means: Results, kept: Sequence[Simulated], names: Mapping[str, Names], folder: Path | None
) -> Result:
    """Return the result of a run: of one replication, or of several with their means."""
    every = [
        {role: Result(one.summary, names[role], tables=one.tables) for role, one in made.items()}
        for made in kept
    ]
    if "replications" not in means[RUN]:
        return replace(_compared(every[0]), folder=folder)
    found = {
        role: Result(
            summary, names[role], replications=tuple(one[role] for one in every if role in one)
        )
        for role, summary in means.items()
    }
    found[RUN] = replace(found[RUN], replications=tuple(map(_compared, every)), folder=folder)
    return _compared(found)


def _compared(found: Mapping[str, Result]) -> Result:
    """Return the result of a run with those that it is compared with."""
    return replace(found[RUN], baseline=found.get(BASELINE), baseline_predictor=found.get(STEP))


@noting_interrupts()
def sweep(
    *overrides: str,
    jobs: object = None,
    processors: int | None = None,
    policy: object = None,
    predictor: object = None,
    folder: str | PathLike[str] | None = None,
    **keys: object,
) -> pd.DataFrame:
    """Simulate every combination of values, one after the other.

    Parameters
    ----------
    *overrides : str
        As on the command line after ``-m``: ``"policy=easy,sa"``, ``"seed=range(1,4)"``.
    jobs, processors, policy, predictor, folder, **keys
        As for `run`. A list is an axis: ``policy=["easy", MyPolicy()]``,
        ``seed=[1, 2]``. Below `folder` each run has a folder named from its values, and
        what is finished there is not done again, unless a part is an object.

    Returns
    -------
    pandas.DataFrame
        A row a run: ``run`` (its values), ``policy``, ``predictor``, the keys that differ
        between runs, ``status`` (``finished`` or ``failed``) and ``message``, the figures
        of the summary, and as ``baseline_*`` those of its baseline, which is played only
        if ``baseline`` is given. `changes` compares them.

    Raises
    ------
    ConfigError
        If a key or value is refused. A run that fails later is a row, and the
        others go on; a `SweepWarning` says how many there are.
    SimError
        If all runs fail.

    Examples
    --------
    >>> import sim
    >>> table = sim.sweep("policy=easy,sa", "workload.jobs=40", seed=[1, 2])
    >>> table[["policy", "seed"]].to_numpy().tolist()
    [['easy', 1], ['easy', 2], ['sa', 1], ['sa', 2]]
    """
    lists = {k: v for k, v in keys.items() if isinstance(v, list | tuple) and k != "export"}
    axes = [keyword(key, *values) for key, values in lists.items()]
    rest = {key: value for key, value in keys.items() if key not in lists}
    planned = [
        planned
        for own, other in product(several("policy", policy), several("predictor", predictor))
        for planned in _plan(called([*overrides, *axes], jobs, processors, own, other, rest))
    ]
    given = [one.values for one in planned]
    keys_given = dict.fromkeys(key for values in given for key in values)
    apart = [key for key in keys_given if len({repr(values.get(key)) for values in given}) > 1]
    columns = dict.fromkeys(("policy", "predictor", *apart))
    place = None if folder is None else _made(folder)
    rows, parts = [], Kept()
    with contextlib.ExitStack() as stack:
        show = Show()
        shown = stack.enter_context(Display(show.messages)) if show.is_seen else SILENT
        for number, one in enumerate(planned):
            named = f"{number + 1} of {len(planned)}"
            with shown.part(number, len(planned), named):
                if shown.is_due():
                    shown.show("", 0.0)
                try:
                    rows.append(_row(one, place, columns, shown, parts))
                except KeyboardInterrupt:
                    anew = any(each.parts for each in planned)
                    kept = f"repeat the same call to continue; finished runs in {place} are kept"
                    kept += ", but those of objects are done again" if anew else ""
                    lost = "no run is kept without a folder; folder=PATH would keep finished ones"
                    raise KeyboardInterrupt(lost if place is None else kept) from None
    failed = [row for row in rows if row["status"] == "failed"]
    if failed:
        said = f"{len(failed):,} of {len(rows):,} runs failed, first {failed[0]['run']}"
        said = f"{said}: {failed[0]['message']}"
        if len(failed) == len(rows):
            raise SimError(said)
        warnings.warn(said, SweepWarning, stacklevel=_CALLER)
    table = pd.DataFrame(rows)
    if parts:
        table.attrs[REPLICATIONS] = parts
    return table


def _plan(call: Call) -> list[Call]:
    """Return the runs of a call; each value of each key is composed before any, to fail early."""
    every = combinations(call.overrides)
    for one in samples_to_validate(every):
        compose(one, multirun=True)
    return [replace(call, overrides=one) for one in every]


def _row(
    one: Call,
    place: Path | None,
    columns: Iterable[str],
    shown: Display,
    parts: Kept,
) -> dict[str, Any]:
    """Carry out a run of a sweep and return its row; keep what its replications found."""
    name = folder_name(override_dirname(one.said, HOW))
    folder = None if place is None else place / name
    values = one.values
    row: dict[str, Any] = {"run": name}
    row |= {key: values.get(key) for key in columns}
    try:
        names, done = _carried_out(one, folder, shown)
    except BAD_INPUT as error:
        if folder is not None and foreign(folder) is None:
            write_failure(folder, one_line(error))
        return row | {"status": "failed", "message": one_line(error)}
    found = done.results
    parts |= {name: done.parts} if len(done.parts) > 1 else {}
    row |= {"policy": names[RUN].policy, "predictor": names[RUN].predictor}
    figures = {key: value for key, value in found[RUN].items() if key not in row}
    beside = {f"{BASELINE}_{key}": value for key, value in found.get(BASELINE, {}).items()}
    beside |= {f"{BASELINE}_policy": names[BASELINE].policy} if beside else {}
    return row | {"status": "finished", "message": ""} | figures | beside
