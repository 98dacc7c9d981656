"""The runs below a folder, one row each, and their groups: what comparisons and data sets read."""

import difflib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from predictors.cli.terminal import SILENT, Display
from sim.errors import SimError
from sim.results import durable
from sim.results.artefacts import BASELINE, STEP, figures_of, read_results, read_summary
from sim.results.durable import FAILURE, MANIFEST, SUMMARY
from sim.results.provenance import CODE, INPUTS
from sim.results.sentences import is_recorded
from sim.results.steady_state import Figures, is_refused
from sim.statistics import Interval, t_interval
from sim.sweeps import configurations
from sim.sweeps.configurations import NAMED, Configuration, Setting, group_of

MARKED = 8
"""Digits of a checksum that mark a row."""
LEFT_OUT = "runs left out, as they differ from another in a predictor that changes nothing"
"""How many rows a table lacks, in its ``attrs``."""
NOT_THERE = "runs that are not there"
"""What `missing_runs` says of a table's folder, in its ``attrs``."""
FIXED = ("run", "role", "status", "message")
"""First columns of every row, before the keys that tell runs apart."""


def _natural(path: str) -> list[tuple[int, str]]:
    """Return a key that sorts numbers within names by value."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path)]


def find_runs(folder: Path) -> list[Path]:
    """Return the folders of runs below a folder or at it, finished or not, in natural order.

    What lies inside a run (its baseline, its replications) is part of it.

    Raises
    ------
    SimError
        If there is no such folder, or no run in it.
    """
    if not folder.is_dir():
        raise SimError(f"{folder}: there is no such folder")
    found = []
    for place, inner, _ in os.walk(folder):
        if any((Path(place) / name).exists() for name in (".hydra", SUMMARY, FAILURE)):
            found.append(Path(place))
            inner.clear()
    if not found:
        raise SimError(f"{folder}: there is no run below it (a folder with {SUMMARY} or .hydra/)")
    return sorted(found, key=lambda path: _natural(path.relative_to(folder).as_posix()))


def missing_runs(folder: Path, begun: Collection[Path]) -> str:
    """Return how many runs that sweeps at or below a folder were asked for are not there.

    Those are there whose folders are `begun`. The names of the files that ask for the others are
    said too; it is empty if all are there.
    """
    from sim.sweeps.resume import asked_of

    asked = {plan: asked_of(plan) for plan in sorted(folder.rglob("multirun*.yaml"))}
    every: set[Path] = set().union(*asked.values())
    left = every.difference(begun)
    files = ", ".join(str(plan.relative_to(folder)) for plan, runs in asked.items() if runs & left)
    return f"not there: {len(left)} of {len(every)} asked for in {files}" if left else ""


Summaries = dict[tuple[str, str], Mapping[str, Any]]
"""Summaries of finished simulations by run and role."""
Gathered = tuple[pd.DataFrame, list[str], Summaries]
"""What `gather` returns."""
Origin = tuple[str | None, dict[str, str]]
"""Of a run: its code and its input files, as manifests have them; None without a manifest."""


class _Row(NamedTuple):
    """A simulation: its folder, role and state, and its figures if it has ended."""

    state: dict[str, object]
    figures: Mapping[str, Any]


def _read(root: Path, run: Path) -> tuple[list[_Row], Configuration, Origin]:
    """Return the rows of a run, its own and its baseline's, what it is and its origin.

    Each file is read once. Where the configuration cannot be read the run counts as damaged.
    """
    summary: Figures | None = None
    manifest: dict[str, Any] | None = None
    ended = (run / SUMMARY).exists()
    try:
        if ended:
            summary = figures_of(durable.read_object(run / SUMMARY))
        if (run / MANIFEST).exists():
            manifest = durable.read_object(run / MANIFEST)
        wrong = durable.unlike_manifest(run, manifest or {}, complete=False) if ended else None
    except ValueError as error:
        wrong = str(error) if ended else None
    rows = list(_rows(root, run, summary, wrong))
    is_whole = rows[0].state["status"] == "finished"
    known = (manifest or {}).get(durable.CHECKSUMS, ()) if is_whole else ()
    gone = [name for name in known if name.startswith("replication=") and not (run / name).exists()]
    if gone:
        rows[0].state["message"] = f"{', '.join(gone)} is missing; what is there is compared"
    configuration = Configuration()
    try:
        configuration = configurations.read_configuration(run)
    except SimError as error:
        rows = [_Row(rows[0].state | {"status": "damaged", "message": str(error)}, {})]
    if manifest is None:
        return rows, configuration, (None, {})
    inputs = manifest.get(INPUTS)
    files = inputs.items() if isinstance(inputs, dict) else ()
    code = str(manifest.get(CODE) or "")
    return rows, configuration, (code, {str(key): str(value) for key, value in files})


def _rows(root: Path, run: Path, summary: Figures | None, wrong: str | None) -> Iterator[_Row]:
    """Yield the rows of a run: its own and its baseline's."""
    name = run.relative_to(root).as_posix()
    own: dict[str, object] = {"run": name, "role": "run", "message": ""}
    if wrong is not None:
        yield _Row(own | {"status": "damaged", "message": wrong}, {})
    elif summary is not None:
        for role, figures in read_results(run, summary).items():
            named = {"role": role or "run", "status": "finished"}
            yield _Row(own | named, configurations.SharedNames(figures))
    if (run / FAILURE).exists():  # beside results of an earlier run, which stay
        yield _Row(own | {"status": "failed", "message": durable.read_failure(run)}, {})
    elif wrong is None and summary is None:
        yield _Row(own | {"status": "unfinished", "message": "it wrote no summary"}, {})


def with_origins(
    settings: Sequence[Setting], runs: Sequence[Configuration], origins: Sequence[Origin]
) -> list[Setting]:
    """Return the settings, with ``code`` and ``input`` where runs differ in them unasked.

    Runs of another code, or of another file under the same name, are no pairs; so they
    differ in a key: of the files of a policy, or predictor, in one of that group.
    """
    found = [dict(setting) for setting in settings]
    if len({code for code, _ in origins} - {None}) > 1:
        for setting, (code, _) in zip(found, origins, strict=True):
            setting["code"] = (code or "")[:MARKED] or "unknown"
    files: dict[tuple[str, object], set[str]] = {}
    for run, (_, inputs) in zip(runs, origins, strict=True):
        for key, checksum in inputs.items():
            files.setdefault((key, run.value(key.partition("/")[0])), set()).add(checksum)
    for part in sorted({_input_of(key) for (key, _), sums in files.items() if len(sums) > 1}):
        for setting, (_, inputs) in zip(found, origins, strict=True):
            own = (sums[:MARKED] for key, sums in inputs.items() if _input_of(key) == part)
            setting[part] = " ".join(own) or None
    return found


def _input_of(key: str) -> str:
    """Return the key by which an input file tells runs apart."""
    return f"{group_of(key)}.input" if group_of(key) in NAMED else "input"


def gather(folder: Path, progress: Display = SILENT) -> Gathered:
    """Return one row for each run and baseline below a folder, and what tells them apart.

    Returns
    -------
    table : pandas.DataFrame
        Columns ``run`` (its folder), ``role``, ``status``, ``message``, then the
        keys that differ, then all figures in order of their names.
    keys : list of str
        The configuration keys that differ between runs. A log's own schedule, which
        asks no predictor, and a policy that brings its own are one row whatever the
        predictors beside them.
    summaries : dict
        Of finished simulations by run and role.

    Raises
    ------
    SimError
        If the folder does not exist or holds no run.
    """
    runs = find_runs(folder)
    read = [_read(folder, run) for run in progress.each(runs, "reads the runs")]
    found, chosen, origins = zip(*read, strict=True)
    settings = with_origins(configurations.distinguishing(chosen), chosen, origins)
    asked = [configuration.choices.get(configurations.OWN_PREDICTOR) for configuration in chosen]
    if any(len(own) > 1 for own in found) or any(asked):  # policies or predictors differ
        settings = list(map(configurations.with_names, settings, chosen))
    keys = sorted({key for setting in settings for key in setting})
    rows: list[tuple[_Row, Setting]] = []
    alike: list[Setting] = []
    repeated = 0
    whole = zip(found, chosen, settings, asked, strict=True)
    for every, configuration, setting, predictor in whole:
        for row in every:
            own, is_run = setting, row.state["role"] == "run"
            if not is_run:
                own = configurations.of_baseline(setting, configuration, row.state["role"] == STEP)
            if is_recorded(row.figures) or (is_run and predictor is not None):
                # that of its policy, or nobody
                own = configurations.with_options(own, {"predictor": predictor})
                if is_run and own in alike:
                    repeated += 1
                    continue  # the same schedule beside another predictor
                alike.append(own)
            rows.append((row, own))
    ended = [row for row, _ in rows if row.state["status"] == "finished"]
    known = {(str(row.state["run"]), str(row.state["role"])): row.figures for row in ended}
    first = [[*map(row.state.get, FIXED), *map(own.get, keys)] for row, own in rows]
    names = sorted({name for row, _ in rows for name in row.figures} - {*FIXED})
    figures = {
        name: pd.Series([row.figures.get(name, np.nan) for row, _ in rows]) for name in names
    }
    parts = [pd.DataFrame(first, columns=[*FIXED, *keys]), pd.DataFrame(figures)]
    table = pd.concat(parts, axis="columns")
    table.attrs |= {LEFT_OUT: repeated, NOT_THERE: missing_runs(folder, runs)}
    return table, keys, known


def distinct(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with a dot behind figures that are named like a key, such as ``seed``."""
    names = table.columns.astype(str)
    return table.set_axis(names.where(~names.duplicated(), names + "."), axis="columns")


Item = TypeVar("Item")
SUFFIXES = {BASELINE: "baseline", STEP: "baseline's policy"}
RIGID = ("easy", "conservative", "fcfs")
"""Policies that count as the reference, the first that there is."""
UNLIKE = ("policy", "predictor")
"""Keys in which what is compared on the same jobs may differ."""
NEXT = re.compile(r",\s*(?=[\w./@]+=)")
"""Between two ``KEY=VALUE``."""
REPLICATION = "replication"
REPEATED = ("seed", REPLICATION, "replications")
"""Keys that tell repetitions of one group apart."""


@dataclass(frozen=True)
class Sample:
    """One simulation: a replication of a run or of its baseline.

    It is named by its folder below the compared one.
    """

    folder: Path
    name: str
    summary: Mapping[str, Any]

    @property
    def drawn(self) -> tuple[Any, int]:
        """Its seed and replication, of the same jobs however many replications there are."""
        _, marked, rest = self.name.rpartition("replication=")
        return self.summary.get("seed"), int(rest.partition("/")[0]) if marked else 0


@dataclass(frozen=True, eq=False)
class Group:
    """Runs that differ in nothing but their random numbers; each equals itself alone.

    Attributes
    ----------
    setting : dict
        Values of the keys that differ between groups.
    role : str
        ``run``, ``baseline``, or ``baseline_predictor`` for the baseline's policy
        with the run's predictor.
    samples : list of Sample
    """

    setting: dict[str, object]
    role: str
    samples: list[Sample] = field(default_factory=list)

    @property
    def label(self) -> str:
        """Name the group by its values."""
        own = [key for key in self.setting if group_of(key) != "predictor" or not self.is_recorded]
        values = [self._text(key) for key in own if self.setting[key] != "–"]
        name = ", ".join(values) if values else self.role
        kind = SUFFIXES.get(self.role)
        return f"{name} ({kind})" if kind is not None and values else name

    def _text(self, key: str) -> str:
        """Return a value with its key; of a long key its end alone, where no other ends so."""
        end, ends = key.rpartition(".")[2], [one.rpartition(".")[2] for one in self.setting]
        name = end if key.count(".") > 1 and ends.count(end) == 1 else key
        plain = key in ("policy", "predictor", "workload", "baseline")
        return str(self.setting[key]) if plain else f"{name}={self.setting[key]}"

    @property
    def policy(self) -> str:
        """Name the group's policy, or its role where all have one policy."""
        return str(self.setting.get("policy", self.role))

    @property
    def predictor(self) -> str:
        """Name the group's predictor; empty where all have one, and where nobody was asked."""
        return "" if self.is_recorded else str(self.setting.get("predictor", ""))

    @property
    def is_recorded(self) -> bool:
        """Whether it is the log's own schedule."""
        return any(map(is_recorded, self.summaries))

    @property
    def summaries(self) -> list[Mapping[str, Any]]:
        """The summaries of its simulations."""
        return [sample.summary for sample in self.samples]

    @property
    def is_refused(self) -> bool:
        """Whether its queue does not settle, so that nothing is told of its means."""
        return is_refused(self.summaries)

    @property
    def menu(self) -> str:
        """Name the counts that its rule chose from; empty where it chose none."""
        names = dict.fromkeys(str(one.get("menu") or "") for one in self.summaries)
        return ", ".join(filter(None, names))

    def values(self, key: str) -> np.ndarray:
        """Return a figure of all samples in which it is defined."""
        found = (one.get(key) for one in self.summaries)
        return np.array([float(v) for v in found if isinstance(v, int | float)])

    def interval(self, key: str) -> Interval:
        """Return a figure's mean and 95 % interval, as `estimate` has them."""
        return estimate(self.values(key))


def estimate(values: np.ndarray) -> Interval:
    """Return mean and 95 % interval by Student's t; no interval where all samples are the same.

    Examples
    --------
    >>> found = estimate(np.array([1.0, 2.0, 3.0]))
    >>> round(found.mean, 3), round(found.half, 3), found.count
    (2.0, 2.484, 3)
    """
    found = t_interval(values)
    return found if len(values) and np.ptp(values) > 0 else replace(found, low=np.nan, high=np.nan)


def groups_of(
    root: Path, table: pd.DataFrame, keys: Sequence[str], known: Summaries
) -> list[Group]:
    """Return the groups of the finished rows of a comparison, as `gather` returns it, in its order.

    Of simulations of one role, setting, seed and replication the first counts.
    """
    own = [key for key in keys if key not in REPEATED]
    rows = table[table["status"] == "finished"].iloc[:, : len(FIXED) + len(keys)]
    groups: dict[str, Group] = {}
    seen: set[tuple[str, tuple[Any, int]]] = set()
    for run, role, _, _, *values in rows.itertuples(index=False, name=None):
        plain = ("–" if one is None or one != one else one for one in values)  # NaN differs
        setting = dict(zip(keys, plain, strict=True))
        mine = {key: setting[key] for key in own}
        name = f"{role} {mine!r}"
        group = groups.setdefault(name, Group(mine, role))
        for sample in _samples(root, run, role, known[run, role]):
            if (name, sample.drawn) not in seen:
                seen.add((name, sample.drawn))
                group.samples.append(sample)
    return list(groups.values())


def _samples(root: Path, run: str, role: str, known: Mapping[str, Any]) -> list[Sample]:
    """Return the simulations of a row, of several replications those that are finished."""
    folder = root / run
    several = "replications" in known
    every = [part for part in folder.glob("replication=*") if part.name[12:].isdecimal()]
    parts = sorted(every, key=lambda part: int(part.name[12:])) if several else []
    found = []
    for part in parts or [folder]:
        place = part if role == "run" else part / role
        with suppress(ValueError):  # it is not finished
            summary = read_summary(place) if several else known
            found.append(Sample(place, place.relative_to(root).as_posix(), summary))
    return found


def grouped(items: Iterable[Item], key: Callable[[Item], Any]) -> dict[Any, list[Item]]:
    """Return items by a key, in the order in which each key comes first.

    Examples
    --------
    >>> grouped(["sa", "easy", "sjf"], lambda name: name[0])
    {'s': ['sa', 'sjf'], 'e': ['easy']}
    """
    found: dict[Any, list[Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def shared(*groups: Group) -> list[list[Sample]]:
    """Return the simulations that all groups have, one of each, in the order of the first."""
    drawn = [{sample.drawn: sample for sample in group.samples} for group in groups]
    return [[each[one] for each in drawn] for one in drawn[0] if all(one in each for each in drawn)]


def jobs_of(group: Group) -> str:
    """Return what identifies the jobs that a group replays, apart from random numbers."""
    return repr({key: value for key, value in group.setting.items() if group_of(key) not in UNLIKE})


def no_such_group(option: str, asked: str, groups: Sequence[Group]) -> SimError:
    """Return the error of an option that names no group, or several, with what it may mean."""
    several = [group.label for group in groups if group.policy == asked]
    if len(several) > 1:
        return SimError(f"{option} {asked}: several groups have it; name one: {'; '.join(several)}")
    near = difflib.get_close_matches(asked, [group.label for group in groups], 6, 0.0)
    return SimError(f"{option} {asked}: there is no such group; nearest are {'; '.join(near)}")


def references(
    groups: Sequence[Group], against: str | None = None
) -> Iterator[tuple[Group, Group, list[Group]]]:
    """Yield each group with its reference and all groups on the same jobs.

    Parameters
    ----------
    groups : sequence of Group
    against : str, optional
        The label of the reference (see `reference_among`), or the policy of one group alone,
        or ``KEY=VALUE[,KEY=VALUE]``: the reference of a group is then the one that differs
        from it in these (see `twin_of`), and may differ in more than policy and predictor;
        where there is none, the only one on its jobs of a policy that is given.

    Raises
    ------
    SimError
        If no group has the label or the values.
    """
    values = {}
    of_policy = {group.label for group in groups if group.policy == against}
    if len(of_policy) == 1:
        against = of_policy.pop()
    if against is not None and all(group.label != against for group in groups):
        values = dict(one.partition("=")[::2] for one in NEXT.split(against))
        if not any(_has(group, values) for group in groups):
            raise no_such_group("--against", against, groups)
    for same in grouped(groups, jobs_of).values():
        named = [group for group in same if "policy" in values and _has(group, values)]
        alone = named[0] if len(named) == 1 else None
        common = alone if values else reference_among(same, against)
        for group in same:
            reference = (twin_of(group, groups, values) if values else None) or common
            if reference is not None and reference is not group:
                yield group, reference, same


def reference_among(groups: Sequence[Group], named: str | None = None) -> Group | None:
    """Return the group that others are compared with, of those on the same jobs.

    It is the one of a label that is named; without one a baseline, else rigid jobs by users'
    estimates, else rigid jobs, else users' estimates under the only policy. None if there is none
    of these.
    """
    if named is not None:
        return next((group for group in groups if group.label == named), None)

    def rank(group: Group) -> tuple[bool, bool, int]:
        if group.role == BASELINE:
            return False, False, 0
        predicts = group.predictor not in ("", "user_estimate")
        return True, predicts, (*RIGID, group.policy).index(group.policy)

    known = [group for group in groups if group.role == BASELINE or group.policy in RIGID]
    if not known and all("policy" not in group.setting for group in groups):
        known = [group for group in groups if group.predictor == "user_estimate"]
    return min(known, key=rank, default=None)


def oracle_of(group: Group, groups: Sequence[Group]) -> Group | None:
    """Return the group of the oracle with the same policy on the same jobs."""
    return twin_of(group, groups, {"predictor": "oracle"})


def _same_keys(group: Group, other: Group, part: str) -> bool:
    """Return whether two groups have the same policy, or predictor, with all its parameters."""
    keys = [key for key in group.setting | other.setting if group_of(key) == part]
    return all(group.setting.get(key) == other.setting.get(key) for key in keys)


def step_among(group: Group, reference: Group, groups: Sequence[Group]) -> Group | None:
    """Return the reference's policy with a group's predictor, where both differ between them."""
    if any(_same_keys(group, reference, part) for part in UNLIKE):
        return None
    steps = (one for one in groups if _same_keys(one, reference, "policy"))
    return next((one for one in steps if _same_keys(one, group, "predictor")), None)


def _has(group: Group, values: Mapping[str, str]) -> bool:
    found = {key: str(group.setting.get(key)) for key in values}
    return all(found[key].lower() == value.lower() for key, value in values.items())


def twin_of(group: Group, groups: Sequence[Group], values: Mapping[str, str]) -> Group | None:
    """Return the group that has these values by key and is otherwise set as another group.

    Keys below a named one, as those of a policy, are the other group's own.
    """

    def rest(one: Group) -> dict[str, object]:
        below = tuple(f"{key}{mark}" for key in values for mark in "./")
        return {
            key: value
            for key, value in one.setting.items()
            if key not in values and not key.startswith(below)
        }

    alike = (one for one in groups if one.role == group.role and rest(one) == rest(group))
    return next((one for one in alike if _has(one, values)), None)
