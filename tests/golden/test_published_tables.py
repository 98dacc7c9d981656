"""The scheduler table of RLScheduler (SC'20), as policies.md 11.1 explains it.

Its protocol is not the contract's: the best-ranked job is chosen once and
waited for, the instant at which it can start is computed when it is chosen,
others pass it only if they end strictly before, and at one instant arrivals
come first, then ends, with a look after each. It is composed here from the
engine's parts.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from toys import ToyEstimate, rigid_truth

from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.order import FirstComeFirstServed, Learned, Order, ShortestFirst, Unicep, Wfp3
from sim.state.decisions import Start
from sim.state.view import View
from workloads.base import Trace
from workloads.logs.log import SwfWorkload
from workloads.streams import Streams

PROCESSORS = 256
WINDOWS = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)


class UnsetStart:
    """The published WFP3 and UNICEP read the wait off an unset start: w = -1 - submit."""

    recomputed = True

    def __init__(self, order: Order) -> None:
        self.order = order

    def keys(self, now: float, submit: np.ndarray, processors: np.ndarray, runtime: np.ndarray):
        return self.order.keys(-1.0, submit, processors, runtime)


class ChosenOnce:
    """Policy of the protocol: begin() hands out a scheduler."""

    def __init__(self, order: Order, backfill: bool) -> None:
        self.order = order
        self.backfill = backfill

    def begin(self, view: View) -> "ChosenOnceScheduler":
        return ChosenOnceScheduler(self, view)


class ChosenOnceScheduler:
    def __init__(self, policy: ChosenOnce, view: View) -> None:
        self.policy = policy
        self.view = view
        self.queue: list[int] = []
        self.chosen: int | None = None
        self.promised = 0.0

    def decide(self) -> list[Start]:
        view = self.view
        self.starts: list[Start] = []
        self.held = [(end, n) for end, _, n in view.believed_ends.rows()]
        self.held += [(run.believed_end, run.processors) for run in view.ended]
        self.free = view.free - sum(run.processors for run in view.ended)
        for job in view.arrived:
            self.queue.append(job)
            self.act()
        for run in view.ended:
            self.held.remove((run.believed_end, run.processors))
            self.free += run.processors
            self.act()
        return self.starts

    def act(self) -> None:
        wanted = self.view.requested_processors
        while self.queue:
            if self.chosen is None:
                self.choose()
            if wanted[self.chosen] > self.free:
                break
            self.start(self.chosen)
            self.chosen = None
        if self.queue and self.policy.backfill:
            for job in [job for job in self.queue if job != self.chosen]:
                ends = self.view.now + self.view.requested_time[job]
                if wanted[job] <= self.free and ends < self.promised:
                    self.start(job)

    def choose(self) -> None:
        view, queue = self.view, self.queue
        keys = self.policy.order.keys(
            view.now,
            np.array([view.submit_time[job] for job in queue]),
            np.array([view.requested_processors[job] for job in queue]),
            np.array([view.requested_time[job] for job in queue]),
        )
        self.chosen = queue[0 if keys is None else int(np.argmin(keys))]
        free = self.free
        for end, processors in sorted(self.held):
            free += processors
            if free >= view.requested_processors[self.chosen]:
                self.promised = end
                break

    def start(self, job: int) -> None:
        view = self.view
        processors = view.requested_processors[job]
        self.starts.append(Start(job, processors))
        self.free -= processors
        self.held.append((view.now + view.requested_time[job], processors))
        self.queue.remove(job)


def score(trace: Trace, order: Order, backfill: bool) -> tuple[list[float], list[float]]:
    """Return bounded slowdown and utilisation of each window."""
    slowdowns, utilisations = [], []
    for first in WINDOWS:
        jobs = trace.jobs.iloc[first : first + 1024].reset_index(drop=True)
        window = Trace(jobs=jobs, processors=PROCESSORS, source=trace.source)
        policy = ChosenOnce(order, backfill)
        truth = rigid_truth(window)
        records = simulate(Setup(window, truth, policy, ToyEstimate(), Dedicated(PROCESSORS)))
        runtime = jobs["reference_runtime"].to_numpy()
        wait = records.start_time - records.submit_time
        slowdowns.append(float(np.maximum(1, (wait + runtime) / np.maximum(runtime, 10)).mean()))
        span = records.start_time.max() - jobs["submit_time"][0]
        area = (runtime * jobs["requested_processors"]).sum()
        utilisations.append(float(area / (PROCESSORS * span)))
    return slowdowns, utilisations


ORDERS: dict[str, Order] = {
    "FCFS": FirstComeFirstServed(),
    "SJF": ShortestFirst(),
    "F1": Learned("F1"),
    "WFP3 as published": UnsetStart(Wfp3()),
    "UNICEP as published": UnsetStart(Unicep()),
    "WFP3": Wfp3(),
    "UNICEP": Unicep(),
}

# Bounded slowdown and utilisation, columns in the order of ORDERS.
TABLE = {
    ("lublin_256", False): (
        (7273.77, 277.35, 258.37, 19753.53, 22274.74, 337.34, 381.71),
        (0.657, 0.762, 0.816, 0.747, 0.691, 0.796, 0.663),
    ),
    ("lublin_256", True): (
        (235.82, 73.31, 75.07, 133.87, 307.23, 126.50, 103.10),
        (0.868, 0.778, 0.840, 0.864, 0.883, 0.892, 0.828),
    ),
    ("lublin_256_new2", False): (
        (7842.47, 787.89, 698.34, 9523.18, 11265.31, 807.25, 830.49),
        (0.404, 0.562, 0.478, 0.543, 0.510, 0.570, 0.473),
    ),
    ("lublin_256_new2", True): (
        (247.61, 91.99, 148.25, 318.35, 379.59, 135.12, 111.19),
        (0.587, 0.593, 0.552, 0.583, 0.587, 0.604, 0.569),
    ),
}


EXACT = {"missing_requested_time": "exact"}
"""These logs record no requested times; RLScheduler takes the runtimes."""


@pytest.mark.parametrize(("name", "backfill"), TABLE)
def test_rlscheduler_table(traces: Path, name: str, backfill: bool) -> None:
    trace = SwfWorkload(traces / f"{name}.swf.gz", cleaning=EXACT).trace(Streams(0), None)
    slowdowns, utilisations = TABLE[name, backfill]
    for order, slowdown, utilisation in zip(ORDERS, slowdowns, utilisations, strict=True):
        measured, used = score(trace, ORDERS[order], backfill)
        assert round(np.mean(measured), 2) == slowdown, order
        assert round(np.mean(used), 3) == utilisation, order


FIRST_WINDOWS: dict[str, tuple[Sequence[float], Sequence[float]]] = {
    "FCFS": ((6862.2636, 7034.4524, 9090.8359), (163.7064, 263.5015, 247.5442)),
    "SJF": ((204.2585, 251.4177, 214.3197), (69.8702, 55.1664, 63.9986)),
    "F1": ((266.7345, 159.0794, 156.8168), (66.7545, 32.5279, 45.2283)),
}


@pytest.mark.parametrize("order", FIRST_WINDOWS)
def test_rlscheduler_windows(traces: Path, order: str) -> None:
    trace = SwfWorkload(traces / "lublin_256.swf.gz", cleaning=EXACT).trace(Streams(0), None)
    for backfill in (False, True):
        measured, _ = score(trace, ORDERS[order], backfill)
        assert np.round(measured[:3], 4).tolist() == list(FIRST_WINDOWS[order][backfill])
