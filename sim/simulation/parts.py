"""What the parts of a run must have, so that anybody's classes and objects can be parts."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sim.errors import ConfigError

PACKAGES = ("sim", "predictors", "workloads")
"""Where this project's own parts are."""
OBJECT = "_object_"
"""Key of an object that was handed over instead of a class; every use gets a copy."""


def nothing() -> None:
    """Stand for a part that there is none of."""


class Needs(NamedTuple):
    """What a part must have: methods, of which its class is asked, and attributes, of the object.

    A method ``a|b`` is one of two.
    """

    methods: tuple[str, ...]
    attributes: tuple[str, ...] = ()


NEEDED: Mapping[str, Needs] = {
    "policy": Needs(("begin",)),
    "policy.order": Needs(("keys",), ("recomputed",)),
    "policy.backfill": Needs(("begin",)),
    "policy.allocation": Needs(("choose|open",)),
    "policy.reallocation": Needs(("begin",), ("cost",)),
    "policy.placement": Needs(("begin",)),
    "policy.grants": Needs(("begin",), ("cost",)),
    "predictor": Needs(("attach", "curve", "explain", "observe"), ("learns",)),
    "predictor.model": Needs(("fit_arrays", "predict_model", "reliability")),
    "workload": Needs(("trace",)),
    "moldability": Needs(("draw",)),
    "cluster": Needs(
        ("completion", "measured", "outlook", "progress"),
        ("processors", "processors_per_node", "splits_work"),
    ),
    "evolving": Needs(("scene",)),
}
"""What the parts of a configuration must have, by key; a test holds it against the protocols."""
_WRAPPED = ("predictor.before", "policy.predictor")
"""Predictors within predictors and policies need what these need."""


_OF_PYTHON = 1 << 9
"""The flag of classes that are written in Python; numpy's arrays have a method ``choose``, too."""


def is_own(kind: type) -> bool:
    """Return whether a class is of this project, or none of Python code."""
    return kind.__module__.partition(".")[0] in PACKAGES or not kind.__flags__ & _OF_PYTHON


def needs_of(key: str) -> Needs | None:
    """Return what the part of a key needs; None where only this project has such parts."""
    for inner in _WRAPPED:
        if key.startswith(inner):
            key = key.replace(inner, "predictor")
    return NEEDED.get(key)


def check_class(found: object, key: str, said: str) -> None:
    """Refuse what is no class, or a class without the methods of its part.

    Parameters
    ----------
    found : object
    key : str
        Of the part, such as ``policy.order``.
    said : str
        How messages begin.

    Raises
    ------
    ConfigError
        Naming what is missing.

    Examples
    --------
    >>> check_class(int, "policy.order", "policy.order=int")
    Traceback (most recent call last):
    ...
    sim.errors.ConfigError: policy.order=int: must be a class with keys; it lacks keys
    """
    needs = needs_of(key)
    assert needs is not None
    wanted = _listing(needs.methods)
    if not inspect.isclass(found):
        kind = type(found).__name__
        raise ConfigError(f"{said}: must be a class with {wanted}; it is a {kind}")
    if lacking := _lacking(found, Needs(needs.methods)):
        raise ConfigError(f"{said}: must be a class with {wanted}; it lacks {_listing(lacking)}")


def check_object(made: object, key: str, said: str) -> None:
    """Refuse an object without the methods and attributes of its part.

    Raises
    ------
    ConfigError
        Naming what is missing.
    """
    needs = needs_of(key)
    assert needs is not None
    if lacking := _lacking(made, needs):
        wanted = _listing((*needs.methods, *needs.attributes))
        raise ConfigError(f"{said}: needs {wanted}; it lacks {_listing(lacking)}")


def fits_as(made: object, key: str) -> bool:
    """Return whether an object has what a part needs.

    Examples
    --------
    >>> from predictors import Adept
    >>> fits_as(Adept(), "predictor.model"), fits_as(Adept(), "predictor")
    (True, False)
    """
    return not _lacking(made, NEEDED[key])


def _lacking(where: object, needs: Needs) -> list[str]:
    """Return the methods and attributes that are not there."""

    def is_there(method: str) -> bool:
        return any(callable(getattr(where, one, None)) for one in method.split("|"))

    methods = [one for one in needs.methods if not is_there(one)]
    return methods + [one for one in needs.attributes if not hasattr(where, one)]


def _listing(names: Sequence[str]) -> str:
    return ", ".join(name.replace("|", " or ") for name in names)


def given_object(made: object, key: str) -> dict[str, Any]:
    """Return the node of an object that stands for a part of the configuration.

    Raises
    ------
    ConfigError
        If it lacks what the part needs.
    """
    kind = type(made)
    check_object(made, key, f"{key}={kind.__name__}")
    return {"_target_": f"{kind.__module__}.{kind.__qualname__}", OBJECT: made}
