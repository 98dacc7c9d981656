"""What passes of rules for open counts have in common.

The rule says which candidates are allowed, and how far in the queue jobs are considered; then
who can and should starts.
"""

from predictors.base import FloatArray
from predictors.compiling import compiled
from sim.policies.advice import last_up_to
from sim.policies.molding.choice import Blocking, mold_first
from sim.policies.passes.memory import RuleMemory, candidates_of, lay_running
from sim.state.run_state import State
from sim.state.run_steps import give_count
from sim.state.waiting_queue import waiting_in

# Which candidates are allowed; each returns one past the last place that is considered. Places of
# jobs that have started may be written to, too: nobody reads what is allowed there.


@compiled
def allow_all(memory: RuleMemory) -> int:
    """Allow everybody all candidates."""
    queue, at = memory.queue, memory.queue.at[0]
    for k in range(at.first, at.last):
        own = memory.menu_spans[queue.job[k]]
        own.low, own.high = own.begin, own.begin + own.number
    return int(at.last)


@compiled
def settle(memory: RuleMemory, target: FloatArray, most: float) -> int:
    """Allow everybody one count: the largest up to a target, else the least one.

    Parameters
    ----------
    memory : RuleMemory
    target : numpy.ndarray of float, shape (n,)
        Of each job.
    most : float
        The most that anybody gets.
    """
    queue, at = memory.queue, memory.queue.at[0]
    for k in range(at.first, at.last):
        job = queue.job[k]
        own = memory.menu_spans[job]
        end = own.begin + own.number
        own.low = last_up_to(memory.menu_counts, own.begin, end, min(target[job], most))
        own.high = own.low + 1
    return int(at.last)


# Who starts


@compiled
def may_start(state: State, memory: RuleMemory) -> bool:
    """Say whether anybody waits while processors are free."""
    memory.search_end[0] = 0
    queue, at = memory.queue, memory.queue.at[0]
    while at.first < at.last and queue.processors[at.first] == 0:
        at.first += 1
    return bool(state.run[0].free > 0 and at.first < at.last)


@compiled
def find_allowed(state: State, memory: RuleMemory, last: int) -> int:
    """Find who can and should start before a place, on counts that are allowed.

    Returns how many places were written to `found`.
    """
    memory.search_end[0] = last
    lay_running(state, memory)
    queue, at, now = memory.queue, memory.queue.at[0], state.run[0].now
    blocking = Blocking(memory.open.reservations, memory.open.strict)
    return mold_first(
        memory.profile, now, waiting_in(queue), candidates_of(memory), at.first, last, blocking,
        queue.found,
    )  # fmt: skip


@compiled
def settle_allowed(state: State, memory: RuleMemory, last: int) -> int:
    """Do the same, and give those who start the counts that they take."""
    number, queue, counts = find_allowed(state, memory, last), memory.queue, memory.menu_counts
    for place in queue.found[:number]:
        job, chosen = queue.job[place], queue.processors[place]
        pick = memory.menu_spans[job].low
        while counts[pick] != chosen:
            pick += 1
        give_count(state, job, chosen, queue.runtime[place], pick)
    return number
