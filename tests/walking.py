"""Everything that one thing leads to: attributes, closures, containers, the bases of arrays."""

from array import array
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from types import (
    BuiltinMethodType,
    CellType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np
import pandas as pd

PLAIN = (str, bytes, bool, int, float, complex, np.generic, type(None), type, ModuleType)
COLUMNS = (np.ndarray, memoryview, array)


def slots_of(thing: Any) -> dict[str, Any]:
    """Return what stands in the slots of an object."""
    names = chain.from_iterable(
        [one.__slots__] if isinstance(one.__slots__, str) else one.__slots__
        for one in type(thing).__mro__
        if "__slots__" in vars(one)
    )
    return {name: getattr(thing, name) for name in names if hasattr(thing, name)}


def attributes_of(thing: Any) -> dict[str, Any]:
    """Return all that an object holds by a name."""
    return {**getattr(thing, "__dict__", {}), **slots_of(thing)}


def parts_of(thing: Any) -> dict[str, Any]:
    """Return what a thing leads to in one step, by how."""
    if isinstance(thing, PLAIN):
        return {}
    if isinstance(thing, np.ndarray):
        inner = (
            {f"[{k}]": one for k, one in enumerate(thing.ravel())} if thing.dtype == object else {}
        )
        return {".base": thing.base, **inner}
    if isinstance(thing, memoryview):
        return {".obj": thing.obj}
    if isinstance(thing, pd.DataFrame):
        return {f"[{name!r}]": thing[name].to_numpy() for name in thing}
    if isinstance(thing, pd.Series | pd.Index):
        return {".values": thing.to_numpy()}
    found = {f".{name}": value for name, value in attributes_of(thing).items()}
    if isinstance(thing, dict | MappingProxyType):
        found |= {f"[{key!r}]": value for key, value in thing.items()}
        found |= {f".key({key!r})": key for key in thing if not isinstance(key, PLAIN)}
    elif isinstance(thing, list | tuple | set | frozenset | deque):
        found |= {f"[{k}]": value for k, value in enumerate(thing)}
    elif isinstance(thing, FunctionType):
        held = [thing.__closure__, thing.__defaults__, thing.__kwdefaults__]
        found |= {f".__closure__[{k}]": value for k, value in enumerate(held)}
    elif isinstance(thing, CellType):
        found |= {".cell_contents": thing.cell_contents}
    elif isinstance(thing, MethodType):
        found |= {".__self__": thing.__self__, ".__func__": thing.__func__}
    elif isinstance(thing, BuiltinMethodType):
        found |= {".__self__": thing.__self__}
    elif isinstance(thing, partial):
        found |= {".func": thing.func, ".args": thing.args, ".keywords": thing.keywords}
    elif isinstance(thing, GeneratorType) and thing.gi_frame is not None:
        found |= {".gi_frame": thing.gi_frame.f_locals}
    return found


def reachable(
    roots: Mapping[str, Any], stops: tuple[Any, ...] = (), public: bool = False
) -> Iterator[tuple[str, Any]]:
    """Yield everything that some things lead to, once, with the way there.

    Parameters
    ----------
    roots : mapping of str to object
    stops : tuple of object
        What is not walked through.
    public : bool
        Whether to leave out attributes whose names begin with an underscore.
    """
    stack, seen = list(roots.items()), {id(one): one for one in stops}
    while stack:
        way, thing = stack.pop()
        if isinstance(thing, PLAIN):
            yield way, thing
            continue
        if id(thing) in seen or type(thing).__module__.split(".")[0] in ("numba", "llvmlite"):
            continue
        seen[id(thing)] = thing
        yield way, thing
        parts = parts_of(thing).items()
        stack += [(way + how, one) for how, one in parts if not (public and how[:2] == "._")]


def numbers_in(thing: Any) -> np.ndarray:
    """Return the numbers that a thing itself holds."""
    if isinstance(thing, COLUMNS):
        values = np.asarray(thing)
        return values.ravel().astype(float) if values.dtype.kind in "fiu" else np.empty(0)
    if isinstance(thing, int | float | np.integer | np.floating) and not isinstance(thing, bool):
        return np.array([float(thing)]) if abs(thing) < 1e300 else np.empty(0)
    return np.empty(0)
