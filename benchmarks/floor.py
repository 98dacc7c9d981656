"""The floor: what bare SimPy needs to let so many jobs arrive and end, and nothing else."""

import time
from collections.abc import Callable, Sequence

import simpy
from rich.console import Console
from rich.table import Table
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


OVER: list[str] = []
"""What was above its limit so far."""
SHOWN: list[dict] = []
"""All rows that were printed so far."""


def judge(rows: Sequence[dict]) -> None:
    """Note the rows whose ratio is above their limit."""
    for row in rows:
        if isinstance(row.get("limit"), int | float) and row["ratio"] > row["limit"]:
            what = ", ".join(str(row[key]) for key in ("trace", "rule") if key in row)
            OVER.append(f"{what}: {row['ratio']:.2f} times, at most {row['limit']:g}")


def show(title: str, rows: Sequence[dict]) -> None:
    """Print rows as a table whose headings are not cut, keep them, and note those above a limit."""
    judge(rows)
    SHOWN.extend(rows)
    table = Table(title=title)
    for heading in rows[0]:
        named = heading in ("trace", "rule")
        table.add_column(heading, justify="left" if named else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console(width=max(Console().width, 130)).print(table)


def best_of(rounds: int, *actions: Callable[[], object]) -> list[float]:
    """Return the least processor time of each action, all taken in turn in every round."""
    best = [float("inf")] * len(actions)
    for _ in range(rounds):
        for place, action in enumerate(actions):
            began = time.process_time()
            action()
            best[place] = min(best[place], time.process_time() - began)
    return best
