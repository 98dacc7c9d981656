"""Checks of what a configuration hands over."""

import math
from typing import TypeGuard

from workloads.errors import WorkloadError

MOST = 1_000_000_000
"""Jobs, processors, applications: more than any log or machine has."""


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number; true and false are none.

    Examples
    --------
    >>> [is_number(value) for value in (1, 0.5, True, "1", math.inf, None)]
    [True, True, False, False, False, False]
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)


def check_count(key: str, value: object) -> None:
    """Refuse what is not a whole number of at least 1, and at most `MOST`.

    Raises
    ------
    WorkloadError
        Naming ``workload.<key>``.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise WorkloadError(
            f"workload.{key}={value}: must be a whole number of at least 1 and at most {MOST:,}"
        )


def check_load(load: object) -> None:
    """Refuse what is neither None nor a positive finite number.

    Raises
    ------
    WorkloadError
        Naming ``workload.load``.
    """
    if load is not None and not (is_number(load) and load > 0):
        raise WorkloadError(f"workload.load={load}: must be positive and finite, or null")


def check_mapping(key: str, value: object) -> None:
    """Refuse what is neither None nor a mapping.

    Raises
    ------
    WorkloadError
        Naming ``workload.<key>``.
    """
    if value is not None and not hasattr(value, "items"):
        raise WorkloadError(f"workload.{key}={value}: must be a mapping of names to values")
