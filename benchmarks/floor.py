"""The floor: what bare SimPy needs to let so many jobs arrive and end, and nothing else."""

import time
from collections.abc import Callable, Sequence

import simpy
from simpy.events import Event


def replay_bare(submit: Sequence[float], runtime: Sequence[float]) -> None:
    """Let one source process chain the arrivals, with one timeout for each end."""
    env = simpy.Environment()
    ended = [0]

    def end(_: Event) -> None:
        ended[0] += 1

    def source():
        now = submit[0]
        for when, seconds in zip(submit, runtime, strict=True):
            if when > now:
                yield env.timeout(when - now)
                now = when
            env.timeout(seconds).callbacks.append(end)

    env.process(source())
    env.run()
    if ended[0] != len(submit):
        raise RuntimeError(f"the floor lost {len(submit) - ended[0]} of {len(submit)} ends")


def best_of(rounds: int, *actions: Callable[[], object]) -> list[float]:
    """Return the least processor time of each action, all taken in turn in every round."""
    best = [float("inf")] * len(actions)
    for _ in range(rounds):
        for place, action in enumerate(actions):
            began = time.process_time()
            action()
            best[place] = min(best[place], time.process_time() - began)
    return best
