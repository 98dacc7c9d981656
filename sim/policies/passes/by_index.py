"""What rules have in common whose waiting jobs stand where their indices say."""

from typing import Any

from predictors.compiling import compiled
from sim.state.run_state import State


@compiled
def never_ask(state: State, memory: Any) -> bool:
    """Say that no pass waits for what Python says before it."""
    return False


@compiled
def prepare(state: State, memory: Any) -> None:
    """Do nothing before jobs arrive."""


@compiled
def choose(state: State, memory: Any, job: int) -> bool:
    """Let a job that has just arrived choose nothing yet."""
    return True


@compiled
def ask(state: State, memory: Any, job: int) -> bool:
    """Let Python say how many processors a job gets that has just arrived."""
    return False


@compiled
def hold_back(state: State, memory: Any, job: int) -> None:
    """Let a job that has just arrived not wait yet."""


FUNCTIONS = {"must_ask": never_ask, "prepare": prepare, "choose": choose}
