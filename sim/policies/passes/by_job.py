"""Passes of rules whose waiting jobs stand where their indices say: open counts, equal shares."""

from predictors.compiling import compiled
from sim.policies.passes.equal_passes import share_pass
from sim.policies.passes.open_passes import Offered, may_start, open_pass
from sim.policies.passes.plan import Plan, lay_running
from sim.state.run_state import State


@compiled(makes_arrays=True)
def never_ask(state: State, plan: Plan) -> bool:
    """Say that no pass waits for what Python says before it."""
    return False


@compiled(makes_arrays=True)
def prepare(state: State, plan: Plan) -> None:
    """Do nothing before jobs arrive."""


@compiled(makes_arrays=True)
def admit(state: State, plan: Plan, job: int) -> None:
    """Let a job that has just arrived wait."""
    state.waiting[job] = state.processors[job]


@compiled(makes_arrays=True)
def decide_counts(state: State, plan: Plan) -> None:
    """Start who may, on counts that stay open until then."""
    if may_start(state):
        lay_running(state, plan)
        offered = Offered(plan.offers, plan.counts, plan.choices)
        open_pass(state, offered, plan.open, (plan.times, plan.free, plan.span))


@compiled(makes_arrays=True)
def decide_shares(state: State, plan: Plan) -> None:
    """Start who may, and share processors equally."""
    share_pass(state, plan.sharing)
