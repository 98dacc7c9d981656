"""Shapes by Downey's model: average parallelism A and variance of parallelism sigma."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from predictors import downey
from workloads.errors import WorkloadError
from workloads.shapes.base import (
    FloatArray,
    IntArray,
    Shapes,
    assemble,
    check_draw,
    check_range,
    draw_uniforms,
    log_uniform,
    overhead_share,
)
from workloads.shapes.counts import parse_counts


@dataclass(frozen=True)
class DowneyCurve:
    """Downey's curve of each application.

    Attributes
    ----------
    A, sigma : numpy.ndarray of float, shape (applications,)
    """

    A: FloatArray
    sigma: FloatArray
    fixed_end: bool = False

    def relative_time(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return T(n)/T(1), elementwise."""
        return downey.relative_time(n, self.A[application], self.sigma[application])

    def largest_useful(self, application: IntArray, processors: int) -> IntArray:
        """Return 2A - 1 or A + A sigma - sigma, rounded up, at most `processors`."""
        A, sigma = self.A[application], self.sigma[application]
        return downey.integer_largest_useful(A, sigma, 1, processors)

    def communication(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return the share of the time beyond perfect speedup."""
        return overhead_share(self.relative_time(application, n), n)

    def resized(self, application: IntArray, factor: FloatArray) -> "DowneyCurve":
        """Return curves, one an element, with A multiplied by `factor` (A stays at least 1)."""
        return DowneyCurve(np.maximum(self.A[application] * factor, 1.0), self.sigma[application])


class Downey:
    """Shapes of Downey's model: A log-uniform, sigma uniform, drawn once an application.

    Parameters
    ----------
    parallelism_min, parallelism_max : float
        Range of the average parallelism A; an upper end of None is the machine.
    sigma_min, sigma_max : float
        Range of the variance of parallelism.
    counts : str or sequence of str
        Feasible counts: ``any``, ``powers_of_two``, ``squares``, ``even``,
        ``multiples_of_K``, or several to draw from.

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

    def __init__(
        self,
        parallelism_min: float = 1.0,
        parallelism_max: float | None = None,
        sigma_min: float = 0.0,
        sigma_max: float = 2.0,
        counts: str | Sequence[str] = "any",
    ) -> None:
        check_range("parallelism", parallelism_min, parallelism_max, 1.0)
        check_range("sigma", sigma_min, sigma_max, 0.0)
        self.parallelism_min, self.parallelism_max = parallelism_min, parallelism_max
        self.sigma_min, self.sigma_max = sigma_min, sigma_max
        self.counts = parse_counts(counts)

    def draw(self, rng: np.random.Generator, applications: int, processors: int) -> Shapes:
        """Draw A and sigma of each application."""
        check_draw(applications, processors)
        uniforms = draw_uniforms(rng, applications)
        top = processors if self.parallelism_max is None else self.parallelism_max
        A = log_uniform(uniforms[:, 0], self.parallelism_min, max(top, self.parallelism_min))
        sigma = self.sigma_min + (self.sigma_max - self.sigma_min) * uniforms[:, 1]
        return assemble(DowneyCurve(A, sigma), processors, self.counts, uniforms)

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
        return assemble(DowneyCurve(A, sigma), processors, self.counts, uniforms)
