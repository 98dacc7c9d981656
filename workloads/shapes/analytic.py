"""Shapes by models of the literature: Downey, Amdahl, roofline, communication, power law."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from predictors import downey
from workloads.base import FloatArray, IntArray
from workloads.errors import WorkloadError
from workloads.shapes.family import (
    Curve,
    DrawnFamily,
    Range,
    Shapes,
    assemble,
    draw_uniforms,
    parse_counts,
)

MOST_SIGMA = 1000.0
"""Downey's range is 0 to 2; beyond this nothing speeds up and sums overflow."""


@dataclass(frozen=True)
class DowneyCurve(Curve):
    """Downey's curve of each application.

    Attributes
    ----------
    A, sigma : numpy.ndarray of float, shape (applications,)
    """

    A: FloatArray
    sigma: FloatArray

    def relative_time(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return T(n)/T(1), elementwise."""
        return downey.relative_time(n, self.A[application], self.sigma[application])

    def largest_useful(self, application: IntArray, processors: int) -> IntArray:
        """Return 2A - 1 or A + A sigma - sigma, rounded up, at most `processors`."""
        A, sigma = self.A[application], self.sigma[application]
        return downey.integer_largest_useful(A, sigma, 1, processors)

    def resized(self, application: IntArray, factor: FloatArray) -> "DowneyCurve":
        """Return curves, one an element, with A multiplied by `factor` (A stays at least 1)."""
        return DowneyCurve(np.maximum(self.A[application] * factor, 1.0), self.sigma[application])


@dataclass(eq=False)
class Downey(DrawnFamily):
    """Shapes of Downey's model: A log-uniform, sigma uniform, drawn once an application.

    Parameters
    ----------
    parallelism_min, parallelism_max : float
        Range of the average parallelism A; an upper end of None is the machine.
    sigma_min, sigma_max : float
        Range of the variance of parallelism.
    counts : str or sequence of str
        Of `DrawnFamily`.

    References
    ----------
    Downey, "A parallel workload model and its implications for processor
    allocation", HPDC'97; the range of sigma is that of his generator program.

    Examples
    --------
    >>> import numpy as np
    >>> shapes = Downey(sigma_max=1).draw(np.random.default_rng(1), 3, processors=64)
    >>> shapes.g(np.array([0, 1, 2]), np.array([1, 1, 1])).tolist()
    [1.0, 1.0, 1.0]
    """

    parallelism_min: float = 1.0
    parallelism_max: float | None = None
    sigma_min: float = 0.0
    sigma_max: float = 2.0
    ranges = MappingProxyType(
        {"parallelism": Range("log", 1.0), "sigma": Range("uniform", 0.0, MOST_SIGMA)}
    )

    def curve(self, uniforms: FloatArray, processors: int) -> DowneyCurve:
        """Return A and sigma of each application."""
        return DowneyCurve(*self.parameters(uniforms, processors))

    def given(
        self, A: FloatArray, sigma: FloatArray, rng: np.random.Generator, processors: int
    ) -> Shapes:
        """Return the shapes of given parameters, one an application; only count rules are drawn.

        Raises
        ------
        WorkloadError
            If an A is below 1 or a sigma below 0.
        """
        try:
            downey.check_parameters(A, sigma)
        except ValueError as error:
            raise WorkloadError(f"Downey's model of the workload: {error}") from error
        uniforms = draw_uniforms(rng, len(A))
        return assemble(DowneyCurve(A, sigma), processors, parse_counts(self.counts), uniforms)


_TERMS = {
    "general": ("parallelism", "serial", "communication"),
    "roofline": ("parallelism",),
    "communication": ("communication",),
    "amdahl": ("serial",),
}


@dataclass(frozen=True)
class GeneralCurve(Curve):
    """T(n) = 1/min(n, nbar) + d + c (n - 1), relative to T(1).

    Attributes
    ----------
    nbar : numpy.ndarray of float, shape (applications,)
        Maximum parallelism, infinite where unlimited.
    d, c : numpy.ndarray of float, shape (applications,)
        Serial part and communication for each further processor, both
        relative to the parallel work.
    """

    nbar: FloatArray
    d: FloatArray
    c: FloatArray

    def _parts(self, application: IntArray, n: ArrayLike) -> tuple[FloatArray, FloatArray]:
        n = np.asarray(n, float)
        parallel = 1.0 / np.minimum(n, self.nbar[application])
        return parallel + self.d[application], self.c[application] * (n - 1.0)

    def relative_time(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return T(n)/T(1), elementwise."""
        computation, communication = self._parts(application, n)
        return (computation + communication) / (1.0 + self.d[application])

    def largest_useful(self, application: IntArray, processors: int) -> IntArray:
        """Return the count of the shortest time: min(nbar, sqrt(1/c)), floor or ceil."""
        with np.errstate(divide="ignore"):
            best = np.minimum(self.nbar[application], np.sqrt(1.0 / self.c[application]))
        low = np.clip(np.floor(best), 1, processors)
        high = np.clip(np.ceil(best), 1, processors)
        faster = self.relative_time(application, high) < self.relative_time(application, low)
        return np.where(faster, high, low).astype(np.int64)

    def communication(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return the share of c (n - 1) in the time; without such a term, of all overhead."""
        computation, communication = self._parts(application, n)
        total = computation + communication
        explicit = communication / total
        return np.where(self.c[application] > 0, explicit, super().communication(application, n))


@dataclass(eq=False)
class General(DrawnFamily):
    """Shapes T(n) = w/min(n, nbar) + d + c (n - 1), or with some of these terms alone.

    Parameters
    ----------
    model : str
        ``general``, ``roofline`` (nbar alone), ``communication`` (c alone) or
        ``amdahl`` (d alone).
    parallelism_min, parallelism_max : int
        Range of the maximum parallelism nbar, a uniform integer; an upper end
        of None is the machine.
    serial_min, serial_max : float
        Range of d/w, log-uniform; both 0 for none.
    communication_min, communication_max : float
        Range of c/w, log-uniform; both 0 for none.
    counts : str or sequence of str
        Feasible counts, see `Downey`.

    References
    ----------
    Benoit, Perotin, Robert & Vivien, moldable scheduling (ICPP'22, TOPC'24):
    models and the ranges of their instances.

    Examples
    --------
    >>> import numpy as np
    >>> roofline = General(model="roofline", parallelism_min=8, parallelism_max=8)
    >>> shapes = roofline.draw(np.random.default_rng(1), 1, processors=64)
    >>> shapes.g(np.array([0, 0, 0]), np.array([1, 4, 32])).tolist(), shapes.largest_useful(0)
    ([1.0, 0.25, 0.125], 8)
    """

    model: str = "general"
    parallelism_min: int = 1
    parallelism_max: int | None = None
    serial_min: float = 1e-3
    serial_max: float = 10**-0.5
    communication_min: float = 1e-6
    communication_max: float = 1e-2
    ranges = MappingProxyType(
        {"parallelism": Range("whole", 1.0), "serial": Range("log"), "communication": Range("log")}
    )

    def __post_init__(self) -> None:
        if self.model not in _TERMS:
            raise WorkloadError(
                f"moldability.model must be one of {list(_TERMS)}, got {self.model!r}"
            )
        super().__post_init__()

    def curve(self, uniforms: FloatArray, processors: int) -> GeneralCurve:
        """Return nbar, d and c of each application."""
        lacking = (np.inf, 0.0, 0.0)
        drawn = zip(self.ranges, self.parameters(uniforms, processors), lacking, strict=True)
        terms = _TERMS[self.model]
        return GeneralCurve(*(np.where(key in terms, one, lack) for key, one, lack in drawn))


class Amdahl(General):
    """Shapes T(n) = w/n + d: Amdahl's law, useful up to the whole machine.

    Parameters
    ----------
    serial_min, serial_max : float
        Range of the serial part d relative to the parallel work w, log-uniform.
    counts : str or sequence of str
        Feasible counts, see `Downey`.

    Examples
    --------
    >>> import numpy as np
    >>> shapes = Amdahl(serial_min=0.25, serial_max=0.25).draw(np.random.default_rng(1), 1, 64)
    >>> shapes.g(np.array([0, 0]), np.array([1, 4])).tolist()
    [1.0, 0.4]
    """

    def __init__(
        self,
        serial_min: float = 1e-3,
        serial_max: float = 10**-0.5,
        counts: str | Sequence[str] = "any",
    ) -> None:
        super().__init__("amdahl", serial_min=serial_min, serial_max=serial_max, counts=counts)


@dataclass(frozen=True)
class PowerCurve(Curve):
    """T(n) = n^-p, relative to T(1).

    Attributes
    ----------
    p : numpy.ndarray of float, shape (applications,)
    """

    p: FloatArray

    def relative_time(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return n^-p, elementwise."""
        return np.asarray(np.asarray(n, float) ** -self.p[application], float)

    def largest_useful(self, application: IntArray, processors: int) -> IntArray:
        """Return the machine, or 1 where p = 0."""
        return np.where(self.p[application] > 0, processors, 1).astype(np.int64)


@dataclass(eq=False)
class PowerLaw(DrawnFamily):
    """Shapes T(n) = w n^-p, the speedup of heSRPT and its relatives.

    Parameters
    ----------
    exponent_min, exponent_max : float
        Range of p, uniform, within [0, 1].
    counts : str or sequence of str
        Feasible counts, see `Downey`.

    Examples
    --------
    >>> import numpy as np
    >>> shapes = PowerLaw(exponent_min=0.5, exponent_max=0.5).draw(np.random.default_rng(1), 1, 64)
    >>> shapes.g(np.array([0, 0]), np.array([1, 16])).tolist()
    [1.0, 0.25]
    """

    exponent_min: float = 0.3
    exponent_max: float = 0.95
    ranges = MappingProxyType({"exponent": Range("uniform", 0.0, 1.0)})

    def curve(self, uniforms: FloatArray, processors: int) -> PowerCurve:
        """Return p of each application."""
        return PowerCurve(*self.parameters(uniforms, processors))
