"""What a cycle of an adaptive application really costs on a machine."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from workloads.base import FloatArray

CROWD = 16
"""Processors from which on the noise grows no more: the most that the paper measured."""


@dataclass(frozen=True)
class Network:
    """Message costs by size class: up to 32 bytes, below 512, and from there on.

    Parameters
    ----------
    latency : tuple of float, microseconds
        One for each class.
    per_byte : tuple of float, nanoseconds
        One for each class.

    Examples
    --------
    >>> round(float(CYCLE_MACHINES["itanium2"].network.seconds(1024)) * 1e6, 2)
    15.71
    """

    latency: tuple[float, float, float]
    per_byte: tuple[float, float, float]

    def seconds(self, size: ArrayLike, slower: float = 1.0) -> FloatArray:
        """Return the time of a message of so many bytes (rounded up), seconds.

        A byte takes `slower` times as long as alone on the network.
        """
        whole = np.ceil(np.asarray(size, dtype=float))
        kind = (whole > 32).astype(int) + (whole >= 512)
        latency, per_byte = np.asarray(self.latency)[kind], np.asarray(self.per_byte)[kind]
        return np.asarray(latency * 1e-6 + whole * slower * per_byte * 1e-9)


@dataclass(frozen=True)
class CycleMachine:
    """A machine as an adaptive application feels it.

    Parameters
    ----------
    name : str
    processors_per_node : int
    cells : tuple of float
        Cells per processor between which the time per cell is interpolated in
        ln(cells); beyond them it is constant.
    seconds_per_cell : tuple of float
        Time of one cell there, one process on a node.
    contention : tuple of float
        Factor on it with 1, 2, … processes on a node.
    network : Network
    messages : float
        Boundary messages of a processor in a cycle; a face has cells^(2/3)
        cells of 8 bytes.
    reductions : float
        Global sums of 8 bytes in a cycle, each ceil(log2 n) messages deep.
    imbalance : float
        Share by which the computation grows with each doubling of processors,
        since all wait for the slowest.
    noise : float
        Coefficient of variation of a cycle on `CROWD` processors or more, drawn for each.
    drift : float
        The same of a block of cycles, drawn for each block.
    calm : float
        Both on one processor, over what they are on `CROWD`; between, they grow by
        the same with every doubling, as each processor adds its own disturbances to
        what all wait for.
    bidirectional : float
        How many times as long a byte takes while others come the opposite way.
    nic : float
        By how much longer a byte takes for each further process that shares the
        node's network interface, as a share.
    distance : float
        By how much longer all messages take for each doubling of the nodes, as a
        share: what contention between nodes and the way through the network cost.
    placement : float
        Standard deviation of ln(time of the messages) between runs on more than one
        node: which nodes a run happened to get. Neither this nor `distance` is in
        what a benchmark of two nodes shows.
    """

    name: str
    processors_per_node: int
    cells: tuple[float, ...]
    seconds_per_cell: tuple[float, ...]
    contention: tuple[float, ...]
    network: Network
    messages: float = 300.0
    reductions: float = 100.0
    imbalance: float = 0.015
    noise: float = 0.06
    drift: float = 0.03
    calm: float = 1.0
    bidirectional: float = 1.0
    nic: float = 0.0
    distance: float = 0.0
    placement: float = 0.0

    def computation(self, cells: ArrayLike, nprocs: int) -> FloatArray:
        """Return the time to compute so many cells per processor, seconds."""
        size = np.asarray(cells, dtype=float)
        each = np.interp(np.log(size), np.log(self.cells), self.seconds_per_cell)
        shared = self.contention[min(nprocs, self.processors_per_node) - 1]
        waiting = 1.0 + self.imbalance * np.log2(nprocs)
        return np.asarray(size * each * shared * waiting)

    def unrest(self, nprocs: int) -> float:
        """Return the noise on so many processors over that on `CROWD` of them or more."""
        share = min(np.log2(nprocs) / np.log2(CROWD), 1.0)
        return self.calm + (1.0 - self.calm) * float(share)

    def communication(self, cells: ArrayLike, nprocs: int, deviate: float = 0.0) -> FloatArray:
        """Return the time of a cycle's messages, 0 on one processor, seconds.

        Cells are those on each processor. `deviate` is a standard normal number of the run: how
        well its nodes lie.
        """
        size = np.asarray(cells, dtype=float)
        if nprocs == 1:
            return np.zeros_like(size)
        shared = min(nprocs, self.processors_per_node)
        slower = self.bidirectional * (1.0 + self.nic * (shared - 1))
        boundary = self.messages * self.network.seconds(8.0 * size ** (2.0 / 3.0), slower)
        depth = float(np.ceil(np.log2(nprocs)))
        total = boundary + self.reductions * depth * self.network.seconds(8)
        nodes = -(-nprocs // self.processors_per_node)
        if nodes > 1:
            far = 1.0 + self.distance * np.log2(nodes)
            total = total * far * np.exp(self.placement * deviate)
        return np.asarray(total)


_BUSY = {
    "messages": 3000.0,
    "bidirectional": 1.6,
    "nic": 0.4,
    "distance": 0.15,
    "placement": 0.2,
}
"""What QSnet-I adds to Table 2, and how many messages the application sends.

Chosen: the bus of a node carries both directions and all its processes; a boundary
message of each of some thousand variables and solver steps makes communication a
fiftieth of a cycle on 16 processors.
"""

CYCLE_MACHINES = {
    machine.name: machine
    for machine in (
        CycleMachine(
            name="alphaserver",
            processors_per_node=4,
            cells=(1_000, 6_000, 30_000, 120_000),
            seconds_per_cell=(0.95e-3, 1.00e-3, 1.20e-3, 1.30e-3),
            contention=(1.0, 1.03, 1.07, 1.12),
            network=Network((5.6, 5.9, 8.1), (0.0, 18.7, 5.0)),
            imbalance=0.04,
            noise=0.04,
            drift=0.02,
            calm=0.8,
            **_BUSY,
        ),
        CycleMachine(
            name="itanium2",
            processors_per_node=2,
            cells=(1_000, 3_000, 20_000, 120_000),
            seconds_per_cell=(0.488e-3, 0.507e-3, 0.643e-3, 0.702e-3),
            contention=(1.0, 1.10),
            network=Network((5.0, 7.6, 11.0), (0.0, 8.9, 4.6)),
            noise=0.07,
            drift=0.035,
            calm=0.7,
            **_BUSY,
        ),
    )
}
"""The two clusters of Mathis & Kerbyson.

Processors per node and message costs are the paper's (section 3, Table 2). Its
Figure 1, the time per cell, is not printed as numbers: the curves here rise with
the cells as its text says, and their level is set so that the first checkpoints
of timing_a fall where section 4 prints them. Contention is chosen. Noise, how calm a
single processor is, and the imbalance of the AlphaServer were chosen on the columns of
timing_b in Tables 3 and 4 alone; the other two decks judge them (docs/methods/cycles.md).
"""
