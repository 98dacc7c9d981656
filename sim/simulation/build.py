"""Build the parts of a run from its configuration: the one place where classes are named."""

import contextlib
import copy
import importlib
import inspect
import os
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from predictors.base import Estimator
from sim.config import check_sizes
from sim.errors import ConfigError, PluginError
from sim.help.pages import package_spec
from sim.policies.advice import check_counts
from sim.simulation import parts

_PART = "a part"
_PLAIN: Mapping[object, tuple[str, Any]] = {
    bool: ("true or false", bool),
    int: ("a whole number", int),
    float: ("a number", int | float),
    str: ("text", str),
    Path: ("a path", str),
    type(None): ("null", type(None)),
}
"""Plain values in words, and their types in a configuration."""
_PLURALS: Mapping[object, str] = {int: " of whole numbers", float: " of numbers", str: " of texts"}
_ORIGINS: Mapping[object, str] = {Mapping: "keys and values", os.PathLike: "a path"}
_LISTS = (list, tuple, Sequence, Iterable)
_UNIONS = (Union, types.UnionType)


def fits(value: object, hint: Any) -> bool:
    """Return whether a plain value may be passed where a parameter has this type hint.

    Examples
    --------
    >>> fits(3, float), fits(True, int), fits("abc", int | None), fits(None, int | None)
    (True, False, False, True)
    >>> fits([1, 8], Sequence[int]), fits([1, "b"], Sequence[int])
    (True, False)
    """
    origin, inside = get_origin(hint), get_args(hint)
    if origin in _UNIONS:
        return any(fits(value, part) for part in inside)
    if origin is Literal:
        return value in inside
    if hint in _PLAIN:
        kind = _PLAIN[hint][1]
        return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if origin in _LISTS and isinstance(value, list | tuple):
        return all(any(fits(each, part) for part in inside) for each in value)
    return hint is Any or not isinstance(value, str | int | float | None)


def _words(hint: Any) -> Iterator[str]:
    """Yield in words what fits a type hint."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in _UNIONS:
        for part in inside:
            yield from _words(part)
    elif origin is Literal:
        yield from map(str, inside)
    elif hint in _PLAIN:
        yield _PLAIN[hint][0]
    elif origin in _LISTS:
        yield "a list" + _PLURALS.get(inside[0], "")
    else:
        yield _ORIGINS.get(origin, _PART)


def allowed(hint: Any) -> str:
    """Return in words which values fit a type hint.

    Examples
    --------
    >>> allowed(Literal["recorded", "exact"] | None)
    'recorded, exact or null'
    """
    *words, last = dict.fromkeys(_words(hint))
    return f"{', '.join(words)} or {last}" if words else last


def _located(target: object, key: str) -> Any:
    """Return the class that a ``_target_`` names; those of others must be fit for their part."""
    own, said = str(target).partition(".")[0] in parts.PACKAGES, f"{key}._target_={target}"
    if not own and parts.needs_of(key) is None:
        raise ConfigError(f"{said}: must be a class of one of {', '.join(parts.PACKAGES)}")
    found = imported(str(target), said)
    if own and (not callable(found) or found.__module__.partition(".")[0] not in parts.PACKAGES):
        raise ConfigError(f"{said}: there is no such class")
    if not own:
        parts.check_class(found, key, said)
    return found


def imported(dotted: str, said: str) -> Any:
    """Return what a module holds under a name.

    Parameters
    ----------
    dotted : str
        Such as ``my.rules.Rule``.
    said : str
        How messages begin.

    Raises
    ------
    ConfigError
        If it is not there, or its module cannot be imported.
    """
    module, _, name = dotted.rpartition(".")
    try:
        found = importlib.import_module(module)
    except (ImportError, ValueError) as error:
        missing = getattr(error, "name", None)
        if missing and not f"{module}.".startswith(missing):
            raise ConfigError(f"{said}: cannot be imported ({error})") from error
        raise ConfigError(f"{said}: there is no such class{_where(module)}") from error
    except (Exception, SystemExit) as error:  # whatever somebody's module dies of
        raise ConfigError(
            f"{said}: cannot be imported ({type(error).__name__}: {error})"
        ) from error
    if not hasattr(found, name):
        raise ConfigError(f"{said}: there is no such class; {module} has none")
    return getattr(found, name)


def _where(module: str) -> str:
    package = module.partition(".")[0]
    way = f"its package must be installed, or the folder that holds {package} must be in PYTHONPATH"
    return "" if package_spec(package) else f"; {way}"


def accepted(target: object, key: str) -> Mapping[str, inspect.Parameter]:
    """Return the arguments that a ``_target_`` takes, by name."""
    return inspect.signature(_located(target, key)).parameters


def _check_arguments(factory: Any, arguments: Mapping[str, Any], key: str) -> None:
    known = inspect.signature(factory).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in known.values()):
        for name in arguments.keys() - known.keys():
            raise ConfigError(
                f"{key}.{name}: not a setting here; allowed: {', '.join(known) or 'none'}"
            )
    for name, parameter in known.items():
        if name not in arguments and parameter.default is parameter.empty:
            raise ConfigError(f"{key}.{name}: a value is needed")
    hints: dict[str, Any] = {}
    with contextlib.suppress(NameError):
        hints = get_type_hints(factory.__init__ if inspect.isclass(factory) else factory)
    for name, hint in hints.items():
        if name not in arguments or fits(arguments[name], hint):
            continue
        value, place = arguments[name], f"{key}.{name}"
        said = f"must be {allowed(hint)}"
        if allowed(hint) == _PART:
            said = f"is made of several keys; choose with {place.replace('.', '/')}={value}"
        raise ConfigError(f"{place}={'null' if value is None else value}: {said}")


def _located_message(error: Exception, key: str, arguments: Mapping[str, Any]) -> str:
    message = str(error)
    if message.startswith(f"{key}."):
        return message
    first = message.replace("=", " ").partition(" ")[0]
    return f"{key}.{message}" if first in arguments else f"{key}: {message}"


def build(node: Any, key: str, **more: Any) -> Any:
    """Build what a part of the configuration describes.

    Parameters
    ----------
    node : mapping, list or plain value
        Mappings with a ``_target_`` become objects, inner ones first.
    key : str
        Where the node stands in the configuration, for error messages.
    **more
        Arguments that do not come from the configuration.

    Raises
    ------
    ConfigError
        If a class is unknown or not fit for its part, an argument is missing,
        unknown or of the wrong type, or the constructor refuses a value; the
        message has the full key.

    Examples
    --------
    >>> noisy = {"_target_": "predictors.in_loop.oracle.NoisyOracle", "spread": 0.1}
    >>> build(noisy, "predictor").spread
    0.1
    """
    if isinstance(node, list):
        return [build(item, f"{key}[{i}]") for i, item in enumerate(node)]
    if not isinstance(node, Mapping):
        return node
    if parts.OBJECT in node:
        try:
            made = copy.deepcopy(node[parts.OBJECT])
        except Exception as error:  # whatever somebody's object dies of
            said = f"{key}={node['_target_']}: cannot be copied, raised {parts.raised(error)}"
            raise PluginError(said) from error
        parts.let_in(made)
        return made
    arguments = {name: build(v, f"{key}.{name}") for name, v in node.items() if name != "_target_"}
    if "_target_" not in node:
        if parts.needs_of(key) is not None:
            raise ConfigError(f"{key}: _target_, its class, is missing; it has {', '.join(node)}")
        return arguments
    arguments |= more
    factory = _located(node["_target_"], key)
    _check_arguments(factory, arguments, key)
    try:
        made = factory(**arguments)
        if isinstance(made, Estimator):
            made.check_parameters()
    except ValueError as error:
        said = _located_message(error, key, arguments)
        if said.startswith(f"{key}:"):  # by which it does not say what it is about
            check_sizes(key, node)
        raise ConfigError(said) from error
    except (Exception, SystemExit) as error:
        if parts.is_own(factory):
            raise
        raise PluginError(
            f"{key}._target_={node['_target_']}: raised {parts.raised(error)}"
        ) from error
    check_sizes(key, node)  # after what the class itself has to say
    if parts.needs_of(key) is not None and not parts.is_own(factory):
        parts.check_object(made, key, f"{key}._target_={node['_target_']}")
        parts.let_in(made)
    return made


KEY = "policy.allocation"


def has_menu(policy: Mapping[str, Any]) -> bool:
    """Say whether a policy's allocation chooses among counts; fixed counts and requests do not."""
    allocation = policy.get("allocation")
    return isinstance(allocation, Mapping) and "counts" in accepted(allocation["_target_"], KEY)


def with_menu(policy: Mapping[str, Any], menu: str | None) -> dict[str, Any]:
    """Return a ``policy`` whose allocation chooses among the counts of a menu; None: of its own.

    Raises
    ------
    ConfigError
        If there is no class of the allocation's name, or its own counts are no menu.

    Examples
    --------
    >>> fastest = {"allocation": {"_target_": "sim.policies.allocation.curve.Maximum"}}
    >>> with_menu(fastest, "powers_of_two")["allocation"]["counts"]
    'powers_of_two'
    >>> fixed = {"allocation": {"_target_": "sim.policies.allocation.rigid.Fixed"}}
    >>> with_menu(fixed, "powers_of_two") == fixed
    True
    """
    if menu is None or not has_menu(policy):
        return dict(policy)
    allocation = policy["allocation"]
    try:
        check_counts(allocation.get("counts", menu))
    except ValueError as error:
        raise ConfigError(f"policy.allocation: {error}") from error
    return {**policy, "allocation": {**allocation, "counts": check_counts(menu)}}


def menu_name(policy: Mapping[str, Any], menu: str | None = None) -> str | None:
    """Return the menu that a policy's allocation chooses from, None where it has none.

    Malleable jobs under a reallocation, which are given counts by that alone, have none.

    Examples
    --------
    >>> menu_name({"allocation": {"_target_": "sim.policies.allocation.curve.Maximum"}})
    'all'
    >>> menu_name({"allocation": {"_target_": "sim.policies.allocation.rigid.Request"}}, "all")
    """
    if not has_menu(policy):
        return None
    allocation = with_menu(policy, menu)["allocation"]
    usual = accepted(allocation["_target_"], KEY)["counts"].default
    return str(allocation.get("counts", usual))
