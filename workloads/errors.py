"""Errors of the workloads package, and checks of what configurations and files hand over.

A check refuses by a `WorkloadError` that names the key, and what is wanted.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from numbers import Integral
from typing import TypeGuard


class WorkloadError(ValueError):
    """A workload cannot be read, generated or used as asked.

    The message names the value, where it came from (file and line, job, or
    configuration key) and what would be accepted.
    """


MOST = 1_000_000_000
"""Jobs, processors, applications: more than any log or machine has."""
LARGEST = 2**62
"""Of numbers in files: int64 still counts on from here."""


@dataclass(frozen=True)
class Limits:
    """How much a log may hold: what is beyond is refused instead of filling time and memory.

    Attributes
    ----------
    size : int
        Bytes, unpacked.
    line : int
        Bytes of a line.
    jobs : int
    nesting : int
        Levels of profiles within profiles.
    """

    size: int = 2**30
    line: int = 1_000_000
    jobs: int = 10_000_000
    nesting: int = 100

    @classmethod
    def of(cls, given: Mapping[str, int] | None) -> "Limits":
        """Return the limits that a configuration gives, the others as they are."""
        check_mapping("limits", given, [one.name for one in fields(cls)], "limit")
        for name, value in (given or {}).items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise WorkloadError(
                    f"workload.limits.{name}={value}: must be a whole number of at least 1"
                )
        return cls(**(given or {}))


USUAL = Limits()


def beyond(place: object, what: str, key: str) -> WorkloadError:
    """Return the error of a file that holds more than a limit allows."""
    return WorkloadError(f"{place}: {what}; workload.limits.{key}=N raises the limit")


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number; true and false are none.

    Examples
    --------
    >>> [is_number(value) for value in (1, 0.5, True, "1", math.inf, None)]
    [True, True, False, False, False, False]
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer of hundreds of digits
        return False


def check_count(key: str, value: object, least: int = 1, otherwise: str = "") -> None:
    """Refuse what is not a whole number from `least` on, and at most `MOST`."""
    if (
        isinstance(value, bool)
        or not isinstance(value, Integral)
        or not least <= int(value) <= MOST
    ):
        wanted = f"a whole number of at least {least} and at most {MOST:,}{otherwise}"
        raise WorkloadError(f"{key}={value}: must be {wanted}")


ABOVE_0 = math.ulp(0.0)
"""The least number above 0."""


def check_number(
    key: str, value: object, wanted: str, least: float, most: float = math.inf
) -> None:
    """Refuse what is no number of a range, and None where it is not said to be wanted."""
    if value is None and wanted.endswith("or null"):
        return
    if not (is_number(value) and least <= value <= most):
        raise WorkloadError(f"{key}={value}: must be {wanted}")


def check_choice(key: str, value: object, *allowed: str) -> None:
    """Refuse what is none of a few values."""
    if value not in allowed:
        either = f"must be {' or '.join(allowed)}"
        said = either if len(allowed) == 2 else f"allowed are {', '.join(allowed)}"
        raise WorkloadError(f"{key}={value}: {said}")


def check_load(load: object) -> None:
    """Refuse what is neither None nor a positive finite number."""
    check_number("workload.load", load, "positive and finite, or null", ABOVE_0)


def check_mapping(key: str, value: object, known: Collection[str], what: str) -> None:
    """Refuse what is neither None nor a mapping, or has other names than those that are known."""
    if value is None:
        return
    if not isinstance(value, Mapping):
        raise WorkloadError(f"workload.{key}={value}: must be a mapping of names to values")
    for name in value:
        if name not in known:
            raise WorkloadError(
                f"workload.{key}.{name}: no such {what}; there are {', '.join(known)}"
            )
