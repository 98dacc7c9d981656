"""The loop of a run: from instant to instant in compiled steps, until Python is needed.

At an instant, in this order: runs end, in the turn in which they were planned; beliefs that are
outlived grow; jobs arrive; who asked to wake wakes; then the rule makes one pass, and the ends of
those that it started are planned.
"""

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from numba import config, typeof, types
from numba.experimental import structref

from predictors.compiling import PACKAGES, compiled
from sim.errors import PolicyError
from sim.state.calendar import Calendar
from sim.state.run_state import State, struct_type
from sim.state.run_steps import next_event_time, plan_ends, process_instant, start
from sim.state.waiting_queue import Queue, pop, tidy

INSTANTS = 256
"""Instants between two chances for Python to show progress and to be interrupted, as a rule."""
_numba: Any = config
_typeof: Any = typeof


class BoundRule(structref.StructRefProxy):
    """What decides: pointers to compiled functions of a state and of what the rule keeps.

    Attributes
    ----------
    must_ask : callable
        Says whether the pass of this instant has to wait for what Python says.
    prepare : callable
        Brings up to date what the rule keeps.
    choose : callable
        Lets a job that has arrived choose its count; says whether it did, or Python has to.
    admit : callable
        Lets it wait.
    decide : callable
        Finds who starts; returns how many places of its queue were written to ``found``.
    """

    must_ask: Callable[[State, Any], bool]
    prepare: Callable[[State, Any], None]
    choose: Callable[[State, Any, int], bool]
    admit: Callable[[State, Any, int], None]
    decide: Callable[[State, Any], int]


FIELDS = tuple(BoundRule.__annotations__)
BoundRuleType = struct_type(BoundRule)


@cache
def _maker(state: types.Type, memory: types.Type) -> Callable[..., BoundRule]:
    """Return what makes rules for this kind of plan of typed pointers."""
    result = {"must_ask": types.boolean, "choose": types.boolean, "decide": types.int64}
    more = {"choose": (types.int64,), "admit": (types.int64,)}
    signature = tuple(
        types.FunctionType(result.get(name, types.void)(state, memory, *more.get(name, ())))
        for name in FIELDS
    )
    made: Any = compiled(signature_or_function=signature)(_made)
    return cast(Callable[..., BoundRule], made)


def _made(must_ask: Any, prepare: Any, choose: Any, admit: Any, decide: Any) -> BoundRule:
    return BoundRule(must_ask, prepare, choose, admit, decide)  # type: ignore[no-untyped-call]


def bind(state: State, memory: Any, **functions: Callable[..., Any]) -> BoundRule:
    """Return a rule of these functions; the loop, and each of them, is compiled by itself.

    Raises
    ------
    PolicyError
        If the plan is of a type that other processes may not know, as the loop is kept for it.
    """
    if _numba.DISABLE_JIT:
        return cast(BoundRule, SimpleNamespace(**functions))
    if type(memory).__module__.partition(".")[0] not in (*PACKAGES, "builtins", "numpy"):
        kind = f"{type(memory).__module__}.{type(memory).__qualname__}"
        raise PolicyError(
            f"the memory of a compiled rule is of type {kind}; keep its data in RuleMemory.own"
        )
    return _maker(_typeof(state), _typeof(memory))(*(functions[name] for name in FIELDS))


@compiled(forceinline=True)
def _start_found(state: State, queue: Queue, number: int) -> None:
    """Start the jobs at the first places that were found."""
    for place in queue.found[:number]:
        start(state, queue.job[place])
        pop(queue, place)
    tidy(queue)


@compiled
def advance(state: State, calendar: Calendar, rule: BoundRule, memory: Any) -> float:
    """Go through instants, each with one pass at its end, as long as no Python is needed.

    It is when an instant was taken in whose pass has to wait for what Python says, which
    `pass_due` tells, or when in a pass it `asks` how many processors a job gets; and after
    each `stride` of passes.

    Parameters
    ----------
    state : State
    calendar : Calendar
    rule : BoundRule
    memory : object
        What the rule keeps from pass to pass.

    Returns
    -------
    float
        When something happens next, in seconds; infinity if nothing does.
    """
    run = state.run[0]
    while True:
        if run.pass_due:
            if not run.asks:
                run.chosen, run.admitted = 0, run.newcomer
                rule.prepare(state, memory)
            while run.admitted < run.arrived:
                if not (run.asks or rule.choose(state, memory, run.admitted)):
                    run.asks = 1
                    return float(run.now)
                run.asks = 0
                rule.admit(state, memory, run.admitted)
                run.admitted += 1
            _start_found(state, memory.queue, rule.decide(state, memory))
            plan_ends(state, calendar)
            run.pass_due = 0
            run.passes += 1
            if run.passes % run.stride == 0:
                return next_event_time(state, calendar)
        following = next_event_time(state, calendar)
        if following == np.inf:
            return following
        process_instant(state, calendar, following)
        if rule.must_ask(state, memory):
            return float(run.now)
