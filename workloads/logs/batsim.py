"""Workloads of Batsim in JSON: jobs and the profiles that say what they do.

References
----------
Batsim's documentation, "Workload" and "Profiles"; Dutot et al., "Batsim: a
realistic language-independent resources and jobs management systems simulator",
JSSPP 2016.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from workloads.base import Trace
from workloads.errors import (
    ABOVE_0,
    LARGEST,
    WorkloadError,
    beyond,
    check_choice,
    check_number,
    is_number,
)
from workloads.logs.log import FileWorkload
from workloads.logs.swf import FIELDS, Comment, SwfLog, check_jobs_held, pack, unpack

Communication = Literal["error", "ignore"]
COMPOSED = ("composed", "sequence", "sequential_composition")
"""Types of profiles that are made of others."""


def write_batsim(path: str | os.PathLike[str], trace: Trace) -> None:
    """Write a trace as a workload of Batsim: one ``delay`` profile for each runtime.

    The file is compressed where its name ends in ``.gz``.
    """
    jobs = trace.jobs
    names = [f"delay_{runtime!r}" for runtime in map(float, jobs["reference_runtime"])]
    table = pd.DataFrame(
        {
            "id": jobs["job_id"].astype(str),
            "subtime": jobs["submit_time"],
            "walltime": jobs["requested_time"],
            "res": jobs["requested_processors"],
            "profile": names,
        }
    )
    content = {
        "nb_res": trace.processors or int(jobs["requested_processors"].max()),
        "jobs": table.to_dict("records"),
        "profiles": {
            name: {"type": "delay", "delay": float(name.removeprefix("delay_"))}
            for name in dict.fromkeys(names)
        },
    }
    pack(Path(path).expanduser(), (json.dumps(content, indent=1) + "\n").encode())


def _whole(digits: str) -> float:
    """Return a number of a JSON file; one of thousands of digits is infinite, not an error."""
    return int(digits) if len(digits) <= 20 else float(digits)


def _row(job: Any, place: int, profiles: "_Profiles", file: Path) -> dict[str, float]:
    own = job.get("id", place) if isinstance(job, dict) else place
    where = f"{file}: job {str(own)[:40]}"
    if not isinstance(job, dict):
        raise WorkloadError(f"{where}: is not an object")
    missing = [key for key in ("id", "subtime", "res", "profile") if key not in job]
    if missing:
        raise WorkloadError(f"{where}: lacks {', '.join(missing)}")
    for key in ("subtime", "res", "walltime"):
        if key in job and not (is_number(job[key]) and abs(job[key]) <= LARGEST):
            raise WorkloadError(f"{where}: {key}={job[key]!r} is not a number up to 2^62")
    return {
        "submit_time": job["subtime"],
        "run_time": profiles.runtime(str(job["profile"]), float(job["res"]), where),
        "requested_processors": job["res"],
        "allocated_processors": job["res"],
        "requested_time": job.get("walltime", -1),
    }


def _numbers(jobs: list[dict[str, Any]]) -> np.ndarray:
    """Return the jobs' own numbers (``w0!17`` is 17) where all have one, else their places."""
    last = [str(job["id"]).rpartition("!")[2] for job in jobs]
    if all(text.isdecimal() and len(text) <= 15 for text in last) and len(set(last)) == len(last):
        return np.array(last, dtype=np.int64)
    return np.arange(1, len(jobs) + 1)


class _Seconds(NamedTuple):
    """How long a profile runs: seconds whatever the count, and seconds shared by the processors."""

    fixed: float
    shared: float = 0.0


@dataclass
class _Profiles:
    """How long each profile runs, worked out once."""

    profiles: dict[str, Any]
    speed: float | None
    communication: Communication
    nesting: int
    known: dict[str, _Seconds] = field(default_factory=dict)

    def runtime(self, name: str, count: float, where: str) -> float:
        """Return the seconds that a profile takes on so many processors.

        `where` names the file and the job for messages.
        """
        waiting = {} if name in self.known else {name: where}
        while waiting:
            if len(waiting) > self.nesting:
                nested = f"profiles nest deeper than {self.nesting}"
                raise beyond(f"{where}, profile {name}", nested, "nesting")
            inner = next(reversed(waiting))
            missing = [one for one in self._parts(inner, where) if one not in self.known]
            if not missing:
                self.known[inner] = self._seconds(inner, where)
                waiting.pop(inner)
            elif missing[0] in waiting:
                raise WorkloadError(f"{where}, profile {missing[0]}: it contains itself")
            else:
                waiting[missing[0]] = where
        fixed, shared = self.known[name]
        return fixed + (shared / max(count, 1.0) if shared else 0.0)

    def _profile(self, name: str, place: str) -> dict[str, Any]:
        profile = self.profiles.get(name)
        if not isinstance(profile, dict):
            raise WorkloadError(f"{place}: there is no such profile")
        return profile

    def _parts(self, name: str, where: str) -> list[str]:
        """Return the profiles that one is made of."""
        place = f"{where}, profile {name}"
        profile = self._profile(name, place)
        if profile.get("type") not in COMPOSED:
            return []
        parts = profile.get("seq", [])
        if not isinstance(parts, list):
            raise WorkloadError(f"{place}: seq={parts!r} is not a list of profiles")
        return [str(part) for part in parts]

    def _seconds(self, name: str, where: str) -> _Seconds:
        """Return how long a profile runs whose parts are known."""
        place = f"{where}, profile {name}"
        profile = self._profile(name, place)
        kind = profile.get("type")
        if kind == "delay":
            return _Seconds(self._number(profile, "delay", place))
        if kind in COMPOSED:
            return self._composed(profile, self._parts(name, where), place)
        if kind == "parallel":
            return _Seconds(self._work(max(self._numbers(profile, "cpu", place)), profile, place))
        if kind in ("parallel_homogeneous", "ptask_homogeneous"):
            return _Seconds(self._work(self._number(profile, "cpu", place), profile, place))
        if kind == "parallel_homogeneous_total":
            return _Seconds(0.0, self._work(self._number(profile, "cpu", place), profile, place))
        raise WorkloadError(
            f"{place}: type {kind!r} depends on the platform; understood are delay, composed, "
            "parallel, parallel_homogeneous and parallel_homogeneous_total"
        )

    def _composed(self, profile: Mapping[str, Any], parts: list[str], place: str) -> _Seconds:
        key = "repeat" if "repeat" in profile else "nb"
        times = self._number(profile, key, place) if key in profile else 1.0
        if times < 0:
            raise WorkloadError(f"{place}: {key}={times:g} is below 0")
        inner = [self.known[part] for part in parts]
        fixed, shared = sum(one.fixed for one in inner), sum(one.shared for one in inner)
        return _Seconds(times * fixed, times * shared)

    def _work(self, operations: float, profile: Mapping[str, Any], where: str) -> float:
        sent = max(self._numbers(profile, "com", where)) if "com" in profile else 0.0
        if sent > 0 and self.communication == "error":
            raise WorkloadError(
                f"{where}: sends bytes, whose time depends on a network; "
                "workload.communication=ignore counts computation alone"
            )
        if self.speed is None:
            raise WorkloadError(
                f"{where}: states work, not time; give the processors' operations per second, "
                "such as workload.speed=1e9"
            )
        return operations / self.speed

    @staticmethod
    def _number(profile: Mapping[str, Any], key: str, where: str) -> float:
        value = profile.get(key)
        if value is None or not is_number(value):
            raise WorkloadError(f"{where}: {key}={value!r} is not a number")
        return float(value)

    @staticmethod
    def _numbers(profile: Mapping[str, Any], key: str, where: str) -> list[float]:
        """Return the numbers of a list, or the one number that stands there instead."""
        value: Any = profile.get(key)
        numbers: list[Any] = value if isinstance(value, list) else [value]
        if not all(is_number(one) for one in numbers):
            raise WorkloadError(f"{where}: {key}={value!r} is not a list of numbers")
        return [float(one) for one in numbers] or [0.0]


@dataclass
class BatsimWorkload(FileWorkload):
    """Jobs from a workload of Batsim in JSON.

    Parameters
    ----------
    path
        As for `FileWorkload`; others as for `LogWorkload`.
    speed : float, optional
        Floating-point operations per second of a processor, for profiles that
        state work instead of time.
    communication : str
        What to do with profiles that send bytes: how long that takes depends on
        a network, which is not simulated. ``error`` refuses, ``ignore`` counts
        their computation alone.

    Examples
    --------
    >>> import tempfile
    >>> from workloads import Streams
    >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    ...     profiles = '"profiles": {"a": {"type": "delay", "delay": 60}}'
    ...     jobs = '"jobs": [{"id": 1, "subtime": 0, "res": 4, "walltime": 90, "profile": "a"}]'
    ...     _ = file.write(f'{{"nb_res": 8, {profiles}, {jobs}}}')
    ...     file.flush()
    ...     found = BatsimWorkload(file.name).trace(Streams(seed=1)).jobs
    >>> found["reference_runtime"].tolist()
    [60.0]
    """

    speed: float | None = None
    communication: Communication = "error"
    wanted = "a workload of Batsim, such as workload.path=workload.json"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("workload.speed", self.speed, "positive, or null", ABOVE_0)
        check_choice("workload.communication", self.communication, "error", "ignore")

    def read(self) -> SwfLog:
        """Return the workload as a log of jobs that have not been scheduled.

        Raises
        ------
        WorkloadError
            If the file is no such workload; the message names job, profile and field.
        """
        file = self.file
        checksum, text = unpack(file, "a Batsim workload", "jobs and profiles", self._limits)
        try:
            content = json.loads(text, parse_int=_whole)
        except ValueError as error:
            raise WorkloadError(f"{file}: not JSON: {error}") from None
        except RecursionError:
            raise WorkloadError(f"{file}: not a workload: nested too deeply") from None
        if not isinstance(content, dict) or not isinstance(content.get("jobs"), list):
            raise WorkloadError(f"{file}: a Batsim workload is an object with jobs and profiles")
        check_jobs_held(len(content["jobs"]), file, self._limits)
        said = content.get("profiles") or {}
        if not isinstance(said, dict):
            raise WorkloadError(f"{file}: profiles must be an object")
        profiles = _Profiles(said, self.speed, self.communication, self._limits.nesting)
        rows = [_row(job, place, profiles, file) for place, job in enumerate(content["jobs"])]
        table = pd.DataFrame(rows, columns=list(FIELDS)).fillna(-1)
        table["job_number"] = _numbers(content["jobs"])
        machine = content.get("nb_res")
        comments = (Comment(0, f"; MaxProcs: {machine}"),) if machine is not None else ()
        return SwfLog(table, comments, file.name, checksum)
