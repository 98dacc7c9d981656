"""Simulations from Python: `sim.run` and `sim.sweep`."""

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pandas as pd

from predictors.cli.display import SILENT, Display
from sim.composition import Composed, combinations, compose
from sim.config import BASELINE_PREDICTOR
from sim.errors import BAD_INPUT, ConfigError, SimError, SweepWarning, one_line
from sim.help.interrupts import noting_interrupts
from sim.library.call import Call, axis, several
from sim.library.result import REPLICATIONS, Kept, Result
from sim.results.artefacts import BASELINE, foreign
from sim.results.durable import write_failure
from sim.results.provenance import listings
from sim.simulation.in_folder import run_in
from sim.simulation.progress import Names, Show
from sim.simulation.replay import Results, Simulated, summaries
from sim.simulation.replay import run as replay
from sim.sweeps.callback import folder_name
from sim.sweeps.configurations import HOW, parse_override
from sim.sweeps.locks import own_folder
from sim.sweeps.marks import mark_finished
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
    call = Call(overrides, jobs, processors, policy, predictor, keys)
    composed = compose(call.overrides)
    config, names = call.settings(composed), call.names(composed.choices)
    kept: list[Simulated] = []
    show = _show(config, names)
    if folder is None:
        means = replay({**config, "picture": "none"}, None, {}, show, kept.append)
        return _result(means, kept, names, config["baseline"], None)
    place = _made(folder)
    with own_folder(place):
        means = run_in(
            place, config, show, call.saver(composed), kept.append, anew=True, goes_on=False
        ).results
    return _result(means, kept, names, config["baseline"], place)


def _show(config: Mapping[str, Any], names: Names) -> Show:
    """Return what is told of the progress: at a terminal or in a notebook, unless it is set."""
    show = Show(False, names)
    asked = config["sim"]["progress"]
    is_seen = show.messages.is_terminal or show.messages.is_jupyter
    return replace(show, progress=is_seen if asked is None else asked)


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
    means: Results,
    kept: Sequence[Simulated],
    names: Names,
    base: Mapping[str, Any] | None,
    folder: Path | None,
) -> Result:
    """Return the result of a run: of one replication, or of several with their means."""
    named = [names, names, names]
    if base is not None:
        named[1] = Names(str(base["name"]), BASELINE_PREDICTOR, names.workload)
        named[2] = Names(str(base["name"]), names.predictor, names.workload)
    each = [_replication(one, named) for one in kept]
    if "replications" not in means[0]:
        return replace(each[0], folder=folder)
    baseline, step = (
        None if summary is None else Result(summary, name, replications=tuple(filter(None, parts)))
        for summary, name, parts in (
            (means[1], named[1], [one.baseline for one in each]),
            (means[2], named[2], [one.baseline_predictor for one in each]),
        )
    )
    return Result(means[0], names, baseline, step, tuple(each), folder)


def _replication(simulated: Simulated, named: Sequence[Names]) -> Result:
    own, baseline, step = (
        None if made is None else Result(made.summary, name, tables=made.tables)
        for made, name in zip(simulated, named, strict=True)
    )
    assert own is not None
    return replace(own, baseline=baseline, baseline_predictor=step)


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
    axes = [axis(k, v) for k, v in keys.items() if _is_axis(k, v)]
    rest = {key: value for key, value in keys.items() if not _is_axis(key, value)}
    planned = [
        planned
        for own, other in product(several("policy", policy), several("predictor", predictor))
        for planned in _plan(Call([*overrides, *axes], jobs, processors, own, other, rest))
    ]
    differing = _differing([one.values for one in planned])
    place = None if folder is None else _made(folder)
    rows, parts = [], Kept()
    with contextlib.ExitStack() as stack:
        messages = Show().messages
        is_seen = messages.is_terminal or messages.is_jupyter
        shown = stack.enter_context(Display(messages)) if is_seen else SILENT
        for number, one in enumerate(planned):
            named = f"{number + 1} of {len(planned)}"
            with shown.part(number, len(planned), named):
                if shown.is_due():
                    shown.show("", 0.0)
                try:
                    rows.append(_row(one, place, differing, shown, parts))
                except KeyboardInterrupt:
                    anew = any(each.call.parts for each in planned)
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


def _is_axis(key: str, value: object) -> bool:
    return isinstance(value, list | tuple) and key != "export"


@dataclass(frozen=True)
class Planned:
    """A run of a sweep: its call, its own overrides, and its configuration if composed."""

    call: Call
    overrides: Sequence[str]
    composed: Composed | None = None

    @property
    def values(self) -> dict[str, Any]:
        """What was given, by key; of objects their names."""
        said = dict(map(parse_override, self.overrides))
        return said | {key: held.name for key, held in self.call.parts.items()}

    @property
    def said(self) -> list[str]:
        """The overrides, with the names of objects."""
        parts = self.call.parts.items()
        return [*self.overrides, *(f"{key}={held.name}" for key, held in parts)]

    def carry_out(
        self, folder: Path | None, shown: Display
    ) -> tuple[Names, str, Results, list[Results]]:
        """Simulate; what is finished in its folder is left as it is.

        Returns the names of the run's parts, that of its baseline, what is found, and what is
        found of each replication.
        """
        composed = self.composed or compose(self.overrides, multirun=True)
        call = self.call
        config, names = call.settings(composed), call.names(composed.choices)
        show = _show(config, names)
        show = replace(show, display=shown if show.progress else SILENT)
        base = (config["baseline"] or {}).get("name", "")
        if folder is None:
            each: list[Results] = []
            plain = {**config, "picture": "none"}
            means = replay(plain, None, {}, show, lambda made: each.append(summaries(made)))
            return names, base, means, each
        with own_folder(folder, wait=True):
            own = bool(call.parts)
            done = run_in(folder, config, show, call.saver(composed), anew=own, goes_on=not own)
            mark_finished(folder, list(self.overrides), done.inputs, listings(config))
        return names, base, done.results, done.parts


def _plan(call: Call) -> list[Planned]:
    """Return the runs of a call; each value of each key is composed once, to fail early."""
    every = combinations(call.overrides)
    early = {tuple(one): compose(one, multirun=True) for one in samples_to_validate(every)}
    return [Planned(call, one, early.get(tuple(one))) for one in every]


def _differing(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the keys that not all runs have alike, policy and predictor apart."""
    known = dict.fromkeys(key for one in runs for key in one)
    apart = [key for key in known if len({repr(one.get(key)) for one in runs}) > 1]
    return [key for key in apart if key not in ("policy", "predictor")]


def _row(
    one: Planned,
    place: Path | None,
    differing: Sequence[str],
    shown: Display,
    parts: Kept,
) -> dict[str, Any]:
    """Carry out a run of a sweep and return its row; keep what its replications found."""
    name = folder_name(override_dirname(one.said, HOW))
    folder = None if place is None else place / name
    values = one.values
    row: dict[str, Any] = {"run": name}
    row |= {key: values.get(key) for key in ("policy", "predictor", *differing)}
    try:
        names, against, (own, base, _), each = one.carry_out(folder, shown)
    except BAD_INPUT as error:
        if folder is not None and foreign(folder) is None:
            write_failure(folder, one_line(error))
        return row | {"status": "failed", "message": one_line(error)}
    parts |= {name: each} if len(each) > 1 else {}
    row |= {"policy": names.policy, "predictor": names.predictor}
    figures = {key: value for key, value in own.items() if key not in row}
    beside = {f"{BASELINE}_{key}": value for key, value in (base or {}).items()}
    beside |= {} if base is None else {f"{BASELINE}_policy": against}
    return row | {"status": "finished", "message": ""} | figures | beside
