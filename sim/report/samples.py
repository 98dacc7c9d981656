"""Groups of comparable runs, and what their repetitions say about each figure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from sim.artefacts import BASELINE, STEP, is_finished, read_summary, same_schedule
from sim.job_metrics import Figures
from sim.statistics.intervals import t_interval

SUFFIXES = {BASELINE: "baseline", STEP: "baseline's policy"}
REPEATED = ("seed",)
"""Keys that tell repetitions of one group apart."""


@dataclass(frozen=True)
class Sample:
    """One simulation: a replication of a run or of its baseline.

    Attributes
    ----------
    folder : pathlib.Path
    name : str
        The folder below the compared one.
    summary : dict
    """

    folder: Path
    name: str
    summary: Figures


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
        values = [_text(key, value) for key, value in self.setting.items()]
        name = ", ".join(values) if values else self.role
        kind = SUFFIXES.get(self.role)
        return f"{name} ({kind})" if kind is not None and values else name

    @property
    def policy(self) -> str:
        """Name the group's policy, or its role where all have one policy."""
        return str(self.setting.get("policy", self.role))

    @property
    def predictor(self) -> str:
        """Name the group's predictor; empty where all have one."""
        return str(self.setting.get("predictor", ""))

    @property
    def menu(self) -> str:
        """Name the counts that its rule chose from; empty where it chose none."""
        names = dict.fromkeys(str(sample.summary.get("menu") or "") for sample in self.samples)
        return ", ".join(filter(None, names))

    @property
    def identical(self) -> bool:
        """Whether its simulations, two or more, are the same schedule to the last bit."""
        return same_schedule([sample.summary for sample in self.samples])

    def values(self, key: str) -> np.ndarray:
        """Return a figure of all samples in which it is defined."""
        found = [sample.summary.get(key) for sample in self.samples]
        return np.array([float(v) for v in found if isinstance(v, int | float)])


def _text(key: str, value: object) -> str:
    plain = key in ("policy", "predictor", "workload", "baseline")
    return str(value) if plain else f"{key}={value}"


@dataclass(frozen=True)
class Estimate:
    """A mean with the half-width of its 95 % confidence interval.

    Attributes
    ----------
    mean : float
        NaN where the figure is undefined.
    half : float
        NaN with fewer than two samples, and where all are the same.
    count : int
        Samples.
    """

    mean: float
    half: float
    count: int


def estimate(values: np.ndarray) -> Estimate:
    """Return mean and interval (Student's t over the samples).

    Examples
    --------
    >>> found = estimate(np.array([1.0, 2.0, 3.0]))
    >>> round(found.mean, 3), round(found.half, 3), found.count
    (2.0, 2.484, 3)
    """
    found = t_interval(values)
    half = found.half if len(values) and np.ptp(values) > 0 else np.nan
    return Estimate(found.mean, half, found.count)


def groups_of(root: Path, table: pd.DataFrame, keys: Sequence[str]) -> list[Group]:
    """Return the groups of the finished rows of a comparison, in its order.

    Rows of baselines with one setting are the same simulation; the first counts.
    """
    own = [key for key in keys if key not in REPEATED]
    rows = table[table["status"] == "finished"]
    first = list(table.columns).index("message") + 1  # the keys follow; figures may share names
    places = {key: first + place for place, key in enumerate(keys)}
    groups: dict[str, Group] = {}
    seen: set[str] = set()
    for position in range(len(rows)):
        setting = {key: _plain(rows.iat[position, places[key]]) for key in keys}
        role = str(rows["role"].iloc[position])
        if role != "run":
            if repr((role, setting)) in seen:
                continue
            seen.add(repr((role, setting)))
        mine = {key: setting[key] for key in own}
        group = groups.setdefault(f"{role} {mine!r}", Group(mine, role))
        group.samples.extend(_samples(root, str(rows["run"].iloc[position]), role))
    return list(groups.values())


def _plain(value: object) -> object:
    return "–" if value is None or value != value else value  # NaN differs from itself


def _samples(root: Path, run: str, role: str) -> list[Sample]:
    folder = root / run
    parts = sorted(folder.glob("replication=*"), key=lambda p: int(p.name.partition("=")[2]))
    below = [part if role == "run" else part / role for part in parts or [folder]]
    return [
        Sample(place, place.relative_to(root).as_posix(), read_summary(place))
        for place in below
        if is_finished(place)
    ]
