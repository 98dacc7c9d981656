"""Trials in a process of their own, so that one that does not end can be ended."""

import contextlib
import multiprocessing
import os
import random
import signal
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from time import monotonic
from typing import Any

Trial = Callable[[random.Random], str]
"""From dice to how it ended; what begins with ``FOUND`` is a finding."""


@dataclass
class Found:
    """What a series of trials gave: how often each kind of end, and the findings."""

    ends: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def note(self, kind: str, seed: int, end: str) -> None:
        """Count an end by its first word; keep a finding whole."""
        self.ends[end.partition(":")[0]] += 1
        if end.startswith("FOUND"):
            self.findings.append(f"{kind} {seed}: {end.removeprefix('FOUND: ')}")


def dice_of(kind: str, seed: int) -> random.Random:
    """Return the dice of one trial, which it alone throws."""
    return random.Random(f"{kind} {seed}")


def _serve(kinds: Mapping[str, Trial], connection: Connection) -> None:
    os.setsid()  # so that it is ended with what it began
    warnings.simplefilter("ignore")
    while True:
        kind, seed = connection.recv()
        try:
            end = kinds[kind](dice_of(kind, seed))
        except BaseException as error:  # whatever it is, it is a finding
            frame = traceback.extract_tb(error.__traceback__)[-1]
            end = f"FOUND: {type(error).__name__}: {error} ({frame.name}:{frame.lineno})"
        connection.send(end)


class Hand:
    """A process that makes trials one by one, and is replaced when one does not end."""

    def __init__(self, kinds: Mapping[str, Trial], limit: float) -> None:
        self._kinds, self._limit = kinds, limit
        self._begin()

    def _begin(self) -> None:
        context: Any = multiprocessing.get_context("fork")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(self._kinds, theirs))
        self._process.start()
        theirs.close()

    def attempt(self, kind: str, seed: int) -> str:
        """Make a trial and say how it ended."""
        try:
            self._connection.send((kind, seed))
            if self._connection.poll(self._limit):
                return str(self._connection.recv())
            end = f"FOUND: not ended after {self._limit:g} s"
        except EOFError:
            end = "FOUND: the process died"
        self.close()
        self._begin()
        return end

    def close(self) -> None:
        """End the process and what it began."""
        with contextlib.suppress(ProcessLookupError):  # it may not have got so far as its group
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.join()


def series(
    kinds: Mapping[str, Trial],
    kind: str,
    seeds: Iterable[int],
    seconds: float,
    limit: float = 300.0,
) -> Found:
    """Make a trial of a kind for each seed, as many as end in so many seconds."""
    found, hand, until = Found(), Hand(kinds, limit), monotonic() + seconds
    try:
        for seed in seeds:
            if monotonic() > until:
                break
            found.note(kind, seed, hand.attempt(kind, seed))
    finally:
        hand.close()
    return found
