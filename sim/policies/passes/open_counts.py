"""What compiled passes of rules for open counts have in common.

A pass begins with `begin_pass`; the rule then says which candidates are allowed; at last
`start_allowed` starts who can and should.
"""

from predictors.compiling import compiled
from sim.policies.molding.candidates import Candidates
from sim.policies.molding.choice import Blocking, mold_first
from sim.policies.passes.memory import RuleMemory, lay_running
from sim.state.run_state import State
from sim.state.run_steps import give_count, start, waiting_jobs


@compiled
def begin_pass(state: State, memory: RuleMemory) -> bool:
    """Say whether anybody waits while processors are free; if so lay out the running jobs."""
    run, waiting = state.run[0], state.waiting
    while run.head < run.arrived and waiting[run.head] == 0:
        run.head += 1
    if run.free == 0 or run.head == run.arrived:
        return False
    lay_running(state, memory)
    return True


@compiled
def start_allowed(state: State, memory: RuleMemory, last: int) -> None:
    """Start who can and should before a job, on counts that are allowed.

    Parameters
    ----------
    state : State
    memory : RuleMemory
        With the profile of the running jobs alone.
    last : int
        One past the last job that is considered.
    """
    waiting, found, spans, counts = state.waiting, state.found, memory.offers, memory.counts
    candidates = Candidates(spans, counts, memory.runtimes)
    blocking = Blocking(memory.open.reservations, memory.open.strict)
    number = mold_first(
        (memory.times, memory.free, memory.span), state.run[0].now, waiting_jobs(state), candidates,
        state.run[0].head, last, blocking, found,
    )  # fmt: skip
    for job in found[:number]:
        pick = spans[job].begin
        while counts[pick] != waiting[job]:
            pick += 1
        give_count(state, job, waiting[job], state.belief[job], pick)
        waiting[job] = 0
        start(state, job)
