"""The loop of every run: from instant to instant in compiled steps, until Python is needed.

What only Python knows of is an event of SimPy, before which the loop stops. At an instant, in
this order: runs end, in the turn in which they were planned; beliefs that are outlived grow;
jobs arrive; who asked to wake wakes; then the rule makes one pass, and the ends of those that it
started are planned.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np
from numba import typeof, types
from numba.experimental import structref

from predictors.compiling import PACKAGES, compiled
from sim.errors import PolicyError
from sim.state.run_state import RunState, struct_type, structure
from sim.state.run_steps import Calendar, next_event_time, plan_ends, process_instant, start
from sim.state.waiting_queue import Queue, pop, tidy

INSTANTS = 256
"""Instants between two chances for Python to show progress and to be interrupted, as a rule."""
_typeof: Any = typeof


class BoundRule(structref.StructRefProxy):
    """What decides: pointers to compiled functions of a state and of what the rule keeps.

    Attributes
    ----------
    state : RunState
    memory : object
        What the rule keeps from pass to pass.
    must_ask : callable
        Says whether the pass of this instant has to wait for what Python says.
    prepare : callable
        Brings up to date what the rule keeps.
    choose : callable
        Lets a job that has arrived choose its count; says whether it did, or Python has to.
    admit : callable
        Lets it wait.
    narrow : callable
        Says which of the counts that stay open are allowed now.
    decide : callable
        Finds who starts; returns how many places of its queue were written to ``found``.
    """

    state: RunState
    memory: Any
    must_ask: Callable[[RunState, Any], bool]
    prepare: Callable[[RunState, Any], None]
    choose: Callable[[RunState, Any, int], bool]
    admit: Callable[[RunState, Any, int], None]
    narrow: Callable[[RunState, Any], None]
    decide: Callable[[RunState, Any], int]


FUNCTIONS = tuple(BoundRule.__annotations__)[2:]
BoundRuleType = struct_type(BoundRule)
_bound: Any = BoundRule  # made in compiled code, which knows its types


# What rules do that say nothing else, and what they may say


@compiled
def never_ask(state: RunState, memory: Any) -> bool:
    """Say that no pass waits for what Python says before it."""
    return False


@compiled
def always_ask(state: RunState, memory: Any) -> bool:
    """Say that Python makes the pass."""
    return bool(state.scalars[0].pass_due)


@compiled
def do_nothing(state: RunState, memory: Any) -> None:
    """Bring nothing up to date, and narrow nothing."""


@compiled
def keep_count(state: RunState, memory: Any, job: int) -> bool:
    """Let a job that has just arrived have the count that stands there, or choose it later."""
    return True


@compiled
def leave_choice_to_python(state: RunState, memory: Any, job: int) -> bool:
    """Let Python say how many processors a job gets that has just arrived."""
    return False


@compiled
def queue_nobody(state: RunState, memory: Any, job: int) -> None:
    """Let a job that has just arrived not wait yet."""


@compiled
def start_nobody(state: RunState, memory: Any) -> int:
    """Find nobody who starts."""
    return 0


_SAY_NOTHING = never_ask, do_nothing, keep_count, queue_nobody, do_nothing, start_nobody
DEFAULTS = dict(zip(FUNCTIONS, _SAY_NOTHING, strict=True))


class EmptyMemory(NamedTuple):
    """What is kept of a run of which Python makes the passes: a queue in which nobody waits."""

    queue: Queue


@cache
def _maker(state: types.Type, memory: types.Type) -> Callable[..., BoundRule]:
    """Return what makes rules of typed pointers for these types of state and memory."""
    result = {"must_ask": types.boolean, "choose": types.boolean, "decide": types.int64}
    more = {"choose": (types.int64,), "admit": (types.int64,)}
    signature = tuple(
        types.FunctionType(result.get(name, types.void)(state, memory, *more.get(name, ())))
        for name in FUNCTIONS
    )
    made: Any = compiled(signature_or_function=(state, memory, *signature))(_made)
    return cast(Callable[..., BoundRule], made)


def _made(state, memory, ask, prepare, choose, admit, narrow, decide):  # type: ignore[no-untyped-def]
    return _bound(state, memory, ask, prepare, choose, admit, narrow, decide)


def _make(fields: tuple[Any, ...]) -> BoundRule:
    state, memory, *_ = fields
    if type(memory).__module__.partition(".")[0] not in (*PACKAGES, "builtins", "numpy"):
        kind = f"{type(memory).__module__}.{type(memory).__qualname__}"
        kept = "keep its data in RuleMemory.plugin_data"
        raise PolicyError(f"the memory of a compiled rule is of type {kind}; {kept}")
    for name, function in zip(FUNCTIONS, fields[2:], strict=True):
        if not hasattr(function, "compile"):
            raise PolicyError(f"{name}={function.__qualname__} of a rule has to be `compiled`")
    return _maker(_typeof(state), _typeof(memory))(*fields)


def bind(state: RunState, memory: Any, **functions: Callable[..., Any]) -> BoundRule:
    """Return a rule of these functions, or `DEFAULTS`; each, and the loop, is compiled by itself.

    Raises
    ------
    PolicyError
        If the memory is of a type that other processes may not know, as the loop is kept for it, or
        a function is not compiled.
    """
    fields = {"state": state, "memory": memory, **DEFAULTS, **functions}
    return cast(BoundRule, structure(_make, fields, fields))


@compiled
def advance(rule: BoundRule, calendar: Calendar, instant: float, until: float) -> float:
    """Go through instants, each with one pass at its end, as long as no Python is needed.

    It stops where a pass has to wait for what Python says (`pass_due` is 1 then), or a job for how
    many processors it gets (`choice_due` is 1, too); after `passes_per_return` passes; and
    before `until`.

    Parameters
    ----------
    rule : BoundRule
    calendar : Calendar
    instant : float
        That is taken in first, seconds; -infinity to go on in one of which Python was asked.
    until : float
        When something happens that Python has to see first, seconds.

    Returns
    -------
    float
        When something happens next, in seconds; infinity if nothing does; the present instant
        where Python is asked.
    """
    state, memory = rule.state, rule.memory
    run = state.scalars[0]
    while True:
        if instant > -np.inf:
            process_instant(state, calendar, instant)
            if rule.must_ask(state, memory):
                return instant
        if run.pass_due:
            if not run.choice_due:
                run.admitted = run.first_arrived
                rule.prepare(state, memory)
            while run.admitted < run.arrived:
                if not (run.choice_due or rule.choose(state, memory, run.admitted)):
                    run.choice_due = 1
                    return float(run.now)
                run.choice_due = 0
                rule.admit(state, memory, run.admitted)
                run.admitted += 1
            rule.narrow(state, memory)
            number = rule.decide(state, memory)
            for place in memory.queue.found[:number]:
                start(state, pop(memory.queue, place))
            tidy(memory.queue)
            plan_ends(state, calendar)
            run.pass_due = 0
            run.passes += 1
        instant = next_event_time(state, calendar)
        if instant >= until or run.passes % run.passes_per_return == 0:
            return instant
