"""What a cycle of an adaptive application really costs on a machine."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workloads.errors import WorkloadError

FloatArray = NDArray[np.float64]


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

    def seconds(self, size: ArrayLike) -> FloatArray:
        """Return the time of a message of so many bytes (rounded up), seconds."""
        whole = np.ceil(np.asarray(size, dtype=float))
        kind = (whole > 32).astype(int) + (whole >= 512)
        latency, per_byte = np.asarray(self.latency)[kind], np.asarray(self.per_byte)[kind]
        return np.asarray(latency * 1e-6 + whole * per_byte * 1e-9)


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
        Coefficient of variation of a cycle, drawn for each.
    drift : float
        The same of a block of cycles, drawn for each block.

    Raises
    ------
    WorkloadError
        If lengths disagree or a value is out of range.
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

    def __post_init__(self) -> None:
        where = f"cycle machine {self.name}"
        if len(self.cells) != len(self.seconds_per_cell) or len(self.cells) < 2:
            raise WorkloadError(f"{where}: cells and seconds_per_cell need 2 or more values each")
        if (np.diff(self.cells) <= 0).any() or min(self.cells) <= 0:
            raise WorkloadError(f"{where}: cells must be positive and rise, got {self.cells}")
        if min(self.seconds_per_cell) <= 0 or min(self.contention, default=0.0) <= 0:
            raise WorkloadError(f"{where}: seconds_per_cell and contention must be positive")
        if len(self.contention) != self.processors_per_node:
            raise WorkloadError(
                f"{where}: contention needs {self.processors_per_node} values, "
                f"got {len(self.contention)}"
            )
        if min(self.messages, self.reductions, self.imbalance, self.drift) < 0:
            raise WorkloadError(f"{where}: messages, reductions, imbalance and drift are >= 0")
        if not 0.0 < self.noise < 1.0:
            raise WorkloadError(f"{where}: noise must lie between 0 and 1, got {self.noise}")

    def computation(self, cells: ArrayLike, nprocs: int) -> FloatArray:
        """Return the time to compute so many cells per processor, seconds."""
        size = np.asarray(cells, dtype=float)
        each = np.interp(np.log(size), np.log(self.cells), self.seconds_per_cell)
        shared = self.contention[min(nprocs, self.processors_per_node) - 1]
        waiting = 1.0 + self.imbalance * np.log2(nprocs)
        return np.asarray(size * each * shared * waiting)

    def communication(self, cells: ArrayLike, nprocs: int) -> FloatArray:
        """Return the time of a cycle's messages, 0 on one processor, seconds."""
        size = np.asarray(cells, dtype=float)
        if nprocs == 1:
            return np.zeros_like(size)
        boundary = self.messages * self.network.seconds(8.0 * size ** (2.0 / 3.0))
        depth = float(np.ceil(np.log2(nprocs)))
        return np.asarray(boundary + self.reductions * depth * self.network.seconds(8))


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
            noise=0.05,
            drift=0.025,
        ),
        CycleMachine(
            name="itanium2",
            processors_per_node=2,
            cells=(1_000, 3_000, 20_000, 120_000),
            seconds_per_cell=(0.50e-3, 0.52e-3, 0.66e-3, 0.72e-3),
            contention=(1.0, 1.10),
            network=Network((5.0, 7.6, 11.0), (0.0, 8.9, 4.6)),
            noise=0.08,
            drift=0.04,
        ),
    )
}
"""The two clusters of Mathis & Kerbyson.

Processors per node and message costs are the paper's (section 3, Table 2). Its
Figure 1, the time per cell, is not printed as numbers: the curves here rise with
the cells as its text says, and their level is set so that the first checkpoints
of timing_a fall where section 4 prints them. Contention, imbalance and noise are
chosen to give errors of the size of Tables 3 and 4.
"""
