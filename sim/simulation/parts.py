"""Parts of a run, which anybody's classes and objects can be: what they must have and answer.

`let_in` guards the methods of an object by a class derived from its own, so that it stays what
it is; parts of this project are not touched, and an object that calls a method of its own goes
past the guard.
"""

import inspect
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from inspect import getattr_static, isclass
from numbers import Integral, Real
from reprlib import Repr
from types import new_class
from typing import Any, NamedTuple, NoReturn

import numpy as np

from predictors.base import BoolArray, FloatArray, IntArray, Wrapper
from predictors.under_load.load_aware import Parts
from sim.errors import ConfigError, PluginError
from sim.policies.advice import JobCurve
from sim.policies.base import Policy
from sim.state.decisions import Decision, Preferences
from sim.state.view import View
from workloads.base import Trace, check_jobs
from workloads.shapes.family import Shapes

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
        ("completion", "forecast", "measured", "progress"),
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


SHOWN = Repr()
"""How much of an answer a message has."""
SHOWN.maxother = SHOWN.maxstring = 80


class Door:
    """What the guards of one object share: what is known of it, and the call that is at work.

    Attributes
    ----------
    kind : type
        The object's class, with its guards.
    inside : bool
        Whether a guarded method is at work.
    name, args, method
        The guarded method that is or was called last, by its name, the arguments, and itself.
    requests : numpy.ndarray of int, shape (n,)
        The requested processors of the jobs that a predictor is attached to.
    has_gaps : bool
        Whether a predictor has said that it knows nothing of some count.
    view : View
        Of the run that a scheduler or candidates are for.
    """

    kind: type
    inside = False
    name: str
    args: tuple[Any, ...]
    method: Callable[..., Any]
    requests: IntArray = np.zeros(0, np.int64)
    has_gaps = False
    view: View

    @property
    def where(self) -> str:
        """The class and the method, and the job where there is one."""
        place = 1 if self.name == "start_count" else 0
        job = next((getattr(one, "job", one) for one in self.args[place:]), None)
        said = f", job index {job}" if type(job) is int else ""
        return f"{self.kind.__name__}.{self.name}{said}"

    def refuse(self, answer: object, accepted: str) -> NoReturn:
        """Refuse an answer, in words on what would be accepted."""
        shown = " ".join(SHOWN.repr(answer).split())
        raise PluginError(f"{self.where}: answered {shown}; must be {accepted}")


def _array(door: Door, answer: object, kinds: str, shape: tuple[int, ...], accepted: str) -> Any:
    """Return an answer as an array, if it is one of such types and of that shape."""
    try:
        found = np.asarray(answer)
    except Exception:  # whatever it dies of when it is made an array
        door.refuse(answer, accepted)
    if found.dtype.kind not in kinds or found.shape != shape:
        door.refuse(answer, accepted)
    return found


def _count(door: Door, answer: Any, counts: IntArray) -> int:
    """Return one of these counts."""
    is_whole = isinstance(answer, Integral) and not isinstance(answer, bool)
    if not is_whole or answer not in counts:
        known = " ".join(SHOWN.repr(counts.tolist()).split())
        door.refuse(answer, f"a whole number, one of the job's counts {known}")
    return int(answer)


def _start_count(door: Door, answer: object) -> int:
    beliefs, job = door.args
    return _count(door, answer, np.arange(1, beliefs.view.extremes(job)[1] + 1))


def _seconds(door: Door, answer: object, counts: IntArray, but: str = "") -> FloatArray:
    """Return a runtime for each count; some may be NaN if `but` says which may not."""
    accepted = f"positive, finite seconds in an array of shape {np.shape(counts)}{but}"
    found: FloatArray = _array(door, answer, "fiu", np.shape(counts), accepted).astype(float)
    if not ((found > 0) & (found < np.inf) | (np.isnan(found) & bool(but))).all():
        door.refuse(answer, accepted)
    return found


def _known(door: Door, answer: object) -> FloatArray | None:
    """Return a curve with NaN where nothing is known, which the request may not be."""
    (job, counts), requests = door.args, door.requests
    but = f", NaN where unknown (not at the requested count, {requests[job]}), or None"
    found = None if answer is None else _seconds(door, answer, counts, but)
    if found is not None and np.isnan(found[counts == requests[job]]).any():
        door.refuse(answer, f"a number, not NaN, at the requested count ({requests[job]})")
    return found


def _curve(door: Door, answer: object) -> FloatArray | None:
    """Return a curve; where nothing is known, work counts in processor-seconds, as without one."""
    found = _known(door, answer)
    if found is None or not np.isnan(found).any():
        return found
    job, counts = door.args
    door.has_gaps = True
    request = door.requests[job : job + 1]
    door.args = job, request
    work = _seconds(door, door.method(*door.args), request) * request
    return np.where(np.isnan(found), work / counts, found)


def _has_answer(door: Door, answer: object) -> BoolArray | None:
    found = _known(door, answer)
    return None if found is None else ~np.isnan(found)


def _attached(door: Door, answer: object) -> None:
    door.requests = door.args[0].requested_processors


def _offered(door: Door, answer: object) -> BoolArray | None:
    words = "True or False for each count, or None"
    return None if answer is None else _array(door, answer, "b", np.shape(door.args[1]), words)


def _keys(door: Door, answer: object) -> FloatArray | None:
    submit, words = door.args[1], "a number for each job, none of them NaN, or None"
    if answer is None:
        return None
    found: FloatArray = _array(door, answer, "fiub", np.shape(submit), words).astype(float)
    return door.refuse(answer, words) if np.isnan(found).any() else found


def _shares(door: Door, answer: object) -> IntArray:
    """Return the processors of each member."""
    _, members, total = door.args
    words = f"{len(members)} whole numbers from `least` to `largest`, at most {total} in all"
    found: IntArray = _array(door, answer, "iu", (len(members),), words).astype(np.int64)
    if (found < members.least).any() or (found > members.largest).any() or found.sum() > total:
        door.refuse(answer, words)
    return found


def _decisions(door: Door, answer: Any) -> Any:
    """Return decisions on jobs and processors that there are, at times to come."""
    view = door.view
    most: dict[str, float] = dict.fromkeys(("cost", "time"), float(np.finfo(float).max))
    most |= {"job": len(view.submit_time) - 1, "processors": view.processors}
    words = f"a list of sim.state.decisions, on 1 to {view.processors} processors, after {view.now}"
    for one in answer if isinstance(answer, list | tuple) else [answer]:
        if not isinstance(one, Decision):
            door.refuse(one, words)
        for name, number in one._asdict().items():
            kind = Integral if name in ("job", "processors") else Real
            least = {"processors": 1, "time": np.nextafter(view.now, np.inf)}.get(name, 0)
            is_number = isinstance(number, kind) and not isinstance(number, bool)
            if name in most and not (is_number and least <= number <= most[name]):
                door.refuse(one, words)
    return answer


def _begun(door: Door, answer: Any) -> Any:
    """Return a scheduler, or candidates, at whose door the view is known."""
    if not callable(getattr(answer, "decide", getattr(answer, "of", None))):
        door.refuse(answer, "a scheduler, with decide(), or for open counts Candidates")
    inner = let_in(answer)
    if inner is not None:
        inner.view = door.args[0]
    return answer


def _reading(door: Door, answer: object) -> JobCurve:
    """Return counts of the job and its runtimes there."""
    if not isinstance(answer, JobCurve):
        door.refuse(answer, "a JobCurve, see sim.policies.advice")
    feasible = door.view.counts(door.args[0])
    counts = np.array([_count(door, one, feasible) for one in answer.counts])
    serial_time = _seconds(door, answer.serial_time, np.array(1)).item()
    return JobCurve(counts, _seconds(door, answer.runtimes, counts), serial_time)


def _trace(door: Door, answer: object) -> Trace:
    if not isinstance(answer, Trace):
        door.refuse(answer, "a workloads.Trace")
    check_jobs(answer.jobs, answer.source)
    return answer


def _shapes(door: Door, answer: object) -> Shapes:
    """Return shapes whose relative times are positive at every count."""
    if not isinstance(answer, Shapes):
        door.refuse(answer, "workloads.shapes.family.Shapes")
    for one in range(len(answer)):
        allowed = answer.allowed(one)
        counts = np.arange(1, answer.processors + 1) if allowed is None else allowed
        _seconds(door, answer.g(np.full(counts.size, one), counts), counts)
    return answer


def _is(accepted: str, *kinds: Any) -> Callable[[Door, Any], Any]:
    """Return a check that an answer is of one of some types, or a tuple of one each."""

    def check(door: Door, answer: Any) -> Any:
        parts = answer if len(kinds) > 1 and isinstance(answer, tuple) else (answer,)
        if len(parts) != len(kinds) or not all(map(isinstance, parts, kinds)):
            door.refuse(answer, accepted)
        return answer

    return check


CHECKS: dict[str, Callable[[Door, Any], Any]] = {
    "attach": _attached,
    "curve": _curve,
    "offered": _offered,
    "wanted": _is("a count, or None", Integral | None),
    "observe": _is("True or False", bool | np.bool_ | None),
    "grade_of": _is("a grade and a code, both text", str, str),
    "explain": _is("an Explanation, see predictors.base", str, Integral, str, str, Integral, Real),
    "parts": _is("predictors.under_load.load_aware.Parts, or None", Parts | None),
    "predict_model": lambda door, answer: _seconds(door, answer, door.args[0]),
    "keys": _keys,
    "choose": lambda door, answer: _count(door, answer, door.args[1].counts(door.args[0])),
    "start_count": _start_count,
    "no_start_before": _is("seconds", Real),
    "wake": _is("seconds, infinity for never", Real),
    "share": _shares,
    "begin": _begun,
    "open": _begun,
    "of": _reading,
    "decide": _decisions,
    "preferences": _is("sim.state.decisions.Preferences", Preferences),
    "trace": _trace,
    "draw": _shapes,
}


def _guarded(door: Door, name: str, check: Callable[[Door, Any], Any] | None) -> Any:
    """Return a method that asks the object's own, and checks what it answers.

    Whatever that raises, `SystemExit` too, becomes one line; only the user interrupts.
    """

    def guarded(self: Any, *args: Any, **named: Any) -> Any:
        own = getattr(super(door.kind, self), name)
        if door.inside:
            return own(*args, **named)
        door.name, door.args, door.method, door.inside = name, args, own, True
        try:
            answer = own(*args, **named)
            return answer if check is None else check(door, answer)
        except (KeyboardInterrupt, PluginError):
            raise
        except BaseException as error:
            raise PluginError(f"{door.where}: raised {raised(error)}") from error
        finally:
            door.inside = False

    return guarded


def raised(error: BaseException) -> str:
    """Return an exception in a line, and where it was raised."""
    *_, (file, line, *_) = traceback.extract_tb(error.__traceback__)
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said} ({file}, line {line})"


def let_in(part: Any) -> Door | None:
    """Guard the methods of a part of somebody else's, and of such parts in what holds parts.

    Parameters
    ----------
    part : object
        It is changed; what stands for it in a configuration is a copy.

    Returns
    -------
    Door or None
        None for a part of this project's own.

    Examples
    --------
    >>> class Narrow:
    ...     __module__ = "my.rules"
    ...
    ...     def choose(self, job, view, outlook):
    ...         return 0
    >>> import sim
    >>> policy = sim.Policy(sim.FirstComeFirstServed(), sim.Easy(), Narrow())
    >>> sim.run("workload.jobs=5", policy=policy)
    Traceback (most recent call last):
    ...
    sim.errors.PluginError: Narrow.choose, job index 0: answered 0; must be a whole number, one ...
    """
    kind = type(part)
    held: Door | None = getattr_static(kind, "door_of_moldsim", None)
    if held is not None:
        return held
    if is_own(kind) or isinstance(part, Policy | Wrapper):
        for inner in getattr(part, "__dict__", {}).values():
            is_pythons = type(inner).__module__.partition(".")[0] in sys.stdlib_module_names
            if not is_pythons and any(fits_as(inner, key) for key in NEEDED):  # a path opens, too
                let_in(inner)
    if is_own(kind):
        return None
    door = Door()
    kinds = [one for one in reversed(kind.__mro__) if not is_own(one)]
    own = {name: one for each in kinds for name, one in vars(each).items()}
    static = {name for name, one in own.items() if isinstance(one, staticmethod | classmethod)}
    has_own_methods = any(name[:2] != "__" and hasattr(one, "__get__") for name, one in own.items())
    names = {*CHECKS} | (own.keys() - static) if has_own_methods else set()
    public = {name: getattr(kind, name, None) for name in names if name[0] != "_"}
    plain = (name for name, one in public.items() if not (isclass(one) or hasattr(one, "py_func")))
    asked = [name for name in plain if callable(public[name])]
    body: dict[str, Any] = {name: _guarded(door, name, CHECKS.get(name)) for name in asked}
    if "curve" in body:
        known = _guarded(door, "curve", _has_answer)
        body["known_counts"] = lambda *args: known(*args) if door.has_gaps else None
    if "has_curves" in vars(kind):
        body["has_curves"] = kind.has_curves
    names_of = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    body |= {"__slots__": (), "__doc__": kind.__doc__, "door_of_moldsim": door, **names_of}
    door.kind = new_class(kind.__name__, (kind,), {}, lambda space: space.update(body))
    object.__setattr__(part, "__class__", door.kind)
    return door
