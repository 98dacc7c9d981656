"""Which processor counts an application can run on: any, powers of two, squares, multiples."""

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from workloads.base import IntArray
from workloads.errors import WorkloadError

_MULTIPLES = re.compile(r"multiples_of_([1-9]\d*)")


def parse_counts(counts: str | Sequence[str], key: str = "counts") -> tuple[str, ...]:
    """Return the names of the count rules that applications draw from.

    Parameters
    ----------
    counts : str or sequence of str
        ``any``, ``powers_of_two``, ``squares``, ``even`` or ``multiples_of_K``;
        of several, each application draws one with equal chances.
    key : str
        Of ``moldability``, for messages.

    Raises
    ------
    WorkloadError
        If a name is none of these.
    """
    names = (counts,) if isinstance(counts, str) else tuple(counts)
    known = ("any", "powers_of_two", "squares", "even")
    for name in names:
        if name not in known and not _MULTIPLES.fullmatch(str(name)):
            raise WorkloadError(
                f"moldability.{key} must be any, powers_of_two, squares, even or "
                f"multiples_of_K, got {name!r}"
            )
    if not names:
        raise WorkloadError(f"moldability.{key} must name at least one rule, got an empty list")
    return names


def allowed_counts(rule: str, processors: int) -> IntArray | None:
    """Return the sorted counts that `rule` allows on a machine; None if all are.

    Examples
    --------
    >>> allowed_counts("squares", 20).tolist(), allowed_counts("multiples_of_8", 20).tolist()
    ([1, 4, 9, 16], [8, 16])
    """
    if rule == "any":
        return None
    if rule == "powers_of_two":
        return 2 ** np.arange(processors.bit_length(), dtype=np.int64)
    if rule == "squares":
        return np.arange(1, math.isqrt(processors) + 1, dtype=np.int64) ** 2
    match = _MULTIPLES.fullmatch(rule)
    step = int(match.group(1)) if match else 2
    return np.arange(step, processors + 1, step, dtype=np.int64)


def is_allowed(rule: str, n: NDArray[np.integer] | NDArray[np.floating]) -> NDArray[np.bool_]:
    """Return which counts `rule` allows on a machine of any size.

    Examples
    --------
    >>> is_allowed("powers_of_two", np.array([1, 2, 3, 64])).tolist()
    [True, True, False, True]
    """
    if rule == "any":
        return np.ones(np.shape(n), bool)
    if rule == "powers_of_two":
        return np.asarray(np.frexp(np.asarray(n, float))[0] == 0.5, bool)
    if rule == "squares":
        return np.asarray(np.rint(np.sqrt(n)) ** 2 == n, bool)
    match = _MULTIPLES.fullmatch(rule)
    return np.asarray(np.asarray(n) % (int(match.group(1)) if match else 2) == 0, bool)
