"""Simulations from Python, `sim.run` and `sim.sweep`, what they return, and how groups differ."""

import io
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rich.console import Console

from predictors.cli.terminal import SILENT, Display, PlainConsole
from sim.composition import combinations, compose
from sim.config import BASELINE_PREDICTOR
from sim.console import Side, print_results
from sim.errors import BAD_INPUT, ConfigError, SimError, SweepWarning, one_line
from sim.help.interrupts import noting_interrupts
from sim.library.call import Call, called, keyword, several
from sim.report.answers import FIGURE, differences
from sim.report.gathering import REPLICATION, Gathered, Summaries, gather, groups_of
from sim.report.tables import changed
from sim.results.artefacts import BASELINE, RUN, STEP, foreign
from sim.results.durable import write_failure
from sim.results.outcome import Frames, Tables
from sim.results.rows import number_of, read_together
from sim.results.steady_state import Figures, replications_of
from sim.simulation.precision import Results
from sim.simulation.progress import Names, is_seen
from sim.simulation.replay import Carried, Run, Simulated, names_of
from sim.sweeps.configurations import HOW, folder_name, override_dirname
from sim.sweeps.locks import own_folder
from sim.sweeps.resume import samples_to_validate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Result(Frames):
    """A finished run.

    Its tables ``jobs``, ``allocations``, ``timeline`` and ``predictions`` are data frames; of
    several replications they have a column ``replication``.

    Attributes
    ----------
    summary : dict
        What ``summary.json`` has; of several replications the means.
    names : Names
    baseline : Result or None
        The same jobs under the baseline.
    baseline_predictor : Result or None
        The baseline's policy with the run's predictor, where that was played.
    replications : tuple of Result
        Each replication, where there are several.
    folder : pathlib.Path or None
        Where the artefacts are, if they were written.

    Examples
    --------
    >>> import sim
    >>> result = sim.run("workload.jobs=40", policy="sa", seed=1)
    >>> own = result.jobs.query("job_id >= 0")  # without runs that train the predictor
    >>> len(own), bool(own["wait_time"].mean() > 0)
    (40, True)
    >>> result.baseline.names.policy
    'easy'
    """

    summary: Figures
    names: Names
    baseline: "Result | None" = None
    baseline_predictor: "Result | None" = None
    replications: tuple["Result", ...] = ()
    folder: Path | None = None
    tables: Tables | None = field(default=None, compare=False)

    def _frame(self, name: str) -> pd.DataFrame:
        """Return a table; of several replications with a column of that name."""
        if self.tables is not None:
            return self.tables._frame(name)
        parts = [one._frame(name).assign(replication=k) for k, one in enumerate(self.replications)]
        return pd.concat(parts, ignore_index=True)

    def plot(
        self, kind: str = "schedule", columns: int = 1, title: bool = True, of: Sequence[int] = ()
    ) -> "Figure":
        """Return a picture, the same as ``moldsim plot RUN KIND`` draws.

        Parameters
        ----------
        kind : str
            ``schedule``, ``load``, ``processors``, ``runtimes``, ``waits``, ``errors``
            or ``resized``; where the run was written to a folder also ``speedups`` and
            ``background``, which make it again. Of several replications it shows the first.
        columns : {1, 2}
            Of a paper, for the size; a schedule has its own.
        title : bool
            Whether it says what was simulated.
        of : sequence of int
            Jobs (``resized``) or applications (``speedups``) to show.

        Raises
        ------
        SimError
            If there is no such kind, or the run has nothing of it.
        """
        from sim.plot import made_again
        from sim.results.plots.pictures import RunFolder, figure_of

        first = self.replications[0] if self.replications else self
        assert first.tables is not None
        again = None if self.folder is None else partial(made_again, self.folder)
        run = RunFolder(first.tables, first.summary, self.names.title(first.summary), again)
        drawn = figure_of(run, kind, columns, title, of)
        drawn._repr_png_ = partial(_png, drawn)  # type: ignore[attr-defined]  # for notebooks
        return drawn

    def compare(
        self, other: "Result", level: float = 0.95, figures: Sequence[str] = ()
    ) -> pd.DataFrame:
        """Return how every figure differs from that of another run of the same jobs.

        Parameters
        ----------
        other : Result
        level : float
            Of the intervals.
        figures : sequence of str
            Those that are read together; without it all of the summary.

        Returns
        -------
        pandas.DataFrame
            A row a figure: means ``own`` and ``other``; ``change``, exp of the mean paired
            log ratio, less 1 (of shares the mean difference); ``change_low`` and
            ``change_high``, which hold for all rows at once; ``pairs`` of replications, and
            ``set``, how many intervals that are. No limits below eight pairs; nothing of
            queues that do not settle in most of the replications.

        Raises
        ------
        SimError
            If the two did not run the same jobs, or there is no such figure.

        Examples
        --------
        >>> import sim
        >>> small = ("workload.jobs=40", "baseline=null")
        >>> a, b = (sim.run(*small, policy=name, replications=8) for name in ("sa", "easy"))
        >>> found = a.compare(b, figures=["mean_response_time"]).loc["mean_response_time"]
        >>> bool(found["change_low"] <= found["change"] <= found["change_high"])
        True
        """
        if not isinstance(other, Result):
            raise SimError(f"other={other!r:.60}: must be a Result")
        own, others = self.replications or (self,), other.replications or (other,)
        if len(own) != len(others) or not all(map(_same_jobs, own, others)):
            raise SimError(
                "the two results are not of the same jobs: compare runs with the same workload, "
                "seed and replications"
            )
        keys = [key for key in figures or self.summary if number_of(self.summary, key) is not None]
        for key in figures:
            if key not in self.summary:
                raise SimError(f"figures={key}: no run has such a figure")
        mine, theirs = ([one.summary for one in each] for each in (own, others))
        family = read_together(mine, theirs, keys, level)
        rows = {}
        for key, one in zip(keys, family.comparisons, strict=True):
            change, bare = one.change, np.isnan(one.change.low)
            rows[key] = {
                "own": self.summary[key],
                "other": other.summary.get(key),
                "change": change.mean,
                "change_low": change.low,
                "change_high": change.high,
                "pairs": change.count,
                "set": "" if bare else f"{family.intervals} of {len(keys)} figures",
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("figure")

    def __repr__(self) -> str:
        jobs, mean = (self.summary.get(key) for key in ("jobs", "mean_response_time"))
        names = f"policy={self.names.policy!r}, predictor={self.names.predictor!r}"
        return f"Result({names}, jobs={jobs}, mean_response_time={mean})"

    def __str__(self) -> str:
        return self._shown(html=False)

    def _repr_html_(self) -> str:
        return self._shown(html=True)

    def _shown(self, html: bool) -> str:
        """Return the end table of the command."""
        page = Console(file=io.StringIO(), record=True, width=110, force_jupyter=False)
        print_results(page, self._sides(), self.folder)
        if not html:
            return page.export_text()
        frame = '<pre style="white-space:pre;overflow-x:auto;line-height:normal">{code}</pre>'
        return page.export_html(inline_styles=True, code_format=frame)

    def _sides(self) -> list[Side]:
        return [
            Side(
                one.summary,
                one.names.policy,
                one.names.asked,
                one is self.baseline,
                [each.summary for each in one.replications],
                [each.jobs for each in one.replications or (one,)],
            )
            for one in (self, self.baseline_predictor, self.baseline)
            if one is not None
        ]


def _png(figure: "Figure") -> bytes:
    figure.savefig(made := io.BytesIO(), format="png", dpi=100, metadata={"Software": None})
    return made.getvalue()


JOB = ("job_id", "requested_processors", "reference_runtime")
"""Columns in which the same jobs are alike."""


def _same_jobs(own: Result, other: Result) -> bool:
    tables = [one.jobs[one.jobs["job_id"] >= 0][list(JOB)] for one in (own, other)]
    return bool(tables[0].reset_index(drop=True).equals(tables[1].reset_index(drop=True)))


REPLICATIONS = "replications"
"""What the rows of `sweep` hold means of, in the ``attrs`` of its table."""


class Kept(dict[str, Any]):
    """Summaries of replications by run, which copies of a table share."""

    def __deepcopy__(self, memo: object) -> "Kept":
        return self


COMPARED = ["group", "against", "metric", "change", "low", "high", "pairs", "replications", "text"]
"""Columns of what `changes` returns."""


def changes(
    runs: pd.DataFrame | str | PathLike[str],
    metrics: str | Sequence[str] = FIGURE,
    against: str | None = None,
) -> pd.DataFrame:
    """Return how groups of runs differ from their reference on the same jobs.

    It is the comparison that ``moldsim compare`` prints: groups are runs that differ in their
    seed alone, pairs those with one seed.

    Parameters
    ----------
    runs : pandas.DataFrame or path
        What `sweep` returned, or a folder of runs.
    metrics : str or sequence of str
        Figures of the summary. Intervals of one figure hold together.
    against : str, optional
        The label of the reference, or ``KEY=VALUE``; without it a baseline, else rigid jobs.

    Returns
    -------
    pandas.DataFrame
        A row a group and metric: ``group``, ``against``, ``metric``, ``change`` (exp of the
        mean paired log ratio, less 1; of shares the mean difference), ``low`` and ``high`` (none
        below eight pairs), ``pairs``, ``replications`` (what tells pairs apart: windows of a log,
        draws of a model, or curves and loads alone), and ``text``, the change in words.

    Raises
    ------
    SimError
        If no run has the metric, or of several replications there are means alone.

    Examples
    --------
    >>> import sim
    >>> table = sim.sweep("policy=easy,sa", "workload.jobs=40", seed=list(range(1, 9)))
    >>> found = sim.changes(table)
    >>> found[["group", "against", "pairs"]].to_numpy().tolist()
    [['sa', 'easy', 8]]
    >>> bool((found["low"] <= found["change"]).all())
    True
    """
    if isinstance(runs, pd.DataFrame):
        groups = groups_of(Path(), *_gathered(runs))
    else:
        groups = groups_of(Path(runs), *gather(Path(runs)))
    rows = []
    for metric in [metrics] if isinstance(metrics, str) else metrics:
        if not any(len(group.values(metric)) for group in groups):
            raise SimError(f"metrics={metric}: no run has such a figure")
        for one in differences(groups, metric, against)[0]:
            found = one.change
            told = (found.mean, found.low, found.high, one.pairs)
            said = (replications_of(one.group.summaries), changed(one))
            rows.append((one.group.label, one.reference.label, metric, *told, *said))
    return pd.DataFrame(rows, columns=COMPARED)


def _gathered(table: pd.DataFrame) -> Gathered:
    """Return what `sweep` returned as `gather` returns a folder of runs."""
    if "status" not in table.columns:
        raise SimError("runs: must be what sim.sweep returned, or a folder of runs")
    names = [str(name) for name in table.columns]
    keys = names[1 : names.index("status")]
    keys = [key for key in keys if table[key].nunique(dropna=False) > 1 or key == "policy"]
    rows: list[dict[str, Any]] = []
    known: Summaries = {}
    for row in table[table["status"] == "finished"].to_dict("records"):
        number = row.get("replications") or 1
        told = {str(k): v for k, v in row.items()}
        base = {
            k.removeprefix(f"{BASELINE}_"): v for k, v in told.items() if k.startswith(BASELINE)
        }
        parts = table.attrs.get(REPLICATIONS, {}).get(row["run"], ())
        if number == 1:
            parts = [{RUN: told, BASELINE: base}]
        if not parts:
            raise SimError(
                f"{row['run']}: holds means of {number:.0f} replications, which are one pair; give "
                "the table as sim.sweep returned it, or the folder of the runs"
            )
        own = {"role": "run", "status": "finished", "message": ""} | {k: row[k] for k in keys}
        sides = [own]
        if isinstance(policy := row.get(f"{BASELINE}_policy"), str):
            by = {"predictor": BASELINE_PREDICTOR} if "predictor" in keys else {}
            sides.append(own | {"role": BASELINE, "policy": policy} | by)
        for k, found in enumerate(parts):
            run = f"{row['run']}/replication={k}" if number > 1 else row["run"]
            for side, role in zip(sides, (RUN, BASELINE), strict=False):
                rows.append({"run": run} | side | {REPLICATION: k})
                held = {key: v for key, v in found[role].items() if v is not None and v == v}
                known[run, side["role"]] = held | {"seed": row["seed"]}
    return pd.DataFrame(rows), [*keys, REPLICATION], known


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
    made = call.composed(multirun)
    config, names = made.settings, names_of(made)
    messages, progress = PlainConsole(stderr=True), config["sim"]["progress"]
    progress = is_seen(messages) if progress is None else progress
    alone = shown is None or shown is SILENT
    with Display(messages) if progress and alone else SILENT as display:
        run = Run(config, names, shown if progress and shown and not alone else display, keep)
        if folder is None:
            return names, replace(run, config={**config, "picture": "none"}).carry_out(None)
        place, anew = _made(folder), not multirun or bool(call.parts)
        marked = call.overrides if multirun else None
        with own_folder(place, wait=multirun):
            done = run.carry_out_in(place, made, anew=anew, goes_on=not anew, marked=marked)
    return names, done


def _made(folder: str | PathLike[str]) -> Path:
    """Return the path of a folder that is there now."""
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
    messages = PlainConsole(stderr=True)
    with Display(messages) if is_seen(messages) else SILENT as shown:
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
    one: Call, place: Path | None, columns: Iterable[str], shown: Display, parts: Kept
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
