"""Groups of comparable runs, and what their repetitions say about each figure."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sim.errors import SimError
from sim.report.gathering import FIXED, Summaries
from sim.results.artefacts import BASELINE, STEP, read_summary
from sim.results.sentences import is_recorded
from sim.results.steady_state import is_refused
from sim.statistics import Interval, t_interval
from sim.sweeps.configurations import group_of

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

    Attributes
    ----------
    folder : pathlib.Path
    name : str
        The folder below the compared one.
    summary : mapping
    """

    folder: Path
    name: str
    summary: Mapping[str, Any]

    @property
    def drawn(self) -> tuple[Any, int]:
        """Its seed and replication, of the same jobs however many replications there are."""
        _, marked, rest = self.name.rpartition("replication=")
        return self.summary.get("seed"), int(rest.partition("/")[0]) if marked else 0


@dataclass(frozen=True)
class Group:
    """Runs that differ in nothing but their random numbers.

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
        return any(is_recorded(sample.summary) for sample in self.samples)

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
        names = dict.fromkeys(str(sample.summary.get("menu") or "") for sample in self.samples)
        return ", ".join(filter(None, names))

    def values(self, key: str) -> np.ndarray:
        """Return a figure of all samples in which it is defined."""
        found = [sample.summary.get(key) for sample in self.samples]
        return np.array([float(v) for v in found if isinstance(v, int | float)])


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
    """Return the groups of the finished rows of a comparison, in its order.

    Of simulations of one role, setting, seed and replication the first counts.

    Parameters
    ----------
    root : pathlib.Path
    table, keys, known
        As `gather` returns them.
    """
    own = [key for key in keys if key not in REPEATED]
    rows = table[table["status"] == "finished"].iloc[:, : len(FIXED) + len(keys)]
    groups: dict[str, Group] = {}
    seen: set[tuple[str, tuple[Any, int]]] = set()
    for run, role, _, _, *values in rows.itertuples(index=False, name=None):
        setting = dict(zip(keys, map(_plain, values), strict=True))
        mine = {key: setting[key] for key in own}
        name = f"{role} {mine!r}"
        group = groups.setdefault(name, Group(mine, role))
        for sample in _samples(root, run, role, known[run, role]):
            if (name, sample.drawn) not in seen:
                seen.add((name, sample.drawn))
                group.samples.append(sample)
    return list(groups.values())


def _plain(value: object) -> object:
    return "–" if value is None or value != value else value  # NaN differs from itself


def _samples(root: Path, run: str, role: str, known: Mapping[str, Any]) -> list[Sample]:
    folder = root / run
    if "replications" not in known:
        place = folder if role == "run" else folder / role
        return [Sample(place, place.relative_to(root).as_posix(), known)]
    every = [part for part in folder.glob("replication=*") if part.name[12:].isdecimal()]
    parts = sorted(every, key=lambda part: int(part.name[12:]))
    below = [part if role == "run" else part / role for part in parts or [folder]]
    found = []
    for place in below:
        with suppress(ValueError):  # it is not finished
            found.append(Sample(place, place.relative_to(root).as_posix(), read_summary(place)))
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
    alike: dict[str, list[Group]] = {}
    for group in groups:
        alike.setdefault(jobs_of(group), []).append(group)
    values = {}
    of_policy = {group.label for group in groups if group.policy == against}
    if len(of_policy) == 1:
        against = of_policy.pop()
    if against is not None and all(group.label != against for group in groups):
        values = dict(one.partition("=")[::2] for one in NEXT.split(against))
        if not any(_has(group, values) for group in groups):
            raise no_such_group("--against", against, groups)
    for same in alike.values():
        named = [group for group in same if "policy" in values and _has(group, values)]
        alone = named[0] if len(named) == 1 else None
        common = alone if values else reference_among(same, against)
        for group in same:
            reference = (twin_of(group, groups, values) if values else None) or common
            if reference is not None and reference is not group:
                yield group, reference, same


def reference_among(groups: Sequence[Group], named: str | None = None) -> Group | None:
    """Return the group that others are compared with, of those on the same jobs.

    Parameters
    ----------
    groups : sequence of Group
        On the same jobs.
    named : str, optional
        A label; without it a baseline, else rigid jobs by users' estimates, else
        rigid jobs, else users' estimates under the only policy. None if there is none of these.
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
