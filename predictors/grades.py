"""The order of grades."""

from collections.abc import Iterable

_ORDER = {"": -1, "note": 0, "warning": 1, "unusable": 2}


def worst_grade(grades: Iterable[str]) -> str:
    """Return the worst of some grades, empty without any.

    Examples
    --------
    >>> worst_grade(["note", "warning"])
    'warning'
    """
    return max(grades, key=_ORDER.__getitem__, default="")
